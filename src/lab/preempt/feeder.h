// Keeps the victim on the device: launches its jobs one after the other, takes up again what was interrupted, and adds
// up what was done. Whether it may launch is said by who calls it. A state machine without a thread of its own.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "lab/preempt/arena.h"

namespace weir::preempt {

class Feeder {
 public:
  // Uses the arena's slots as its bound of launches in flight.
  explicit Feeder(Arena& arena);

  // Takes note of what has ended. True where something has.
  bool harvest();
  // Launches as much as there is room for. `epoch`: the flag that the launches need not heed; always the same where
  // they heed none.
  void launch(std::int64_t epoch);
  // From now on no new job is begun: launch() only takes up what was interrupted.
  void wind_up() { is_winding_up_ = true; }
  bool is_done() const { return pending_.empty() && interrupted_.empty(); }

  // What is observed ends with the last launch that has, or with the first one to come.
  void close() { (has_ended_ ? is_closed_ : is_closing_) = true; }
  bool is_closed() const { return is_closed_; }
  std::int64_t wall_ns() const { return is_closed_ ? ended_ns_ - started_ns_ : 0; }
  std::uint64_t blocks() const { return blocks_; }

  std::int64_t jobs() const { return jobs_; }  // that are done
  std::uint64_t preemptions() const { return preemptions_; }

 private:
  struct Job {
    std::int64_t number = 0;
    std::int64_t taken = 0;  // units, by earlier launches
  };
  struct Pending {
    Job job;
    std::uint32_t slot = 0;
    std::int64_t launches = 0;  // that the slot had seen before
  };
  void note(const Pending& launch, const Arena::Report& report);

  Arena& arena_;
  std::deque<Pending> pending_;  // in the order of their launches, which is that of their ends
  std::deque<Job> interrupted_;  // in order
  std::vector<std::uint32_t> free_;
  std::int64_t next_job_ = 0, jobs_ = 0, epoch_ = 0;
  std::uint64_t preemptions_ = 0, blocks_ = 0;
  std::int64_t started_ns_ = 0, ended_ns_ = 0;
  bool has_ended_ = false, was_interrupted_ = false, is_winding_up_ = false, is_closing_ = false, is_closed_ = false;
};

}  // namespace weir::preempt
