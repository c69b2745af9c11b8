// SPDX-License-Identifier: Apache-2.0
// A saved case: .npy files that numpy reads, and a manifest that says all the rest.
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "harness/json/json.h"
#include "harness/run/check.h"
#include "harness/run/judging/oracle.h"
#include "harness/run/memory/convert.h"
#include "harness/tests/temporary_folder.h"

namespace tigon {
namespace {

std::string contents(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

// The data of an .npy file, after checks of its header.
std::string npy_data(const std::filesystem::path& path, const std::string& type,
                     const std::string& shape) {
  const std::string text = contents(path);
  EXPECT_EQ(text.substr(0, 8), std::string("\x93NUMPY\x01\x00", 8));
  const size_t length =
      static_cast<unsigned char>(text[8]) + 256u * static_cast<unsigned char>(text[9]);
  EXPECT_EQ((10 + length) % 64, 0u);
  const std::string header = text.substr(10, length);
  EXPECT_EQ(header.back(), '\n');
  EXPECT_NE(header.find("'descr': '" + type + "'"), std::string::npos) << header;
  EXPECT_NE(header.find("'fortran_order': False"), std::string::npos);
  EXPECT_NE(header.find("'shape': " + shape), std::string::npos) << header;
  return text.substr(10 + length);
}

TEST(Save, a_case_can_be_judged_from_its_files) {
  const TemporaryFolder folder;
  CheckRequest request;
  request.cases = {parse_case("faulty/forward/wrong/bf16/N=3,M=5,factor=3")};
  request.save_folder = folder.path().string();
  const CheckReport report = run_checks(request, [](const CheckResult&) {});
  ASSERT_EQ(report.tally.failed(), 1);
  const auto at = folder.path() / case_key(request.cases[0]);

  const auto manifest = Json::parse(contents(at / "manifest.json"));
  EXPECT_EQ(manifest.at("case_id"), case_id(request.cases[0]));
  EXPECT_EQ(manifest.at("verdict"), "incorrect_numerical");
  EXPECT_EQ(manifest.at("options").at("factor"), 3);
  EXPECT_EQ(manifest.at("tensors").size(), 3u);

  const Problem problem = make_problem(request.cases[0]);
  const std::string x = npy_data(at / "x.input.npy", "<u2", "(3, 5)");
  const auto bytes = narrow(problem.tensors[0].input, DType::kBF16);
  ASSERT_EQ(x.size(), bytes.size());
  EXPECT_EQ(std::memcmp(x.data(), bytes.data(), x.size()), 0);
  npy_data(at / "w.input.npy", "<u2", "(5,)");
  EXPECT_EQ(npy_data(at / "y.output.npy", "<u2", "(3, 5)").size(), 30u);
  const std::string oracle = npy_data(at / "y.oracle.npy", "<f8", "(3, 5)");
  const auto expected = run_oracle(problem).at("y").value;
  ASSERT_EQ(oracle.size(), expected.size() * sizeof(double));
  EXPECT_EQ(std::memcmp(oracle.data(), expected.data(), oracle.size()), 0);
}

TEST(Save, a_folder_that_cannot_be_written_is_a_verdict) {
  CheckRequest request;
  request.cases = {parse_case("faulty/forward/right/f32/N=1,M=5")};
  request.save_folder = "/proc/nothing";
  std::string reason;
  run_checks(request, [&](const CheckResult& r) { reason = r.reason; });
  EXPECT_NE(reason.find("/proc/nothing"), std::string::npos) << reason;
}

}  // namespace
}  // namespace tigon
