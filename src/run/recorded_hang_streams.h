// How far the streams of one recorded process have come, and what stands in the way of each: the events and the values
// in memory that its next commands wait for, followed from stream to stream. Knows one recording; knows no threads,
// stacks or other ranks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <unordered_map>
#include <vector>

#include "trace/recording.h"

namespace weir {

inline constexpr std::size_t kNoEntry = std::numeric_limits<std::size_t>::max();

// 0 if `then_ns` is later. Times in a file may be any numbers.
std::int64_t elapsed_ns(std::int64_t then_ns, std::int64_t now_ns) noexcept;

// A command that may be the first unfinished one of its stream.
struct StreamCandidate {
  std::uint64_t number = 0;      // which of its stream
  std::size_t entry = kNoEntry;  // in Recording::entries
  int rank = 0;                  // the lower, the likelier
};

// Where a stream stands.
struct StreamStand {
  enum class Why : std::uint8_t {
    runs,     // nothing that is recorded is in its way: the first of `candidates` runs
    event,    // it waits for an event that stands after an unfinished command of `target`
    value,    // it waits for a value that an unfinished command of `target` writes
    written,  // it waits for a value in memory, and no stream is going to write it
    foreign,  // it waits for an event that this recording never sees recorded
  };
  std::uint32_t stream = record::kNone;  // place
  Why why = Why::runs;
  std::uint64_t first = 0, last = 0;        // the first unfinished command is one of these; first > last: it has none
  std::uint64_t known = 0;                  // of these, in the recording
  std::vector<StreamCandidate> candidates;  // likeliest first; of `runs` and `written`
  std::uint64_t position = 0;               // the command that waits
  std::size_t blocker = kNoEntry;           // the entry that waits
  std::uint64_t object = 0;                 // event or address
  std::uint32_t target = record::kNone;     // place
  std::uint64_t target_number = 0;          // the stream waits until this command of `target` has ended
  std::size_t target_end = 0;               // how many operations of `target` count
  std::uint64_t writes = 0;                 // of `written`: how many have ended
  // An event that the likeliest command may wait for, whose record is no longer kept; 0: there is none.
  std::uint64_t lost_event = 0;
};

// Each stand waits for the next one. The last one runs, or waits for the one at `cycle`.
struct StreamChain {
  std::vector<StreamStand> stands;
  std::size_t cycle = kNoEntry;  // index into `stands`
  bool is_cycle() const noexcept { return cycle != kNoEntry; }
};

class RecordedStreams {
 public:
  // The recording must outlive this.
  explicit RecordedStreams(const Recording& recording);

  std::size_t size() const noexcept { return of_.size(); }
  bool is_used(std::uint32_t place) const noexcept;
  std::uint64_t submitted(std::uint32_t place) const noexcept { return of_[place].submitted; }
  std::uint64_t ended(std::uint32_t place) const noexcept { return of_[place].ended; }
  bool is_unfinished(std::uint32_t place) const noexcept;
  // Whether a mark that was not reached proves it.
  bool is_proven(std::uint32_t place) const noexcept;
  // When its first unfinished command was submitted, or the one before it ended, whichever was later.
  std::int64_t since_ns(std::uint32_t place) const noexcept;

  StreamChain chain_of(std::uint32_t place) const;

  // "stream 13", "default stream".
  std::string label(std::uint32_t place) const;
  // "kernel spin(int*)", "copy of 4.00 KiB"; empty if its entry is no longer kept.
  std::string describe(const StreamCandidate& command, std::size_t columns) const;
  bool is_collective(const StreamCandidate& command) const;
  // Kernels of NCCL and RCCL that were submitted to the stream before this command.
  std::uint64_t collectives_before(std::uint32_t place, std::uint64_t number) const;
  // The stream on which an event was recorded last, and after which command.
  struct Recorded {
    std::uint32_t stream = record::kNone;  // place; kNone: not known
    std::uint64_t number = 0;
  };
  Recorded recorded_last(std::uint64_t event) const;
  // Whether nothing was overwritten or lost since recording began.
  bool is_complete() const noexcept { return is_complete_; }

 private:
  enum class Role : std::uint8_t { other, wait_value, write_value, batch, destroy_stream };
  struct Operation {
    enum class Kind : std::uint8_t { command, wait, record } kind = Kind::command;
    std::size_t entry = kNoEntry;
    std::uint64_t number = 0;  // wait: the next command; record: the last one before it
  };
  struct OneStream {
    std::uint64_t submitted = 0, ended = 0, pending = 0;
    std::vector<Operation> operations;  // as submitted
    std::size_t open = 0;               // the first operation that may be unfinished
    bool is_destroyed = false;
  };
  // What happened to an event.
  struct EventPoint {
    std::size_t entry = kNoEntry;
    std::uint32_t stream = record::kNone;  // kNone: it was created or destroyed, or recorded on a stream that is gone
    bool is_record = false;
    bool is_creation = false;
    std::uint64_t number = 0;
    std::size_t operation = 0;  // place in its stream's operations
  };
  struct Write {
    std::uint32_t stream = record::kNone;
    std::uint64_t number = 0;
    std::size_t operation = 0;
  };
  enum class EventState : std::uint8_t { reached, blocked, foreign, lost };

  std::uint64_t number_of(const RecordedEntry& entry) const noexcept;  // 0: of an earlier stream at its place
  std::vector<std::size_t> first_entries() const;
  void read_entries();
  void raise_ends();
  const EventPoint* point_before(std::uint64_t event, std::size_t entry) const;
  EventState state_of(const Operation& wait, const EventPoint*& point, int depth) const;
  StreamStand stand_of(std::uint32_t place, std::uint64_t bound, std::size_t end, bool has_tail) const;
  void rank(StreamStand& stand, std::vector<StreamCandidate>& found) const;
  Role role(const RecordedEntry& entry) const noexcept;
  bool has_name(const StreamCandidate& command) const;

  const Recording& recording_;
  bool is_complete_ = false;
  bool has_devices_ = false;  // several
  std::vector<Role> roles_;   // by function
  std::vector<OneStream> of_;
  std::unordered_map<std::uint64_t, std::vector<EventPoint>> events_;
  std::unordered_map<std::uint64_t, std::vector<Write>> writes_;
  std::unordered_map<std::uint32_t, std::uint64_t> ended_launches_;   // by name
  mutable std::unordered_map<std::size_t, EventState> known_states_;  // by entry of the wait
  mutable std::uint64_t steps_left_ = 100'000'000;  // a second of work; only hostile recordings need more
};

// A kernel's name for people: without parameters and template arguments where it is too long.
std::string kernel_name_within(std::string_view name, std::size_t columns);

}  // namespace weir
