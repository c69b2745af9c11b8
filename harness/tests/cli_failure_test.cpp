// SPDX-License-Identifier: Apache-2.0
// What the terminal says about a failing case.
#include "harness/cli/text/failure.h"

#include <gtest/gtest.h>

namespace tigon::cli {
namespace {

TEST(Failure, lines_that_a_kernel_engineer_looks_for) {
  CheckResult r;
  r.c = parse_case("rms_norm/forward/fused/bf16/T=9,H=1000,offset=1");
  r.verdict = Verdict::kIncorrectNumerical;
  r.repro = "./tigon check --case '" + case_id(r.c) + "' --executor checked";
  OutputResult y;
  y.name = "y";
  y.elements = 9000;
  y.failing = 9;
  y.bias = 1.25;
  y.pattern = "only column 297 of 1000";
  y.first_index = {0, 297};
  y.first_got = 1;
  y.first_want = 1.5;
  y.first_error = 2.25;
  y.worst_index = {6, 297};
  y.got = -2;
  y.want = -3;
  y.error_over_budget = 4;
  y.neighbours = {{296, 7, 7}};
  OutputResult rstd;
  rstd.name = "rstd";
  r.outputs = {y, rstd};
  Diagnosis d;
  d.facts = {"guards around every tensor intact"};
  d.shrunk.smallest = parse_case("rms_norm/forward/fused/bf16/T=1,H=512,offset=1");
  d.shrunk.needs = {"offset=1"};
  d.shrunk.tries = 54;
  d.smallest = r;
  d.seconds = 0.25;
  EXPECT_EQ(
      failure_lines(r, d),
      "FAIL rms_norm/forward/fused/bf16/T=9,H=1000,offset=1,inputs=normal,seed=42: "
      "incorrect_numerical\n"
      "  y: 9 of 9000 elements wrong, bias +1.25 sigma; only column 297 of 1000\n"
      "    first y[0,297]: got 1 want 1.5, error 2.25 of its budget\n"
      "    worst y[6,297]: got -2 want -3, error 4 of its budget; beside it got 7 [-2] want 7 "
      "[-3]\n"
      "  rstd: right\n"
      "  guards around every tensor intact\n"
      "  repro: ./tigon check --case "
      "'rms_norm/forward/fused/bf16/T=9,H=1000,offset=1,inputs=normal,seed=42' --executor "
      "checked\n"
      "  smallest found (54 tries, 250 ms): y[6,297]: got -2 want -3, error 4 of its budget\n"
      "    passes without offset=1\n"
      "    repro: ./tigon check --case "
      "'rms_norm/forward/fused/bf16/T=1,H=512,offset=1,inputs=normal,seed=42' --executor "
      "checked");
}

}  // namespace
}  // namespace tigon::cli
