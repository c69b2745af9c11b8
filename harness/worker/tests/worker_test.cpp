// SPDX-License-Identifier: Apache-2.0
// However a worker ends, its owner learns it, in time, and nothing of it stays.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <fstream>

#include "harness/worker/process.h"

namespace tigon::worker {
namespace {

using Clock = std::chrono::steady_clock;

double since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// A worker that is a shell script; the socket is its descriptor 3.
Start script(const std::string& text) { return {.words = {"sh", "-c", text}}; }

Heard first_of(const std::string& text, const Patience& patience = {.silence_s = 20}) {
  Process process;
  process.start(script(text));
  return process.hear(patience);
}

// Whether a process runs that is not merely waiting to be reaped.
bool is_alive(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  std::string text;
  std::getline(file, text);
  const size_t end = text.rfind(')');
  return end != std::string::npos && text[end + 2] != 'Z' && text[end + 2] != 'X';
}

bool ends_soon(pid_t pid) {
  const auto start = Clock::now();
  while (is_alive(pid) && since(start) < 10) usleep(1000);
  return !is_alive(pid);
}

TEST(Worker, answers_line_by_line) {
  Process process;
  process.start(script("while read line <&3; do echo \"got $line\" >&3; done"));
  for (const char* line : {"one", "two"}) {
    process.send(line);
    const Heard heard = process.hear({.silence_s = 20});
    EXPECT_EQ(heard.kind, Heard::kAnswer);
    EXPECT_EQ(heard.text, std::string("got ") + line);
  }
  EXPECT_FALSE(process.is_gone());
}

TEST(Worker, lines_that_arrive_together_are_taken_one_by_one) {
  Process process;
  process.start(script("printf 'a\\nb\\nc' >&3; sleep 0.2; echo d >&3; sleep 1000"));
  for (const char* line : {"a", "b", "cd"}) EXPECT_EQ(process.hear({.silence_s = 20}).text, line);
}

TEST(Worker, what_it_prints_is_no_answer) {
  EXPECT_EQ(first_of("echo no; echo nor this >&2; cat; echo yes >&3; sleep 1000").text, "yes");
}

TEST(Worker, a_crash_is_its_signal_and_its_last_words) {
  const Heard heard = first_of("echo one; echo two >&2; kill -SEGV $$");
  EXPECT_EQ(heard.kind, Heard::kCrashed);
  EXPECT_EQ(heard.text, "ended by signal 11 (Segmentation fault)");
  EXPECT_EQ(heard.last_words, "; it said: two");
}

TEST(Worker, an_exit_is_its_code_in_the_words_of_its_owner) {
  EXPECT_EQ(first_of("exit 0").text, "ended with exit code 0");
  EXPECT_EQ(first_of("exit 3").text, "ended with exit code 3");
  Process process({.exited = "left with {}"});
  process.start(script("exit 3"));
  const Heard heard = process.hear({});
  EXPECT_EQ(heard.kind, Heard::kCrashed);
  EXPECT_EQ(heard.text, "left with 3");
  EXPECT_EQ(heard.last_words, "");
}

TEST(Worker, answers_before_the_end_are_not_lost) {
  Process process;
  process.start(script("echo one >&3; echo two >&3; exit 3"));
  EXPECT_EQ(process.hear({}).text, "one");
  EXPECT_EQ(process.hear({}).text, "two");
  EXPECT_EQ(process.hear({}).text, "ended with exit code 3");
}

TEST(Worker, silence_has_a_limit) {
  const auto start = Clock::now();
  const Heard heard = first_of("echo busy; while :; do :; done", {.silence_s = 0.3});
  EXPECT_EQ(heard.kind, Heard::kTimeout);
  EXPECT_EQ(heard.text, "no answer within 0.3 s");
  EXPECT_EQ(heard.last_words, "; it said: busy");
  EXPECT_GE(since(start), 0.3);
  EXPECT_LT(since(start), 5);
}

TEST(Worker, the_limit_counts_from_the_request) {
  Process process;
  process.start(script("read line <&3; sleep 0.2; echo $line >&3; sleep 1000"));
  usleep(1'000'000);
  process.send("late");
  EXPECT_EQ(process.hear({.silence_s = 0.9}).text, "late");
}

TEST(Worker, one_that_is_stopped_is_killed) {
  EXPECT_EQ(first_of("kill -STOP $$", {.silence_s = 0.3}).kind, Heard::kTimeout);
}

TEST(Worker, output_without_end_is_read_and_dropped) {
  const Heard heard =
      first_of("head -c 20000000 /dev/zero; echo; echo the end; echo yes >&3; exit");
  EXPECT_EQ(heard.text, "yes");
  const Heard flood = first_of("exec yes x", {.silence_s = 0.5});
  EXPECT_EQ(flood.kind, Heard::kTimeout);
  EXPECT_EQ(flood.last_words, "; it said: x");
}

TEST(Worker, last_words_are_one_short_line) {
  const Heard heard = first_of("printf '\\001'; head -c 500 /dev/zero | tr '\\0' y; exit 1");
  EXPECT_EQ(heard.last_words, "; it said:  " + std::string(199, 'y'));
}

TEST(Worker, an_answer_without_end_does_not_fill_our_memory) {
  const Heard heard = first_of("exec cat /dev/zero >&3", {.silence_s = 60});
  EXPECT_EQ(heard.kind, Heard::kCrashed);
  EXPECT_EQ(heard.text, "wrote garbage where results go, killed");
}

TEST(Worker, one_that_closes_its_socket_and_stays_is_killed) {
  Process process;
  process.start(script("exec 3>&-; exec sleep 1000"));
  const pid_t pid = process.pid();
  EXPECT_EQ(process.hear({}).text, "closed its connection");
  EXPECT_FALSE(is_alive(pid));
}

std::atomic<bool> pressed = false;
bool ctrl_c() { return pressed; }

TEST(Worker, ctrl_c_ends_it_at_once) {
  pressed = true;
  const auto start = Clock::now();
  EXPECT_EQ(first_of("sleep 1000", {.is_interrupted = ctrl_c}).kind, Heard::kInterrupted);
  EXPECT_LT(since(start), 5);
  pressed = false;
}

TEST(Worker, ctrl_c_with_grace_lets_it_finish) {
  const std::string text =
      "trap 'echo last >&3; exit 0' TERM; echo ready >&3; while :; do sleep 0.01; done";
  Process process;
  process.start(script(text));
  EXPECT_EQ(process.hear({}).text, "ready");
  pressed = true;
  const Patience patience = {.is_interrupted = ctrl_c, .grace_s = 20};
  EXPECT_EQ(process.hear(patience).text, "last");
  EXPECT_EQ(process.hear(patience).text, "ended with exit code 0");
  pressed = false;
}

TEST(Worker, grace_ends) {
  Process process;
  process.start(script("trap '' TERM; echo ready >&3; while :; do sleep 0.01; done"));
  EXPECT_EQ(process.hear({}).text, "ready");
  pressed = true;
  const auto start = Clock::now();
  EXPECT_EQ(process.hear({.is_interrupted = ctrl_c, .grace_s = 0.3}).kind, Heard::kInterrupted);
  EXPECT_GE(since(start), 0.3);
  EXPECT_LT(since(start), 5);
  pressed = false;
}

TEST(Worker, what_it_started_ends_with_it) {
  Process process;
  process.start(script("sleep 1000 & echo $! >&3; wait"));
  const pid_t grandchild = std::stoi(process.hear({.silence_s = 20}).text);
  const pid_t pid = process.pid();
  EXPECT_TRUE(is_alive(grandchild));
  process.stop();
  EXPECT_TRUE(ends_soon(grandchild));
  EXPECT_FALSE(is_alive(pid));
}

TEST(Worker, one_that_leaves_a_process_with_its_socket_has_ended_all_the_same) {
  Process process;
  process.start(script("trap '' TERM; sleep 1000 & echo $! >&3; exit 3"));
  const pid_t grandchild = std::stoi(process.hear({.silence_s = 20}).text);
  EXPECT_EQ(process.hear({.silence_s = 20}).text, "ended with exit code 3");
  EXPECT_TRUE(ends_soon(grandchild));
}

TEST(Worker, its_group_is_its_own_unless_asked_otherwise) {
  for (const bool has_own_group : {true, false}) {
    Start start = script("echo ready >&3; sleep 1000");
    start.has_own_group = has_own_group;
    Process process;
    process.start(start);
    process.hear({});
    EXPECT_EQ(getpgid(process.pid()), has_own_group ? process.pid() : getpgid(0));
  }
}

TEST(Worker, it_dies_with_its_parent) {
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  Process parent;
  parent.fork([](int socket) {
    Process inner;
    inner.fork([](int) { pause(); });
    send_line(socket, std::to_string(inner.pid()));
    pause();
  });
  const pid_t grandchild = std::stoi(parent.hear({.silence_s = 20}).text);
  EXPECT_TRUE(is_alive(grandchild));
  EXPECT_NE(getpgid(grandchild), getpgid(parent.pid()));
  parent.stop();
  EXPECT_TRUE(ends_soon(grandchild));
  kill(grandchild, SIGKILL);
}

TEST(Worker, it_gets_no_descriptor_of_ours) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);  // without CLOEXEC
  EXPECT_EQ(first_of("for i in 4 5 6 7 8 9; do test -e /proc/$$/fd/$i && found=$found$i; done;"
                     "echo found: $found >&3")
                .text,
            "found:");
  close(ends[0]);
  close(ends[1]);
}

