// SPDX-License-Identifier: Apache-2.0
// Case ids and what a case's axes and options stand for.
#include "harness/run/cases/case.h"

#include <fmt/format.h>

#include <algorithm>

#include "harness/run/cases/option_value.h"

namespace tigon {

const Pass* find_pass(const OpSpec& op, std::string_view name) {
  for (const Pass& p : op.passes)
    if (p.name == name) return &p;
  return nullptr;
}

const Implementation* find_implementation(const Pass& pass, std::string_view name) {
  for (const Implementation& i : pass.implementations)
    if (i.name == name) return &i;
  return nullptr;
}

std::string case_id(const Case& c) {
  std::string id = fmt::format("{}/{}/{}/{}/", c.op, c.pass, c.impl, name_of(c.dtype));
  const auto add = [&](std::string_view key, const auto& value) {
    fmt::format_to(std::back_inserter(id), "{}{}={}", id.back() == '/' ? "" : ",", key, value);
  };
  std::map<std::string, int64_t> unordered = c.axes;
  if (const OpSpec* op = find_op(c.op)) {
    for (const AxisPlan& a : op->axes)
      if (const auto found = unordered.find(a.axis.symbol); found != unordered.end()) {
        add(found->first, found->second);
        unordered.erase(found);
      }
  }
  for (const auto& [name, value] : unordered) add(name, value);
  for (const auto& [name, value] : c.options) add(name, value);
  add("inputs", c.inputs);
  add("seed", c.seed);
  if (c.shift != 0) add("shift", c.shift);
  if (c.skew != 0) add("skew", c.skew);
  if (c.gap != 0) add("gap", c.gap);
  if (c.launch != 0) add("launch", c.launch);
  if (!c.property.empty()) add("prop", c.property);
  return id;
}

uint64_t stable_hash(std::string_view text) {
  uint64_t h = 0xcbf29ce484222325u;  // FNV-1a
  for (unsigned char byte : text) h = (h ^ byte) * 0x100000001b3u;
  h ^= h >> 33;  // the finaliser of MurmurHash3, so that the low bits choose a shard evenly
  h *= 0xff51afd7ed558ccdu;
  h ^= h >> 33;
  h *= 0xc4ceb9fe1a85ec53u;
  return h ^ (h >> 33);
}

std::string case_key(const Case& c) { return fmt::format("{:016x}", stable_hash(case_id(c))); }

Binding binding_of(const Case& c, const OpSpec& op, const Pass& pass) {
  Binding b;
  b["elem"] = static_cast<double>(size_of(c.dtype));
  b["dtype"] = static_cast<double>(c.dtype);
  // Options of the op's other passes too: an expression of forward's budget may read them when
  // backward runs it for its saved inputs.
  for (const Pass& other : op.passes)
    for (const OptionInfo& o : other.options) b[o.name] = o.default_value;
  for (const TensorInfo& t : pass.tensors)
    if (t.is_on_request) b[t.name] = is_left_out(t, c.options) ? 0 : 1;
  for (const auto& [name, value] : c.axes) b[name] = static_cast<double>(value);
  for (const auto& [name, value] : c.options)
    if (const OptionInfo* o = find_option(pass, name)) b[name] = option_value(*o, value);
  return b;
}

TensorRef contiguous(const TensorInfo& tensor, DType policy, const Binding& values) {
  TensorRef ref;
  ref.dtype = tensor.dtype.at(policy);
  for (const Expr& size : tensor.shape) ref.shape.push_back(size.integer(values));
  ref.stride.assign(ref.shape.size(), 1);
  for (size_t i = ref.shape.size(); i-- > 1;) ref.stride[i - 1] = ref.stride[i] * ref.shape[i];
  return ref;
}

int shift_of(const Case& c, const Pass& pass, const TensorInfo& tensor) {
  const auto found = std::find_if(pass.tensors.begin(), pass.tensors.end(),
                                  [&](const TensorInfo& t) { return t.name == tensor.name; });
  return c.shift + c.skew * static_cast<int>(found - pass.tensors.begin());
}

bool options_fit(const OpSpec& op, const Pass& pass, const Case& c) {
  const Binding binding = binding_of(c, op, pass);
  return std::all_of(pass.tensors.begin(), pass.tensors.end(), [&](const TensorInfo& t) {
    return std::all_of(t.shape.begin(), t.shape.end(),
                       [&](const Expr& size) { return size.integer(binding) >= 0; });
  });
}

}  // namespace tigon
