// One run of a program under `weir race`, as the library inside it sees that: the folder, the plan, who follows it, and
// the files that it writes. One per process, never destroyed. Knows no vendor.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <span>
#include <string>

#include "submit/inject/race_log.h"
#include "submit/inject/race_memory.h"
#include "submit/inject/race_plan.h"

namespace weir::inject {

struct RaceRun {
  RacePlan plan;     // not written after prepare_race()
  std::mutex mutex;  // protects what follows; never held while the driver is called
  RaceLog log;
  RaceMemory memory;
  std::uint32_t threads = 0;  // that have a number
};

RaceRun& race_run() noexcept;
// Reads the plan when it is first called. False where nothing is to be done in this process.
bool prepare_race() noexcept;
// Whether something is still to be done: false in forked children, in processes beside the one that follows the plan,
// and when the process ends.
bool is_racing() noexcept;
// At the first command: whether this is the process that follows the plan. No mutex may be held.
bool claim_race() noexcept;
// Whether it has been claimed by this process.
bool claim_race_is_ours() noexcept;
void stop_racing() noexcept;

// Notes a block, in the log as well if that is open; with the mutex. `thread`: its number; `stream`: or kNone.
void add_block(RaceRun& run, const RaceMemory::Block& block, std::uint32_t thread, std::uint32_t stream);

// The log's number of a kernel's name, as people write it; with the mutex.
std::uint32_t kernel_text(RaceRun& run, const char* mangled);

// What was done for an instruction, or why not. Any thread, with or without the mutex.
void note_race(const std::string& line) noexcept;
// A checkpoint's line: NAME COUNT HEX.
void write_digest(const std::string& name, std::uint64_t count, std::uint64_t digest) noexcept;
// The host's stack at a command, of the calling thread.
void write_race_stack(RaceName name) noexcept;
// Writes the rest; call when the process ends.
void finish_race() noexcept;

}  // namespace weir::inject
