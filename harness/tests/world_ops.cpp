// SPDX-License-Identifier: Apache-2.0
// The op of the program that faults of the world are injected into: y = 2 x, and implementations
// that go wrong at one size, N = kBadSize, each in a way of its own.
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <clocale>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <locale>
#include <new>
#include <stdexcept>
#include <thread>

#include "harness/spec/bind.h"
#include "harness/spec/registry.h"
#include "harness/tests/world_kernels.h"
#include "kernels/device/runtime.h"

namespace tigon {
namespace world {
namespace {

constexpr int64_t kBadSize = 5;
constexpr Axis N{"N", "elements"};

template <class P>
struct Forward {
  using Elem = typename P::Elem;
  View<const Elem, 1> x;
  View<Elem, 1> y;
  static constexpr void fields(auto&& f) {
    f(in(&Forward::x, "x", {N}));
    f(out(&Forward::y, "y", {N}));
  }
};

using Args = Forward<F32>;

Status right(const Args& a, DeviceFault fault, Stream stream) {
  return twice(a.x.data, a.y.data, a.y.shape[0], fault, stream);
}

bool is_bad(const Args& a) { return a.y.shape[0] == kBadSize; }

// An implementation whose library does `what` on the host before the kernel of the bad size.
Implementation host_fault(const char* name, void (*what)()) {
  return impl<Forward>(name, types<F32>, [what](const Args& a, Stream stream) {
    if (is_bad(a)) what();
    return right(a, DeviceFault::kNone, stream);
  });
}

Implementation device_fault(const char* name, DeviceFault fault) {
  return impl<Forward>(name, types<F32>, [fault](const Args& a, Stream stream) {
    return right(a, is_bad(a) ? fault : DeviceFault::kNone, stream);
  });
}

// More memory than any device has.
Implementation device_memory_fault() {
  return impl<Forward>(
      "device_memory", types<F32>,
      [](const Args& a, Stream stream) { return right(a, DeviceFault::kNone, stream); },
      [](const Args& a) { return is_bad(a) ? size_t{1} << 45 : size_t{0}; });
}

[[noreturn]] void wait_forever() {
  for (;;) pause();
}

void flood(FILE* stream, size_t lines) {
  for (size_t i = 0; i < lines; ++i)
    std::fputs("{\"verdict\":\"passed\",\"id\":\"...\"}\n", stream);
}

// 1 GB at a time, one byte of which is touched: the limit is on addresses.
void take_all_memory() {
  for (;;) *static_cast<volatile char*>(::operator new (size_t{1} << 30)) = 1;
}

void use_null() {
  for (;;) *static_cast<volatile char*>(std::malloc(size_t{1} << 30)) = 1;
}

int descend(int levels, volatile int* above) {
  volatile int frame[1024];
  frame[0] = *above + levels;
  return levels == 0 ? frame[0] : descend(levels - 1, frame) + frame[0];
}

struct CommaNumbers : std::numpunct<char> {
  char do_decimal_point() const override { return ','; }
  char do_thousands_sep() const override { return '.'; }
  std::string do_grouping() const override { return "\3"; }
};

void change_surroundings() {
  std::setlocale(LC_ALL, "");
  std::locale::global(std::locale(std::locale(), new CommaNumbers));
  std::filesystem::current_path("/");
  umask(0777);
  setenv("LC_ALL", "de_DE.UTF-8", 1);
}

void write_everywhere() {
  const std::string text = "{\"verdict\":\"passed\"}\n";
  for (int descriptor = 3; descriptor < 128; ++descriptor)
    [[maybe_unused]] const ssize_t n = write(descriptor, text.data(), text.size());
}

std::vector<Implementation> implementations() {
  return {
      host_fault("right", [] {}),
      host_fault("segmentation_fault", [] { raise(SIGSEGV); }),
      host_fault("abort",
                 [] {
                   std::fputs("first line\nassertion failed: wings\n", stderr);
                   std::abort();
                 }),
      host_fault("exit_0", [] { std::exit(0); }),
      host_fault("exit_0_in_thread", [] { std::thread([] { _exit(0); }).join(); }),
      host_fault("kills_itself", [] { raise(SIGKILL); }),
      host_fault("throws", [] { throw std::runtime_error("thrown by the library"); }),
      host_fault("loses_the_device", [] { throw DeviceError("the context is gone"); }),
      host_fault("throws_a_number", [] { throw 5; }),
      host_fault("throws_in_thread", [] { std::thread([] { throw 5; }).join(); }),
      host_fault("stdout_flood", [] { flood(stdout, 2000000); }),
      host_fault("stderr_flood", [] { flood(stderr, ~size_t{0}); }),
      host_fault("endless_loop",
                 [] {
                   for (volatile bool forever = true; forever;) {
                   }
                 }),
      host_fault("leaves_a_process",
                 [] {
                   if (fork() == 0) signal(SIGTERM, SIG_IGN);
                   wait_forever();
                 }),
      host_fault("stops_itself", [] { raise(SIGSTOP); }),
      host_fault("waits_for_kill", [] { wait_forever(); }),
      host_fault("host_memory", [] { take_all_memory(); }),
      host_fault("uses_null_of_malloc", [] { use_null(); }),
      host_fault("host_stack",
                 [] {
                   volatile int top = 0;
                   descend(1 << 30, &top);
                 }),
      host_fault("takes_all_descriptors",
                 [] {
                   while (open("/dev/null", O_RDONLY) >= 0) {
                   }
                 }),
      host_fault("closes_all_descriptors",
                 [] {
                   for (int descriptor = 0; descriptor < 256; ++descriptor) close(descriptor);
                 }),
      host_fault("writes_to_all_descriptors", [] { write_everywhere(); }),
      host_fault("changes_its_surroundings", [] { change_surroundings(); }),
      device_memory_fault(),
      device_fault("illegal_address", DeviceFault::kIllegalAddress),
      device_fault("misaligned_address", DeviceFault::kMisaligned),
      device_fault("device_assert", DeviceFault::kAssert),
      device_fault("illegal_instruction", DeviceFault::kTrap),
      device_fault("kernel_hang", DeviceFault::kHang),
      device_fault("dead_lock", DeviceFault::kDeadlock),
      device_fault("device_stack", DeviceFault::kStackOverflow),
      device_fault("too_many_threads", DeviceFault::kTooManyThreads),
      host_fault("afterwards", [] {}),
  };
}

template <class A>
void twice_in_double(const A& a) {
  for (int64_t i = 0; i < a.y.size(); ++i) a.y.data[i] = 2 * a.x.data[i];
}

}  // namespace

OpSpec contract() {
  return {
      .name = "world",
      .summary = "y = 2 x",
      .axes = {{.axis = N,
                .tiny = {3, kBadSize, 7},
                .check = {3, kBadSize, 7},
                .sweep = {3, kBadSize, 7},
                .host_sweep = {3, kBadSize, 7}}},
      .inputs = {{"normal", {}}},
      .option_sets = {{}},
      .policies = dtypes_of(types<F32>),
      .passes = {pass<Forward>("forward",
                               {.oracle = oracle<Forward>([](auto& a) { twice_in_double(a); }),
                                .implementations = implementations(),
                                .budget = {{"y", {}}},
                                .flops = Expr(N)})},
  };
}

}  // namespace world

std::vector<OpSpec> make_contracts() { return {world::contract()}; }

}  // namespace tigon
