// The traced pass without events: joins a profiler's records with the submitted commands. Knows commands and the
// neutral records; not what a command is or which profiler it is.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/clock.h"
#include "device/gpu/activity.h"
#include "device/gpu/commands.h"

namespace weir {

// A stream's records, in the order of the driver's calls, are its commands in submission order; where the profiler
// marks records, a command's are those with its mark. Keeps the last iterations: as many as requested, if they fit.
class ActivityTrace {
 public:
  // Starts the profiler. Null with a reason if there is none or its records would be ambiguous.
  static std::unique_ptr<ActivityTrace> start(PrimaryContext& context, const Step& step, const Placement& placement,
                                              std::span<const GpuStream> streams, GpuCommands& commands, int iterations,
                                              std::string* reason);
  ~ActivityTrace();
  ActivityTrace(const ActivityTrace&) = delete;
  ActivityTrace& operator=(const ActivityTrace&) = delete;

  void begin() noexcept;
  // Called before a command is submitted. Several threads may call it at once, each for its own streams.
  void note(CommandId command, StreamId stream) noexcept {
    Noted& noted = noted_[first_ + command];
    std::uint64_t& position = counts_of_[command] == 0 ? host_submissions_[command] : lanes_[stream].submitted;
    noted.position = position;
    position += counts_of_[command] == 0 ? 1 : counts_of_[command];
    if (activity_.mark != nullptr && counts_of_[command] != 0)
      activity_.mark((begun_ - 1) * counts_of_.size() + command + 1);
    noted.submitted_ns = now_ns();
  }

  // Called by the same thread after the driver's call has returned.
  void accepted(CommandId command) noexcept {
    noted_[first_ + command].accepted_ns = now_ns();
    if (activity_.mark != nullptr) activity_.mark(0);
  }

  // Everything kept so far, by iteration and command. Call while nothing runs.
  Timeline timeline();

 private:
  struct Noted {
    std::int64_t submitted_ns = kNoTime, accepted_ns = kNoTime;
    std::uint64_t position = 0;  // of its first record in its stream; of a host command, its run
  };
  // One stream: the records since the start, except those that no kept iteration needs.
  struct alignas(64) Lane {
    std::uint64_t submitted = 0;  // records expected for all commands so far
    std::uint64_t forgotten = 0;
    std::vector<GpuActivityRecord> records;
    std::uint64_t id = 0;
    std::string mismatch;  // empty: records and commands match
  };
  // One command's records, if they are marked.
  struct Found {
    std::uint32_t count = 0;
    std::int32_t queue = kNoQueue;
    std::int64_t started_ns = kNoTime, ended_ns = kNoTime, last_started_ns = kNoTime;
    bool has_kernel = false;
  };
  ActivityTrace(const GpuActivity& activity, const GpuCommands& commands, const Step& step, const Placement& placement,
                int iterations);
  void collect();
  bool is_complete() const noexcept;
  bool is_marked() const noexcept { return activity_.mark != nullptr; }
  void add_marked(const GpuActivityRecord& record);
  void fill_marked(Span& span, std::size_t index);
  void fill(Span& span, const Noted& noted, Lane& lane) const;
  void forget();
  std::string source() const;

  const GpuActivity& activity_;
  const GpuCommands& commands_;
  const Step& step_;
  const Placement& placement_;
  bool is_started_ = false;
  std::size_t slots_;
  std::vector<std::uint32_t> counts_of_;         // records, by command; 0 for host commands; marked: 1 if unknown
  std::vector<std::uint64_t> host_submissions_;  // by command
  std::vector<Lane> lanes_;                      // by stream
  std::vector<Noted> noted_;                     // slot, command
  std::vector<Found> found_;                     // the same, if records are marked
  std::uint64_t missing_ = 0;                    // commands without a mark's records, in the last timeline
  std::size_t first_ = 0;                        // first command of the current slot
  std::uint64_t begun_ = 0;                      // iterations
  std::uint64_t marked_ = 0, unmarked_ = 0;      // records
  std::uint64_t lost_ = 0;                       // records, as counted by the profiler
};

}  // namespace weir
