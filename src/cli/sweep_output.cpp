#include "cli/sweep_output.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/console.h"
#include "base/error.h"
#include "base/units.h"
#include "cli/hang.h"
#include "cli/process.h"
#include "cli/ranks.h"
#include "report/text/documents.h"
#include "run/scaling_curves.h"

namespace weir::cli {

std::vector<int> fitting_counts(const Workload& workload, const std::vector<int>& asked) {
  std::vector<int> fitting;
  std::string others;
  for (const int count : asked) {
    if (count >= workload.streams.min && count <= workload.streams.max) {
      fitting.push_back(count);
    } else {
      others += fmt::format("{}{}", others.empty() ? "" : ", ", count);
    }
  }
  if (!others.empty() && is_first_rank())
    print_err("weir: {} runs on {} to {} streams: leaving out {}\n", workload.name, workload.streams.min,
              workload.streams.max, others);
  return fitting;
}

int print_sweep(const DeviceInfo& info, Device* device, const SweepRequest& request, const RunFlags& flags,
                bool is_quiet, Communicator* communicator, decltype(SweepControl::reopen) reopen,
                decltype(SweepControl::run_process) run_process) {
  ProgressLine line(flags.is_quiet || !is_first_rank());
  SweepControl control;
  control.reopen = std::move(reopen);
  control.run_process = std::move(run_process);
  control.run.communicator = communicator;
  watch_hangs(control.run, flags.hang_timeout);
  control.run.stop = &catch_interrupts();
  std::string where;
  std::size_t asked = 0, ended = 0;
  control.on_begin = [&](int streams, const std::string& way, std::size_t index, std::size_t total) {
    where = fmt::format("{} {}/{}, {} streams, {}", request.run.workload, index + 1, total, streams, way);
    asked = total;
    if (control.run_process) line.show(where, static_cast<int>(index), static_cast<int>(total));
  };
  control.run.progress = [&](std::string_view phase, int done, int total) {
    line.show(fmt::format("{}: {}", where, phase), done, total);
  };
  std::size_t width = kSubmitWidth;
  for (const SweepPoint& point : points_of(request)) width = std::max(width, point.way().size());
  bool has_failed = false;
  bool has_head = false;
  std::string floors;
  control.on_floor = [&](const Json& entries) {
    std::map<std::string, double> highest;  // by submit mode
    for (const Json& entry : entries) {
      if (entry["ns_per_command"].is_null()) continue;
      const std::string submit = entry["submit"].get<std::string>();
      double& floor = highest[submit_family(submit)];
      floor = std::max(floor, entry["ns_per_command"].get<double>());
    }
    for (const auto& [submit, floor] : highest)
      floors += fmt::format("{}{} {}", floors.empty() ? "" : ", ", submit, format_duration(floor));
  };
  control.on_point = [&](const Json& result, bool was_kept) {
    ++ended;
    const bool is_failed = result.value("status", "") == "failed";
    has_failed = has_failed || is_failed;
    line.clear();
    if (!is_first_rank()) return;
    if (is_quiet) {
      if (is_failed)
        print_err("weir: {}, {} streams, {}: {}\n", request.run.workload, result["streams"].dump(),
                  result.value("submit", ""), result.value("failure", "failed"));
      return;
    }
    if (!has_head) {
      Json head = result;
      head["workload"] = result["workload"]["name"];
      head["model"] = result["device"]["model"];
      head["device"] = result["device"]["name"];
      print_out("{}", sweep_head(head, width));
      has_head = true;
    }
    print_out("{}", sweep_row(result, was_kept, width));
    flush_out();
  };
  const Json sweep = run_sweep(info, device, request, run_context(), control);
  line.clear();
  const bool is_stopped = sweep["status"] != "complete";
  if (!is_quiet && is_first_rank()) {
    if (!floors.empty())
      floors = wrapped(fmt::format("Floor, at most, per command on the null device: {}.", floors), 0) + "\n";
    print_out("\n{}{}Written to {}\n", floors, sweep_summary(sweep), request.output.string());
    if (is_stopped && control.run_process)
      print_out("Interrupted. The same command with --resume runs the processes that are missing.\n");
    else if (is_stopped)
      print_out("Interrupted: {} of {} points were begun. The same command with --resume runs the rest.\n", ended,
                asked);
    print_out("\n");
  }
  if (is_stopped) return kExitInterrupted;
  return has_failed ? static_cast<int>(Fault::run) : 0;
}

}  // namespace weir::cli
