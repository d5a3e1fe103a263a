// Reads what `nsys export --type sqlite` writes. Tables and columns differ between versions: what exists is read, and
// what is missing is noted. Each process with GPU work is a rank.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/error.h"
#include "trace/import/cuda_activity.h"
#include "trace/import/list.h"
#include "trace/import/sqlite_file.h"

namespace weir::importer_list {
namespace {

constexpr const char* kKernels = "CUPTI_ACTIVITY_KIND_KERNEL";
constexpr const char* kCopies = "CUPTI_ACTIVITY_KIND_MEMCPY";
constexpr const char* kMemsets = "CUPTI_ACTIVITY_KIND_MEMSET";
constexpr const char* kCalls = "CUPTI_ACTIVITY_KIND_RUNTIME";
constexpr const char* kWaits = "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION";
constexpr const char* kEvents = "CUPTI_ACTIVITY_KIND_CUDA_EVENT";
constexpr const char* kRanges = "NVTX_EVENTS";

// A process and its threads share all bits except the last 24, which are the thread id.
constexpr std::int64_t kThreadBits = 0xFFFFFF;
// The process id is preceded by the ids of the machine and the virtual machine, one byte each.
constexpr int kHostShift = 48;

// "aten::copy_, op_id = 990349": PyTorch's emit_nvtx writes these for every operator; "ncclSend": NCCL's own calls.
bool is_routine(std::string_view range) noexcept {
  return range.find(", op_id = ") != std::string_view::npos || range.starts_with("aten::") || range.starts_with("nccl");
}

class NsysReader {
 public:
  NsysReader(const TraceFile& file, TimelineBuilder& to)
      : file_(file), to_(to), database_(file, to), names_(to, database_, "StringIds", {"value"}), cuda_(to) {}

  void read() {
    check_tables();
    find_processes();
    name_devices();
    read_commands(kKernels, SpanKind::kernel);
    read_commands(kCopies, SpanKind::copy);
    read_commands(kMemsets, SpanKind::memset);
    read_calls();
    read_waits();
    read_ranges();
    cuda_.resolve(" (nsys profile --cuda-event-trace=true records it)");
    to_.set_source("Nsight Systems (CUPTI activity records)");
    to_.trust_gaps();
  }

 private:
  void check_tables() {
    const bool has_any = database_.has(kKernels) || database_.has(kCopies) || database_.has(kMemsets);
    if (!has_any) {
      const bool is_rocpd = std::any_of(database_.tables().begin(), database_.tables().end(),
                                        [](const std::string& name) { return name.starts_with("rocpd_"); });
      reject(
          fmt::format("{}: the database has no table {}, nor one of copies or memsets: nothing ran on a GPU, or it is "
                      "no export of Nsight Systems",
                      file_.name, kKernels),
          is_rocpd ? "It has tables of rocmProfileData: read it with --input-format rpd."
                   : "Export with `nsys export --type sqlite FILE.nsys-rep`, from a profile with --trace=cuda.");
    }
    for (const char* table : {kKernels, kCalls, kWaits, "StringIds"})
      if (!database_.has(table)) to_.note(fmt::format("the database has no table {}", table));
  }

