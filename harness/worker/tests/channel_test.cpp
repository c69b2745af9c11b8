// SPDX-License-Identifier: Apache-2.0
// The worker's own end, in C++ and in Python, and the memory that is shared.
#include "harness/worker/channel.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstdlib>

#include "harness/worker/process.h"

namespace tigon::worker {
namespace {

const Patience kPatience = {.silence_s = 30};

TEST(Channel, requests_arrive_until_there_are_no_more) {
  Process process;
  process.fork([](int socket) {
    Channel channel(socket);
    channel.hide();
    while (const auto line = channel.receive()) channel.send(*line + *line);
  });
  for (const std::string line : {"a", "", "b"}) {
    process.send(line);
    EXPECT_EQ(process.hear(kPatience).text, line + line);
  }
  const std::string large(3'000'000, 'x');  // much more than a socket holds
  process.send(large);
  EXPECT_EQ(process.hear(kPatience).text.size(), 2 * large.size());
}

TEST(Channel, bytes_lie_between_lines) {
  for (const bool spins : {false, true}) {
    Process process;
    process.fork([spins](int socket) {
      Channel channel(socket);
      while (channel.receive()) {
        channel.send("armed");
        const bool right = channel.receive_byte('g', spins);
        channel.send_byte('d');
        channel.send(right ? "right" : "wrong");
      }
    });
    const auto timed = [&](char byte) {
      process.send("request");
      EXPECT_EQ(process.hear(kPatience).text, "armed");
      process.send_byte(byte);
      EXPECT_EQ(process.hear_byte({.silence_s = 30, .spins = spins}).text, "d");
      return process.hear(kPatience).text;
    };
    EXPECT_EQ(timed('g'), "right");
    EXPECT_EQ(timed('h'), "wrong");
  }
}

TEST(Channel, a_worker_has_no_core_file_and_may_have_a_limit_of_memory) {
  Process process;
  process.fork([](int socket) {
    rlimit core, memory;
    getrlimit(RLIMIT_CORE, &core);
    core.rlim_cur = core.rlim_max;  // where this machine has no core files anyway
    setrlimit(RLIMIT_CORE, &core);
    begin_worker(true);
    getrlimit(RLIMIT_CORE, &core);
    getrlimit(RLIMIT_AS, &memory);
    const auto bytes = static_cast<size_t>(sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE));
    send_line(socket, std::to_string(core.rlim_cur) + (memory.rlim_cur <= bytes ? " limited" : ""));
  });
  EXPECT_EQ(process.hear(kPatience).text, "0 limited");
}

TEST(Channel, who_was_not_started_as_a_worker_knows_it) { EXPECT_FALSE(is_worker()); }

// Adds 1 to the last byte of as many as the request says.
void add_at_the_end(int socket, int descriptor) {
  Channel channel(socket);
  SharedMemory memory(descriptor);
  while (const auto line = channel.receive()) {
    const size_t bytes = std::stoul(*line);
    memory.map(bytes)[bytes - 1] += 1;
    channel.send("done");
  }
}

TEST(SharedMemory, both_sides_see_it_while_it_grows) {
  SharedMemory memory;
  Process process;
  process.fork([&](int socket) { add_at_the_end(socket, memory.descriptor()); });
  memory.grow(1)[0] = 7;
  for (const size_t bytes : {size_t{5000}, size_t{3} << 20, size_t{100} << 20}) {
    memory.grow(bytes)[bytes - 1] = 41;
    EXPECT_GE(memory.bytes(), bytes);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(memory.data()) % 4096, 0u);
    process.send(std::to_string(bytes));
    EXPECT_EQ(process.hear(kPatience).text, "done");
    EXPECT_EQ(memory.data()[bytes - 1], 42);
    EXPECT_EQ(memory.data()[0], 7);  // contents stay
  }
}

TEST(SharedMemory, the_other_side_cannot_take_it_away) {
  SharedMemory memory;
  memory.grow(1);
  EXPECT_NE(ftruncate(memory.descriptor(), 0), 0);
  EXPECT_EQ(memory.data()[0], 0);
}

TEST(SharedMemory, what_is_not_there_cannot_be_mapped) {
  EXPECT_THROW(SharedMemory(-1).map(1), std::runtime_error);
}

// ---- Python -------------------------------------------------------------------------------------

std::string python() {
  const char* chosen = std::getenv("TIGON_PYTHON");
  return chosen != nullptr && *chosen != '\0' ? chosen : "python3";
}

// A worker in Python; `memory` may be null.
void start_python(Process* process, const std::string& text, const SharedMemory* memory) {
  process->start(
      {.words = {python(), "-c", "import tigon_worker\nchannel = tigon_worker.Channel()\n" + text},
       .environment =
           environment_with({"PYTHONPATH=" TIGON_WORKER_FOLDER, "PYTHONDONTWRITEBYTECODE=1"}),
       .memory = memory});
}

TEST(PythonWorker, answers_requests_until_there_are_no_more) {
  Process process;
  start_python(&process,
               "print('no answer')\n"
               "for request in channel.requests():\n"
               "    channel.send({'twice': 2 * request['n']})\n",
               nullptr);
  for (const int n : {1, 2}) {
    process.send("{\"n\": " + std::to_string(n) + "}");
    const Heard heard = process.hear(kPatience);
    EXPECT_EQ(heard.text, "{\"twice\": " + std::to_string(2 * n) + "}") << heard.last_words;
  }
  const std::string large(2'000'000, '1');
  process.send("{\"n\": \"" + large + "\"}");
  EXPECT_EQ(process.hear(kPatience).text.size(), 2 * large.size() + 13);
}

TEST(PythonWorker, bytes_lie_between_lines) {
  for (const std::string spins : {"False", "True"}) {
    Process process;
    start_python(&process,
                 "for request in channel.requests():\n"
                 "    channel.send('armed')\n"
                 "    right = channel.byte(" +
                     spins +
                     ") == b'g'\n"
                     "    channel.send_byte(b'd')\n"
                     "    channel.send(right)\n",
                 nullptr);
    process.send("{}");
    EXPECT_EQ(process.hear(kPatience).text, "\"armed\"");
    process.send_byte('g');
    EXPECT_EQ(process.hear_byte(kPatience).text, "d");
    EXPECT_EQ(process.hear(kPatience).text, "true");
  }
}

TEST(PythonWorker, shares_memory_that_grows) {
  SharedMemory memory;
  Process process;
  start_python(&process,
               "for size in channel.requests():\n"
               "    tigon_worker.shared_memory(size)[size - 1] += 1\n"
               "    channel.send('done')\n",
               &memory);
  for (const size_t bytes : {size_t{1} << 20, size_t{9} << 20}) {
    memory.grow(bytes)[bytes - 1] = 41;
    process.send(std::to_string(bytes));
    const Heard heard = process.hear(kPatience);
    EXPECT_EQ(heard.text, "\"done\"") << heard.last_words;
    EXPECT_EQ(memory.data()[bytes - 1], 42);
  }
}

TEST(PythonWorker, what_it_raises_is_its_last_words) {
  Process process;
  start_python(&process, "raise ValueError('no luck')\n", nullptr);
  const Heard heard = process.hear(kPatience);
  EXPECT_EQ(heard.text, "ended with exit code 1");
  EXPECT_EQ(heard.last_words, "; it said: ValueError: no luck");
}

}  // namespace
}  // namespace tigon::worker
