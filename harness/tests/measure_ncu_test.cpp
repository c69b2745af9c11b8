// SPDX-License-Identifier: Apache-2.0
// Nsight Compute's CSV and what is made of it.
#include "harness/measure/ncu.h"

#include <gtest/gtest.h>

#include <stdexcept>

#include "harness/measure/profile.h"

namespace tigon {
namespace {

// Written by hand after the documented format of `ncu --csv --page raw --print-units base`: lines
// of ncu, names, units, a line for each launch. Not a measurement.
constexpr const char* kSample =
    R"csv(==PROF== Connected to process 4242 (/tree/build/cuda/bin/tigon)
==PROF== Profiling "backward_kernel" - 0: 0%....50%....100% - 8 passes
==PROF== Disconnected from process 4242
"ID","Process ID","Process Name","Host Name","Kernel Name","Context","Stream","Block Size","Grid Size","Device","CC","dram__bytes_read.sum","dram__bytes_write.sum","dram__throughput.avg.pct_of_peak_sustained_elapsed","gpu__time_duration.sum","l1tex__average_t_sectors_per_request_pipe_lsu_mem_global_op_ld.ratio","launch__registers_per_thread","sm__throughput.avg.pct_of_peak_sustained_elapsed","smsp__average_warps_issue_stalled_barrier_per_issue_active.ratio","smsp__average_warps_issue_stalled_long_scoreboard_per_issue_active.ratio"
"","","","","","","","","","","","byte","byte","%","ns","sector/request","register/thread","%","inst","inst"
"0","4242","tigon","127.0.0.1","void tigon::rms_norm::backward_kernel<tigon::BF16, 8, 128, 4>(tigon::rms_norm::Backward<T1>, float *)","1","7","(128, 1, 1)","(396, 1, 1)","0","9.0","268,435,456","134,217,728","80","90,000","16","120","30","0.5","12"
"1","4242","tigon","127.0.0.1","partial_sums_kernel","1","7","(256, 1, 1)","(16, 1, 1)","0","9.0","6000000","n/a","20","10,000","4","32","10","0.5","2"
)csv";

TEST(Ncu, reads_every_launch) {
  const auto kernels = parse_ncu(kSample);
  ASSERT_EQ(kernels.size(), 2u);
  EXPECT_NE(kernels[0].name.find("BF16, 8, 128, 4>"), std::string::npos);
  EXPECT_EQ(kernels[0].metrics.at("dram__bytes_read.sum"), 268435456);
  EXPECT_EQ(kernels[1].metrics.count("dram__bytes_write.sum"), 0u);  // n/a
}

TEST(Ncu, adds_up_sums_and_weights_the_rest_by_time) {
  const auto total = ncu_total(parse_ncu(kSample));
  EXPECT_EQ(total.at("gpu__time_duration.sum"), 100000);
  EXPECT_EQ(total.at("dram__bytes_read.sum"), 274435456);
  EXPECT_DOUBLE_EQ(total.at("dram__throughput.avg.pct_of_peak_sustained_elapsed"), 74);
  EXPECT_EQ(total.count("lts__t_sector_hit_rate.pct"), 0u);
}

TEST(Ncu, says_why_there_is_nothing) {
  const auto text_of = [](const char* csv) -> std::string {
    try {
      parse_ncu(csv);
    } catch (const std::runtime_error& error) {
      return error.what();
    }
    return "no error";
  };
  EXPECT_EQ(text_of(""), "ncu has profiled no kernel");
  EXPECT_EQ(text_of("==PROF== Connected to process 1\n==WARNING== No kernels were profiled.\n"),
            "ncu has profiled no kernel");
  EXPECT_EQ(text_of("==ERROR== ERR_NVGPUCTRPERM - The user does not have permission"),
            "ncu: ERR_NVGPUCTRPERM - The user does not have permission");
}

Case norm_case() { return parse_case("rms_norm/backward/fused/bf16/T=16384,H=4096"); }

NcuKernel kernel(double dram, double sm, double long_scoreboard, double bytes) {
  return {"k",
          {{"gpu__time_duration.sum", 1000},
           {"dram__bytes_read.sum", bytes},
           {"dram__bytes_write.sum", 0},
           {"dram__throughput.avg.pct_of_peak_sustained_elapsed", dram},
           {"sm__throughput.avg.pct_of_peak_sustained_elapsed", sm},
           {"smsp__average_warps_issue_stalled_long_scoreboard_per_issue_active.ratio",
            long_scoreboard}}};
}

TEST(Profile, ten_counters_and_what_binds) {
  const double least = minimum_bytes(norm_case());
  const auto binds = [&](const NcuKernel& k) {
    const Profile p = profile_of(norm_case(), {k});
    EXPECT_EQ(p.counters.size(), 10u);
    return p.binds;
  };
  EXPECT_EQ(binds(kernel(90, 20, 5, least)),
            "DRAM binds: 90% of its peak, and little more than the least bytes.");
  EXPECT_NE(binds(kernel(90, 20, 5, 2 * least)).find("2 times the least bytes"), std::string::npos);
  EXPECT_EQ(binds(kernel(30, 85, 5, least)).rfind("The SMs bind: 85%", 0), 0u);
  EXPECT_NE(binds(kernel(30, 20, 5, least)).find("waiting for global memory"), std::string::npos);
}

TEST(Profile, what_was_not_measured_is_no_number) {
  const Profile p = profile_of(norm_case(), parse_ncu(kSample));
  EXPECT_EQ(p.counters.at(3).name, "L2 hit rate");
  EXPECT_EQ(p.counters.at(3).value, "not measured");
}

TEST(Profile, the_host_counts_and_says_so) {
  TraceResult trace;
  trace.c = norm_case();
  trace.bytes_min = 1000;
  KernelTrace k;
  k.bytes_loaded = 1500;
  k.bytes_stored = 500;
  k.requests = 10;
  k.sectors = 80;
  trace.kernels = {k};
  k.name = "kernels/rms_norm/rms_norm.cu:57";
  trace.lines = {k};
  const Profile p = profile_of(trace);
  EXPECT_EQ(p.counters.size(), 10u);
  EXPECT_EQ(p.source.rfind("counted on the host executor", 0), 0u);
  EXPECT_EQ(p.binds,
            "Memory, 2 times what it must be (caches may hide a part): most is moved at "
            "kernels/rms_norm/rms_norm.cu:57.");
}

}  // namespace
}  // namespace tigon
