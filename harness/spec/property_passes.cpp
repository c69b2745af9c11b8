// SPDX-License-Identifier: Apache-2.0
// Properties between passes, and of gradients.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "harness/spec/experiment.h"
#include "harness/spec/properties.h"

namespace tigon {

namespace {

// The call of another pass with the base's inputs under its names.
Call call_of_pass(const Experiment& e, const std::string& pass,
                  const std::map<std::string, std::string>& names) {
  Call call = e.base();
  call.pass = pass;
  for (const auto& [own, other] : names) {
    auto tensor = call.inputs.extract(own);
    tensor.key() = other;
    call.inputs.insert(std::move(tensor));
  }
  return call;
}

double unit_of(DType t) { return std::max(unit_roundoff(t), 0x1p-24); }

// The pairs of the rows of tensors in the base case.
class Pairs {
 public:
  Pairs(const Experiment& e, const Partner& partner) : partner_(partner) {
    for (const OptionInfo& o : e.pass().options) options_[o.name] = e.option(e.base(), o.name);
  }

  // Of each element, the norm of the pair that it belongs to.
  HostTensor norms(const HostTensor& t) const {
    HostTensor norms = t;
    for (size_t i = 0; i < t.values.size(); ++i)
      if (const size_t other = partner_of(t, i); other != i)
        norms.values[i] = std::hypot(t.values[i], t.values[other]);
    return norms;
  }
  // 8 u of it, and nothing where an element is alone.
  std::vector<double> allowed(const HostTensor& t) const {
    std::vector<double> allowed = norms(t).values;
    for (size_t i = 0; i < allowed.size(); ++i)
      allowed[i] = partner_of(t, i) == i
                       ? 0
                       : 8 * unit_of(t.dtype) * allowed[i] + smallest_subnormal(t.dtype);
    return allowed;
  }

 private:
  size_t partner_of(const HostTensor& t, size_t i) const {
    const int64_t columns = t.shape.back(), column = static_cast<int64_t>(i) % columns;
    return i + static_cast<size_t>(partner_(options_, columns, column) - column);
  }

