// Notices that a session does not go on, and has it diagnosed. Knows counts and clocks; what is done about it is the
// caller's (RunControl::on_hang).
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

// Looks at counts from a thread of its own, and calls back once when nothing has changed for `timeout_ns` although
// something is outstanding: commands, or a call of the host that brings or awaits them. So it works where every other
// thread is stuck.
class HangWatch {
 public:
  using Source = std::function<std::vector<StreamProgress>()>;
  HangWatch(std::int64_t timeout_ns, Source source,
            std::function<void(std::span<const StreamProgress>, std::int64_t still_ns)> on_hang);
  ~HangWatch();  // stops and joins
  HangWatch(const HangWatch&) = delete;
  HangWatch& operator=(const HangWatch&) = delete;

  // Around the host's calls. By one thread at a time; each counts as something that happened.
  void enter() noexcept { calls_.store(calls_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed); }
  void leave() noexcept { enter(); }

 private:
  void watch(const std::stop_token& stop);

  std::int64_t timeout_ns_;
  Source source_;
  std::function<void(std::span<const StreamProgress>, std::int64_t)> on_hang_;
  std::atomic<std::uint64_t> calls_{0};  // odd: the host is inside of one. Relaxed: nothing else is read by it
  std::mutex mutex_;                     // of the wait below
  std::condition_variable_any stopped_;
  std::jthread thread_;  // last: it uses the others
};

// Watches a session while it runs, as the control wants it: reports go to RunControl::on_hang. Nothing where it has no
// timeout, and where the device's time is virtual. Session, step and placement must outlive it; so must the control.
class SessionWatch {
 public:
  SessionWatch(const RunControl& control, const DeviceInfo& info, Session& session, const Step& step,
               const Placement& placement, std::span<const std::string> roles = {});

  // While the host brings commands or waits for them.
  class Inside {
   public:
    explicit Inside(SessionWatch* watch) noexcept
        : watch_(watch != nullptr && watch->watch_ ? &*watch->watch_ : nullptr) {
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
  std::vector<std::uint64_t> collectives() const;  // started since the session began

  const RunControl& control_;
  const Step& step_;
  const Placement& placement_;
  std::vector<std::string> roles_;
  std::vector<std::uint64_t> started_before_;  // by stream; empty: nobody counts
  std::optional<HangWatch> watch_;
};

}  // namespace weir
