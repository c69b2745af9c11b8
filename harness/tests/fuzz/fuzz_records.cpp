// SPDX-License-Identifier: Apache-2.0
// libFuzzer target: lines of records files and of child processes. Any bytes give a record or
// nothing, a result or a std::exception; what is read can be written and read again.
#include <cstdlib>

#include "harness/json/json.h"
#include "harness/record/record_reader.h"
#include "harness/run/check.h"
#include "harness/run/process/wire.h"
#include "harness/tests/fuzz/fuzz_ops.h"

namespace tigon {

namespace {

void require(bool holds) {
  if (!holds) std::abort();
}

std::string dumped(const Json& record) { return record.dump(); }

void fuzz_record(std::string_view line) {
  const auto record = parse_record(line);
  if (!record) return;
  const std::string once = with_sum(dumped(*record));
  const auto again = parse_record(once);
  require(again.has_value());
  // One flipped bit is noticed.
  std::string flipped = once;
  flipped[flipped.size() / 2] ^= 1;
  require(!parse_record(flipped).has_value());
  if (const auto result = check_of_record(*record)) require(!dumped(to_json(*result)).empty());
}

template <class Decode>
void fuzz_wire(const std::string& line, Decode decode) {
  try {
    decode(line);
  } catch (const std::exception&) {
  }
}

}  // namespace
}  // namespace tigon

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, size_t size) {
  const std::string line(reinterpret_cast<const char*>(data), size);
  bool last = false;
  tigon::fuzz_record(line);
  tigon::fuzz_wire(line, [&](const std::string& l) { tigon::decode_check(l, &last); });
  tigon::fuzz_wire(line, [](const std::string& l) { tigon::decode_trace(l); });
  tigon::fuzz_wire(line, [](const std::string& l) { tigon::decode_request(l); });
  return 0;
}
