// SPDX-License-Identifier: Apache-2.0
// Least bytes, floating-point operations and matrix products of a case, from its contract.
#include "harness/run/check.h"

#include <algorithm>

namespace tigon {

namespace {

struct Known {
  const OpSpec* op;
  const Pass* pass;
  Binding binding;
};

Known look_up(const Case& c) {
  const OpSpec* op = find_op(c.op);
  const Pass* pass = op ? find_pass(*op, c.pass) : nullptr;
  if (!pass) throw UsageError("no op and pass '" + c.op + " " + c.pass + "'");
  return {op, pass, binding_of(c, *op, *pass)};
}

bool wants_any(const std::vector<std::string>& outputs, const Known& known, const Case& c) {
  return outputs.empty() ||
         std::any_of(known.pass->tensors.begin(), known.pass->tensors.end(), [&](const auto& t) {
           return std::count(outputs.begin(), outputs.end(), t.name) > 0 &&
                  !is_left_out(t, c.options);
         });
}

}  // namespace

double minimum_bytes(const Case& c) {
  const Known known = look_up(c);
  if (known.pass->bytes) return (*known.pass->bytes)(known.binding);
  double bytes = 0;
  for (const TensorInfo& t : known.pass->tensors) {
    if (is_left_out(t, c.options)) continue;
    auto size = static_cast<double>(size_of(t.dtype.at(c.dtype)));
    for (const Expr& e : t.shape) size *= e(known.binding);
    bytes += t.role == Role::kInOut ? 2 * size : size;
  }
  return bytes;
}

double stored_bytes(const Case& c) {
  const Known known = look_up(c);
  double bytes = 0;
  for (const TensorInfo& tensor : known.pass->tensors) {
    const auto dtype = tensor.dtype.find(c.dtype);
    double size = dtype == tensor.dtype.end() ? 0 : static_cast<double>(size_of(dtype->second));
    for (const Expr& length : tensor.shape) size *= length(known.binding);
    bytes += size;
  }
  return bytes;
}

double flops_of(const Case& c) {
  const Known known = look_up(c);
  return known.pass->flops(known.binding);
}

double least_flops_of(const Case& c) {
  const Known known = look_up(c);
  return known.pass->least_flops.value_or(known.pass->flops)(known.binding);
}

std::vector<ProductSize> products_of(const Case& c) {
  const Known known = look_up(c);
  const auto size = [&](const Expr& e) { return static_cast<int64_t>(e(known.binding)); };
  std::vector<ProductSize> sizes;
  for (const Product& p : known.pass->products)
    if (wants_any(p.outputs, known, c))
      sizes.push_back({size(p.m), size(p.n), size(p.k), p.transpose_a, p.transpose_b});
  return sizes;
}

}  // namespace tigon
