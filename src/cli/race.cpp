// weir race: finds commands of any GPU program that nothing orders: delays some of them and looks whether an output
// changes, then names the pair whose wait is missing. Or takes waits away from a workload of ours, and finds them.
#include <fmt/format.h>

#include <filesystem>

#include "base/console.h"
#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "base/schemas.h"
#include "base/stop.h"
#include "base/units.h"
#include "cli/default_output.h"
#include "cli/flag_values.h"
#include "cli/list.h"
#include "cli/process.h"
#include "cli/run_flags.h"
#include "lab/race/race_document.h"
#include "report/text/documents.h"
#include "report/text/svg.h"
#include "run/children.h"
#include "trace/race_format.h"

namespace weir::cli {
namespace {

constexpr const char* kRaceUsage = "For example: weir race -- python3 train.py";
constexpr const char* kRaceLibrary = "libweir_cupti.so";  // loaded by the CUDA driver, and before it for its hooks
constexpr std::size_t kReplays = 10;

struct RaceFlags {
  std::vector<std::string> words, judged, ignored, numbers;
  std::string plain = "3", seeds = "6", delay = "400us", one_in = "4", budget = "5m", races = "3", tolerance = "0",
              replay, race = "1", svg, output, device = "cpu", streams, scale, missing, seed = "1";
  bool verifies = false, is_json = false, is_forced = false, is_quiet = false;

  void add_to(CommandSyntax syntax) {
    syntax.add("program WORD", words, "after --: your program and its arguments; or a workload");
    syntax.add("--judge WHAT", judged,
               "what must not change: stdout, status, or a file that it writes; repeatable (default: stdout and "
               "status; checkpoints always)");
    syntax.add("--ignore PATTERN", ignored, "leave out lines of standard output that it is found in; repeatable");
    syntax.add("--number PATTERN", numbers, "judge such lines by the number that its group finds; repeatable");
    syntax.add("--tolerance SHARE", tolerance, "by which such numbers may differ: 1e-6");
    syntax.add("--plain N", plain, "runs without delays, which say what the right output is");
    syntax.add("--seeds N", seeds, "runs with delays before commands chosen by a seed");
    syntax.add("--delay DURATION", delay, "of one delay; some are longer, up to 10ms");
    syntax.add("--one-in N", one_in, "of so many commands one is delayed, or fewer where there are many");
    syntax.add("--budget DURATION", budget, "no new delays are tried after that");
    syntax.add("--races N", races, "end after so many");
    syntax.add("--replay PATH", replay, "run the delays of a document of this command again, ten times");
    syntax.add("--race N", race, "which race of that document");
    syntax.add("--verify", verifies, "with --replay: also with the missing wait put in from outside");
    syntax.add("--svg PATH", svg, "draw the first race to this file");
    syntax.add("--device NAME", device, "of a workload: cpu or sim");
    syntax.add("--streams N", streams, "of a workload");
    syntax.add("--scale NAME", scale, "of a workload").one_of({"tiny", "small", "full"});
    syntax.add("--inject-missing-wait N", missing, "take so many waits away from a workload, one at a time; find them");
    syntax.add("--seed N", seed, "which waits are taken away");
    syntax.add("--output,-o PATH", output, "the document (default: results/race.json if a race is found)");
    syntax.add("--json", is_json, "print the document (weir.race/1), and no text");
    syntax.add("--force,-f", is_forced, "replace files that exist");
    syntax.add("--quiet,-q", is_quiet, "print the result only");
    syntax.footer(
        "Exit code: 0 no race was found, 1 the program failed or was not seen,\n"
        "2 bad input, or no output is the same twice, 3 a race was found,\n"
        "4 delays change the output and no wait ends that, or a run did not end,\n"
        "or a wait that was taken away was not found, 130 interrupted.");
  }

