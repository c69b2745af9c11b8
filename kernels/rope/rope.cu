// rope   (x1, x2) = halves of a head;  x1' = x1 cos - x2 sin,  x2' = x2 cos + x1 sin;
//        backward turns the other way: sin becomes -sin   (Su et al. 2021)
//
// A thread owns one piece of the first half and its partner in the second; it reads cos and sin
// once and turns those pieces of up to four heads, all loaded before the first is stored. q and k
// in one launch, in place. Bytes: 2*T*(Q+K)*D*elem + 4*T*D. Arithmetic in float, rounded once.
#include "kernels/rope/rope.h"

#include <algorithm>
#include <type_traits>

#include "kernels/device/device.h"
#include "kernels/device/pieces.h"
#include "kernels/signature/checks.h"

namespace tigon::rope {
namespace {

constexpr int kThreads = 256;  // the most per block
constexpr int kHeads = 4;      // per thread: 128 bytes of loads in flight, 93 registers
constexpr int64_t kMost = int64_t{1} << 29;  // tokens, and heads of either: they are counted in int

// How the threads of a block lie over tokens, heads and columns.
struct Geometry {
  int columns;         // pieces of a half that run side by side
  int heads;           // heads that run side by side
  int tokens;          // tokens of a block
  int64_t all_pieces;  // pieces of a half
  int threads() const { return columns * heads * tokens; }
};

// Tokens are added to a block until it has about kThreads threads.
Geometry geometry(int64_t heads, int64_t pieces) {
  Geometry g;
  g.all_pieces = pieces;
  g.columns = static_cast<int>(std::min<int64_t>(pieces, kThreads));
  g.heads =
      static_cast<int>(std::min<int64_t>(ceil_div(heads, int64_t{kHeads}), kThreads / g.columns));
  g.tokens = kThreads / (g.columns * g.heads);
  return g;
}

template <class T>
struct Heads {
  View<T, 3> q, k;  // [T, Q, D], [T, K, D]

