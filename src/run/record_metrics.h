// What recorded programs do now, as OpenMetrics text, and the file of it for Prometheus' textfile collector. Knows
// states and entries of recordings; looks at no process.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "run/record_live.h"

namespace weir {

// One process, at the end of an interval.
struct RecordFigures {
  std::uint64_t pid = 0;
  std::string program;
  int rank = -1;
  RecordedState state;
  std::int64_t now_ns = 0;
  std::optional<double> outstanding_share;                // of the looks in the interval
  std::optional<double> busy_share;                       // with --exact
  std::vector<std::pair<std::string, double>> slowest_s;  // kernels, with --exact: seconds since the program began
};

// Collects them for one process.
class RecordMetrics {
 public:
  void look(const RecordedState& state, std::int64_t now_ns);
  // The device's own records are used, which only --exact has. Their names are texts of `recording`.
  void add(std::span<const RecordedEntry> entries, const LiveRecording& recording);
  // Begins the next interval.
  RecordFigures take();

 private:
  struct Kernel {
    std::string name;
    double seconds = 0;
  };

  RecordedState state_;
  std::int64_t now_ns_ = 0, since_ns_ = 0;
  std::uint64_t looks_ = 0, looks_with_work_ = 0;
  std::int64_t busy_to_ns_ = 0;
  double busy_ns_ = 0;
  std::map<std::uint32_t, Kernel> kernels_;
};

std::string record_metrics_text(std::span<const RecordFigures> processes);

// Rejects a file that is somebody else's, and one that could not be written.
void check_record_metrics(const std::filesystem::path& path);
void write_record_metrics(const std::filesystem::path& path, const std::string& text);

}  // namespace weir
