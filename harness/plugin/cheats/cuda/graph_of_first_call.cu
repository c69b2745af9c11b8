// Captures its first call as a graph and replays that for every other one.
#include "harness/plugin/cheats/cuda/cheat_cuda.h"

int32_t cheat_run(const tigon_call* call, const char**) {
  static const cudaGraphExec_t first = [&] {
    cudaStream_t stream = nullptr;
    cudaGraph_t graph = nullptr;
    cudaGraphExec_t ready = nullptr;
    cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
    cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal);
    cheat::start(cheat::Forward(call), stream);
    cudaStreamEndCapture(stream, &graph);
    cudaGraphInstantiate(&ready, graph, 0);
    return ready;
  }();
  cudaGraphLaunch(first, cheat::stream_of(call));
  return cheat::status();
}
