// SPDX-License-Identifier: Apache-2.0
// Source lines and kernel names of addresses in this process. Costs nothing until something is
// asked.
#pragma once
#include <string>
#include <vector>

namespace tigon::simt {

struct SourceLine {
  std::string file;  // relative to the source tree; program name and offset when line is 0
  unsigned line = 0;
};

// Looks the addresses up in one go (one run of addr2line per program or library); known ones are
// free.
void resolve(const std::vector<const void*>& pcs);
// Of the innermost inlined frame that is kernel code rather than the device layer. `pc` is a return
// address: the line is that of the instruction before it.
SourceLine source_line(const void* pc);

// A function of this program.
struct Function {
  std::string name;  // as of kernel_name()
  const void* address = nullptr;
};
// Those whose name, without template arguments, ends so.
std::vector<Function> functions(const std::string& ending);

// Function at that address, without namespace tigon, return type and parameters.
std::string kernel_name(const void* function);

}  // namespace tigon::simt
