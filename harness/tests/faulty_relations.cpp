// SPDX-License-Identifier: Apache-2.0
// An op whose implementations each break one property of their pass, and an option that does
// nothing.
//   weigh:  y = g exp(x - max x) w, m = max x, s = sum exp(x - m); rows whose target is ignored: 0
//   centre: z = x - mean x
//   turn and turn_back: (x1, x2) = halves of a row, turned by an angle and back, in place
//   stretch: y = factor x, with a launcher that refuses wrong calls
#include <cmath>
#include <map>

#include "harness/spec/bind.h"
#include "harness/spec/properties.h"
#include "kernels/signature/checks.h"

namespace tigon::relations {
namespace {

constexpr Axis T{"T", "rows"}, V{"V", "columns, even"};

template <class P>
struct Weigh {
  using Elem = typename P::Elem;
  using Accum = typename P::Accum;
  View<const Elem, 2> x;
  View<const Elem, 1> w;
  View<const Accum, 1> g;
  View<const int64_t, 1> target;
  View<Elem, 2> y;
  View<Accum, 1> m, s;
  int64_t ignore_index = -100;
  static constexpr void fields(auto&& f) {
    f(strided(in(&Weigh::x, "x", {T, V})));
    f(optional(in(&Weigh::w, "w", {V})));
    f(in(&Weigh::g, "g", {T}));
    f(in(&Weigh::target, "target", {T}));
    f(strided(out(&Weigh::y, "y", {T, V})));
    f(out(&Weigh::m, "m", {T}));
    f(out(&Weigh::s, "s", {T}));
    f(option(&Weigh::ignore_index, "ignore_index"));
  }
};

template <class P>
struct Centre {
  using Elem = typename P::Elem;
  View<const Elem, 2> x;
  View<Elem, 2> z;
  float unused = 0;
  static constexpr void fields(auto&& f) {
    f(strided(in(&Centre::x, "x", {T, V})));
    f(may_alias({"x"}, strided(out(&Centre::z, "z", {T, V}))));
    f(option(&Centre::unused, "unused"));
  }
};

constexpr Size half_columns() {
  return {"V/2", [](const Binding& b, Axis v) { return b.at(v.symbol) / 2; }, V};
}

template <class P>
struct Turn {
  using Elem = typename P::Elem;
  using Accum = typename P::Accum;
  View<Elem, 2> q;
  View<const Accum, 2> cos, sin;
  static constexpr void fields(auto&& f) {
    f(inout(&Turn::q, "q", {T, V}));
    f(in(&Turn::cos, "cos", {T, half_columns()}));
    f(in(&Turn::sin, "sin", {T, half_columns()}));
  }
};
template <class P>
struct TurnBack : Turn<P> {
  static constexpr void fields(auto&& f) { Turn<P>::fields(f); }
};

template <class P>
struct Stretch {
  using Elem = typename P::Elem;
  View<const Elem, 2> x;
  View<Elem, 2> y;
  float factor = 1;
  static constexpr void fields(auto&& f) {
    f(in(&Stretch::x, "x", {T, V}));
    f(out(&Stretch::y, "y", {T, V}));
    f(option(&Stretch::factor, "factor"));
  }
};

// What is wrong with an implementation.
enum class Fault {
  kNone,
  kReadsNextRow,
  kAddsALittle,
  kIgnoresUpstream,
  kPrefersFirst,
  kForgetsMax,
  kStretchesMax,
  kNumbersRows,
  kCountsRows,
  kTakesAbsUpstream,
  kOneInIgnored,
  kPaddingIsOne,
  kReadsIgnored,
  kSumsInElem,
  kTwiceWithoutWeight,
  kCountsCalls,
  kKeepsFirstSize,
  kKeepsResultOfAddress,
  kAlignsAddress,
  kIgnoresStride,
  kForgetsMean,
  kWritesFirst,
  kTurnsOneWay,
  kStretches,
  kTurnsEvenRows,
  kTrustsSizes,
  kTakesNearlyOneForOne,
  kForgetsFarRows,
};

double from(auto v) { return static_cast<double>(v); }

template <class Args>
void weigh_row(const Args& a, Fault fault, int64_t t) {
  using Elem = typename Args::Elem;
  const int64_t columns = a.x.shape[1], rows = a.x.shape[0];
  const int64_t stride = fault == Fault::kIgnoresStride ? columns : a.x.stride[0];
  const auto* x = a.x.data + t * stride;
  if (fault == Fault::kAlignsAddress)
    x = reinterpret_cast<decltype(x)>(reinterpret_cast<uintptr_t>(x) / 8 * 8);
  auto* y = a.y.data + t * a.y.stride[0];
  const bool ignored = a.target.data[t] == a.ignore_index;
  double m = ignored ? 0 : -INFINITY, s = 0;
  for (int64_t j = 0; j < columns && !ignored; ++j) m = std::max(m, from(x[j]));
  Elem stored_sum{};
  for (int64_t j = 0; j < columns; ++j) {
    double e = ignored ? 0 : std::exp(from(x[j]) - (fault == Fault::kForgetsMax ? 0 : m));
    if (fault == Fault::kReadsIgnored && ignored) e = 0 * std::abs(from(x[j]));
    if (fault == Fault::kPaddingIsOne && std::isinf(from(x[j]))) e = 1;
    if (fault == Fault::kReadsNextRow && t + 1 < rows) e += 0 * from(x[j + stride]);
    s += e;
    stored_sum = static_cast<Elem>(from(stored_sum) + e);
    const double weight = a.w ? from(a.w.data[j]) : fault == Fault::kTwiceWithoutWeight ? 2 : 1;
    double value = ignored ? e : from(a.g.data[t]) * e * weight;
    if (fault == Fault::kIgnoresUpstream) value = e * weight;
    if (fault == Fault::kTakesAbsUpstream) value = std::abs(value);
    if (fault == Fault::kNumbersRows) value += 0.001 * from(t);
    if (fault == Fault::kCountsRows) value += 0.001 * from(rows);
    if (fault == Fault::kOneInIgnored && ignored) value = 1;
    if (fault == Fault::kAddsALittle) value += 0.001;
    if (fault == Fault::kPrefersFirst && j == 0) value *= 1.1;
    y[j] = static_cast<Elem>(value);
  }
  a.m.data[t] = static_cast<typename Args::Accum>(fault == Fault::kStretchesMax ? 1.001 * m : m);
  a.s.data[t] =
      static_cast<typename Args::Accum>(fault == Fault::kSumsInElem ? from(stored_sum) : s);
}

template <class Args>
void weigh(const Args& a, Fault fault) {
  static int64_t first_rows = -1, calls = 0;
  static std::map<const void*, double> first_of_address;
  for (int64_t t = 0; t < a.x.shape[0]; ++t) weigh_row(a, fault, t);
  if (a.y.size() == 0) return;
  if (first_rows < 0) first_rows = a.x.shape[0];
  using Elem = typename Args::Elem;
  if (fault == Fault::kCountsCalls) *a.y.data = static_cast<Elem>(calls++);
  if (fault == Fault::kKeepsFirstSize && a.x.shape[0] != first_rows) *a.y.data = Elem{};
  if (fault == Fault::kKeepsResultOfAddress)
    *a.y.data =
        static_cast<Elem>(first_of_address.emplace(a.x.data, from(*a.y.data)).first->second);
}

template <class Args>
void centre(const Args& a, Fault fault) {
  const int64_t columns = a.x.shape[1];
  for (int64_t t = 0; t < a.x.shape[0]; ++t) {
    const auto* x = a.x.data + t * a.x.stride[0];
    auto* z = a.z.data + t * a.z.stride[0];
    double sum = 0;
    if (fault == Fault::kWritesFirst) z[0] = {};  // in place: before it is read
    for (int64_t j = 0; j < columns; ++j) sum += from(x[j]);
    const double mean = fault == Fault::kForgetsMean ? 0 : sum / from(columns);
    for (int64_t j = 0; j < columns; ++j)
      z[j] = static_cast<typename Args::Elem>(from(x[j]) - mean);
  }
}

template <class Args>
void turn(const Args& a, double sign, Fault fault) {
  using Elem = typename Args::Elem;
  const int64_t half = a.q.shape[1] / 2;
  for (int64_t t = 0; t < a.q.shape[0]; ++t) {
    auto* q = a.q.data + t * a.q.stride[0];
    const double stretch = fault == Fault::kStretches ? 1.1 : 1;
    for (int64_t j = 0; j < half; ++j) {
      const double c = from(a.cos.data[t * a.cos.stride[0] + j]);
      const double s = sign * from(a.sin.data[t * a.sin.stride[0] + j]);
      if (fault == Fault::kTurnsEvenRows && t % 2 == 1) continue;
      const double x1 = from(q[j]), x2 = from(q[j + half]);
      q[j] = static_cast<Elem>(stretch * (x1 * c - x2 * s));
      q[j + half] = static_cast<Elem>(stretch * (x2 * c + x1 * s));
    }
  }
}

// Addresses that nobody follows are small.
bool has_memory(const void* data) { return reinterpret_cast<uintptr_t>(data) > 1 << 20; }

template <class Args>
Status stretch(const Args& a, Fault fault) {
  const int64_t rows = a.x.shape[0], columns = a.x.shape[1];
  if (rows < 1 || columns < 1 || !has_shape(a.x, rows, columns) || is_missing(a.x))
    return invalid("x must be [T, V]");
  const bool fits = has_shape(a.y, rows, columns) || fault == Fault::kTrustsSizes;
  if (!fits || is_missing(a.y)) return invalid("y must be shaped like x");
  if (!has_memory(a.x.data)) return {};
  const double least = fault == Fault::kTakesNearlyOneForOne ? 0.02 : 0;
  const bool is_far = a.x.stride[0] > INT32_MAX;
  const double factor = std::abs(a.factor - 1) <= least ? 1 : from(a.factor);
  for (int64_t t = 0; t < rows; ++t)
    for (int64_t j = 0; j < columns; ++j)
      a.y.data[t * a.y.stride[0] + j] =
          is_far && fault == Fault::kForgetsFarRows
              ? typename Args::Elem{}
              : static_cast<typename Args::Elem>(factor * from(a.x.data[t * a.x.stride[0] + j]));
  return {};
}

}  // namespace

OpSpec contract() {
  constexpr auto policies = types<F32, BF16>;
  const auto weighs = [=](const char* name, Fault fault) {
    return impl<Weigh>(name, policies, [=](auto& a, Stream) {
      weigh(a, fault);
      return Status{};
    });
  };
  const auto centres = [=](const char* name, Fault fault) {
    return impl<Centre>(name, policies, [=](auto& a, Stream) {
      centre(a, fault);
      return Status{};
    });
  };
  const auto turns = [=](const char* name, Fault fault) {
    return impl<Turn>(name, policies, [=](auto& a, Stream) {
      turn(a, 1, fault);
      return Status{};
    });
  };
  const auto turns_back = [=](const char* name, double sign, Fault fault) {
    return impl<TurnBack>(name, policies, [=](auto& a, Stream) {
      turn(a, sign, fault);
      return Status{};
    });
  };
  const auto stretches = [=](const char* name, Fault fault) {
    return impl<Stretch>(name, policies, [=](auto& a, Stream) { return stretch(a, fault); });
  };
  const Partner halves = [](const Binding&, int64_t columns, int64_t column) {
    return (column + columns / 2) % columns;
  };
  return {
      .name = "relations",
      .summary = "y = g exp(x - max x) w and others",
      .axes = {{.axis = T, .tiny = {3}, .check = {4}, .sweep = {}, .host_sweep = {}},
               {.axis = V, .tiny = {6}, .check = {10}, .sweep = {}, .host_sweep = {}}},
      .inputs = {{"normal",
                  {{"target", "targets", {}, V}, {"cos", "rotary_cos"}, {"sin", "rotary_sin"}}},
                 {"some_ignored", {{"target", "targets", {{"ignored", 0.5}}, V}}}},
      .option_sets = {{}, {{"ignore_index", "0"}}, {{"w", "absent"}}, {{"unused", "1"}}},
      .policies = dtypes_of(policies),
      .passes =
          {pass<Weigh>(
               "weigh",
               {.oracle = oracle<Weigh>([](auto& a) { weigh(a, Fault::kNone); }),
                .implementations =
                    {weighs("sound", Fault::kNone),
                     weighs("reads_next_row", Fault::kReadsNextRow),
                     weighs("adds_a_little", Fault::kAddsALittle),
                     weighs("ignores_upstream", Fault::kIgnoresUpstream),
                     weighs("prefers_first", Fault::kPrefersFirst),
                     weighs("forgets_max", Fault::kForgetsMax),
                     weighs("stretches_max", Fault::kStretchesMax),
                     weighs("numbers_rows", Fault::kNumbersRows),
                     weighs("counts_rows", Fault::kCountsRows),
                     weighs("takes_abs_upstream", Fault::kTakesAbsUpstream),
                     weighs("one_in_ignored", Fault::kOneInIgnored),
                     weighs("padding_is_one", Fault::kPaddingIsOne),
                     weighs("reads_ignored", Fault::kReadsIgnored),
                     weighs("sums_in_elem", Fault::kSumsInElem),
                     weighs("twice_without_weight", Fault::kTwiceWithoutWeight),
                     weighs("counts_calls_too", Fault::kCountsCalls),
                     weighs("keeps_first_size", Fault::kKeepsFirstSize),
                     weighs("keeps_result_of_address", Fault::kKeepsResultOfAddress),
                     weighs("aligns_address", Fault::kAlignsAddress),
                     weighs("ignores_stride", Fault::kIgnoresStride)},
                .budget = {{"y", {.elementary = 8}}, {"m", {}}, {"s", {.reduction = V}}},
                .flops = 4 * Expr(T) * V,
                .properties = {row_independence("T"), ignored_rows("T", "target"),
                               permutation("V", "target"), padding("V", {"x"}),
                               shift_invariance({"x"}, {.same = {"y", "s"}, .shifted = {"m"}}),
                               scaling("power_of_two", {{"w", 1}}, {{"y", 1}}),
                               gradient_scaling("g", {"y"}), linearity({"w"}, {"y"}),
                               same_results("neutral_weight", {.options = {{"w", "absent"}}},
                                            {.fill = {{"w", 1}}}),
                               dtype_twin()}}),
           pass<Centre>(
               "centre", {.oracle = oracle<Centre>([](auto& a) { centre(a, Fault::kNone); }),
                          .implementations = {centres("sound", Fault::kNone),
                                              centres("forgets_mean", Fault::kForgetsMean),
                                              centres("writes_first", Fault::kWritesFirst)},
                          .budget = {{"z", {.reduction = V}}},
                          .flops = 2 * Expr(T) * V,
                          .properties = {orthogonality("z", {"1"})}}),
           pass<Turn>("turn", {.oracle = oracle<Turn>([](auto& a) { turn(a, 1, Fault::kNone); }),
                               .implementations = {turns("sound", Fault::kNone),
                                                   turns("stretches", Fault::kStretches),
                                                   turns("turns_even_rows", Fault::kTurnsEvenRows),
                                                   turns("turns_one_way", Fault::kNone)},
                               .budget = {{"q", {}}},
                               .flops = 3 * Expr(T) * V,
                               .properties = {pair_norm({"q"}, halves),
                                              composition({"q"}, {"cos", "sin"}, halves),
                                              relative_position("q", "q")}}),
           pass<TurnBack>(
               "turn_back",
               {.oracle = oracle<TurnBack>([](auto& a) { turn(a, -1, Fault::kNone); }),
                .implementations = {turns_back("sound", -1, Fault::kNone),
                                    turns_back("turns_one_way", 1, Fault::kNone)},
                .budget = {{"q", {}}},
                .flops = 3 * Expr(T) * V,
                .properties = {same_as_pass("negated_angle", "turn", {{"q", "q"}}, {"sin"}),
                               inverts_pass("inverse", "turn", {{"q", "q"}}, halves)}}),
           pass<Stretch>(
               "stretch",
               {.oracle = oracle<Stretch>([](auto& a) { stretch(a, Fault::kNone); }),
                .implementations = {stretches("fused", Fault::kNone),
                                    stretches("fused_trusts_sizes", Fault::kTrustsSizes),
                                    stretches("fused_nearly_one", Fault::kTakesNearlyOneForOne),
                                    stretches("fused_forgets_far", Fault::kForgetsFarRows)},
                .budget = {{"y", {}}},
                .flops = Expr(T) * V})},
  };
}

}  // namespace tigon::relations
