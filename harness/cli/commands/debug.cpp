// SPDX-License-Identifier: Apache-2.0
// tigon debug: a case on the host executor under gdb.
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <filesystem>
#include <memory>
#include <regex>

#include "harness/cli/commands.h"
#include "harness/cli/text/terminal.h"
#include "harness/run/check.h"

namespace tigon::cli {
namespace {

struct DebugOptions {
  std::string id, block = "0,0,0", line;
  unsigned thread = 0;
  bool batch = false;
};

// Quits when the program has ended: with its own code, after its own message, where it failed.
std::string unless_running(const std::string& what) {
  return fmt::format(
      "if !$_isvoid($_exitcode)\n"
      "if $_exitcode == 0\n"
      "echo tigon: {}\\n\n"
      "quit {}\n"
      "end\n"
      "quit $_exitcode\n"
      "end\n",
      what, static_cast<int>(kExitNothing));
}

// gdb's words up to the first line of the kernel in the chosen thread, or up to `line` in it. Each
// launch stops again. A program that ends before is no place to look around in: gdb quits.
std::string script(const DebugOptions& options, const std::string& line) {
  std::string words =
      "set pagination off\n"
      "set confirm off\n"
      "set debuginfod enabled off\n"
      "set print thread-events off\n"
      "set print frame-arguments none\n"
      "handle SIGSEGV stop\n"
      "break *tigon_debugger_stop\n"
      "run\n" +
      unless_running(
          fmt::format("no launch has block {} thread {}", options.block, options.thread)) +
      "eval \"tbreak *%p\", $rdi\n"
      "continue\n"
      "next\n";
  if (!line.empty())  // in this launch or a later one
    words += fmt::format("delete 1\ntbreak {} if (bool)tigon_debugger_here()\ncontinue\n{}", line,
                         unless_running("that thread does not come to " + line));
  if (options.batch) words += "backtrace 1\nlist\ninfo args\n";
  if (options.batch && !line.empty()) words += "info locals\n";  // at the first line none has one
  if (options.batch) words += "kill\n";
  return words;
}

// A file of this process and those it becomes, gone with the last of them.
std::string file_of(const std::string& text) {
  const int fd = memfd_create("tigon-debug", 0);
  if (fd < 0 || write(fd, text.data(), text.size()) != static_cast<ssize_t>(text.size()))
    throw std::runtime_error("no memory for gdb's script");
  return fmt::format("/proc/self/fd/{}", fd);
}

int debug(const DebugOptions& options) {
  const Case c = parse_case(options.id);
  if (!std::regex_match(options.block, std::regex("[0-9]+(,[0-9]+){0,2}")))
    throw UsageError(
        fmt::format("--block {}: a block is X, X,Y or X,Y,Z, e.g. 3,0,0", options.block));
  namespace fs = std::filesystem;
  const fs::path program =
      fs::read_symlink("/proc/self/exe").parent_path() / ("tigon-debug-" + c.op);
  if (!fs::exists(program))
    throw std::runtime_error(
        fmt::format("no program {}; ./tigon debug builds it", program.string()));
  std::vector<std::string> words = {"gdb", "-q", "-nx"};
  if (options.batch) words.push_back("-batch");
  const bool number = options.line.find(':') == std::string::npos;
  const std::string line = options.line.empty() ? ""
                           : number             ? fmt::format("{}.cu:{}", c.op, options.line)
                                                : options.line;
  words.insert(words.end(), {"-x", file_of(script(options, line))});
  const std::string thread = std::to_string(options.thread);
  words.insert(words.end(), {"--args", program.string(), case_id(c), options.block, thread});
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  fmt::print("block {} thread {} of each launch of {}\n", options.block, thread, case_id(c));
  std::fflush(stdout);
  execvp("gdb", arguments.data());
  print_error("gdb is missing; install it with: sudo apt-get install gdb");
  return kExitInfrastructure;
}

}  // namespace

void add_debug(Command command, Program* program) {
  command.footer(
      "Examples:\n"
      "  ./tigon debug 'rms_norm/forward/fused/f32/T=3,H=33'\n"
      "  ./tigon debug 'rms_norm/forward/fused/f32/T=9,H=33' --block 1,0,0 --thread 17\n"
      "  ./tigon debug 'rms_norm/forward/fused/f32/T=9,H=33' --line forward_rows.h:75 --batch   "
      "prints and ends\n"
      "The kernels of the op are compiled without optimisation on the first use. gdb stands at "
      "the\n"
      "first line of the kernel in that thread; next, step, print and break work as ever, with "
      "the\n"
      "line numbers of its source. All threads run on one thread of the system, one after the\n"
      "other, so a breakpoint of your own stops in each of them.");
  const auto options = std::make_shared<DebugOptions>();
  command.option("case", &options->id, "id of the case, as ./tigon check prints it").required();
  command.option("--block", &options->block, "block to stop in: X, X,Y or X,Y,Z (0,0,0)");
  command.option("--thread", &options->thread, "thread of that block, counted through (0)")
      .between(0u, 1023u);
  command.option("--line", &options->line,
                 "stop at this line in that thread: N of the op's .cu, or FILE:N");
  command.flag("--batch", &options->batch, "print the place, arguments and variables, and end");
  command.run([=] {
    if (default_executor() == "cuda")
      throw UsageError("debug runs on the host executor: ./tigon --device host debug");
    program->exit_code = debug(*options);
  });
}

}  // namespace tigon::cli
