// One side of a comparison from the report of a runtime log. Knows that document, but no log.
#include <fmt/format.h>

#include <map>
#include <set>

#include "amd/compare/case_load.h"
#include "base/error.h"
#include "base/json.h"

namespace weir::amd {
namespace {

constexpr std::size_t kMaxCounts = 4096;  // per rate over time; Weir writes at most 256

const Json& items(const Json& json, const char* key) {
  static const Json kEmpty = Json::array();
  const Json& found = member(json, key);
  return found.is_array() ? found : kEmpty;
}
std::optional<std::uint64_t> whole(const Json& json, const char* key) {
  const Json& found = member(json, key);
  if (found.is_number_unsigned()) return found.get<std::uint64_t>();
  if (!found.is_number_integer()) return {};
  const auto value = found.get<std::int64_t>();
  return value < 0 ? std::nullopt : std::optional(static_cast<std::uint64_t>(value));
}
std::optional<int> small(const Json& json, const char* key) {
  const auto value = whole(json, key);
  return value && *value <= INT32_MAX ? std::optional(static_cast<int>(*value)) : std::nullopt;
}
std::string text(const Json& json, const char* key) {
  const Json& found = member(json, key);
  return found.is_string() ? found.get<std::string>() : std::string();
}

// "0x7f8acd200000"
std::optional<std::uint64_t> address(const std::string& text) {
  if (text.size() < 3 || text.size() > 18 || !text.starts_with("0x")) return {};
  std::uint64_t value = 0;
  for (const char c : text.substr(2)) {
    const int digit = c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
    if (digit < 0) return {};
    value = value << 4 | static_cast<std::uint64_t>(digit);
  }
  return value;
}

class ReportedSide {
 public:
  explicit ReportedSide(const std::string& name) {
    side_.source = CaseSource::log_report;
    side_.name = name;
  }

  void take_process(const Json& process) {
    const std::optional<int> pid = small(process, "pid");
    if (pid) {
      pids_.insert(*pid);
    } else {
      side_.has_unknown_process = true;
    }
    const std::uint64_t launches = whole(process, "launches").value_or(0);
    side_.launches += launches;
    totals_.dispatches += whole(process, "dispatches").value_or(0);
    totals_.barriers += whole(process, "barriers").value_or(0);
    for (const Json& queue : items(process, "queues")) take_queue(queue, pid);
    for (const Json& copy : items(process, "copies")) {
      totals_.copies += whole(copy, "count").value_or(0);
      totals_.copied_bytes += whole(copy, "bytes").value_or(0);
      if (const std::string engine = text(copy, "engine"); !engine.empty()) engines_.insert(engine);
    }
    take_kernels(member(process, "kernels"));
    if (launches == 0) return;
    ++launching_;
    take_rate(member(process, "launches_over_time"));
  }

  CaseSide finish() {
    side_.pids.assign(pids_.begin(), pids_.end());
    for (auto& [name, count] : kernels_) side_.kernels.push_back({name, count, {}});
    totals_.engines = engines_.size();
    take_totals(totals_, side_);
    if (!side_.kernels.empty() && !has_all_kernels_)
      side_.kernels_reason = "the report names only its most frequent kernels (--top)";
    for (const CaseQuantity quantity :
         {CaseQuantity::gap, CaseQuantity::backlog, CaseQuantity::barrier_rate, CaseQuantity::copy_rate,
          CaseQuantity::copied_bytes_rate, CaseQuantity::pause_share})
      side_.of(quantity).reason = "a report has no samples of it: compare the log itself";
    CaseSamples& rate = side_.of(CaseQuantity::launch_rate);
    if (launching_ > 1) {
      rate.values.clear();
      rate.reason = "launches of several processes, each counted over its own time: compare the log itself";
    } else if (rate.values.empty()) {
      rate.reason = "the report has no whole stretch of time with launches";
    }
    side_.pause_time = "not in a report";
    return std::move(side_);
  }

  void take_file(const std::string& file, const Json& json) {
    side_.basis.push_back(
        fmt::format("report of the log {}: {} lines", file.empty() ? "-" : file, whole(json, "lines").value_or(0)));
    const Json& restarts = member(json, "restarts");
    if (whole(restarts, "count").value_or(0) > 0) side_.notes.push_back("The log begins anew: runs are put together.");
  }

 private:
  void take_queue(const Json& from, std::optional<int> pid) {
    const std::string hwq = text(from, "hwq");
    const auto ring = address(hwq);
    if (!ring) return;  // not written by Weir
    CaseQueue queue;
    queue.label = hwq;
    queue.seen_in = "log";
    const Json& is_ring = member(from, "hwq_is_ring");
    if (!is_ring.is_boolean() || is_ring.get<bool>()) queue.ring = ring;
    queue.pid = pid;
    if (const auto created = whole(from, "created_ns"); created && *created <= INT64_MAX)
      queue.created_ns = static_cast<std::int64_t>(*created);
    queue.priority = small(from, "priority");
    queue.ring_packets = whole(from, "size_packets");
    queue.launches = whole(from, "launches");
    if (whole(from, "dispatches").value_or(0) > 0) queue.barriers = whole(from, "barriers");
    queue.streams = whole(from, "streams_most");
    side_.queues.push_back(std::move(queue));
  }

  void take_kernels(const Json& kernels) {
    std::size_t named = 0;
    for (const Json& kernel : items(kernels, "top")) {
      kernels_[text(kernel, "name")] += whole(kernel, "count").value_or(0);
      ++named;
    }
    has_all_kernels_ = has_all_kernels_ && whole(kernels, "distinct").value_or(0) <= named;
    side_.unnamed_launches += whole(kernels, "without_name").value_or(0);
  }

  // {"begin_ns": 1, "width_ns": 1000000, "counts": [3, 4, 2]}: the last interval is incomplete
  void take_rate(const Json& over_time) {
    const double width = static_cast<double>(whole(over_time, "width_ns").value_or(0));
    const Json& counts = items(over_time, "counts");
    if (width <= 0 || counts.size() > kMaxCounts) return;
    std::vector<double>& values = side_.of(CaseQuantity::launch_rate).values;
    for (std::size_t i = 0; i + 1 < counts.size(); ++i)
      values.push_back(counts[i].is_number() ? counts[i].get<double>() * 1e9 / width : 0);
    side_.stretch_ns = width;
    side_.observed_ns += width * static_cast<double>(values.size());
  }

  CaseSide side_;
  std::set<int> pids_;
  std::set<std::string> engines_;
  std::map<std::string, std::uint64_t> kernels_;
  LogTotals totals_;
  std::uint64_t launching_ = 0;
  bool has_all_kernels_ = true;
};

}  // namespace

CaseSide side_of_log_report(const Json& document, const std::string& name) {
  ReportedSide side(name);
  std::size_t processes = 0;
  for (const Json& file : items(document, "files")) {
    side.take_file(text(file, "file"), file);
    for (const Json& process : items(file, "processes")) {
      side.take_process(process);
      ++processes;
    }
  }
  if (processes == 0)
    reject(fmt::format("{}: a report of a log in which no process did anything", name),
           "`weir amd log FILE --json` writes it; name the log itself.");
  return side.finish();
}

}  // namespace weir::amd
