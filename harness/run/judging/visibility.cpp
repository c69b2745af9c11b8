// What the test data of a contract show.
#include "harness/run/judging/visibility.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "harness/judge/compare.h"
#include "harness/run/inputs/inputs.h"
#include "harness/run/judging/oracle.h"
#include "harness/run/memory/convert.h"

namespace tigon {

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// How far `other` is from what the oracle says about the output, in budgets of the worst element.
double distance(const Problem& problem, const CaseTensor& t, const Expected& expected,
                const std::vector<double>& other) {
  if (other.size() != expected.value.size()) return kInfinity;
  const Budget budget = budget_of(problem, t);
  double largest = 0;
  for (size_t i = 0; i < other.size(); ++i) {
    const double want = expected.value[i];
    if (std::isnan(want) && std::isnan(other[i])) continue;
    if (want == other[i]) continue;
    const double ratio =
        std::abs(want - other[i]) / allowed_error(budget, magnitudes_of(expected, i));
    largest = std::max(largest, std::isnan(ratio) ? kInfinity : ratio);
  }
  return largest;
}

// A problem and what the oracle says about it.
struct Known {
  Problem problem;
  std::map<std::string, Expected> expected;
};

class Looker {
 public:
  Looker(const OpSpec& op, const Pass& pass, DType dtype) : op_(op), pass_(pass), dtype_(dtype) {}

  std::vector<Sight> all() {
    for (const OptionInfo& o : pass_.options) look_at_option(o.name, "option " + o.name);
    for (const TensorInfo& t : pass_.tensors) {
      const bool input = t.role == Role::kIn || t.role == Role::kInOut;
      if (input && t.is_optional) look_at_option(t.name, fmt::format("tensor {} left out", t.name));
      if (input) look_at_input(t.name);
    }
    look_at_seeds();
    for (const TensorInfo& t : pass_.tensors)
      if (t.role != Role::kIn) look_at_impostors(t.name);
    return std::move(sights_);
  }

 private:
  std::vector<std::map<std::string, int64_t>> shapes() const {
    std::map<std::string, int64_t> tiny, middle;
    for (const AxisPlan& a : op_.axes) {
      tiny[a.axis.symbol] = a.tiny.back();
      middle[a.axis.symbol] = a.check[a.check.size() / 2];
    }
    return {tiny, middle};
  }

  // Calls f(case) for every small case of the contract with these options until the sight is right.
  template <class F>
  void over_cases(const OptionSet& options, Sight* sight, F f) const {
    for (const auto& shape : shapes())
      for (const InputSet& inputs : op_.inputs) {
        Case c;
        c.op = op_.name;
        c.pass = pass_.name;
        c.impl = pass_.implementations.front().name;
        c.dtype = dtype_;
        c.axes = shape;
        c.options = options;
        c.inputs = inputs.name;
        f(c);
        if (sight->must_show && sight->right()) return;
      }
  }

  // The same with the default options and, until the sight is right, with the others: a reduced
  // loss is one number, which only another option makes several.
  template <class F>
  void over_option_sets(Sight* sight, F f) const {
    for (const OptionSet& set : op_.option_sets)
      if (!sight->right()) over_cases(known(set), sight, f);
  }

  // The case leaves this tensor out.
  bool lacks(const Case& c, const std::string& tensor) const {
    return std::any_of(pass_.tensors.begin(), pass_.tensors.end(), [&](const TensorInfo& t) {
      return t.name == tensor && is_left_out(t, c.options);
    });
  }

  // The options of a set that this pass has.
  OptionSet known(const OptionSet& set) const {
    OptionSet part;
    for (const auto& [name, value] : set) {
      const auto is_it = [&, n = name](const auto& x) { return x.name == n; };
      if (std::any_of(pass_.options.begin(), pass_.options.end(), is_it) ||
          std::any_of(pass_.tensors.begin(), pass_.tensors.end(), is_it))
        part[name] = value;
    }
    return part;
  }

  static Known know(Problem problem) {
    auto expected = run_oracle(problem);
    return {std::move(problem), std::move(expected)};
  }

  // Notes the output that differs most between the known problem and another one.
  static void compare(const Known& a, const std::map<std::string, Expected>& other, Sight* sight) {
    for (const CaseTensor& t : a.problem.tensors) {
      const auto b = other.find(t.info->name);
      if (!t.is_output || b == other.end()) continue;
      const double d = distance(a.problem, t, a.expected.at(t.info->name), b->second.value);
      if (!(d > sight->budgets)) continue;
      sight->budgets = d;
      sight->seen = fmt::format("{} of {}", t.info->name, case_id(a.problem.c));
    }
  }

