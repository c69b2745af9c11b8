// SPDX-License-Identifier: Apache-2.0
// Checking as a library, plain and through GoogleTest.
#include "harness/run/check.h"

#include <gtest/gtest.h>

#include <chrono>
#include <numeric>

#include "harness/run/executor.h"
#include "harness/run/process/child.h"
#include "harness/run/process/session.h"
#include "harness/run/process/wire.h"

namespace tigon {

namespace {

class Stopwatch {
 public:
  double seconds() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

// What the GoogleTest tests of one run share.
struct GtestRun {
  Session session;
  const CheckSink& sink;
  CheckReport report;
};

class CaseTest : public testing::Test {
 public:
  CaseTest(GtestRun* run, size_t index) : run_(run), index_(index) {}
  void TestBody() override {
    const auto result = run_->session.wait(index_);
    if (!result) GTEST_SKIP() << "interrupted";
    run_->report.tally.add(result->verdict);
    run_->sink(*result);
    const std::string text = std::string(name_of(result->verdict)) + ": " + result->reason;
    if (is_skip(result->verdict)) GTEST_SKIP() << text;
    if (is_failure(result->verdict)) FAIL() << text << "\n" << result->repro;
  }

 private:
  GtestRun* run_;
  size_t index_;
};

// "op.pass.impl" and the rest of the id.
std::pair<std::string, std::string> gtest_name(const Case& c) {
  const std::string id = case_id(c);
  const size_t rest = c.op.size() + c.pass.size() + c.impl.size() + 3;
  return {c.op + "." + c.pass + "." + c.impl, id.substr(rest)};
}

// GoogleTest knows which tests it will run only when it has read its flags and shards.
class StartSession : public testing::EmptyTestEventListener {
 public:
  StartSession(GtestRun* run, std::map<const testing::TestInfo*, size_t> index)
      : run_(run), index_(std::move(index)) {}

  void OnTestIterationStart(const testing::UnitTest& unit, int iteration) override {
    if (iteration > 0) return;
    std::vector<size_t> chosen;
    for (int s = 0; s < unit.total_test_suite_count(); ++s) {
      const testing::TestSuite* suite = unit.GetTestSuite(s);
      for (int i = 0; i < suite->total_test_count(); ++i) {
        const testing::TestInfo* test = suite->GetTestInfo(i);
        const auto found = index_.find(test);
        if (found != index_.end() && test->should_run()) chosen.push_back(found->second);
      }
    }
    run_->session.start(std::move(chosen));
  }

 private:
  GtestRun* run_;
  std::map<const testing::TestInfo*, size_t> index_;
};

}  // namespace

const std::vector<std::string>& executors() {
  static const std::vector<std::string> kAll =
      this_executor() == "cuda" ? std::vector<std::string>{"cuda"}
                                : std::vector<std::string>{"fast", "checked", "sm_80"};
  return kAll;
}

std::string default_executor() { return this_executor(); }

CheckReport run_checks(const CheckRequest& request, const CheckSink& sink) {
  const Stopwatch watch;
  Session session(select_cases(request), request);
  std::vector<size_t> all(session.cases().size());
  std::iota(all.begin(), all.end(), size_t{0});
  session.start(all);
  CheckReport report;
  for (size_t i : all) {
    const auto result = session.wait(i);
    if (!result) break;
    report.tally.add(result->verdict);
    sink(*result);
  }
  report.interrupted = interrupted();
  report.seconds = watch.seconds();
  return report;
}

CheckReport run_checks_as_gtest(const CheckRequest& request, const CheckSink& sink, int* argc,
                                char** argv) {
  const Stopwatch watch;
  GtestRun run{{select_cases(request), request}, sink, {}};
  testing::InitGoogleTest(argc, argv);
  std::map<const testing::TestInfo*, size_t> index;
  for (size_t i = 0; i < run.session.cases().size(); ++i) {
    const auto [suite, name] = gtest_name(run.session.cases()[i]);
    index[testing::RegisterTest(suite.c_str(), name.c_str(), nullptr, nullptr, __FILE__, __LINE__,
                                [&run, i] { return new CaseTest(&run, i); })] = i;
  }
  auto& listeners = testing::UnitTest::GetInstance()->listeners();
  delete listeners.Release(listeners.default_result_printer());
  listeners.Append(new StartSession(&run, std::move(index)));
  // Its exit code is not used: it is 0 when nothing matched and when all was skipped.
  [[maybe_unused]] const int gtest_code = RUN_ALL_TESTS();
  run.report.interrupted = interrupted();
  run.report.seconds = watch.seconds();
  return run.report;
}

TraceResult run_trace(const Case& c, double timeout_s) {
  Child child(program_of("checked"), "checked", 1);
  const Reply reply =
      child.ask(encode(WireRequest{case_id(c), "", "trace"}), timeout_s > 0 ? timeout_s : 60);
  TraceResult trace;
  trace.c = c;
  if (reply.kind == Reply::kAnswer) {
    trace = decode_trace(reply.text);
  } else {
    trace.verdict = reply.kind == Reply::kTimeout   ? Verdict::kTimeout
                    : reply.kind == Reply::kCrashed ? Verdict::kCrashed
                                                    : Verdict::kNotRun;
    trace.reason = reply.text;
  }
  trace.bytes_min = minimum_bytes(c);
  return trace;
}

}  // namespace tigon
