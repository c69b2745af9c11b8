// SPDX-License-Identifier: Apache-2.0
// Greedy: each step takes the first simpler case that fails, until no step finds one.
#include "harness/run/cases/shrink.h"

#include <fmt/format.h>

#include <algorithm>

namespace tigon {

namespace {

class Shrinker {
 public:
  Shrinker(const Case& failing, const std::function<bool(const Case&)>& fails,
           const std::function<bool()>& more)
      : fails_(fails), more_(more) {
    found_.smallest = failing;
  }

  Shrunk run() {
    for (bool smaller = true; smaller && found_.finished;) {
      smaller = drop_options();
      smaller |= simplify([](Case* c) { c->gap = 0; });
      smaller |= simplify([](Case* c) { c->shift = 0; });
      smaller |= simplify_inputs();
      const auto axes = found_.smallest.axes;
      for (const auto& [axis, size] : axes) smaller |= shrink_axis(axis);
    }
    note_needs();
    return found_;
  }

 private:
  bool try_case(const Case& c) {
    if (!found_.finished || !more_()) {
      found_.finished = false;
      return false;
    }
    ++found_.tries;
    if (!fails_(c)) return false;
    found_.smallest = c;
    return true;
  }

  template <class Change>
  bool simplify(Change change) {
    Case c = found_.smallest;
    change(&c);
    return case_id(c) != case_id(found_.smallest) && try_case(c);
  }

  bool drop_options() {
    if (simplify([](Case* c) { c->options.clear(); })) return true;
    bool smaller = false;
    const OptionSet options = found_.smallest.options;
    if (options.size() < 2) return false;  // tried above
    for (const auto& option : options)
      smaller |= simplify([&](Case* c) { c->options.erase(option.first); });
    return smaller;
  }

  // The contract lists its plainest inputs first.
  bool simplify_inputs() {
    const OpSpec* op = find_op(found_.smallest.op);
    if (op == nullptr || op->inputs.empty()) return false;
    return simplify([&](Case* c) { c->inputs = op->inputs.front().name; });
  }

  bool try_size(const std::string& axis, int64_t size) {
    return simplify([&](Case* c) { c->axes[axis] = size; });
  }

  // Powers of two and their neighbours from below, because most faults depend on a remainder; then
  // between the last that passed and the first that failed.
  bool shrink_axis(const std::string& axis) {
    const int64_t size = found_.smallest.axes.at(axis);
    int64_t passes = 0;
    for (int64_t power = 1; power / 2 < size; power *= 2)
      for (int64_t candidate : {power - 1, power, power + 1}) {
        if (candidate <= passes || candidate >= size) continue;
        if (try_size(axis, candidate)) return bisect(axis, passes), true;
        passes = candidate;
      }
    return bisect(axis, passes);
  }

  bool bisect(const std::string& axis, int64_t passes) {
    bool smaller = false;
    while (found_.finished && found_.smallest.axes.at(axis) - passes > 1) {
      const int64_t middle = passes + (found_.smallest.axes.at(axis) - passes) / 2;
      if (try_size(axis, middle))
        smaller = true;
      else
        passes = middle;
    }
    return smaller;
  }

  void note_needs() {
    const Case& c = found_.smallest;
    for (const auto& [name, value] : c.options)
      found_.needs.push_back(fmt::format("{}={}", name, value));
    if (c.gap != 0) found_.needs.push_back(fmt::format("gap={}", c.gap));
    if (c.shift != 0) found_.needs.push_back(fmt::format("shift={}", c.shift));
    if (c.skew != 0) found_.needs.push_back(fmt::format("skew={}", c.skew));
    if (c.launch != 0) found_.needs.push_back(fmt::format("launch={}", c.launch));
    const OpSpec* op = find_op(c.op);
    if (op != nullptr && !op->inputs.empty() && c.inputs != op->inputs.front().name)
      found_.needs.push_back("inputs=" + c.inputs);
  }

  const std::function<bool(const Case&)>& fails_;
  const std::function<bool()>& more_;
  Shrunk found_;
};

}  // namespace

Shrunk shrink(const Case& failing, const std::function<bool(const Case&)>& fails,
              const std::function<bool()>& more) {
  return Shrinker(failing, fails, more).run();
}

}  // namespace tigon
