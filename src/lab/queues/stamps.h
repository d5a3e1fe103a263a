// Steps made of probe kernels, and sessions that run any part of them: the building blocks of queue experiments. Knows
// flags and moments; draws no conclusions.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "device/device.h"
#include "kernel/moment.h"
#include "submit/placement.h"

namespace weir {

// Long enough for the slowest host to queue everything that an experiment needs. Nothing waits longer than this.
inline constexpr std::int64_t kHoldLimitNs = 250'000'000;

// Collects holds and stamps. Each block of a stamp and each hold has its own moment. Commands whose moments overlap are
// ordered, all others are not; for that purpose a kernel may claim more moments (`count`) than it writes.
class StampStep {
 public:
  StampStep(std::uint32_t flags, std::uint32_t moments);

  CommandId hold(Lane lane, std::uint32_t flag, std::uint32_t moment, std::uint32_t count = 1,
                 std::int64_t limit_ns = kHoldLimitNs);
  CommandId stamp(Lane lane, std::int64_t duration_ns, std::uint32_t moment, std::uint32_t blocks = 1,
                  std::uint32_t count = 0);
  // For buffers and commands that are not probes.
  StepBuilder& builder() { return builder_; }

 private:
  friend class StampSession;
  StepBuilder builder_;
  BufferId flags_;
  BufferId moments_;
  std::uint32_t flag_count_, moment_count_;
};

// A stamp step prepared in its natural layout.
class StampSession {
 public:
  StampSession(Device& device, StampStep step, int streams, const SessionOptions& options = {});

  // Clears flags and moments and begins an iteration. Call only while nothing runs.
  void begin();
  void submit(CommandId command) noexcept { session_->submit({&command, 1}); }
  void submit(std::span<const CommandId> commands) noexcept { session_->submit(commands); }
  void submit_all() noexcept { session_->submit(all_); }
  // Releases whoever waits for the flag.
  void release(std::uint32_t flag) noexcept;
  void finish() { session_->finish(); }

  Moment moment(std::uint32_t index) const noexcept;
  std::vector<Moment> moments(std::uint32_t first, std::uint32_t count) const;
  // Waits until the kernel with that moment has started; returns false if the limit passes first.
  bool await_started(std::uint32_t moment, std::int64_t limit_ns = kHoldLimitNs) noexcept;

  std::int64_t now_ns() noexcept { return session_->now_ns(); }
  void pause(std::int64_t ns) noexcept { session_->pause(ns); }
  Timeline timeline() { return session_->timeline(); }
  const Step& step() const { return *step_; }

 private:
  std::unique_ptr<const Step> step_;  // at a stable address, because the session refers to it
  std::unique_ptr<const Placement> placement_;
  std::unique_ptr<Session> session_;
  std::vector<CommandId> all_;
  std::span<std::int32_t> flags_, moments_;
};

// The time from the first start to the last end; 0 if there is none. Moments that have not happened are ignored.
std::int64_t makespan_ns(std::span<const Moment> moments);
// The most that ran at the same time.
int most_at_once(std::span<const Moment> moments);

// How many blocks of a stamp the device runs at once, by experiment.
struct ConcurrentBlocks {
  int blocks = 0;
  bool is_more = false;  // even the largest launch tried ran at once
};
ConcurrentBlocks count_concurrent_blocks(Device& device);

}  // namespace weir
