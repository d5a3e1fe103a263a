// The program: parses the command line, runs one command, turns errors into messages and exit codes.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <malloc.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <exception>
#include <memory>
#include <new>
#include <sstream>
#include <string>
#include <system_error>
#include <vector>

#include "base/console.h"
#include "base/error.h"
#include "base/options.h"
#include "base/plain_text.h"
#include "base/text_gate.h"
#include "cli/command.h"
#include "cli/flag_values.h"
#include "cli/manual/manual.h"
#include "cli/manual/reference.h"
#include "cli/old_spellings.h"
#include "cli/process.h"
#include "cli/ranks.h"
#include "report/text/sections.h"
#include "weir_build.h"

namespace {

constexpr const char* kExitCodes =
    "Exit codes: 0 fine, 1 a run failed, 2 bad usage or input, 3 a comparison\n"
    "regressed, 4 ambiguous (with --strict), 130 interrupted (143 by SIGTERM, 129 by\n"
    "SIGHUP); see `weir help exit-codes`.";

// Lines that fit to the right of `column`; CLI11 indents them.
std::string broken_lines(const std::string& text, std::size_t column) {
  const std::string indent = "\n" + std::string(column, ' ');
  std::string result;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (!result.empty()) result += '\n';
    const bool fits = column + line.size() <= weir::kReportColumns;  // if so, its blanks are kept
    result +=
        fits ? line : CLI::detail::find_and_replace(weir::wrapped(line, column, weir::kReportColumns), indent, "\n");
  }
  return result;
}

// The layout of `--help`: 80 columns for descriptions of any length, and examples at the end.
class HelpLayout : public CLI::Formatter {
 public:
  std::string make_option_desc(const CLI::Option* option) const override {
    return broken_lines(CLI::Formatter::make_option_desc(option), get_column_width());
  }

  std::string make_subcommand(const CLI::App* command) const override {
    std::ostringstream out;
    CLI::detail::format_help(out, command->get_display_name(true),
                             broken_lines(command->get_description(), get_column_width()), get_column_width());
    return out.str();
  }

  std::string make_description(const CLI::App* app) const override {
    const std::string description = CLI::Formatter::make_description(app);
    return description.empty() ? description : broken_lines(description, 0) + "\n";
  }

  std::string make_footer(const CLI::App* app) const override {
    std::string footer = CLI::Formatter::make_footer(app);
    if (!footer.empty()) footer = broken_lines(footer, 0) + "\n";
    const weir::cli::ManualEntry* const entry = weir::cli::manual_entry(weir::cli::path_of(*app));
    if (entry == nullptr || entry->examples.empty()) return footer;
    return footer + "\nExamples:\n  " + CLI::detail::find_and_replace(std::string(entry->examples), "\n", "\n  ") +
           "\n";
  }
};

// What a bug report needs: which build this is, and what was left out of it.
std::string version_text() {
  const std::pair<const char*, bool> parts[] = {
      {"cuda", WEIR_HAVE_CUDA},       {"cupti", WEIR_HAVE_CUPTI},   {"hip", WEIR_HAVE_HIP},
      {"opencl", WEIR_HAVE_OPENCL},   {"mpi", WEIR_HAVE_MPI},       {"hwloc", WEIR_HAVE_HWLOC},
      {"zlib", WEIR_HAVE_ZLIB},       {"sqlite", WEIR_HAVE_SQLITE}, {"libarchive", WEIR_HAVE_LIBARCHIVE},
      {"ncurses", WEIR_HAVE_NCURSES}, {"html", WEIR_HAVE_HTML}};
  std::string with, without;
  for (const auto& [name, is_there] : parts) (is_there ? with : without) += std::string(" ") + name;
  return fmt::format("weir {} ({})\nwith:{}\nwithout:{}", WEIR_VERSION, WEIR_COMMIT, with.empty() ? " nothing" : with,
                     without.empty() ? " nothing" : without);
}

int report(const weir::Error& error) {
  weir::cli::end_ranks(error);
  std::string text = fmt::format("weir: {}\n", weir::cli::in_terms_of_flags(error));
  if (!error.hint.empty()) text += fmt::format("      {}\n", weir::wrapped(weir::for_terminal(error.hint), 6));
  weir::write_err(text);
  return weir::cli::exit_code(static_cast<int>(error.fault));
}

