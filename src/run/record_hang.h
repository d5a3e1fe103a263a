// Gathers what a diagnosis of recorded programs (run/recorded_hang.h) needs: recordings, the stacks that the library in
// each program writes, ranks and children from /proc. Judges nothing.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "run/record_folders.h"
#include "run/recorded_hang.h"

namespace weir {

struct GatheredHang {
  std::vector<HangedProcess> processes;
  std::int64_t now_ns = 0;         // on the clock of all of them, to which other machines' times were moved
  std::vector<std::string> notes;  // recordings that could not be read
};

// Waits a few seconds for stacks where the programs can give them.
GatheredHang gather_hang(std::span<const RecordFile> files);

// The processes that this one has started, and those that these have; `proc` is for tests.
std::vector<std::uint64_t> descendants_of(std::uint64_t pid, const std::string& proc = "/proc");

// In its job, from the variables that launchers set; -1: not known.
int rank_of_process(std::uint64_t pid);

}  // namespace weir
