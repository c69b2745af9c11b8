// SPDX-License-Identifier: Apache-2.0
// NCCL with as many ranks as there are GPUs, at least one.
#include "kernels/collective/nccl.h"

#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "kernels/device/runtime.h"

namespace tigon {
namespace {

using namespace std::chrono_literals;

int gpus() {
  int count = 0;
  return cudaGetDeviceCount(&count) == cudaSuccess ? count : 0;
}

// Calls work(communicator) in a thread for each GPU.
template <class Work>
void on_each_gpu(const Work& work) {
  NcclId id;
  const Status made = nccl_make_id(&id);
  ASSERT_TRUE(made.ok()) << made.reason;
  std::vector<std::thread> threads;
  for (int rank = 0; rank < gpus(); ++rank)
    threads.emplace_back([&, rank] {
      ASSERT_EQ(cudaSetDevice(rank), cudaSuccess);
      std::unique_ptr<Communicator> communicator;
      const Status s = nccl_connect(id, rank, gpus(), &communicator);
      ASSERT_TRUE(s.ok()) << s.reason;
      EXPECT_EQ(communicator->rank(), rank);
      EXPECT_EQ(communicator->size(), gpus());
      work(*communicator);
    });
  for (std::thread& t : threads) t.join();
}

class Nccl : public testing::Test {
 protected:
  void SetUp() override {
    if (gpus() == 0) GTEST_SKIP() << "this machine has no GPU";
  }
};

TEST_F(Nccl, gathers_and_adds_on_a_stream_and_in_a_graph) {
  on_each_gpu([](Communicator& c) {
    const auto ranks = static_cast<size_t>(c.size());
    const Stream stream = stream_create();
    DeviceBuffer send(sizeof(float)), gathered(ranks * sizeof(float));
    const float own = static_cast<float>(c.rank() + 1);
    const auto work = [&](Stream on) {
      for (const Status& s : {c.all_gather(send.data(), gathered.data(), sizeof(float), on),
                              c.all_reduce(send.data(), 1, DType::kF32, on)})
        EXPECT_TRUE(s.ok()) << s.reason;
    };
    const auto expect = [&] {
      const Status s = c.wait(stream, 60s);
      EXPECT_TRUE(s.ok()) << s.reason;
      std::vector<float> all(ranks);
      float sum = 0;
      device_download(all.data(), gathered.data(), gathered.bytes(), stream);
      device_download(&sum, send.data(), sizeof sum, stream);
      for (size_t r = 0; r < ranks; ++r) EXPECT_EQ(all[r], static_cast<float>(r + 1));
      EXPECT_EQ(sum, static_cast<float>(ranks * (ranks + 1) / 2));
    };
    device_upload(send.data(), &own, sizeof own, stream);
    work(stream);
    expect();
    Graph graph;
    graph.capture(stream, work);
    device_fill(gathered.data(), 0, gathered.bytes(), stream);
    device_upload(send.data(), &own, sizeof own, stream);
    graph.replay(stream);
    expect();
    stream_destroy(stream);
  });
}

TEST_F(Nccl, scatters_sums_of_each_type) {
  on_each_gpu([](Communicator& c) {
    const int64_t ranks = c.size();
    std::vector<bf16> values;
    for (int64_t i = 0; i < ranks; ++i) values.push_back(bf16(static_cast<float>(i + 1)));
    DeviceBuffer send(values.size() * sizeof(bf16)), part(sizeof(bf16));
    device_upload(send.data(), values.data(), send.bytes());
    const Status s = c.reduce_scatter(send.data(), part.data(), 1, DType::kBF16, nullptr);
    EXPECT_TRUE(s.ok()) << s.reason;
    bf16 sum{};
    device_download(&sum, part.data(), sizeof sum);
    EXPECT_EQ(static_cast<float>(sum), static_cast<float>((c.rank() + 1) * ranks));
  });
}

TEST(NcclArguments, are_refused_in_a_sentence) {
  NcclId id = {};
  std::unique_ptr<Communicator> communicator;
  const Status s = nccl_connect(id, 2, 2, &communicator);
  EXPECT_FALSE(s.ok());  // also where there is no NCCL
  EXPECT_PRED_FORMAT2(testing::IsSubstring, "collective: ", s.reason);
  EXPECT_FALSE(nccl_adopt(nullptr, &communicator).ok());
  EXPECT_EQ(communicator, nullptr);
}

}  // namespace
}  // namespace tigon
