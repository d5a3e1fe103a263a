// What happens before what in one run: stream order, events, synchronisation, and the rules of the legacy default
// stream, as vector clocks. Knows calls, not memory.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "lab/race/log.h"

namespace weir::race {

// The position-th operation of a stream, from 1.
struct Moment {
  std::uint32_t lane = 0;  // of a stream, in an Order
  std::uint32_t position = 0;
};

// Takes in the calls of a log one after the other. An Order has either what ran (capture 0) or what was captured into
// one graph, as if that ran: neither is ordered with the other. Time and memory per call grow with the streams in use,
// not with the log.
class Order {
 public:
  explicit Order(const Log& log, std::uint32_t capture = 0) : log_(&log), capture_(capture) {}

  // The next call; ignores those that are not its own.
  void take(std::uint32_t call);

  // Of the call that was taken last, if it was an operation of a stream: where it is, and whether it is certain to
  // begin only when an earlier one has ended.
  Moment now() const { return now_; }
  bool is_after(Moment earlier) const { return knows(lanes_[now_.lane].clock, earlier); }
  // Whether a thread of the host, or any of them, has waited for it.
  bool has_waited(std::uint32_t thread, Moment earlier) const;
  bool any_has_waited(Moment earlier) const { return knows(all_hosts_, earlier); }

 private:
  using Clock = std::vector<std::uint32_t>;  // by lane; shorter: 0
  struct Lane {
    Clock clock;
    std::uint32_t stream = 0;
    std::uint32_t host = 0;  // whose waits it has taken over last, and how many of them
    std::uint64_t host_version = 0;
    std::uint64_t legacy_version = 0;
    bool is_unseen = false;  // by the legacy default stream
  };
  struct Host {
    Clock clock;
    std::uint64_t version = 0;
  };
  struct Legacy {  // of a device
    Clock clock;
    std::uint64_t version = 0;
    std::vector<std::uint32_t> unseen;  // lanes of blocking streams that it must still wait for
  };
  struct Freed {
    std::uint64_t end = 0;
    Clock clock;
  };

  static bool knows(const Clock& clock, Moment earlier) {
    return earlier.lane < clock.size() && clock[earlier.lane] >= earlier.position;
  }
  static bool merge(Clock& into, const Clock& from);
  std::uint32_t lane_of(std::uint32_t stream);
  Host& host_of(std::uint32_t thread);
  void begin(const Call& call);
  void end(const Call& call);
  void operate(const Call& call);
  void wait_in_host(std::uint32_t thread, const Clock& clock);
  void synchronize(const Call& call);
  void reuse(const Call& call);
  void pass_words(const Call& call);

  const Log* log_;
  std::uint32_t capture_;
  Moment now_;
  std::vector<Lane> lanes_;
  std::unordered_map<std::uint32_t, std::uint32_t> lane_of_stream_;
  std::vector<Host> hosts_;
  std::unordered_map<std::uint32_t, std::uint32_t> host_of_thread_;
  Clock all_hosts_;
  std::unordered_map<std::uint64_t, Clock> events_;
  std::unordered_map<std::uint16_t, Legacy> legacies_;
  std::unordered_map<std::uint64_t, Clock> words_;  // that a stream wrote, by address
  std::map<std::uint64_t, Freed> freed_;            // blocks of stream-ordered memory, by address
};

// Whether the first call of each pair is certain to have ended before the second begins. `first` is the earlier one.
std::vector<bool> are_ordered(const Log& log, std::span<const std::pair<std::uint32_t, std::uint32_t>> pairs);

}  // namespace weir::race
