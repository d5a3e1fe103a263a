#include "cli/process_flags.h"

#include <fmt/format.h>

#include "base/error.h"
#include "base/options.h"
#include "cli/flag_values.h"
#include "cli/ranks.h"

namespace weir::cli {
namespace {

constexpr int kMaxProcesses = 1000;

}  // namespace

void ProcessFlags::add_to(CommandSyntax syntax) {
  syntax.add("--processes N", processes, "repeat in this many processes, or in 5..20: until the result is precise");
  syntax.add("--until PERCENT", until,
             "with 5..20: precise is a mean of the processes' medians within this (default: 2%)");
  syntax.add("--budget DURATION", budget, "begin no further process that would end after this time: 60s, 5m");
}

ProcessCount ProcessFlags::count() const {
  ProcessCount count;
  if (processes.find_first_of(",:") != std::string::npos)
    reject(fmt::format("--processes {}: not a number of processes", processes), "Use 5, or 5..20.");
  const std::vector<int> ends = parse_counts("--processes", processes, 1, kMaxProcesses);
  count.fewest = static_cast<std::size_t>(ends.front());
  count.most = static_cast<std::size_t>(ends.back());
  if (!until.empty()) count.until = share_of("--until", until);
  if (!until.empty() && count.fewest == count.most)
    reject(fmt::format("--until {}: --processes {} runs as many, however precise they are", until, processes),
           "Give a range, --processes 5..20, or leave out --until.");
  if (!budget.empty()) count.budget_ns = static_cast<std::int64_t>(seconds_of("--budget", budget) * 1e9);
  if (!budget.empty() && count.is_one())
    reject(fmt::format("--budget {}: there is only one process", budget), "Use --processes 20 or --processes 5..20.");
  if (!count.is_one() && job_ranks().count > 1)
    reject(fmt::format("--processes {}: this job's ranks were started once", processes),
           "Start weir without mpirun or srun and with --ranks: each process then starts its own ranks.");
  return count;
}

void VariableFlags::add_to(CommandSyntax syntax) {
  syntax.add("--env NAME=A,B", texts,
             "a variable and its values, each in processes of its own: NAME=A,B,C; an empty item is unset; repeatable");
}

std::vector<VariableAxis> VariableFlags::axes() const {
  std::vector<VariableAxis> axes = parse_variable_axes(texts);
  if (!axes.empty() && job_ranks().count > 1)
    reject(fmt::format("--env {}: this job's ranks were started once, with their variables", texts.front()),
           "Start weir without mpirun or srun and with --ranks: each value then starts its own ranks.");
  return axes;
}

std::string process_words(const ProcessCount& count, std::size_t round) {
  return count.fewest == count.most ? fmt::format("process {} of {}", round + 1, count.most)
                                    : fmt::format("process {} of {} to {}", round + 1, count.fewest, count.most);
}

}  // namespace weir::cli
