#include "docs/stage.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <sstream>

#include "support/text.h"

namespace weir::testing {
namespace {

namespace fs = std::filesystem;

constexpr int kSecondsPerLine = 150;

void put_program(const fs::path& path, const std::string& text) {
  std::ofstream(path) << text;
  fs::permissions(path, fs::perms::owner_all);
}

std::string text_of(const CommandLine& command, const Outcome& outcome) {
  const auto end_of = [](const std::string& text) {
    return text.size() < 4000 ? text : text.substr(text.size() - 4000);
  };
  return fmt::format("  {}\nended with {}, not with {}\nstandard error:\n{}\nstandard output:\n{}\n", command.text,
                     outcome.code, fmt::join(command.exit_codes, " or "), end_of(outcome.err), end_of(outcome.out));
}

// What the program says, and how it ends, where the thing is not on this machine.
bool is_refusal(const std::string& need, const Outcome& outcome) {
  static const std::regex kCuda(
      "--device cuda[^\n]*: (libcuda\\.so\\.1 not found|no device|built without|left out of this build)|nothing was "
      "captured: there is no "
      "CUDA|"
      "cuda +not here|no CUDA driver|cannot import torch|torch finds no GPU");
  static const std::regex kHip(
      "--device hip[^\n]*: (libamdhip64[^\n]* not found|no device|no AMD|built without|left out of this build)|no "
      "ROCm|rocprofv3: not found in PATH|librocprofiler-sdk[^\n]* was not found|rocprofv3 is not in PATH|"
      "no /dev/kfd on this machine|--(pid|container) [^\n]*: no such");
  static const std::regex kRoot(
      "[Pp]ermission denied|Operation not permitted|debugfs is not mounted|amdgpu driver is not loaded|as root|As "
      "root");
  static const std::regex kOpencl("--device opencl[^\n]*: ");
  // Of any line: a build may lack these.
  static const std::regex kPart("built without (the report's page|SQLite|ncurses)");
  const std::string all = outcome.err + outcome.out;
  if (outcome.code != 1 && outcome.code != 2) return false;
  if (need.empty()) return std::regex_search(all, kPart);
  if (need == "cuda") return std::regex_search(all, kCuda);
  if (need == "hip") return std::regex_search(all, kHip);
  if (need == "opencl") return std::regex_search(all, kOpencl);
  return need == "root" && std::regex_search(all, kRoot);
}

}  // namespace

Stage::Stage() : clone_(root_.path() / "weir") {
  const fs::path source = WEIR_SOURCE_DIR;
  fs::create_directories(clone_ / "build/release");
  fs::create_directories(root_.path() / "bin");
  fs::create_directories(root_.path() / "home");
  fs::create_directories(fs::current_path() / "pocl_cache");
  write_small_packages(source / "kernels", clone_ / "kernels");
  // Copies, not links: lines of pages write into the folder that they are run in.
  for (const char* name :
       {"config", "docs", "include", "scripts", ".github", "Makefile", "CMakePresets.json", "README.md"}) {
    if (fs::exists(source / name)) fs::copy(source / name, clone_ / name, fs::copy_options::recursive);
  }
  for (const fs::path& place : {root_.path() / "bin/weir", clone_ / "build/release/weir"})
    fs::create_symlink(source / "tests/docs/small_weir.sh", place);

  // Nobody is there to give a password. The lines that follow it say what they lack themselves.
  put_program(root_.path() / "bin/sudo", "#!/bin/sh\nexec \"$@\"\n");
  // A cluster of one node and one rank.
  put_program(root_.path() / "bin/srun",
              "#!/bin/bash\nwhile [[ $1 == -* ]]; do [[ $1 == -? ]] && shift; shift; done\nexec \"$@\"\n");
  put_program(root_.path() / "bin/sbatch",
              "#!/bin/bash\nwhile [[ $1 == -* ]]; do [[ $1 == *=* ]] || shift; shift; done\n"
              "SLURM_JOB_NUM_NODES=1 SLURM_NTASKS=1 SLURM_JOB_ID=1 exec bash \"$@\"\n");
}

Stage::~Stage() {
  std::string ignored;
  ends(ignored);
}

std::vector<std::string> Stage::words_of(const std::string& text, int seconds) const {
  const std::string path = fmt::format("{}/bin:{}", root_.path().string(), std::getenv("PATH"));
  // As in a terminal, a line finds the folder and the variables that those before it left (`kept`).
  const std::string lines = fmt::format("test ! -e {0} || . {0}\n{1}", root_ / "kept", text);
  // `timeout` ends the whole group, so that nothing a line starts outlives it.
  return {"env", "PATH=" + path, "HOME=" + root_ / "home", "XDG_RUNTIME_DIR=" + root_ / "home", "TERM=xterm",
          // As the other tests have it: compiled OpenCL kernels are kept from page to page.
          "POCL_CACHE_DIR=" + (fs::current_path() / "pocl_cache").string(), "WEIR_REAL=" WEIR_BINARY,
          "OMPI_ALLOW_RUN_AS_ROOT=1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1", "OMPI_MCA_rmaps_base_oversubscribe=1",
          "timeout", "-k", "5", std::to_string(seconds), "bash", "-o", "pipefail", "-c", lines};
}

Tried Stage::tries(const CommandLine& command, const std::string& here, std::string& why) {
  if (command.trial == Trial::synopsis) return has_flags(command.text, why) ? Tried::checked : Tried::failed;
  const Outcome parsed = run_program({"bash", "-n", "-c", command.text}, clone_);
  if (parsed.code != 0) {
    why = "  " + command.text + "\nis no shell command: " + parsed.err;
    return Tried::failed;
  }
  if (command.trial == Trial::build) return can_build(command.text, why) ? Tried::checked : Tried::failed;
  return tries_to_run(command, here, why);
}

Tried Stage::tries_to_run(const CommandLine& command, const std::string& here, std::string& why) {
  // weir sched run --priority low -- ./train &     # beside it
  static const std::regex kBackground(R"(^(.*[^&])&\s*(#.*)?$)");
  std::smatch match;
  if (std::regex_match(command.text, match, kBackground)) return starts(command, match[1]);
  const std::string keep = fmt::format("{{ export -p; printf 'cd %q\\n' \"$PWD\"; }} > {}", root_ / "kept");
  const Outcome outcome =
      run_program(words_of(command.text + "\ncode=$?\n" + keep + "\nexit $code", kSecondsPerLine), clone_);
  const bool is_refused = (command.need.empty() || command.need != here) && is_refusal(command.need, outcome);
  // A page may show what the program says where the thing is missing, as troubleshooting does.
  const bool shows_refusal =
      !command.need.empty() && std::any_of(command.output.begin(), command.output.end(),
                                           [](const std::string& line) { return line.starts_with("weir: "); });
  if (is_refused && !command.exit_codes.contains(outcome.code))
    return !shows_refusal || prints_what_is_shown(command, outcome, why) ? Tried::refused : Tried::failed;
  if (command.exit_codes.contains(outcome.code))
    return shows_refusal || prints_what_is_shown(command, outcome, why) ? Tried::ran : Tried::failed;
  why = text_of(command, outcome);
  return Tried::failed;
}

bool Stage::prints_what_is_shown(const CommandLine& command, const Outcome& outcome, std::string& why) const {
  // "  throughput   51136 GFLOP/s", "weir: --streams 4x: '4x' is not a whole number"
  static const std::regex kLabel(R"(^ *([a-z]+( [a-z]+)*)  +[^ ].*)");
  const std::string all = outcome.out + outcome.err;
  for (const std::string& line : command.output) {
    std::smatch match;
    const bool is_message = line.starts_with("weir: ");
    if (!is_message && !std::regex_match(line, match, kLabel)) continue;
    const std::string expected = is_message ? line : match[1].str();
    if (all.find(expected) != std::string::npos) continue;
    why = fmt::format("the page shows '{}', which is not in the output\n{}", expected, text_of(command, outcome));
    return false;
  }
  return true;
}

Tried Stage::starts(const CommandLine& command, const std::string& text) {
  Background job;
  job.command = command;
  job.out = root_ / fmt::format("out_{}", background_.size());
  job.err = root_ / fmt::format("err_{}", background_.size());
  job.process = start_program(words_of(text, kSecondsPerLine), clone_, job.out, job.err);
  background_.push_back(job);
  // The reader types the next line no sooner.
  ::usleep(500'000);
  return Tried::ran;
}

bool Stage::ends(std::string& why) {
  // A daemon that a page starts has no terminal to end with.
  run_program(words_of("test ! -e $XDG_RUNTIME_DIR/weir/sched.sock || \"$WEIR_REAL\" sched stop", 10), clone_);
  bool is_well = true;
  for (const Background& job : background_) is_well = ends(job, why) && is_well;
  background_.clear();
  return is_well;
}

bool Stage::ends(const Background& job, std::string& why) const {
  int status = 0;
  const bool has_ended = ::waitpid(job.process, &status, WNOHANG) == job.process;
  if (!has_ended) {
    ::kill(job.process, SIGTERM);
    wait_for(job.process);
    return true;
  }
  Outcome outcome;
  outcome.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  outcome.out = content(job.out);
  outcome.err = content(job.err);
  if (job.command.exit_codes.contains(outcome.code) || is_refusal(job.command.need, outcome)) return true;
  why += fmt::format("line {}: {}", job.command.line, text_of(job.command, outcome));
  return false;
}

void write_small_packages(const fs::path& from, const fs::path& to) {
  fs::copy(from, to, fs::copy_options::recursive);
  // count: [1048576, 33554432]
  static const std::regex kLarge(R"(([0-9]{4,})([\],]|$))");
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(to)) {
    if (entry.path().filename() != "bench.yaml") continue;
    std::ifstream file(entry.path());
    std::string made;
    for (std::string line; std::getline(file, line);) {
      std::smatch match;
      std::string rest = line;
      while (line.find('#') == std::string::npos && std::regex_search(rest, match, kLarge)) {
        const long size = std::stol(match[1]);
        made += match.prefix().str() + std::to_string(size >= 8192 ? size / 64 : size) + match[2].str();
        rest = match.suffix();
      }
      made += rest + "\n";
    }
    file.close();
    std::ofstream(entry.path()) << made;
  }
}

bool has_flags(const std::string& synopsis, std::string& why) {
  std::istringstream stream(synopsis);
  std::string word;
  stream >> word;
  std::vector<std::string> command;
  static const std::regex kName("[a-z][a-z_-]*"), kFlag(R"((^|[\s\[|])(--?[a-z][a-z-]*))");
  while (stream >> word && std::regex_match(word, kName)) command.push_back(word);
  command.push_back("--help");
  static std::map<std::vector<std::string>, Outcome> known;
  if (!known.contains(command)) known[command] = weir(command);
  const Outcome& help = known[command];
  if (!synopsis.starts_with("weir ") || help.code != 0) {
    why = "  " + synopsis + "\nno such command: " + help.err;
    return false;
  }
  for (std::sregex_iterator flag(synopsis.begin(), synopsis.end(), kFlag), end; flag != end; ++flag) {
    if (std::regex_search(help.out, std::regex(R"((^|[\s,]))" + (*flag)[2].str() + R"(($|[\s,=]))"))) continue;
    why = fmt::format("  {}\nthere is no flag '{}'\n", synopsis, (*flag)[2].str());
    return false;
  }
  return true;
}

bool can_build(const std::string& text, std::string& why) {
  static const std::set<std::string> kKnown = {"git", "cd",  "sudo",  "apt",    "apt-get",          "cpack", "dpkg",
                                               "npm", "pip", "mkdir", "export", "scripts/setup.sh", "ctest"};
  const std::string makefile = content(fs::path(WEIR_SOURCE_DIR) / "Makefile");
  const std::string presets = content(fs::path(WEIR_SOURCE_DIR) / "CMakePresets.json");
  static const std::regex kSeparator(R"(&&|;|\||#.*)");
  for (std::sregex_token_iterator part(text.begin(), text.end(), kSeparator, -1), end; part != end; ++part) {
    std::istringstream stream(part->str());
    std::vector<std::string> words;
    for (std::string word; stream >> word;) words.push_back(word);
    while (!words.empty() && (words[0] == "sudo" || words[0].find('=') != std::string::npos))
      words.erase(words.begin());
    if (words.empty()) continue;
    if (words[0] == "make") {
      for (std::size_t i = 1; i < words.size(); ++i) {
        if (words[i].front() == '-' || words[i].find('=') != std::string::npos) continue;
        if (std::regex_search(makefile, std::regex("(^|\n)" + words[i] + ":"))) continue;
        why = fmt::format("  {}\nthe Makefile has no target '{}'\n", text, words[i]);
        return false;
      }
    } else if (words[0] == "cmake" || words[0] == "ctest") {
      for (std::size_t i = 1; i + 1 < words.size(); ++i) {
        if (words[i] != "--preset" || presets.find("\"name\": \"" + words[i + 1] + "\"") != std::string::npos) continue;
        why = fmt::format("  {}\nCMakePresets.json has no preset '{}'\n", text, words[i + 1]);
        return false;
      }
    } else if (!kKnown.contains(words[0])) {
      why = fmt::format("  {}\n'{}' is no part of a build: such lines are run\n", text, words[0]);
      return false;
    }
  }
  return true;
}

}  // namespace weir::testing
