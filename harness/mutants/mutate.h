// SPDX-License-Identifier: Apache-2.0
// Writes faults into a source file: all behind one run-time switch (planted.h), or one for good.
#pragma once
#include <string>
#include <vector>

#include "harness/mutants/mutant.h"

namespace tigon {

// An edit and the fault that it belongs to.
struct NamedEdit {
  const Mutant* fault;
  const Edit* edit;
};

// `text` with these edits. Places are looked for in the text as it is, so edits may share one or
// lie within another. Lines stay where they are, and #line names them as those of `path`. Throws
// FaultFileError for an edit whose text is not there exactly once.
std::string mutated(const std::string& text, const std::string& path,
                    const std::vector<NamedEdit>& edits);

// `text` with all changes of this fault, whatever file they name, and without a switch: it compiles
// with nothing of Tigon. Lines stay where they are. Throws as mutated() does.
std::string with_one_fault(const std::string& text, const Mutant& fault);

// Throws FaultFileError unless the edit's file is a source of kernels in the tree at `root`.
void check_file(const std::string& root, const Mutant& fault, const Edit& edit);

// The text of that file of the tree with what the faults change in it.
std::string mutated_file(const std::string& root, const std::string& file,
                         const std::vector<Mutant>& faults);

}  // namespace tigon
