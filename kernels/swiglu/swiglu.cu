// swiglu   y[t,f] = d * silu(g * a[t,f]) * b[t,f],  silu(x) = x * sigmoid(x)   (Shazeer 2020)
//
// A pure stream: each thread reads one vector of every input and writes one of every output.
// Bytes: 3*T*F*elem forward, 5*T*F*elem backward. Arithmetic in float, rounded once.
#include "kernels/swiglu/swiglu.h"

#include "kernels/device/stream_rows.h"
#include "kernels/gated/halves.h"

namespace tigon::swiglu {
namespace {

template <bool kMultiplied>
struct ForwardPiece {
  // They have 64 KB of loads in flight.
  static constexpr auto kShapes =
      stream_shapes(kMultiplied ? "swiglu.forward.multiplied" : "swiglu.forward", 8);

  template <int kWidth, class P>
  static TIGON_DEVICE void piece(const Forward<P>& args, int64_t row, int64_t column) {
    const bool outside = planted("swiglu.gate_multiplier_outside");
    const float gate_multiplier = kMultiplied && !outside ? args.gate_multiplier : 1.0f;
    float up_multiplier = kMultiplied && outside ? args.gate_multiplier : 1.0f;
    if (kMultiplied && !planted("swiglu.down_multiplier_missing"))
      up_multiplier *= args.down_multiplier;
    float a[kWidth], b[kWidth];
    const auto from_a = load_piece_stream<kWidth>(args.a.data + row * args.a.stride[0] + column);
    const auto from_b = load_piece_stream<kWidth>(args.b.data + row * args.b.stride[0] + column);
    issue_loads();
    unpack_piece(from_a, a);
    unpack_piece(from_b, b);
    TIGON_UNROLL
    for (int j = 0; j < kWidth; ++j) {
      const bool swapped = planted("swiglu.gate_and_up_swapped");
      const float gate = (swapped ? b[j] : a[j]) * gate_multiplier;
      const float up = (swapped ? a[j] : b[j]) * up_multiplier;
      float silu = gate * sigmoid(gate);
      if (planted("swiglu.silu_in_bf16")) silu = to_float(from_float<bf16>(silu));
      a[j] = silu * up;
    }
    int64_t offset = row * args.y.stride[0];
    if (planted("swiglu.stride_ignored")) offset = row * args.y.shape[1];
    if (planted("swiglu.offset_in_int32")) offset = static_cast<int32_t>(offset);
    if (planted("swiglu.output_added")) {
      unpack_piece(load_piece<kWidth>(args.y.data + offset + column), b);
      for (int j = 0; j < kWidth; ++j) a[j] += b[j];
    }
    store_piece(args.y.data + offset + column, a);
  }
};

template <bool kMultiplied>
struct BackwardPiece {
  // It needs 40 registers, with multipliers 46; six blocks have 72 KB of loads in flight.
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
      if (planted("swiglu.dy_ignored")) dy[j] = 1.0f;
      if (kMultiplied && !planted("swiglu.down_multiplier_missing")) dy[j] *= args.down_multiplier;
      const float gate = a[j] * gate_multiplier;
      const float s = sigmoid(gate);
      float silu = gate * s;
      if (planted("swiglu.silu_in_bf16")) silu = to_float(from_float<bf16>(silu));
      // One rounding whatever the width of the piece: not left to the compiler.
      const float slope = planted("swiglu.derivative_term_missing") ? s : fmaf(silu, 1.0f - s, s);
      // dy b may overflow where the slope is 0; b slope does not.
      float da = dy[j] * (b[j] * slope);
      if (!planted("swiglu.chain_factor_missing")) da *= gate_multiplier;
      const float db = dy[j] * silu;
      const bool swapped = planted("swiglu.gradients_swapped");
      a[j] = swapped ? db : da;
      b[j] = swapped ? da : db;
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

template Status forward<F32>(const Forward<F32>&, Stream);
template Status forward<BF16>(const Forward<BF16>&, Stream);
template Status forward<F16>(const Forward<F16>&, Stream);
template Status backward<F32>(const Backward<F32>&, Stream);
template Status backward<BF16>(const Backward<BF16>&, Stream);
template Status backward<F16>(const Backward<F16>&, Stream);

}  // namespace tigon::swiglu