// What the current exception is to the user.
weir::Error current_error() {
  try {
    throw;
  } catch (const weir::Error& error) {
    return error;
  } catch (const std::bad_alloc&) {
    return {weir::Fault::run, "out of host memory",
            "Use a smaller --scale or smaller --param sizes, or raise the limit on address space (ulimit -v)."};
  } catch (const std::system_error& error) {
    // std::thread's only error.
    if (error.code() == std::errc::resource_unavailable_try_again)
      return {weir::Fault::run, "cannot start a thread: " + error.code().message(),
              "Raise the limits on processes and address space (ulimit -u, ulimit -v)."};
    return {weir::Fault::run, error.what()};
  } catch (const std::exception& error) {
    return {weir::Fault::run, fmt::format("internal error: {}", error.what()), "This is a bug in weir."};
  } catch (...) {
    return {weir::Fault::run, "internal error: an exception of unknown type", "This is a bug in weir."};
  }
}

int report_current() noexcept { return report(current_error()); }

// Runs where an exception left a thread, a destructor, or report() itself. Without memory: the text may not need any.
[[noreturn]] void end_at_once() noexcept {
  try {
    if (std::current_exception() != nullptr) throw;
    weir::write_err("weir: internal error: terminated\n      This is a bug in weir.\n");
  } catch (const std::bad_alloc&) {
    weir::write_err("weir: out of host memory\n      Raise the limit on address space (ulimit -v).\n");
  } catch (const std::exception& error) {
    weir::print_err("weir: {}\n      It ended a thread.\n", error.what());
  } catch (...) {
    weir::write_err("weir: internal error: an exception of unknown type ended a thread\n");
  }
  ::_exit(static_cast<int>(weir::Fault::run));
}

// Follows the words as the parser would. CLI11 itself reports a command or a flag that it does not know after other
// mistakes, and together with words that are fine.
void reject_unknown(const CLI::App& app, const std::vector<std::string>& words) {
  const CLI::App* command = &app;
  for (std::size_t i = 0; i < words.size() && words[i] != "--"; ++i) {
    const std::string& word = words[i];
    if (!word.starts_with('-') || word.size() == 1) {
      const auto below = command->get_subcommands([&](const CLI::App* each) { return each->check_name(word); });
      if (!below.empty()) {
        command = below.front();
      } else if (command->get_require_subcommand_min() > 0) {
        std::vector<std::string> names;
        for (const CLI::App* each : command->get_subcommands({})) names.push_back(each->get_name());
        const std::string path = weir::cli::path_of(*command);
        weir::reject(fmt::format("{}unknown command '{}'", path.empty() ? "" : path + ": ", word),
                     weir::suggestion(word, names));
      }
      continue;
    }
    const bool is_long = word.starts_with("--");
    const std::size_t end = is_long ? std::min(word.find('='), word.size()) : 2;
    const std::string name = word.substr(0, end);
    const CLI::Option* const option = command->get_option_no_throw(name);
    if (option != nullptr) {
      if (option->get_items_expected_max() > 0 && end == word.size()) ++i;  // its value
      continue;
    }
    std::vector<std::string> names;
    for (const CLI::Option* each : command->get_options())
      if (!each->get_group().empty())
        for (const std::string& known : each->get_lnames()) names.push_back(known);
    const std::string path = weir::cli::path_of(*command);
    const auto meant = weir::nearest(name.substr(std::min(name.find_first_not_of('-'), name.size())), names);
    weir::reject(fmt::format("{}unknown flag '{}'", path.empty() ? "" : path + ": ", name),
                 meant ? fmt::format("Did you mean '--{}'?", *meant)
                       : fmt::format("`weir {}{}--help` lists its flags.", path, path.empty() ? "" : " "));
  }
}

// A line that the manual shows for the command: "weir analyze spans.json".
std::string example_of(const std::string& path) {
  const weir::cli::ManualEntry* const entry = weir::cli::manual_entry(path);
  std::istringstream lines(entry == nullptr ? "" : std::string(entry->examples));
  for (std::string line; std::getline(lines, line);)
    if (line.starts_with("weir " + path + " ")) return line;
  return {};
}

