// SPDX-License-Identifier: Apache-2.0
// JUnit XML: counts, escapes, outcomes.
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "harness/record/junit.h"
#include "harness/record/record_writer.h"
#include "harness/tests/temporary_folder.h"

namespace tigon {
namespace {

const std::vector<JUnitCase> kCases = {
    {.suite = "rope", .classname = "rope.fused", .name = "forward/f32/T=1", .seconds = 0.25},
    {.suite = "swiglu",
     .classname = "swiglu.fused",
     .name = "a<b>&\"c\"\x01",
     .outcome = JUnitCase::kFailure,
     .verdict = "nonfinite",
     .reason = "y[0]",
     .details = "repro"},
    {.suite = "rope",
     .classname = "rope.naive",
     .name = "n",
     .outcome = JUnitCase::kError,
     .verdict = "timeout"},
    {.suite = "rope",
     .classname = "rope.x",
     .name = "n",
     .outcome = JUnitCase::kSkipped,
     .verdict = "unsupported",
     .reason = "f64"}};

TEST(JUnit, counts_per_suite_and_in_all) {
  const std::string xml = junit_xml(kCases);
  EXPECT_NE(xml.find(R"(<testsuites name="tigon" tests="4" failures="1" errors="1" skipped="1")"),
            std::string::npos)
      << xml;
  EXPECT_NE(xml.find(R"(<testsuite name="rope" tests="3" failures="0" errors="1" skipped="1")"),
            std::string::npos)
      << xml;
}

TEST(JUnit, escapes_markup_and_drops_control_characters) {
  const std::string xml = junit_xml(kCases);
  EXPECT_NE(xml.find("name=\"a&lt;b&gt;&amp;&quot;c&quot;\" "), std::string::npos) << xml;
  EXPECT_NE(xml.find("<failure type=\"nonfinite\" message=\"nonfinite: y[0]\">repro</failure>"),
            std::string::npos);
}

TEST(JUnit, is_written_whole_and_a_full_disk_is_an_error) {
  const TemporaryFolder folder;
  write_junit(folder.path() / "junit.xml", kCases);
  std::stringstream text;
  text << std::ifstream(folder.path() / "junit.xml").rdbuf();
  EXPECT_EQ(text.str(), junit_xml(kCases));
  EXPECT_FALSE(std::filesystem::exists(folder.path() / "junit.xml.part"));
  EXPECT_THROW(write_junit("/dev/full", kCases), RecordError);
}

}  // namespace
}  // namespace tigon