TEST(Worker, its_environment_is_ours_with_changes) {
  setenv("WORKER_TEST_A", "a", 1);
  setenv("WORKER_TEST_AB", "ab", 1);
  Start start = script("echo $WORKER_TEST_A $WORKER_TEST_AB >&3");
  start.environment = environment_with({"WORKER_TEST_A=changed"});
  EXPECT_EQ(std::ranges::count_if(start.environment,
                                  [](const auto& v) { return v.starts_with("WORKER_TEST_A="); }),
            1);
  Process process;
  process.start(start);
  EXPECT_EQ(process.hear({}).text, "changed ab");
}

TEST(Worker, its_output_may_go_to_a_file) {
  const std::string file = testing::TempDir() + "worker_output_" + std::to_string(getpid());
  Start start = script("echo out; echo err >&2; exit 1");
  start.output = file;
  Process process;
  process.start(start);
  EXPECT_EQ(process.hear({}).last_words, "");
  std::ifstream output(file);
  std::string one, two;
  std::getline(output, one);
  std::getline(output, two);
  EXPECT_EQ(one + "," + two, "out,err");
  unlink(file.c_str());
}

TEST(Worker, a_program_that_is_not_there_is_said) {
  Process process;
  try {
    process.start({.words = {"/no/such/program"}});
    FAIL();
  } catch (const CannotStart& error) {
    EXPECT_STREQ(error.what(), "cannot start /no/such/program: No such file or directory");
  }
  EXPECT_FALSE(process.is_started());
}

TEST(Worker, after_an_end_it_can_be_started_again) {
  Process process;
  for (const char* text : {"exit 1", "exit 2"}) {
    process.start(script(text));
    EXPECT_NE(process.hear({}).text.find(std::string(text).substr(5)), std::string::npos);
    EXPECT_FALSE(process.is_started());
    EXPECT_TRUE(process.is_gone());
  }
}

TEST(Worker, one_that_has_ended_since_its_answer_is_gone) {
  Process process;
  process.start(script("echo ready >&3; exit 0"));
  process.hear({});
  EXPECT_TRUE(ends_soon(process.pid()));
  EXPECT_TRUE(process.is_gone());
}

}  // namespace
}  // namespace tigon::worker
