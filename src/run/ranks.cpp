#include "run/ranks.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>

#include "base/error.h"
#include "base/named_values.h"

namespace weir {
namespace {

// Reports are sent as JSON, because this is cold code and rank 0 can show what it received.
std::vector<Json> gathered(Communicator& ranks, const Json& own) {
  std::vector<Json> reports;
  for (const std::string& text : ranks.gather(own.dump())) reports.push_back(Json::parse(text));
  return reports;
}

std::vector<double> list(const Json& report, const char* name) { return report[name].get<std::vector<double>>(); }

// The largest value over all ranks, per iteration; empty if ranks have different numbers of samples.
std::vector<double> slowest(const std::vector<Json>& reports, const char* name) {
  std::vector<double> largest = list(reports[0], name);
  for (const Json& report : reports) {
    const std::vector<double> other = list(report, name);
    if (other.size() != largest.size()) return {};
    for (std::size_t i = 0; i < other.size(); ++i) largest[i] = std::max(largest[i], other[i]);
  }
  return largest;
}

double window_ns(const Json& report, SyncMode sync) {
  if (sync == SyncMode::end_only) return report["total_ns"].get<double>();
  const std::vector<double> intervals = list(report, sync == SyncMode::none ? "interval_ns" : "latency_ns");
  return std::accumulate(intervals.begin(), intervals.end(), 0.0);
}

std::string rank_named(const Json& member) {
  return fmt::format("rank {} ({})", member["rank"].get<int>(), member["host"].get<std::string>());
}

// Merges the other ranks' checks into rank 0's: the first failure, and the worst error of all.
void merge_checks(Result& result, const std::vector<Json>& members, const std::vector<Json>& reports) {
  std::uint64_t buffers = 0, outputs = 0;
  for (std::size_t rank = 0; rank < reports.size(); ++rank) {
    const Json& check = reports[rank]["check"];
    buffers += check["buffers"].get<std::uint64_t>();
    outputs += check["outputs"].get<std::uint64_t>();
    for (const char* worst : {"worst_relative_error", "worst_share_of_tolerance"})
      if (check[worst].is_number() && (!result.check[worst].is_number() || check[worst] > result.check[worst]))
        result.check[worst] = check[worst];
    if (check["status"] != "failed" || (result.check["status"] == "failed" && rank > 0)) continue;
    const std::string reason = fmt::format("{}: {}", rank_named(members[rank]), check["reason"].get<std::string>());
    result.check["status"] = "failed";
    result.check["reason"] = reason;
    result.status = "failed";
    result.failure = fmt::format("{}: the output is wrong on {}", result.workload, reason);
  }
  result.check["buffers"] = buffers;
  result.check["outputs"] = outputs;
}

}  // namespace

Json to_json(const RankSkew& skew, double clock_error_ns) {
  const Json skew_ns = {{"p50", skew.p50_ns}, {"p95", skew.p95_ns}, {"p99", skew.p99_ns}, {"max", skew.max_ns}};
  return WEIR_NAMED(skew.instances, skew_ns, clock_error_ns, skew.last_share);
}

Json to_json(const Straggler& straggler) {
  return WEIR_NAMED(straggler.rank, straggler.last_share, straggler.behind_ns, straggler.latency_ratio,
                    straggler.reason);
}

RankReports::RankReports(Communicator& ranks, const DeviceInfo& device) : ranks_(ranks), clock_(ranks.clock_offset()) {
  members_ =
      gathered(ranks, WEIR_NAMED(ranks.ranks().rank, ranks.host(), named("device", device.name), device.backend,
                                 named("clock_offset_ns", clock_.offset_ns), named("clock_error_ns", clock_.error_ns)));
  for (const Json& member : members_)
    if (member["backend"] != members_[0]["backend"])
      reject(fmt::format("{} has device '{}', {} has '{}'", rank_named(members_[0]),
                         members_[0]["device"].get<std::string>(), rank_named(member),
                         member["device"].get<std::string>()),
             "Say with --device which one all ranks shall use.");
}

void RankReports::gather_timed(Result& result, TimedPass& pass) {
  timed_ = gathered(
      ranks_, WEIR_NAMED(named("work", result.work_per_iteration), named("flop", result.flop_per_iteration),
                         named("bytes", result.bytes_per_iteration), named("commands", result.commands_per_iteration),
                         pass.latency_ns, pass.interval_ns, pass.device_ns, pass.total_ns, result.check));
  if (timed_.empty()) return;
  double work = 0, flop = 0, bytes = 0;
  std::uint64_t commands = 0;
  for (const Json& report : timed_) {
    work += report["work"].get<double>();
    flop += report["flop"].get<double>();
    bytes += report["bytes"].get<double>();
    commands += report["commands"].get<std::uint64_t>();
  }
  merge_checks(result, members_, timed_);

  result.ranks = {{"count", timed_.size()}, {"library", ranks_.library()}};
  std::set<std::string> hosts;
  for (const Json& member : members_) hosts.insert(member["host"].get<std::string>());
  result.ranks["hosts"] = hosts;
  result.ranks["per_rank"] = Json::array();
  std::size_t longest = 0;
  for (std::size_t rank = 0; rank < timed_.size(); ++rank) {
    const double window = window_ns(timed_[rank], pass.sync);
    if (window > window_ns(timed_[longest], pass.sync)) longest = rank;
    const auto summary =
        pass.sync == SyncMode::none
            ? std::nullopt
            : summarise(list(timed_[rank], pass.sync == SyncMode::end_only ? "device_ns" : "latency_ns"));
    if (summary) median_ns_.push_back(summary->p50);
    const auto iterations = static_cast<double>(list(timed_[rank], "interval_ns").size());
    const double rate = timed_[rank]["work"].get<double>() * iterations / (window * 1e-9);
    Json entry = Json::object();
    for (const char* fact : {"rank", "host", "device", "clock_offset_ns", "clock_error_ns"})
      entry[fact] = members_[rank][fact];
    entry["latency_ns"] = nullptr;
    if (summary) entry[pass.sync == SyncMode::end_only ? "device_ns" : "latency_ns"] = to_json(*summary);
    entry["throughput"] = result.device["backend"] == "null" ? Json(nullptr) : number_or_null(rate);
    entry["collective_share"] = nullptr;
    result.ranks["per_rank"].push_back(std::move(entry));
  }
  if (median_ns_.size() != timed_.size()) median_ns_.clear();

  // An iteration ends when its last rank does. The barrier between iterations does not count.
  pass.latency_ns = slowest(timed_, "latency_ns");
  pass.device_ns = slowest(timed_, "device_ns");
  pass.interval_ns = pass.sync == SyncMode::per_iteration ? pass.latency_ns : list(timed_[longest], "interval_ns");
  pass.total_ns = window_ns(timed_[longest], pass.sync);
  result.work_per_iteration = work;
  result.flop_per_iteration = flop;
  result.bytes_per_iteration = bytes;
  result.commands_per_iteration = commands;
}

void RankReports::gather_traced(Result& result, const Step& step, const Timeline& timeline) {
  std::vector<bool> is_collective;
  for (const Command& command : step.commands()) is_collective.push_back(command.kind == CommandKind::collective);
  Json own = {{"arrivals", Json::array()}, {"warnings", Json::array()}};
  own["share"] = number_or_null(collective_share(timeline, is_collective));
  for (const Span& span : timeline.spans)
    if (span.command < is_collective.size() && is_collective[span.command] && span.started_ns != kNoTime)
      own["arrivals"].push_back({span.command, span.iteration, span.started_ns});
  // Noise and drift are judged from all ranks' samples together; warnings about a device are per rank.
  for (const Warning& warning : result.warnings)
    if (warning.code == "throttled" || warning.code == "clocks" || warning.code == "untraced")
      own["warnings"].push_back({warning.code, warning.message, warning.advice});
  const std::vector<Json> reports = gathered(ranks_, own);
  if (reports.empty()) return;

  std::vector<std::vector<Arrival>> arrivals(reports.size());
  double clock_error_ns = timeline.clock_error_ns;
  for (std::size_t rank = 0; rank < reports.size(); ++rank) {
    const Json& member = members_[rank];
    // Ranks on one host read the same clock; an offset measured between them is only noise.
    const bool is_same_clock = member["host"] == members_[0]["host"];
    const double offset = is_same_clock ? 0 : member["clock_offset_ns"].get<double>();
    if (!is_same_clock) clock_error_ns = std::max(clock_error_ns, member["clock_error_ns"].get<double>());
    for (const Json& arrival : reports[rank]["arrivals"])
      arrivals[rank].push_back({arrival[0].get<std::uint32_t>(), arrival[1].get<std::uint32_t>(),
                                arrival[2].get<std::int64_t>() + std::llround(offset)});
    result.ranks["per_rank"][rank]["collective_share"] = reports[rank]["share"];
    if (rank > 0)
      for (const Json& warning : reports[rank]["warnings"])
        result.warnings.push_back(
            {warning[0].string(), fmt::format("{}: {}", rank_named(member), warning[1].string()), warning[2].string()});
  }
  const bool has_groups = !rank_groups(step).empty();
  const auto skew = has_groups ? std::nullopt : rank_skew(arrivals, clock_error_ns);
  result.ranks["skew"] = nullptr;
  if (skew) {
    result.ranks["skew"] = to_json(*skew, clock_error_ns);
  } else if (std::find(is_collective.begin(), is_collective.end(), true) == is_collective.end()) {
    result.unavailable["ranks.skew"] = "the step has no collectives: ranks do not wait for each other";
  } else if (has_groups) {
    result.unavailable["ranks.skew"] = "collectives are between groups of ranks: not all ranks wait for each other";
  } else {
    result.unavailable["ranks.skew"] =
        timeline.spans.empty() ? "no timeline" : "no collective has a start time on every rank";
  }
  if (timeline.spans.empty()) result.unavailable["ranks.per_rank.collective_share"] = "no timeline";
  result.ranks["stragglers"] =
      json_list(find_stragglers(skew, median_ns_), [](const Straggler& straggler) { return to_json(straggler); });
}

}  // namespace weir
