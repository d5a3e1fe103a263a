// Puts together what a runtime log, a kernel trace and snapshots of KFD tell of the same hardware queues: one row per
// queue, from streams to hardware slots. Each match says what it rests on; what does not match stays alone, with a
// reason. Knows plain data; no files.
#pragma once

#include <array>
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

// A process of one log file. Borrowed: the summary outlives the join.
struct LoggedProcess {
  const ProcessSummary* summary = nullptr;
  bool is_whole = true;  // the log was not truncated, and nothing of it was left out
};

struct JoinSnapshot {
  std::string when;                   // "during-01"
  std::int64_t taken_ns = INT64_MIN;  // CLOCK_MONOTONIC; INT64_MIN where it is not known
  std::vector<kfd::Queue> queues;
  bool has_rings = true;  // hqds or mqds were read; sysfs alone shows none
};

struct JoinInput {
  bool has_log = false, has_trace = false;
  std::vector<LoggedProcess> logged;
  std::vector<ftrace::KfdSpan> calls;      // create, update, destroy, in the order of their start
  std::uint64_t uncounted_calls = 0;       // more of them than the join keeps
  bool has_lost_events = false;            // the trace says so
  std::string trace_clock;                 // empty: nobody said
  std::vector<JoinSnapshot> snapshots;     // in the order of time
  std::vector<CapturedProcess> processes;  // of the manifest
  std::vector<std::pair<int, int>> given;  // process of the log -> of the host, as the user says
};

enum class ProcessBasis : std::uint8_t { none, manifest, only_process, given, rings };

// Which process of the host a process of the log is.
struct JoinedProcess {
  std::optional<int> log_pid, host_pid;
  ProcessBasis basis = ProcessBasis::none;
  std::size_t rings = 0;  // in common, where it rests on those
  std::string name;       // of the manifest; may be empty
  std::string reason;     // why there is none
};

enum class MatchKey : std::uint8_t { ring, queue_id, mqd, doorbell, time };
enum class MatchSide : std::uint8_t { log, trace, snapshot };

// Two parts tell of the same queue because these agree.
struct Evidence {
  MatchSide from = MatchSide::log, to = MatchSide::snapshot;
  std::vector<MatchKey> keys;
  std::optional<std::size_t> snapshot;  // which one
  bool is_process_known = true;         // false: nothing says whose ring it is, and only one queue has it
};

struct Sighting {
  std::size_t snapshot = 0;
  const kfd::Queue* queue = nullptr;
};

// Why a row has nothing of a part.
struct Absence {
  MatchSide part = MatchSide::log;
  std::string reason;
};

enum class QueueRole : std::uint8_t {
  runtime,          // the log shows it
  internal,         // of a process whose log is whole and does not show it: the runtime's own
  unlogged,         // of a process of the log, which is not whole
  other_process,    // of a process that is not in the log
  unknown_process,  // nobody knows whether its process is in the log
};

struct JoinedStream {
  std::uint64_t handle = 0;
  std::optional<int> priority;  // HIP's
  std::int64_t since_ns = INT64_MIN;
  bool is_default = false;
};

// asked -> entered -> left -> created; ranges where the clocks or the stamps leave it open.
struct CreationHops {
  std::optional<DurationRange> asked_to_entered, entered_to_left, left_to_created, asked_to_created;
  bool is_left_exact = false;  // else KFD took at least so long
  std::string reason;          // why hops between the clocks are missing
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
  std::vector<JoinedQueue> queues;   // those of the log first, in its order
  std::size_t failed_creates = 0;    // of the trace: no queue came of them
  std::size_t unplaced_creates = 0;  // of the trace: of a queue that is here, but nothing tells of which
  // Of snapshots: a ring of the log while its queue did not live or while two may have, or nothing to know it by.
  std::size_t unplaced_sightings = 0;
  std::vector<std::string> notes;  // what was ambiguous, or left out
};

// Whether a snapshot could show a ring at all.
bool has_rings(const JoinInput& input);

// Borrows from `input`, which outlives the result.
Join join_queues(const JoinInput& input);

}  // namespace weir::amd
