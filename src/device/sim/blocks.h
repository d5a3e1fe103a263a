// The multiprocessors of the simulated device: resident kernels, their blocks in groups that start and end together,
// and the assignment of free slots. Exact: no rates, no averages. Knows nothing of streams and queues.
#pragma once

#include <cstdint>
#include <vector>

#include "device/sim/calendar.h"
#include "device/sim/client.h"
#include "device/sim/profile.h"

namespace weir::sim {

// A command that was launched and has not ended.
struct Flight {
  Client* client = nullptr;
  const Work* work = nullptr;
  CommandId command = 0;
  std::uint32_t iteration = 0;
  std::int32_t queue = kNoQueue;  // kNoQueue: launched by a graph
  StreamId stream = 0;
  bool is_started = false;
  bool is_starved = false;  // in the list of kernels that want slots
  bool is_idle = false;     // a toil that was stopped while none of its blocks ran: it starts and ends at once
  std::int64_t block_ns = 0;
  std::uint32_t waiting = 0;  // blocks that have not been started
  std::uint32_t running = 0;
  std::uint32_t saving = 0;     // being set aside
  std::uint32_t saved = kNone;  // parts that were set aside, as a list
  std::uint32_t next_block = 0;
  std::uint32_t taken = kNone;  // a stopped toil: blocks that it had started by then
  std::uint32_t age = 0;
};

class Blocks {
 public:
  Blocks(const SimProfile& profile, Calendar& calendar);

  std::uint32_t add(const Flight& flight);
  Flight& operator[](std::uint32_t id) noexcept { return flights_[id]; }
  void remove(std::uint32_t flight) noexcept { free_flights_.push_back(flight); }

  // The kernel has no work left, but briefly takes a slot to find that out.
  static void go_idle(Flight& flight) noexcept {
    flight.is_idle = true;
    flight.waiting = 1;
    flight.block_ns = 0;
  }

  // The kernel starts to request slots.
  void start(std::uint32_t flight, std::int64_t now_ns);
  // Runs any other command as one group without slots. Its start may be in the future.
  void run(std::uint32_t flight, std::int64_t start_ns, std::int64_t end_ns);
  // Handles a due entry; returns the flight that ended, or kNone. Call distribute() after the last entry of a moment.
  std::uint32_t end(const Due& due, std::int64_t now_ns);
  void distribute(std::int64_t now_ns);

  // Starts no more blocks of a toil; running blocks end normally.
  void stop_starting(const Client& client, CommandId command);
  // Ends the running blocks of a hold at that time.
  void release(const Client& client, CommandId command, std::int64_t ns);
  // Suspends all blocks, as if their clocks stood still.
  void suspend(std::int64_t now_ns, std::int64_t until_ns);
  void resume(std::int64_t now_ns);

  std::int64_t free_slots() const noexcept { return free_; }

 private:
  struct Group {
    std::uint32_t flight = kNone;  // kNone: not in use
    std::uint32_t count = 0;
    std::uint32_t first_block = 0;
    std::uint32_t order = 0;
    std::int64_t due_ns = 0;
    std::int64_t remaining_ns = 0;  // while it is being set aside
    bool is_saving = false;
  };
  struct Part {
    std::uint32_t count = 0;
    std::uint32_t first_block = 0;
    std::int64_t remaining_ns = 0;
    std::uint32_t next = kNone;
  };

  std::int64_t crowded(const Flight& flight, std::int64_t ns) const noexcept;
  bool dispatch(std::uint32_t flight, std::int64_t now_ns);
  void enter(std::uint32_t flight, std::uint32_t count, std::uint32_t first_block, std::int64_t now_ns,
             std::int64_t ns);
  void set_starved(std::uint32_t flight);
  void evict_for(const Flight& urgent, std::int64_t now_ns);
  std::uint32_t new_group();
  bool is_before(const Flight& a, const Flight& b) const noexcept;
  void note_started(Flight& flight, std::int64_t now_ns) noexcept;
  void write(const Flight& flight, std::uint32_t first, std::uint32_t count, std::int64_t ns, bool is_start) noexcept;
  void count(const Flight& flight, std::uint32_t first, std::uint32_t count) noexcept;
  bool has_ended(const Flight& flight) const noexcept {
    return flight.running == 0 && flight.waiting == 0 && flight.saving == 0 && flight.saved == kNone;
  }

  Calendar& calendar_;
  Priorities priorities_;
  std::int64_t save_ns_, restore_ns_, timer_ns_;
  std::int32_t packet_queues_;  // queues from this index on belong to engines
  std::int64_t slots_;
  std::int64_t free_;
  std::int64_t suspended_until_ns_ = INT64_MIN;
  bool is_suspended_ = false;
  std::uint32_t age_ = 0;
  std::vector<Flight> flights_;
  std::vector<std::uint32_t> free_flights_;
  std::vector<Group> groups_;
  std::vector<std::uint32_t> free_groups_;
  std::vector<Part> parts_;
  std::vector<std::uint32_t> free_parts_;
  std::vector<std::uint32_t> starved_;  // flights that want slots, in the order in which they get them
};

}  // namespace weir::sim
