#include "report/history/fleet_nodes.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <exception>
#include <limits>
#include <map>
#include <mutex>
#include <optional>
#include <span>
#include <thread>

#include "base/error.h"
#include "lab/fleet/figures.h"
#include "report/history/packed_text.h"

namespace weir::history {
namespace {

constexpr double kOf95 = 1.96;
constexpr std::string_view kFleet = "fleet/";
constexpr std::size_t kMostSeries = 100'000;
constexpr std::size_t kLargestText = std::size_t{64} << 20;  // of one probe
constexpr std::size_t kMostText = std::size_t{4} << 30;      // of all of them
constexpr std::size_t kMostThreads = 8, kProbesPerThread = 16;

struct Place {
  std::int64_t machine = 0;
  std::string workload;
};

// Devices and figures whose values differ by less than the threshold cannot have changed by more: the database sorts
// them out, from an index alone. '0' follows '/'.
std::vector<Place> places(Database& database, const std::string& since, const ChangeOptions& options) {
  Statement rows(database,
                 fmt::format("SELECT machine, workload FROM point WHERE workload >= 'fleet/' AND workload < 'fleet0' "
                             "AND measured >= ? GROUP BY workload, machine HAVING count(*) >= {} AND "
                             "max(coalesce(latency_median, throughput_median)) > "
                             "min(coalesce(latency_median, throughput_median)) * {}",
                             2 * kMinPerLevel, 1 + options.threshold));
  rows.bind(std::string_view(since));
  std::vector<Place> found;
  while (rows.next()) {
    if (found.size() == kMostSeries)
      reject(fmt::format("{}: more than {} figures of devices vary", database.name(), kMostSeries),
             "Look at less of the past, or use a larger threshold.");
    Place place;
    rows.read(0, place.machine, place.workload);
    found.push_back(std::move(place));
  }
  return found;
}

struct Value {
  std::string at;
  double median = 0, error = 0;
  std::int64_t conditions = 0;
};

std::string text_in(const Json& json, const char* name) {
  const Json& value = member(json, name);
  return value.is_string() ? value.string() : std::string();
}

void put_sentence(DeviceChange& change) {
  const fleet::FigureKind* const kind = fleet::find_figure(change.figure);
  const std::string place = fmt::format("{} {}", change.node, change.device);
  change.sentence = fmt::format("{}: {}{} slower by {:.1f} % since {}",
                                change.serial.empty() ? place : fmt::format("GPU {} ({})", change.serial, place),
                                kind == nullptr ? std::string_view(change.figure) : kind->words,
                                change.to.empty() ? "" : " to " + change.to, std::fabs(change.ratio - 1) * 100,
                                change.at.substr(0, 10));
}

// The last change of a series, where it is for the worse.
std::optional<DeviceChange> change_of(std::span<const Value> values, bool is_less_better, ChangeDetector& detector) {
  if (values.size() > kLongestSeries) values = values.last(kLongestSeries);
  std::vector<double> medians, errors;
  for (const Value& value : values) {
    medians.push_back(value.median);
    errors.push_back(value.error);
  }
  const ChangeReport judged = detector.judge(medians, errors);
  if (judged.changes.empty() || (judged.changes.back().ratio > 1) != is_less_better) return std::nullopt;
  const ChangePoint& last = judged.changes.back();
  DeviceChange change;
  change.at = values[last.index].at;
  change.before_at = values[last.index - 1].at;
  change.ratio = last.ratio;
  change.p = last.p;
  return change;
}

// A figure's value and range say what its samples show, and reading these is a third of the work. Inside of a text a
// quotation mark stands behind a backslash, so this is a member's name.
void drop_samples(std::string& text) {
  constexpr std::string_view kName = "\"samples\":";
  std::size_t kept = 0, from = 0;
  for (std::size_t at; (at = text.find(kName, from)) != std::string::npos;) {
    const std::size_t open = text.find_first_not_of(" \n", at + kName.size());
    if (open == std::string::npos || text[open] != '[') break;
    const std::size_t close = text.find_first_not_of("0123456789+-.eE, \n", open + 1);
    if (close == std::string::npos || text[close] != ']') break;
    std::memmove(text.data() + kept, text.data() + from, open + 1 - from);
    kept += open + 1 - from;
    from = close;
  }
  text.erase(kept, from - kept);
}

}  // namespace

std::vector<fleet::NodeReport> newest_nodes(Store& store, const std::string& since) {
  const std::vector<KeptDocument> documents = store.newest_documents("fleet_probe", since);
  std::vector<fleet::NodeReport> nodes(documents.size());
  std::atomic<std::size_t> next{0}, size{0};
  std::exception_ptr error;
  std::mutex guard;  // of error
  const auto read = [&] {
    try {
      for (std::size_t i = next++; i < documents.size(); i = next++) {
        const std::string name = fmt::format("{}: probe of {}", store.name(), documents[i].subject);
        auto text = unpack_text(documents[i].packed, kLargestText);
        if (!text)
          reject(name + ": is damaged, or was packed with zlib, which this Weir lacks",
                 "Put back a copy, or install zlib1g-dev and build again.");
        if ((size += text->size()) > kMostText)
          reject(fmt::format("{}: its probes hold more than {} GiB", store.name(), kMostText >> 30),
                 "Look at less of the past.");
        drop_samples(*text);
        nodes[i] = fleet::read_node(parse_json(*text, name), name);
      }
    } catch (...) {
      const std::lock_guard lock(guard);
      error = std::current_exception();
      next = documents.size();
    }
  };
  // A thousand probes are 45 MB of JSON: a second's work for one thread.
  std::vector<std::thread> threads;
  const std::size_t wanted = std::min<std::size_t>(
      {std::thread::hardware_concurrency(), kMostThreads, documents.size() / kProbesPerThread + 1});
  for (std::size_t i = 1; i < wanted; ++i) threads.emplace_back(read);
  read();
  for (std::thread& thread : threads) thread.join();
  if (error) std::rethrow_exception(error);
  return nodes;
}

std::vector<DeviceChange> device_changes(Store& store, const std::string& since, const ChangeOptions& options) {
  std::vector<DeviceChange> changes;
  Database& database = store.database();
  if (database.version() < 2) return changes;
  ChangeDetector detector(options);
  Statement rows(database,
                 "SELECT key, measured, conditions, latency_median, latency_low, latency_high, throughput_median, "
                 "throughput_low, throughput_high FROM point WHERE workload = ? AND machine = ? AND "
                 "failure IS NULL AND measured >= ? ORDER BY measured, id");
  Statement machine(database, "SELECT fingerprint, facts FROM machine WHERE id = ?");
  for (const Place& place : places(database, since, options)) {
    std::map<std::string, std::vector<Value>> by_key;  // copies to each other device are series of their own
    bool is_less_better = true;
    rows.bind(place.workload, place.machine, since);
    while (rows.next()) {
      Value value;
      std::string key;
      std::optional<double> latency, low, high, throughput, least, most;
      rows.read(0, key, value.at, value.conditions, latency, low, high, throughput, least, most);
      const auto& median = latency ? latency : throughput;
      if (!median || !(*median > 0)) continue;
      is_less_better = latency.has_value();
      const auto& from = latency ? low : least;
      const auto& to = latency ? high : most;
      value.median = *median;
      value.error = from && to ? (*to - *from) / (2 * kOf95 * *median) : std::numeric_limits<double>::quiet_NaN();
      by_key[key].push_back(std::move(value));
    }
    rows.run();
    for (const auto& [key, values] : by_key)
      if (auto change = change_of(values, is_less_better, detector)) {
        change->figure = place.workload.substr(kFleet.size());
        if (const auto names = Json::parse_if_valid(key)) change->to = text_in(*names, "to");
        if (machine.bind(place.machine).next()) {
          change->machine = machine.text(0);
          if (const auto facts = Json::parse_if_valid(machine.text(1))) {
            change->serial = text_in(*facts, "serial");
            change->model = text_in(*facts, "model");
          }
        }
        machine.run();
        const Json device = store.conditions(values.back().conditions).first;
        change->node = text_in(device, "host");
        change->device = text_in(device, "name");
        put_sentence(*change);
        changes.push_back(std::move(*change));
      }
  }
  std::sort(changes.begin(), changes.end(), [](const DeviceChange& one, const DeviceChange& two) {
    const double first = std::fabs(std::log(one.ratio)), second = std::fabs(std::log(two.ratio));
    return first != second ? first > second : one.sentence < two.sentence;
  });
  return changes;
}

}  // namespace weir::history
