// Notices that a session hangs, and has it diagnosed. Knows counts and clocks; the caller decides what to do
// (RunControl::on_hang).
#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "device/device.h"
#include "run/runner.h"

namespace weir {

// Checks counts from its own thread, and calls back once if nothing has changed for `timeout_ns` although something is
// outstanding: commands, or a host call that submits or awaits them. So it works even if every other thread is stuck.
class HangWatch {
 public:
  using Source = std::function<std::vector<StreamProgress>()>;
  HangWatch(std::int64_t timeout_ns, Source source,
            std::function<void(std::span<const StreamProgress>, std::int64_t still_ns)> on_hang);
  ~HangWatch();  // stops and joins
  HangWatch(const HangWatch&) = delete;
  HangWatch& operator=(const HangWatch&) = delete;

  // Call around the host's calls, from one thread at a time; each call counts as activity.
  void enter() noexcept { calls_.store(calls_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed); }
  void leave() noexcept { enter(); }
  // Marks a time in which the host is inside such calls.
  class Inside {
   public:
    explicit Inside(HangWatch* watch) noexcept : watch_(watch) {
      if (watch_ != nullptr) watch_->enter();
    }
    ~Inside() {
      if (watch_ != nullptr) watch_->leave();
    }
    Inside(const Inside&) = delete;
    Inside& operator=(const Inside&) = delete;

   private:
    HangWatch* watch_;
  };

 private:
  void watch(const std::stop_token& stop);

  std::int64_t timeout_ns_;
  Source source_;
  std::function<void(std::span<const StreamProgress>, std::int64_t)> on_hang_;
  std::atomic<std::uint64_t> calls_{0};  // odd: the host is inside a call. Relaxed: it publishes nothing else
  std::mutex mutex_;                     // for the wait below
  std::condition_variable_any stopped_;
  std::jthread thread_;  // last: it uses the members above
};

// Watches a session while it runs, as configured by the control: reports go to RunControl::on_hang. Does nothing
// without a timeout, or if the device's time is virtual. Session, step, placement and control must outlive it.
class SessionWatch {
 public:
  SessionWatch(const RunControl& control, const DeviceInfo& info, Session& session, const Step& step,
               const Placement& placement, std::span<const std::string> roles = {});

  // Marks a time in which the host submits commands or waits for them.
  class Inside : HangWatch::Inside {
   public:
    explicit Inside(SessionWatch* watch) noexcept
        : HangWatch::Inside(watch != nullptr && watch->watch_ ? &*watch->watch_ : nullptr) {}
  };

 private:
  std::vector<std::uint64_t> collectives() const;  // started since the session began

  const RunControl& control_;
  const Step& step_;
  const Placement& placement_;
  std::vector<std::string> roles_;
  std::vector<std::uint64_t> started_before_;  // by stream; empty: not counted
  std::optional<HangWatch> watch_;
};

}  // namespace weir
