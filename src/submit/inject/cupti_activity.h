// CUPTI's records of what ran on the device: enabled, collected from its buffers, and handed on one by one. Knows no
// file.
#pragma once

#include <cupti_activity.h>

#include <cstddef>
#include <cstdint>
#include <string>

#include "trace/capture_format.h"

namespace weir::inject {

// A kernel, copy or memset.
struct DeviceCommand {
  capture::Place place{};
  const char* name = nullptr;  // of a kernel, mangled; CUPTI's, for good. Null: neither a kernel nor a graph
  std::uint64_t bytes = 0;
  capture::CopyKind kind = capture::CopyKind::unknown;
  std::uint32_t peer_device = capture::kNone;
};

// Called in threads of CUPTI or of the program, with a lock held, a buffer at a time.
struct ActivityUser {
  void (*command)(const DeviceCommand& command) = nullptr;
  void (*device)(std::uint32_t device, const char* name) = nullptr;
  void (*context)(std::uint32_t context, std::uint32_t device) = nullptr;
  void (*lost)(std::uint64_t records, const char* reason) = nullptr;
  void (*note)(const std::string& text) = nullptr;
  void (*buffer_ended)() = nullptr;
};

struct ActivityOptions {
  bool has_latency = false;       // also when a kernel left its queue, which costs more
  bool has_whole_graphs = false;  // one record for each launch of a graph instead of one for each of its commands
};
// Returns why there are no records, or empty. Call once; set_activity() turns records off and on again.
std::string enable_activity(const ActivityUser& user, const ActivityOptions& options);
void set_activity(bool is_on) noexcept;
// Hands over what has ended; `is_last`: also buffers with commands that have not. Costs the program a few percent if it
// is done every second while much is going on, so let buffers fill instead.
void flush_activity(bool is_last) noexcept;
// How many buffers were handed over so far.
std::uint64_t activity_buffers() noexcept;
// From now on nothing is handed on; takes no lock, because a forked child has none of the threads that may hold it.
void abandon_activity() noexcept;

std::string demangled(const char* name);

}  // namespace weir::inject
