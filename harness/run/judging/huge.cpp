// Large cases by sampled rows and slices.
#include "harness/run/judging/huge.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstring>

#include "harness/judge/compare.h"
#include "harness/run/executor.h"
#include "harness/run/inputs/inputs.h"
#include "harness/run/judging/oracle.h"
#include "harness/run/memory/convert.h"
#include "harness/run/memory/placed.h"
#include "harness/run/memory/tiled_tensor.h"

namespace tigon {

namespace {

// The tensors of one pass for some rows of the whole, and calls of it.
class Launch {
 public:
  Launch(const Case& c, const OpSpec& op, const Pass& pass, int64_t rows)
      : case_(c), pass_(pass), row_axis_(op.axes.front().axis.symbol) {
    case_.axes[row_axis_] = rows;
    binding_ = binding_of(case_, op, pass);
    for (const TensorInfo& info : pass.tensors) {
      if (is_left_out(info, c.options)) continue;
      tensors_.emplace_back(info, info.dtype.at(c.dtype), binding_, row_axis_);
    }
  }

  const Binding& binding() const { return binding_; }
  std::vector<TiledTensor>& tensors() { return tensors_; }
  TiledTensor* find(const std::string& name) {
    for (TiledTensor& t : tensors_)
      if (t.info().name == name) return &t;
    return nullptr;
  }

  void plan(const InputSet& set, uint64_t seed) {
    for (TiledTensor& t : tensors_)
      if (t.is_input()) t.plan(plan_of(set, t.info().name), seed, binding_);
  }
  // Inputs as planned, from row `first` of the whole on; outputs poisoned.
  void fill(int64_t first, unsigned char poison) {
    for (TiledTensor& t : tensors_)
      if (t.is_input())
        t.fill(t.row_wise() ? first : 0);
      else
        t.poison(poison);
  }

  void run(const Implementation& impl, double* seconds = nullptr) {
    Bound bound;
    bound.values = binding_;
    for (const TiledTensor& t : tensors_) bound.tensors[t.info().name] = t.ref();
    const size_t bytes = impl.workspace ? impl.workspace(case_.dtype, bound) : 0;
    const DeviceBuffer workspace(std::max<size_t>(bytes, 1));
    device_fill(workspace.data(), 0xff, workspace.bytes());
    if (bytes > 0) bound.scratch = {workspace.data(), bytes};
    if (impl.prepare) require(impl.prepare(case_.dtype, bound));
    const auto start = std::chrono::steady_clock::now();
    require(impl.run(case_.dtype, bound, nullptr));
    stream_synchronize(nullptr);
    if (seconds)
      *seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    for (const TiledTensor& t : tensors_)
      if (!t.guards_hold())
        throw Stop{Verdict::kOutOfBoundsWrite, "wrote outside of " + t.info().name};
  }

 private:
  static void require(const Status& status) {
    if (status.ok()) return;
    throw Stop{status.code == Status::kUnsupported ? Verdict::kUnsupported : Verdict::kRuntimeError,
               status.reason};
  }

  Case case_;
  const Pass& pass_;
  std::string row_axis_;
  Binding binding_;
  std::vector<TiledTensor> tensors_;
};

class HugeCase {
 public:
  HugeCase(const Case& c, const HugeLimits& limits, CheckResult* result)
      : c_(c), limits_(limits), result_(*result) {
    op_ = find_op(c.op);
    pass_ = op_ ? find_pass(*op_, c.pass) : nullptr;
    impl_ = pass_ ? find_implementation(*pass_, c.impl) : nullptr;
    if (!impl_) throw UsageError("no such op, pass or implementation: " + case_id(c));
    row_axis_ = op_->axes.front().axis.symbol;
    rows_ = c.axes.at(row_axis_);
  }

  void run() {
    require_room();
    Launch whole(c_, *op_, *pass_, rows_);
    whole.plan(op_->inputs.front(), c_.seed);
    whole.fill(0, kPoisons[0]);
    take_saved(&whole);
    whole.run(*impl_, &result_.seconds);
    sample_ = sampled_rows(whole);
    require_inputs(whole);
    judge_sample(&whole, true);
    // What the oracle says of a wrong row says more than that a slice differs.
    if (rows_bitwise() && !is_failure(judgement_.verdict)) compare_slices(&whole);
    judge_sums(&whole);
    result_.verdict = judgement_.verdict;
    result_.reason = judgement_.reason;
  }

 private:
  bool rows_bitwise() const {
    return std::any_of(pass_->properties.begin(), pass_->properties.end(),
                       [](const Property& p) { return p.name == "row_independence"; });
  }

