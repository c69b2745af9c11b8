// SPDX-License-Identifier: Apache-2.0
// Lines over a socket.
#include "harness/worker/lines.h"

#include <sys/socket.h>

#include <cerrno>

namespace tigon::worker {

bool send_bytes(int socket, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno != EINTR) return false;
    if (sent > 0) bytes.remove_prefix(static_cast<size_t>(sent));
  }
  return true;
}

bool send_line(int socket, std::string_view text) {
  return send_bytes(socket, std::string(text) + "\n");
}

bool Received::take_line(std::string* line) {
  const size_t end = bytes_.find('\n');
  if (end == std::string::npos) return false;
  *line = bytes_.substr(0, end);
  bytes_.erase(0, end + 1);
  return true;
}

bool Received::take_byte(std::string* byte) {
  if (bytes_.empty()) return false;
  *byte = bytes_.substr(0, 1);
  bytes_.erase(0, 1);
  return true;
}

}  // namespace tigon::worker
