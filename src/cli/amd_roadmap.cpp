// weir amd roadmap: captures two cases, or takes two captures, and judges them by the queue roadmap.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "amd/capture/capture_run.h"
#include "amd/compare/roadmap.h"
#include "base/error.h"
#include "base/json.h"
#include "cli/capture_flags.h"
#include "cli/default_output.h"
#include "cli/document_output.h"
#include "cli/flag_values.h"
#include "cli/list.h"
#include "cli/process.h"
#include "measure/statistics.h"
#include "report/text/documents.h"
#include "run/children.h"
#include "step/workload/workload.h"

namespace weir::cli {
namespace {

namespace fs = std::filesystem;

constexpr int kTrialIterations = 5;
constexpr double kMostTraced = 1000, kMostIterations = 1e6;  // a timeline has every command of every iteration

struct AmdRoadmapFlags : DocumentOutput {
  std::string a = "case_a_cnn", b = "case_b_transformer";
  std::string seconds = "60s", device = "auto", scale, folder;
  amd::CaptureRoots roots;

  void add_to(CommandSyntax syntax) {
    syntax.add(
        "A NAME", a,
        "the urgent case: a workload (a name, or a YAML file), which is captured, or an existing folder of `weir amd "
        "capture`, runtime log or timeline");
    syntax.add("B NAME", b, "the case that may wait, likewise");
    syntax.add("--seconds DURATION", seconds, "how long each workload runs, about");
    syntax.add("--device NAME", device, "where workloads run: auto, hip:0, cpu, sim:mi300x");
    syntax.add("--scale NAME", scale, "of workloads: tiny, small or full");
    syntax.add("--folder PATH", folder, "where captures of workloads are written (default: roadmap-DATE-TIME)");
    DocumentOutput::add_to(syntax);
    add_capture_roots(syntax, roots);
    syntax.footer("Exit code: 0, 1 a workload failed, 2 bad input, 3 a target was missed.");
  }
};

// The words that choose a workload; empty for a case that exists already.
std::vector<std::string> workload_words(const std::string& typed) {
  if (typed.ends_with(".yaml") || typed.ends_with(".yml")) return {"--file", typed};
  std::error_code ignored;
  if (fs::exists(typed, ignored)) return {};
  workload_named(typed);  // rejects what is neither
  return {typed};
}

// How often a workload runs in that time, by a short trial.
int iterations_for(const std::vector<std::string>& words, double duration_ns, double most) {
  ChildRequest trial;
  trial.arguments = {"run"};
  trial.arguments.insert(trial.arguments.end(), words.begin(), words.end());
  trial.arguments.insert(trial.arguments.end(), {"--iterations", std::to_string(kTrialIterations), "--warmup", "2"});
  const std::optional<Json> result = child_document(trial, catch_interrupts());
  if (!result) throw Interrupted{};
  std::vector<double> times;
  for (const Json& each : at_path(*result, {"samples", "interval_ns"}))
    if (each.is_number()) times.push_back(each.get<double>());
  if (times.empty()) fail("a trial run has no times of its iterations");
  return static_cast<int>(std::clamp(duration_ns / std::max(1.0, median(times)), 5.0, most));
}

fs::path capture_case(const AmdRoadmapFlags& flags, std::vector<std::string> words, const fs::path& path) {
  words.insert(words.end(), {"--device", flags.device});
  if (!flags.scale.empty()) words.insert(words.end(), {"--scale", flags.scale});
  const std::int64_t duration_ns = duration_of("--seconds", flags.seconds, 10'000'000, 86'400'000'000'000);
  std::error_code ignored;
  // ROCm writes a log of what HIP runs. Elsewhere the workload's own timeline stands in for it.
  const bool has_log = fs::is_directory(flags.roots.sysfs + "/class/kfd/kfd", ignored) &&
                       (flags.device == "auto" || flags.device.starts_with("hip"));
  const int count = iterations_for(words, static_cast<double>(duration_ns), has_log ? kMostIterations : kMostTraced);
  amd::CaptureFolder folder(path, flags.is_forced);
  amd::CaptureRequest request;
  request.roots = flags.roots;
  request.interval_ns = std::max<std::int64_t>(50'000'000, duration_ns / request.max_snapshots);
  request.command = {own_binary().string(), has_log ? "run" : "profile"};
  request.command.insert(request.command.end(), words.begin(), words.end());
  const std::string file = (folder.path() / (has_log ? "result.json" : amd::kProfileFile)).string();
  request.command.insert(request.command.end(), {"--iterations", std::to_string(count), "--quiet", "-o", file});
  const amd::CaptureEnd end = amd::capture_program(std::move(request), folder);
  if (end.code >= 128) throw Interrupted{};
  if (end.code != 0)
    fail(fmt::format("{}: the workload ended with exit code {}", words[0] == "--file" ? words[1] : words[0], end.code));
  if (!end.problem.empty()) fail(fmt::format("the capture is not complete: {}", end.problem));
  return path;
}

int execute_amd_roadmap(const AmdRoadmapFlags& flags) {
  flags.check_output();
  const std::vector<std::string> words_a = workload_words(flags.a), words_b = workload_words(flags.b);
  fs::path folder = flags.folder;
  if (folder.empty() && !(words_a.empty() && words_b.empty()))
    folder = default_output("roadmap-" + time_for_names(), "", earlier_output(flags.is_forced));
  const std::atomic<bool>& stop = catch_interrupts();
  ProgressLine line(flags.is_quiet);
  Json document;
  try {
    const auto case_of = [&](const std::string& typed, const std::vector<std::string>& words, const char* name,
                             int done) {
      line.show(words.empty() ? "reading" : "capturing", done, 2);
      if (!words.empty()) make_folders(folder);
      amd::CaseLoadOptions options;
      options.stop = &stop;
      options.import.progress = [&] {
        if (stop.load(std::memory_order_relaxed)) throw Interrupted{};
      };
      return amd::load_roadmap_case(words.empty() ? fs::path(typed) : capture_case(flags, words, folder / name),
                                    options);
    };
    const amd::RoadmapCase a = case_of(flags.a, words_a, "case_a.capture", 0);
    const amd::RoadmapCase b = case_of(flags.b, words_b, "case_b.capture", 1);
    if (stop.load(std::memory_order_relaxed)) throw Interrupted{};
    document = amd::roadmap_document(a, b);
  } catch (const Interrupted&) {
    line.clear();
    return kExitInterrupted;
  }
  line.clear();
  flags.print(document, amd_roadmap_report(document));
  const Json& targets = document["targets"];
  return std::any_of(targets.begin(), targets.end(), [](const Json& row) { return row["outcome"] == "missed"; }) ? 3
                                                                                                                 : 0;
}

}  // namespace

CliCommand amd_roadmap() {
  return command("roadmap", "capture two cases, and judge targets and checklist of the queue roadmap",
                 execute_amd_roadmap);
}

}  // namespace weir::cli
