// SPDX-License-Identifier: Apache-2.0
// Which kernels were launched: simt.h asks.
#pragma once

namespace tigon::simt {

void note_launch(const void* kernel);

}  // namespace tigon::simt
