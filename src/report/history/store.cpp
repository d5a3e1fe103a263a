#include "report/history/store.h"

#include <fmt/format.h>
#include <weir_build.h>

#include <algorithm>
#include <set>

#include "base/clock.h"
#include "base/error.h"
#include "measure/statistics.h"
#include "report/history/samples.h"

namespace weir::history {
namespace {

constexpr int kResamples = 2'000;  // for a median; a folder of a hundred results must not take a minute
constexpr std::size_t kMaxRead = 1'000'000;

// Keys and facts are objects of strings.
std::string key_text(const std::map<std::string, std::string>& values) { return Json(values).dump(); }

// Accepts any text: null where it is not an object.
Json object_of(const std::string& text) {
  try {
    Json json = parse_json(text, "history");
    return json.is_object() ? json : Json();
  } catch (const Error&) {
    return nullptr;
  }
}

// Values that are not strings are left out.
std::map<std::string, std::string> values_of(const std::string& text) {
  std::map<std::string, std::string> values;
  const Json json = object_of(text);
  for (const auto& [name, value] : json.items())
    if (value.is_string()) values[name] = value.get<std::string>();
  return values;
}

std::string document_text(const Json& json) { return json.is_null() ? std::string() : json.dump(); }

// The id of a row that exists once: found or created.
std::int64_t identity(Database& database, const char* find, const char* make, const std::string& key,
                      const std::string& first, const std::string& second) {
  Statement found(database, find);
  if (found.bind(key).next())
    if (const auto id = found.integer(0)) return *id;
  Statement made(database, make);
  made.bind(key).bind_or_null(first).bind_or_null(second).run();
  Statement last(database, "SELECT last_insert_rowid()");
  last.next();
  return last.integer(0).value_or(0);
}

void bind_measure(Statement& statement, const SampleSeries& series) {
  BootstrapOptions options;
  options.resamples = kResamples;
  std::optional<double> middle, low, high;
  if (const auto summary = summarise(series.samples, options)) {
    middle = summary->p50;
    if (summary->p50_interval) {
      low = summary->p50_interval->low;
      high = summary->p50_interval->high;
    }
  }
  statement.bind_or_null(series.unit).bind_or_null(series.reason);
  statement.bind(static_cast<std::int64_t>(series.samples.size()), middle, low, high);
  if (series.samples.empty())
    statement.bind(std::nullopt);
  else
    statement.bind_bytes(pack_samples(series.samples));
}

Measure read_measure(const Statement& row, int column) {
  Measure measure;
  row.read(column, measure.unit, measure.reason, measure.count, measure.median, measure.low, measure.high);
  if (!measure.low || !measure.high) measure.low = measure.high = std::nullopt;
  if (!measure.median && measure.reason.empty()) measure.reason = "there are no samples";
  return measure;
}

}  // namespace

const std::string& Point::workload() const {
  static const std::string kNone;
  const auto found = key.find("workload");
  return found == key.end() ? kNone : found->second;
}

Added Store::add(const Intake& intake, const AddOptions& options) {
  Added added;
  std::set<std::int64_t> known_entries;
  Transaction transaction(database_);
  Statement known(database_, "SELECT entry FROM point WHERE digest = ?");
  Statement insert(database_,
                   "INSERT INTO point(entry, machine, conditions, digest, origin, measured, weir_version, weir_commit, "
                   "workload, key, failure, latency_unit, latency_reason, latency_count, latency_median, latency_low, "
                   "latency_high, latency_samples, throughput_unit, throughput_reason, throughput_count, "
                   "throughput_median, throughput_low, throughput_high, throughput_samples) "
                   "VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)");
  for (const NewPoint& point : intake.points) {
    if (known.bind(point.digest).next()) {
      if (const auto entry = known.integer(0)) known_entries.insert(*entry);
      ++added.known;
      known.run();
      continue;
    }
    known.run();
    if (!added.entry) {
      Statement entry(database_,
                      "INSERT INTO entry(added, tag, commit_id, commit_basis, weir_version, weir_commit) "
                      "VALUES (?,?,?,?,?,?)");
      entry.bind(wall_time()).bind_or_null(options.tag).bind_or_null(options.commit);
      entry.bind_or_null(options.commit_basis).bind(WEIR_VERSION, WEIR_COMMIT).run();
      Statement last(database_, "SELECT last_insert_rowid()");
      last.next();
      added.entry = last.integer(0);
    }
    const std::int64_t machine = identity(database_, "SELECT id FROM machine WHERE fingerprint = ?",
                                          "INSERT INTO machine(fingerprint, label, facts) VALUES (?,?,?)",
                                          point.machine.id, point.machine.label, key_text(point.machine.facts));
    const std::string device = document_text(point.device), environment = document_text(point.environment);
    const std::int64_t conditions = identity(database_, "SELECT id FROM conditions WHERE digest = ?",
                                             "INSERT INTO conditions(digest, device, environment) VALUES (?,?,?)",
                                             digest_of(device + "\n" + environment), device, environment);
    insert.bind(*added.entry, machine, conditions, point.digest, point.point.origin);
    insert.bind_or_null(point.measured).bind_or_null(point.weir_version).bind_or_null(point.weir_commit);
    insert.bind(point.point.key.at("workload"), key_text(point.point.key)).bind_or_null(point.point.failure);
    bind_measure(insert, point.point.latency);
    bind_measure(insert, point.point.throughput);
    insert.run();
    ++added.points;
    if (!point.point.failure.empty()) ++added.failed;
  }
  transaction.commit();
  added.known_entries.assign(known_entries.begin(), known_entries.end());
  return added;
}

bool Store::remove(std::int64_t entry) {
  Transaction transaction(database_);
  Statement found(database_, "SELECT 1 FROM entry WHERE id = ?");
  const bool is_there = found.bind(entry).next();
  found.run();
  if (!is_there) return false;
  Statement(database_, "DELETE FROM point WHERE entry = ?").bind(entry).run();
  Statement(database_, "DELETE FROM entry WHERE id = ?").bind(entry).run();
  Statement(database_, "DELETE FROM machine WHERE id NOT IN (SELECT machine FROM point)").run();
  Statement(database_, "DELETE FROM conditions WHERE id NOT IN (SELECT conditions FROM point)").run();
  transaction.commit();
  return true;
}

std::vector<Entry> Store::entries(const EntryFilter& filter) {
  const std::string machine = resolve_machine(filter.machine);
  std::map<std::int64_t, Entry> entries;
  Statement rows(database_, "SELECT id, added, tag, commit_id, commit_basis, weir_version, weir_commit FROM entry");
  while (rows.next() && entries.size() < kMaxRead) {
    Entry entry;
    rows.read(0, entry.id, entry.added, entry.tag, entry.commit, entry.commit_basis, entry.weir_version,
              entry.weir_commit);
    entries[entry.id] = std::move(entry);
  }
  Statement points(database_,
                   "SELECT point.entry, machine.fingerprint, point.workload, count(*), count(point.failure) FROM point "
                   "JOIN machine ON machine.id = point.machine GROUP BY 1, 2, 3 ORDER BY 1, 2, 3");
  while (points.next()) {
    const auto found = entries.find(points.integer(0).value_or(0));
    if (found == entries.end()) continue;
    Entry& entry = found->second;
    entry.points += static_cast<std::size_t>(points.integer(3).value_or(0));
    entry.failed += static_cast<std::size_t>(points.integer(4).value_or(0));
    const auto note = [](std::vector<std::string>& list, const std::string& text) {
      if (std::find(list.begin(), list.end(), text) == list.end()) list.push_back(text);
    };
    note(entry.machines, points.text(1));
    note(entry.workloads, points.text(2));
  }
  std::vector<Entry> wanted;
  const auto holds = [](const std::vector<std::string>& list, const std::string& text) {
    return text.empty() || std::find(list.begin(), list.end(), text) != list.end();
  };
  for (auto& [id, entry] : entries)
    if ((filter.tag.empty() || entry.tag == filter.tag) && holds(entry.workloads, filter.workload) &&
        holds(entry.machines, machine))
      wanted.push_back(std::move(entry));
  return wanted;
}

std::vector<Point> Store::points(const PointFilter& filter) {
  Statement rows(database_,
                 "SELECT point.id, point.entry, machine.fingerprint, point.measured, entry.added, entry.tag, "
                 "entry.commit_id, point.origin, point.weir_version, point.weir_commit, point.key, point.failure, "
                 "point.conditions, latency_unit, latency_reason, latency_count, latency_median, latency_low, "
                 "latency_high, throughput_unit, throughput_reason, throughput_count, throughput_median, "
                 "throughput_low, throughput_high FROM point JOIN machine ON machine.id = point.machine "
                 "JOIN entry ON entry.id = point.entry WHERE (?1 < 0 OR point.entry = ?1) AND (?2 = '' OR "
                 "point.workload = ?2) AND (?3 = '' OR machine.fingerprint = ?3) ORDER BY point.id");
  const std::string machine = resolve_machine(filter.machine);
  rows.bind(filter.entry.value_or(-1), filter.workload, machine);
  std::vector<Point> points;
  while (rows.next() && points.size() < kMaxRead) {
    Point point;
    std::string added, key;
    rows.read(0, point.id, point.entry, point.machine, point.measured, added, point.tag, point.commit, point.origin,
              point.weir_version, point.weir_commit, key, point.failure, point.conditions);
    point.at = is_time(point.measured) ? point.measured : added;
    point.key = values_of(key);
    point.latency = read_measure(rows, 13);
    point.throughput = read_measure(rows, 19);
    points.push_back(std::move(point));
  }
  // Sorts by when it was measured, not when it was added, because old results may be added late.
  std::stable_sort(points.begin(), points.end(), [](const Point& one, const Point& two) { return one.at < two.at; });
  return points;
}

std::string Store::resolve_machine(const std::string& begin) {
  if (begin.empty()) return {};
  std::vector<std::string> fitting;
  std::string all;
  for (const Machine& machine : machines()) {
    if (machine.id.starts_with(begin)) fitting.push_back(machine.id);
    if (all.size() < 400) all += fmt::format("{}{} ({})", all.empty() ? "" : ", ", machine.id, machine.label);
  }
  if (fitting.size() == 1) return fitting[0];
  reject_setting(
      "machine", begin,
      fitting.empty() ? "no machine of this history has such an id" : fmt::format("fits {} machines", fitting.size()),
      all.empty() ? "The history is empty." : fmt::format("There are: {}.", all));
}

std::vector<Machine> Store::machines() {
  std::vector<Machine> machines;
  Statement rows(database_, "SELECT fingerprint, label, facts FROM machine ORDER BY id");
  while (rows.next() && machines.size() < kMaxRead)
    machines.push_back({rows.text(0), rows.text(1), values_of(rows.text(2))});
  return machines;
}

std::vector<std::string> Store::workloads() {
  std::vector<std::string> names;
  Statement rows(database_, "SELECT DISTINCT workload FROM point ORDER BY 1");
  while (rows.next() && names.size() < kMaxRead) names.push_back(rows.text(0));
  return names;
}

std::pair<Json, Json> Store::conditions(std::int64_t id) {
  Statement row(database_, "SELECT device, environment FROM conditions WHERE id = ?");
  if (!row.bind(id).next()) return {};
  return {object_of(row.text(0)), object_of(row.text(1))};
}

std::vector<double> Store::samples(std::int64_t point, const std::string& metric) {
  Statement row(database_, metric == "throughput" ? "SELECT throughput_samples FROM point WHERE id = ?"
                                                  : "SELECT latency_samples FROM point WHERE id = ?");
  if (!row.bind(point).next()) return {};
  const std::string bytes = row.bytes(0);
  if (bytes.empty()) return {};
  auto samples = unpack_samples(bytes);
  if (!samples) reject(fmt::format("{}: the samples of point {} are damaged", name(), point), "Put back a copy.");
  return *samples;
}

}  // namespace weir::history
