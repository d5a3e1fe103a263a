// The setting of an experiment: one session with a stream each for victim and intruder, the victim's kernels with their
// records, and a short kernel per request. Launches and observes; the contest decides who may launch when.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "device/device.h"
#include "kernel/moment.h"
#include "lab/preempt/experiment.h"
#include "lab/preempt/kernel_clock.h"

namespace weir::preempt {

// Whether experiments are possible on a device, and why not.
Capability can_observe(const DeviceInfo& info);

inline constexpr StreamId kVictimStream = 0, kIntruderStream = 1;

class Arena {
 public:
  struct Options {
    const Victim* victim = nullptr;  // null: the intruder alone
    bool is_stoppable = false;       // the victim checks the flag between blocks
    std::uint32_t slots = 1;         // launches of the victim that may be on the device
    int requests = 0;
    std::int64_t intruder_ns = 0;
    int intruder_priority = 0;  // the victim has priority 0
  };
  // Launches everything once, and times the victim alone.
  Arena(Device& device, const Options& options);

  // The record of a victim's launch.
  struct VictimRecord {
    std::int64_t launches = 0;                  // that have ended in this slot
    std::int64_t started_ns = 0, ended_ns = 0;  // of the last launch, on the kernel's clock
    std::int64_t taken = 0;                     // units of its job up to then
  };

  bool is_virtual() const { return info_.is_virtual; }
  bool is_gpu() const { return info_.is_gpu; }
  std::uint32_t slots() const { return slots_; }
  std::int64_t units() const { return units_; }  // of one job
  std::int64_t waves() const { return waves_; }
  std::uint32_t blocks_at_once() const { return blocks_at_once_; }
  std::int64_t block_ns() const { return block_ns_; }
  std::int64_t block_words() const { return block_words_; }
  std::int64_t kernel_ns() const { return kernel_ns_; }  // of the victim alone, median

  // Launches a job, or the rest of one; `epoch` is the flag value that it ignores. The slot must be free. One thread.
  void launch(std::uint32_t slot, std::int64_t job, std::int64_t epoch) noexcept;
  VictimRecord report(std::uint32_t slot) const noexcept;
  // Makes launches of smaller epochs end. Any thread.
  void raise_flag(std::int32_t epoch) noexcept;
  // One thread, which may differ from the victim's.
  void request(int index) noexcept;
  Moment moment(int index) const noexcept;  // on the kernel's clock

  // Relates both clocks at one moment. Call while nothing runs.
  KernelClockFix fix_clock();
  bool has_own_clock() const { return has_own_clock_; }

  std::int64_t now_ns() noexcept { return session_->now_ns(); }
  void pause(std::int64_t ns) noexcept { session_->pause(ns); }
  void finish() { session_->finish(); }

  struct Count {
    std::uint64_t lost = 0, repeated = 0;
  };
  // The number of units that were not done, or done more than once, in this many jobs; nothing if the device does not
  // record it. Call after finish().
  std::optional<Count> count(std::int64_t jobs);

 private:
  void build(const Options& options);
  void warm_up();
  std::vector<std::int32_t> words(BufferId buffer);
  std::int64_t* record(std::uint32_t slot) const noexcept;

  Device& device_;
  DeviceInfo info_;
  std::uint32_t slots_ = 0, blocks_at_once_ = 0;
  std::int64_t units_ = 0, waves_ = 0, block_ns_ = 0, block_words_ = 0, kernel_ns_ = 0;
  bool has_own_clock_ = false, takes_units_ = false;
  bool is_counted_ = true;
  std::unique_ptr<const Step> step_;  // at stable addresses, because the session refers to them
  std::unique_ptr<const Placement> placement_;
  std::unique_ptr<Session> session_;
  BufferId flag_ = 0, records_ = 0, state_ = 0, done_ = 0, moments_ = 0;
  CommandId first_launch_ = 0, first_request_ = 0, hold_ = 0;
  std::int32_t* flag_at_ = nullptr;                             // the victim's; the clock's is one cache line further
  std::int32_t *records_at_ = nullptr, *moments_at_ = nullptr;  // the last moment is the clock's
  int requests_ = 0;
};

}  // namespace weir::preempt
