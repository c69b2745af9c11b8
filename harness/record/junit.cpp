// SPDX-License-Identifier: Apache-2.0
// JUnit XML of checks.
#include "harness/record/junit.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>

#include "harness/record/record_writer.h"

namespace tigon {
namespace {

std::string escaped(const std::string& text) {
  std::string xml;
  for (const char c : text) {
    switch (c) {
      case '&':
        xml += "&amp;";
        break;
      case '<':
        xml += "&lt;";
        break;
      case '>':
        xml += "&gt;";
        break;
      case '"':
        xml += "&quot;";
        break;
      case '\n':
        xml += "&#10;";
        break;
      default:
        if (static_cast<unsigned char>(c) >= 0x20 || c == '\t')
          xml += c;  // XML 1.0 allows no others
    }
  }
  return xml;
}

std::string test_case(const JUnitCase& c) {
  std::string xml = fmt::format(R"(    <testcase classname="{}" name="{}" time="{:.3f}")",
                                escaped(c.classname), escaped(c.name), c.seconds);
  const std::string message = escaped(c.reason.empty() ? c.verdict : c.verdict + ": " + c.reason);
  switch (c.outcome) {
    case JUnitCase::kPassed:
      return xml + "/>\n";
    case JUnitCase::kSkipped:
      return xml + fmt::format("><skipped message=\"{}\"/></testcase>\n", message);
    case JUnitCase::kFailure:
    case JUnitCase::kError: {
      const char* tag = c.outcome == JUnitCase::kFailure ? "failure" : "error";
      return xml + fmt::format("><{0} type=\"{1}\" message=\"{2}\">{3}</{0}></testcase>\n", tag,
                               escaped(c.verdict), message, escaped(c.details));
    }
  }
  return xml;
}

struct Totals {
  int tests = 0, failures = 0, errors = 0, skipped = 0;
  double seconds = 0;
  std::string cases;
};

std::string attributes(const Totals& t) {
  return fmt::format(R"(tests="{}" failures="{}" errors="{}" skipped="{}" time="{:.3f}")", t.tests,
                     t.failures, t.errors, t.skipped, t.seconds);
}

void add(Totals& t, const JUnitCase& c) {
  ++t.tests;
  t.failures += c.outcome == JUnitCase::kFailure;
  t.errors += c.outcome == JUnitCase::kError;
  t.skipped += c.outcome == JUnitCase::kSkipped;
  t.seconds += c.seconds;
}

}  // namespace

std::string junit_xml(const std::vector<JUnitCase>& cases) {
  std::vector<std::pair<std::string, Totals>> suites;
  Totals all;
  for (const JUnitCase& c : cases) {
    auto suite = std::find_if(suites.begin(), suites.end(),
                              [&](const auto& s) { return s.first == c.suite; });
    if (suite == suites.end()) suite = suites.insert(suite, {c.suite, {}});
    add(suite->second, c);
    suite->second.cases += test_case(c);
    add(all, c);
  }
  std::string xml =
      fmt::format("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"tigon\" {}>\n",
                  attributes(all));
  for (const auto& [name, totals] : suites)
    xml += fmt::format("  <testsuite name=\"{}\" {}>\n{}  </testsuite>\n", escaped(name),
                       attributes(totals), totals.cases);
  return xml + "</testsuites>\n";
}

void write_junit(const std::filesystem::path& path, const std::vector<JUnitCase>& cases) {
  const auto fail = [&] {
    throw RecordError(fmt::format("cannot write {}: {}", path.string(), std::strerror(errno)));
  };
  const bool in_place = std::filesystem::exists(path) && !std::filesystem::is_regular_file(path);
  const std::filesystem::path target(path.string() + (in_place ? "" : ".part"));
  errno = 0;
  std::ofstream file(target, std::ios::binary);
  if (!file) fail();
  file << junit_xml(cases);
  file.close();
  if (!file) fail();
  std::error_code error;
  if (!in_place) std::filesystem::rename(target, path, error);
  if (error) throw RecordError(fmt::format("cannot write {}: {}", path.string(), error.message()));
}

}  // namespace tigon
