// SPDX-License-Identifier: Apache-2.0
// What the terminal shows.
#include "harness/cli/text/terminal.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>

namespace tigon::cli {
namespace {

bool is_set(const char* variable) {
  const char* value = std::getenv(variable);
  return value != nullptr && *value != '\0';
}

bool use_color() {
  if (is_set("NO_COLOR")) return false;
  if (is_set("CLICOLOR_FORCE") && std::string_view(std::getenv("CLICOLOR_FORCE")) != "0")
    return true;
  return isatty(STDOUT_FILENO) != 0;
}

// The value in the largest unit of `names` (steps of `base`) that keeps it at 1 or more.
std::string in_units(double value, double base, std::initializer_list<const char*> names) {
  auto unit = names.begin();
  for (; unit + 1 != names.end() && std::abs(value) >= base; ++unit) value /= base;
  return fmt::format("{:.4g} {}", value, *unit);
}

}  // namespace

std::string colored(std::string_view text, Color color) {
  if (color == Color::kNone || !use_color()) return std::string(text);
  const int code = color == Color::kGreen    ? 32
                   : color == Color::kRed    ? 31
                   : color == Color::kYellow ? 33
                                             : 2;
  return fmt::format("\x1b[{}m{}\x1b[0m", code, text);
}

void print_error(std::string text) {
  constexpr size_t kHead = 300, kTail = 250;
  for (char& c : text)
    if (static_cast<unsigned char>(c) < 0x20) c = ' ';
  if (text.size() > kHead + kTail)
    text = text.substr(0, kHead) + " [...] " + text.substr(text.size() - kTail);
  fmt::print(stderr, "tigon: {}\n", text);
}

// How often a bar moves, and a line is written where there is none.
constexpr std::chrono::milliseconds kDrawn{100}, kSaid{10'000};

Progress::Progress(std::string title, int total)
    : title_(std::move(title)),
      total_(total),
      bar_(total > 0 && isatty(STDERR_FILENO) != 0 && !is_set("CI")) {
  if (bar_) draw("");
}

Progress::~Progress() { erase(); }

void Progress::step(std::string_view label) {
  ++done_;
  const auto now = std::chrono::steady_clock::now();
  if (done_ == 1) first_done_ = now;
  if (total_ <= 0 || now - drawn_ < (bar_ ? kDrawn : kSaid)) return;
  drawn_ = now;
  if (bar_)
    draw(label);
  else
    fmt::print(stderr, "tigon: {}: {} of {}{}\n", title_, done_, total_, left());
}

void Progress::begin(std::string_view label) {
  if (bar_)
    draw(label);
  else if (total_ > 0)
    fmt::print(stderr, "tigon: {}: {} of {}, {}\n", title_, done_, total_, label);
}

// The first step does not count, for it has what is done once; and nothing is said before a
// twentieth is done.
std::string Progress::left() const {
  if (done_ < 2 || done_ * 20 < total_) return "";
  const std::chrono::duration<double> so_far = std::chrono::steady_clock::now() - first_done_;
  return fmt::format(", about {:.0f} s left",
                     so_far.count() * std::max(0, total_ - done_) / (done_ - 1));
}

void Progress::line(std::string_view text) {
  erase();
  // Unlike fmt::print this does not throw when nobody reads: the run goes on, and main() says so.
  std::fwrite(text.data(), 1, text.size(), stdout);
  std::fputc('\n', stdout);
  std::fflush(stdout);
}

void Progress::draw(std::string_view label) {
  constexpr int kWidth = 24;
  const int filled = kWidth * std::min(done_, total_) / std::max(1, total_);
  fmt::print(stderr, "\r\x1b[K{} [{:=<{}}{: <{}}] {}/{}{}, {}", title_, "", filled, "",
             kWidth - filled, done_, total_, left(), label.substr(0, 60));
  std::fflush(stderr);
  shown_ = true;
}

void Progress::erase() {
  if (!shown_) return;
  fmt::print(stderr, "\r\x1b[K");
  std::fflush(stderr);
  shown_ = false;
}

std::string show_bytes(double bytes) {
  return in_units(bytes, 1024, {"B", "KiB", "MiB", "GiB", "TiB"});
}

std::string show_seconds(double seconds) {
  return seconds >= 1 ? fmt::format("{:.4g} s", seconds)
                      : in_units(seconds * 1e9, 1000, {"ns", "µs", "ms", "s"});
}

std::string show_rate(double per_second, std::string_view unit) {
  return in_units(per_second, 1000, {"", "k", "M", "G", "T", "P"}) + std::string(unit);
}

}  // namespace tigon::cli
