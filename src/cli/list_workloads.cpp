// weir list: the workloads, and with -v everything that can be known without running one.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <set>

#include "base/error.h"
#include "base/options.h"
#include "cli/list.h"
#include "workload/workload.h"

namespace weir::cli {
namespace {

void print_details(const Workload& workload) {
  fmt::print("  shows    {}\n", workload.shows);
  fmt::print("  unit     {}; work {} with the stream count\n", workload.unit,
             workload.scaling == Scaling::divided ? "is divided" : "grows");
  fmt::print("  streams  {} to {}, {} recommended\n", workload.streams.min, workload.streams.max,
             workload.streams.recommended);
  for (const ParamSpec& param : workload.params) {
    fmt::print("  --param  {} = {} / {} / {} (tiny / small / full)\n", param.name, to_string(param.defaults[0]),
               to_string(param.defaults[1]), to_string(param.defaults[2]));
    fmt::print("           {}", param.help);
    if (!param.choices.empty()) fmt::print(": {}", fmt::join(param.choices, ", "));
    fmt::print("\n");
  }
  fmt::print("\n");
}

int execute(const std::string& category, bool is_verbose) {
  std::set<std::string> categories;
  for (const Workload& workload : workloads()) categories.insert(workload.category);
  if (!category.empty() && !categories.contains(category)) {
    const std::vector<std::string> names(categories.begin(), categories.end());
    reject(fmt::format("--category {}: there is no such category", category), suggestion(category, names));
  }
  if (!is_verbose) fmt::print("{:<22}{:<4}{:<19}{:<9}{}\n", "workload", "", "category", "streams", "unit");
  for (const Workload& workload : workloads()) {
    if (!category.empty() && workload.category != category) continue;
    const std::string streams = fmt::format("{}-{}", workload.streams.min, workload.streams.max);
    fmt::print("{:<22}P{:<3}{:<19}{:<9}{}\n", workload.name, workload.priority, workload.category, streams,
               workload.unit);
    fmt::print("  {}\n", workload.summary);
    if (is_verbose) print_details(workload);
  }
  return 0;
}

}  // namespace

CliCommand list_workloads() {
  return {"list", "show the workloads", [](CLI::App& app) -> std::function<int()> {
            const auto category = std::make_shared<std::string>();
            const auto is_verbose = std::make_shared<bool>(false);
            app.add_option("--category", *category, "only this category");
            app.add_flag("-v,--verbose", *is_verbose, "with parameters and what each shows");
            return [category, is_verbose] { return execute(*category, *is_verbose); };
          }};
}

}  // namespace weir::cli
