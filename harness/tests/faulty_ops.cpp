// SPDX-License-Identifier: Apache-2.0
// An op whose implementations are wrong in one way each.
// y = 2 x + sum(w), w optional.
#include <signal.h>
#include <unistd.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <new>
#include <stdexcept>

#include "harness/run/memory/arena.h"
#include "harness/spec/bind.h"
#include "harness/spec/registry.h"

namespace tigon {
namespace faulty {
namespace {

constexpr Axis N{"N", "rows"}, M{"M", "columns"};

template <class P>
struct Forward {
  using Elem = typename P::Elem;
  View<const Elem, 2> x;
  View<const Elem, 1> w;
  View<Elem, 2> y;
  Scratch scratch;
  float factor = 2;
  static constexpr void fields(auto&& f) {
    f(strided(in(&Forward::x, "x", {N, M})));
    f(optional(in(&Forward::w, "w", {M})));
    f(strided(out(&Forward::y, "y", {N, M})));
    f(option(&Forward::factor, "factor"));
  }
};

template <class Args>
double sum_of_weights(const Args& a) {
  double sum = 0;
  for (int64_t j = 0; a.w && j < a.w.shape[0]; ++j) sum += static_cast<double>(a.w.data[j]);
  return sum;
}

template <class Args>
void right(const Args& a) {
  using Elem = typename Args::Elem;
  const double sum = sum_of_weights(a);
  for (int64_t i = 0; i < a.x.shape[0]; ++i)
    for (int64_t j = 0; j < a.x.shape[1]; ++j)
      a.y.data[i * a.y.stride[0] + j] =
          static_cast<Elem>(a.factor * static_cast<double>(a.x.data[i * a.x.stride[0] + j]) + sum);
}

// S: the same with absolute values.
void scale(const Forward<F64>& a) {
  double sum = 0;
  for (int64_t j = 0; a.w && j < a.w.shape[0]; ++j) sum += std::abs(a.w.data[j]);
  for (int64_t i = 0; i < a.x.size(); ++i)
    a.y.data[i] = std::abs(static_cast<double>(a.factor) * a.x.data[i]) + sum;
}

template <class Args>
auto* last(const Args& a) {
  return a.y.data + (a.y.shape[0] - 1) * a.y.stride[0] + a.y.shape[1] - 1;
}

template <class F>
auto after_right(F fault) {
  return [fault](const auto& a, Stream) {
    right(a);
    if (a.y.size() > 0) fault(a);
    return Status{};
  };
}

template <class Args>
void change(typename Args::Elem* element, double factor) {
  *element = static_cast<typename Args::Elem>(static_cast<double>(*element) * factor);
}

volatile bool forever = true;

}  // namespace

OpSpec contract() {
  constexpr auto policies = types<F32, BF16>;
  const auto one = [=](const char* name, auto run) { return impl<Forward>(name, policies, run); };
  const auto faulty = [=](const char* name, auto fault) { return one(name, after_right(fault)); };
  return {
      .name = "faulty",
      .summary = "y = factor x + sum(w)",
      .axes = {{.axis = N, .tiny = {1, 3}, .check = {0, 1, 40}, .sweep = {}, .host_sweep = {}},
               {.axis = M, .tiny = {5}, .check = {7, 33}, .sweep = {}, .host_sweep = {}}},
      .inputs = {{"normal", {}}, {"large", {{"x", "normal", {{"scale", 1000}}}}}},
      .option_sets = {{}, {{"factor", "3"}}, {{"w", "absent"}}},
      .policies = dtypes_of(policies),
      .passes = {pass<Forward>(
          "forward",
          {.oracle = oracle<Forward>([](auto& a) { right(a); }),
           .scale = oracle<Forward>([](auto& a) { scale(a); }),
           .implementations =
               {faulty("right", [](auto&) {}),
                faulty("wrong", [](auto& a) { change<std::decay_t<decltype(a)>>(last(a), 1.1); }),
                faulty("three_ulp",
                       [](auto& a) {
                         using Args = std::decay_t<decltype(a)>;
                         const double ulp = 2 * unit_roundoff(dtype_of<typename Args::Elem>);
                         change<Args>(last(a), 1 + 3 * ulp);
                       }),
                faulty("nan",
                       [](auto& a) {
                         change<std::decay_t<decltype(a)>>(
                             last(a), std::numeric_limits<double>::quiet_NaN());
                       }),
                faulty("behind", [](auto& a) { last(a)[1] = last(a)[0]; }),
                faulty("far_before", [](auto& a) { reinterpret_cast<char*>(a.y.data)[-300] = 1; }),
                faulty("modifies_input",
                       [](auto& a) {
                         using Elem = typename std::decay_t<decltype(a)>::Elem;
                         const_cast<Elem*>(a.x.data)[0] = static_cast<Elem>(7.5);
                       }),
                faulty("modifies_scratch",
                       [](auto& a) { static_cast<char*>(a.scratch.data)[a.scratch.bytes] = 1; }),
                faulty("copies_guard", [](auto& a) { last(a)[1] = last(a)[2]; }),
                // Puts back what was behind the end in the first call.
                faulty("remembers_guard",
                       [](auto& a) {
                         static const auto old = last(a)[1];
                         last(a)[1] = old;
                       }),
                faulty("writes_between_rows",
                       [](auto& a) {
                         if (a.y.stride[0] > a.y.shape[1]) a.y.data[a.y.shape[1]] = {};
                       }),
                // Right over one poison, wrong over the other.
                faulty("reads_scratch",
                       [](auto& a) {
                         const auto old = *static_cast<unsigned char*>(a.scratch.data);
                         if (old == kPoisons[1]) change<std::decay_t<decltype(a)>>(a.y.data, 1.02);
                       }),
                faulty("counts_calls",
                       [](auto& a) {
                         static int calls = 0;
                         change<std::decay_t<decltype(a)>>(a.y.data, 1 + (calls++) * 0.02);
                       }),
                one("never_writes_last",
                    [](auto& a, Stream) {
                      if (a.y.size() == 0) return Status{};
                      const auto old = *last(a);
                      right(a);
                      *last(a) = old;
                      return Status{};
                    }),
                one("does_nothing", [](auto&, Stream) { return Status{}; }),
                one("refuses", [](auto&, Stream) { return invalid("x must be even"); }),
                one("cannot", [](auto&, Stream) { return unsupported("needs wings"); }),
                one("crashes",
                    [](auto&, Stream) {
                      raise(SIGSEGV);
                      return Status{};
                    }),
                one("aborts_with_words",
                    [](auto&, Stream) -> Status {
                      std::fprintf(stderr, "first line\nassertion failed: wings\n");
                      std::abort();
                    }),
                one("exits_well", [](auto&, Stream) -> Status { std::exit(0); }),
                one("throws", [](auto&, Stream) -> Status { throw std::runtime_error("thrown"); }),
                one("takes_all_memory",
                    [](auto&, Stream) {
                      throw std::bad_alloc();
                      return Status{};
                    }),
                one("hangs",
                    [](auto&, Stream) {
                      while (forever) {
                      }
                      return Status{};
                    }),
                one("sleeps_with_child",
                    [](auto&, Stream) {
                      if (fork() == 0) signal(SIGTERM, SIG_IGN);
                      while (forever) pause();
                      return Status{};
                    }),
                faulty("prints",
                       [](auto&) {
                         for (int i = 0; i < 100000; ++i) std::printf("{\"verdict\":\"passed\"}\n");
                         std::fflush(stdout);
                       }),
                faulty("wrong_wide_triple",
                       [](auto& a) {
                         if (a.factor == 3 && a.y.shape[1] >= 6)
                           change<std::decay_t<decltype(a)>>(last(a), 1.1);
                       }),
                faulty("crashes_on_wide",
                       [](auto& a) {
                         if (a.y.shape[0] >= 2 && a.y.shape[1] >= 17) raise(SIGSEGV);
                       }),
                faulty("hangs_on_large",
                       [](auto& a) {
                         while (forever && a.y.shape[0] == 40) {
                         }
                       })},
           .budget = {{"y", {.reduction = M}}},
           .flops = 2 * Expr(N) * M})},
  };
}

}  // namespace faulty

namespace relations {
OpSpec contract();
}

// Scratch for the implementations that misuse it.
std::vector<OpSpec> make_contracts() {
  std::vector<OpSpec> all = {faulty::contract(), relations::contract()};
  for (Implementation& i : all[0].passes[0].implementations)
    if (i.name == "modifies_scratch" || i.name == "reads_scratch")
      i.workspace = [](DType, const Bound&) { return size_t{40}; };
  return all;
}

}  // namespace tigon
