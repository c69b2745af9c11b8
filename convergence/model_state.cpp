// SPDX-License-Identifier: Apache-2.0
// What a model holds: weights, gradients, the optimizer's state.
#include <fmt/format.h>

#include <type_traits>

#include "convergence/model.h"
#include "convergence/threads.h"

namespace tigon::convergence {

// What is not trained has no master weight.
template <class P>
void Model<P>::set_weights(const std::vector<float>& master) {
  const auto trained = static_cast<size_t>(c_.layout.trained);
  const size_t bytes = trained * sizeof(float);
  device_fill(c_.b.m, 0, bytes, c_.stream);
  device_fill(c_.b.v, 0, bytes, c_.stream);
  device_fill(c_.b.gradient, 0, trained * sizeof(Elem), c_.stream);
  if constexpr (std::is_same_v<Elem, float>) {
    device_upload(c_.b.weight, master.data(), master.size() * sizeof(float), c_.stream);
  } else {
    device_upload(c_.b.master, master.data(), bytes, c_.stream);
    std::vector<Elem> rounded(master.size());
    parallel_for_each(0, static_cast<int64_t>(master.size()), [&](int64_t i) {
      rounded[static_cast<size_t>(i)] = Elem(master[static_cast<size_t>(i)]);
    });
    device_upload(c_.b.weight, rounded.data(), rounded.size() * sizeof(Elem), c_.stream);
  }
}

template <class P>
std::vector<float> Model<P>::weights() const {
  std::vector<Elem> all(static_cast<size_t>(c_.layout.total));
  device_download(all.data(), c_.b.weight, all.size() * sizeof(Elem), c_.stream);
  std::vector<float> host;
  for (Elem w : all) host.push_back(static_cast<float>(w));
  device_download(host.data(), c_.b.master, static_cast<size_t>(c_.layout.trained) * sizeof(float),
                  c_.stream);
  return host;
}

template <class P>
std::vector<float> Model<P>::gradients() const {
  std::vector<Elem> host(static_cast<size_t>(c_.layout.trained));
  device_download(host.data(), c_.b.gradient, host.size() * sizeof(Elem), c_.stream);
  std::vector<float> gradient;
  for (Elem g : host) gradient.push_back(static_cast<float>(g));
  gradient.resize(static_cast<size_t>(c_.layout.total), 0.0f);
  return gradient;
}

template <class P>
std::vector<StateTensor> Model<P>::state() const {
  std::vector<StateTensor> all;
  const auto add_all = [&](const char* kind, auto* data) {
    for (const Parameter& p : c_.layout.parameters) {
      if (p.offset >= c_.layout.trained && data != static_cast<void*>(c_.b.weight)) break;
      all.push_back({fmt::format("{}.{}", kind, p.name), dtype_of<std::decay_t<decltype(*data)>>,
                     p.rows, p.columns, data + p.offset});
    }
  };
  add_all("weight", c_.b.weight);
  if constexpr (!std::is_same_v<Elem, float>) add_all("master", c_.b.master);
  add_all("adam_m", c_.b.m);
  add_all("adam_v", c_.b.v);
  return all;
}

template void Model<F32>::set_weights(const std::vector<float>&);
template std::vector<float> Model<F32>::weights() const;
template std::vector<float> Model<F32>::gradients() const;
template std::vector<StateTensor> Model<F32>::state() const;
template void Model<BF16>::set_weights(const std::vector<float>&);
template std::vector<float> Model<BF16>::weights() const;
template std::vector<float> Model<BF16>::gradients() const;
template std::vector<StateTensor> Model<BF16>::state() const;

}  // namespace tigon::convergence
