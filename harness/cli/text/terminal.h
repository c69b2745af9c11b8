// SPDX-License-Identifier: Apache-2.0
// What the terminal shows: colours where they are wanted, a progress bar on a terminal, plain lines
// elsewhere.
#pragma once
#include <chrono>
#include <string>
#include <string_view>

namespace tigon::cli {

enum class Color { kNone, kGreen, kRed, kYellow, kDim };

// `text` in a colour when stdout is a terminal and NO_COLOR is not set, or CLICOLOR_FORCE is.
std::string colored(std::string_view text, Color color);

// `text` as one line on stderr behind "tigon: ". It may quote what was typed: line ends become
// spaces, and of a text without end the middle is left out.
void print_error(std::string text);

// A bar on stderr when that is a terminal and CI is not set; else a line every ten seconds. Lines
// for stdout go through line(), which keeps the bar below them.
class Progress {
 public:
  // `total` steps; 0: not known, no bar.
  explicit Progress(std::string title, int total = 0);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // One step is done; `label` says which. The time left is as the steps after the first took.
  void step(std::string_view label);
  // What is done before the first step.
  void begin(std::string_view label);
  // Some steps were done by another run.
  void shorten(int steps) { total_ -= steps; }
  void line(std::string_view text);

 private:
  void draw(std::string_view label);
  void erase();
  std::string left() const;  // ", about 3 s left" where that is known

  std::string title_;
  int total_, done_ = 0;
  bool shown_ = false, bar_;
  std::chrono::steady_clock::time_point drawn_ = std::chrono::steady_clock::now();
  std::chrono::steady_clock::time_point first_done_ = drawn_;
};

// Bytes as text, binary units: "1.5 GiB". Seconds: "12.3 µs". A rate in decimal units: "3.2 TB/s".
std::string show_bytes(double bytes);
std::string show_seconds(double seconds);
std::string show_rate(double per_second, std::string_view unit);

}  // namespace tigon::cli
