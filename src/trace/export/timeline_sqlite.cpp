#include "trace/export/timeline_sqlite.h"

#include <fmt/format.h>
#include <weir_build.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/file.h"
#include "base/text_gate.h"
#include "trace/analyse/collectives.h"
#include "trace/analyse/operator_cost.h"
#include "trace/device_spans.h"
#include "trace/intervals.h"
#include "trace/timeline_builder.h"
#include "trace/work_class.h"

#if WEIR_HAVE_SQLITE
#include <sqlite3.h>
#endif

namespace weir {

#if WEIR_HAVE_SQLITE
namespace {

// Times are nanoseconds of the trace. Whatever the trace does not say is null. A span's stream, queue, call and device
// are those tables' ids; `number` is what the source calls them.
constexpr const char* kTables = R"(
CREATE TABLE meta(key TEXT PRIMARY KEY, value TEXT);
CREATE TABLE processes(id INTEGER PRIMARY KEY, rank INTEGER NOT NULL, label TEXT);
CREATE TABLE devices(id INTEGER PRIMARY KEY, process_id INTEGER REFERENCES processes(id), number INTEGER, label TEXT,
  model TEXT, multiprocessors INTEGER, resident_threads INTEGER);
CREATE TABLE streams(id INTEGER PRIMARY KEY, device_id INTEGER REFERENCES devices(id), number INTEGER, label TEXT,
  priority INTEGER);
CREATE TABLE queues(id INTEGER PRIMARY KEY, device_id INTEGER REFERENCES devices(id), label TEXT,
  is_copy_engine INTEGER NOT NULL);
CREATE TABLE modules(id INTEGER PRIMARY KEY, parent_id INTEGER REFERENCES modules(id), name TEXT, path TEXT);
CREATE TABLE operators(id INTEGER PRIMARY KEY, name TEXT, shapes TEXT, module_id INTEGER REFERENCES modules(id),
  phase TEXT, flop REAL, bytes REAL, cost_reason TEXT);
CREATE TABLE calls(id INTEGER PRIMARY KEY, process_id INTEGER REFERENCES processes(id), thread INTEGER NOT NULL,
  kind TEXT NOT NULL, name TEXT, correlation INTEGER, started_ns INTEGER, ended_ns INTEGER,
  operator_id INTEGER REFERENCES operators(id), is_first_of_operator INTEGER, line TEXT);
CREATE TABLE spans(id INTEGER PRIMARY KEY, kind TEXT NOT NULL, work TEXT, name TEXT,
  device_id INTEGER REFERENCES devices(id), stream_id INTEGER REFERENCES streams(id),
  queue_id INTEGER REFERENCES queues(id), call_id INTEGER REFERENCES calls(id), iteration INTEGER NOT NULL,
  bytes INTEGER, blocks INTEGER, threads INTEGER, enqueued_ns INTEGER, submitted_ns INTEGER, accepted_ns INTEGER,
  launched_ns INTEGER, started_ns INTEGER, ended_ns INTEGER, seen_ns INTEGER, duration_ns INTEGER);
CREATE TABLE collectives(span_id INTEGER PRIMARY KEY REFERENCES spans(id), kind TEXT, ranks INTEGER, group_name TEXT,
  bytes INTEGER, sequence INTEGER, algorithm_bytes_per_s REAL, bus_bytes_per_s REAL);
CREATE TABLE dependencies(before_id INTEGER NOT NULL REFERENCES spans(id), after_id INTEGER NOT NULL REFERENCES spans(id));
CREATE TABLE ranges(id INTEGER PRIMARY KEY, process_id INTEGER REFERENCES processes(id), name TEXT,
  started_ns INTEGER, ended_ns INTEGER);
)";
// Made after the rows, which is faster.
constexpr const char* kIndices = R"(
CREATE INDEX spans_by_start ON spans(started_ns);
CREATE INDEX spans_by_name ON spans(name);
CREATE INDEX spans_by_stream ON spans(stream_id, started_ns);
CREATE INDEX spans_by_queue ON spans(queue_id, started_ns);
CREATE INDEX spans_by_call ON spans(call_id);
CREATE INDEX calls_by_operator ON calls(operator_id);
CREATE INDEX calls_by_thread ON calls(process_id, thread, started_ns);
CREATE INDEX operators_by_name ON operators(name);
CREATE INDEX collectives_by_kind ON collectives(kind, bytes);
CREATE INDEX dependencies_by_after ON dependencies(after_id);
)";
constexpr std::int64_t kLargest = std::int64_t{1} << 46;
constexpr std::uint64_t kRowsPerCheck = 65'536;
constexpr std::size_t kLongestPath = 4096;

