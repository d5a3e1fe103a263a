#include "cli/run_class.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <optional>

#include "base/console.h"
#include "base/error.h"
#include "base/options.h"
#include "base/private_folder.h"
#include "cli/default_output.h"
#include "cli/flag_values.h"
#include "cli/process.h"
#include "cli/ranks.h"
#include "cli/report_page.h"
#include "cli/sweep_output.h"
#include "report/text/sections.h"

namespace weir::cli {
namespace {

constexpr std::size_t kMaxClosingFindings = 3;  // printed at the end; the report has all

constexpr std::array<const char*, 5> kClasses = {"P0", "P1", "P2", "P3", "all"};

std::vector<const Workload*> chosen_workloads(const std::string& priority) {
  std::vector<const Workload*> chosen;
  for (const Workload& workload : workloads())
    if (priority == "all" || priority == fmt::format("P{}", workload.priority)) chosen.push_back(&workload);
  if (chosen.empty())
    reject(fmt::format("run {}: no workload has that class yet", priority), "`weir list` shows them.");
  return chosen;
}

// Writes the report of these sweeps next to them, and prints its path and main findings. If it cannot be made, the runs
// still count as successful.
void write_report(const std::vector<std::string>& sweeps, const std::filesystem::path& folder, const ClassRun& flags,
                  const DeviceInfo& info) {
  try {
    const std::string title = fmt::format("{} on {} ({})", flags.name, info.name, info.model);
    const std::optional<MadeReport> made = report_document({sweeps, title});
    if (flags.prints_json) write_json(to_text(made->document));
    if (flags.folder == "-") return;
    const std::filesystem::path page =
        default_output((folder / "report").string(), ".html", earlier_output(flags.run.is_forced, flags.resumes));
    const std::string reason = why_no_page();
    if (reason.empty()) write_file(page, report_html(made->document), flags.run.is_forced || flags.resumes);
    if (flags.is_quiet()) return;
    const std::string findings = findings_text(made->document, kMaxClosingFindings, false);
    print_out("{}\n\n{}\n",
              wrapped(reason.empty() ? fmt::format("The report is in {}", page.string())
                                     : fmt::format("No report.html was written: {}.", reason),
                      0),
              findings.empty() ? "Nothing stands out in it.\n" : "What stands out:\n" + findings);
  } catch (const Error& error) {
    print_err("weir: no report was written: {}\n", error.what());
  }
}

// Three commands that this build can run on this device, as they can be typed in the same place.
void print_next(const DeviceInfo& info, const std::string& workload) {
  const bool is_real = info.is_gpu && !info.is_virtual;
  const std::string probed = is_real && info.host_memory ? info.name : "sim:h200";
  const std::pair<std::string, std::string> commands[] = {
      {fmt::format("queues map --device {}", probed), "which streams share a hardware queue"},
      {fmt::format("profile {} --device {}", workload, info.runs() ? info.name : "sim:h200"),
       "a timeline for ui.perfetto.dev"},
      is_real && info.graphs ? std::pair{fmt::format("sweep {} --device {} --submit inline,graph", workload, info.name),
                                         std::string("whether CPU time for launches is the limit")}
                             : std::pair{fmt::format("sweep {} --device sim:h200", workload),
                                         std::string("the same on a simulated H200")}};
  print_out("To try next:\n");
  for (const auto& [words, why] : commands) print_out("  {} {}\n      {}\n", own_arguments()[0], words, why);
}

// An empty folder counts as free: the process that starts the ranks creates it, and they check again.
std::filesystem::path folder_of(const ClassRun& flags) {
  if (!flags.folder.empty()) return flags.folder;
  const auto is_taken = [](const std::filesystem::path& path) {
    std::error_code ignored;
    return std::filesystem::exists(path, ignored) && !std::filesystem::is_empty(path, ignored);
  };
  return default_output("results/" + flags.name, "", earlier_output(flags.run.is_forced, flags.resumes), is_taken);
}

}  // namespace

bool is_class(const std::string& word) { return std::find(kClasses.begin(), kClasses.end(), word) != kClasses.end(); }

int run_class(const ClassRun& flags) {
  catch_interrupts();  // before there is a temporary folder
  std::optional<PrivateFolder> unkept;
  if (flags.folder == "-") unkept.emplace();
  if (unkept && flags.resumes) reject("--resume: -o - keeps no results", "Name the folder that has them.");
  rank_count(flags.run.ranks);  // rejects
  if (is_first_rank()) flags.exports.check(flags.run.is_forced);
  const bool is_starter = must_start_ranks(flags.run.ranks);
  const RunRequest base = flags.run.request();
  const std::vector<const Workload*> chosen = chosen_workloads(flags.name);
  std::vector<int> counts;
  if (!flags.streams.empty()) counts = parse_counts("--streams", flags.streams, 1, kMaxStreams);
  const std::filesystem::path folder = unkept ? unkept->path() : folder_of(flags);
  Communicator* const ranks = is_starter ? nullptr : join_ranks();
  std::error_code status;
  if (is_first_rank()) std::filesystem::create_directories(folder, status);
  if (status) reject(fmt::format("-o {}: {}", folder.string(), status.message()));

  // All paths are checked before anything runs: an hour of work must not end in "already exists".
  std::vector<SweepRequest> requests;
  for (const Workload* workload : chosen) {
    SweepRequest request;
    request.run = base;
    request.run.workload = workload->name;
    request.submits = flags.submit.ways();
    request.streams = {workload->streams.recommended};
    if (!counts.empty()) request.streams = fitting_counts(*workload, counts);
    if (request.streams.empty()) continue;
    request.output = folder / (workload->name + ".json");
    request.resumes = flags.resumes;
    request.compute_units = {one_unit_count(flags.run.compute_units)};
    request.overwrites = flags.run.is_forced;
    if (is_first_rank()) check_writable(request.output, request.overwrites || request.resumes);
    requests.push_back(std::move(request));
  }
  if (requests.empty()) reject(fmt::format("--streams {}: no workload of {} runs on that", flags.streams, flags.name));
  if (is_starter) {
    const int count = rank_count(flags.run.ranks);
    const DeviceInfo info = flags.run.open()->info();
    for (const SweepRequest& request : requests) check_sweep(info, request, {0, count});
    return start_ranks(count);
  }
  auto device = flags.run.open(ranks);
  watch_ranks();
  std::vector<std::string> failed;
  std::vector<std::string> written;
  bool is_interrupted = false;
  for (const SweepRequest& request : requests) {
    int code = 0;
    try {
      code = print_sweep(device->info(), device.get(), request, flags.run, flags.is_quiet(), ranks);
    } catch (const Error& error) {
      if (ranks != nullptr) throw;
      print_err("weir: {}: {}\n      {}\n", request.run.workload, in_terms_of_flags(error), error.hint);
      code = static_cast<int>(Fault::run);
    }
    if (std::filesystem::exists(request.output, status)) written.push_back(request.output.string());
    is_interrupted = code == kExitInterrupted;
    if (is_interrupted) break;
    if (code != 0) failed.push_back(request.run.workload);
  }
  const DeviceInfo info = device->info();
  device.reset();
  leave_ranks();
  if (!is_first_rank()) return is_interrupted ? kExitInterrupted : 0;
  if (flags.exports.is_asked()) {
    std::vector<Json> sweeps;
    for (const std::string& file : written) sweeps.push_back(read_json(file));
    flags.exports.write(sweeps, flags.run.is_forced);
  }
  if (!written.empty()) write_report(written, folder, flags, info);
  if (is_interrupted) return kExitInterrupted;
  if (!flags.is_quiet()) print_next(info, requests.front().run.workload);
  if (failed.empty()) return 0;
  std::string names;
  for (const std::string& name : failed) names += " " + name;
  print_err("weir: {} of {} workloads failed:{}\n", failed.size(), requests.size(), names);
  return static_cast<int>(Fault::run);
}

}  // namespace weir::cli
