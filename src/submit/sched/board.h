// The shared memory between a scheduler's daemon and its clients. Each word has one writer, except `active`, in which
// each client changes its own bit, and the words that wake sleepers. So a process that is killed at any instant leaves
// nothing half done, and there is no lock.
#pragma once

#include <atomic>
#include <cstdint>

#include "submit/sched/policy.h"

namespace weir::scheduler {

inline constexpr std::uint32_t kBoardMagic = 0x57454952;  // "WEIR"
inline constexpr std::uint32_t kBoardVersion = 4;
inline constexpr std::int64_t kBeatNs = 20'000'000;    // how often the daemon shows that it is alive
inline constexpr std::int64_t kSilentNs = 80'000'000;  // a daemon that is silent for this long counts as dead
// Commands of a client that has nobody to yield to; counted, so that its activity is known.
inline constexpr std::uint32_t kNoBound = 1024;
// Seat::request_p99_ns is of so many requests: few enough that one second's say what the last choice has done.
inline constexpr std::uint32_t kRequestWindow = 256;

// Whether a client's kernels get by with a part of the device.
enum class Confine : std::uint32_t {
  never = 0,
  beside = 1,  // while a client that comes first is active: they run beside it in their part, instead of waiting
  always = 2,  // because whoever comes first could not wait for those that run
};
// Whether a client's library can do that.
enum class Confinable : std::uint32_t {
  unknown = 0,  // it has launched nothing yet
  yes = 1,
  not_hooked = 2,    // the library was not preloaded
  no_driver = 3,     // older than CUDA 12.4, or another vendor's
  own_contexts = 4,  // the program works in contexts that it made itself
  refused = 5,       // the driver refused
};

// One client's part. What the client writes is for people (status, top) and for accounting; what it reads decides.
struct alignas(128) Seat {
  // Written by the daemon.
  std::atomic<std::uint64_t> yields_to{0};  // waits while one of these is active
  // Commands that it may have on the device; 0: any number, uncounted, because the device is not shared.
  std::atomic<std::uint32_t> in_flight{0};
  // 1: nobody that it may have to yield to was active lately, so short commands may exceed `in_flight`: see
  // Gate::bound().
  std::atomic<std::uint32_t> is_loose{0};
  std::atomic<std::uint32_t> is_taken{0};
  std::atomic<std::uint32_t> confine{0};       // a Confine
  std::atomic<std::uint32_t> part_percent{0};  // of the device's compute units, for confined kernels

  // Written by the client.
  alignas(128) std::atomic<std::int64_t> arrived_ns{0};  // when it last became active, on CLOCK_MONOTONIC
  std::atomic<std::int64_t> alive_ns{0};                 // when it last gave a sign of life; updated while it is active
  std::atomic<std::uint64_t> launches{0};                // that passed its gate, that is, while the device was shared
  std::atomic<std::uint64_t> held{0};                    // of these: had to wait for others
  std::atomic<std::uint64_t> held_ns{0};                 // their total waiting time
  std::atomic<std::uint64_t> paced_ns{0};                // time spent waiting for its own commands because of the bound
  std::atomic<std::uint32_t> confinable{0};              // a Confinable
  std::atomic<std::uint64_t> confined{0};                // commands that ran in a part of the device
  std::atomic<std::int64_t> command_ns{0};      // the longest command of late, as its marks show it; 0: not known
  std::atomic<std::uint64_t> requests{0};       // that have ended
  std::atomic<std::uint64_t> requests_ns{0};    // what these took together
  std::atomic<std::int64_t> request_p99_ns{0};  // of the latest kRequestWindow; 0: too few
};

struct Board {
  std::uint32_t magic = kBoardMagic;
  std::uint32_t version = kBoardVersion;
  std::uint32_t bytes = 0;  // size of this structure in the daemon's build

  // One bit per seat; a client sets and clears its own, the daemon clears those of the dead.
  alignas(128) std::atomic<std::uint64_t> active{0};
  // A futex: incremented when sleepers should check again. `waiting` is set by a thread that goes to sleep and cleared
  // by the one that wakes them all. It is a flag and not a count, so a process that is killed asleep costs a single
  // idle wake-up.
  alignas(128) std::atomic<std::uint32_t> turn{0};
  std::atomic<std::uint32_t> waiting{0};
  // Written by the daemon. On CLOCK_MONOTONIC; kNever if no heartbeat is needed, as within one process.
  alignas(128) std::atomic<std::int64_t> beat_ns{0};
  std::atomic<std::uint32_t> follows_arrivals{0};  // clients notify the daemon when they become active
  std::atomic<std::uint32_t> is_closed{0};         // the daemon is ending: everybody continues unscheduled
  // Clients allow the daemon to trace them (Yama's ptrace_scope 1): its mechanism acts on their queues.
  std::atomic<std::uint32_t> asks_to_trace{0};
  std::atomic<std::uint64_t> recent{0};  // seats that were active lately and are not stopped

  Seat seats[kMaxClients];
};

static_assert(std::atomic<std::uint64_t>::is_always_lock_free && std::atomic<std::uint32_t>::is_always_lock_free);

// Call after a change of `active` or of a mask: wakes those who sleep on the board. Costs one load if nobody sleeps.
void wake_waiting(Board& board) noexcept;
// Wakes them even if nobody seems to sleep: a process may have died between clearing the flag and the wake-up.
void wake_all_clients(Board& board) noexcept;

// A futex between processes: sleeps while the word has that value, for at most `max_ns`; may return spuriously.
void sleep_on(std::atomic<std::uint32_t>& word, std::uint32_t value, std::int64_t max_ns) noexcept;
void wake_all(std::atomic<std::uint32_t>& word) noexcept;

}  // namespace weir::scheduler
