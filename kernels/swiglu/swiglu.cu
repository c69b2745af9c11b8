// SPDX-License-Identifier: Apache-2.0
// swiglu   y[t,f] = d * silu(g * a[t,f]) * b[t,f],  silu(x) = x * sigmoid(x)   (Shazeer 2020)
//
// A pure stream: each thread reads one vector of every input and writes one of every output.
// Bytes: 3*T*F*elem forward, 5*T*F*elem backward. Arithmetic in float, rounded once.
#include "kernels/swiglu/swiglu.h"

#include "kernels/gated/halves.h"
#include "kernels/gated/stream_rows.h"
#include "kernels/signature/instantiate.h"

namespace tigon::swiglu {
namespace {

template <bool kMultiplied>
struct ForwardPiece {
  // They have 64 KB of loads in flight.
  static constexpr auto kShapes =
      stream_shapes(kMultiplied ? "swiglu.forward.multiplied" : "swiglu.forward", 8);

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
      float silu = gate * sigmoid(gate);
      a[j] = silu * up;
    }
    const int64_t offset = row * args.y.stride[0];
    store_piece(args.y.data + offset + column, a);
  }
};

template <bool kMultiplied>
struct BackwardPiece {
  // As many blocks as its registers leave room for; with multipliers it needs more.
  static constexpr auto kShapes = kMultiplied ? stream_shapes("swiglu.backward.multiplied", 5)
                                              : stream_shapes("swiglu.backward", 6);

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
      const float s = sigmoid(gate);
      float silu = gate * s;
      // One rounding whatever the width of the piece: not left to the compiler.
      const float slope = fmaf(silu, 1.0f - s, s);
      // dy b may overflow where the slope is 0; b slope does not.
      float da = dy[j] * (b[j] * slope);
      da *= gate_multiplier;
      const float db = dy[j] * silu;
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
    return stream_rows<ForwardPiece<kMultiplied>>(halves, stream, halves.a, halves.b, halves.y);
  });
}

template <class P>
Status backward(const Backward<P>& args, Stream stream) {
  Backward<P> halves = args;
  if (Status bad = take_backward(&halves); !bad.ok()) return bad;
  return with_multipliers(args, [&]<bool kMultiplied> {
    return stream_rows<BackwardPiece<kMultiplied>>(halves, stream, halves.dy, halves.a, halves.b,
                                                   halves.da, halves.db);
  });
}

TIGON_INSTANTIATE(forward, Forward);
TIGON_INSTANTIATE(backward, Backward);

}  // namespace tigon::swiglu