// What the parser says, with what to type instead.
[[noreturn]] void reject_line(const CLI::App& app, const CLI::ParseError& error) {
  const CLI::App* command = &app;
  while (!command->get_subcommands().empty()) command = command->get_subcommands().front();
  const std::string path = weir::cli::path_of(*command), name = path.empty() ? "" : path + ": ";
  const std::string example = example_of(path);
  const std::string help = fmt::format("`weir {}{}--help` shows its flags.", path, path.empty() ? "" : " ");
  const std::string typed = example.empty() ? help : fmt::format("For example: {}", example);
  const auto kind = static_cast<CLI::ExitCodes>(error.get_exit_code());
  if (kind == CLI::ExitCodes::RequiredError && command->get_require_subcommand_min() > 0) {
    std::vector<std::string> names;
    for (const CLI::App* each : command->get_subcommands({})) names.push_back(each->get_name());
    weir::reject(fmt::format("{}a command is required", name),
                 fmt::format("There is: {}. {}", fmt::join(names, ", "), typed));
  }
  if (kind == CLI::ExitCodes::RequiredError) weir::reject(name + error.what(), typed);
  if (kind == CLI::ExitCodes::ExtrasError && weir::cli::words_after_mark())
    weir::reject(fmt::format("{}a word before -- is not expected", name), typed);
  if (kind == CLI::ExitCodes::ExtrasError)
    weir::reject(fmt::format("{}one argument too many: '{}'", name, fmt::join(app.remaining(true), "' '")), typed);
  if (kind == CLI::ExitCodes::ExcludesError) weir::reject(name + error.what(), "Leave one of them out.");
  if (kind == CLI::ExitCodes::ArgumentMismatch) {
    const std::string what = error.what(), flag = what.substr(0, what.find(':'));
    const bool is_missing = what.ends_with("missing");
    weir::reject(fmt::format("{}{}: {}", name, flag, is_missing ? "its value is missing" : "is given more than once"),
                 is_missing ? help : fmt::format("Give {} once. {}", flag, help));
  }
  weir::reject(name + error.what(), help);
}

// A list option of CLI11 takes all following words, including arguments of the command: `run --param size=64 moe`. In
// commands with arguments, each flag therefore takes one value, and is repeated for more.
void leave_arguments_alone(CLI::App& app) {
  const auto options = app.get_options();
  const auto is_argument = [](const CLI::Option* option) { return option->get_positional(); };
  const bool has_arguments = std::any_of(options.begin(), options.end(), is_argument);
  for (CLI::Option* option : options)
    if (has_arguments && !option->get_positional() && option->get_allow_extra_args())
      option->expected(1)->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)->allow_extra_args(false);
  for (CLI::App* below : app.get_subcommands([](const CLI::App*) { return true; })) leave_arguments_alone(*below);
}

// As wide as the terminal, if that is narrower than reports are; COLUMNS overrides it.
std::size_t columns_of_terminal() {
  if (const auto columns = weir::cli::environment_variable("COLUMNS"))
    if (const auto count = weir::parse_as<std::size_t>(*columns); count && *count > 0) return *count;
  winsize size{};
  return ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : weir::kReportColumns;
}

// glibc's malloc reserves 64 MiB of address space for every thread. Where that is limited, threads share one arena.
void spare_address_space() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY) ::mallopt(M_ARENA_MAX, 1);
}

int run(int argc, char** argv) {
  spare_address_space();
  for (const char* variable : {"GITHUB_ACTIONS", "TF_BUILD", "TEAMCITY_VERSION"})
    if (!weir::cli::environment_variable(variable).value_or("").empty()) weir::expect_runner(true);
  weir::set_report_columns(columns_of_terminal());
  CLI::App app(
      "Weir follows a GPU command from the host thread that issues it to the hardware\n"
      "queue that runs it, and says where the time went.",
      "weir");
  const auto layout = std::make_shared<HelpLayout>();
  layout->label("SUBCOMMAND", "COMMAND");
  app.formatter(layout);  // commands inherit it
  app.set_help_flag("-h,--help", "print this help");
  app.set_version_flag("--version", version_text(), "print the version, and what this build has");
  app.require_subcommand(1);
  app.footer(kExitCodes);
  const weir::cli::CommandSyntax root(app);
  const auto chosen = root.add_commands(weir::cli::commands());
  leave_arguments_alone(app);
  auto [words, advice] = weir::cli::in_new_spelling(weir::cli::facts_of(root), {argv + std::min(argc, 1), argv + argc});
  std::vector<std::string> typed = words;
  typed.insert(typed.begin(), argc > 0 ? argv[0] : "weir");
  weir::cli::remember_process(std::move(typed));
  if (weir::cli::is_first_rank())
    for (const std::string& line : advice) weir::print_err("weir: {}\n", line);
  if (words.empty()) {
    weir::write_out(app.help());
    return 0;
  }
  reject_unknown(app, words);
  try {
    std::reverse(words.begin(), words.end());  // as CLI11 wants them
    app.parse(std::move(words));
  } catch (const CLI::Success& help_or_version) {
    std::ostringstream text;
    const int code = app.exit(help_or_version, text, text);
    weir::write_out(text.view());
    return code;
  } catch (const CLI::ParseError& error) {
    if (weir::cli::is_first_rank()) reject_line(app, error);
    return static_cast<int>(weir::Fault::input);
  }
  return weir::cli::exit_code((*chosen)());
}

}  // namespace

int main(int argc, char** argv) {
  weir::open_console();
  std::set_terminate(end_at_once);
  int code = 0;
  try {
    code = run(argc, argv);
  } catch (...) {
    code = report_current();
  }
  return weir::finish_console(code);
}
