// Reads rocmProfileData's SQLite files (.rpd): operations on GPUs, and the calls that requested them; also files of
// rocprofv3 --output-format rocpd, which have different tables under similar names.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <unordered_map>

#include "base/error.h"
#include "trace/import/json_text.h"
#include "trace/import/list.h"
#include "trace/import/sqlite_file.h"

namespace weir::importer_list {
namespace {

// "0x0", "0x55d0c8e1a2b0", or a plain number: the stream's handle.
std::optional<std::uint64_t> handle_of(std::string_view text) {
  const bool is_address = text.starts_with("0x");
  return number_in<std::uint64_t>(text.substr(is_address ? 2 : 0), is_address ? 16 : 10);
}

class RpdReader {
 public:
  RpdReader(const TraceFile& file, TimelineBuilder& to, SqliteFile& database)
      : file_(file),
        to_(to),
        database_(database),
        names_(to, database, "rocpd_string", {"string"}),
        apis_(database.lookup("rocpd_api", "id", {"pid"})) {}

  void read() {
    read_streams("rocpd_kernelapi", nullptr);
    read_streams("rocpd_copyapi", "size");
    auto joins = database_.rows("rocpd_api_ops", {"api_id", "op_id"});
    while (joins.next()) {
      if (!joins.integer(0) || !joins.integer(1)) continue;
      to_.charge(48);
      call_of_.emplace(*joins.integer(1), *joins.integer(0));
    }
    find_processes();
    read_operations();
    read_calls();
    if (without_stream_ > 0)
      to_.note(fmt::format("{} commands have no stream in the file and were put on stream 0", without_stream_));
    to_.set_source("rocmProfileData");
  }

 private:
  struct Asked {
    std::uint64_t stream = 0;
    std::uint64_t bytes = 0;
  };

  void read_streams(const char* table, const char* size) {
    auto rows = database_.rows(table, {"api_ptr_id", "stream", size == nullptr ? "api_ptr_id" : size});
    while (rows.next()) {
      const auto call = rows.integer(0);
      const auto stream =
          rows.integer(1) ? std::optional(static_cast<std::uint64_t>(*rows.integer(1))) : handle_of(rows.text(1));
      if (!call || !stream) {
        to_.drop(fmt::format("row of {} without a call or a stream", table), rows.row());
        continue;
      }
      to_.charge(64);
      const std::int64_t bytes = size == nullptr ? 0 : std::max<std::int64_t>(rows.integer_or(2, 0), 0);
      asked_[*call] = {*stream, static_cast<std::uint64_t>(bytes)};
    }
  }

