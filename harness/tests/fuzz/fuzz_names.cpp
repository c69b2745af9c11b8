// SPDX-License-Identifier: Apache-2.0
// libFuzzer target: what a person types behind -a and --case. Any text gives values or one
// UsageError of one line; what is accepted is the same when it is written out and read again.
#include <cstdlib>
#include <string_view>

#include "harness/cli/options/axis_values.h"
#include "harness/judge/verdict.h"
#include "harness/run/cases/case.h"
#include "harness/tests/fuzz/fuzz_ops.h"

namespace tigon {

namespace {

void require(bool holds) {
  if (!holds) std::abort();
}

void fuzz_axis(const std::string& text) {
  try {
    const cli::AxisValues axis = cli::parse_axis_values(text);
    require(!axis.axis.empty() && !axis.values.empty());
    for (const int64_t value : axis.values) require(value >= 0);
    const auto all = cli::parse_axes({text}, {&all_ops()[0]});
    require(all.at(axis.axis) == axis.values);
  } catch (const UsageError& error) {
    require(std::string(error.what()).rfind("-a ", 0) == 0);
  }
}

void fuzz_case(const std::string& text) {
  try {
    const std::string id = case_id(parse_case(text));
    require(case_id(parse_case(id)) == id);
  } catch (const UsageError& error) {
    require(error.what()[0] != '\0');
  }
}

}  // namespace
}  // namespace tigon

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  tigon::fuzz_axis(text);
  tigon::fuzz_case(text);
  // Most random text fails at once: the other half of the work starts with what is right.
  tigon::fuzz_case("op/forward/fused/f32/" + text);
  tigon::fuzz_axis("T" + text);
  return 0;
}