using Integer = std::optional<std::int64_t>;
using Text = std::optional<std::string_view>;

Integer time_or_null(std::int64_t ns) { return ns == kNoTime ? std::nullopt : Integer(ns); }
Integer positive(std::uint64_t value) {
  return value == 0 || value > INT64_MAX ? std::nullopt : Integer(static_cast<std::int64_t>(value));
}
Integer whole(std::uint64_t value) {
  return value > INT64_MAX ? std::nullopt : Integer(static_cast<std::int64_t>(value));
}
Integer index_below(std::uint64_t value, std::size_t count) { return value < count ? whole(value) : std::nullopt; }
Text filled(std::string_view text) { return text.empty() ? std::nullopt : Text(text); }

// A database in memory.
class SqliteExport {
 public:
  SqliteExport() {
    check(sqlite3_open_v2(":memory:", &handle_, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, nullptr));
    // One block of memory, so that it can be written as it is.
    check(sqlite3_deserialize(handle_, "main", nullptr, 0, 0,
                              SQLITE_DESERIALIZE_FREEONCLOSE | SQLITE_DESERIALIZE_RESIZEABLE));
    sqlite3_int64 largest = kLargest;
    check(sqlite3_file_control(handle_, "main", SQLITE_FCNTL_SIZE_LIMIT, &largest));
    run("PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; PRAGMA page_size = 8192;");
  }
  ~SqliteExport() { sqlite3_close_v2(handle_); }
  SqliteExport(const SqliteExport&) = delete;
  SqliteExport& operator=(const SqliteExport&) = delete;

  void run(const char* sql) const { check(sqlite3_exec(handle_, sql, nullptr, nullptr, nullptr)); }
  std::string_view bytes() const {
    sqlite3_int64 size = 0;
    const unsigned char* const all = sqlite3_serialize(handle_, "main", &size, SQLITE_SERIALIZE_NOCOPY);
    if (all == nullptr) check(SQLITE_NOMEM);
    return {reinterpret_cast<const char*>(all), static_cast<std::size_t>(size)};
  }
  void check(int code) const {
    if (code == SQLITE_OK || code == SQLITE_DONE || code == SQLITE_ROW) return;
    throw Error(
        Fault::run,
        fmt::format("SQLite cannot write the timeline: {}",
                    handle_ == nullptr ? sqlite3_errstr(code) : sqlite3_errmsg(handle_)),
        code == SQLITE_NOMEM || code == SQLITE_FULL ? "It is made in memory, where there was no room for it." : "");
  }

 private:
  friend class SqliteInsert;
  sqlite3* handle_ = nullptr;
};

// Adds rows to one table, with a value for each of its columns.
class SqliteInsert {
 public:
  SqliteInsert(SqliteExport& database, const char* table, int columns, const std::function<void()>& progress)
      : database_(database), progress_(progress) {
    std::string sql = fmt::format("INSERT INTO {} VALUES(?", table);
    for (int i = 1; i < columns; ++i) sql += ",?";
    database_.check(sqlite3_prepare_v2(database_.handle_, (sql + ")").c_str(), -1, &handle_, nullptr));
  }
  ~SqliteInsert() { sqlite3_finalize(handle_); }
  SqliteInsert(const SqliteInsert&) = delete;
  SqliteInsert& operator=(const SqliteInsert&) = delete;

  template <class... Values>
  void row(const Values&... values) {
    int column = 0;
    (bind(++column, values), ...);
    database_.check(sqlite3_step(handle_));
    database_.check(sqlite3_reset(handle_));
    if (progress_ && ++rows_ % kRowsPerCheck == 0) progress_();
  }

 private:
  void bind(int column, const Integer& value) {
    database_.check(value ? sqlite3_bind_int64(handle_, column, *value) : sqlite3_bind_null(handle_, column));
  }
  void bind(int column, const std::optional<double>& value) {
    database_.check(value ? sqlite3_bind_double(handle_, column, *value) : sqlite3_bind_null(handle_, column));
  }
  // The text must live until the row is complete.
  void bind(int column, const Text& text) {
    database_.check(text ? sqlite3_bind_text64(handle_, column, text->data(), text->size(), SQLITE_STATIC, SQLITE_UTF8)
                         : sqlite3_bind_null(handle_, column));
  }

  SqliteExport& database_;
  const std::function<void()>& progress_;
  sqlite3_stmt* handle_ = nullptr;
  std::uint64_t rows_ = 0;
};

const char* phase_word(Phase phase) {
  constexpr const char* kWords[] = {nullptr, "forward", "backward", "optimizer"};
  return kWords[static_cast<std::size_t>(phase)];
}
const char* call_word(CallKind kind) {
  constexpr const char* kWords[] = {"launch", "copy", "synchronize", "record", "wait", "other"};
  return kWords[static_cast<std::size_t>(kind)];
}

