// SPDX-License-Identifier: Apache-2.0
// Records of kind next_action and next_action_gap: their fields, and as text.
#pragma once
#include <string>

#include "convergence/converge.h"
#include "harness/record/record_writer.h"

namespace tigon::cli {

Json fields_of(const convergence::next_action::PredictorReport& report);
Json fields_of(const convergence::next_action::GapReport& report);

// The table of predictors: its head, and the row of a record.
std::string predictor_head();
std::string predictor_line(const Json& record);

std::string gap_line(const Json& record);

}  // namespace tigon::cli
