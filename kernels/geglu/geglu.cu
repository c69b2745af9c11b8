// SPDX-License-Identifier: Apache-2.0
// geglu   y[t,f] = d * gelu(g * a[t,f]) * b[t,f],  gelu(x) = x * Phi(x)   (Shazeer 2020)
//
// A pure stream: each thread reads one vector of every input and writes one of every output.
// Bytes: 3*T*F*elem forward, 5*T*F*elem backward. Arithmetic in float, rounded once.
#include "kernels/geglu/geglu.h"

#include "kernels/gated/halves.h"
#include "kernels/gated/stream_rows.h"
#include "kernels/signature/instantiate.h"

namespace tigon::geglu {
namespace {

// Phi(a) and Phi'(a).
struct Normal {
  float cdf, derivative;
};

// (1 + tanh(u)) / 2 = sigmoid(2 u), which keeps its digits where tanh is near -1; sigmoid(-2 u) is
// made beside it, because 1 - sigmoid would lose them on the other side. They are 0 and 1 also
// where a^3 overflows; the derivative is 0 from 30 on, where its factor must not be infinite.
TIGON_DEVICE Normal normal_by_tanh(float a) {
  constexpr float kSlope = 1.5957691216f;  // 2 sqrt(2 / pi)
  const float cubic = 0.044715f;
  const float z = kSlope * a * fmaf(cubic * a, a, 1.0f);
  const float e = fast_exp(-fabsf(z));
  const float larger = fast_div_normal(1.0f, 1.0f + e), smaller = e * larger;
  const float factor = kSlope * fmaf(3.0f * cubic, fminf(a * a, 900.0f), 1.0f);
  return {z < 0.0f ? smaller : larger, larger * smaller * factor};
}

TIGON_DEVICE Normal normal_by_erf(float a) {
  constexpr float kDensity = 0.3989422804f;  // 1 / sqrt(2 pi)
  return {0.5f * erfcf(a * -0.7071067812f), kDensity * fast_exp(-0.5f * a * a)};
}

template <Approximate kApproximate>
TIGON_DEVICE Normal normal(float a) {
  return kApproximate == Approximate::kTanh ? normal_by_tanh(a) : normal_by_erf(a);
}

template <Approximate kApproximate, bool kMultiplied>
struct ForwardPiece {
  static constexpr bool kTanh = kApproximate == Approximate::kTanh;
  static constexpr auto kShapes =
      kMultiplied
          ? stream_shapes(kTanh ? "geglu.forward.tanh.multiplied" : "geglu.forward.erf.multiplied",
                          kTanh ? 8 : 5)
          : stream_shapes(kTanh ? "geglu.forward.tanh" : "geglu.forward.erf", kTanh ? 8 : 6);

  template <int kWidth, class P>
  static TIGON_DEVICE void piece(const Forward<P>& args, int64_t row, int64_t column) {
    const float gate_multiplier = kMultiplied ? args.gate_multiplier : 1.0f;
    const float up_multiplier = kMultiplied ? args.down_multiplier : 1.0f;
    float a[kWidth], b[kWidth];
    const auto from_a = load_piece_stream<kWidth>(args.a.data + row * args.a.stride[0] + column);
    const auto from_b = load_piece_stream<kWidth>(args.b.data + row * args.b.stride[0] + column);
    issue_loads();
    unpack_piece(from_a, a);
    unpack_piece(from_b, b);
    TIGON_UNROLL
    for (int j = 0; j < kWidth; ++j) {
      const float gate = a[j] * gate_multiplier;
      const float up = b[j] * up_multiplier;
      float gelu = gate * normal<kApproximate>(gate).cdf;
      a[j] = gelu * up;
    }
    const int64_t offset = row * args.y.stride[0];
    store_piece(args.y.data + offset + column, a);
  }
};

template <Approximate kApproximate, bool kMultiplied>
struct BackwardPiece {
  static constexpr bool kTanh = kApproximate == Approximate::kTanh;
  static constexpr auto kShapes = stream_shapes(
      kMultiplied ? (kTanh ? "geglu.backward.tanh.multiplied" : "geglu.backward.erf.multiplied")
                  : (kTanh ? "geglu.backward.tanh" : "geglu.backward.erf"),
      kTanh ? 5 : 4);

  // da and db may be a's and b's memory: every element is read by the thread that overwrites it,
  // before it does.
  template <int kWidth, class P>
  static TIGON_DEVICE void piece(const Backward<P>& args, int64_t row, int64_t column) {
    const float gate_multiplier = kMultiplied ? args.gate_multiplier : 1.0f;
    float a[kWidth], b[kWidth], dy[kWidth];
    const auto from_dy = load_piece_stream<kWidth>(args.dy.data + row * args.dy.stride[0] + column);
    const auto from_a = load_piece_stream<kWidth>(args.a.data + row * args.a.stride[0] + column);
    const auto from_b = load_piece_stream<kWidth>(args.b.data + row * args.b.stride[0] + column);
    issue_loads();
    unpack_piece(from_dy, dy);
    unpack_piece(from_a, a);
    unpack_piece(from_b, b);
    TIGON_UNROLL
    for (int j = 0; j < kWidth; ++j) {
      if (kMultiplied) dy[j] *= args.down_multiplier;
      const float gate = a[j] * gate_multiplier;
      const Normal n = normal<kApproximate>(gate);
      // gate * 0 is NaN for an infinite gate, and its limit is 0. One rounding whatever the width
      // of the piece: left to itself, a compiler contracts the sum in one of them only.
      const float slope = n.derivative == 0.0f ? n.cdf : fmaf(gate, n.derivative, n.cdf);
      const float gelu = gate * n.cdf;
      // dy b may overflow where the slope is 0; b slope does not.
      float da = dy[j] * (b[j] * slope);
      da *= gate_multiplier;
      const float db = dy[j] * gelu;
      a[j] = da;
      b[j] = db;
    }
    store_piece(args.da.data + row * args.da.stride[0] + column, a);
    store_piece(args.db.data + row * args.db.stride[0] + column, b);
  }
};

}  // namespace

template <class P>
Status forward(const Forward<P>& args, Stream stream) {
  Forward<P> halves = args;
  if (Status bad = take_forward(&halves); !bad.ok()) return bad;
  return with_multipliers(args, [&]<bool kMultiplied> {
    const auto run = [&]<Approximate kApproximate> {
      return stream_rows<ForwardPiece<kApproximate, kMultiplied>>(halves, stream, halves.a,
                                                                  halves.b, halves.y);
    };
    return args.approximate == Approximate::kTanh ? run.template operator()<Approximate::kTanh>()
                                                  : run.template operator()<Approximate::kNone>();
  });
}

template <class P>
Status backward(const Backward<P>& args, Stream stream) {
  Backward<P> halves = args;
  if (Status bad = take_backward(&halves); !bad.ok()) return bad;
  return with_multipliers(args, [&]<bool kMultiplied> {
    const auto run = [&]<Approximate kApproximate> {
      return stream_rows<BackwardPiece<kApproximate, kMultiplied>>(
          halves, stream, halves.dy, halves.a, halves.b, halves.da, halves.db);
    };
    return args.approximate == Approximate::kTanh ? run.template operator()<Approximate::kTanh>()
                                                  : run.template operator()<Approximate::kNone>();
  });
}

TIGON_INSTANTIATE(forward, Forward);
TIGON_INSTANTIATE(backward, Backward);

}  // namespace tigon::geglu