  // The tensors must fit, and a host is not for large ones.
  void require_room() const {
    Case any = c_;
    double bytes = 0;
    const Binding binding = binding_of(c_, *op_, *pass_);
    for (const TensorInfo& t : pass_->tensors) {
      double size = static_cast<double>(size_of(t.dtype.at(c_.dtype)));
      for (const Expr& e : t.shape) size *= e(binding);
      bytes += size;
    }
    if (this_executor() != "cuda" && bytes > limits_.host_bytes)
      throw Stop{Verdict::kUnsupported,
                 fmt::format("needs a GPU: {:.1f} GiB of tensors", bytes / 0x1p30)};
    if (bytes > static_cast<double>(device_free_bytes()))
      throw Stop{Verdict::kOom, fmt::format("{:.1f} GiB of tensors do not fit", bytes / 0x1p30)};
  }

  // What the pass before saves, made by this implementation of it, which has large cases of its
  // own.
  void take_saved(Launch* whole) {
    if (pass_->inputs_from.empty()) return;
    const Pass* source = find_pass(*op_, pass_->inputs_from);
    const Implementation* impl = source ? find_implementation(*source, c_.impl) : nullptr;
    if (!impl) throw std::logic_error("no pass to take saved inputs from");
    Launch before(c_, *op_, *source, rows_);
    before.plan(op_->inputs.front(), c_.seed);
    before.fill(0, kPoisons[0]);
    before.run(*impl);
    for (TiledTensor& t : whole->tensors())
      if (TiledTensor* saved = before.find(t.info().name);
          saved && t.is_input() && saved->info().role == Role::kSaved) {
        saved_[t.info().name] = saved->download(0, saved->rows());
        t.upload(0, saved_[t.info().name]);
      }
  }

  // First, last, those around the boundaries, and random ones.
  std::vector<int64_t> sampled_rows(Launch& whole) const {
    std::vector<int64_t> rows = {0, rows_ - 1};
    for (const TiledTensor& t : whole.tensors()) {
      if (!t.row_wise() || t.row_elements() == 0) continue;
      for (const int64_t boundary :
           {limits_.boundary_elements,
            2 * limits_.boundary_elements / static_cast<int64_t>(size_of(t.dtype()))})
        for (const int64_t row : {-1, 0, 1}) rows.push_back(boundary / t.row_elements() + row);
    }
    for (int i = 0; i < limits_.random_rows; ++i)
      rows.push_back(static_cast<int64_t>(random_bits(c_.seed, static_cast<uint64_t>(i)) %
                                          static_cast<uint64_t>(rows_)));
    std::erase_if(rows, [&](int64_t r) { return r < 0 || r >= rows_; });
    std::sort(rows.begin(), rows.end());
    rows.erase(std::unique(rows.begin(), rows.end()), rows.end());
    return rows;
  }

  // What is only read still holds what was put there, in the sampled rows.
  void require_inputs(Launch& whole) const {
    for (const TiledTensor& t : whole.tensors()) {
      if (t.is_output()) continue;
      for (const int64_t row : t.row_wise() ? sample_ : std::vector<int64_t>{0})
        if (given(t, row) != t.download(row, 1))
          throw Stop{Verdict::kInputModified,
                     fmt::format("changed input {} in row {}", t.info().name, row)};
    }
  }

  std::vector<std::byte> given(const TiledTensor& t, int64_t row) const {
    const auto saved = saved_.find(t.info().name);
    if (saved == saved_.end()) return t.planned(row, 1);
    const auto begin = saved->second.begin() + row * row_bytes(t);
    return {begin, begin + row_bytes(t)};
  }

  std::vector<double> gathered(const TiledTensor& t, bool input) const {
    std::vector<std::byte> bytes;
    const std::vector<int64_t> all = t.row_wise() ? sample_ : std::vector<int64_t>{0};
    for (const int64_t row : all) {
      const auto one = input ? given(t, row) : t.download(row, 1);
      bytes.insert(bytes.end(), one.begin(), one.end());
    }
    return widen(bytes.data(), bytes.size() / size_of(t.dtype()), t.dtype());
  }

  // The sampled rows alone are a small case. Judges row-wise outputs, or those that are sums.
  void judge_sample(Launch* whole, bool row_wise) {
    Case small = c_;
    small.axes[row_axis_] = static_cast<int64_t>(sample_.size());
    small.inputs = op_->inputs.front().name;
    std::map<std::string, std::vector<double>> inputs;
    for (const TiledTensor& t : whole->tensors())
      if (t.is_input()) inputs[t.info().name] = gathered(t, true);
    const Problem problem = make_problem(small, inputs);
    const auto expected = run_oracle(problem);
    for (const CaseTensor& output : problem.tensors) {
      if (!output.is_output) continue;
      const TiledTensor& t = *whole->find(output.info->name);
      if (t.row_wise() != row_wise) continue;
      Comparison comparison =
          compare(output.info->name, gathered(t, false), expected.at(output.info->name),
                  output.shape, budget_of(problem, output));
      auto& index = comparison.result.worst_index;
      if (row_wise && !index.empty()) {
        index[0] = sample_[static_cast<size_t>(index[0])];
        if (comparison.verdict != Verdict::kPassed)
          comparison.reason += fmt::format("; of {} sampled rows, the worst is row {} of {}",
                                           sample_.size(), index[0], rows_);
      }
      judgement_.add(comparison);
      result_.outputs.push_back(std::move(comparison.result));
    }
  }

