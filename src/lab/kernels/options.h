// The settings of a run of `weir bench`, and the packages that they name.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "lab/kernels/method.h"
#include "lab/kernels/package/discovery.h"

namespace weir::bench {

inline constexpr const char* kStops[] = {"iterations", "interval", "entropy"};  // the names of Stop

// The user's settings. Where a flag is missing, a package's bench.yaml decides, and then the default.
struct BenchOptions {
  std::vector<std::filesystem::path> paths;  // empty: package::kUsualFolders
  std::vector<Precision> precisions;         // empty: those of each kernel
  std::vector<package::Backend> backends;    // empty: those that exist here
  std::vector<std::string> filters;          // empty: all packages
  std::optional<int> iterations, warmup, rounds;
  std::optional<std::uint64_t> seed;
  std::optional<double> time_limit_s;
  Stop stop = Stop::iterations;
  double budget_s = 30;
  int threads = 1, device = 0;
  bool is_cold = false, has_roofline = true;

  int iterations_of(const package::Package& package) const;
  int warmup_of(const package::Package& package) const;
  std::uint64_t seed_of(const package::Package& package) const;
  double time_limit_of(const package::Package& package) const;
  // The number of processes that a package's samples are divided over.
  int rounds_of(const package::Package& package) const;
  // Samples per round; they add up to iterations_of(), and none has fewer than kMinPerRound unless there is only one.
  int iterations_of(const package::Package& package, int round) const;
  bool takes(const package::Package& package) const;
  Json to_json() const;
};

inline constexpr int kMinPerRound = 5;

// Searches `paths`, or the usual folders. Rejects where there is no package, and a filter that takes none.
package::Discovery find_packages(const BenchOptions& options);

}  // namespace weir::bench