  const Partner& partner_;
  Binding options_;
};

}  // namespace

Property same_as_pass(std::string name, std::string pass, std::map<std::string, std::string> names,
                      std::vector<std::string> negated) {
  const auto check = [=](Experiment& e) {
    Call call = call_of_pass(e, pass, names);
    for (const std::string& input : negated)
      for (double& v : call.inputs.at(input).values) v = -v;
    const HostTensors outputs = e.run(call);
    for (const auto& [own, other] : names)
      expect_same(own, e.base_outputs().at(own), outputs.at(other), "in this pass", "in " + pass);
  };
  std::string statement = fmt::format("equals {}", pass);
  for (const std::string& input : negated) statement += fmt::format(" with {} negated", input);
  return {std::move(name), statement, check};
}

Property inverts_pass(std::string name, std::string pass, std::map<std::string, std::string> names,
                      Partner partner) {
  const auto check = [=](Experiment& e) {
    const Pairs pairs(e, partner);
    const HostTensors there = e.run(call_of_pass(e, pass, names));
    Call back = e.base();
    for (const auto& [own, other] : names) back.inputs.at(own) = there.at(other);
    const HostTensors outputs = e.run(back);
    for (const auto& [own, other] : names) {
      const HostTensor& start = e.base().inputs.at(own);
      expect_close(own, outputs.at(own), start, pairs.allowed(start), "there and back",
                   "at the start");
    }
  };
  return {std::move(name), fmt::format("undoes {}", pass), check};
}

Property pair_norm(std::vector<std::string> tensors, Partner partner) {
  const auto check = [=](Experiment& e) {
    const Pairs pairs(e, partner);
    for (const std::string& name : tensors) {
      const HostTensor& before = e.base().inputs.at(name);
      expect_close("norm of the pair of " + name, pairs.norms(e.base_outputs().at(name)),
                   pairs.norms(before), pairs.allowed(before), "after", "before");
    }
  };
  return {"pair_norm", "keeps the norm of every pair of columns", check};
}

namespace {

// Row t holds the angle of row t + 1, the last that of row 0.
HostTensor next_rows(const HostTensor& t) {
  HostTensor next = t;
  const auto length = static_cast<int64_t>(t.values.size()) / std::max<int64_t>(t.shape[0], 1);
  if (t.shape[0] > 0)
    std::rotate(next.values.begin(), next.values.begin() + length, next.values.end());
  return next;
}

double in_type(DType t, double v) { return t == DType::kF64 ? v : static_cast<float>(v); }

// The product of two heads, which begin at these elements.
double product_of(const HostTensor& a, size_t a_begin, const HostTensor& b, size_t b_begin) {
  double sum = 0;
  for (size_t i = 0; i < static_cast<size_t>(a.shape.back()); ++i)
    sum += a.values[a_begin + i] * b.values[b_begin + i];
  return sum;
}

// Every row holds what the first one does.
void repeat_first_row(HostTensor* t) {
  const size_t length = t->values.size() / static_cast<size_t>(std::max<int64_t>(t->shape[0], 1));
  for (size_t i = length; i < t->values.size(); ++i) t->values[i] = t->values[i - length];
}

}  // namespace

Property composition(std::vector<std::string> tensors, Angles angles, Partner partner) {
  const auto check = [=](Experiment& e) {
    const Pairs pairs(e, partner);
    Call second = e.base(), direct = e.base();
    HostTensor &cosine = second.inputs.at(angles.cosine), &sine = second.inputs.at(angles.sine);
    cosine = next_rows(cosine);
    sine = next_rows(sine);
    HostTensor &c = direct.inputs.at(angles.cosine), &s = direct.inputs.at(angles.sine);
    for (size_t i = 0; i < c.values.size(); ++i) {
      const double c1 = c.values[i], s1 = s.values[i], c2 = cosine.values[i], s2 = sine.values[i];
      c.values[i] = in_type(c.dtype, c1 * c2 - s1 * s2);
      s.values[i] = in_type(s.dtype, s1 * c2 + c1 * s2);
    }
    for (const std::string& name : tensors) second.inputs.at(name) = e.base_outputs().at(name);
    const HostTensors twice = e.run(second), once = e.run(direct);
    for (const std::string& name : tensors)
      expect_close(name, twice.at(name), once.at(name), pairs.allowed(e.base().inputs.at(name)),
                   "turned by two angles", "turned by their sum");
  };
  return {"composition", "turning by two angles is turning by their sum", check};
}

Property relative_position(std::string one, std::string other) {
  const auto check = [=](Experiment& e) {
    Call call = e.base();
    for (const std::string& name : {one, other}) repeat_first_row(&call.inputs.at(name));
    const HostTensors turned = e.run(call);
    const HostTensor &a = turned.at(one), &b = turned.at(other), &b0 = call.inputs.at(other),
                     &a0 = call.inputs.at(one);
    const auto size = static_cast<size_t>(a.shape.back());
    const auto rows = static_cast<size_t>(a.shape[0]);
    if (rows < 2) throw NotApplicable("one row has one position");
    const size_t a_row = a.values.size() / rows, b_row = b.values.size() / rows;
    for (size_t head = 0; head < a_row; head += size) {
      const size_t beside = head % b_row;
      const double allowed =
          8 * unit_of(a.dtype) *
          std::sqrt(product_of(a0, head, a0, head) * product_of(b0, beside, b0, beside));
      for (size_t m = 1; m < rows; ++m)
        for (size_t n = 1; n < rows; ++n) {
          // The first rows at this distance.
          const size_t back = std::min(m, n), m0 = m - back, n0 = n - back;
          const double product = product_of(a, m * a_row + head, b, n * b_row + beside);
          const double first = product_of(a, m0 * a_row + head, b, n0 * b_row + beside);
          if (!(std::abs(product - first) <= allowed))
            throw Violation(fmt::format(
                "row {} of {} times row {} of {} is {:.9g}, rows {} and {} at the same distance "
                "{:.9g}, not the same to {:.3g}",
                m, one, n, other, product, m0, n0, first, allowed));
        }
    }
  };
  return {"relative_position",
          fmt::format("the product of rows m of {} and n of {} depends on m - n", one, other),
          check};
}

namespace {

// Throws when row r of the gradient is not orthogonal to v (ones without values).
void expect_orthogonal(const std::string& name, const HostTensor& gradient, size_t row,
                       const std::vector<double>* v, const std::string& to) {
  const auto n = static_cast<size_t>(gradient.shape.back());
  double product = 0, squares = 0, absolute = 0;
  for (size_t j = row * n; j < (row + 1) * n; ++j) {
    const double term = gradient.values[j] * (v ? (*v)[j] : 1);
    product += term;
    squares += term * term;
    absolute += std::abs(term);
  }
  const double root = std::sqrt(static_cast<double>(n));
  const double allowed = root * unit_of(gradient.dtype) * std::sqrt(squares) +
                         (root + 24) * 0x1p-24 * absolute +
                         smallest_subnormal(gradient.dtype) * root;
  if (!(std::abs(product) <= allowed))
    throw Violation(fmt::format("row {} of {} times {} is {:.9g}, not 0 to {:.9g}", row, name, to,
                                product, allowed));
}

// Every output over the first input that it may alias, then each over each of its other ones.
std::vector<std::map<std::string, std::string>> aliases(const Pass& pass) {
  std::vector<std::map<std::string, std::string>> all(1);
  for (const TensorInfo& output : pass.tensors)
    for (size_t i = 0; i < output.may_alias.size(); ++i)
      if (i == 0)
        all[0][output.name] = output.may_alias[i];
      else
        all.push_back({{output.name, output.may_alias[i]}});
  return all;
}

std::string in_memory_of(const std::map<std::string, std::string>& memory_of) {
  std::string text = "in the input's memory:";
  for (const auto& [output, input] : memory_of) text += fmt::format(" {} in {}'s", output, input);
  return text;
}

}  // namespace

Property orthogonality(std::string gradient, std::vector<std::string> to,
                       OptionSet forward_options) {
  const auto check = [=](Experiment& e) {
    const Call call = forward_options.empty() ? e.base() : e.with_saved(e.base(), forward_options);
    const HostTensors outputs = e.run(call);
    const HostTensor& g = outputs.at(gradient);
    const size_t rows = g.values.size() / static_cast<size_t>(g.shape.back());
    for (const std::string& name : to)
      for (size_t row = 0; row < rows; ++row)
        expect_orthogonal(gradient, g, row, name == "1" ? nullptr : &call.inputs.at(name).values,
                          name == "1" ? "ones" : name);
  };
  std::string statement = fmt::format("rows of {} are orthogonal to", gradient);
  for (const std::string& name : to) statement += " " + (name == "1" ? "ones" : name);
  return {"orthogonality", statement, check};
}

Property in_place() {
  return {"in_place",
          "the same bits in the memory of the inputs that an output may alias, and within budgets "
          "where outputs are off their alignment otherwise",
          [](Experiment& e) {
            for (const auto& memory_of : aliases(e.pass())) {
              Call call = e.base();
              call.memory_of = memory_of;
              const HostTensors own = e.base_outputs(), outputs = e.run(call);
              if (call.skew == 0)
                expect_all_same(outputs, own, in_memory_of(memory_of), "in its own");
              else  // an output that is off as an input is may take another path
                e.judge(call, outputs);
            }
          }};
}

}  // namespace tigon
