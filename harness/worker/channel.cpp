// SPDX-License-Identifier: Apache-2.0
// The worker's own end.
#include "harness/worker/channel.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

namespace tigon::worker {

bool is_worker() {
  struct stat info {};
  return fstat(kSocketDescriptor, &info) == 0 && S_ISSOCK(info.st_mode);
}

void begin_worker(bool limits_memory) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  const rlimit no_core = {0, 0};
  setrlimit(RLIMIT_CORE, &no_core);
#ifdef __SANITIZE_ADDRESS__
  limits_memory = false;
#endif
  if (!limits_memory) return;
  const auto pages = static_cast<rlim_t>(sysconf(_SC_PHYS_PAGES));
  const rlim_t bytes = pages * static_cast<rlim_t>(sysconf(_SC_PAGESIZE));
  rlimit memory;
  getrlimit(RLIMIT_AS, &memory);  // the hard limit stays: reserved addresses move the soft one
  memory.rlim_cur = std::min(bytes, memory.rlim_max);
  setrlimit(RLIMIT_AS, &memory);
}

void Channel::hide() {
  int hidden = fcntl(socket_, F_DUPFD_CLOEXEC, 64);
  if (hidden < 0) hidden = fcntl(socket_, F_DUPFD_CLOEXEC, 4);  // few descriptors are allowed
  close(socket_);
  socket_ = hidden;
}

// False when the other side is gone.
bool Channel::read(bool waits) {
  char bytes[4096];
  const ssize_t n = recv(socket_, bytes, sizeof bytes, waits ? 0 : MSG_DONTWAIT);
  if (n > 0) received_.append(bytes, static_cast<size_t>(n));
  return n > 0 || (n < 0 && (errno == EINTR || errno == EAGAIN));
}

std::optional<std::string> Channel::receive() {
  std::string line;
  while (!received_.take_line(&line))
    if (!read(true)) return std::nullopt;
  return line;
}

bool Channel::receive_byte(char byte, bool spins) {
  std::string got;
  while (!received_.take_byte(&got))
    if (!read(!spins)) return false;
  return got.front() == byte;
}

}  // namespace tigon::worker
