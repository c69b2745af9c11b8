// Least bytes and floating-point operations of a case, from its contract.
#include "harness/run/check.h"

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

double flops_of(const Case& c) {
  const Known known = look_up(c);
  return known.pass->flops(known.binding);
}

}  // namespace tigon
