// SPDX-License-Identifier: Apache-2.0
// Random cases of the contracts.
#include "harness/run/cases/soak_cases.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "harness/run/cases/chosen.h"
#include "harness/run/cases/pass_sets.h"
#include "harness/run/inputs/inputs.h"

namespace tigon {

namespace {

constexpr int64_t kHostElements = 1 << 13;  // a few milliseconds per case
constexpr int64_t kGpuElements = 1 << 22;
constexpr int kShifts = 8;  // 16 bytes of a 16-bit type

// Draws of one seed.
class Dice {
 public:
  Dice(uint64_t seed, const SoakRequest& r)
      : key_(stream_key(seed, r.op + "/" + name_of(r.dtype))) {}
  double uniform() { return random_uniform(key_, next_++); }
  size_t below(size_t n) { return static_cast<size_t>(uniform() * static_cast<double>(n)); }
  template <class T>
  const T& pick(const std::vector<T>& from) {
    return from[below(from.size())];
  }

 private:
  uint64_t key_, next_ = 0;
};

std::vector<int64_t> sizes_of(const AxisPlan& plan) {
  std::vector<int64_t> sizes = plan.tiny;
  sizes.insert(sizes.end(), plan.check.begin(), plan.check.end());
  return sizes;
}

// What all sizes of the contract share, e.g. 2 for a head size; the least that is drawn.
int64_t factor_of(const AxisPlan& plan) {
  int64_t factor = 0;
  for (const int64_t s : sizes_of(plan)) factor = std::gcd(factor, s);
  return factor;
}

// A size up to the largest of the contract, small ones as often as large ones.
int64_t random_size(const AxisPlan& plan, Dice* dice) {
  const std::vector<int64_t> sizes = sizes_of(plan);
  const int64_t factor = factor_of(plan);
  const auto most = static_cast<double>(*std::max_element(sizes.begin(), sizes.end()) / factor);
  return factor * static_cast<int64_t>(std::exp(dice->uniform() * std::log(most + 0.999)));
}

// Throws UsageError where the given sizes leave no room for the others.
void require_room(const OpSpec& op, const SoakRequest& r, int64_t most) {
  const auto& axes = r.choice.axes;
  if (axes.size() == op.axes.size()) return;
  int64_t least = 1;
  for (const AxisPlan& plan : op.axes) {
    const auto given = axes.find(plan.axis.symbol);
    const int64_t size = given == axes.end()
                             ? factor_of(plan)
                             : *std::min_element(given->second.begin(), given->second.end());
    least *= std::max<int64_t>(size, 1);
  }
  if (least > most)
    throw UsageError(
        fmt::format("{}: these sizes make {} elements at least, and a case may have {}; give "
                    "--most-elements {} or more",
                    op.name, least, most, least));
}

std::map<std::string, int64_t> random_shape(const OpSpec& op, const SoakRequest& r, int64_t most,
                                            Dice* dice) {
  const auto& axes = r.choice.axes;
  while (true) {
    std::map<std::string, int64_t> shape;
    int64_t elements = 1;
    for (const AxisPlan& plan : op.axes) {
      const auto given = axes.find(plan.axis.symbol);
      const int64_t size =
          given != axes.end() ? dice->pick(given->second) : random_size(plan, dice);
      shape[plan.axis.symbol] = size;
      elements *= std::max<int64_t>(size, 1);
    }
    if (elements <= most || axes.size() == op.axes.size()) return shape;
  }
}

std::vector<const Implementation*> kernels_of(const Pass& pass, const SoakRequest& r) {
  return chosen_implementations(pass, r.choice, false);
}

Case random_case(const OpSpec& op, const std::vector<const Pass*>& passes, const SoakRequest& r,
                 int64_t most, uint64_t seed) {
  Dice dice(seed, r);
  const Pass& pass = *dice.pick(passes);
  Case c;
  c.op = op.name;
  c.pass = pass.name;
  c.dtype = r.dtype;
  c.seed = seed;
  const Implementation& kernel = *dice.pick(kernels_of(pass, r));
  c.impl = kernel.name;
  c.axes = random_shape(op, r, most, &dice);
  c.options = options_for(pass, dice.pick(op.option_sets)).value_or(OptionSet{});
  if (!options_fit(op, pass, c)) c.options.clear();
  const InputSet& set = dice.pick(op.inputs);
  c.inputs = is_judged_on(kernel, set) ? set.name : op.inputs.front().name;
  if (dice.below(2) == 1) c.shift = static_cast<int>(dice.below(kShifts));
  if (dice.below(4) == 0) c.skew = 1;
  if (has_strided(pass) && dice.below(4) == 0) c.gap = static_cast<int>(dice.below(kShifts));
  return c;
}

}  // namespace

std::vector<Case> soak_cases(const SoakRequest& request, uint64_t first, int count) {
  const OpSpec* op = find_op(request.op);
  if (!op) throw UsageError(fmt::format("no op '{}'", request.op));
  std::vector<const Pass*> passes;
  for (const Pass& pass : op->passes) {
    if (is_chosen(request.choice.passes, pass.name) && !kernels_of(pass, request).empty())
      passes.push_back(&pass);
  }
  if (passes.empty()) throw UsageError(fmt::format("{}: nothing to soak is selected", request.op));
  const int64_t most = request.most_elements > 0      ? request.most_elements
                       : default_executor() == "cuda" ? kGpuElements
                                                      : kHostElements;
  require_room(*op, request, most);
  std::vector<Case> cases;
  for (int i = 0; i < count; ++i)
    cases.push_back(random_case(*op, passes, request, most, first + static_cast<uint64_t>(i)));
  std::stable_sort(cases.begin(), cases.end(), [](const Case& a, const Case& b) {
    return std::tie(a.pass, a.impl) < std::tie(b.pass, b.impl);
  });
  return cases;
}

}  // namespace tigon