  // Head `head` of a token: those of k follow those of q.
  TIGON_DEVICE T* row(int64_t token, int head) const {
    const int of_k = head - static_cast<int>(q.shape[1]);
    const int64_t k_token = planted("rope.k_has_stride_of_q") ? q.stride[0] : k.stride[0];
    if (planted("rope.offset_in_int32") && of_k < 0)
      return q.data + static_cast<int32_t>(token * q.stride[0]) + head * q.stride[1];
    return of_k < 0 ? q.data + token * q.stride[0] + head * q.stride[1]
                    : k.data + token * k_token + of_k * k.stride[1];
  }
};

// kWidth angles of one token; those of 16-bit elements are two vectors.
template <int kWidth>
TIGON_DEVICE void load_angles(const float* p, float (&f)[kWidth]) {
  constexpr int kStep = kWidth == 1 ? 1 : kVec<float>;
  TIGON_UNROLL
  for (int j = 0; j < kWidth; j += kStep) {
    float part[kStep];
    unpack_piece(load_piece<kStep>(p + j), part);
    TIGON_UNROLL
    for (int i = 0; i < kStep; ++i) f[j + i] = part[i];
  }
}

// direction: 1 forward, -1 backward.
template <class T, int kWidth>
TIGON_KERNEL(kThreads)
turn_kernel(Heads<T> x, View<const float, 2> cos, View<const float, 2> sin, float direction,
            Geometry g) {
  const int in_token = threadIdx.x % (g.columns * g.heads);
  const int64_t token =
      static_cast<int64_t>(blockIdx.x) * g.tokens + threadIdx.x / (g.columns * g.heads);
  if (token >= cos.shape[0]) return;
  const int64_t half = planted("rope.neighbours_paired") ? kWidth : g.all_pieces * kWidth;
  const int heads = static_cast<int>(x.q.shape[1] + x.k.shape[1]) - planted("rope.last_head_lost") +
                    planted("rope.head_overrun");
  for (int64_t piece = in_token % g.columns; piece < g.all_pieces; piece += g.columns) {
    const int64_t column = piece * kWidth;
    const int64_t low_column = planted("rope.neighbours_paired") ? 2 * column : column;
    const int64_t position = planted("rope.position_ignored") ? 0 : token;
    float c[kWidth], s[kWidth];
    load_angles(cos.data + position * cos.stride[0] + column, c);
    load_angles(sin.data + position * sin.stride[0] + column, s);
    for (int j = 0; j < kWidth && planted("rope.angles_in_bf16"); ++j) {
      c[j] = to_float(from_float<bf16>(c[j]));
      s[j] = to_float(from_float<bf16>(s[j]));
    }
    TIGON_UNROLL
    for (int j = 0; j < kWidth; ++j) s[j] *= planted("rope.sin_sign") ? -direction : direction;

    for (int first = in_token / g.columns; first < heads; first += kHeads * g.heads) {
      Piece<T, kWidth> low[kHeads], high[kHeads];
      TIGON_UNROLL
      for (int i = 0; i < kHeads; ++i)
        if (const int head = first + i * g.heads; head < heads) {
          const T* row = x.row(token, head) + low_column;
          low[i] = load_piece_stream<kWidth>(row);
          high[i] = load_piece_stream<kWidth>(row + half);
        }
      TIGON_UNROLL
      for (int i = 0; i < kHeads; ++i)
        if (const int head = first + i * g.heads; head < heads) {
          float x1[kWidth], x2[kWidth];
          unpack_piece(low[i], x1);
          unpack_piece(high[i], x2);
          TIGON_UNROLL
          for (int j = 0; j < kWidth; ++j) {
            const float turned = x1[j] * c[j] - x2[j] * s[j];
            x2[j] = x2[j] * c[j] + (planted("rope.read_after_write") ? turned : x1[j]) * s[j];
            x1[j] = turned;
          }
          T* row = x.row(token, head) + low_column;
          store_piece(row, x1);
          store_piece(row + half, x2);
        }
    }
  }
}

template <class T>
Status check(const Heads<T>& x, const View<const float, 2>& cos, const View<const float, 2>& sin) {
  const int64_t t = x.q.shape[0], d = x.q.shape[2];
  if (t < 0 || x.q.shape[1] < 0 || x.k.shape[1] < 0) return invalid("a size is negative");
  if (d < 2 || d % 2 != 0) return invalid("the head size D must be even and at least 2");
  if (!has_shape(x.q, t, x.q.shape[1], d) || !has_shape(x.k, t, x.k.shape[1], d))
    return invalid("q must be [T, Q, D] and k [T, K, D] with unit stride along D");
  if (!has_shape(cos, t, d / 2) || !has_shape(sin, t, d / 2))
    return invalid("cos and sin must both be [T, D/2] with unit stride along D");
  if (is_missing(x.q) || is_missing(x.k) || is_missing(cos) || is_missing(sin))
    return invalid("a tensor is null: q, k, cos and sin are required");
  if (t > kMost) return unsupported("q has too many tokens: at most 2^29");
  if (x.q.shape[1] > kMost || x.k.shape[1] > kMost)
    return unsupported("q or k has too many heads: at most 2^29");
  return {};
}

template <class T>
Status turn(const Heads<T>& x, const View<const float, 2>& cos, const View<const float, 2>& sin,
            float direction, Stream stream) {
  if (Status bad = check(x, cos, sin); !bad.ok()) return bad;
  const int64_t heads = x.q.shape[1] + x.k.shape[1], half = x.q.shape[2] / 2;
  if (cos.shape[0] == 0 || heads == 0) return {};
  const auto run = [&]<int kWidth>(std::integral_constant<int, kWidth>) {
    const Geometry g = geometry(heads, half / kWidth);
    const auto blocks = static_cast<unsigned>(ceil_div(cos.shape[0], int64_t{g.tokens}));
    return launch({dim3(blocks), dim3(static_cast<unsigned>(g.threads())), 0, stream},
                  turn_kernel<T, kWidth>, x, cos, sin, direction, g);
  };
  const bool unchecked = planted("rope.alignment_unchecked");
  const bool aligned =
      half % kVec<T> == 0 && (unchecked || (rows_aligned16(x.q) && rows_aligned16(x.k) &&
                                            rows_aligned16(cos) && rows_aligned16(sin)));
  return aligned ? run(std::integral_constant<int, kVec<T>>{})
                 : run(std::integral_constant<int, 1>{});
}

}  // namespace

template <class P>
Status forward(const Forward<P>& args, Stream stream) {
  return turn(Heads<typename P::Elem>{args.q, args.k}, args.cos, args.sin, 1.0f, stream);
}

template <class P>
Status backward(const Backward<P>& args, Stream stream) {
  const float direction = planted("rope.backward_turns_forward") ? 1.0f : -1.0f;
  return turn(Heads<typename P::Elem>{args.dq, args.dk}, args.cos, args.sin, direction, stream);
}

template Status forward<F32>(const Forward<F32>&, Stream);
template Status forward<BF16>(const Forward<BF16>&, Stream);
template Status forward<F16>(const Forward<F16>&, Stream);
template Status backward<F32>(const Backward<F32>&, Stream);
template Status backward<BF16>(const Backward<BF16>&, Stream);
template Status backward<F16>(const Backward<F16>&, Stream);

}  // namespace tigon::rope
