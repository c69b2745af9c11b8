// SPDX-License-Identifier: Apache-2.0
// All that a kernel file includes besides its signature: CUDA spelling for both compilers, loads
// and stores, math, reductions, clusters, asynchronous copies, launches.
#pragma once
#include "kernels/device/async.h"
#include "kernels/device/cluster.h"
#include "kernels/device/launch.h"
#include "kernels/device/math.h"
#include "kernels/device/platform.h"
#include "kernels/device/reduce.h"
#include "kernels/device/vec.h"
