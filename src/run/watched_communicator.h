// A communicator whose waits for other ranks are watched: one that never ends is reported. Knows processes of this
// host; forwards everything.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "device/rank/communicator.h"
#include "device/rank/watch.h"
#include "run/hang_watch.h"

namespace weir {

class WatchedCommunicator final : public Communicator {
 public:
  explicit WatchedCommunicator(std::unique_ptr<Communicator> inner) : inner_(std::move(inner)) {}

  // From here on `on_hang` is called once, on a separate thread, when a wait has lasted `timeout_ns` although it should
  // have ended: `neighbours` (the other ranks of this host) have not all run meanwhile, or there are
  // ranks elsewhere. So a rank may wait while another one works alone, say on files. 0 ends the watch.
  void watch(std::int64_t timeout_ns, std::span<const RankProcess> neighbours,
             std::function<void(const std::string& report)> on_hang);

  Ranks ranks() const override { return inner_->ranks(); }
  Ranks local_ranks() const override { return inner_->local_ranks(); }
  std::string library() const override { return inner_->library(); }
  void open_channels(int count) override {
    const Wait wait(*this);
    inner_->open_channels(count);
  }
  void open_group(const RankGroup& group, int count) override {
    const Wait wait(*this);
    inner_->open_group(group, count);
  }
  Request start(int channel, const Collective& collective, ElementType type, const void* from, void* to,
                std::uint64_t count) override {
    return inner_->start(channel, collective, type, from, to, count);
  }
  bool test(Request request) override { return inner_->test(request); }
  std::optional<std::uint64_t> started(int channel) const noexcept override { return inner_->started(channel); }
  void barrier() override {
    const Wait wait(*this);
    inner_->barrier();
  }
  void broadcast(std::span<std::byte> bytes, int from) override {
    const Wait wait(*this);
    inner_->broadcast(bytes, from);
  }
  std::vector<std::string> gather(const std::string& text) override {
    const Wait wait(*this);
    return inner_->gather(text);
  }
  std::string scatter(const std::vector<std::string>& texts) override {
    const Wait wait(*this);
    return inner_->scatter(texts);
  }
  bool any(bool claim) override {
    const Wait wait(*this);
    return inner_->any(claim);
  }
  RankClockOffset clock_offset() override {
    const Wait wait(*this);
    return inner_->clock_offset();
  }
  std::string host() const override { return inner_->host(); }
  [[noreturn]] void abort(int code) noexcept override;

 private:
  struct Neighbour {
    RankProcess process;
    unsigned long long ticks = 0;  // of its processors' time when it was last counted
    bool has_run = false;          // since all have been counted
  };

  // A time in which this rank waits for the others.
  class Wait {
   public:
    explicit Wait(WatchedCommunicator& of) noexcept
        : is_waiting_(of.is_waiting_), inside_(of.watch_ ? &*of.watch_ : nullptr) {
      is_waiting_.store(true, std::memory_order_relaxed);
    }
    ~Wait() { is_waiting_.store(false, std::memory_order_relaxed); }
    Wait(const Wait&) = delete;
    Wait& operator=(const Wait&) = delete;

   private:
    std::atomic<bool>& is_waiting_;
    HangWatch::Inside inside_;
  };

  std::uint64_t count_runs();  // increases when every neighbour has run since it last did
  std::string report(std::int64_t still_ns) const;

  std::unique_ptr<Communicator> inner_;
  std::vector<Neighbour> neighbours_;  // used by the watch's thread only
  std::uint64_t runs_ = 0;
  std::atomic<bool> is_waiting_{false};  // neighbours are looked at only then. Relaxed: it publishes nothing else
  std::optional<HangWatch> watch_;       // last: its thread uses the members above
};

}  // namespace weir
