#include "lab/watch/timeline_tally.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "trace/intervals.h"

namespace weir::watch {

TimelineTally::LaneId TimelineTally::lane_of(const Span& span, const Step& step) {
  if (span.queue >= kCopyQueues) return {Lane::copy_queue, span.queue - kCopyQueues};
  if (span.queue != kNoQueue) return {Lane::queue, span.queue};
  if (step.commands()[span.command].kind == CommandKind::host) return {Lane::host, 0};
  return {Lane::stream, span.stream};
}

void TimelineTally::add(std::span<const Span> spans, const Step& step, std::int64_t begun_ns, std::int64_t ended_ns) {
  if (ended_ns <= begun_ns) return;
  window_ns_ += ended_ns - begun_ns;
  struct Stretches {
    std::vector<TimeInterval> runs, waits;
  };
  std::map<LaneId, Stretches> found;
  for (const Span& span : spans) {
    const Command& command = step.commands()[span.command];
    const LaneId lane = lane_of(span, step);
    Tally& tally = tallies_[lane];
    ++tally.commands;
    ++tally.all_commands;
    if (command.kind == CommandKind::kernel) {
      ++tally.kernels;
      ++tally.all_kernels;
    }
    tally.streams.insert(span.stream);
    tally.lowest_priority = std::min<int>(tally.lowest_priority, command.priority);
    tally.highest_priority = std::max<int>(tally.highest_priority, command.priority);
    if (span.started_ns == kNoTime || span.ended_ns == kNoTime || span.submitted_ns == kNoTime) {
      ++untimed_;
      continue;
    }
    ++tally.timed;
    // Device clocks are slightly off, so times outside the window are clamped.
    const auto within = [&](std::int64_t ns) { return std::clamp(ns, begun_ns, ended_ns); };
    Stretches& mine = found[lane];
    mine.runs.push_back({within(span.started_ns), within(span.ended_ns)});
    mine.waits.push_back({within(span.submitted_ns), within(span.started_ns)});
  }
  for (auto& [lane, stretches] : found) {
    Tally& tally = tallies_[lane];
    tally.busy_ns += static_cast<double>(total_ns(unite_all(std::move(stretches.runs))));
    for (const TimeInterval& wait : stretches.waits)
      tally.backlog_ns += static_cast<double>(distance_ns(wait.from_ns, wait.to_ns));
    tally.most_backlog = std::max(tally.most_backlog, most_at_once(stretches.waits));
  }
}

Row TimelineTally::row_of(const LaneId& id, const Tally& tally, double window_s, const std::string& device) {
  Row row;
  static constexpr std::pair<const char*, const char*> kLanes[] = {
      {"queue", "queue {}"}, {"copy", "copy queue {}"}, {"stream", "stream {} (queue?)"}, {"host", "host functions"}};
  const auto& [kind, label] = kLanes[static_cast<std::size_t>(id.lane)];
  row.kind = kind;
  row.label = fmt::format(fmt::runtime(label), id.number);
  row.key = fmt::format("{}/{}/{}", device, row.kind, id.number);
  row.device = device;
  const bool is_timed = tally.timed > 0 && tally.timed == tally.commands;
  const std::string why = fmt::format("{} of {} commands have no times", tally.commands - tally.timed, tally.commands);
  if (tally.timed > 0) {
    row.is_active = tally.busy_ns > 0;
  } else if (tally.commands == 0) {
    row.is_active = false;  // it was used earlier, but not in this window
  } else {
    row.active_reason = why;
  }
  const bool is_idle = tally.commands == 0;
  row.backlog = is_timed || is_idle ? known(tally.backlog_ns / (1e9 * window_s)) : unknown(why);
  row.most_backlog = is_timed || is_idle ? known(static_cast<double>(tally.most_backlog)) : unknown(why);
  row.busy = is_timed || is_idle ? known(tally.busy_ns / (1e9 * window_s)) : unknown(why);
  if (tally.highest_priority != INT32_MIN) {
    row.priority = known(tally.highest_priority);
    if (tally.lowest_priority != tally.highest_priority)
      row.priority_text = fmt::format("{} to {}", tally.lowest_priority, tally.highest_priority);
  } else {
    row.priority = unknown("no command used it in this window");
  }
  row.streams =
      is_idle ? unknown("no command used it in this window") : known(static_cast<double>(tally.streams.size()));
  row.kernels_per_s = known(static_cast<double>(tally.kernels) / window_s);
  row.commands_per_s = known(static_cast<double>(tally.commands) / window_s);
  row.packets_per_s = row.packets = unknown("a timeline has commands, not packets");
  row.kernels = known(static_cast<double>(tally.all_kernels));
  row.commands = known(static_cast<double>(tally.all_commands));
  return row;
}

std::vector<Row> TimelineTally::rows(const std::string& device) const {
  std::vector<Row> rows;
  if (window_ns_ <= 0) return rows;
  for (const auto& [id, tally] : tallies_)
    rows.push_back(row_of(id, tally, static_cast<double>(window_ns_) / 1e9, device));
  return rows;
}

void TimelineTally::clear() {
  window_ns_ = 0;
  untimed_ = 0;
  for (auto& [id, tally] : tallies_) {
    Tally fresh;
    fresh.all_kernels = tally.all_kernels;
    fresh.all_commands = tally.all_commands;
    tally = fresh;
  }
}

}  // namespace weir::watch
