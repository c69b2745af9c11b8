// SPDX-License-Identifier: Apache-2.0
// A step by part: times lie within the step and cover it, memory sums to the peak, and memory that
// runs out is an outcome.
#include <gtest/gtest.h>

#include "convergence/maxlen.h"
#include "convergence/measure_parts.h"
#include "convergence/micro.h"
#include "convergence/train.h"

namespace tigon::convergence {
namespace {

constexpr Part kTimed[] = {Part::kNorms,  Part::kRotary, Part::kActivation, Part::kAttention,
                           Part::kLinear, Part::kLoss,   Part::kOptimizer,  Part::kOther};

ModelConfig small() {
  ModelConfig c = micro_config(false);
  c.sequence = 32;
  c.vocabulary = 8192;  // the logits are the largest of all
  c.logits_bytes = 16 * 8192 * 2;
  return c;
}

PartsReport measured(const std::vector<std::string>& kernels, const ModelConfig& c = small()) {
  PartsRequest request{c, DType::kBF16, kernels};
  return measure_parts(request);
}

TEST(PartMeter, PartsDoNotNest) {
  PartMeter meter;
  meter.begin_step(nullptr);
  const PartRange outer(&meter, Part::kLoss);
  EXPECT_THROW(meter.begin(Part::kLinear), std::logic_error);
}

TEST(PartMeter, KeepsTheMostOfEachPartBesideWhatWasThere) {
  const DeviceBuffer there(1000);
  PartMeter meter;
  meter.begin_step(nullptr);
  meter.enter(7);
  for (const size_t bytes : {300, 500, 400}) {
    const PartRange range(&meter, Part::kLoss);
    const DeviceBuffer intermediate(bytes);
  }
  meter.enter(8);
  {
    const PartRange range(&meter, Part::kNorms);
    const DeviceBuffer intermediate(200);
  }
  meter.end_step();
  const StepParts step = meter.read();
  EXPECT_EQ(step.intermediates[Part::kLoss], 500);
  EXPECT_EQ(step.intermediates[Part::kNorms], 200);
  EXPECT_EQ(step.at_high_water, Part::kLoss);
  EXPECT_EQ(step.phase_of_high_water, 7);
  EXPECT_EQ(step.high_water, static_cast<int64_t>(device_memory_stats().current) + 500);
}

TEST(Parts, TimesLieWithinTheStepAndCoverIt) {
  for (const bool fused : {false, true}) {
    const PartsReport r = measured(fused ? op_names() : std::vector<std::string>{});
    ASSERT_EQ(r.outcome, Outcome::kMeasured) << r.reason;
    for (const Part part : kTimed) EXPECT_GT(r.seconds[part], 0) << name_of(part);
    EXPECT_EQ(r.seconds[Part::kWeights] + r.seconds[Part::kGradients], 0);
    EXPECT_LE(r.seconds.sum(), r.step_s);
    if (device_info().kind != "cuda") {
      EXPECT_GE(r.seconds.sum(), 0.8 * r.step_s);
    }
    EXPECT_GT(r.tokens_per_s, 0);
  }
}

TEST(Parts, AMeterDoesNotChangeWhatIsComputed) {
  const ModelConfig c = micro_config(false);
  std::vector<float> gradients[2];
  PartMeter meter;
  for (const bool metered : {false, true}) {
    Model<BF16> model(c, fused_ops<BF16>());
    model.set_weights(initial_weights(c, 1));
    model.step({micro_batch(c, 0)}, {0, 0.0}, metered ? &meter : nullptr);
    gradients[metered] = model.gradients();
  }
  EXPECT_EQ(gradients[0], gradients[1]);
}

TEST(Parts, MemorySumsToThePeak) {
  for (const bool fused : {false, true}) {
    const PartsReport r = measured(fused ? op_names() : std::vector<std::string>{});
    EXPECT_EQ(r.peak.total(), r.peak_bytes);
    EXPECT_EQ(r.peak_bytes,
              measured_step(small(), DType::kBF16, fused ? Side::kFused : Side::kNaive));
    if (device_info().kind != "cuda") {  // cuDNN takes workspaces of its own
      EXPECT_NEAR(static_cast<double>(r.planned_bytes) / static_cast<double>(r.peak_bytes), 1,
                  0.01);
    }
    EXPECT_GE(r.peak.unused, 0);
    for (int i = 0; i < kParts; ++i) EXPECT_GE(r.peak.bytes.of[static_cast<size_t>(i)], 0);
    EXPECT_EQ(r.intermediates.sum() == 0, fused) << "kernels allocate nothing";
  }
}

// All of a step's products but the head's: three for each matrix of a layer.
TEST(Parts, ProductsAreCountedAndRunAlone) {
  const PartsReport r = measured(op_names());
  const ModelConfig c = small();
  const int64_t matrices =
      c.hidden * (c.qkv_size() + c.q_size() + int64_t{3} * c.intermediate) * c.layers;
  EXPECT_EQ(r.products.flop, 3.0 * 2.0 * static_cast<double>(matrices * c.tokens_per_pass()));
  EXPECT_GT(r.products.seconds, 0);
  EXPECT_FALSE(r.attention.empty());
  if (device_info().kind != "cuda") {
    EXPECT_EQ(r.attention, "host threads");
  }
}

TEST(Parts, APeakIsLaidOutInItsPhase) {
  ArenaPlan arena{25, std::vector<ByPart<int64_t>>(2), 0};
  arena.phases[0][Part::kNorms] = 10;
  arena.phases[1][Part::kLinear] = 20;
  const PeakMemory with = peak_of(arena, Part::kLoss, 0, 5);
  EXPECT_EQ(with.bytes[Part::kNorms], 10);
  EXPECT_EQ(with.bytes[Part::kLoss], 5);
  EXPECT_EQ(with.unused, 15);
  EXPECT_EQ(with.total(), 30);
  const PeakMemory without = peak_of(arena, Part::kLoss, 0, 0);
  EXPECT_EQ(without.bytes[Part::kLinear], 20) << "the busiest phase";
  EXPECT_EQ(without.unused, 5);
}

TEST(Parts, TheNaiveChainPeaksInItsLoss) {
  const ModelConfig c = small();
  PartMeter meter;
  Model<BF16> model(c, naive_ops<BF16>());
  model.set_weights(initial_weights(c, 1));
  model.step({random_batch(c.tokens_per_pass(), c.vocabulary)}, {0, 0.0}, &meter);
  const StepParts step = meter.read();
  EXPECT_EQ(step.at_high_water, Part::kLoss);
  EXPECT_EQ(step.phase_of_high_water, Model<BF16>::plan_arena(c, naive_ops<BF16>()).loss_phase);
}

TEST(Parts, OfStateAreThoseOfTheLayout) {
  const ModelConfig c = small();
  const PartsReport r = measured(op_names());
  const ParameterLayout layout(c);
  EXPECT_EQ(r.peak.bytes[Part::kWeights], layout.total * 2);
  EXPECT_EQ(r.peak.bytes[Part::kGradients], layout.trained * 2);
  EXPECT_GE(r.peak.bytes[Part::kOptimizer], layout.trained * 3 * 4);
}

TEST(Parts, OneKernelAloneTakesItsPartsMemoryAway) {
  const std::vector<std::string> loss = {"linear_cross_entropy"};
  ModelConfig c = small();
  if (device_info().kind == "cuda") c.sequence = 1024;  // logits larger than a product's workspace
  const PartsReport naive = measured({}, c), alone = measured(loss, c),
                    all = measured(op_names(), c);
  EXPECT_GT(naive.intermediates[Part::kLoss], 0);
  EXPECT_EQ(alone.intermediates[Part::kLoss], 0);
  EXPECT_LT(alone.peak_bytes, naive.peak_bytes);
  EXPECT_GE(alone.peak_bytes, all.peak_bytes);
}

TEST(Parts, AFrozenBackboneHoldsNoStateOfItsOwn) {
  ModelConfig c = small();
  c.medusa = 2;
  const PartsReport trained = measured(op_names(), c);
  c.frozen = true;
  const PartsReport frozen = measured(op_names(), c);
  const ParameterLayout layout(c);
  EXPECT_EQ(frozen.peak.bytes[Part::kWeights], trained.peak.bytes[Part::kWeights]);
  EXPECT_EQ(frozen.peak.bytes[Part::kGradients], layout.trained * 2);
  EXPECT_LT(frozen.peak.bytes[Part::kOptimizer], trained.peak.bytes[Part::kOptimizer]);
  EXPECT_EQ(frozen.peak.total(), frozen.peak_bytes);
}

TEST(Parts, MemoryThatRunsOutIsAnOutcome) {
  PartsRequest request{small(), DType::kBF16, {}};
  const int64_t needed = measure_parts(request).peak_bytes;
  request.memory = needed / 2;
  const PartsReport planned = measure_parts(request);
  EXPECT_EQ(planned.outcome, Outcome::kOutOfMemory);
  EXPECT_EQ(planned.peak_bytes, 0) << "it was run";
  EXPECT_NE(planned.reason.find("planned"), std::string::npos) << planned.reason;
  EXPECT_EQ(planned.peak.total(), planned.planned_bytes);
  request.confirm = true;
  const PartsReport confirmed = measure_parts(request);
  EXPECT_EQ(confirmed.outcome, Outcome::kOutOfMemory);
  EXPECT_EQ(confirmed.peak_bytes, needed);
  request.memory = needed + (needed >> 6);
  EXPECT_EQ(measure_parts(request).outcome, Outcome::kMeasured);
}

TEST(Parts, APlanRunsNothing) {
  PartsRequest request{small(), DType::kBF16, op_names()};
  request.plan_only = true;
  const PartsReport r = measure_parts(request);
  EXPECT_EQ(r.outcome, Outcome::kPlanned);
  EXPECT_EQ(r.peak_bytes, 0);
  EXPECT_EQ(r.peak.total(), r.planned_bytes);
  request.config.sequence = 1 << 24;  // would take a terabyte
  request.memory = int64_t{1} << 30;
  EXPECT_EQ(measure_parts(request).outcome, Outcome::kOutOfMemory);
}

TEST(Parts, AnIntermediateThatCannotBeAllocatedIsOutOfMemory) {
  // The naive chain asks for its logits on the way: far more than any machine has.
  linear_cross_entropy::ForwardBackward<BF16> args;
  BF16::Elem x{}, w{};
  int64_t target = 0;
  float loss = 0, lse = 0;
  const BF16::Elem *const const_x = &x, *const const_w = &w;
  const int64_t* const const_target = &target;
  args.x = {const_x, {int64_t{1} << 30, 1}, {0, 0}};
  args.w = {const_w, {int64_t{1} << 30, 1}, {0, 0}};
  args.target = {const_target, {int64_t{1} << 30}, {0}};
  args.loss = view(&loss, 1);
  args.lse = {&lse, {int64_t{1} << 30}, {0}};
  const Status status = naive_ops<BF16>().run(args, nullptr);
  EXPECT_EQ(status.code, Status::kOutOfMemory) << status.reason;
}

TEST(Parts, OpsAreThoseOfTheModel) {
  EXPECT_EQ(ops_of(*find_config("tiny")),
            (std::vector<std::string>{"rms_norm", "rope", "swiglu", "linear_cross_entropy"}));
  EXPECT_EQ(ops_of(*find_config("tiny-gemma2"))[2], "geglu");
}

}  // namespace
}  // namespace tigon::convergence
