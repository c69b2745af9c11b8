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

#include "harness/plugin/tigon_plugin.h"

namespace {

bool is(const char* fault) {
  const char* wanted = std::getenv("BAD_PLUGIN");
  return wanted != nullptr && std::string(wanted) == fault;
}

void honest(const tigon_call* call) {
  const tigon_tensor *x = tigon_find(call, "x"), *y = tigon_find(call, "y");
  const auto *in = static_cast<const float*>(x->data),
             *w = static_cast<const float*>(tigon_find(call, "w")->data);
  auto *out = static_cast<float*>(y->data),
       *rstd = static_cast<float*>(tigon_find(call, "rstd")->data);
  for (int64_t t = 0; t < x->shape[0]; ++t) {
    double sum = 0;
    for (int64_t h = 0; h < x->shape[1]; ++h) sum += std::pow(in[t * x->stride[0] + h], 2.0);
    const double r = 1 / std::sqrt(sum / static_cast<double>(x->shape[1]) + 1e-6);
    rstd[t] = static_cast<float>(r);
    for (int64_t h = 0; h < x->shape[1]; ++h)
      out[t * y->stride[0] + h] =
          static_cast<float>(in[t * x->stride[0] + h] * r * (w != nullptr ? w[h] : 1));
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

int32_t run(const tigon_call* call, const char** message) {
  if (const char* tokens = std::getenv("BAD_PLUGIN_TOKENS");
      tokens != nullptr && std::atof(tokens) != tigon_number(call, "T", 0)) {
    honest(call);
    return TIGON_OK;
  }
  if (is("throws")) throw std::runtime_error("out of paper");
  if (is("throws_int")) throw 42;
  if (is("segfault")) raise(SIGSEGV);
  if (is("aborts")) std::abort();
  if (is("exits_0")) std::exit(0);
  if (is("exits_3")) _exit(3);
  if (is("is_killed")) kill(getpid(), SIGKILL);
  if (is("hangs")) wait_forever();
  if (is("overflows_stack")) return overflow_stack(0);
  if (is("closes_all")) closefrom(0);
  if (is("runs_out_of_memory"))
    for (std::vector<std::string> hoard;;) hoard.emplace_back(size_t{1} << 40, 'x');
  if (is("says_invalid")) {
    *message = "no good\nat all\x01\xff";
    return TIGON_INVALID;
  }
  if (is("says_unsupported")) {
    *message = "only on Sundays";
    return TIGON_UNSUPPORTED;
  }
  if (is("says_77")) return 77;
  honest(call);
  if (is("floods")) flood();
  return TIGON_OK;
}

size_t huge_workspace(const tigon_call*) { return SIZE_MAX / 2; }

int32_t failing_prepare(const tigon_call*, const char** message) {
  *message = "not in the mood";
  return TIGON_FAILED;
}

const tigon_plugin* plugin() {
  static int32_t types[] = {TIGON_F32};
  static tigon_kernel kernel = {sizeof(tigon_kernel),
                                "rms_norm",
                                "forward",
                                "bad",
                                TIGON_DEVICE_HOST,
                                1,
                                types,
                                nullptr,
                                nullptr,
                                run};
  static const tigon_kernel* kernels[] = {&kernel, &kernel};
  static tigon_plugin made = {sizeof(tigon_plugin), TIGON_PLUGIN_ABI, 1, "bad", "1", kernels};
  static const std::string long_name(65, 'a');
  if (is("abi_0")) made.abi = 0;
  if (is("abi_2")) made.abi = 2;
  if (is("plugin_size_0")) made.size = 0;
  if (is("plugin_size_short")) made.size = sizeof(tigon_plugin) - 8;
  if (is("no_kernels")) made.kernel_count = 0;
  if (is("negative_kernels")) made.kernel_count = -1;
  if (is("million_kernels")) made.kernel_count = 1000000;
  if (is("null_kernels")) made.kernels = nullptr;
  if (is("null_kernel")) kernels[0] = nullptr;
  if (is("null_name")) made.name = made.version = nullptr;
  if (is("kernel_size_short")) kernel.size = 40;
  if (is("null_op")) kernel.op = nullptr;
  if (is("unknown_op")) kernel.op = "rms_nrom";
  if (is("unknown_pass")) kernel.pass = "sideways";
  if (is("null_pass")) kernel.pass = nullptr;
  if (is("name_with_slash")) kernel.name = "a/b";
  if (is("name_empty")) kernel.name = "";
  if (is("name_long")) kernel.name = long_name.c_str();
  if (is("dtype_99")) types[0] = 99;
  if (is("dtype_negative")) types[0] = -1;
  if (is("dtype_f64")) types[0] = TIGON_F64;
  if (is("no_dtypes")) kernel.dtype_count = 0;
  if (is("null_dtypes")) kernel.dtypes = nullptr;
  if (is("device_7")) kernel.device = 7;
  if (is("device_cuda")) kernel.device = TIGON_DEVICE_CUDA;
  if (is("null_run")) kernel.run = nullptr;
  if (is("twice")) made.kernel_count = 2;
  if (is("workspace_huge")) kernel.workspace = huge_workspace;
  if (is("prepare_fails")) kernel.prepare = failing_prepare;
  return &made;
}

}  // namespace

const tigon_plugin* tigon_plugin_get(uint32_t) {
  if (is("load_throws")) throw std::runtime_error("no");
  if (is("load_segfaults")) raise(SIGSEGV);
  if (is("load_exits_0")) std::exit(0);
  if (is("load_hangs")) wait_forever();
  if (is("null_plugin")) return nullptr;
  return plugin();
}
