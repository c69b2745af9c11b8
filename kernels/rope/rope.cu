// SPDX-License-Identifier: Apache-2.0
// rope   a pair (x1, x2) of a head:  x1' = x1 cos - x2 sin,  x2' = x2 cos + x1 sin;
//        backward rotates the other way: sin becomes -sin   (Su et al. 2021)
//
// A thread has two vectors of a head that hold whole pairs, and the same two of another head of its
// token. It loads all four before it stores the first, and reads their angles once. One launch
// rotates q and k. Out of place it also copies the columns that are not rotated.
// Bytes: 2*T*(Q+K)*R*elem + 4*T*R in place, R = D out of place. Arithmetic in float, rounded once.
#include "kernels/rope/rope.h"

#include <algorithm>

#include "kernels/device/device.h"
#include "kernels/device/launch_table.h"
#include "kernels/device/pieces.h"
#include "kernels/rope/angles.h"
#include "kernels/signature/checks.h"
#include "kernels/signature/instantiate.h"

namespace tigon::rope {
namespace {

// The most threads of a block. Four blocks of 256 per SM leave each thread 64 registers and have
// 64 KB of loads in flight; smaller blocks are for `tigon tune`.
constexpr ShapeTable<3> kShapes = {
    .name = "rope",
    .shapes =
        {
            {.lanes = 256, .vectors = 4, .blocks_per_sm = 4},
            {.lanes = 128, .vectors = 4, .blocks_per_sm = 8},
            {.lanes = 64, .vectors = 4, .blocks_per_sm = 16},
        },
};
constexpr int kHeads = 2;  // per thread: two pieces of each, 64 bytes
constexpr int64_t kMaxCount = int64_t{1}
                              << 29;   // tokens, and heads of either: they are counted in int
constexpr int64_t kMaxBlocks = 65535;  // of a token: blocks along y

// How threads lie over tokens, heads and columns: a token has pieces * groups of them, which are
// some of a block or several blocks.
struct Geometry {
  int64_t all_tokens;
  int tokens;   // of a block
  int rotated;  // piece pairs of a head that are rotated
  int pieces;   // and those that are copied
  int groups;   // of kHeads heads, which are `groups` apart
};

template <class T>
struct Heads {
  View<T, 3> q, k;  // [T, Q, D], [T, K, D]

  // Head `head` of a token: those of k follow those of q.
  TIGON_DEVICE T* row(int64_t token, int head) const {
    const int of_k = head - static_cast<int>(q.shape[1]);
    return of_k < 0 ? q.data + token * q.stride[0] + head * q.stride[1]
                    : k.data + token * k.stride[0] + of_k * k.stride[1];
  }
};

// Where a thread's two pieces begin in a head, and whether they are rotated.
struct Columns {
  int low, high;
  bool rotated;
};

template <int kWidth, bool kInterleaved>
TIGON_DEVICE Columns columns_of(int piece, const Geometry& g) {
  if (piece >= g.rotated || kInterleaved) {
    const int low = piece * 2 * kWidth;
    return {low, low + kWidth, piece < g.rotated};
  }
  const int half = g.rotated * kWidth;
  return {piece * kWidth, piece * kWidth + half, true};
}

// The first and the second of each pair in two pieces, and back.
template <bool kInterleaved, class T, int kWidth>
TIGON_DEVICE void unpack_pairs(const Piece<T, kWidth>& low, const Piece<T, kWidth>& high,
                               float (&x1)[kWidth], float (&x2)[kWidth]) {
  if constexpr (kInterleaved && kWidth > 1) {
    float x[2][kWidth];
    unpack_piece(low, x[0]);
    unpack_piece(high, x[1]);
    TIGON_UNROLL
    for (int j = 0; j < kWidth; ++j) {
      x1[j] = x[2 * j / kWidth][2 * j % kWidth];
      x2[j] = x[2 * j / kWidth][2 * j % kWidth + 1];
    }
  } else {
    unpack_piece(low, x1);
    unpack_piece(high, x2);
  }
}
template <bool kInterleaved, class T, int kWidth>
TIGON_DEVICE void store_pairs(T* low, T* high, float (&x1)[kWidth], float (&x2)[kWidth]) {
  if constexpr (kInterleaved && kWidth > 1) {
    float x[2][kWidth];
    TIGON_UNROLL
    for (int j = 0; j < kWidth; ++j) {
      x[2 * j / kWidth][2 * j % kWidth] = x1[j];
      x[2 * j / kWidth][2 * j % kWidth + 1] = x2[j];
    }
    store_piece(low, x[0]);
    store_piece(high, x[1]);
  } else {
    store_piece(low, x1);
    store_piece(high, x2);
  }
}

// The heads of one token that a thread has: `first` and each `step` further on, of `count` in all.
struct HeadGroup {
  int first, step, count;