  // Older exports have no globalPid; everything is then one process, number 0.
  void find_processes() {
    std::set<std::int64_t> found;
    for (const char* table : {kKernels, kCopies, kMemsets}) {
      auto rows = database_.rows(table, {"globalPid"});
      while (rows.next()) {
        if (!found.insert(rows.integer_or(0, 0)).second) continue;
        if (found.size() > 65'000) reject(fmt::format("{}: GPU work of more than 65,000 processes", file_.name));
      }
    }
    auto names = database_.lookup("PROCESSES", "globalPid", {"pid", "name"});
    int rank = 0;
    for (const std::int64_t process : found) {
      std::string label = file_.name;
      if (const SqliteRows* const row = names.find(process); row != nullptr && found.size() > 1)
        label += fmt::format(", {} {}", row->text(1), row->integer_or(0, 0));
      if (rank == 0)
        processes_.emplace(process, file_.process);
      else
        processes_.emplace(process, to_.add_process(rank, label));
      if (found.size() > 1) to_.set_rank(processes_[process], rank);
      // One session has one clock, unless reports of several machines were combined.
      to_.set_clock(processes_[process], static_cast<std::int32_t>(process >> kHostShift & 0xFFFF));
      ++rank;
    }
    is_one_process_ = found.size() == 1 && found.contains(0);
  }

  static std::uint32_t small(std::int64_t number) noexcept { return static_cast<std::uint32_t>(number); }
  static std::uint64_t id(std::int64_t number) noexcept { return static_cast<std::uint64_t>(number); }

  void read_commands(const char* table, SpanKind kind) {
    const std::uint32_t memset = to_.name("Memset");
    // channelID: no export has contained it so far, but CUPTI's records do.
    auto rows =
        database_.rows(table, {"start", "end", "deviceId", "contextId", "streamId", "correlationId", "globalPid",
                               "demangledName", "shortName", "bytes", "copyKind", "channelID", "channelType"});
    while (rows.next()) {
      const auto start = rows.integer(0), end = rows.integer(1), device = rows.integer(2), stream = rows.integer(4);
      if (!start || !end || !device || !stream) {
        to_.drop(fmt::format("row of {} without start, end, device or stream", table), rows.row());
        continue;
      }
      // find_processes() missed it because an index disagrees with its table.
      const auto process = processes_.find(rows.integer_or(6, 0));
      if (process == processes_.end()) {
        to_.drop(fmt::format("row of {} of a process that the table's index lacks", table), rows.row());
        continue;
      }
      TraceCommand command;
      command.process = process->second;
      const auto lane = cuda_.lane(command.process, *device, small(rows.integer_or(3, 0)), id(*stream), rows.row());
      if (!lane || !cuda_.has_times(*start, *end, rows.row())) continue;
      command.kind = kind;
      command.stream = lane->stream;
      command.correlation = id(rows.integer_or(5, 0));
      command.started_ns = *start;
      command.ended_ns = *end;
      command.bytes = id(std::max<std::int64_t>(rows.integer_or(9, 0), 0));
      command.at = rows.row();
      if (const auto channel = rows.integer(11))
        command.queue = to_.queue(lane->device, id(*channel), rows.integer_or(12, 1) == 2);
      if (kind == SpanKind::kernel) {
        command.name = names_.of(rows.integer(7));
        if (command.name == kNoName) command.name = names_.of(rows.integer(8));
      } else {
        command.name = kind == SpanKind::memset ? memset : to_.name(cuda_copy_name(rows.integer_or(10, 0)));
      }
      to_.add(command);
    }
  }

  void read_calls() {
    auto rows = database_.rows(kCalls, {"start", "end", "globalTid", "correlationId", "nameId"});
    while (rows.next()) {
      const std::int64_t thread = rows.integer_or(2, 0);
      const auto process = processes_.find(is_one_process_ ? 0 : thread & ~kThreadBits);
      if (process == processes_.end()) continue;  // of a process without GPU work
      const std::int64_t start = rows.integer_or(0, kNoTime), end = rows.integer_or(1, kNoTime);
      if (start == kNoTime || end == kNoTime)
        to_.drop("call without a start or an end", rows.row());
      else
        to_.add({names_.of(rows.integer(4), without_version), small(thread & kThreadBits), id(rows.integer_or(3, 0)),
                 process->second, CallKind::other, start, end},
                rows.row());
    }
  }

  // syncType as in ENUM_CUPTI_SYNC_TYPE: 1 the host waits for an event, 2 a stream does, 3 the host waits for a stream,
  // 4 for a context. Before schema 3.1x the same numbers are in deprecatedSyncType, which was the only column.
  void read_waits() {
    if (database_.has(kWaits)) cuda_.knows_waits();
    auto rows = database_.rows(kWaits, {"start", "end", "contextId", "streamId", "correlationId", "globalPid",
                                        "syncType", "eventId", "eventSyncId", "deprecatedSyncType"});
    while (rows.next()) {
      const auto process = processes_.find(rows.integer_or(5, 0));
      if (process == processes_.end()) continue;
      cuda_.add(rows.integer_or(6, rows.integer_or(9, 0)),
                {{process->second, small(rows.integer_or(2, 0)), id(rows.integer_or(3, 0)), id(rows.integer_or(7, 0)),
                  id(rows.integer_or(8, 0)), id(rows.integer_or(4, 0))},
                 rows.row()},
                rows.integer_or(0, kNoTime), rows.integer_or(1, kNoTime));
    }
    auto events = database_.rows(
        kEvents, {"deviceId", "contextId", "streamId", "correlationId", "globalPid", "eventId", "eventSyncId"});
    while (events.next()) {
      const auto process = processes_.find(events.integer_or(4, 0));
      if (process == processes_.end()) continue;
      cuda_.add(CudaActivity::Recorded{process->second, small(events.integer_or(1, 0)), id(events.integer_or(2, 0)),
                                       id(events.integer_or(5, 0)), id(events.integer_or(6, 0)),
                                       id(events.integer_or(3, 0))});
    }
  }

  // 59 push/pop, 60 start/end, 70 and 71 the same for nvtxt; others are marks and names.
  void read_ranges() {
    std::size_t kept = 0, left_out = 0;
    auto rows = database_.rows(kRanges, {"start", "end", "eventType", "text", "textId", "globalTid"});
    while (rows.next()) {
      const std::int64_t type = rows.integer_or(2, 59);
      const auto start = rows.integer(0), end = rows.integer(1);
      if ((type != 59 && type != 60 && type != 70 && type != 71) || !start || !end) continue;
      const auto process = processes_.find(is_one_process_ ? 0 : rows.integer_or(5, 0) & ~kThreadBits);
      if (process == processes_.end()) continue;
      std::string_view text = rows.text(3);
      if (text.empty() && rows.integer(4)) text = names_.text_of(*rows.integer(4));
      if (text.empty() || is_routine(text) || kept == kMaxRanges) {
        ++left_out;
        continue;
      }
      ++kept;
      to_.add(TraceRange{to_.name(text), process->second, *start, *end});
    }
    if (left_out > 0)
      to_.note(fmt::format("{} NVTX ranges of operators and NCCL calls{} were left out, {} kept", left_out,
                           kept == kMaxRanges ? " and beyond the first 10,000" : "", kept));
  }

  void name_devices() {
    auto rows = database_.rows("TARGET_INFO_GPU", {"id", "name", "cuDevice"});
    while (rows.next() && rows.row() <= 1024)
      if (const auto device = rows.integer(2) ? rows.integer(2) : rows.integer(0))
        cuda_.name_device(*device, fmt::format("GPU {}: {}", *device, rows.text(1).substr(0, 200)));
  }

  const TraceFile& file_;
  TimelineBuilder& to_;
  SqliteFile database_;
  SqliteNames names_;
  CudaActivity cuda_;
  std::map<std::int64_t, std::uint16_t> processes_;  // by globalPid
  bool is_one_process_ = false;                      // no column names the process of a row
};

}  // namespace

Importer nsys() {
  return {"nsys", "Nsight Systems, exported to SQLite",
          [](std::string_view start) { return is_sqlite(start) && start.find("rocpd_") == std::string_view::npos; },
          [](const TraceFile& file, TimelineBuilder& to) { NsysReader(file, to).read(); }};
}

}  // namespace weir::importer_list
