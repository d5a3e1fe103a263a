// One event of a Kineto (Chrome trace) file: the parts that matter to a timeline. Knows the event's keys in any order,
// and nothing about other events.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "measure/timeline.h"
#include "trace/import/json_reader.h"
#include "trace/import/kineto_inputs.h"

namespace weir {

enum class KinetoCategory : std::uint8_t {
  unknown,  // not given
  other,    // not used
  kernel,
  copy,
  memset,
  host_function,
  call,
  synchronization,
  annotation,
  operation,  // of a framework; those of collectives are always wanted
  python,
  instant  // of the host: an allocation
};

constexpr bool is_command(KinetoCategory category) noexcept {
  return category == KinetoCategory::kernel || category == KinetoCategory::copy || category == KinetoCategory::memset ||
         category == KinetoCategory::host_function;
}

enum class KinetoSync : std::uint8_t { none, stream_wait, stream, event, context };

// Values from an event's args.
struct KinetoArguments {
  std::optional<std::int64_t> device, stream, wait_on_stream, rank;
  std::optional<std::uint64_t> queue, correlation, external, record_correlation;
  std::optional<std::uint64_t> channel, channel_type;         // Kineto on CUDA since May 2026: CUPTI's
  std::optional<std::uint64_t> hsa_queue;                     // Kineto on ROCm since June 2026; 0: not known
  std::optional<std::uint64_t> engine_ordinal, engine_index;  // Kineto on Intel's GPUs since September 2026
  std::optional<std::uint64_t> command, before, after;        // in Weir's own exports: numbers of commands
  std::optional<std::int64_t> priority;                       // of the stream, since April 2026 on CUDA 13.1 and later
  std::array<std::uint32_t, 3> grid{}, block{};               // as written; zeros where they are not
  std::uint64_t bytes = 0;
  std::uint32_t iteration = 0;
  std::int64_t enqueued_ns = kNoTime, submitted_ns = kNoTime, accepted_ns = kNoTime, launched_ns = kNoTime;
  std::int64_t seen_ns = kNoTime;
  bool is_copy_engine = false;
  bool has_kind = false;  // "kind": present in ROCm's commands
  KinetoSync sync = KinetoSync::none;

  bool is_collective = false;  // some field describes a collective
  CollectiveKind collective = CollectiveKind::unknown;
  std::uint64_t in_elements = 0, out_elements = 0, input_elements = 0;
  std::uint32_t element_bytes = 0;
  std::uint32_t ranks = 0;
  std::optional<std::uint64_t> sequence;  // of the collective in its group
  std::string group;

  std::optional<std::uint64_t> sequence_number;  // ties a backward operation to its forward operation
  std::int64_t forward_thread = 0;               // above 0 in backward operations

  // Of an allocation on "Device Id": -1 is the host; "Bytes" are negative where it is freed.
  std::optional<std::int64_t> memory_device, memory_bytes;
  std::optional<std::uint64_t> allocated_bytes, reserved_bytes;

  std::uint32_t out_of_range = 0;  // numbers that were left out
};

struct KinetoEvent {
  std::uint64_t at = 0;  // position in the file
  char phase = 0;
  KinetoCategory category = KinetoCategory::unknown;
  bool has_name = false;
  bool has_arguments = false;
  bool has_bad_time = false;  // ts or dur is not a number, or exceeds 64 bits of nanoseconds
  std::string name;
  std::int64_t process_id = 0, thread_id = 0;  // texts are hashed to a number
  std::optional<std::uint64_t> lane;           // from "tid": 7 and "tid": "stream 7"
  std::optional<std::int64_t> device;          // from "pid": 0
  std::int64_t started_ns = kNoTime;
  std::int64_t duration_ns = kNoTime;
  KinetoArguments arguments;
  KinetoInputs inputs;
};

inline constexpr std::string_view kMemoryEvent = "[memory]";

// Whether this part of a Python stack says something of the program: a module, an optimizer, a line of its own.
bool is_telling_frame(std::string_view name);

// Reads an event whose '{' was consumed. Returns false where it is not needed (it was then skipped) or the reader
// broke; the event holds what was read until then.
bool read_kineto_event(JsonReader& reader, KinetoEvent& event, bool wants_operations);

// Whether an event begins here; and whether an event or a key of the file's outermost object does.
bool is_kineto_event(std::string_view ahead) noexcept;
bool is_kineto_mark(std::string_view ahead) noexcept;

}  // namespace weir
