// SPDX-License-Identifier: Apache-2.0
// All passes as functions of tvm-ffi, for frameworks that call such functions: JAX, through
// jax_tvm_ffi. It knows no op, and no framework: shapes of results and scratch are its caller's
// part.
//
//   f = tigon_bind("rms_norm.forward bf16 3 0  0 bf16 2  1 bf16 1  2 bf16 2"); f(x, w, y)
//
// The text has the pass and the dtype of its activations; the number of tensors that a call has and
// that of the options, whose values follow (a choice by its index); and for each tensor that f
// takes its place in the call, its dtype, and how many of its axes count: int64 may come as pairs
// of int32. Place -1 is scratch, -2 takes no part. The text is not given with each call, because
// jax_tvm_ffi 0.1.3 frees texts before it calls.
#include <dlfcn.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kernels/python/csrc/library.h"
#include "kernels/python/csrc/tvm_ffi_abi.h"

namespace tigon::tvm_ffi {

namespace {

constexpr int kScratch = -1, kNoPart = -2;

// A function of tvm-ffi itself, which the caller has loaded; NULL where it has not.
template <class Function>
Function find(const char* name) {
  void* library = dlopen("libtvm_ffi.so", RTLD_LAZY | RTLD_NOLOAD);
  return library == nullptr ? nullptr : reinterpret_cast<Function>(dlsym(library, name));
}

// The words of a call's text.
class Words {
 public:
  explicit Words(std::string_view text) : text_(text) {}

  bool is_at_end() const { return text_.find_first_not_of(' ') == std::string_view::npos; }

  std::string_view next() {
    if (is_at_end()) throw std::runtime_error("tigon_bind: its text ends early");
    text_.remove_prefix(text_.find_first_not_of(' '));
    const std::string_view word = text_.substr(0, text_.find(' '));
    text_.remove_prefix(word.size());
    return word;
  }

  template <class Number>
  Number number() {
    const std::string_view word = next();
    Number value = {};
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
    if (error != std::errc() || end != word.data() + word.size())
      throw std::runtime_error("tigon_bind: " + std::string(word) + " is no number");
    return value;
  }

 private:
  std::string_view text_;
};

std::string_view text_of(const TVMFFIAny& value) {
  if (value.type_index == kTVMFFIRawStr) return value.v_c_str;
  if (value.type_index == kTVMFFISmallStr) return {value.v_bytes, value.small_str_len};
  if (value.type_index != kTVMFFIStr) throw std::runtime_error("tigon_bind: it takes a text");
  const auto* text =
      reinterpret_cast<const TVMFFIByteArray*>(static_cast<TVMFFIObject*>(value.v_ptr) + 1);
  return {text->data, text->size};
}

const DLTensor& tensor_of(const TVMFFIAny& value) {
  if (value.type_index == kTVMFFIDLTensorPtr) return *static_cast<const DLTensor*>(value.v_ptr);
  if (value.type_index != kTVMFFITensor) throw std::runtime_error("a pass takes tensors");
  return *reinterpret_cast<const DLTensor*>(static_cast<TVMFFIObject*>(value.v_ptr) + 1);
}

// The library of a flavour, and where its passes are.
struct Flavour {
  explicit Flavour(const char* file) : library(adapter::load_library(file)) {
    for (int32_t i = 0; library && library.op_at(i) != nullptr; ++i) {
      const tigon_op* op = library.op_at(i);
      ops[{op->name, op->dtype}] = op;
    }
  }

  const tigon_op* find(std::string_view name, std::string_view dtype) const {
    if (!library)
      throw std::runtime_error(
          "this tigon was built without the library for CUDA; install it where nvcc is");
    const auto at = ops.find({std::string(name), adapter::dtype_of(dtype)});
    if (at == ops.end()) throw std::runtime_error("tigon_bind: there is no " + std::string(name));
    return at->second;
  }

  adapter::Library library;
  std::map<std::pair<std::string, int32_t>, const tigon_op*> ops;
};

const Flavour& flavour_of(const DLTensor& tensor) {
  if (tensor.device_type == kDLCPU) {
    static const Flavour host("libtigon-host.so");
    return host;
  }
  static const Flavour cuda("libtigon.so");
  return cuda;
}

// What a text says.
class Bound {
 public:
  explicit Bound(Words words) : name_(words.next()), dtype_(words.next()) {
    tensors_ = words.number<uint8_t>();
    options_.resize(words.number<uint8_t>());
    for (size_t i = 0; i < options_.size(); ++i)
      options_[i] = {static_cast<int32_t>(i), 0, words.number<double>()};
    while (!words.is_at_end()) {
      const int place = words.number<int>();
      const int32_t dtype = adapter::dtype_of(words.next());
      given_.push_back({place, dtype, words.number<int32_t>()});
      if (place < kNoPart || place >= tensors_)
        throw std::runtime_error("tigon_bind: " + name_ + " has no tensor " +
                                 std::to_string(place));
    }
    if (given_.empty()) throw std::runtime_error("tigon_bind: a call has tensors");
  }

