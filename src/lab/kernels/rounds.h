// The processes of `weir bench`: every package on every backend in a separate child, round after round, so that
// variation between processes shows. One that hangs or crashes costs one case, not the run. Knows no report.
#pragma once

#include <atomic>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "lab/kernels/plan.h"

namespace weir::bench {

// What children need besides their unit.
struct BenchSettings {
  const BenchOptions& options;
  Json facts;                            // as in facts.h
  std::map<std::string, Json> ceilings;  // by backend; empty: no roofline
  std::filesystem::path cache, include;  // for package::OpenOptions
  std::string compiler = "c++";
};

// The facts of this machine (facts.h); empty where it was interrupted. A driver that crashes or hangs affects only its
// own backend.
std::optional<Json> find_facts(const BenchOptions& options, const package::Discovery& discovery,
                               const std::atomic<bool>& stop);

// Measures each backend that the plan needs once, unless interrupted. `began` is called before each.
void find_ceilings(const BenchPlan& plan, BenchSettings& settings, const std::atomic<bool>& stop,
                   const std::function<void(const std::string& backend)>& began);

// Entries as they arrive, by package and key, round by round.
class BenchResults {
 public:
  explicit BenchResults(const BenchPlan& plan);
  void add(std::size_t package, Json entry);
  bool has(std::size_t package, const std::string& key) const;
  // Entries with their rounds combined, by backend; those that need no process first.
  std::vector<Json> entries(std::size_t package) const;
  std::vector<Json> entries() const;

 private:
  struct Kept {
    std::string key;
    std::vector<Json> rounds;
  };
  std::vector<std::vector<Kept>> packages_;
  std::vector<std::size_t> settled_;  // by package: how many need no process
};

struct BenchEvents {
  std::function<void(const std::string& what, std::size_t done, std::size_t total)> began;
  std::function<void(const Json& entry, int round)> measured;
  std::function<void(std::size_t package)> saved;  // this round of the package is complete
};

// Every unit once a round, in random order. Returns false where it was interrupted; `results` has what arrived until
// then. Call from a thread that outlives the children: they die with it.
bool run_units(const BenchPlan& plan, const BenchSettings& settings, const BenchEvents& events, BenchResults& results,
               const std::atomic<bool>& stop);

// The child's side (child.cpp): opens one package for one backend and measures its cases, or examines this machine, as
// a request file says; reports as lines of JSON. Everything that a package does happens there. Requests and reports:
//   {"task": "facts", "backend", "device"}             {"event": "result", "value": facts}
//   {"task": "ceilings", "backend", "device", ...}     {"event": "result", "value": ceilings}
//   {"task": "measure", "folder", "module", "name", ...}
//     {"event": "building"}, {"event": "opening"}      compilers may take long, all else has a case's time limit
//     {"event": "cases", "entries": [...]}             what there is to measure; skipped cases are marked
//     {"event": "begins", "key"}, {"event": "ends", "entry"}
//   {"event": "refused", "what", "hint"}               instead of everything that would follow
// Samples go to a file of doubles, so that those before a crash are kept and nobody is woken up for each of them.
void run_bench_child(const std::string& file);

}  // namespace weir::bench