  void look_at_option(const std::string& name, const std::string& what) {
    Sight sight = start(what);
    const auto hidden = pass_.invisible.find(name);
    sight.must_show = hidden == pass_.invisible.end();
    for (const OptionSet& set : op_.option_sets) {
      const OptionSet with = known(set);
      if (!with.count(name) || (sight.must_show && sight.right())) continue;
      OptionSet without = with;
      without.erase(name);
      over_cases(with, &sight, [&](const Case& c) {
        Case plain = c;
        plain.options = without;
        compare(know(make_problem(c)), run_oracle(make_problem(plain)), &sight);
      });
    }
    if (!sight.must_show && sight.right()) sight.seen = hidden->second;
    sights_.push_back(std::move(sight));
  }

  void look_at_input(const std::string& name) {
    Sight sight = start("input " + name);
    over_option_sets(&sight, [&](const Case& c) {
      if (lacks(c, name)) return;
      const Known plain = know(make_problem(c));
      Problem changed = plain.problem;
      for (CaseTensor& t : changed.tensors)
        if (t.info->name == name) perturb(plain.problem, &t);
      compare(plain, run_oracle(changed), &sight);
    });
    sights_.push_back(std::move(sight));
  }

  // Another class or row, or another number of the type.
  static void perturb(const Problem& problem, CaseTensor* t) {
    const bool is_index = t->dtype == DType::kI64 || t->dtype == DType::kI32;
    const InputPlan plan = plan_of(input_set(*problem.op, problem.c.inputs), t->info->name);
    const double count =
        is_index ? static_cast<double>(plan.below.value().integer(problem.binding)) : 0;
    for (double& v : t->input)
      if (!is_index)
        v = 1.25 * v + 0.25;
      else if (v >= 0 && v < count)
        v = std::fmod(v + 1, count);
    const auto bytes = narrow(t->input, t->dtype);
    t->input = widen(bytes.data(), t->input.size(), t->dtype);
  }

  void look_at_seeds() {
    Sight sight = start("another seed");
    over_cases({}, &sight, [&](const Case& c) {
      Case other = c;
      ++other.seed;
      compare(know(make_problem(c)), run_oracle(make_problem(other)), &sight);
    });
    sights_.push_back(std::move(sight));
  }

  // What a kernel that computes nothing would give.
  void look_at_impostors(const std::string& output) {
    impostor(output, "zeros",
             [](const Known&, const Expected& e) { return std::vector<double>(e.value.size()); });
    impostor(output, "a constant", [](const Known&, const Expected& e) {
      return std::vector<double>(e.value.size(), e.value.empty() ? 0 : e.value.front());
    });
    for (const TensorInfo& input : pass_.tensors)
      if (input.role == Role::kIn || input.role == Role::kInOut)
        impostor(output, input.name, [&](const Known& k, const Expected& e) {
          for (const CaseTensor& t : k.problem.tensors)
            if (t.info->name == input.name && t.input.size() == e.value.size()) return t.input;
          return std::vector<double>(e.value.size(), kInfinity);
        });
  }

  template <class F>
  void impostor(const std::string& output, const std::string& of_what, F values) {
    Sight sight = start(fmt::format("output {} is not {}", output, of_what));
    over_option_sets(&sight, [&](const Case& c) {
      if (lacks(c, output)) return;
      const Known k = know(make_problem(c));
      for (const CaseTensor& t : k.problem.tensors) {
        if (t.info->name != output || !t.is_output) continue;
        const Expected& e = k.expected.at(output);
        const double d = distance(k.problem, t, e, values(k, e));
        if (!(d > sight.budgets)) continue;
        sight.budgets = d;
        sight.seen = case_id(c);
      }
    });
    sights_.push_back(std::move(sight));
  }

  Sight start(std::string what) const {
    Sight sight;
    sight.op = op_.name;
    sight.pass = pass_.name;
    sight.dtype = dtype_;
    sight.what = std::move(what);
    sight.seen = "by none of its cases";
    return sight;
  }

  const OpSpec& op_;
  const Pass& pass_;
  DType dtype_;
  std::vector<Sight> sights_;
};

}  // namespace

std::vector<Sight> visibility_of(const OpSpec& op, const Pass& pass, DType dtype) {
  return Looker(op, pass, dtype).all();
}

std::string text_of(const Sight& s) {
  const std::string who = fmt::format("{} {} {} {}", s.op, s.pass, name_of(s.dtype), s.what);
  if (!s.must_show && s.right()) return fmt::format("{}: must not show: {}", who, s.seen);
  if (!s.must_show)
    return fmt::format("{}: declared invisible, but moves by {:.3g} budgets: {}", who, s.budgets,
                       s.seen);
  return fmt::format("{}: {:.3g} budgets: {}", who, s.budgets, s.seen);
}

}  // namespace tigon
