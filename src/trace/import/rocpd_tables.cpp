#include "trace/import/rocpd_tables.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>

// Written after the public schema (rocprofiler-sdk, source/share/rocprofiler-sdk-rocpd/rocpd_tables.sql); no file of a
// real run was at hand. Each table's name ends in the run's id, rocpd_kernel_dispatch_0f3c..., and a file merged from
// several runs has several such sets. Two layouts: rows with start, end, agent, queue and stream in them, and rows that
// name a track and two timestamps.
namespace weir {
namespace {

constexpr std::string_view kDispatches = "rocpd_kernel_dispatch";
constexpr std::size_t kMostRanges = 10'000;

struct Place {
  std::int64_t agent = 0, thread = 0;
  std::optional<std::int64_t> queue, stream;
};

class Reader {
 public:
  Reader(TimelineBuilder& to, SqliteFile& database, std::string suffix, std::uint16_t process)
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

  // The stack's number is the one that a call and what it launched have in common.
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
  Place place_of(const SqliteRows& row) {
    Place place;
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

  void add(TraceCommand command, const SqliteRows& row, const Place& place, std::int64_t agent,
           std::optional<std::int64_t> event) {
    const auto known = agents_.find(agent);
    const auto device = to_.device(process_, agent, known == agents_.end() ? std::string_view() : known->second.label);
    if (!place.stream) ++without_stream_;
    const auto stream =
        device ? to_.stream(*device, static_cast<std::uint64_t>(place.stream.value_or(0))) : std::nullopt;
    if (!stream) return to_.drop("command on one device or stream too many", row.row());
    command.process = process_;
    command.stream = *stream;
    // Copies run on DMA engines, whatever queue their row names.
    if (place.queue && command.kind == SpanKind::kernel)
      command.queue = to_.queue(*device, static_cast<std::uint64_t>(*place.queue));
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
      const Place place = place_of(rows);
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
      const Place place = place_of(rows);
      TraceCommand command;
      command.kind = SpanKind::copy;
      command.name = names_.of(rows.integer(10));
      command.bytes = static_cast<std::uint64_t>(std::max<std::int64_t>(rows.integer_or(11, 0), 0));
      // The device of a copy is the end of it that is a GPU.
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
        if (++ranges <= kMostRanges) to_.add(TraceRange{name, process_, start, end});
        continue;
      }
      to_.add({name, static_cast<std::uint32_t>(place_of(rows).thread), correlation_of(rows.integer(10)), process_,
               CallKind::other, start, end},
              rows.row());
    }
    if (ranges > kMostRanges)
      to_.note(fmt::format("{} ranges beyond the first {} were left out", ranges - kMostRanges, kMostRanges));
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

}  // namespace

bool read_rocpd_tables(const TraceFile& file, TimelineBuilder& to, SqliteFile& database) {
  int runs = 0;
  for (const std::string& table : database.tables()) {
    if (!table.starts_with(kDispatches)) continue;
    if (runs == 64) {
      to.note("only the first 64 runs of the database were read");
      break;
    }
    // Runs are merged by rank: each is a process of its own.
    const std::uint16_t process =
        runs == 0 ? file.process : to.add_process(runs, fmt::format("{}, run {}", file.name, runs));
    Reader(to, database, table.substr(kDispatches.size()), process).read();
    ++runs;
  }
  if (runs > 0) to.set_source("rocprofv3 (rocpd)");
  return runs > 0;
}

}  // namespace weir
