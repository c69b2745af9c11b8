// SPDX-License-Identifier: Apache-2.0
// Leaves ignored rows out of the products. The valid rows are gathered into places before the
// chunks are computed, and their results are spread to their rows afterwards. Only the device knows
// their number, so the caller gives a bound, and the products are cut to it. Places behind the last
// valid row hold an ignored row of zeros. With more valid rows than the bound every result is NaN.
#pragma once
#include <optional>

#include "kernels/device/scratch_parts.h"
#include "kernels/linear_head/head.h"

namespace tigon::linear_head {

// Which rows are gathered, in their order.
struct RowList {
  int64_t most = 0;          // places
  int64_t* row = nullptr;    // [most]: the row of a place; -1: none
  int64_t* place = nullptr;  // [T]: the place of a row; -1: ignored
  int64_t* count = nullptr;  // [1]: rows that are not ignored
};

// Values by rows and by places, either way.
struct RowValues {
  const float* from = nullptr;
  float* to = nullptr;  // nullptr: not wanted
};
inline constexpr int kRowInputs = 4, kRowResults = 5, kReducedResults = 4;

// The head, the targets and the values of rows of a call, by places.
template <class T>
class ValidRows {
 public:
  // Takes memory for at most head.max_valid_rows places, which must be 0 or more, of T > 0 rows.
  ValidRows(const Head<T>& by_rows, const View<const int64_t, 1>& target, ScratchParts* scratch);

  const Head<T>& head() const { return head_; }
  const View<const int64_t, 1>& target() const { return target_; }

  // Each makes values of places of a view of values of rows, if it is given: gather() reads the
  // rows, spread() writes them.
  void take_input(View<const float, 1>* values, ScratchParts* scratch);
  void take_result(View<float, 1>* values, ScratchParts* scratch);
  // A result [1] of all rows, which becomes NaN with too many valid rows.
  void take_reduced(const View<float, 1>& result);

  Status gather(int64_t ignore_index, Stream stream) const;
  Status spread(Stream stream) const;

 private:
  // Of dx, or of dx_fp32.
  template <class D>
  Status spread_to(const View<D, 2>& places, const View<D, 2>& rows, Stream stream) const;

  Head<T> given_, head_;
  View<const int64_t, 1> given_target_, target_;
  RowList list_;
  RowValues inputs_[kRowInputs], results_[kRowResults];
  float* reduced_[kReducedResults] = {};
  int inputs_count_ = 0, results_count_ = 0, reduced_count_ = 0;
};

// The valid rows of a head that has a bound on them.
template <class T>
std::optional<ValidRows<T>> valid_rows(const Head<T>& head, const View<const int64_t, 1>& target,
                                       ScratchParts* scratch) {
  if (head.max_valid_rows < 0 || head.x.shape[0] == 0) return {};
  return ValidRows<T>(head, target, scratch);
}

}  // namespace tigon::linear_head
