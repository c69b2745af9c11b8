// Counted traffic as the fields of a "trace" record.
#include "harness/measure/trace_record.h"

#include <limits>

#include "harness/measure/memory_figures.h"

namespace tigon {
namespace {

Json counters_of(const KernelTrace& k) {
  return {{"bytes_loaded_bytes", k.bytes_loaded},
          {"bytes_stored_bytes", k.bytes_stored},
          {"requests", k.requests},
          {"sectors", k.sectors},
          {"bank_conflicts", k.bank_conflicts},
          {"barriers", k.barriers},
          {"atomics", k.atomics}};
}

double ratio(double a, double b) {
  return b > 0 ? a / b : std::numeric_limits<double>::quiet_NaN();
}

}  // namespace

Json trace_fields(const TraceResult& trace) {
  KernelTrace all;
  Json kernels = Json::array();
  for (const KernelTrace& k : trace.kernels) {
    all.bytes_loaded += k.bytes_loaded;
    all.bytes_stored += k.bytes_stored;
    all.requests += k.requests;
    all.sectors += k.sectors;
    all.bank_conflicts += k.bank_conflicts;
    all.barriers += k.barriers;
    all.atomics += k.atomics;
    Json kernel = {{"name", k.name}, {"launches", k.launches}};
    kernel.update(counters_of(k));
    kernels.push_back(std::move(kernel));
  }
  Json fields = case_fields(trace.c);
  fields.update(counters_of(all));
  fields.update({{"bytes_min_bytes", trace.bytes_min},
                 {"traffic_ratio", ratio(all.bytes_loaded + all.bytes_stored, trace.bytes_min)},
                 {"sectors_per_request", ratio(all.sectors, all.requests)},
                 {"kernels", std::move(kernels)},
                 {"executor", "checked"},
                 {"verdict", name_of(trace.verdict)},
                 {"reason", trace.reason}});
  return fields;
}

}  // namespace tigon
