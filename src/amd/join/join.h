// Joins the records of the same hardware queues in a runtime log, a kernel trace and KFD snapshots: one row per queue,
// from streams to hardware slots. Each match states its basis; anything unmatched stays alone, with a reason. Knows
// plain data, but no files.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "amd/capture/manifest.h"
#include "amd/ftrace/kfd_span.h"
#include "amd/join/clock_offset.h"
#include "amd/kfd/snapshot.h"
#include "amd/log/log_summary.h"

namespace weir::amd {

// A process of one log file. Borrowed: the summary must outlive the join.
struct LoggedProcess {
  const ProcessSummary* summary = nullptr;
  bool is_whole = true;  // the log was not truncated, and nothing was omitted
};

struct JoinSnapshot {
  std::string when;                   // "during-01"
  std::int64_t taken_ns = INT64_MIN;  // CLOCK_MONOTONIC; INT64_MIN if unknown
  std::vector<kfd::Queue> queues;
  bool has_rings = true;  // hqds or mqds were read; sysfs alone shows no rings
};

struct JoinInput {
  bool has_log = false, has_trace = false;
  std::vector<LoggedProcess> logged;
  std::vector<ftrace::KfdSpan> calls;      // create, update, destroy, in the order of their start
  std::uint64_t uncounted_calls = 0;       // calls beyond the join's limit
  bool has_lost_events = false;            // reported by the trace
  std::string trace_clock;                 // empty: unknown
  std::vector<JoinSnapshot> snapshots;     // in order of time
  std::vector<CapturedProcess> processes;  // from the manifest
  std::vector<std::pair<int, int>> given;  // process in the log -> process on the host, from the user
};

enum class ProcessBasis : std::uint8_t { none, manifest, only_process, given, rings };

// The host process that a process of the log corresponds to.
struct JoinedProcess {
  std::optional<int> log_pid, host_pid;
  ProcessBasis basis = ProcessBasis::none;
  std::size_t rings = 0;  // shared rings, if the match rests on them
  std::string name;       // from the manifest; may be empty
  std::string reason;     // why there is none
};

enum class MatchKey : std::uint8_t { ring, queue_id, mqd, doorbell, time };
enum class MatchSide : std::uint8_t { log, trace, snapshot };

// Two parts describe the same queue because these values agree.
struct Evidence {
  MatchSide from = MatchSide::log, to = MatchSide::snapshot;
  std::vector<MatchKey> keys;
  std::optional<std::size_t> snapshot;  // which one
  bool is_process_known = true;         // false: the ring's owner is unknown, but only one queue has that ring
};

struct Sighting {
  std::size_t snapshot = 0;
  const kfd::Queue* queue = nullptr;
};

// Why a row has nothing from a part.
struct Absence {
  MatchSide part = MatchSide::log;
  std::string reason;
};

enum class QueueRole : std::uint8_t {
  runtime,          // the log shows it
  internal,         // of a process with a complete log that does not show it: internal to the runtime
  unlogged,         // of a process whose log is incomplete
  other_process,    // of a process that is not in the log
  unknown_process,  // it is unknown whether its process is in the log
};

struct JoinedStream {
  std::uint64_t handle = 0;
  std::optional<int> priority;  // HIP's
  std::int64_t since_ns = INT64_MIN;
  bool is_default = false;
};

// asked -> entered -> left -> created; ranges if the clocks or stamps are imprecise.
struct CreationHops {
  std::optional<DurationRange> asked_to_entered, entered_to_left, left_to_created, asked_to_created;
  bool is_left_exact = false;  // false: the time in KFD is a lower bound
  std::string reason;          // why intervals across the clocks are missing
};

struct JoinedQueue {
  QueueRole role = QueueRole::unknown_process;
  std::optional<std::size_t> process;  // index into Join::processes
  std::optional<int> host_pid;
  const QueueSummary* runtime = nullptr;
  std::vector<JoinedStream> streams;
  const ftrace::KfdSpan* create = nullptr;
  const ftrace::KfdSpan* destroy = nullptr;
  std::vector<Sighting> sightings;
  std::vector<Evidence> evidence;
  std::vector<Absence> absences;
  CreationHops hops;

  std::optional<std::uint32_t> kfd_id() const;
  std::optional<std::uint32_t> gpu_id() const;
  std::optional<std::uint64_t> ring() const;
};

struct Join {
  std::vector<JoinedProcess> processes;  // one for each of JoinInput::logged
  ClockOffset clock;
  std::vector<JoinedQueue> queues;   // queues of the log first, in its order
  std::size_t failed_creates = 0;    // in the trace: they produced no queue
  std::size_t unplaced_creates = 0;  // in the trace: they belong to a queue here, but it is unknown to which
  // In snapshots: a log ring while its queue did not exist or two may have, or a queue that nothing identifies.
  std::size_t unplaced_sightings = 0;
  std::vector<std::string> notes;  // what was ambiguous or omitted
};

// Whether a snapshot could show a ring at all.
bool has_rings(const JoinInput& input);

// Borrows from `input`, which must outlive the result.
Join join_queues(const JoinInput& input);

}  // namespace weir::amd