  // One file may hold several processes: each is a rank, in the order of their pids.
  void find_processes() {
    auto rows = database_.rows("rocpd_api", {"pid"});
    while (rows.next() && processes_.size() < 65'000) processes_.emplace(rows.integer_or(0, 0), file_.process);
    int rank = 0;
    for (auto& [pid, process] : processes_) {
      if (rank > 0) process = to_.add_process(rank, fmt::format("{}, process {}", file_.name, pid));
      if (processes_.size() > 1) to_.set_rank(process, rank);
      to_.set_clock(process, 0);  // one database, one machine
      ++rank;
    }
  }

  std::uint16_t process_of(std::optional<std::int64_t> call) {
    if (processes_.size() < 2 || !call) return file_.process;
    const SqliteRows* const row = apis_.find(*call);
    const auto found = row == nullptr ? processes_.end() : processes_.find(row->integer_or(0, 0));
    return found == processes_.end() ? file_.process : found->second;
  }

  void read_operations() {
    auto rows = database_.rows("rocpd_op", {"id", "gpuId", "queueId", "start", "end", "description_id", "opType_id"});
    while (rows.next()) {
      const auto operation = rows.integer(0), gpu = rows.integer(1), start = rows.integer(3), end = rows.integer(4);
      if (!operation || !gpu || !start || !end) {
        to_.drop("row of rocpd_op without id, gpuId, start or end", rows.row());
        continue;
      }
      const std::uint32_t type = names_.of(rows.integer(6));
      const std::string_view type_name = type == kNoName ? std::string_view() : to_.name_of(type);
      // Barrier packets run nothing: "Barrier", "Marker".
      if (type_name.starts_with("Barrier") || type_name.starts_with("Marker")) continue;
      TraceCommand command;
      // CopyHostToDevice, CopyDeviceToHost ..., FillBuffer, KernelExecution, Task
      if (type_name.starts_with("Copy")) command.kind = SpanKind::copy;
      if (type_name.starts_with("Fill")) command.kind = SpanKind::memset;
      const auto call = call_of_.find(*operation);
      const auto asked = call == call_of_.end() ? asked_.end() : asked_.find(call->second);
      if (asked == asked_.end()) ++without_stream_;
      command.process = process_of(call == call_of_.end() ? std::nullopt : std::optional(call->second));
      const auto lane = to_.lane(command.process, *gpu, asked == asked_.end() ? 0 : asked->second.stream, rows.row());
      if (!lane) continue;
      command.stream = lane->stream;
      if (const auto queue = rows.integer(2))
        command.queue = to_.queue(lane->device, static_cast<std::uint64_t>(*queue));
      command.name = names_.of(rows.integer(5));
      if (command.name == kNoName || to_.name_of(command.name).empty()) command.name = type;
      if (call != call_of_.end()) command.correlation = static_cast<std::uint64_t>(call->second);
      if (command.kind != SpanKind::kernel && asked != asked_.end()) command.bytes = asked->second.bytes;
      command.started_ns = *start;
      command.ended_ns = *end;
      command.at = rows.row();
      to_.add(command);
    }
  }

  void read_calls() {
    auto rows = database_.rows("rocpd_api", {"id", "pid", "tid", "start", "end", "apiName_id"});
    while (rows.next()) {
      const auto id = rows.integer(0), start = rows.integer(3), end = rows.integer(4);
      const auto process = processes_.find(rows.integer_or(1, 0));
      if (!id || !start || !end) {
        to_.drop("row of rocpd_api without id, start or end", rows.row());
        continue;
      }
      if (process == processes_.end()) {
        to_.drop("row of rocpd_api of one process too many", rows.row());
        continue;
      }
      to_.add({names_.of(rows.integer(5)), static_cast<std::uint32_t>(rows.integer_or(2, 0)),
               static_cast<std::uint64_t>(*id), process->second, CallKind::other, *start, *end},
              rows.row());
    }
  }

  const TraceFile& file_;
  TimelineBuilder& to_;
  SqliteFile& database_;
  SqliteNames names_;
  SqliteLookup apis_;
  std::unordered_map<std::int64_t, Asked> asked_;           // by call
  std::unordered_map<std::int64_t, std::int64_t> call_of_;  // by operation
  std::map<std::int64_t, std::uint16_t> processes_;         // by pid
  std::uint64_t without_stream_ = 0;
};

// rocprofv3's tables. Written from the public schema (rocprofiler-sdk,
// source/share/rocprofiler-sdk-rocpd/rocpd_tables.sql); no file of a real run was available. Each table's name ends in
// the run's id, rocpd_kernel_dispatch_0f3c..., and a file merged from several runs has several such sets. Two layouts:
// rows that contain start, end, agent, queue and stream, and rows that name a track and two timestamps.
constexpr std::string_view kDispatches = "rocpd_kernel_dispatch";

struct RocpdPlace {
  std::int64_t agent = 0, thread = 0;
  std::optional<std::int64_t> queue, stream;
};

class RocpdReader {
 public:
  RocpdReader(TimelineBuilder& to, SqliteFile& database, std::string suffix, std::uint16_t process)
      : to_(to),
        database_(database),
        suffix_(std::move(suffix)),
        process_(process),
        names_(to, database, of("rocpd_string"), {"string"}),
        kernels_(to, database, of("rocpd_info_kernel_symbol"), {"display_name", "kernel_name"}),
        events_(database.lookup(of("rocpd_event"), "id", {"stack_id"})),
        times_(database.lookup(of("rocpd_timestamp"), "id", {"value"})),
        tracks_(database.lookup(of("rocpd_track"), "id", {"agent_id", "tid", "queue_id", "stream_id"})) {}

