// The processes of `weir bench`: every package on every backend in a child of its own, round after round, so that what
// one process has of luck shows. One that hangs or crashes costs one case, not the run. Knows no report.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/json.h"
#include "cli/bench_plan.h"

namespace weir::cli {

// What children need to know besides their unit.
struct BenchSettings {
  const BenchOptions& options;
  Json facts;                            // of cli/bench_facts.h
  std::map<std::string, Json> ceilings;  // by backend; none: no roofline
  std::filesystem::path cache, include;  // of package::OpenOptions
  std::string compiler = "c++";
};

// Of a child that finds something out about this machine: {"task": "facts" | "ceilings", ...}. Fails with its words;
// null where we were interrupted.
Json ask_bench_child(const Json& request, double limit_s);

// Entries as they come, by package and key, round by round.
class BenchResults {
 public:
  explicit BenchResults(const BenchPlan& plan);
  void add(std::size_t package, Json entry);
  bool has(std::size_t package, const std::string& key) const;
  // Rounds put together; those that need no process first.
  std::vector<Json> entries(std::size_t package) const;
  std::vector<Json> entries() const;

 private:
  struct Kept {
    std::string key;
    std::vector<Json> rounds;
  };
  std::vector<std::vector<Kept>> packages_;
};

struct BenchEvents {
  std::function<void(const std::string& what, std::size_t done, std::size_t total)> began;
  std::function<void(const Json& entry, int round)> measured;
  std::function<void(std::size_t package)> saved;  // all of this round is there
};

// False: interrupted; what had come is in `results`. Call from the thread that goes on living: children die with it.
bool run_rounds(const BenchPlan& plan, const BenchSettings& settings, const BenchEvents& events, BenchResults& results);

}  // namespace weir::cli
