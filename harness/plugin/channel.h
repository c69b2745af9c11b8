// How the judge and tigon-plugin-host talk: JSON, one packet each, over a socket; tensors lie in
// shared memory. The host program links neither contracts nor oracles nor the judge.
#pragma once
#include <cstddef>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

namespace tigon::plugin {

using Json = nlohmann::json;

// What the host program is started with, and nothing else.
inline constexpr int kSocketDescriptor = 3;
inline constexpr int kMemoryDescriptor = 4;

// The addresses of tensors are multiples of this plus what the judge shifts them by.
inline constexpr size_t kAlignment = 256;

// A program that speaks for its kernels itself, in the place of tigon-plugin-host and a library.
inline bool is_program(const std::string& path) {
  return path.size() > 3 && path.rfind(".py") == path.size() - 3;
}

// One packet. False when the other side is gone.
bool send_packet(int socket, const Json& message);
// Waits for a packet; nullopt when the other side is gone or sent no JSON.
std::optional<Json> receive_packet(int socket);

// The single bytes around a timed call: they cost less than a packet. `spin`: ask again and again
// instead of sleeping, which costs a core and saves the wake-up.
inline constexpr char kGo = 'g', kDone = 'd';
bool send_byte(int socket, char byte);
bool receive_byte(int socket, char byte, bool spin);

}  // namespace tigon::plugin
