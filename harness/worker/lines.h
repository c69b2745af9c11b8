// SPDX-License-Identifier: Apache-2.0
// The messages between a worker and the one who started it: one JSON text a line, over a socket.
#pragma once
#include <string>
#include <string_view>

namespace tigon::worker {

// The descriptors with which a worker starts: of the socket, and of the shared memory if it has one
// (shared_memory.h).
inline constexpr int kSocketDescriptor = 3;
inline constexpr int kMemoryDescriptor = 4;

// The text and a line's end. False when the other side is gone.
bool send_line(int socket, std::string_view text);
bool send_bytes(int socket, std::string_view bytes);

// What has arrived and is not taken yet.
class Received {
 public:
  void append(const char* bytes, size_t count) { bytes_.append(bytes, count); }
  // The first whole line, without its end. False when there is none yet.
  bool take_line(std::string* line);
  bool take_byte(std::string* byte);
  void clear() { bytes_.clear(); }
  size_t size() const { return bytes_.size(); }

 private:
  std::string bytes_;
};

}  // namespace tigon::worker
