#include "cli/sweep_output.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>

#include "base/error.h"
#include "base/units.h"
#include "cli/process.h"
#include "report/console.h"

namespace weir::cli {

int print_sweep(Device& device, const SweepRequest& request, bool is_quiet) {
  ProgressLine line(is_quiet);
  SweepControl control;
  control.run.stop = &catch_interrupts();
  std::size_t point = 0;
  control.run.progress = [&](std::string_view phase, int done, int total) {
    line.show(fmt::format("{}, point {}: {}", request.run.workload, point + 1, phase), done, total);
  };
  bool has_failed = false;
  bool has_head = false;
  double floor = 0;
  control.on_floor = [&](const Json& floors) {
    for (const Json& entry : floors) floor = std::max(floor, entry["ns_per_command"].get<double>());
  };
  control.on_point = [&](const Json& result, std::size_t index, std::size_t, bool was_kept) {
    point = index + 1;
    has_failed = has_failed || result.value("status", "") == "failed";
    line.clear();
    if (is_quiet) return;
    if (!has_head) {
      Json head = result;
      head["workload"] = result["workload"]["name"];
      head["model"] = result["device"]["model"];
      head["device"] = result["device"]["name"];
      fmt::print("{}", sweep_head(head));
      has_head = true;
    }
    std::string row = sweep_row(result);
    if (was_kept) row.insert(row.size() - 1, " (kept)");
    fmt::print("{}", row);
    std::fflush(stdout);
  };
  const Json sweep = run_sweep(device, request, run_context(), control);
  line.clear();
  if (!is_quiet) {
    fmt::print("\nFloor: the null device takes at most {} per command.\n{}Written to {}\n\n", format_duration(floor),
               sweep_summary(sweep), request.output.string());
  }
  if (control.run.is_stopped()) return kExitInterrupted;
  return has_failed ? static_cast<int>(Fault::run) : 0;
}

}  // namespace weir::cli
