// tigon debug: a case on the host executor under gdb.
#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>
#include <memory>
#include <regex>

#include "harness/cli/commands.h"
#include "harness/cli/terminal.h"
#include "harness/run/check.h"

namespace tigon::cli {
namespace {

struct DebugOptions {
  std::string id, block = "0,0,0", line;
  unsigned thread = 0;
  bool batch = false;
};

// gdb's words up to the first line of the kernel in the chosen thread, or up to `line` in it. Each
// launch stops anew.
std::vector<std::string> script(const std::string& line, bool batch) {
  std::vector<std::string> lines = {"set pagination off",
                                    "set confirm off",
                                    "set debuginfod enabled off",
                                    "set print thread-events off",
                                    "set print frame-arguments none",
                                    "handle SIGSEGV stop",
                                    "break *tigon_debugger_stop",
                                    "run",
                                    "eval \"tbreak *%p\", $rdi",
                                    "continue",
                                    "next"};
  if (!line.empty())  // in this launch or a later one
    lines.insert(
        lines.end(),
        {"delete 1", fmt::format("tbreak {} if (bool)tigon_debugger_here()", line), "continue"});
  if (batch) lines.insert(lines.end(), {"backtrace 1", "list", "info args"});
  if (batch && !line.empty()) lines.push_back("info locals");  // at the first line none has a value
  if (batch) lines.push_back("kill");
  return lines;
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
  for (const std::string& word : script(line, options.batch))
    words.insert(words.end(), {"-ex", word});
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

void add_debug(CLI::App* app, Program* program) {
  CLI::App* command =
      app->add_subcommand("debug", "a case on the host executor under gdb, in the kernel's source");
  command->footer(
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
  command->add_option("case", options->id, "id of the case, as ./tigon check prints it")
      ->required();
  command->add_option("--block", options->block, "block to stop in: X, X,Y or X,Y,Z (0,0,0)");
  command->add_option("--thread", options->thread, "thread of that block, counted through (0)")
      ->check(CLI::Range(0u, 1023u));
  command->add_option("--line", options->line,
                      "stop at this line in that thread: N of the op's .cu, or FILE:N");
  command->add_flag("--batch", options->batch, "print the place, arguments and variables, and end");
  command->callback([=] {
    if (default_executor() == "cuda")
      throw UsageError("debug runs on the host executor: ./tigon --device host debug");
    program->exit_code = debug(*options);
  });
}

}  // namespace tigon::cli
