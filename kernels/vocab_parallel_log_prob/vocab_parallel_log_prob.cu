// SPDX-License-Identifier: Apache-2.0
// vocab_parallel_log_prob   log-probabilities of tokens and their entropy from logits [T, V] that
//                           are some classes of all, and the gradient of both
//
// statistics, backward: the sweeps of log_prob, whose blocks share a row as its length alone says.
// join: a thread joins the sums of all ranks of a row, in their order, and makes its results.
//
// Bytes: T*V*elem for the statistics, 2*T*V*elem for the gradient.
#include "kernels/vocab_parallel_log_prob/vocab_parallel_log_prob.h"

#include <climits>

#include "kernels/log_prob/row.h"
#include "kernels/log_prob/statistics.h"
#include "kernels/signature/checks.h"
#include "kernels/signature/instantiate.h"

namespace tigon::vocab_parallel_log_prob {
namespace {

constexpr int kThreads = 256;  // of join, a row each

// slope: log2(e) / temperature. One rank's sums are those of all classes, in every bit.
template <bool kEntropy>
TIGON_KERNEL(kThreads)
join_kernel(log_prob::Forward<F32> a, log_prob::Statistics<const float> told, int ranks,
            float slope) {
  const int64_t rows = a.target.shape[0];
  const int64_t row = int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (row >= rows) return;
  if (load(a.target.data + row) == a.ignore_index) return write_row(a, row, 0.0f, 0.0f, 0.0f);
  log_prob::RowSums s = log_prob::load_sums<kEntropy>(told, row);
  float x_y = log_prob::load_target(told, row);
  for (int rank = 1; rank < ranks; ++rank) {
    const int64_t place = rank * rows + row;
    s = log_prob::JoinRowSums<kEntropy>{slope}(s, log_prob::load_sums<kEntropy>(told, place));
    x_y = fmaxf(x_y, log_prob::load_target(told, place));  // the number where others have NaN
  }
  write_sums(a, row, s, x_y);
}

// ---- launchers ----------------------------------------------------------------------------------

Status check_rows(int64_t rows) {
  if (rows < 0) return invalid("vocab_parallel_log_prob: T must not be negative");
  if (rows > INT_MAX)
    return unsupported("vocab_parallel_log_prob: there must be fewer than 2^31 rows");
  return {};
}

Status check_shard(const Shard& shard, int64_t columns) {
  if (shard.classes < 1)
    return invalid(
        "vocab_parallel_log_prob: classes must be the number of classes of all ranks, at least 1");
  if (shard.classes > INT_MAX)
    return unsupported("vocab_parallel_log_prob: there must be fewer than 2^31 classes");
  if (shard.first_class < 0 || shard.first_class > shard.classes - columns)
    return invalid(
        "vocab_parallel_log_prob: first_class must be at least 0, and first_class + V at most "
        "classes");
  return {};
}

Status check_temperature(float temperature) {
  if (log_prob::is_temperature(temperature)) return {};
  return invalid("vocab_parallel_log_prob: temperature and its inverse must be finite and above 0");
}

// A rank's logits, which of all classes they are, and the targets.
template <class Args>
Status check_logits(const Args& a) {
  const int64_t rows = a.logits.shape[0], columns = a.logits.shape[1];
  if (const Status s = check_rows(rows); !s.ok()) return s;
  if (columns < 0 || !has_shape(a.logits, rows, columns) ||
      (rows > 1 && a.logits.stride[0] < columns))
    return invalid(
        "vocab_parallel_log_prob: rows of logits must be contiguous and must not overlap");
  if (const Status s = check_shard(a, columns); !s.ok()) return s;
  if (!has_shape(a.target, rows)) return invalid("vocab_parallel_log_prob: target must be [T]");
  if (is_missing(a.logits) || is_missing(a.target))
    return invalid("vocab_parallel_log_prob: logits and target must not be null");
  return check_temperature(a.temperature);
}

template <class P>
Status check(const Statistics<P>& a) {
  const int64_t rows = a.logits.shape[0];
  if (const Status s = check_logits(a); !s.ok()) return s;
  if (!has_shape(a.statistics, rows, kStatistics) || !a.statistics.contiguous() ||
      is_missing(a.statistics))
    return invalid("vocab_parallel_log_prob: statistics must be [T, 3] and not null");
  if (a.moment && !has_shape(a.moment, rows))
    return invalid("vocab_parallel_log_prob: moment must be [T]");
  return {};
}

template <class P>
Status check_told(const Join<P>& a) {
  const int64_t ranks = a.statistics.shape[0], rows = a.target.shape[0];
  if (ranks < 1 || ranks > INT_MAX || !has_shape(a.statistics, ranks, rows, kStatistics) ||
      !a.statistics.contiguous())
    return invalid("vocab_parallel_log_prob: statistics must be [R >= 1, T, 3]");
  if (a.moment && (!has_shape(a.moment, ranks, rows) || !a.moment.contiguous()))
    return invalid("vocab_parallel_log_prob: moment must be [R, T]");
  if (a.entropy && !a.moment && rows > 0)
    return invalid("vocab_parallel_log_prob: the entropy needs the moment of each rank");
  return {};
}

template <class P>
Status check(const Join<P>& a) {
  const int64_t rows = a.target.shape[0];
  if (const Status s = check_rows(rows); !s.ok()) return s;
  if (const Status s = check_told(a); !s.ok()) return s;
  if (!has_shape(a.target, rows) || !has_shape(a.logp, rows) || !has_shape(a.lse, rows))
    return invalid("vocab_parallel_log_prob: target, logp and lse must be [T]");
  if (is_missing(a.statistics) || is_missing(a.target) || is_missing(a.logp) || is_missing(a.lse))
    return invalid("vocab_parallel_log_prob: statistics, target, logp and lse must not be null");
  if (a.entropy && !has_shape(a.entropy, rows))
    return invalid("vocab_parallel_log_prob: entropy must be [T]");
  return check_temperature(a.temperature);
}

template <class P>
Status check_gradients(const Backward<P>& a) {
  const int64_t rows = a.logits.shape[0], columns = a.logits.shape[1];
  if (!has_shape(a.dlogits, rows, columns) || (rows > 1 && a.dlogits.stride[0] < columns))
    return invalid(
        "vocab_parallel_log_prob: rows of dlogits must be contiguous and must not overlap");
  if (!has_shape(a.lse, rows) || !has_shape(a.dlogp, rows))
    return invalid("vocab_parallel_log_prob: lse and dlogp must be [T]");
  if (is_missing(a.dlogits) || is_missing(a.lse) || is_missing(a.dlogp))
    return invalid("vocab_parallel_log_prob: dlogits, lse and dlogp must not be null");
  if (a.entropy && !has_shape(a.entropy, rows))
    return invalid("vocab_parallel_log_prob: entropy must be [T]");
  if (!a.dentropy) return {};
  if (!has_shape(a.dentropy, rows)) return invalid("vocab_parallel_log_prob: dentropy must be [T]");
  if (is_missing(a.entropy) || !has_shape(a.entropy, rows))
    return invalid(
        "vocab_parallel_log_prob: the gradient of the entropy takes the entropy [T] of join");
  return {};
}

}  // namespace

template <class P>
Status statistics(const Statistics<P>& a, Stream stream) {
  if (const Status s = check(a); !s.ok()) return s;
  log_prob::Forward<P> rows;
  static_cast<Options&>(rows) = a;
  rows.logits = a.logits;
  rows.target = a.target;
  return log_prob::forward_of_shard(rows, a, {a.statistics.data, a.moment.data}, stream);
}

template <class P>
Status join(const Join<P>& a, Stream stream) {
  if (const Status s = check(a); !s.ok()) return s;
  log_prob::Forward<F32> rows;
  static_cast<Options&>(rows) = a;
  rows.target = a.target;
  rows.logp = a.logp;
  rows.lse = a.lse;
  rows.entropy = a.entropy;
  const auto blocks = static_cast<unsigned>(ceil_div(a.target.shape[0], int64_t{kThreads}));
  const log_prob::Statistics<const float> told = {a.statistics.data, a.moment.data};
  return launch({.grid = dim3(blocks), .block = dim3(kThreads), .stream = stream},
                a.entropy ? join_kernel<true> : join_kernel<false>, rows, told,
                static_cast<int>(a.statistics.shape[0]), log_prob::kLog2E / a.temperature);
}

template <class P>
Status backward(const Backward<P>& a, Stream stream) {
  if (const Status s = check_logits(a); !s.ok()) return s;
  if (const Status s = check_gradients(a); !s.ok()) return s;
  return log_prob::backward_of_shard<P>(a, a, stream);
}

TIGON_INSTANTIATE(statistics, Statistics);
TIGON_INSTANTIATE(join, Join);
TIGON_INSTANTIATE(backward, Backward);

}  // namespace tigon::vocab_parallel_log_prob
