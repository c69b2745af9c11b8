// SPDX-License-Identifier: Apache-2.0
// Landlock, by system calls: Debian 12's headers and libraries know its first versions only.
#include "harness/plugin/sandbox.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>

namespace tigon::plugin {

namespace {

// linux/landlock.h of Linux 6.12.
struct RulesetAttributes {
  uint64_t handled_access_fs, handled_access_net, scoped;
};
struct [[gnu::packed]] PathBeneath {
  uint64_t allowed_access;
  int32_t parent_fd;
};
constexpr long kCreateRuleset = 444, kAddRule = 445, kRestrictSelf = 446;  // the same everywhere
constexpr int kVersionFlag = 1, kRulePathBeneath = 1;
constexpr uint64_t kWriteFile = 1u << 1;
constexpr uint64_t kRemoveToMakeSym = 0x1ff0;  // bits 4 to 12
constexpr uint64_t kRefer = 1u << 13, kTruncate = 1u << 14;
constexpr uint64_t kTcpBindAndConnect = 3;
constexpr uint64_t kAbstractSocketsAndSignals = 3;

bool allow(int ruleset, const char* path, uint64_t access) {
  const int folder = open(path, O_PATH | O_CLOEXEC);
  if (folder < 0) return false;
  const PathBeneath rule = {access, folder};
  const long failed = syscall(kAddRule, ruleset, kRulePathBeneath, &rule, 0);
  close(folder);
  return failed == 0;
}

}  // namespace

std::string enter_sandbox(const std::string& writable) {
  const long version = syscall(kCreateRuleset, nullptr, 0, kVersionFlag);
  if (version < 1) return "none";
  RulesetAttributes attributes = {kWriteFile | kRemoveToMakeSym, 0, 0};
  size_t size = sizeof(uint64_t);
  if (version >= 2) attributes.handled_access_fs |= kRefer;
  if (version >= 3) attributes.handled_access_fs |= kTruncate;
  if (version >= 4) {
    attributes.handled_access_net = kTcpBindAndConnect;
    size = 2 * sizeof(uint64_t);
  }
  if (version >= 6) {
    attributes.scoped = kAbstractSocketsAndSignals;
    size = 3 * sizeof(uint64_t);
  }
  const auto ruleset = static_cast<int>(syscall(kCreateRuleset, &attributes, size, 0));
  if (ruleset < 0) return "none";
  // CUDA names its threads. Without this or the next it is stricter, which is no reason to have
  // none.
  allow(ruleset, "/proc/self/task", attributes.handled_access_fs & (kWriteFile | kTruncate));
  if (!writable.empty()) allow(ruleset, writable.c_str(), attributes.handled_access_fs);
  // Devices are for writing, e.g. /dev/null and the GPU's, and shared memory.
  const bool restricted = allow(ruleset, "/dev", attributes.handled_access_fs) &&
                          prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
                          syscall(kRestrictSelf, ruleset, 0) == 0;
  close(ruleset);
  return restricted ? "landlock " + std::to_string(version) : "none";
}

void hide_process() { prctl(PR_SET_DUMPABLE, 0, 0, 0, 0); }

}  // namespace tigon::plugin
