// What the device worked for in the words of a model: modules, phases, operators with their shapes, and steps. A
// command belongs to what its call belongs to. Reads the timeline of one device; names are numbers of the whole
// timeline.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "measure/timeline.h"

namespace weir {

inline constexpr std::size_t kPhases = 4;  // of Phase

struct WorkSum {
  std::size_t commands = 0;
  std::uint64_t total_ns = 0;  // sum of their durations
  void add(std::uint64_t ns) noexcept {
    ++commands;
    total_ns += ns;
  }
};

struct ModuleUse {
  std::uint32_t name = kNoName;
  std::uint32_t parent = kNoModule;               // index into ModelUse::modules
  WorkSum own;                                    // in this module and in none of its parts
  WorkSum all;                                    // with its parts
  std::array<std::uint64_t, kPhases> phase_ns{};  // of `all`
};

struct ShapedUse {
  std::uint32_t name = kNoName, shapes = kNoName;
  std::uint32_t call = kNoName;  // where a module or a phase made the calls, and no operator: their function
  WorkSum work;
  std::size_t calls = 0;           // of the operator, or of the function; 0 if unknown
  std::uint64_t launching_ns = 0;  // in the calls of the driver for them; without copies, which may wait
  std::uint64_t late_ns = 0;       // the device was idle until the host submitted one of these commands
};

struct StepUse {
  std::uint32_t name = kNoName;
  WorkSum work;
  std::array<std::uint64_t, kPhases> phase_ns{};
};

// Every list, with what is outside of it, adds up to `work`.
struct ModelUse {
  std::string reason;  // why there is none; then nothing else is filled in
  WorkSum work;        // of all commands
  std::vector<ModuleUse>
      modules;  // parents before their parts, else most time first; empty where the source names none
  WorkSum without_module;
  std::array<WorkSum, kPhases> phases{};
  std::vector<ShapedUse> shaped;  // most time first
  WorkSum outside;                // submitted by a call that nothing made
  WorkSum without_call;           // whose call is not in the trace
  std::vector<StepUse> steps;     // by start; empty where the source marks none
  WorkSum outside_steps;
};

// `steps` as iteration_ranges() finds them.
ModelUse model_use(const Timeline& timeline, std::span<const TraceRange> steps);

const char* to_string(Phase phase) noexcept;

}  // namespace weir
