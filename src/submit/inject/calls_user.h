// What a vendor's part (cupti_calls.h, hip_calls.h) reports of a program's calls besides writing them into a recorder.
#pragma once

#include <cstdint>

namespace weir::inject {

// A command that was submitted.
struct Submitted {
  void* stream = nullptr;    // the program's handle
  std::uint32_t place = 0;   // in the recorder's table
  std::uint64_t number = 0;  // which of its stream
  std::int64_t now_ns = 0;
  // Commands that hang more often than others: collectives, host functions, waits for memory, graphs, and kernels that
  // this thread has hardly launched before.
  bool is_suspect = false;
};

// Called in the program's threads; each may be null.
struct CallsUser {
  void (*submitted)(const Submitted& command) noexcept = nullptr;
  // Before the first command of a stream that has this place. `context`: as GateDriver has it.
  void (*stream_appears)(std::uint32_t place, void* stream, void* context) noexcept = nullptr;
  void (*before_stream_ends)(void* stream) noexcept = nullptr;
  // Before the first of several captures begins (true), and after the last has ended.
  void (*captures_change)(bool is_any) noexcept = nullptr;
  void (*before_context_ends)() noexcept = nullptr;
  // Also calls that only matter where something hangs: those that create and destroy events, of which some programs
  // make as many as launches, and those that may wait for the device to allocate or to load.
  bool is_for_hangs = false;
};

}  // namespace weir::inject
