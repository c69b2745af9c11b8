// SPDX-License-Identifier: Apache-2.0
// Input sets that contracts share: variants of a default set, and the special rows that every op
// must survive.
#pragma once
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "harness/spec/op_spec.h"

namespace tigon {

// The default set with other plans for some tensors.
InputSet replaced(InputSet set, const char* name, const std::vector<InputPlan>& plans);

// The same distribution for several tensors.
std::vector<InputPlan> plans_of(const std::vector<std::string>& tensors, const char* distribution,
                                const std::map<std::string, double>& parameters = {});

// Adds sets in which every second row of these tensors is special but finite.
void add_special_rows(std::vector<InputSet>* sets, const std::vector<std::string>& tensors);

// Adds sets of logits where a maximum or a sum shows what it starts with: all far below 0, nearly
// equal, and one that is finite and far above the others in each row.
void add_logits(std::vector<InputSet>* sets, const char* tensor);

// Adds sets with a NaN, an infinity of either sign, and the largest finite values; `largest` where
// an op's own sums of larger ones overflow in fp32.
void add_nonfinite(std::vector<InputSet>* sets, const std::vector<std::string>& tensors,
                   double largest = std::numeric_limits<double>::infinity());

// Adds sets with an upstream gradient of 0 in every second row, and with one that is negative
// everywhere.
void add_upstream(std::vector<InputSet>* sets, const std::vector<std::string>& tensors);

}  // namespace tigon
