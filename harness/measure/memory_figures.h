// SPDX-License-Identifier: Apache-2.0
// Peak memory of one call in four figures, as the fields of a "memory" record.
#pragma once
#include <functional>

#include "harness/measure/call_set.h"
#include "harness/record/record_writer.h"

namespace tigon {

// Prepares and runs the implementation once on `set` with a workspace of its own; its status, and
// the record when that is ok. Throws DeviceError and DeviceOutOfMemory.
Status memory_figures(const Case& c, const Implementation& implementation, const CallSet& set,
                      Json* record);

// case_id, case_key, op, pass, impl, dtype, axes and options: the head of several records.
Json case_fields(const Case& c);

}  // namespace tigon
