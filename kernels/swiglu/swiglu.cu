// swiglu   y[t,f] = silu(a[t,f]) * b[t,f],  silu(a) = a * sigmoid(a)   (Shazeer 2020)
//
// A pure stream: each thread reads one piece of every input and writes one piece of every output.
// Bytes: 3*T*F*elem forward, 5*T*F*elem backward. Arithmetic in float, rounded once.
#include "kernels/swiglu/swiglu.h"

#include "kernels/device/stream_rows.h"

namespace tigon::swiglu {
namespace {

struct ForwardPiece {
  // They have 64 KB of loads in flight.
  static constexpr int kBlocksPerSm = 8;

  template <int kWidth, class P>
  static TIGON_DEVICE void piece(const Forward<P>& args, int64_t row, int64_t column) {
    float a[kWidth], b[kWidth];
    unpack_piece(load_piece_stream<kWidth>(args.a.data + row * args.a.stride[0] + column), a);
    unpack_piece(load_piece_stream<kWidth>(args.b.data + row * args.b.stride[0] + column), b);
    TIGON_UNROLL
    for (int j = 0; j < kWidth; ++j) {
      const bool swapped = planted("swiglu.gate_and_up_swapped");
      const float gate = swapped ? b[j] : a[j], up = swapped ? a[j] : b[j];
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

struct BackwardPiece {
  // It needs 40 registers; six blocks have 72 KB of loads in flight.
  static constexpr int kBlocksPerSm = 6;

  // da and db may be a's and b's memory: every element is read by the thread that overwrites it,
  // before it does.
  template <int kWidth, class P>
  static TIGON_DEVICE void piece(const Backward<P>& args, int64_t row, int64_t column) {
    float a[kWidth], b[kWidth], dy[kWidth];
    unpack_piece(load_piece_stream<kWidth>(args.dy.data + row * args.dy.stride[0] + column), dy);
    unpack_piece(load_piece_stream<kWidth>(args.a.data + row * args.a.stride[0] + column), a);
    unpack_piece(load_piece_stream<kWidth>(args.b.data + row * args.b.stride[0] + column), b);
    TIGON_UNROLL
    for (int j = 0; j < kWidth; ++j) {
      if (planted("swiglu.dy_ignored")) dy[j] = 1.0f;
      const float s = sigmoid(a[j]);
      float silu = a[j] * s;
      if (planted("swiglu.silu_in_bf16")) silu = to_float(from_float<bf16>(silu));
      // One rounding whatever the width of the piece: not left to the compiler.
      const float slope = planted("swiglu.derivative_term_missing") ? s : fmaf(silu, 1.0f - s, s);
      const float da = dy[j] * b[j] * slope, db = dy[j] * silu;
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
  const int64_t t = args.a.shape[0], f = args.a.shape[1];
  if (t < 0 || f < 1) return invalid("a must be [T, F] with T >= 0 and F >= 1");
  if (!has_shape(args.a, t, f) || !has_shape(args.b, t, f) || !has_shape(args.y, t, f))
    return invalid("a, b and y must all be [T, F] with unit stride along F");
  return stream_rows<ForwardPiece>(args, stream, args.a, args.b, args.y);
}

template <class P>
Status backward(const Backward<P>& args, Stream stream) {
  const int64_t t = args.a.shape[0], f = args.a.shape[1];
  if (t < 0 || f < 1) return invalid("a must be [T, F] with T >= 0 and F >= 1");
  if (!has_shape(args.dy, t, f) || !has_shape(args.a, t, f) || !has_shape(args.b, t, f) ||
      !has_shape(args.da, t, f) || !has_shape(args.db, t, f))
    return invalid("dy, a, b, da and db must all be [T, F] with unit stride along F");
  return stream_rows<BackwardPiece>(args, stream, args.dy, args.a, args.b, args.da, args.db);
}

template Status forward<F32>(const Forward<F32>&, Stream);
template Status forward<BF16>(const Forward<BF16>&, Stream);
template Status forward<F16>(const Forward<F16>&, Stream);
template Status backward<F32>(const Backward<F32>&, Stream);
template Status backward<BF16>(const Backward<BF16>&, Stream);
template Status backward<F16>(const Backward<F16>&, Stream);

}  // namespace tigon::swiglu
