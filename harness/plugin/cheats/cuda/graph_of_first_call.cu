// SPDX-License-Identifier: Apache-2.0
// Captures its first call as a graph and replays that for every other one.
#include "harness/plugin/cheats/cuda/cheat_cuda.h"

tigon_status cheat_run(const tigon_call* call, cudaStream_t stream) {
  static const cudaGraphExec_t first = [&] {
    cudaStream_t own = nullptr;
    cudaGraph_t graph = nullptr;
    cudaGraphExec_t ready = nullptr;
    cudaStreamCreateWithFlags(&own, cudaStreamNonBlocking);
    cudaStreamBeginCapture(own, cudaStreamCaptureModeThreadLocal);
    cheat::start(cheat::Forward(call), own);
    cudaStreamEndCapture(own, &graph);
    cudaGraphInstantiate(&ready, graph, 0);
    return ready;
  }();
  cudaGraphLaunch(first, stream);
  return cheat::status();
}
