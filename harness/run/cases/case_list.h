// SPDX-License-Identifier: Apache-2.0
// The cases of one pass, implementation and dtype while they are planned.
#pragma once
#include <set>
#include <string>
#include <vector>

#include "harness/run/cases/chosen.h"

namespace tigon {

class CaseList {
 public:
  CaseList(const ChosenPass& chosen, const CheckRequest& given, const Implementation& impl,
           DType dtype)
      : op(*chosen.op),
        pass(*chosen.pass),
        request(given),
        implementation(impl),
        base(plain_case(chosen, impl.name, dtype, given)) {}

  // No case twice, and none whose options do not fit its sizes. The rest of it is as in `base`.
  void push(const Shape& shape, const OptionSet& options, const std::string& inputs);
  void push(const Shape& shape) { push(shape, {}, base.inputs); }
  // With each of its option sets, if it holds for the dtype.
  void push(const Property& property, const std::vector<Shape>& small);

  // Every axis of columns but the first rounded up to a multiple of 16: rows that can be read in
  // vectors. A size that the request gives stays.
  Shape in_vectors(Shape shape) const;

  // Whether rows may lie any number of elements apart, because what lies between them takes no
  // memory.
  bool gaps_are_free() const;

  std::vector<Case> take() { return std::move(cases_); }

  const OpSpec& op;
  const Pass& pass;
  const CheckRequest& request;
  const Implementation& implementation;
  Case base;

 private:
  std::vector<Case> cases_;
  std::set<std::string> seen_;
};

// Until it goes out of scope, cases may be made of another base.
class OtherBase {
 public:
  explicit OtherBase(CaseList* list) : list_(list), plain_(list->base) {}
  ~OtherBase() { list_->base = plain_; }
  OtherBase(const OtherBase&) = delete;
  OtherBase& operator=(const OtherBase&) = delete;

 private:
  CaseList* list_;
  Case plain_;
};

}  // namespace tigon
