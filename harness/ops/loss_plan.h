// SPDX-License-Identifier: Apache-2.0
// What the contracts of losses share.
#pragma once
#include <string>
#include <vector>

#include "harness/ops/input_sets.h"
#include "harness/spec/op_spec.h"

namespace tigon {

// ---- all losses over a vocabulary ---------------------------------------------------------------

// Sizes of logits [T, V] that lie in memory.
std::vector<AxisPlan> logit_axes(const Axis& tokens, const Axis& vocabulary);

// Sets that differ in the targets, on top of the plans of the default set: normal, some_ignored,
// all_ignored, invalid_targets.
std::vector<InputSet> target_input_sets(const Axis& classes,
                                        const std::vector<InputPlan>& defaults);

Property of_one_shape(Property property);

// Near the oracle where options meet an input set that they could break on; a middle shape.
Property judged(std::string name, std::string statement, const char* inputs,
                std::vector<OptionSet> options);

std::vector<Property> joined(std::vector<std::vector<Property>> parts);
std::vector<OptionSet> joined(std::vector<std::vector<OptionSet>> parts);

// ---- log_prob and what has its results ----------------------------------------------------------

// target_input_sets() with upstream gradients of logp and entropy.
std::vector<InputSet> log_prob_input_sets(const Axis& classes, std::vector<InputPlan> defaults);

// The entropy with its gradient, beside other options.
OptionSet with_entropy(OptionSet options = {});

// Temperatures that are refused: they, or their inverses, are no finite numbers above 0.
std::vector<OptionSet> refused_temperatures();

// Values that the unfused chain rounds: x / temperature, and with the entropy p, log p and their
// product, all in fp32.
inline constexpr double kLogProbChainRoundings = 4;

// ---- divergence and linear_divergence -----------------------------------------------------------

const OptionSet kReverse = {{"kind", "reverse_kl"}}, kMixed = {{"kind", "jsd"}};
const std::vector<OptionSet> kKinds = {{}, kReverse, kMixed};

// Temperatures and shares of a mixture that are refused.
std::vector<OptionSet> refused_divergences();

// ---- cross_entropy and linear_cross_entropy -----------------------------------------------------

// The options, and everything that is returned beside the loss.
OptionSet with_results(OptionSet options);

// Every option of LossOptions alone at a value that shows, several at once, and no upstream
// gradient.
std::vector<OptionSet> loss_option_sets();

// Nothing is the target's alone: the last label_smoothing that is allowed, with class weights as
// well.
std::vector<OptionSet> full_smoothing();
// label_smoothing outside of [0, 1].
std::vector<OptionSet> refused_smoothing();

// Those that take another form of the kernels (kernels/loss/forms.h).
std::vector<OptionSet> loss_forms();

// target_input_sets() with the other inputs. The upstream gradient is never one: a kernel that
// forgets it must show.
std::vector<InputSet> loss_input_sets(const Axis& classes, std::vector<InputPlan> defaults);

// The unfused chain with what it declares.
Implementation naive_loss(Implementation chain);

// Rows whose sum a mean divides by, and classes whose sum smoothing takes, with class weights.
Expr weight_terms(Axis rows, Axis classes);

// Promises of every pass, and of those that compute a gradient.
std::vector<Property> loss_properties();
std::vector<Property> loss_gradient_properties();

// What accuracy means by the largest logit.
Property first_of_equals();

}  // namespace tigon
