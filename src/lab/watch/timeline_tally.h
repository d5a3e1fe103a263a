// Adds up Weir's own timelines by hardware queue over the parts of a window: commands, busy time, backlog. Knows spans
// and steps; starts nothing.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "device/device.h"
#include "lab/watch/sample.h"
#include "measure/timeline.h"

namespace weir::watch {

class TimelineTally {
 public:
  // `spans` belong to iterations that ran between the two times without a break. Spans are added up by queue; spans
  // without a queue are added up by stream, except host functions, which share one row because no hardware queue runs
  // them.
  void add(std::span<const Span> spans, const Step& step, std::int64_t begun_ns, std::int64_t ended_ns);

  bool is_empty() const { return window_ns_ == 0; }
  std::int64_t window_ns() const { return window_ns_; }
  std::uint64_t untimed() const { return untimed_; }  // commands without a start or an end

  // One row for each queue that was ever used; `device` is part of its key.
  std::vector<Row> rows(const std::string& device) const;
  // Begins a new window; totals for counters are kept.
  void clear();

 private:
  enum class Lane : std::uint8_t { queue, copy_queue, stream, host };
  struct LaneId {
    Lane lane = Lane::queue;
    std::int32_t number = 0;
    auto operator<=>(const LaneId&) const = default;
  };
  struct Tally {
    std::uint64_t kernels = 0, commands = 0;          // in this window
    std::uint64_t all_kernels = 0, all_commands = 0;  // in total
    std::uint64_t timed = 0;                          // commands of this window with times
    double busy_ns = 0, backlog_ns = 0;               // backlog_ns: the sum of all commands' waiting times
    std::uint64_t most_backlog = 0;
    std::set<std::uint16_t> streams;
    int lowest_priority = INT32_MAX, highest_priority = INT32_MIN;
  };
  static LaneId lane_of(const Span& span, const Step& step);
  static Row row_of(const LaneId& id, const Tally& tally, double window_s, const std::string& device);

  std::map<LaneId, Tally> tallies_;
  std::int64_t window_ns_ = 0;
  std::uint64_t untimed_ = 0;
};

}  // namespace weir::watch
