// SPDX-License-Identifier: Apache-2.0
// The ops of a model as a table: what a comparison switches.
#pragma once
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/call/erase.h"
#include "kernels/call/typed.h"
#include "kernels/geglu/geglu.h"
#include "kernels/layer_norm/layer_norm.h"
#include "kernels/linear_cross_entropy/linear_cross_entropy.h"
#include "kernels/rms_norm/rms_norm.h"
#include "kernels/rope/rope.h"
#include "kernels/swiglu/swiglu.h"

namespace tigon::convergence {

// One op of tigon.h for each signature, of one dtype.
template <class P>
class Ops {
 public:
  // An op, e.g. "rms_norm", is a kernel where is_fused(op) says so, else unfused.
  explicit Ops(const std::function<bool(std::string_view)>& is_fused);

  template <Signature Args>
  Status run(const Args& args, Stream stream) const {
    return tigon::run(op<Args>(), args, stream);
  }
  template <Signature Args>
  size_t workspace(const Args& args) const {
    return workspace_bytes(op<Args>(), args);
  }
  // Chooses among algorithms; see tigon_prepare().
  template <Signature Args>
  Status prepare(const Args& args) const {
    return tigon::prepare(op<Args>(), args);
  }

  // Puts a function in the place of an op, whose scratch it gets.
  template <Signature Args>
  void replace(Status (*function)(const Args&, Stream)) {
    const auto made = std::make_shared<Replacement<Args>>();
    made->state.launchers = {function, op<Args>()};
    made->op = call::make_op<Args>("replaced", &made->state);
    ops_[Args::kName] = {made, &made->op};
  }

 private:
  template <class Args>
  struct Launchers {
    Status (*function)(const Args&, Stream) = nullptr;
    const tigon_op* replaced = nullptr;
    Status run(const Args& args, const Scratch&, Stream stream) const {
      return function(args, stream);
    }
    size_t workspace_bytes(const Args& args) const {
      return tigon::workspace_bytes(replaced, args);
    }
  };
  template <class Args>
  struct Replacement {
    call::LauncherState<Launchers<Args>> state{{call::pass_info<Args>(), ""}, {}};
    tigon_op op = {};
  };

  template <Signature Args>
  const tigon_op* op() const {
    return ops_.at(Args::kName).get();
  }

  std::map<std::string_view, std::shared_ptr<const tigon_op>> ops_;  // by name
};

// The kernels; head and cross entropy (both ops) in one pass over chunks of rows.
template <class P>
Ops<P> fused_ops();

// One library call per primitive step; all logits at once, as an eager framework holds them.
template <class P>
Ops<P> naive_ops();

// Those of `fused` as kernels, the others unfused. ConvergeError 2 for a name that is not one of
// op_names().
template <class P>
Ops<P> mixed_ops(const std::vector<std::string>& fused);

// "rms_norm" of "rms_norm.forward".
constexpr std::string_view op_of_pass(std::string_view name) {
  return name.substr(0, name.find('.'));
}

// op_name<rms_norm::Forward>() is "rms_norm".
template <template <class> class Args>
std::string op_name() {
  return std::string(op_of_pass(Args<F32>::kName));
}

// What models call.
std::vector<std::string> op_names();

}  // namespace tigon::convergence
