// SPDX-License-Identifier: Apache-2.0
// Reports of trainings as records: their fields, as record.schema.json declares them.
#pragma once
#include "convergence/experiment.h"
#include "harness/json/json.h"

namespace tigon::cli {

Json fields_of(const convergence::StepReport& s);
Json fields_of(const convergence::RunReport& r);
Json fields_of(const convergence::VerdictReport& v);
Json fields_of(const convergence::GradientReport& g);
Json fields_of(const convergence::StateReport& r);
Json fields_of(const convergence::RepeatReport& r);
Json fields_of(const convergence::ClaimReport& r);

}  // namespace tigon::cli
