// SPDX-License-Identifier: Apache-2.0
// Secret seeds and shapes.
#include "harness/plugin/secret_cases.h"

#include <sys/random.h>

#include <algorithm>
#include <numeric>
#include <random>
#include <set>
#include <stdexcept>

#include "harness/run/inputs/inputs.h"

namespace tigon::plugin {

namespace {

constexpr int kShapesPerKernel = 3;
constexpr int64_t kLongestAxis = 4096;  // so that the oracle is quick

// A value of the axis that its contract does not list.
int64_t unlisted(const AxisPlan& plan, std::mt19937_64* random) {
  std::set<int64_t> listed(plan.tiny.begin(), plan.tiny.end());
  listed.insert(plan.check.begin(), plan.check.end());
  listed.erase(0);
  int64_t step = 0;
  for (int64_t v : listed) step = std::gcd(step, v);
  const int64_t most = std::min(*listed.rbegin(), kLongestAxis) / step;
  int64_t value = *listed.begin();
  for (int attempt = 0; attempt < 64 && listed.count(value) != 0; ++attempt)
    value = step * (1 + static_cast<int64_t>((*random)() % static_cast<uint64_t>(most)));
  return value;
}

std::string group_of(const Case& c) {
  return c.op + "/" + c.pass + "/" + c.impl + "/" + name_of(c.dtype);
}

}  // namespace

uint64_t draw_secret() {
  uint64_t bits = 0;
  if (getrandom(&bits, sizeof bits, 0) != static_cast<ssize_t>(sizeof bits))
    throw std::runtime_error("the system gives no random bits");
  return bits;
}

void give_secret_seeds(uint64_t secret, std::vector<Case>* cases) {
  for (Case& c : *cases) c.seed = random_bits(secret, stable_hash(case_id(c))) >> 12;
}

void add_unlisted_shapes(uint64_t secret, std::vector<Case>* cases) {
  std::set<std::string> seen;
  std::vector<Case> all;
  for (size_t i = 0; i < cases->size(); ++i) {
    const Case& c = (*cases)[i];
    if (seen.insert(group_of(c)).second) {
      std::mt19937_64 random(random_bits(secret, stable_hash(group_of(c))));
      for (int k = 0; k < kShapesPerKernel; ++k) {
        Case other = c;
        // The rows and the width; heads and the like have to fit each other.
        const auto& axes = find_op(c.op)->axes;
        for (const AxisPlan* plan : {&axes.front(), &axes.back()})
          other.axes[plan->axis.symbol] = unlisted(*plan, &random);
        all.push_back(std::move(other));
      }
    }
    all.push_back(c);
  }
  *cases = std::move(all);
}

}  // namespace tigon::plugin