  // Every row again by launches whose offsets are small.
  void compare_slices(Launch* whole) {
    int64_t widest = 1;
    for (const TiledTensor& t : whole->tensors())
      if (t.row_wise()) widest = std::max(widest, t.row_elements());
    // A row lies as far off its alignment as in the whole, so that kernels read it in the same
    // pieces: 16 rows are a multiple of 16 bytes.
    const int64_t step = std::max<int64_t>(limits_.slice_elements / widest / 16, 1) * 16;
    for (int64_t first = 0; first < rows_; first += step) {
      const int64_t count = std::min(step, rows_ - first);
      Launch slice(c_, *op_, *pass_, count);
      for (TiledTensor& t : slice.tensors())
        if (t.is_input())
          take_plan(*whole->find(t.info().name), first, &t);
        else
          t.poison(kPoisons[1]);
      slice.run(*impl_);
      for (const TiledTensor& t : slice.tensors())
        if (t.is_output() && t.row_wise()) require_equal(*whole->find(t.info().name), first, t);
    }
  }

  void take_plan(const TiledTensor& from, int64_t first, TiledTensor* to) const {
    const int64_t offset = from.row_wise() ? first : 0;
    const int64_t step = std::max<int64_t>(1, kChunkBytes / row_bytes(from));
    for (int64_t r = 0; r < to->rows(); r += step) {
      const int64_t count = std::min(step, to->rows() - r);
      to->upload(r, saved_.count(from.info().name) ? from.download(offset + r, count)
                                                   : from.planned(offset + r, count));
    }
  }

  void require_equal(const TiledTensor& whole, int64_t first, const TiledTensor& slice) const {
    const int64_t step = std::max<int64_t>(1, kChunkBytes / row_bytes(slice));
    for (int64_t r = 0; r < slice.rows(); r += step) {
      const int64_t count = std::min(step, slice.rows() - r);
      const auto a = whole.download(first + r, count), b = slice.download(r, count);
      if (a == b) continue;
      const auto at = std::mismatch(a.begin(), a.end(), b.begin()).first - a.begin();
      const int64_t row = first + r + at / row_bytes(slice);
      const auto column = at % row_bytes(slice) / static_cast<int64_t>(size_of(slice.dtype()));
      throw Stop{
          Verdict::kIncorrectNumerical,
          fmt::format("{}: row {} of {} differs at element {} from a launch on rows {} to {}",
                      slice.info().name, row, rows_, column, first, first + slice.rows() - 1)};
    }
  }

  // Sums over rows: with an upstream gradient that is 0 outside of the sample, they are the
  // sample's own.
  void judge_sums(Launch* whole) {
    bool sums = false;
    for (const TiledTensor& t : whole->tensors()) sums = sums || (t.is_output() && !t.row_wise());
    if (!sums) return;
    TiledTensor* upstream = whole->find(pass_->upstream);
    if (!upstream || !upstream->row_wise())
      throw Stop{Verdict::kUnsupported,
                 "outputs that are sums over rows need an upstream gradient with rows"};
    upstream->keep_rows(sample_);
    whole->fill(0, kPoisons[1]);
    for (const auto& [name, bytes] : saved_) whole->find(name)->upload(0, bytes);
    whole->run(*impl_);
    judge_sample(whole, false);
  }

  static int64_t row_bytes(const TiledTensor& t) {
    return std::max<int64_t>(1, t.row_elements() * static_cast<int64_t>(size_of(t.dtype())));
  }

  static constexpr int64_t kChunkBytes = int64_t{64} << 20;

  const Case& c_;
  const HugeLimits& limits_;
  CheckResult& result_;
  const OpSpec* op_;
  const Pass* pass_;
  const Implementation* impl_;
  std::string row_axis_;
  int64_t rows_;
  std::vector<int64_t> sample_;
  std::map<std::string, std::vector<std::byte>> saved_;
  Judgement judgement_;
};

}  // namespace

void check_huge(const Case& c, const HugeLimits& limits, CheckResult* result) {
  HugeCase(c, limits, result).run();
}

}  // namespace tigon