  bool prints_json() const { return is_json || output == "-"; }
  bool has_file() const { return !output.empty() && output != "-"; }
};

std::vector<std::string> race_program_of(const RaceFlags& flags) {
  const auto words = words_after_mark();
  if (!words && flags.words.size() > 1)
    reject(fmt::format("{}: a program goes after --", flags.words[0]),
           fmt::format("Write weir race -- {}", flags.words[0]));
  if (!words || words->empty()) reject("a program is required after --", kRaceUsage);
  if (flags.words.size() > words->size())
    reject(fmt::format("{}: unexpected word before --", flags.words[0]), kRaceUsage);
  if (!find_program(words->front()))
    reject(fmt::format("{}: no such program", words->front()), "Give a path, or a name that PATH has.");
  return *words;
}

race::OutputRules rules_of(const RaceFlags& flags) {
  race::OutputRules rules;
  rules.has_status = rules.has_stdout = flags.judged.empty();
  for (const std::string& what : flags.judged) {
    if (what == "stdout")
      rules.has_stdout = true;
    else if (what == "status")
      rules.has_status = true;
    else if (what.empty())
      reject("--judge: an empty word", "Use stdout, status, or the path of a file that the program writes.");
    else
      rules.files.push_back(what);
  }
  for (const std::string& each : flags.ignored) rules.ignored.push_back(race::pattern_of("--ignore", each, -1));
  for (const std::string& each : flags.numbers) rules.numbers.push_back({each, race::pattern_of("--number", each, 1)});
  rules.tolerance = real_number("--tolerance", flags.tolerance, 0, 1, "not a share", "Use 0 to 1: 1e-6.");
  if (rules.tolerance > 0 && rules.numbers.empty())
    reject("--tolerance: there is no --number", R"(Say which: --number 'loss: ([-0-9.e+]+)'.)");
  return rules;
}

race::SearchOptions options_of(const RaceFlags& flags) {
  race::SearchOptions options;
  options.rules = rules_of(flags);
  options.plain_runs = static_cast<std::size_t>(number_within("--plain", flags.plain, 2, 100));
  options.seeds = static_cast<std::size_t>(number_within("--seeds", flags.seeds, 0, 10'000));
  options.races = static_cast<std::size_t>(number_within("--races", flags.races, 1, 100));
  options.one_in = static_cast<std::uint32_t>(number_within("--one-in", flags.one_in, 1, 1'000'000));
  options.delay_ns = duration_of("--delay", flags.delay, 1'000, race_format::kLongestDelayNs);
  options.budget_ns = static_cast<std::int64_t>(seconds_of("--budget", flags.budget) * 1e9);
  return options;
}

// What brings the library into the program.
Variables race_variables(const RaceFlags& flags) {
  Variables variables;
  const auto library = own_library(kRaceLibrary);
  if (!library) return variables;
  const auto other = environment_variable("CUDA_INJECTION64_PATH");
  if (other && *other != library->string() && !flags.is_quiet)
    print_err("weir: CUDA_INJECTION64_PATH was {}: that library is left out\n", *other);
  variables.emplace_back("CUDA_INJECTION64_PATH", library->string());
  const std::string before = environment_variable("LD_PRELOAD").value_or("");
  const std::string preload = preloaded(before, {kRaceLibrary});
  if (preload != before) variables.emplace_back("LD_PRELOAD", preload);
  return variables;
}

std::string run_words(const race::RunRecord& run) {
  std::string words = name_of(run.purpose);
  if (run.seed) words += fmt::format(", seed {}", *run.seed);
  if (run.delays > 0) words += fmt::format(", {}", counted(run.delays, "delay"));
  if (run.waits > 0) words += fmt::format(", {}", counted(run.waits, "wait"));
  return words;
}

std::string outcome_words(const race::RunRecord& run) {
  return run.is_timed_out ? "did not end" : run.change ? "changed: " + *run.change : "ok";
}

// Where the document goes; empty: nowhere.
std::string document_path(const RaceFlags& flags, bool has_races) {
  if (flags.has_file()) return flags.output;
  if (flags.prints_json() || !has_races || !flags.replay.empty()) return {};
  return default_output("results/race", ".json", earlier_output(flags.is_forced)).string();
}

std::string typed_program(const std::vector<std::string>& program) {
  std::string words;
  for (const std::string& word : program) words += " " + word;
  return words.size() > 60 ? " PROGRAM" : words;
}

void print_findings(const RaceFlags& flags, const Json& document, const std::vector<std::string>& program,
                    bool has_races) {
  const std::string path = document_path(flags, has_races);
  if (!path.empty()) {
    const std::filesystem::path folder = std::filesystem::path(path).parent_path();
    if (!flags.has_file() && !folder.empty()) make_folders(folder);
    write_file(path, to_text(document), flags.is_forced);
  }
  if (!flags.svg.empty() && has_races) write_file(flags.svg, race_svg(document["races"][0]), flags.is_forced);
  if (flags.prints_json()) {
    write_json(to_text(document));
    return;
  }
  print_out("{}{}", flags.is_quiet ? "" : "\n", report_text(race_report(document)));
  if (path.empty()) return;
  print_out("\nWritten to {}\n", path);
  if (has_races) print_out("Again: weir race --replay {} --verify --{}\n", path, typed_program(program));
}

int race_exit_code(const race::Findings& findings) {
  switch (findings.answer) {
    case race::Answer::clean:
      return 0;
    case race::Answer::found:
      return 3;
    case race::Answer::unclear:
      return 4;
    case race::Answer::varying:
      return 2;
  }
  return 1;
}

// A workload of ours, on cpu or sim.
int race_workload(const RaceFlags& flags) {
  RunRequest request;
  request.workload = flags.words[0];
  const Workload& workload = workload_of(request);
  if (!flags.streams.empty())
    request.streams = one_stream_count(flags.streams, workload, "One count: each has waits of its own.");
  request.scale = flags.scale.empty() ? Scale::tiny : scale_named(flags.scale);
  race::StepRaceOptions options;
  options.seed = seed_of(flags.seed);
  options.missing = flags.missing.empty()
                        ? 0
                        : static_cast<std::uint32_t>(number_within("--inject-missing-wait", flags.missing, 0, 10'000));
  const race::StepRace found = race::race_step(flags.device, request, options);
  const Json document = race::step_race_document(request.workload, found, run_context());
  if (flags.has_file()) write_file(flags.output, to_text(document), flags.is_forced);
  if (flags.prints_json())
    write_json(to_text(document));
  else
    print_out("{}", report_text(race_report(document)));
  if (flags.has_file() && !flags.prints_json()) print_out("\nWritten to {}\n", flags.output);
  const std::string answer = document["answer"].string();
  return answer == "clean" ? 0 : answer == "found" ? 3 : 4;
}

int execute_race(const RaceFlags& flags) {
  if (!words_after_mark() && flags.words.size() == 1) {
    if (flags.has_file()) check_writable(flags.output, flags.is_forced);
    return race_workload(flags);
  }
  const std::vector<std::string> program = race_program_of(flags);
  const race::SearchOptions options = options_of(flags);
  const auto number = static_cast<std::size_t>(number_within("--race", flags.race, 1, 1'000));
  if (flags.verifies && flags.replay.empty())
    reject("--verify: there is no --replay", "Name the document of the search: --replay results/race.json --verify.");
  if (flags.has_file()) check_writable(flags.output, flags.is_forced);
  if (!flags.svg.empty()) check_writable(flags.svg, flags.is_forced);
  std::optional<race::Race> replayed;
  bool is_by_itself = false;
  if (!flags.replay.empty()) {
    const Json document = read_json(flags.replay);
    if (member(document, "schema") != Json(schemas::race))
      reject(fmt::format("--replay {}: not a document of weir race", flags.replay));
    replayed = race::race_in(document, number, flags.replay);
    is_by_itself = member(document, "is_by_itself") == Json(true) && !replayed->waits.empty();
    if (flags.verifies && replayed->waits.empty())
      reject(fmt::format("--verify: no wait is known for race {} of {}", number, flags.replay), "Leave --verify out.");
  }

  const std::atomic<bool>& stop = catch_interrupts();  // before there is a temporary folder
  const race::ProgramRequest request{program, race_variables(flags), options.rules};
  const bool prints_runs = !flags.is_quiet && !flags.prints_json();
  ProgressLine line(flags.is_quiet);
  race::Search search(
      options,
      [&](const race::RunPlan& plan, double limit_s) { return race::run_program(request, plan, limit_s, stop); },
      [&](const race::RunRecord& run, std::size_t count) {
        line.clear();
        if (prints_runs) {
          print_out("{:>4}  {}: {}, {}\n", count, run_words(run), outcome_words(run), format_duration(run.duration_ns));
          flush_out();
        }
        line.show(run_words(run), static_cast<int>(count), static_cast<int>(count) + 1);
      });
  bool is_complete = true;
  try {
    if (replayed)
      search.replay(std::move(*replayed), kReplays, flags.verifies, is_by_itself);
    else
      search.hunt();
  } catch (const Interrupted&) {
    is_complete = false;
  }
  line.clear();
  const race::Findings& findings = search.findings();
  const Json document =
      race::race_document(program, options, findings, run_context(), is_complete ? "complete" : "interrupted");
  print_findings(flags, document, program, !findings.races.empty());
  return is_complete ? race_exit_code(findings) : kExitInterrupted;
}

}  // namespace

CliCommand race() {
  return command("race", "missing waits between streams of any GPU program: found, named, replayed", execute_race);
}

}  // namespace weir::cli
