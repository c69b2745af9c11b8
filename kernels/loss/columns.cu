// SPDX-License-Identifier: Apache-2.0
// The formulas of rows.cu where memory holds a part of each row at a time: some of its columns. A
// block sweeps over the part of one row. The first sweep reads the logits once and joins their
// statistics, online and in fp32, to those of the parts before. The second reads them once and
// writes their gradient over them.
#include "kernels/loss/columns.h"

#include <climits>

#include "kernels/loss/row.h"
#include "kernels/loss/sweep.h"

namespace tigon {
namespace {

constexpr int kThreads = 256;  // a part of a row is a few KB

template <LossForm kForm>
TIGON_DEVICE Statistics<kForm> load_statistics(const Statistics<LossForm::kGeneral>* from) {
  Statistics<kForm> s;
  s.exp.max = load(&from->exp.max);
  s.exp.sum = load(&from->exp.sum);
  s.sum = load(&from->sum);
  if constexpr (kForm == LossForm::kGeneral) {
    s.moment = load(&from->moment);
    s.largest = load(&from->largest);
    s.first = load(&from->first);
  }
  return s;
}

template <LossForm kForm>
TIGON_DEVICE void store_statistics(Statistics<LossForm::kGeneral>* to, const Statistics<kForm>& s) {
  store(&to->exp.max, s.exp.max);
  store(&to->exp.sum, s.exp.sum);
  store(&to->sum, s.sum);
  if constexpr (kForm == LossForm::kGeneral) {
    store(&to->moment, s.moment);
    store(&to->largest, s.largest);
    store(&to->first, s.first);
  }
}

// The target's column in this part; -1 where it is in another one. A target that is no class is in
// no part.
template <class T>
TIGON_DEVICE int held_target(const LossRows<T>& a, int64_t target) {
  const int64_t y = target - a.first_column;
  return target >= 0 && y >= 0 && y < a.columns ? static_cast<int>(y) : -1;
}

template <class T, LossForm kForm>
TIGON_KERNEL(kThreads)
add_columns_kernel(LossRows<T> a, LossState* state, bool is_first) {
  TIGON_DYNAMIC_SHARED(Vec<T>, on_chip);  // of no size
  const int64_t row = blockIdx.x;
  const int64_t target = load(a.target + row);
  if (target == a.options.ignore_index) return;
  const int columns = static_cast<int>(a.columns), y = held_target(a, target);
  const T* const x = a.logits + row * a.stride;
  const Slice slice = slice_of<kVec<T>>(x, columns, 0, 1);
  const AddLogits<kForm> add = {{a.options.softcap, 1.0f / a.options.softcap},
                                smoothing_weights(a),
                                static_cast<int>(a.first_column)};
  Statistics<kForm> s = read_row<kThreads>(x, slice, columns, 0, on_chip, 0, add);
  s = block_reduce<kThreads>(s, JoinStatistics<kForm>{});
  if (threadIdx.x != 0) return;
  if (!is_first) s = JoinStatistics<kForm>{}(load_statistics<kForm>(&state[row].statistics), s);
  store_statistics(&state[row].statistics, s);
  if (y >= 0)
    store(&state[row].target, to_float(load(x + y)));
  else if (is_first)
    store(&state[row].target, NAN);
}

template <class T, LossForm kForm>
TIGON_KERNEL(kThreads)
finish_kernel(LossRows<T> a, const LossState* state) {
  const int64_t row = int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (row >= a.rows) return;
  const int64_t target = load(a.target + row);
  if (target == a.options.ignore_index) return write_ignored_row<kForm>(a, row);
  const int y = target >= 0 && target < a.classes ? static_cast<int>(target) : -1;
  const Softcap<kForm> softcap = {a.options.softcap, 1.0f / a.options.softcap};
  const Statistics<kForm> s = load_statistics<kForm>(&state[row].statistics);
  write_row<kForm>(a, row, s, s.exp.max + logf(s.exp.sum), y, softcap(load(&state[row].target)));
}

template <class T, LossForm kForm>
TIGON_KERNEL(kThreads)
columns_gradient_kernel(LossRows<T> a) {
  TIGON_DYNAMIC_SHARED(Vec<T>, on_chip);  // of no size
  const int64_t row = blockIdx.x;
  const int columns = static_cast<int>(a.columns);
  T* const x = a.logits + row * a.stride;
  const Slice slice = slice_of<kVec<T>>(x, columns, 0, 1);
  const int64_t target = load(a.target + row);
  if (target == a.options.ignore_index) return fill_zero<T, kThreads>(x, slice, columns, 0);
  const int y = target >= 0 && target < a.classes ? static_cast<int>(target) : -1;
  const RowGradient<kForm> g =
      row_gradient<kForm>(a, gradient_factors<kForm>(a, row, y), load(a.lse + row));
  const int held = held_target(a, target);
  write_gradient<kThreads>(x, slice, columns, 0, on_chip, 0, g.of_column, held, g.at_target);
}

template <class Elem>
Status check_part(const LossRows<Elem>& a) {
  if (a.rows > INT_MAX) return unsupported("loss: there must be fewer than 2^31 rows");
  return {};
}

template <class Elem>
LaunchConfig block_per_row(const LossRows<Elem>& a, Stream stream) {
  return {.grid = dim3(static_cast<unsigned>(a.rows)), .block = dim3(kThreads), .stream = stream};
}

}  // namespace

template <class Elem>
Status add_loss_columns(const LossRows<Elem>& a, LossState* state, bool is_first, Stream stream) {
  if (const Status s = check_part(a); !s.ok()) return s;
  return with_loss_form(a, [&]<LossForm kForm>() {
    return launch(block_per_row(a, stream), add_columns_kernel<Elem, kForm>, a, state, is_first);
  });
}

template <class Elem>
Status finish_loss(const LossRows<Elem>& a, const LossState* state, Stream stream) {
  const auto blocks = static_cast<unsigned>(ceil_div(a.rows, int64_t{kThreads}));
  return with_loss_form(a, [&]<LossForm kForm>() {
    return launch({.grid = dim3(blocks), .block = dim3(kThreads), .stream = stream},
                  finish_kernel<Elem, kForm>, a, state);
  });
}

template <class Elem>
Status loss_columns_gradient(const LossRows<Elem>& a, Stream stream) {
  if (const Status s = check_part(a); !s.ok()) return s;
  return with_loss_form(a, [&]<LossForm kForm>() {
    return launch(block_per_row(a, stream), columns_gradient_kernel<Elem, kForm>, a);
  });
}

template Status add_loss_columns<float>(const LossRows<float>&, LossState*, bool, Stream);
template Status add_loss_columns<bf16>(const LossRows<bf16>&, LossState*, bool, Stream);
template Status add_loss_columns<f16>(const LossRows<f16>&, LossState*, bool, Stream);
template Status finish_loss<float>(const LossRows<float>&, const LossState*, Stream);
template Status finish_loss<bf16>(const LossRows<bf16>&, const LossState*, Stream);
template Status finish_loss<f16>(const LossRows<f16>&, const LossState*, Stream);
template Status loss_columns_gradient<float>(const LossRows<float>&, Stream);
template Status loss_columns_gradient<bf16>(const LossRows<bf16>&, Stream);
template Status loss_columns_gradient<f16>(const LossRows<f16>&, Stream);

}  // namespace tigon
