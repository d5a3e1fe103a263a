#include "report/history/store.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>
#include <unordered_map>

#include "base/error.h"
#include "report/history/samples.h"

namespace weir::history {
namespace {

constexpr std::size_t kMaxRead = 1'000'000;
constexpr std::size_t kMostPacked = std::size_t{1} << 30;  // of all documents of one answer

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

std::vector<Entry> Store::entries(const EntryFilter& filter) {
  const std::string machine = resolve_machine(filter.machine);
  std::map<std::int64_t, Entry> entries;
  const std::string one = filter.id ? fmt::format(" WHERE entry.id = {}", *filter.id) : "";
  Statement rows(database_,
                 "SELECT id, added, tag, commit_id, commit_basis, weir_version, weir_commit FROM entry" + one);
  while (rows.next() && entries.size() < kMaxRead) {
    Entry entry;
    rows.read(0, entry.id, entry.added, entry.tag, entry.commit, entry.commit_basis, entry.weir_version,
              entry.weir_commit);
    entries[entry.id] = std::move(entry);
  }
  Statement points(database_,
                   "SELECT point.entry, machine.fingerprint, point.workload, count(*), count(point.failure) FROM point "
                   "JOIN machine ON machine.id = point.machine JOIN entry ON entry.id = point.entry" +
                       one + " GROUP BY 1, 2, 3 ORDER BY 1, 2, 3");
  while (points.next()) {
    const auto found = entries.find(points.integer(0).value_or(0));
    if (found == entries.end()) continue;
    Entry& entry = found->second;
    entry.points += static_cast<std::size_t>(points.integer(3).value_or(0));
    entry.failed += static_cast<std::size_t>(points.integer(4).value_or(0));
    const auto note = [](std::vector<std::string>& list, const std::string& text) {
      if (std::find(list.begin(), list.end(), text) == list.end()) list.push_back(text);
    };
    // In their order, and there may be thousands.
    if (std::string machine_id = points.text(1); entry.machines.empty() || entry.machines.back() != machine_id)
      entry.machines.push_back(std::move(machine_id));
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
  const std::string machine = resolve_machine(filter.machine);
  // Only what is asked for, so that the database can use its indices.
  std::string wanted;
  const auto want = [&](const char* condition) {
    wanted += fmt::format("{}{}", wanted.empty() ? " WHERE " : " AND ", condition);
  };
  if (filter.entry) want("point.entry = ?");
  if (!filter.workload.empty()) want("point.workload = ?");
  if (!machine.empty()) want("machine.fingerprint = ?");
  Statement rows(database_,
                 "SELECT point.id, point.entry, machine.fingerprint, point.measured, entry.added, entry.tag, "
                 "entry.commit_id, point.origin, point.weir_version, point.weir_commit, point.key, point.failure, "
                 "point.conditions, latency_unit, latency_reason, latency_count, latency_median, latency_low, "
                 "latency_high, throughput_unit, throughput_reason, throughput_count, throughput_median, "
                 "throughput_low, throughput_high FROM point JOIN machine ON machine.id = point.machine "
                 "JOIN entry ON entry.id = point.entry" +
                     wanted);
  if (filter.entry) rows.bind(*filter.entry);
  if (!filter.workload.empty()) rows.bind(std::string_view(filter.workload));
  if (!machine.empty()) rows.bind(std::string_view(machine));
  std::vector<Point> points;
  std::unordered_map<std::string, std::map<std::string, std::string>> keys;  // a series has one, and many points
  while (rows.next()) {
    if (points.size() == kMaxRead)
      reject(fmt::format("{}: more than {} points fit", name(), kMaxRead), "Select less: --workload and --machine do.");
    Point point;
    std::string added, key;
    rows.read(0, point.id, point.entry, point.machine, point.measured, added, point.tag, point.commit, point.origin,
              point.weir_version, point.weir_commit, key, point.failure, point.conditions);
    point.at = is_time(point.measured) ? point.measured : added;
    const auto found = keys.find(key);
    point.key = found != keys.end() ? found->second : keys.emplace(key, values_of(key)).first->second;
    point.latency = read_measure(rows, 13);
    point.throughput = read_measure(rows, 19);
    points.push_back(std::move(point));
  }
  // Sorts by when it was measured, not when it was added, because old results may be added late.
  std::sort(points.begin(), points.end(),
            [](const Point& one, const Point& two) { return std::tie(one.at, one.id) < std::tie(two.at, two.id); });
  return points;
}

std::string Store::resolve_machine(const std::string& begin) {
  if (begin.empty()) return {};
  std::vector<std::string> fitting;
  if (database_.version() >= 2) {
    Statement rows(database_, "SELECT fingerprint FROM machine WHERE serial = ?");
    rows.bind(std::string_view(begin));
    while (rows.next()) fitting.push_back(rows.text(0));
    if (fitting.size() == 1) return fitting[0];
  }
  std::string all;
  for (const Machine& machine : machines()) {
    if (machine.id.starts_with(begin)) fitting.push_back(machine.id);
    if (all.size() < 400) all += fmt::format("{}{} ({})", all.empty() ? "" : ", ", machine.id, machine.label);
  }
  if (fitting.size() == 1) return fitting[0];
  reject_setting("machine", begin,
                 fitting.empty() ? "no machine of this history has such an id or serial number"
                                 : fmt::format("fits {} machines", fitting.size()),
                 all.empty() ? "The history is empty." : fmt::format("There are: {}.", all));
}

std::vector<Machine> Store::machines(const std::string& id) {
  std::vector<Machine> machines;
  Statement rows(database_, fmt::format("SELECT fingerprint, label, facts FROM machine{} ORDER BY id",
                                        id.empty() ? "" : " WHERE fingerprint = ?"));
  if (!id.empty()) rows.bind(std::string_view(id));
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

std::vector<KeptDocument> Store::newest_documents(const std::string& kind, const std::string& since) {
  std::vector<KeptDocument> documents;
  if (database_.version() < 2) return documents;
  Statement rows(database_,
                 "SELECT d.subject, d.measured, d.body FROM document d JOIN (SELECT max(c.id) AS id FROM document c "
                 "JOIN (SELECT subject, max(measured) AS measured FROM document WHERE kind = ? AND measured >= ? "
                 "GROUP BY subject) AS newest ON c.kind = ? AND c.subject = newest.subject "
                 "AND c.measured = newest.measured GROUP BY c.subject) AS chosen ON chosen.id = d.id ORDER BY 1");
  rows.bind(kind, since, kind);
  std::size_t size = 0;
  while (rows.next() && documents.size() < kMaxRead) {
    documents.push_back({rows.text(0), rows.text(1), rows.bytes(2)});
    size += documents.back().packed.size();
    if (size > kMostPacked)
      reject(fmt::format("{}: its documents take more than {} GiB", name(), kMostPacked >> 30),
             "Look at less of the past.");
  }
  return documents;
}

}  // namespace weir::history
