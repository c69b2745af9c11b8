// SPDX-License-Identifier: Apache-2.0
// One case as a peer gets it.
#include "harness/peers/peer_call.h"

#include <algorithm>
#include <cstring>
#include <set>
#include <stdexcept>

#include "harness/run/memory/convert.h"

namespace tigon::peers {
namespace {

constexpr size_t kAlignment = 256;

bool is_returned(const TensorInfo& t) { return t.is_output() && t.role != Role::kSaved; }

size_t rounded_up(size_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

// The pass whose function is differentiated, or null.
const Pass* pass_before(const OpSpec& op, const Pass& pass) {
  if (pass.inputs_from.empty() && pass.name != "backward") return nullptr;
  return find_pass(op, pass.inputs_from.empty() ? "forward" : pass.inputs_from);
}

// The case of another pass, with the options that it knows.
Case case_of(Case c, const Pass& pass) {
  c.pass = pass.name;
  std::erase_if(c.options, [&](const auto& option) {
    const auto same = [&](const auto& x) { return x.name == option.first; };
    return std::none_of(pass.tensors.begin(), pass.tensors.end(), same) &&
           std::none_of(pass.options.begin(), pass.options.end(), same);
  });
  return c;
}

// How a peer differentiates the op: what forward returns, in its order, the gradient that is given
// for each of that, and the gradient of each input.
Json autograd_of(const OpSpec& op) {
  Json autograd = {{"outputs", Json::array()}, {"upstream", Json::object()}};
  Json& gradients = autograd["of"] = Json::object();
  std::set<std::string> read, returned;
  for (const TensorInfo& t : find_pass(op, "forward")->tensors) {
    if (t.is_input()) read.insert(t.name);
    if (!is_returned(t) || t.is_on_request) continue;
    returned.insert(t.name);
    autograd["outputs"].push_back(t.name);
  }
  for (const Pass& pass : op.passes)
    for (const TensorInfo& t : pass.tensors) {
      if (t.is_on_request) continue;
      if (t.is_input() && returned.count(t.gradient_of))
        autograd["upstream"][t.gradient_of] = t.name;
      if (is_returned(t) && read.count(t.gradient_of)) gradients[t.gradient_of] = t.name;
    }
  return autograd;
}

const CaseTensor& tensor_of(const Problem& problem, const std::string& name) {
  for (const CaseTensor& t : problem.tensors)
    if (t.info->name == name) return t;
  throw std::logic_error("no tensor " + name);
}

}  // namespace

PeerCall::PeerCall(const Case& c, size_t begin)
    : case_(c),
      op_(find_op(c.op)),
      pass_(find_pass(*op_, c.pass)),
      before_(pass_before(*op_, *pass_)),
      end_(begin) {
  add(case_, *pass_);
  if (before_ == nullptr) return;
  before_case_ = case_of(case_, *before_);
  add(before_case_, *before_);
}

// A pass' tensors and options that are not there yet; of the pass before only inputs.
void PeerCall::add(const Case& c, const Pass& pass) {
  const Binding values = binding_of(c, *op_, pass);
  for (const TensorInfo& info : pass.tensors) {
    if (has(info.name) || (&pass == before_ && !info.is_input())) continue;
    Tensor& t = tensors_.emplace_back();
    t.info = &info;
    t.pass = &pass;
    t.is_given = !is_left_out(info, c.options);
    if (!t.is_given) continue;
    TensorRef ref = contiguous(info, c.dtype, values);
    t.bytes = size_of(ref.dtype);
    for (const int64_t size : ref.shape) t.bytes *= static_cast<size_t>(size);
    t.place = {end_, static_cast<int32_t>(ref.dtype), std::move(ref.shape), std::move(ref.stride)};
    end_ += rounded_up(t.bytes);
  }
  add_options(c, pass);
}

void PeerCall::add_options(const Case& c, const Pass& pass) {
  const Binding values = binding_of(c, *op_, pass);
  for (const OptionInfo& option : pass.options) {
    const auto known = [&](const Json& other) { return other["name"] == option.name; };
    if (std::any_of(options_.begin(), options_.end(), known)) continue;
    Json otherwise = option.default_value;
    if (!option.choices.empty())
      otherwise = option.choices[static_cast<size_t>(option.default_value)];
    if (const double value = values.at(option.name); value != option.default_value)
      changed_.push_back({static_cast<int32_t>(options_.size()), 0, value});
    options_.push_back({{"name", option.name},
                        {"default", std::move(otherwise)},
                        {"choices", option.choices},
                        {"is_invisible", pass.invisible.count(option.name) != 0}});
  }
}

bool PeerCall::has(const std::string& name) const {
  return std::any_of(tensors_.begin(), tensors_.end(),
                     [&](const Tensor& t) { return t.info->name == name; });
}

// Whether the pass before makes it, so that a peer has its own in its place.
bool PeerCall::is_saved(const TensorInfo& t) const {
  if (before_ == nullptr) return false;
  return std::any_of(
      before_->tensors.begin(), before_->tensors.end(),
      [&](const TensorInfo& other) { return other.name == t.name && !other.is_input(); });
}

// To a peer, what forward keeps is an output like any other.
const char* PeerCall::role_of(const Tensor& t) const {
  if (t.pass == before_) return name_of(Role::kIn);
  return name_of(t.info->role == Role::kSaved ? Role::kOut : t.info->role);
}

Json PeerCall::request(const char* what) const {
  Json described = Json::array();
  worker::SharedCall call;
  for (const Tensor& t : tensors_) {
    described.push_back(
        {{"name", t.info->name},
         {"role", role_of(t)},
         {"is_required", t.info->is_input() && !t.info->is_optional && !is_saved(*t.info)},
         {"is_on_request", t.info->is_on_request}});
    auto& tensor = call.tensors.emplace_back();
    if (t.is_given) tensor = t.place;
  }
  call.options = changed_;
  return {{"do", what},
          {"op",
           {{"name", op_->name},
            {"pass", pass_->name},
            {"autograd", autograd_of(*op_)},
            {"tensors", std::move(described)},
            {"options", options_}}},
          {"call", worker::to_json(call)}};
}

size_t PeerCall::made_bytes() const {
  size_t bytes = 0;
  for (const Tensor& t : tensors_)
    if (t.pass == pass_ && !t.info->is_input()) bytes += t.bytes;
  return bytes;
}

void PeerCall::put_timed_inputs(char* memory) const {
  const auto put_of = [&](const Case& c, const Pass& pass) {
    CallSet set(c);
    set.fill_inputs(c.seed);
    put(set, pass, memory);
  };
  put_of(case_, *pass_);
  if (before_ != nullptr) put_of(before_case_, *before_);
}

void PeerCall::put(const CallSet& set, const Pass& pass, char* memory) const {
  for (const Tensor& t : tensors_)
    if (t.pass == &pass && t.is_given && t.info->is_input() && t.bytes > 0)
      device_download(memory + t.place.at, set.bound().tensors.at(t.info->name).data, t.bytes);
}

void PeerCall::put_inputs(const Problem& problem, char* memory) const {
  put(problem, *pass_, memory);
  if (before_ != nullptr) put(make_problem(before_case_), *before_, memory);
}

void PeerCall::put(const Problem& problem, const Pass& pass, char* memory) const {
  for (const Tensor& t : tensors_) {
    if (t.pass != &pass || !t.is_given || !t.info->is_input()) continue;
    const CaseTensor& values = tensor_of(problem, t.info->name);
    const std::vector<std::byte> packed = narrow(values.input, values.dtype);
    std::memcpy(memory + t.place.at, packed.data(), packed.size());
  }
}

Outputs PeerCall::outputs(const std::vector<std::string>& names, const char* memory) const {
  Outputs outputs;
  for (const Tensor& t : tensors_) {
    if (std::find(names.begin(), names.end(), t.info->name) == names.end()) continue;
    const auto dtype = static_cast<DType>(t.place.dtype);
    const auto* bytes = reinterpret_cast<const std::byte*>(memory + t.place.at);
    outputs[t.info->name] = widen(bytes, t.bytes / size_of(dtype), dtype);
  }
  return outputs;
}

}  // namespace tigon::peers
