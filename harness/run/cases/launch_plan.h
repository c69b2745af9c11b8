// SPDX-License-Identifier: Apache-2.0
// The cases of launch paths: what a pass takes by its row length and alignment.
#pragma once
#include "harness/run/cases/case_list.h"

namespace tigon {

// On the path of each shape of a contract: every option set; of a shape of all element types every
// input set and layout too, and of few elements the properties; each in one element type. `asks`:
// launchers are asked which launch they take, and of those shapes the first with the same one meets
// all that; else all do.
void add_further_paths(const std::vector<Shape>& shapes, bool asks, CaseList* list);

// Those of one element type with the options that take another kernel, rows apart and rows shifted;
// `in_turn`: shifted ones with every other of these options, which are others from shape to shape.
void add_forms_of_one_type(const std::vector<Shape>& shapes, bool asks, bool in_turn,
                           CaseList* list);

// Every launch shape of the pass, which the device is asked for, at its shortest and its longest
// row, the tensors aligned and each off by another number of elements; on short rows all sets,
// layouts and properties as well, on the first long one that takes its kernel the properties. Those
// that only a launch table chooses with every option set. `middle`: where no row length takes
// another path.
void add_launch_paths(const Shape& middle, CaseList* list);

// Of these launch shapes each that takes short rows, once, in one element type, at its longest row;
// of the others but the last, one block and one cluster on one row that is as long as they take.
void add_launch_shapes(CaseList* list);

}  // namespace tigon
