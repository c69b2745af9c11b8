// SPDX-License-Identifier: Apache-2.0
// What every pass promises of its calls: again, in other sizes, from a graph, on streams, at other
// addresses.
#include <fmt/format.h>

#include <algorithm>

#include "harness/spec/experiment.h"
#include "harness/spec/properties.h"

namespace tigon {

namespace {

// A difference between calls that should be one and the same.
template <class Relation>
void expect_deterministic(Relation relation) {
  try {
    relation();
  } catch (const Violation& v) {
    throw Nondeterminism(v.what());
  }
}

void rerun(Experiment& e) {
  const int times = e.has_streams() ? 20 : 4;  // the host has four orders, a GPU chooses its own
  for (int i = 1; i < times; ++i) {
    Call call = e.base();
    call.order = i;
    const HostTensors again = e.run(call);
    expect_deterministic([&] {
      expect_all_same(
          again, e.base_outputs(),
          e.has_streams() ? fmt::format("in run {}", i + 1) : fmt::format("in thread order {}", i),
          e.has_streams() ? "in the first" : "in order 0");
    });
  }
}

// What a call leaves behind must not matter to the next, of other sizes or of the same.
void size_sequence(Experiment& e) {
  const std::string rows = e.op().axes.front().axis.symbol;
  const HostTensors first = e.base_outputs();
  for (const int64_t n : {2 * e.base().axes.at(rows) + 1, int64_t{1}}) {
    Call other = e.base();
    other.axes[rows] = n;
    other = e.generated(other, 1);
    e.judge(other, e.run(other));
    const HostTensors again = e.run(e.base());
    expect_deterministic([&] {
      expect_all_same(again, first, fmt::format("after a call with {}={}", rows, n), "before it");
    });
  }
}

void graph_replay(Experiment& e) {
  const std::vector<Call> calls = {e.base(), e.generated(e.base(), 1), e.base()};
  const std::vector<HostTensors> replayed = e.replay(calls);
  for (size_t i = 0; i < calls.size(); ++i) {
    e.judge(calls[i], replayed[i]);  // an eager call may be wrong in the same way
    const HostTensors eager = i == 1 ? e.run(calls[i]) : e.base_outputs();
    expect_all_same(replayed[i], eager,
                    fmt::format("replayed with contents {}", i == 1 ? "B" : "A"),
                    "called with them");
  }
}

void require_streams(const Experiment& e) {
  if (!e.has_streams()) throw NotApplicable("the host executor has no streams");
}

void second_stream(Experiment& e) {
  require_streams(e);
  expect_all_same(e.run_on_streams({e.base()}, 1).front(), e.base_outputs(), "on a second stream",
                  "on the default one");
}

void two_streams(Experiment& e) {
  require_streams(e);
  const Call other = e.generated(e.base(), 1);
  const auto both = e.run_on_streams({e.base(), other}, 16);
  expect_all_same(both[0], e.base_outputs(), "beside another stream", "alone");
  expect_all_same(both[1], e.run(other), "beside another stream", "alone");
}

// Names of what a call has in memory.
std::vector<std::string> tensors_of(Experiment& e) {
  std::vector<std::string> names;
  for (const auto& [name, tensor] : e.base().inputs) names.push_back(name);
  for (const auto& [name, tensor] : e.base_outputs())
    if (!e.base().inputs.count(name)) names.push_back(name);
  return names;
}

// Right at every address; 16-byte accesses must notice. A tensor alone, then all.
void offsets(Experiment& e) {
  const auto try_with = [&](std::map<std::string, int> shift) {
    Call call = e.base();
    call.shift = std::move(shift);
    e.judge(call, e.run(call));
  };
  const std::vector<std::string> names = tensors_of(e);
  for (const std::string& name : names) try_with({{name, 1}});
  for (int elements = 1; elements < 8; ++elements) {
    std::map<std::string, int> all;
    for (const std::string& name : names) all[name] = elements;
    try_with(all);
  }
}

const TensorInfo& info_of(const Experiment& e, const std::string& name) {
  for (const TensorInfo& t : e.pass().tensors)
    if (t.name == name) return t;
  throw std::logic_error("no tensor " + name);
}

// Where rows may lie apart, a pitch that keeps their alignment gives the same bits (or right
// results only) and another one right results; where they may not, the call is right or refused.
void try_row_gaps(Experiment& e, bool bitwise) {
  constexpr int kAligned = 16, kOdd = 3;
  for (const std::string& name : tensors_of(e)) {
    const TensorInfo& info = info_of(e, name);
    if (info.shape.size() < 2) continue;
    for (const int gap : {kAligned, kOdd}) {
      Call call = e.base();
      call.gap[name] = gap;
      HostTensors outputs;
      try {
        outputs = e.run(call);
      } catch (const Refusal&) {
        if (info.is_strided) throw;
        continue;
      }
      if (gap == kAligned && bitwise)
        expect_all_same(outputs, e.base_outputs(),
                        fmt::format("with {} elements between the rows of {}", gap, name),
                        "without");
      else
        e.judge(call, outputs);
    }
  }
}

}  // namespace

Property row_gaps(bool bitwise) {
  Property p;
  p.name = "row_gaps";
  p.statement = bitwise ? "rows that lie apart give the same bits, or are refused"
                        : "rows that lie apart give right results, or are refused";
  p.check = [bitwise](Experiment& e) { try_row_gaps(e, bitwise); };
  p.one_shape = true;
  return p;
}

std::vector<Property> common_properties() {
  std::vector<Property> all = {
      also_naive({"rerun", "the same bits in every run, whatever the order of threads", rerun}),
      also_naive({"size_sequence", "the same bits after calls of other sizes", size_sequence}),
      {"graph_replay", "a graph replayed in place with new contents equals a call with them",
       graph_replay},
      {"second_stream", "the same bits on a second stream", second_stream},
      {"two_streams", "the same bits with a second stream at work", two_streams},
      {"offsets", "right at addresses 0 to 7 elements off their alignment", offsets},
      row_gaps()};
  for (Property& p : all) p.one_shape = true;
  return all;
}

}  // namespace tigon
