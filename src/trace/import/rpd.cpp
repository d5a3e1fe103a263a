// Reads rocmProfileData's SQLite files (.rpd): operations on GPUs, and the calls that asked for them. Files that
// rocprofv3 writes have other tables under similar names; those are rocpd_tables.cpp's.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <unordered_map>

#include "base/error.h"
#include "trace/import/list.h"
#include "trace/import/rocpd_tables.h"
#include "trace/import/sqlite_file.h"

namespace weir::importer_list {
namespace {

// "0x0", "0x55d0c8e1a2b0", or a plain number: the stream's handle.
std::optional<std::uint64_t> handle_of(std::string_view text) {
  const int base = text.starts_with("0x") ? 16 : 10;
  if (base == 16) text.remove_prefix(2);
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  if (error != std::errc() || end != text.data() + text.size() || text.empty()) return std::nullopt;
  return value;
}

class Reader {
 public:
  Reader(const TraceFile& file, TimelineBuilder& to, SqliteFile& database)
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

  // One file may hold several processes: each is a rank, in the order of their numbers.
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
      const auto device = to_.device(command.process, *gpu);
      const auto stream = device ? to_.stream(*device, asked == asked_.end() ? 0 : asked->second.stream) : std::nullopt;
      if (!stream) {
        to_.drop("command on one device or stream too many", rows.row());
        continue;
      }
      command.stream = *stream;
      if (const auto queue = rows.integer(2)) command.queue = to_.queue(*device, static_cast<std::uint64_t>(*queue));
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

void read(const TraceFile& file, TimelineBuilder& to) {
  SqliteFile database(file, to);
  if (read_rocpd_tables(file, to, database)) return;
  if (!database.has("rocpd_op"))
    reject(fmt::format("{}: the database has neither a table rocpd_op nor rocpd_kernel_dispatch: it is none of "
                       "rocmProfileData or rocprofv3",
                       file.name),
           "rocmProfileData writes .rpd files with runTracer.sh, rocprofv3 with --output-format rocpd.");
  Reader(file, to, database).read();
}

}  // namespace

Importer rpd() {
  return {"rpd", "rocmProfileData (.rpd), or rocprofv3's rocpd database",
          [](std::string_view start) { return is_sqlite(start) && start.find("rocpd_") != std::string_view::npos; },
          read};
}

}  // namespace weir::importer_list
