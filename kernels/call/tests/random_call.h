// SPDX-License-Identifier: Apache-2.0
// A right call of any op, made from its signature: random inputs in device memory.
#pragma once
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "kernels/call/erase.h"
#include "kernels/device/runtime.h"

namespace tigon::call {

// Memory of one tensor and what it held at first.
struct RandomTensor {
  DeviceBuffer memory;
  std::vector<std::byte> first;
  std::vector<int64_t> sizes;
  bool is_output = false;
};

inline const Binding kUsualSizes = {{"T", 37}, {"H", 72},       {"V", 130}, {"F", 48},
                                    {"Q", 4},  {"K", 2},        {"D", 16},  {"G", 40},
                                    {"R", 2},  {"classes", 130}};  // an option without which
                                                                   // there is no call

// Optional tensors are left out, but for gradients that a call may write together.
class RandomCall {
 public:
  explicit RandomCall(const tigon_op* op, Binding values = kUsualSizes, unsigned seed = 1)
      : op_(op), info_(static_cast<const OpState*>(op->state)->info), random_(seed) {
    classes_ = static_cast<int>(values.at("V"));
    for (size_t i = 0; i < info_.options.size(); ++i) {
      const OptionInfo& option = info_.options[i];
      if (values.emplace(option.name, option.default_value).second) continue;
      options_.push_back({static_cast<int32_t>(i), 0, values.at(option.name)});
    }
    for (const TensorInfo& t : info_.tensors) {
      made_.push_back(make(t, values));
      const RandomTensor& m = made_.back();
      tensors_.push_back({m.memory.data(), is_given(t) ? m.sizes.data() : nullptr, nullptr,
                          static_cast<int32_t>(t.dtype), static_cast<int32_t>(m.sizes.size())});
    }
    call_ = {tensors_.data(),
             options_.data(),
             nullptr,
             0,
             static_cast<int32_t>(tensors_.size()),
             static_cast<int32_t>(options_.size())};
    scratch_ = DeviceBuffer(tigon_workspace(op, &call_));
    call_.scratch = scratch_.data();
    call_.scratch_bytes = scratch_.bytes();
  }

  const tigon_op* op() const { return op_; }
  tigon_call& call() { return call_; }

  // One call from the first contents on; returns all outputs. The status must be right.
  std::vector<std::byte> run(Stream stream, tigon_status* status) {
    for (const RandomTensor& m : made_)
      device_upload(m.memory.data(), m.first.data(), m.first.size(), stream);
    *status = tigon_run(op_, &call_, stream);
    stream_synchronize(stream);
    std::vector<std::byte> all;
    for (const RandomTensor& m : made_) {
      if (!m.is_output) continue;
      all.resize(all.size() + m.first.size());
      device_download(all.data() + all.size() - m.first.size(), m.memory.data(), m.first.size(),
                      stream);
    }
    return all;
  }

 private:
  static bool is_given(const TensorInfo& t) {
    if (!t.is_optional) return true;
    const std::string name = t.name;
    return name == "w" || name == "b" || name == "dx" || name == "dw" || name == "db";
  }

  RandomTensor make(const TensorInfo& t, const Binding& values) {
    RandomTensor m;
    if (!is_given(t)) return m;
    size_t elements = 1;
    for (const Expr size : t.shape) {
      m.sizes.push_back(size.integer(values));
      elements *= static_cast<size_t>(m.sizes.back());
    }
    m.first.resize(elements * size_of(t.dtype));
    for (size_t i = 0; i < elements; ++i) put(t.dtype, &m.first[i * size_of(t.dtype)]);
    m.memory = DeviceBuffer(m.first.size());
    m.is_output = t.role != Role::kIn;
    return m;
  }

  void put(DType type, std::byte* to) {
    const float value = std::uniform_real_distribution<float>(0.1f, 2.0f)(random_);
    const int64_t whole = std::uniform_int_distribution<int>(0, classes_ - 1)(random_);
    const auto store = [to](auto v) { std::memcpy(to, &v, sizeof v); };
    if (type == DType::kF32) store(value);
    if (type == DType::kBF16) store(bf16(value));
    if (type == DType::kF16) store(f16(value));
    if (type == DType::kI64) store(whole);
  }

  const tigon_op* op_;
  const PassInfo& info_;
  std::mt19937 random_;
  int classes_ = 0;  // that whole numbers are drawn from: targets
  std::vector<RandomTensor> made_;
  std::vector<tigon_tensor> tensors_;
  std::vector<tigon_option> options_;
  DeviceBuffer scratch_;
  tigon_call call_{};
};

}  // namespace tigon::call
