// SPDX-License-Identifier: Apache-2.0
// A library that is wrong in the way that the variable BAD_PLUGIN names; without it, it is right.
// With BAD_PLUGIN_TOKENS only calls of so many tokens go wrong.
#include <signal.h>
#include <unistd.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <vector>

#include "kernels/call/tigon.h"

namespace {

bool is(const char* fault) {
  const char* wanted = std::getenv("BAD_PLUGIN");
  return wanted != nullptr && std::string(wanted) == fault;
}

constexpr tigon_status kOk = {TIGON_OK, ""};

// rms_norm.forward without options: x, w, y, rstd.
void honest(const tigon_call* call) {
  const tigon_tensor *x = &call->tensors[0], *y = &call->tensors[2];
  const auto *in = static_cast<const float*>(x->data),
             *w = static_cast<const float*>(call->tensors[1].data);
  auto *out = static_cast<float*>(y->data), *rstd = static_cast<float*>(call->tensors[3].data);
  for (int64_t t = 0; t < x->sizes[0]; ++t) {
    double sum = 0;
    for (int64_t h = 0; h < x->sizes[1]; ++h) sum += std::pow(in[t * x->strides[0] + h], 2.0);
    const double r = 1 / std::sqrt(sum / static_cast<double>(x->sizes[1]) + 1e-6);
    rstd[t] = static_cast<float>(r);
    for (int64_t h = 0; h < x->sizes[1]; ++h)
      out[t * y->strides[0] + h] =
          static_cast<float>(in[t * x->strides[0] + h] * r * (w != nullptr ? w[h] : 1));
  }
}

[[noreturn]] void wait_forever() {
  for (;;) pause();
}

void flood() {
  const std::string line(1023, '#');
  for (int i = 0; i < 64 * 1024; ++i) std::puts(line.c_str());
  std::fflush(stdout);
}

int overflow_stack(int depth) {
  if (depth < 0) return 0;
  volatile char page[4096];
  page[0] = static_cast<char>(depth);
  return overflow_stack(depth + 1) + page[0];
}

tigon_status run(const tigon_op*, const tigon_call* call, void*) {
  if (const char* tokens = std::getenv("BAD_PLUGIN_TOKENS");
      tokens != nullptr && std::atoll(tokens) != call->tensors[0].sizes[0]) {
    honest(call);
    return kOk;
  }
  if (is("throws")) throw std::runtime_error("out of paper");
  if (is("throws_int")) throw 42;
  if (is("segfault")) raise(SIGSEGV);
  if (is("aborts")) std::abort();
  if (is("exits_0")) std::exit(0);
  if (is("exits_3")) _exit(3);
  if (is("is_killed")) kill(getpid(), SIGKILL);
  if (is("hangs")) wait_forever();
  if (is("overflows_stack")) return {overflow_stack(0), ""};
  if (is("closes_all")) closefrom(0);
  if (is("runs_out_of_memory"))
    for (std::vector<std::string> hoard;;) hoard.emplace_back(size_t{1} << 40, 'x');
  if (is("says_invalid")) return {TIGON_INVALID, "no good\nat all\x01\xff"};
  if (is("says_unsupported")) return {TIGON_UNSUPPORTED, "only on Sundays"};
  if (is("says_its_name")) return {TIGON_UNSUPPORTED, "rms_norm.forward: only on Sundays"};
  if (is("says_nothing")) return {TIGON_UNSUPPORTED, nullptr};
  if (is("says_77")) return {77, ""};
  honest(call);
  if (is("floods")) flood();
  return kOk;
}

size_t huge_workspace(const tigon_op*, const tigon_call*) { return SIZE_MAX / 2; }

tigon_status failing_prepare(const tigon_op*, const tigon_call*) {
  return {TIGON_LAUNCH_FAILED, "not in the mood"};
}

tigon_op made_op() {
  static const std::string long_name(65, 'a');
  tigon_op op = {};
  op.abi = TIGON_ABI;
  op.dtype = TIGON_F32;
  op.device = TIGON_DEVICE_HOST;
  op.name = "rms_norm.forward";
  op.implementation = "bad";
  op.run = run;
  if (is("abi_0")) op.abi = 0;
  if (is("abi_2")) op.abi = 2;
  if (is("name_null")) op.name = nullptr;
  if (is("name_other")) op.name = "rms_nrom.forward";
  if (is("implementation_null")) op.implementation = nullptr;
  if (is("implementation_empty")) op.implementation = "";
  if (is("implementation_long")) op.implementation = long_name.c_str();
  if (is("implementation_with_slash")) op.implementation = "a/b";
  if (is("dtype_99")) op.dtype = 99;
  if (is("dtype_other")) op.dtype = TIGON_BF16;
  if (is("device_7")) op.device = 7;
  if (is("device_cuda")) op.device = TIGON_DEVICE_CUDA;
  if (is("null_run")) op.run = nullptr;
  if (is("workspace_huge")) op.workspace = huge_workspace;
  if (is("prepare_fails")) op.prepare = failing_prepare;
  return op;
}

}  // namespace

const tigon_op* tigon_find(const char* name, int32_t dtype) {
  if (is("load_throws")) throw std::runtime_error("no");
  if (is("load_segfaults")) raise(SIGSEGV);
  if (is("load_exits_0")) std::exit(0);
  if (is("load_hangs")) wait_forever();
  if (is("no_op")) return nullptr;
  static const tigon_op op = made_op();
  return std::string(name) == "rms_norm.forward" && dtype == TIGON_F32 ? &op : nullptr;
}
