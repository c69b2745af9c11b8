// Packets between the judge and tigon-plugin-host.
#include "harness/plugin/channel.h"

#include <poll.h>
#include <sys/socket.h>

#include <cerrno>
#include <vector>

namespace tigon::plugin {

namespace {

constexpr size_t kMostBytes = size_t{1} << 18;  // of a packet; a call of 20 tensors has 3 KiB

}  // namespace

bool send_packet(int socket, const Json& message) {
  const std::string text = message.dump(-1, ' ', false, Json::error_handler_t::replace);
  ssize_t sent = -1;
  do sent = send(socket, text.data(), text.size(), MSG_NOSIGNAL);
  while (sent < 0 && errno == EINTR);
  return sent == static_cast<ssize_t>(text.size());
}

std::optional<Json> receive_packet(int socket) {
  std::vector<char> bytes(kMostBytes);
  ssize_t n = -1;
  do n = recv(socket, bytes.data(), bytes.size(), 0);
  while (n < 0 && errno == EINTR);
  if (n <= 0) return std::nullopt;
  Json message = Json::parse(bytes.data(), bytes.data() + n, nullptr, false);
  if (message.is_discarded() || !message.is_object()) return std::nullopt;
  return message;
}

bool send_byte(int socket, char byte) { return send(socket, &byte, 1, MSG_NOSIGNAL) == 1; }

bool receive_byte(int socket, char byte, bool spin) {
  char got = 0;
  for (;;) {
    const ssize_t n = recv(socket, &got, 1, spin ? MSG_DONTWAIT : 0);
    if (n > 0) return got == byte;
    if (n == 0 || (errno != EAGAIN && errno != EINTR)) return false;
  }
}

}  // namespace tigon::plugin
