// SPDX-License-Identifier: Apache-2.0
// Threads of one process as ranks: on the host executor, and on one or several GPUs to prove what
// is written for many. Sums are added in double in the order of ranks and rounded once; they go
// through the host's memory, and every call waits for its stream, so none can be captured.
#pragma once
#include <chrono>
#include <functional>

#include "kernels/collective/communicator.h"

namespace tigon {

// Calls work(communicator) in one thread for each rank and waits for all of them. The first that
// fails, throws or is not at a collective within `limit` ends the collectives of the others; its
// status is returned, and its sentence names the rank. kInvalidArgument for ranks < 1.
Status run_ranks(int ranks, std::chrono::milliseconds limit,
                 const std::function<Status(Communicator&)>& work);

}  // namespace tigon
