// Counted traffic as the fields of a "trace" record.
#pragma once
#include "harness/record/record_writer.h"
#include "harness/run/check.h"

namespace tigon {

Json trace_fields(const TraceResult& trace);

}  // namespace tigon
