#include "report/page/results.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "base/units.h"
#include "report/page/curves.h"
#include "report/text/documents.h"
#include "report/text/fields.h"

namespace weir::page {
namespace {

using namespace fields;

// About a megabyte of samples in total: a report with very many points keeps fewer of each.
constexpr std::size_t kMaxValues = 512, kMinValues = 32, kAllValues = 100'000;

constexpr std::size_t kMaxNamed = 4;  // points that a sentence names one by one
constexpr double kHostBound = 0.8;    // of an iteration: time that the host spends on submitting it
constexpr double kHighConvoy = 2;     // p99 of small commands, mixed over alone
constexpr double kLowFairness = 0.8;  // Jain
constexpr double kFall = 0.05;  // of throughput, from the best count to the largest; the counterpart of kKneeLevel
constexpr double kHardlyConcurrent = 1.5;  // mean number of commands at once

constexpr double kGoodFit = 0.8;    // R2 from which a fitted law is worth reporting
constexpr double kMinTurns = 0.05;  // contention

using Points = std::vector<const Measured*>;

Points points_where(const CurveGroup& group, const std::function<bool(const Measured&)>& is_wanted) {
  Points found;
  for (const Curve& curve : group.curves)
    for (const Measured* point : curve.points)
      if (is_wanted(*point)) found.push_back(point);
  return found;
}

std::string place(const Measured& point) {
  const std::string submit = point.name("submit");
  return fmt::format("{} stream{}{}{}", point.streams, point.streams == 1 ? "" : "s", submit.empty() ? "" : " ",
                     submit);
}

// "2 streams inline, 4 streams inline and 3 more"
std::string places(const Points& points) {
  std::string words;
  for (std::size_t i = 0; i < std::min(points.size(), kMaxNamed); ++i)
    words += (words.empty() ? "" : ", ") + place(*points[i]);
  if (points.size() > kMaxNamed) words += fmt::format(" and {} more", points.size() - kMaxNamed);
  return words;
}

std::size_t size_of(const CurveGroup& group) {
  return points_where(group, [](const Measured&) { return true; }).size();
}

void find_failures(Page& page, const CurveGroup& group) {
  const std::size_t all = size_of(group);
  const Points failed = points_where(group, [](const Measured& point) { return !point.point.failure.empty(); });
  if (!failed.empty()) {
    const std::string& why = failed.front()->point.failure;
    Finding finding{Tone::bad, static_cast<double>(failed.size()) / static_cast<double>(all), {}, {}, group.id};
    finding.text = all == 1 ? fmt::format("{} ({}): {}.", group.title, place(*failed.front()), why)
                            : fmt::format("{}: {} of {} points failed ({}); the first: {}.", group.title, failed.size(),
                                          all, places(failed), why);
    const Json& hint = at(failed.front()->document, {"hint"});
    if (hint.is_string()) finding.advice = hint.get<std::string>();
    page.find(std::move(finding));
  }
  const Points cut = points_where(
      group, [](const Measured& point) { return point.status == "interrupted" && point.point.failure.empty(); });
  if (!cut.empty())
    page.find({Tone::warning, 0.5,
               fmt::format("{}: {} of {} points {} interrupted ({}): they rest on fewer iterations.", group.title,
                           cut.size(), all, cut.size() == 1 ? "was" : "were", places(cut)),
               "Run them again to the end; `weir sweep --resume` does what is left of a sweep.", group.id});
}

// One finding per kind of warning: where it occurred, and its first message.
void find_warnings(Page& page, const CurveGroup& group) {
  std::vector<std::pair<std::string, Points>> kinds;
  std::vector<const Json*> first;
  for (const Curve& curve : group.curves)
    for (const Measured* point : curve.points) {
      const Json& warnings = at(point->document, {"warnings"});
      if (!warnings.is_array()) continue;
      for (const Json& warning : warnings) {
        const std::string code = text(warning, {"code"});
        auto kind = std::find_if(kinds.begin(), kinds.end(), [&](const auto& each) { return each.first == code; });
        if (kind == kinds.end()) {
          if (kinds.size() >= 20) continue;  // Weir has fewer kinds; a file may contain any number
          kinds.push_back({code, {}});
          first.push_back(&warning);
          kind = std::prev(kinds.end());
        }
        kind->second.push_back(point);
      }
    }
  for (std::size_t i = 0; i < kinds.size(); ++i) {
    const auto& [code, points] = kinds[i];
    const double share = static_cast<double>(points.size()) / static_cast<double>(size_of(group));
    const Json& advice = at(*first[i], {"advice"});
    page.find({Tone::warning, 0.1 * share,
               fmt::format("{} ({}): {}.", group.title, places(points), text(*first[i], {"message"})),
               advice.is_string() ? advice.get<std::string>() : "", group.id});
  }
}

// The share of an iteration spent on submitting; empty where the host waits on purpose.
std::optional<double> host_share(const Measured& point) {
  const auto each = number(point.document, {"metrics", "host_ns_per_command"});
  const auto commands = number(point.document, {"commands_per_iteration"});
  if (!each || !commands || !point.latency_ns["p50"].is_number() || point.name("submit").starts_with("scheduled:"))
    return std::nullopt;
  const double p50 = point.latency_ns["p50"].get<double>();
  return p50 > 0 ? std::optional(*each * *commands / p50) : std::nullopt;
}

// The point for which `value` is largest, and that value.
std::pair<const Measured*, double> worst(const CurveGroup& group,
                                         const std::function<std::optional<double>(const Measured&)>& value) {
  std::pair<const Measured*, double> found{nullptr, 0};
  for (const Curve& curve : group.curves)
    for (const Measured* point : curve.points) {
      if (!point->point.failure.empty()) continue;
      const auto here = value(*point);
      if (here && (found.first == nullptr || *here > found.second)) found = {point, *here};
    }
  return found;
}

void find_host_bound(Page& page, const CurveGroup& group) {
  const auto [point, share] = worst(group, host_share);
  if (point == nullptr || share < kHostBound) return;
  const std::string submit = point->name("submit");
  std::string advice = submit == "graph"
                           ? "Make kernels larger or fewer: the graph's launch alone takes that long."
                           : "Submit in graphs (--submit graph) or from several threads (--submit threads), or make "
                             "kernels larger and fewer.";
  page.find({Tone::warning, std::min(share, 1.0),
             fmt::format("{} ({}): the host submits for {:.0f} % of an iteration's time, {} for each of {} commands: "
                         "the device gets work no faster than that.",
                         group.title, place(*point), std::min(100.0, 100 * share),
                         format_duration(*number(point->document, {"metrics", "host_ns_per_command"})),
                         text(point->document, {"commands_per_iteration"})),
             advice, group.id});
}

void find_convoy(Page& page, const CurveGroup& group) {
  const auto [point, index] =
      worst(group, [](const Measured& each) { return number(each.document, {"metrics", "convoy", "index"}); });
  if (point == nullptr || index < kHighConvoy) return;
  const Json& convoy = at(point->document, {"metrics", "convoy"});
  const auto mixed = number(convoy, {"mixed_ns", "p99"}), alone = number(convoy, {"alone_ns", "p99"});
  page.find(
      {Tone::warning, 1 - 1 / index,
       fmt::format(
           "{} ({}): {} commands take {} as long among the others as alone{}.", group.title, place(*point),
           text(convoy, {"role"}), fmt::format("{:.{}f}x", index, index < 100 ? 1 : 0),
           mixed && alone ? fmt::format(" (p99 {} and {})", format_duration(*mixed), format_duration(*alone)) : ""),
       "Submit short commands before long ones or on streams of a higher priority; `weir queues convoy` and "
       "`weir preempt` show what the device lets pass.",
       group.id});
}

void find_unfair(Page& page, const CurveGroup& group) {
  const auto [point, missing] = worst(group, [](const Measured& each) -> std::optional<double> {
    const auto fairness = number(each.document, {"metrics", "fairness"});
    return fairness ? std::optional(1 - *fairness) : std::nullopt;
  });
  if (point == nullptr || 1 - missing >= kLowFairness) return;
  page.find({Tone::warning, missing,
             fmt::format("{} ({}): streams with the same work do not progress alike: fairness {:.3f} (Jain; 1 is "
                         "equal).",
                         group.title, place(*point), 1 - missing),
             "`weir profile` shows which streams wait; `weir queues fairness` whether the device prefers some queues.",
             group.id});
}

// What more streams gained. `flat` is not a fault: it shows how many streams are enough.
void find_scaling(Page& page, const CurveGroup& group, const Curve& curve) {
  const std::string words = scaling_words(curve.name, curve.analysis, group.first().unit);
  if (words.empty()) return;
  const Json& rows = at(curve.analysis, {"rows"});
  double best = 0;
  for (const Json& row : rows) best = std::max(best, number(row, {"throughput"}).value_or(0));
  const double last = number(rows.back(), {"throughput"}).value_or(0);
  const double fall = best > 0 ? 1 - last / best : 0;
  const Json& knee = at(curve.analysis, {"knee"});
  Finding finding{Tone::neutral, 0, fmt::format("{}, {}", group.title, words), {}, group.id};
  if (fall > kFall) {
    finding.tone = Tone::warning;
    finding.weight = fall;
    finding.text =
        fmt::format("{}, {}: throughput falls by {:.0f} % from {} to {} streams. {}", group.title, curve.name,
                    100 * fall, text(curve.analysis, {"best_streams"}), text(rows.back(), {"streams"}), words);
    finding.advice = fmt::format("Use {} streams.", text(curve.analysis, {"best_streams"}));
  } else if (knee.is_number()) {
    finding.weight = 1;
    finding.advice = fmt::format("Use {} streams: more bring less than 5 %.", text(curve.analysis, {"knee"}));
  }
  const double fit = number(curve.analysis, {"usl", "r_squared"}).value_or(0);
  const double turns = number(curve.analysis, {"usl", "alpha"}).value_or(0);
  if (!finding.advice.empty() && fit >= kGoodFit && turns >= kMinTurns)
    finding.advice +=
        fmt::format(" By the fitted law {:.0f} % of the work takes turns, however many streams there are.",
                    100 * std::min(turns, 1.0));
  const auto at_once = number(curve.points.back()->document, {"metrics", "concurrency", "mean"});
  if (!finding.advice.empty() && at_once && *at_once < kHardlyConcurrent && curve.points.back()->streams > 1)
    finding.advice += fmt::format(
        " With {} streams only {:.2f} commands ran at once on average: `weir profile` shows whether each fills the "
        "device or they wait for each other.",
        curve.points.back()->streams, *at_once);
  page.find(std::move(finding));
}

// Adds the findings of a group on the page: failures first, then bottlenecks, each with figures and advice.
void find_in_group(Page& page, const CurveGroup& group) {
  find_failures(page, group);
  find_warnings(page, group);
  find_host_bound(page, group);
  find_convoy(page, group);
  find_unfair(page, group);
  for (const Curve& curve : group.curves) find_scaling(page, group, curve);
}

}  // namespace

void add_results(Page& page, std::span<const Measured> all) {
  if (all.empty()) return;
  const std::size_t values = std::clamp(kAllValues / all.size(), kMinValues, kMaxValues);
  for (CurveGroup& group : group_measured(page, all)) {
    add_group(page, group, values);
    find_in_group(page, group);
  }
}

}  // namespace weir::page
