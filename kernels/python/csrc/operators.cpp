// SPDX-License-Identifier: Apache-2.0
// The operators torch.ops.tigon.*: one function for all of them, registered when the library loads.
// Built against any torch from 2.10 it runs with that one and later ones, and needs no Python.
#include <torch/csrc/stable/library.h>

#include <array>
#include <stdexcept>
#include <string>
#include <utility>

#include "kernels/python/csrc/call.h"

namespace tigon::torch_adapter {

namespace {

// The dispatcher gives a function no data of its own, so there is one instance for each operator.
constexpr int kMostOperators = 128;

struct Table {
  Library library;
  std::vector<Pass> passes;
};

// What an exception said while the tables were read; nothing may be thrown then.
std::string& load_error() {
  static std::string error;
  return error;
}

Table read(const char* file) {
  Table table;
  try {
    table.library = adapter::load_library(file);
    if (table.library) table.passes = passes_of(table.library);
    if (table.passes.size() > kMostOperators)
      throw std::runtime_error("there are more operators than this adapter can register");
  } catch (const std::exception& error) {
    load_error() = error.what();
  }
  return table;
}

const Table& host() {
  static const Table table = read("libtigon-host.so");
  return table;
}
// Without a library for CUDA its operators are the host's and say so when they are called.
const Table& cuda() {
  static const Table table = [] {
    Table found = read("libtigon.so");
    if (!found.library) found.passes = host().passes;
    return found;
  }();
  return table;
}

template <const Table& (*table)(), int i>
void boxed(StableIValue* stack, uint64_t, uint64_t) {
  call(table().passes[i], table().library, stack);
}

using Boxed = void (*)(StableIValue*, uint64_t, uint64_t);
template <const Table& (*table)(), int... i>
constexpr std::array<Boxed, sizeof...(i)> functions(std::integer_sequence<int, i...>) {
  return {boxed<table, i>...};
}

template <const Table& (*table)()>
void implement(torch::stable::detail::StableLibrary& library) {
  static constexpr auto kFunctions =
      functions<table>(std::make_integer_sequence<int, kMostOperators>{});
  if (!load_error().empty()) return;
  for (size_t i = 0; i < table().passes.size(); ++i)
    library.impl(table().passes[i].name.c_str(), kFunctions[i]);
}

}  // namespace

}  // namespace tigon::torch_adapter

STABLE_TORCH_LIBRARY(tigon, library) {
  for (const auto& pass : tigon::torch_adapter::cuda().passes) library.def(pass.schema().c_str());
}
STABLE_TORCH_LIBRARY_IMPL(tigon, CPU, library) {
  tigon::torch_adapter::implement<tigon::torch_adapter::host>(library);
}
STABLE_TORCH_LIBRARY_IMPL(tigon, CUDA, library) {
  tigon::torch_adapter::implement<tigon::torch_adapter::cuda>(library);
}

// Why no operator is there; "" where all is well.
extern "C" __attribute__((visibility("default"))) const char* tigon_torch_error() {
  return tigon::torch_adapter::load_error().c_str();
}
