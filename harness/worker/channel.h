// SPDX-License-Identifier: Apache-2.0
// The worker's own end: its requests, its answers, and what it may take of the machine. The same in
// Python is tigon_worker.py.
#pragma once
#include <optional>
#include <string>
#include <string_view>

#include "harness/worker/lines.h"

namespace tigon::worker {

// Whether this process was started as a worker: kSocketDescriptor is a socket.
bool is_worker();

// Ends with the thread that started it, and leaves no core file. `limits_memory`: it gets no more
// addresses than the machine has memory, so that what takes all of it fails here and at once; a
// GPU's driver and sanitizers reserve far more.
void begin_worker(bool limits_memory);

class Channel {
 public:
  explicit Channel(int socket = kSocketDescriptor) : socket_(socket) {}

  // Moves the socket out of the reach of code that prints to every descriptor, and of programs that
  // this process starts.
  void hide();

  // Waits for the next line; nothing when the other side is gone.
  std::optional<std::string> receive();
  // False when the other side is gone.
  bool send(std::string_view line) const { return send_line(socket_, line); }

  // The bytes around a timed call: they cost less than a line. `spins`: asks again and again
  // instead of sleeping, which costs a core and saves the wake-up.
  bool receive_byte(char byte, bool spins);
  bool send_byte(char byte) const { return send_bytes(socket_, {&byte, 1}); }

 private:
  bool read(bool waits);

  int socket_;
  Received received_;
};

}  // namespace tigon::worker
