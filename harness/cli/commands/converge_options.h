// SPDX-License-Identifier: Apache-2.0
// The options of tigon converge, which tigon run has in part.
#pragma once
#include <string>
#include <vector>

#include "convergence/converge.h"
#include "harness/cli/commands/parts.h"

namespace tigon::cli {

struct ConvergeOptions {
  convergence::ConvergeRequest request;
  std::vector<std::string> dtypes;
  bool tied = false, untied = false;
  std::vector<std::string> experiments;  // of the papers' claims, in place of the training
  bool all = false;                      // all of them, and the controls
  bool controls = false;                 // the negative controls
  int seeds = 0;                         // of the evidence on the kernels that ship; 0: none
  PartsOptions parts;                    // one step by part, in place of the training
  double rate = 0;                       // 0: the config's, as of what follows
  std::string load, exports;             // folders of models of Hugging Face
  int sequence = 0, batch = 0, vocabulary = 0, accumulate = 0, medusa = 0;  // 0: the config's
};

// The request, checked: throws UsageError for a wrong name or number, and MissingData when --data
// does not exist.
convergence::ConvergeRequest checked_request(const ConvergeOptions& options);

// Before a run is begun: the model that it asks for. Throws UsageError.
convergence::ModelConfig checked_config(const convergence::ConvergeRequest& request);

// Required data that is not there: exit code 4.
struct MissingData : std::runtime_error {
  using std::runtime_error::runtime_error;
};

}  // namespace tigon::cli
