// SPDX-License-Identifier: Apache-2.0
// Profiler ranges through NVTX, a header of the CUDA Toolkit.
#include <nvtx3/nvToolsExt.h>

#include "kernels/device/nvtx.h"

namespace tigon {
namespace {

nvtxDomainHandle_t domain() {
  static const nvtxDomainHandle_t handle = nvtxDomainCreateA("tigon");
  return handle;
}

}  // namespace

ProfilerRange::ProfilerRange(const char* category, const std::string& what) {
  const std::string text = std::string(category) + " " + what;
  nvtxEventAttributes_t attributes = {};
  attributes.version = NVTX_VERSION;
  attributes.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
  attributes.messageType = NVTX_MESSAGE_TYPE_ASCII;
  attributes.message.ascii = text.c_str();
  nvtxDomainRangePushEx(domain(), &attributes);
}

ProfilerRange::~ProfilerRange() { nvtxDomainRangePop(domain()); }

}  // namespace tigon
