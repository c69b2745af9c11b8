// SPDX-License-Identifier: Apache-2.0
// NCCL as a communicator, one GPU a rank. The library is the process's own: the copy that a
// framework has loaded, else the system's. Nothing depends on it before the first call.
#pragma once
#include <memory>

#include "kernels/collective/communicator.h"

namespace tigon {

// Names a group; rank 0 makes one and gives it to the others by a way of its own (MPI, a file).
struct NcclId {
  char bytes[128];
};
Status nccl_make_id(NcclId* id);

// This rank of the group, on the current device; waits for the other ranks. kLaunchFailed: there is
// no NCCL, or what it says.
Status nccl_connect(const NcclId& id, int rank, int ranks, std::unique_ptr<Communicator>* result);

// The same of an ncclComm_t that the caller has and goes on owning.
Status nccl_adopt(void* comm, std::unique_ptr<Communicator>* result);

}  // namespace tigon
