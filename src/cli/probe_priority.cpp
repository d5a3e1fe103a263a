// weir probe priority: whether the priority of streams does anything in the user's own PyTorch. Their Python runs a
// script of ours, in processes of its own; the program that they name beside it is not run.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <string_view>

#include "base/clock.h"
#include "base/console.h"
#include "base/error.h"
#include "base/file.h"
#include "base/private_folder.h"
#include "cli/document_output.h"
#include "cli/flag_values.h"
#include "cli/list.h"
#include "cli/process.h"
#include "lab/probe/priority.h"
#include "report/text/documents.h"
#include "run/line_process.h"

namespace weir::cli {
namespace {

using probe::PrioritySamples;

constexpr const char* kProbeUsage = "For example: weir probe priority -- python3";
constexpr std::int64_t kExitNs = 2'000'000'000;      // from its line to its end: runtimes hang at exit
constexpr std::uint64_t kMaxSampleBytes = 64 << 20;  // of a file with samples

struct ProbePriorityFlags : DocumentOutput {
  std::vector<std::string> words, files;
  std::string processes = "5", iterations = "60", threshold = "20%", timeout = "5m", seed = "1";
  bool is_snippet = false, is_strict = false;

  void add_to(CommandSyntax syntax) {
    syntax.add("python WORD", words, "after --: your Python, as you start it; a script after it is not run");
    syntax.add("--snippet", is_snippet, "print the script, which any Python with torch runs, and end");
    syntax.add("--samples PATH", files, "judge what the script has printed into this file (-: standard input)");
    syntax.add("--processes N", processes, "how often Python is started: one says little about the next");
    syntax.add("--iterations N", iterations, "times on each stream, per process");
    syntax.add("--threshold PERCENT", threshold, "smaller differences count as none");
    syntax.add("--timeout DURATION", timeout, "of one process");
    syntax.add("--seed N", seed, "of the order of streams");
    syntax.add("--strict", is_strict, "exit 4 where it cannot be decided");
    DocumentOutput::add_to(syntax);
    syntax.footer(
        "Exit code: 0 there is an answer, 1 nothing could be measured, 2 bad input,\n"
        "4 undecided (--strict), 130 interrupted.");
  }
};

// "python3", "/opt/venv/bin/python3.11", "python3.13t", "pypy3"
bool is_python(const std::string& word) {
  std::string name = std::filesystem::path(word).filename();
  for (const std::string_view known : {"python", "pypy"}) {
    if (!name.starts_with(known)) continue;
    if (std::string_view("dmt").find(name.back()) != std::string_view::npos) name.pop_back();
    return name.find_first_not_of("0123456789.", known.size()) == std::string::npos;
  }
  return false;
}

// An environment may be named like a Python: conda run -n python311 --live-stream python3 train.py
std::vector<std::string>::const_iterator find_python(const std::vector<std::string>& words) {
  auto python = std::find_if(words.begin(), words.end(), is_python);
  if (python == words.end()) return python;
  for (auto word = python + 1; word != words.end(); ++word) {
    if (is_python(*word))
      python = word;
    else if (!word->starts_with("--") || word->size() == 2)
      break;
  }
  return python;
}

// The user's words up to their Python and its options, without what it would run: a script, -m or -c.
std::vector<std::string> interpreter_in(const std::vector<std::string>& words) {
  const auto python = find_python(words);
  if (python == words.end())
    reject(fmt::format("{}: no Python is among the words after --, and the probe runs inside Python", words[0]),
           "Name the Python that the program starts, with what selects its environment: weir probe priority -- "
           "python3. A program without Python gives its streams priorities itself, which only its own clocks can "
           "time: `weir preempt --mechanisms none,priority` shows what priority does on the same device.");
  std::vector<std::string> command(words.begin(), python + 1);
  for (auto word = python + 1; word != words.end() && word->size() > 1 && (*word)[0] == '-'; ++word) {
    if (*word == "--") break;
    // Letters may share a dash: -um MODULE, -Wignore.
    const std::size_t special = word->starts_with("--") ? std::string::npos : word->find_first_of("cmXW", 1);
    const char letter = special == std::string::npos ? '\0' : (*word)[special];
    if (letter == 'c' || letter == 'm') {
      if (special > 1) command.push_back(word->substr(0, special));
      break;
    }
    command.push_back(*word);
    const bool has_value = (letter != '\0' && special + 1 == word->size()) || *word == "--check-hash-based-pycs";
    if (has_value && word + 1 != words.end()) command.push_back(*++word);
  }
  return command;
}

// What the flags say, checked before anything is started.
struct Plan {
  explicit Plan(const ProbePriorityFlags& flags)
      : rounds(number_within("--processes", flags.processes, 1, 100)),
        iterations(number_within("--iterations", flags.iterations, 10, probe::kMaxProbeIterations)),
        limit_ns(static_cast<std::int64_t>(seconds_of("--timeout", flags.timeout) * 1e9)) {
    options.threshold = share_of("--threshold", flags.threshold);
    options.bootstrap.seed = seed_of(flags.seed);
  }
  std::int64_t rounds, iterations, limit_ns;
  CompareOptions options;
};

// Empty where it was interrupted.
std::optional<PrioritySamples> run_probe_process(const Plan& plan, std::vector<std::string> command,
                                                 std::int64_t round) {
  const PrivateFolder folder;
  const std::filesystem::path script = folder.path() / "priority_script.py";
  write_file(script, std::string(probe::priority_script()), false);
  command.push_back(script.string());
  const Json request = {{"iterations", plan.iterations},
                        {"seed", static_cast<std::int64_t>(plan.options.bootstrap.seed % 1'000'000'000) + round}};
  LineProcess process(std::move(command), request, plan.limit_ns);
  process.end_by(now_ns() + plan.limit_ns);
  std::optional<PrioritySamples> samples;
  const LineProcess::End end = process.follow(catch_interrupts(), [&](const Json& line) {
    if (!probe::is_priority_line(line)) return;
    samples = probe::read_priority_line(line);
    process.end_by(now_ns() + kExitNs);
  });
  if (end.how == LineProcess::How::interrupted) return std::nullopt;
  if (samples) return samples;  // and its end does not matter: runtimes crash at exit
  PrioritySamples failed;
  failed.error = end.how == LineProcess::How::done ? "it ended without a line of the probe" : end.words;
  return failed;
}

std::vector<PrioritySamples> read_sample_files(const std::vector<std::string>& files) {
  std::vector<PrioritySamples> all;
  for (const std::string& file : files) {
    const std::vector<PrioritySamples> some =
        probe::read_priority_lines(read_file(input_path(file), kMaxSampleBytes), file);
    all.insert(all.end(), some.begin(), some.end());
  }
  return all;
}

int print_answer(const ProbePriorityFlags& flags, const CompareOptions& options,
                 const std::vector<PrioritySamples>& processes) {
  const probe::PriorityFinding finding = judge_priority(processes, options);
  const Json document = priority_document(processes, finding, options, run_context());
  flags.print(document, probe_priority_report(document));
  if (finding.answer == probe::Answer::unavailable) return 1;
  return finding.answer == probe::Answer::undecided && flags.is_strict ? 4 : 0;
}

int execute_probe_priority(const ProbePriorityFlags& flags) {
  const std::vector<std::string> words = words_after_mark().value_or(std::vector<std::string>{});
  if (flags.words.size() > words.size())
    reject(fmt::format("{}: unexpected word before --", flags.words[0]), kProbeUsage);
  if (!words.empty() + !flags.files.empty() + flags.is_snippet > 1)
    reject("--snippet, --samples and a Python after -- exclude each other", kProbeUsage);
  if (flags.is_snippet) {
    write_out(std::string(probe::priority_script()));
    return 0;
  }
  flags.check_output();
  const Plan plan(flags);
  if (!flags.files.empty()) return print_answer(flags, plan.options, read_sample_files(flags.files));
  if (words.empty()) reject("a Python is required after --", kProbeUsage);
  const std::vector<std::string> command = interpreter_in(words);
  if (!find_program(command[0]))
    reject(fmt::format("{}: no such program", command[0]), "Give a path, or a name that PATH has.");
  catch_interrupts();  // before there is a temporary folder
  ProgressLine line(flags.is_quiet);
  std::vector<PrioritySamples> processes;
  for (std::int64_t round = 0; round < plan.rounds; ++round) {
    line.show("Python", static_cast<int>(round), static_cast<int>(plan.rounds));
    std::optional<PrioritySamples> one = run_probe_process(plan, command, round);
    if (!one) return kExitInterrupted;
    processes.push_back(std::move(*one));
    if (!processes.front().error.empty()) break;  // the next one would say the same
  }
  line.clear();
  return print_answer(flags, plan.options, processes);
}

}  // namespace

CliCommand probe_priority() {
  return command("priority", "does the priority of streams do anything in your PyTorch?", execute_probe_priority);
}

}  // namespace weir::cli
