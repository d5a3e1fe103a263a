// One trial: a program of the user in a process group of its own, without a shell and with empty input. Keeps its
// output in files of bounded size, finds a number in it, and takes hashes. Does not know what the trial is for.
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <regex>
#include <string>
#include <utility>
#include <vector>

#include "base/process.h"

namespace weir::trials {

struct TrialRequest {
  std::vector<std::string> command;
  Variables variables;              // set for the program
  std::vector<std::string> absent;  // not set for it
  double timeout_s = 0;             // 0: none
  const std::regex* metric = nullptr;
  std::vector<std::string> hashed;           // files; "-" is standard output
  std::filesystem::path out_file, err_file;  // receive its output
};

struct TrialOutcome {
  ProcessEnd end;
  std::int64_t duration_ns = 0;
  std::optional<double> metric;  // the last number that the pattern found, in standard output before standard error
  std::vector<std::pair<std::string, std::optional<std::string>>> hashes;  // nothing: the trial did not write the file
};

inline constexpr std::uint64_t kMaxOutputBytes = 8 * 1024 * 1024;  // kept of a trial's standard output

// Rejects what is not a pattern with exactly one group.
std::regex metric_pattern(const std::string& text);

// Finds the last number in lines that arrive in pieces.
class MetricFinder {
 public:
  explicit MetricFinder(const std::regex* pattern) : pattern_(pattern) {}
  void add(std::string_view piece);
  // The number, once all pieces were added.
  std::optional<double> finish();

 private:
  void search(std::string_view line);
  const std::regex* pattern_;
  std::string line_;
  std::optional<double> found_;
};

// Throws StartError where the program cannot be executed. Its whole group ends with it, at the timeout, and when
// `stop` is set. Call from a thread that outlives it.
TrialOutcome run_trial(const TrialRequest& request, const std::atomic<bool>& stop);

}  // namespace weir::trials