  // f(i, head) of the i-th of them.
  template <class F>
  TIGON_DEVICE void for_each(const F& f) const {
    TIGON_UNROLL
    for (int i = 0; i < kHeads; ++i)
      if (const int head = first + i * step; head < count) f(i, head);
  }
};

// The contraction is written out, so that every instantiation gives the same bits.
template <int kWidth>
TIGON_DEVICE void rotate_pairs(float (&x1)[kWidth], float (&x2)[kWidth], const float (&c)[kWidth],
                               const float (&s)[kWidth]) {
  TIGON_UNROLL
  for (int j = 0; j < kWidth; ++j) {
    const float rotated = fmaf(x1[j], c[j], -(x2[j] * s[j]));
    x2[j] = fmaf(x2[j], c[j], x1[j] * s[j]);
    x1[j] = rotated;
  }
}

// direction: 1 forward, -1 backward. `to` is `from` in place.
template <class T, int kWidth, bool kInterleaved, int kThreads, int kBlocksPerSm>
TIGON_KERNEL(kThreads, kBlocksPerSm)
rotate_kernel(Heads<T> from, Heads<T> to, Angles angles, float direction, Geometry g) {
  const int per_token = g.pieces * g.groups;
  const int64_t token =
      static_cast<int64_t>(blockIdx.x) * g.tokens + static_cast<int>(threadIdx.x) / per_token;
  const int in_token =
      static_cast<int>(blockIdx.y * blockDim.x) + static_cast<int>(threadIdx.x) % per_token;
  if (token >= g.all_tokens || in_token >= per_token) return;
  const int piece = in_token % g.pieces, group = in_token / g.pieces;
  const Columns at = columns_of<kWidth, kInterleaved>(piece, g);
  const HeadGroup heads = {group, g.groups, static_cast<int>(from.q.shape[1] + from.k.shape[1])};

  Piece<T, kWidth> low[kHeads], high[kHeads];
  heads.for_each([&](int i, int head) {
    const T* row = from.row(token, head);
    low[i] = load_piece_stream<kWidth>(row + at.low);
    high[i] = load_piece_stream<kWidth>(row + at.high);
  });
  if (!at.rotated) {
    heads.for_each([&](int i, int head) {
      T* row = to.row(token, head);
      store_packed(row + at.low, low[i]);
      store_packed(row + at.high, high[i]);
    });
    return;
  }

  float c[kWidth], s[kWidth];
  angles.load(token, piece * kWidth, c, s);
  TIGON_UNROLL
  for (int j = 0; j < kWidth; ++j) s[j] *= direction;
  heads.for_each([&](int i, int head) {
    float x1[kWidth], x2[kWidth];
    unpack_pairs<kInterleaved>(low[i], high[i], x1, x2);
    rotate_pairs(x1, x2, c, s);
    T* row = to.row(token, head);
    store_pairs<kInterleaved>(row + at.low, row + at.high, x1, x2);
  });
}

// `rotated`: columns that are rotated.
Status check_angles(const Angles& a, int64_t tokens, int64_t rotated) {
  const int64_t half = rotated / 2, rows = a.positions ? a.cos.shape[0] : tokens;
  if (!has_shape(a.cos, rows, half) || !has_shape(a.sin, rows, half))
    return invalid(
        "cos and sin must both be [T, R/2], with positions [S, R/2], with unit stride along R");
  if (is_missing(a.cos) || is_missing(a.sin))
    return invalid("a tensor is null: q, k, cos and sin are required");
  if (a.height < 0 || a.width < 0) return invalid("height and width must be 0 or more");
  if (a.has_sections() && !a.positions && tokens > 0)
    return invalid("height and width need positions");
  if (a.positions && !has_shape(a.positions, a.has_sections() ? 3 : 1, tokens))
    return invalid(
        "positions must be [1, T], with height or width [3, T], with unit stride along T");
  if (!sections_fit(half, a.height, a.width, a.sections))
    return invalid(
        "height and width must fit into the R/2 pairs: both together, or interleaved each into "
        "every third of them");
  return {};
}

template <class T>
Status check(const Heads<T>& x, const Heads<T>& out, int rotary) {
  const int64_t t = x.q.shape[0], d = x.q.shape[2];
  if (t < 0 || x.q.shape[1] < 0 || x.k.shape[1] < 0) return invalid("a size is negative");
  if (d < 2 || d % 2 != 0) return invalid("the head size D must be even and at least 2");
  if (rotary < 0 || rotary > d || rotary % 2 != 0)
    return invalid("rotary must be even and at most the head size D");
  if (!has_shape(x.q, t, x.q.shape[1], d) || !has_shape(x.k, t, x.k.shape[1], d))
    return invalid("q must be [T, Q, D] and k [T, K, D] with unit stride along D");
  if ((out.q && !has_shape(out.q, t, x.q.shape[1], d)) ||
      (out.k && !has_shape(out.k, t, x.k.shape[1], d)))
    return invalid("q_out must have the shape of q and k_out that of k");
  if (is_missing(x.q) || is_missing(x.k))
    return invalid("a tensor is null: q, k, cos and sin are required");
  if (t > kMaxCount) return unsupported("q has too many tokens: at most 2^29");
  if (x.q.shape[1] > kMaxCount || x.k.shape[1] > kMaxCount)
    return unsupported("q or k has too many heads: at most 2^29");
  return {};
}

template <class T>
bool aligned16(const Heads<T>& x) {
  return rows_aligned16(x.q) && rows_aligned16(x.k);
}

// A launch of rotate_kernel; `pieces` and `groups` as in Geometry.
template <class T, int kWidth, LaunchShape kShape>
Status launch_rotate(const Heads<T>& from, const Heads<T>& to, const Angles& angles,
                     Pairing pairing, float direction, int64_t pieces, int64_t groups,
                     Stream stream) {
  constexpr int64_t kThreads = kShape.lanes;
  const int64_t per_token = pieces * groups, tokens = std::max<int64_t>(kThreads / per_token, 1);
  const Geometry g{from.q.shape[0], static_cast<int>(tokens),
                   static_cast<int>(angles.cos.shape[1] / kWidth), static_cast<int>(pieces),
                   static_cast<int>(groups)};
  const LaunchConfig config{dim3(static_cast<unsigned>(ceil_div(g.all_tokens, tokens)),
                                 static_cast<unsigned>(ceil_div(per_token, kThreads))),
                            dim3(static_cast<unsigned>(std::min(tokens * per_token, kThreads))), 0,
                            stream};
  const auto run = [&]<bool kInterleaved> {
    return launch(config,
                  rotate_kernel<T, kWidth, kInterleaved, kShape.lanes, kShape.blocks_per_sm>, from,
                  to, angles, direction, g);
  };
  return pairing == Pairing::kInterleaved ? run.template operator()<true>()
                                          : run.template operator()<false>();
}

template <class T, int kWidth>
Status run(const Heads<T>& from, const Heads<T>& to, const Angles& angles, const Options& o,
           int64_t copied, float direction, Stream stream) {
  const int64_t pieces = angles.cos.shape[1] / kWidth + copied / (2 * kWidth);
  const int64_t groups = ceil_div(from.q.shape[1] + from.k.shape[1], int64_t{kHeads});
  const auto fits = [&](size_t shape) {
    return pieces <= kMaxBlocks * kShapes.shapes[shape].lanes / groups;
  };
  if (!fits(0)) return unsupported("a token has too many elements");
  const auto launch_shape = [&]<LaunchShape kShape> {
    return launch_rotate<T, kWidth, kShape>(from, to, angles, o.pairing, direction, pieces, groups,
                                            stream);
  };
  if constexpr (kWidth == 1)
    return launch_shape.template operator()<kShapes.shapes[0]>();
  else
    return with_shape<kShapes>(chosen_shape<kShapes>(pieces * groups, 0, fits), launch_shape);
}

// `out` is where the results go; a tensor without data is rotated in place.
template <class T>
Status rotate(const Heads<T>& x, const Heads<T>& out, const Angles& angles, const Options& o,
              float direction, Stream stream) {
  const int64_t d = x.q.shape[2], rotated = o.rotary > 0 ? o.rotary : d;
  if (Status bad = check(x, out, o.rotary); !bad.ok()) return bad;
  if (Status bad = check_angles(angles, x.q.shape[0], rotated); !bad.ok()) return bad;
  if (x.q.shape[1] + x.k.shape[1] == 0) return {};
  const Heads<T> to{out.q ? out.q : x.q, out.k ? out.k : x.k};
  const int64_t copied = (out.q || out.k) ? d - rotated : 0;
  const bool aligned =
      aligned16(x) && aligned16(to) && rows_aligned16(angles.cos) && rows_aligned16(angles.sin);
  return aligned && rotated / 2 % kVec<T> == 0 && copied / 2 % kVec<T> == 0
             ? run<T, kVec<T>>(x, to, angles, o, copied, direction, stream)
             : run<T, 1>(x, to, angles, o, copied, direction, stream);
}

}  // namespace

template <class P>
Status forward(const Forward<P>& a, Stream stream) {
  using Both = Heads<typename P::Elem>;
  return rotate(Both{a.q, a.k}, Both{a.q_out, a.k_out},
                Angles{a.cos, a.sin, a.positions, a.height, a.width, a.sections}, a, 1.0f, stream);
}

template <class P>
Status backward(const Backward<P>& a, Stream stream) {
  using Both = Heads<typename P::Elem>;
  const float direction = -1.0f;
  return rotate(Both{a.dq, a.dk}, Both{a.dq_out, a.dk_out},
                Angles{a.cos, a.sin, a.positions, a.height, a.width, a.sections}, a, direction,
                stream);
}

TIGON_INSTANTIATE(forward, Forward);
TIGON_INSTANTIATE(backward, Backward);

}  // namespace tigon::rope