  void read() {
    auto agents = database_.rows(of("rocpd_info_agent"), {"id", "type", "product_name", "name"});
    while (agents.next() && agents.row() <= 4096) {
      const std::string_view label = agents.text(2).empty() ? agents.text(3) : agents.text(2);
      Agent& agent = agents_[agents.integer_or(0, 0)];
      agent.is_host = agents.text(1) == "CPU";
      agent.label = fmt::format("agent {}: {}", agents.integer_or(0, 0), label.substr(0, 200));
    }
    read_dispatches();
    read_copies();
    read_regions();
    if (without_stream_ > 0)
      to_.note(fmt::format("{} commands have no stream in the file and were put on stream 0", without_stream_));
  }

 private:
  struct Agent {
    bool is_host = false;
    std::string label;
  };

  std::string of(std::string_view table) const { return std::string(table) + suffix_; }

  // A call and the command it launched share the stack's number.
  std::uint64_t correlation_of(std::optional<std::int64_t> event) {
    const SqliteRows* const row = event ? events_.find(*event) : nullptr;
    return row == nullptr ? 0 : static_cast<std::uint64_t>(row->integer_or(0, 0));
  }

  std::int64_t time_of(std::optional<std::int64_t> inlined, std::optional<std::int64_t> id) {
    if (inlined || !id) return inlined.value_or(kNoTime);
    const SqliteRows* const row = times_.find(*id);
    return row == nullptr ? kNoTime : row->integer_or(0, kNoTime);
  }

  // Columns 0 to 8 of every table here: start, end, start_id, end_id, track_id, agent, tid, queue_id, stream_id.
  RocpdPlace place_of(const SqliteRows& row) {
    RocpdPlace place;
    place.agent = row.integer_or(5, 0);
    place.thread = row.integer_or(6, 0);
    place.queue = row.integer(7);
    place.stream = row.integer(8);
    const SqliteRows* const track = row.integer(4) ? tracks_.find(*row.integer(4)) : nullptr;
    if (track == nullptr) return place;
    if (!row.integer(5)) place.agent = track->integer_or(0, 0);
    place.thread = track->integer_or(1, place.thread);
    if (!place.queue) place.queue = track->integer(2);
    if (!place.stream) place.stream = track->integer(3);
    return place;
  }

  void add(TraceCommand command, const SqliteRows& row, const RocpdPlace& place, std::int64_t agent,
           std::optional<std::int64_t> event) {
    const auto known = agents_.find(agent);
    if (!place.stream) ++without_stream_;
    const auto lane = to_.lane(process_, agent, static_cast<std::uint64_t>(place.stream.value_or(0)), row.row(),
                               known == agents_.end() ? std::string_view() : known->second.label);
    if (!lane) return;
    command.process = process_;
    command.stream = lane->stream;
    // Copies run on DMA engines, whichever queue their row names.
    if (place.queue && command.kind == SpanKind::kernel)
      command.queue = to_.queue(lane->device, static_cast<std::uint64_t>(*place.queue));
    command.started_ns = time_of(row.integer(0), row.integer(2));
    command.ended_ns = time_of(row.integer(1), row.integer(3));
    command.correlation = correlation_of(event);
    command.at = row.row();
    to_.add(command);
  }

  void read_dispatches() {
    auto rows = database_.rows(of(kDispatches), {"start", "end", "start_id", "end_id", "track_id", "agent_id", "tid",
                                                 "queue_id", "stream_id", "kernel_id", "event_id"});
    while (rows.next()) {
      const RocpdPlace place = place_of(rows);
      TraceCommand command;
      command.name = kernels_.of(rows.integer(9));
      add(command, rows, place, place.agent, rows.integer(10));
    }
  }

