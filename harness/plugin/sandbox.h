// SPDX-License-Identifier: Apache-2.0
// What a plug-in library may not do: write files, look into other processes, signal them, use the
// network. By Landlock (Linux 5.13); older kernels leave the separate process alone as the wall.
#pragma once
#include <string>

namespace tigon::plugin {

// Shuts this thread, and all that it starts, in; there is no way back. Returns what holds from now
// on, e.g. "landlock 6", or "none" where the kernel has nothing.
// `writable`: a folder in which files may be written all the same, if it is there.
std::string enter_sandbox(const std::string& writable = "");

// This process' memory and descriptors can no longer be opened by others of the same user.
void hide_process();

}  // namespace tigon::plugin
