// SPDX-License-Identifier: Apache-2.0
// Which kernels were launched: simt.h asks; and whether they have ended.
#pragma once

namespace tigon::simt {

void note_launch(const void* kernel);
// Other work of a stream, a copy or a product: what this host thread launches later comes after all
// that it has launched.
void close_launches();

}  // namespace tigon::simt
