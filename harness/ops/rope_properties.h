// SPDX-License-Identifier: Apache-2.0
// Exact promises of rope's options, for both of its passes.
#pragma once
#include <limits>

#include "harness/spec/experiment.h"
#include "harness/spec/properties.h"
#include "reference/rope.h"

namespace tigon::rope {

// All columns, asked for by their number.
inline Property neutral_rotary() {
  return {"neutral_rotary", "rotary = D gives the same bits as 0", [](Experiment& e) {
            Call call = e.base();
            call.options["rotary"] = std::to_string(call.axes.at("D"));
            expect_all_same(e.run(call), e.base_outputs(), "with rotary = D", "without");
          }};
}

inline HostTensor token_numbers(int64_t tokens) {
  HostTensor positions{DType::kI64, {1, tokens}, {}};
  for (int64_t t = 0; t < tokens; ++t) positions.values.push_back(static_cast<double>(t));
  return positions;
}

inline Property neutral_positions() {
  return {"neutral_positions", "positions 0, 1, 2.. give the same bits as none", [](Experiment& e) {
            Call call = e.base();
            call.options["positions"] = "given";
            call.inputs["positions"] = token_numbers(call.axes.at("T"));
            expect_all_same(e.run(call), e.base_outputs(), "with positions 0, 1, 2..", "without");
          }};
}

// The options of a call that say which position a pair has.
inline Options sections_of(const Experiment& e, const Call& call) {
  Options o;
  o.height = static_cast<int>(e.option(call, "height"));
  o.width = static_cast<int>(e.option(call, "width"));
  o.sections = static_cast<Sections>(static_cast<int>(e.option(call, "sections")));
  return o;
}

// The rows that the positions choose, in the order of tokens.
inline HostTensor gathered(const HostTensor& table, const HostTensor& positions, const Options& o) {
  HostTensor rows = table;
  const int64_t tokens = positions.shape[1], half = table.shape[1];
  for (int64_t t = 0; t < tokens; ++t)
    for (int64_t j = 0; j < half; ++j) {
      const int section = positions.shape[0] == 3 ? reference::rope::section_of(j, half, o) : 0;
      const double row = positions.values.at(static_cast<size_t>(section * tokens + t));
      rows.values.at(static_cast<size_t>(t * half + j)) =
          table.values.at(static_cast<size_t>(static_cast<int64_t>(row) * half + j));
    }
  return rows;
}

inline Property gathered_angles() {
  return {"gathered_angles", "the same bits as without positions on the rows that they choose",
          [](Experiment& e) {
            Call call = e.base();
            const HostTensor positions = call.inputs.at("positions");
            const Options o = sections_of(e, call);
            for (const char* option : {"positions", "height", "width", "sections"})
              call.options.erase(option);
            call.inputs.erase("positions");
            for (const char* table : {"cos", "sin"})
              call.inputs[table] = gathered(call.inputs.at(table), positions, o);
            expect_all_same(e.run(call), e.base_outputs(), "on chosen rows", "with positions");
          }};
}

inline Property positions_without_a_row() {
  return {"positions_without_a_row",
          "a position outside of the table makes NaN of what it would turn, and of nothing else",
          [](Experiment& e) {
            const auto rows = static_cast<double>(e.base().axes.at("T"));
            for (const double outside : {-1.0, rows, 0x1p32, -0x1p62, 0x1p62}) {
              Call call = e.base();
              std::vector<double>& positions = call.inputs.at("positions").values;
              for (size_t i = 0; i < positions.size(); i += 2) positions[i] = outside;
              e.judge(call, e.run(call));
            }
          }};
}

// `out` by input: with it the results are there, with the same bits, and the input stays.
inline Property outputs_elsewhere(std::map<std::string, std::string> out) {
  const auto check = [=](Experiment& e) {
    std::vector<std::map<std::string, std::string>> trials = {out};
    for (const auto& one : out) trials.push_back({one});
    for (const auto& trial : trials) {
      Call call = e.base();
      for (const auto& [input, output] : trial) call.options[output] = "given";
      const HostTensors outputs = e.run(call);
      for (const auto& [input, output] : out) {
        const HostTensor& want = e.base_outputs().at(input);
        if (!trial.count(input)) {
          expect_same(input, outputs.at(input), want, "beside the other elsewhere", "in place");
          continue;
        }
        expect_same(output, outputs.at(output), want, "elsewhere", "in place");
        expect_same(input, outputs.at(input), call.inputs.at(input), "after the call", "before");
      }
    }
  };
  return {"outputs_elsewhere", "the same bits out of place, and the input is only read", check};
}

}  // namespace tigon::rope
