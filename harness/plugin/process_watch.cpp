// SPDX-License-Identifier: Apache-2.0
// Reads /proc.
#include "harness/plugin/process_watch.h"

#include <fmt/format.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <map>

namespace tigon::plugin {

namespace {

namespace fs = std::filesystem;

struct Stat {
  char state = 'X';
  pid_t parent = 0;
};

// "pid (name) state parent ...": the name may hold anything, so the last ')' counts.
Stat stat_of(const fs::path& folder) {
  std::ifstream file(folder / "stat");
  std::string text;
  std::getline(file, text);
  const size_t end = text.rfind(')');
  Stat stat;
  if (end == std::string::npos || end + 4 >= text.size()) return stat;
  stat.state = text[end + 2];
  std::from_chars(text.data() + end + 4, text.data() + text.size(), stat.parent);
  return stat;
}

std::vector<fs::path> threads_of(pid_t pid) {
  std::error_code error;
  std::vector<fs::path> all;
  for (fs::directory_iterator i(fmt::format("/proc/{}/task", pid), error), end; !error && i != end;
       i.increment(error))
    all.push_back(i->path());
  return all;
}

// Every live process' parent.
std::map<pid_t, pid_t> parents() {
  std::map<pid_t, pid_t> all;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator("/proc", error)) {
    const std::string name = entry.path().filename();
    pid_t pid = 0;
    const auto [end, bad] = std::from_chars(name.data(), name.data() + name.size(), pid);
    if (bad != std::errc() || *end != '\0') continue;
    const Stat stat = stat_of(entry.path());
    if (stat.state != 'Z' && stat.state != 'X') all[pid] = stat.parent;
  }
  return all;
}

}  // namespace

int thread_count(pid_t pid) { return static_cast<int>(threads_of(pid).size()); }

bool is_runnable(pid_t pid) {
  const std::vector<fs::path> threads = threads_of(pid);
  return std::any_of(threads.begin(), threads.end(),
                     [](const fs::path& thread) { return stat_of(thread).state == 'R'; });
}

double processor_seconds(pid_t pid) {
  clockid_t clock;
  timespec time = {};
  if (clock_getcpuclockid(pid, &clock) != 0 || clock_gettime(clock, &time) != 0) return 0;
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

std::vector<pid_t> started_by(pid_t pid, const std::vector<pid_t>& ours) {
  std::vector<pid_t> found;
  const pid_t self = getpid();
  const auto is_ours = [&](pid_t p) {
    return p == self || p == pid || std::find(ours.begin(), ours.end(), p) != ours.end();
  };
  const std::map<pid_t, pid_t> all = parents();
  for (const auto& [process, parent] : all) {
    if (is_ours(process)) continue;
    pid_t p = parent;
    while (p > 1 && !is_ours(p) && all.count(p) != 0) p = all.at(p);
    if (p == pid || p == self) found.push_back(process);
  }
  return found;
}

}  // namespace tigon::plugin