  void read_copies() {
    auto rows = database_.rows(of("rocpd_memory_copy"),
                               {"start", "end", "start_id", "end_id", "track_id", "dst_agent_id", "tid", "queue_id",
                                "stream_id", "src_agent_id", "name_id", "size", "event_id"});
    while (rows.next()) {
      const RocpdPlace place = place_of(rows);
      TraceCommand command;
      command.kind = SpanKind::copy;
      command.name = names_.of(rows.integer(10));
      command.bytes = static_cast<std::uint64_t>(std::max<std::int64_t>(rows.integer_or(11, 0), 0));
      // The device of a copy is the side that is a GPU.
      std::int64_t agent = rows.integer_or(5, place.agent);
      const auto target = agents_.find(agent);
      if (target != agents_.end() && target->second.is_host) agent = rows.integer_or(9, agent);
      add(command, rows, place, agent, rows.integer(12));
    }
  }

  void read_regions() {
    std::size_t ranges = 0;
    auto rows = database_.rows(of("rocpd_region"), {"start", "end", "start_id", "end_id", "track_id", "no_agent", "tid",
                                                    "no_queue", "no_stream", "name_id", "event_id"});
    while (rows.next()) {
      const std::uint32_t name = names_.of(rows.integer(9));
      const std::int64_t start = time_of(rows.integer(0), rows.integer(2));
      const std::int64_t end = time_of(rows.integer(1), rows.integer(3));
      if (start == kNoTime || end == kNoTime || name == kNoName) {
        to_.drop("region without start, end or name", rows.row());
        continue;
      }
      const std::string_view text = to_.name_of(name);
      if (!text.starts_with("hip") && !text.starts_with("hsa") && !text.starts_with("__hip")) {
        if (++ranges <= kMaxRanges) to_.add(TraceRange{name, process_, start, end});
        continue;
      }
      to_.add({name, static_cast<std::uint32_t>(place_of(rows).thread), correlation_of(rows.integer(10)), process_,
               CallKind::other, start, end},
              rows.row());
    }
    if (ranges > kMaxRanges)
      to_.note(fmt::format("{} ranges beyond the first {} were left out", ranges - kMaxRanges, kMaxRanges));
  }

  TimelineBuilder& to_;
  SqliteFile& database_;
  const std::string suffix_;
  const std::uint16_t process_;
  SqliteNames names_, kernels_;
  SqliteLookup events_, times_, tracks_;
  std::unordered_map<std::int64_t, Agent> agents_;
  std::uint64_t without_stream_ = 0;
};

// Returns false where the database has none of them.
bool read_rocpd_tables(const TraceFile& file, TimelineBuilder& to, SqliteFile& database) {
  int runs = 0;
  for (const std::string& table : database.tables()) {
    if (!table.starts_with(kDispatches)) continue;
    if (runs == 64) {
      to.note("only the first 64 runs of the database were read");
      break;
    }
    // Runs are merged by rank: each is a separate process.
    const std::uint16_t process =
        runs == 0 ? file.process : to.add_process(runs, fmt::format("{}, run {}", file.name, runs));
    RocpdReader(to, database, table.substr(kDispatches.size()), process).read();
    ++runs;
  }
  if (runs > 0) to.set_source("rocprofv3 (rocpd)");
  return runs > 0;
}

void read_rpd(const TraceFile& file, TimelineBuilder& to) {
  SqliteFile database(file, to);
  if (read_rocpd_tables(file, to, database)) return;
  if (!database.has("rocpd_op"))
    reject(fmt::format("{}: the database has neither a table rocpd_op nor rocpd_kernel_dispatch: neither "
                       "rocmProfileData nor rocprofv3 wrote it",
                       file.name),
           "rocmProfileData writes .rpd files with runTracer.sh, rocprofv3 with --output-format rocpd.");
  RpdReader(file, to, database).read();
}

}  // namespace

Importer rpd() {
  return {"rpd", "rocmProfileData (.rpd), or rocprofv3's rocpd database",
          [](std::string_view start) { return is_sqlite(start) && start.find("rocpd_") != std::string_view::npos; },
          read_rpd};
}

}  // namespace weir::importer_list