class SqliteTables {
 public:
  SqliteTables(const Timeline& timeline, SqliteExport& to, const std::function<void()>& progress)
      : timeline_(timeline), to_(to), progress_(progress) {
    names_.reserve(timeline.names.size());
    for (const std::string& name : timeline.names) names_.push_back(for_line(name));
    works_.resize(names_.size());
  }

  void write() {
    to_.run("BEGIN");
    to_.run(kTables);
    write_meta();
    write_lanes();
    write_modules();
    write_operators();
    write_calls();
    write_spans();
    write_collectives();
    write_others();
    to_.run(kIndices);
    to_.run("COMMIT");
  }

 private:
  SqliteInsert into(const char* table, int columns) { return {to_, table, columns, progress_}; }
  Text name(std::uint32_t index) const { return index < names_.size() ? Text(names_[index]) : std::nullopt; }

  void write_meta() {
    SqliteInsert meta = into("meta", 2);
    const auto add = [&](std::string_view key, std::string_view value) { meta.row(Text(key), Text(value)); };
    add("schema", "weir.timeline_sqlite/1");
    add("source", for_line(timeline_.source));
    add("has_dependencies", timeline_.has_dependencies ? "1" : "0");
    add("has_operators", timeline_.has_operations ? "1" : "0");
    add("has_exact_gaps", timeline_.has_exact_gaps ? "1" : "0");
    add("clock_error_ns", fmt::format("{}", timeline_.clock_error_ns));
    std::size_t count = 0;
    for (const std::string& note : timeline_.notes) add(fmt::format("note {}", ++count), for_line(note));
  }

  void write_lanes() {
    SqliteInsert processes = into("processes", 3), devices = into("devices", 7), streams = into("streams", 5),
                 queues = into("queues", 4);
    for (std::size_t i = 0; i < timeline_.processes.size(); ++i) {
      const std::string label = for_line(timeline_.processes[i].label);
      processes.row(whole(i), Integer(timeline_.processes[i].rank), filled(label));
    }
    for (std::size_t i = 0; i < timeline_.devices.size(); ++i) {
      const TraceDevice& device = timeline_.devices[i];
      const std::string label = for_line(device.label), model = for_line(device.model);
      devices.row(whole(i), index_below(device.process, timeline_.processes.size()), Integer(device.id), filled(label),
                  filled(model), positive(device.multiprocessors), positive(device.resident_threads));
    }
    for (std::size_t i = 0; i < timeline_.streams.size(); ++i) {
      const TraceStream& stream = timeline_.streams[i];
      const std::string label = for_line(stream.label);
      streams.row(whole(i), index_below(stream.device, timeline_.devices.size()), whole(stream.id), filled(label),
                  stream.priority ? Integer(*stream.priority) : std::nullopt);
    }
    for (const TraceQueue& queue : timeline_.queues) {
      const std::string label = for_line(queue.label);
      queues.row(Integer(queue.id), index_below(queue.device, timeline_.devices.size()), filled(label),
                 Integer(queue.id >= kCopyQueues ? 1 : 0));
    }
  }

  void write_modules() {
    SqliteInsert modules = into("modules", 4);
    std::vector<std::string> paths;
    for (std::size_t i = 0; i < timeline_.modules.size(); ++i) {
      const TraceModule& module = timeline_.modules[i];
      const std::string own(name(module.name).value_or("?"));
      const bool has_parent = module.parent < paths.size();
      paths.push_back(has_parent ? paths[module.parent] + "/" + own : own);
      // A file may nest modules as deep as it likes.
      if (paths.back().size() > kLongestPath) paths.back() = "...";
      modules.row(whole(i), has_parent ? Integer(module.parent) : std::nullopt, name(module.name), Text(paths.back()));
    }
  }

  void write_operators() {
    SqliteInsert operators = into("operators", 8);
    for (std::size_t i = 0; i < timeline_.operations.size(); ++i) {
      const Operation& operation = timeline_.operations[i];
      const OperatorCost cost = operator_cost(name(operation.name).value_or(""), name(operation.shapes).value_or(""));
      const char* const phase = phase_word(operation.phase);
      operators.row(whole(i), name(operation.name), name(operation.shapes),
                    index_below(operation.module, timeline_.modules.size()), phase == nullptr ? Text() : Text(phase),
                    cost.flop, cost.bytes, filled(cost.reason));
    }
  }

