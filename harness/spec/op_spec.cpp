// Look-up of contracts.
#include "harness/spec/op_spec.h"

namespace tigon {

const OpSpec* find_op(const std::string& name) {
  for (const OpSpec& op : all_ops())
    if (op.name == name) return &op;
  return nullptr;
}

}  // namespace tigon
