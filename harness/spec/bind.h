// SPDX-License-Identifier: Apache-2.0
// From a signature struct to data and back: TensorInfo and OptionInfo from its fields(), typed
// arguments from a Bound, and the helpers with which a contract names its implementations.
#pragma once
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "harness/spec/bound_call.h"
#include "harness/spec/op_spec.h"
#include "kernels/call/erase.h"

namespace tigon {

// A list of dtype policies, e.g. types<F32, BF16, F16>.
template <class... Ps>
struct PolicyList {};
template <class... Ps>
inline constexpr PolicyList<Ps...> types{};

// A policy is named by its element type.
template <class P>
inline constexpr DType policy_dtype = dtype_of<typename P::Elem>;

template <class... Ps>
std::vector<DType> dtypes_of(PolicyList<Ps...>) {
  return {policy_dtype<Ps>...};
}

// The arguments of a call: views of the bound tensors, options from the bound values, scratch.
template <class Args>
Args args_of(const Bound& bound) {
  Args args;
  if (!call::fill_args(BoundCall(call::pass_info<Args>(), bound).get(), &args))
    throw std::logic_error("tensors or values do not fit their signature");
  return args;
}

namespace bind_detail {

template <class Args>
void add_dtypes(DType policy, std::vector<TensorInfo>* tensors) {
  size_t i = 0;
  for_each_field<Args>([&](const auto& field) {
    using View = std::remove_reference_t<decltype(std::declval<Args&>().*(field.member))>;
    (*tensors)[i++].dtype[policy] = dtype_of<typename View::Elem>;
  });
}

}  // namespace bind_detail

// What the signature says about its tensors, with the storage type under each policy.
template <template <class> class Args>
std::vector<TensorInfo> tensors_of() {
  std::vector<TensorInfo> tensors;
  for_each_field<Args<F64>>([&](const auto& field) {
    tensors.push_back({field.name,
                       field.role,
                       {field.shape.begin(), field.shape.end()},
                       field.is_optional,
                       field.is_on_request,
                       {},
                       field.is_strided,
                       {field.may_alias.begin(), field.may_alias.end()},
                       field.gradient_of != nullptr ? field.gradient_of : ""});
  });
  bind_detail::add_dtypes<Args<F64>>(DType::kF64, &tensors);
  bind_detail::add_dtypes<Args<F32>>(DType::kF32, &tensors);
  bind_detail::add_dtypes<Args<BF16>>(DType::kBF16, &tensors);
  bind_detail::add_dtypes<Args<F16>>(DType::kF16, &tensors);
  return tensors;
}

template <template <class> class Args>
std::vector<OptionInfo> options_of() {
  std::vector<OptionInfo> options;
  const Args<F64> defaults;
  for_each_option<Args<F64>>([&](const auto& option) {
    using Value = std::remove_cvref_t<decltype(defaults.*(option.member))>;
    options.push_back({option.name,
                       {option.choices.begin(), option.choices.end()},
                       static_cast<double>(defaults.*(option.member)),
                       std::is_integral_v<Value>});
  });
  return options;
}

// An oracle from a callable f(const Args<F64>&), or f(const Args<F64>&, DType) where the formula
// rounds to the element type of the call.
template <template <class> class Args, class F>
Oracle oracle(F f) {
  return [f](const Bound& bound) {
    const auto args = args_of<Args<F64>>(bound);
    if constexpr (std::is_invocable_v<F, decltype(args)&, DType>)
      f(args, static_cast<DType>(static_cast<int>(bound.values.at("dtype"))));
    else
      f(args);
  };
}

namespace bind_detail {

// Calls f(args) with the arguments of the policy that `policy` names; `otherwise` if none does.
template <template <class> class Args, class R, class F, class... Ps>
R with_policy(PolicyList<Ps...>, DType policy, const Bound& bound, R otherwise, const F& f) {
  R result = otherwise;
  const auto call = [&]<class P>() {
    const auto args = args_of<Args<P>>(bound);
    result = f(args);
    return true;
  };
  (void)((policy == policy_dtype<Ps> && call.template operator()<Ps>()) || ...);
  return result;
}

struct Absent {};

}  // namespace bind_detail

// An implementation of a test from callables over typed arguments: run(args, stream) -> Status, or
// run(args, scratch, stream) where the signature has no scratch; workspace(args) -> bytes of
// scratch, prepare(args) -> Status.
template <template <class> class Args, class... Ps, class Run,
          class Workspace = bind_detail::Absent, class Prepare = bind_detail::Absent>
Implementation impl(std::string name, PolicyList<Ps...> policies, Run run, Workspace workspace = {},
                    Prepare prepare = {}) {
  using bind_detail::with_policy;
  Implementation r;
  r.name = std::move(name);
  r.policies = dtypes_of(policies);
  r.run = [policies, run](DType policy, const Bound& bound, Stream stream) {
    return with_policy<Args>(
        policies, policy, bound, unsupported("not built for this dtype"), [&](const auto& args) {
          if constexpr (std::is_invocable_v<Run, decltype(args), const Scratch&, Stream>)
            return run(args, bound.scratch, stream);
          else
            return run(args, stream);
        });
  };
  if constexpr (!std::is_same_v<Workspace, bind_detail::Absent>) {
    r.workspace = [policies, workspace](DType policy, const Bound& bound) {
      return with_policy<Args>(policies, policy, bound, size_t{0}, workspace);
    };
  }
  if constexpr (!std::is_same_v<Prepare, bind_detail::Absent>) {
    r.prepare = [policies, prepare](DType policy, const Bound& bound) {
      return with_policy<Args>(policies, policy, bound, Status{}, prepare);
    };
  }
  return r;
}

// A chain of primitives, judged with an allowance for the intermediates that it stores.
inline Implementation rounding(Expr element_roundings, Implementation i, Expr elementary = 0) {
  i.element_roundings = std::move(element_roundings);
  i.elementary = std::move(elementary);
  return i;
}

// A library that was measured to be outside of the budget on some inputs.
inline Implementation known_to_miss(std::vector<KnownMiss> misses, Implementation i) {
  i.known_misses = std::move(misses);
  return i;
}

// A pass over the signature Args; the rest as designated initialisers.
template <template <class> class Args>
Pass pass(std::string name, Pass rest) {
  static_assert(Signature<Args<F32>>, "Args<P> needs a static fields() that lists its members");
  rest.name = std::move(name);
  rest.tensors = tensors_of<Args>();
  rest.options = options_of<Args>();
  return rest;
}

}  // namespace tigon