  void run(const TVMFFIAny* given, int32_t count) const {
    if (static_cast<size_t>(count) != given_.size())
      throw std::runtime_error(name_ + ": " + std::to_string(count) + " tensors are given, but " +
                               std::to_string(given_.size()) + " were bound");
    const DLTensor& first = tensor_of(given[0]);
    const Flavour& flavour = flavour_of(first);
    std::vector<tigon_tensor> tensors(static_cast<size_t>(tensors_));
    tigon_call call = {tensors.data(), options_.data(),
                       nullptr,        0,
                       tensors_,       static_cast<int32_t>(options_.size())};
    for (size_t i = 0; i < given_.size(); ++i) {
      const DLTensor& tensor = tensor_of(given[i]);
      if (given_[i].place == kScratch) add_scratch(tensor, &call);
      if (given_[i].place >= 0)
        tensors[static_cast<size_t>(given_[i].place)] = view(tensor, given_[i]);
    }
    static const auto stream_of = find<TVMFFIEnvGetStream>("TVMFFIEnvGetStream");
    const bool has_stream = first.device_type != kDLCPU && stream_of != nullptr;
    void* stream = has_stream ? stream_of(first.device_type, first.device_id) : nullptr;
    const tigon_status status = flavour.library.run(flavour.find(name_, dtype_), &call, stream);
    if (status.code != TIGON_OK) throw std::runtime_error(status.message);
  }

 private:
  struct Given {
    int place;
    int32_t dtype, rank;
  };

  tigon_tensor view(const DLTensor& from, const Given& as) const {
    if (as.rank > from.ndim) throw std::runtime_error(name_ + ": a tensor has too few axes");
    return {static_cast<char*>(from.data) + from.byte_offset, from.shape,
            as.rank < from.ndim ? nullptr : from.strides, as.dtype, as.rank};
  }

  static void add_scratch(const DLTensor& from, tigon_call* call) {
    const auto begin = reinterpret_cast<uintptr_t>(from.data) + from.byte_offset;
    const uintptr_t aligned = (begin + 255) & ~uintptr_t{255};
    const auto bytes = static_cast<size_t>(from.shape[0]);
    call->scratch = reinterpret_cast<void*>(aligned);
    call->scratch_bytes = bytes - std::min<size_t>(bytes, aligned - begin);
  }

  std::string name_, dtype_;
  int32_t tensors_ = 0;
  std::vector<tigon_option> options_;
  std::vector<Given> given_;
};

// 0, or -1 with what an exception said where tvm-ffi looks for it.
template <class Work>
int guarded(const Work& work) {
  try {
    work();
    return 0;
  } catch (const std::exception& error) {
    static const auto raise = find<TVMFFIErrorSetRaisedFromCStr>("TVMFFIErrorSetRaisedFromCStr");
    if (raise != nullptr) raise("RuntimeError", error.what());
    return -1;
  }
}

int call_bound(void* bound, const TVMFFIAny* given, int32_t count, TVMFFIAny*) {
  return guarded([&] { static_cast<const Bound*>(bound)->run(given, count); });
}

void delete_bound(void* bound) { delete static_cast<Bound*>(bound); }

void bind(const TVMFFIAny* given, int32_t count, TVMFFIAny* result) {
  static const auto create = find<TVMFFIFunctionCreate>("TVMFFIFunctionCreate");
  if (create == nullptr) throw std::runtime_error("tigon_bind: libtvm_ffi.so is not loaded");
  if (count != 1) throw std::runtime_error("tigon_bind takes one text");
  auto bound = std::make_unique<Bound>(Words(text_of(given[0])));
  void* function = nullptr;
  if (create(bound.get(), call_bound, delete_bound, &function) != 0)
    throw std::runtime_error("tigon_bind: tvm-ffi made no function");
  bound.release();
  result->type_index = kTVMFFIFunction;
  result->v_ptr = function;
}

}  // namespace

// The name that tvm-ffi's loader asks for: module["tigon_bind"].
extern "C" TIGON_API int __tvm_ffi_tigon_bind(void*, const TVMFFIAny* given, int32_t count,
                                              TVMFFIAny* result) {
  return guarded([&] { bind(given, count, result); });
}

}  // namespace tigon::tvm_ffi
