// SPDX-License-Identifier: Apache-2.0
// A user's own log of learners' actions, in one of three public layouts that its header tells:
// act-mooc (SNAP), JODIE (as published or with TGN's column names) and OULAD's studentVle.
#pragma once
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "convergence/next_action/sequences.h"

namespace tigon::convergence::next_action {

// Learners with fewer actions are left out: they tell little.
inline constexpr size_t kFewestActions = 10;

struct Log {
  std::string layout;              // its name
  bool daily = false;              // times are days: the order inside a day is that of the file
  std::vector<Sequence> learners;  // in the order of their first lines, each sorted by time
  int32_t vocabulary = 0;          // resources that these learners use
  int64_t left_out = 0;            // learners with too few actions
};

// Reads all of it. Ids may be any text; in OULAD, where time begins again with each presentation of
// a module, a student of two presentations counts as two. Throws ConvergeError(2) that names the
// file, and the line where one cannot be read.
Log read_log(const std::filesystem::path& file);

// Throws as read_log when the header is that of no layout, and reads no further.
void require_log(const std::filesystem::path& file);

}  // namespace tigon::convergence::next_action
