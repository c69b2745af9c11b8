// SPDX-License-Identifier: Apache-2.0
// Every function template of the device layer with every type, so that a compiler sees all of it.
// Compiled only.
#include "kernels/device/device.h"

namespace tigon::device_tests {

namespace {

template <class T>
TIGON_DEVICE void vectors(const T* in, T* out) {
  typename Computed<T>::Type f[kVec<T>];
  unpack(load16(in), f);
  store16(out, pack<T>(f));
  const Vec<T> v = load16_stream(in + kVec<T>);
  unpack(v, f);
  store16(out + kVec<T>, pack<T>(f));
  out[0] = v[0];
  if (is_aligned16(in)) store(out, load_stream(in));
}

template <class T>
TIGON_DEVICE void elements(const T* in, T* out) {
  store(out, load(in));
  store(out + 1, load_stream(in + 1));
}

template <class T>
TIGON_DEVICE void floats(const T* in, T* out) {
  vectors(in, out);
  elements(in, out);
  store(out, from_float<T>(to_float(load(in))));
}

struct Triple {
  float a, b, c;
};
struct Add {
  TIGON_DEVICE Triple operator()(Triple x, Triple y) const {
    return {x.a + y.a, x.b + y.b, x.c + y.c};
  }
};

template <int kThreads>
TIGON_KERNEL(kThreads, 2)
every_function(const float* f, const bf16* b, const f16* h, const double* d, const int64_t* i64,
               const int32_t* i32, const uint8_t* u8, float* fo, bf16* bo, f16* ho, double* dout,
               int64_t* i64o, int32_t* i32o, uint8_t* u8o) {
  dependency_wait();
  floats(f, fo);
  floats(b, bo);
  floats(h, ho);
  vectors(d, dout);
  elements(d, dout);
  elements(i64, i64o);
  elements(i32, i32o);
  elements(u8, u8o);

  const float x = f[threadIdx.x];
  fo[0] = fast_exp(x) + fast_exp2(x) + fast_log(x) + fast_log2(x) + fast_div(1.0f, x) +
          fast_rsqrt(x) + fast_tanh(x) + sigmoid(x);

  TIGON_SHARED(Triple, scratch, [kThreads / 32]);
  const Triple t = block_reduce<kThreads>(Triple{x, x, x}, Add{}, scratch);
  fo[1] = t.a + warp_reduce(t, Add{}).b + warp_reduce<4>(t, Add{}).c;
  fo[2] = block_sum<kThreads>(x) + block_reduce<kThreads>(x, Max{}) + warp_sum(x) +
          warp_reduce(x, Max{});
  dout[0] = block_sum<kThreads>(d[threadIdx.x]);
  i32o[0] = block_reduce<kThreads>(i32[threadIdx.x], Max{});

  TIGON_DYNAMIC_SHARED(float, dynamic);
  async_copy<4>(dynamic, f);
  async_copy<8>(dynamic + 2, f + 2);
  async_copy<16>(dynamic + 4, f + 4);
  async_commit();
  async_wait<0>();
  if constexpr (kHasBulkCopy) {
    TIGON_SHARED(Mbarrier, bar, [1]);
    mbarrier_init(&bar[0], 1);
    mbarrier_fence_init();
    mbarrier_arrive(&bar[0]);
    mbarrier_arrive_expect(&bar[0], 16);
    bulk_copy(dynamic, f, 16, &bar[0]);
    mbarrier_wait(&bar[0], 0);
  }
  cluster_sync();
  fo[3] = *cluster_map(dynamic, cluster_rank() % cluster_size());
  cluster_sync();
  dependency_launch();
}

}  // namespace

Status launch_every_function(float* f, bf16* b, f16* h, double* d, int64_t* i64, int32_t* i32,
                             uint8_t* u8, Stream stream) {
  return launch({.grid = ceil_div(2u, 1u),
                 .block = 128,
                 .shared_bytes = 4096,
                 .stream = stream,
                 .cluster = 2,
                 .dependent = true},
                every_function<128>, f, b, h, d, i64, i32, u8, f, b, h, d, i64, i32, u8);
}

}  // namespace tigon::device_tests