  void write_calls() {
    SqliteInsert calls = into("calls", 11);
    for (std::size_t i = 0; i < timeline_.calls.size(); ++i) {
      const HostCall& call = timeline_.calls[i];
      const Integer operation = index_below(call.operation, timeline_.operations.size());
      calls.row(whole(i), index_below(call.process, timeline_.processes.size()), Integer(call.thread),
                Text(call_word(call.kind)), name(call.name), positive(call.correlation), time_or_null(call.started_ns),
                time_or_null(call.ended_ns), operation,
                operation ? Integer(call.is_first_of_operation ? 1 : 0) : std::nullopt, name(call.line));
    }
  }

  void write_spans() {
    SqliteInsert spans = into("spans", 20);
    for (std::size_t i = 0; i < timeline_.spans.size(); ++i) {
      const Span& span = timeline_.spans[i];
      const Integer stream = index_below(span.stream, timeline_.streams.size());
      const Integer device =
          stream ? index_below(timeline_.streams[span.stream].device, timeline_.devices.size()) : std::nullopt;
      const bool has_times = span.started_ns != kNoTime && span.ended_ns != kNoTime;
      const Text work = work_of(span);
      spans.row(whole(i), Text(to_string(span.kind)), work, name(span.name), device, stream,
                span.queue == kNoQueue ? std::nullopt : Integer(span.queue),
                index_below(span.call, timeline_.calls.size()), Integer(span.iteration), positive(span.bytes),
                positive(span.blocks), positive(span.threads), time_or_null(span.enqueued_ns),
                time_or_null(span.submitted_ns), time_or_null(span.accepted_ns), time_or_null(span.launched_ns),
                time_or_null(span.started_ns), time_or_null(span.ended_ns), time_or_null(span.seen_ns),
                has_times ? Integer(minus(span.ended_ns, span.started_ns)) : std::nullopt);
    }
  }

  // Looks at each name of kernels once.
  Text work_of(const Span& span) {
    if (span.kind == SpanKind::host) return std::nullopt;
    const std::string_view text = name(span.name).value_or("");
    if (span.kind != SpanKind::kernel || span.name >= works_.size()) return to_string(work_class_of(span.kind, text));
    const char*& known = works_[span.name];
    if (known == nullptr) known = to_string(work_class_of(span.kind, text));
    return known;
  }

  void write_collectives() {
    SqliteInsert collectives = into("collectives", 8);
    for (const CollectiveFacts& facts : timeline_.collectives) {
      if (facts.span >= timeline_.spans.size()) continue;
      const Span& span = timeline_.spans[facts.span];
      std::optional<double> algorithm, bus;
      if (facts.bytes != 0 && is_timed(span) && span.ended_ns > span.started_ns) {
        algorithm = static_cast<double>(facts.bytes) / length_between(span.started_ns, span.ended_ns) * 1e9;
        if (const auto factor = bus_factor(facts.kind, facts.ranks)) bus = *algorithm * *factor;
      }
      collectives.row(whole(facts.span), Text(to_string(facts.kind)), positive(facts.ranks), name(facts.group),
                      positive(facts.bytes), positive(facts.sequence), algorithm, bus);
    }
  }

  void write_others() {
    SqliteInsert dependencies = into("dependencies", 2), ranges = into("ranges", 5);
    for (const Dependency& dependency : timeline_.dependencies)
      if (dependency.before < timeline_.spans.size() && dependency.after < timeline_.spans.size())
        dependencies.row(whole(dependency.before), whole(dependency.after));
    for (std::size_t i = 0; i < timeline_.ranges.size(); ++i) {
      const TraceRange& range = timeline_.ranges[i];
      ranges.row(whole(i), index_below(range.process, timeline_.processes.size()), name(range.name),
                 time_or_null(range.started_ns), time_or_null(range.ended_ns));
    }
  }

  const Timeline& timeline_;
  SqliteExport& to_;
  const std::function<void()>& progress_;
  std::vector<std::string> names_;
  std::vector<const char*> works_;  // of kernels, by name; null where none was looked at
};

}  // namespace

void check_sqlite_export(const std::filesystem::path&) {}

void write_timeline_sqlite(const Timeline& timeline, const std::filesystem::path& path, bool overwrite,
                           const std::function<void()>& progress) {
  check_writable(path, overwrite);
  SqliteExport database;
  SqliteTables(timeline, database, progress).write();
  NewFile file(path, overwrite);
  file.write(database.bytes());
  file.commit();
}

#else

void check_sqlite_export(const std::filesystem::path& path) {
  reject(fmt::format("{}: this build has no SQLite, so it cannot write a database", path.string()),
         "Build with libsqlite3-dev, or use --csv.");
}

void write_timeline_sqlite(const Timeline&, const std::filesystem::path& path, bool, const std::function<void()>&) {
  check_sqlite_export(path);
}

#endif

}  // namespace weir
