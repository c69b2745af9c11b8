// SPDX-License-Identifier: Apache-2.0
// cross_entropy of two rows from C++, on the host executor: link tigon::tigon-host.
#include <cstdio>
#include <memory>
#include <tigon.hpp>
#include <vector>

int main() {
  std::vector<float> logits = {1, 2, 3, 0, 0, 0}, loss(1), lse(2);
  const std::vector<int64_t> target = {2, 0};

  tigon::cross_entropy::ForwardBackward<tigon::F32> args;
  args.logits = tigon::view(logits.data(), 2, 3);  // its gradient afterwards
  args.target = tigon::view(target.data(), 2);
  args.loss = tigon::view(loss.data(), 1);
  args.lse = tigon::view(lse.data(), 2);
  args.label_smoothing = 0.1f;

  std::vector<double> scratch(tigon::workspace_bytes(args) / sizeof(double) + 32);
  void* aligned = scratch.data();
  size_t bytes = scratch.size() * sizeof(double);
  args.scratch = {std::align(256, tigon::workspace_bytes(args), aligned, bytes), bytes};

  const tigon::Status status = tigon::run(args, nullptr);
  if (!status.ok()) return std::fprintf(stderr, "%s\n", status.reason), 1;
  std::printf("loss %.4f, gradient of the first row %.4f %.4f %.4f\n", loss[0], logits[0],
              logits[1], logits[2]);
}
