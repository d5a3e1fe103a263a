// States the findings of a log summary as sentences: shared queues, the cost of creating them, what is unknown and why.
// Knows only the summary.
#include <fmt/format.h>

#include <algorithm>

#include "amd/log/log_document.h"
#include "amd/log/log_settings.h"
#include "base/units.h"

namespace weir::amd {
namespace {

std::string span(std::int64_t least, std::int64_t most) {
  const std::string low = format_duration(static_cast<double>(least)),
                    high = format_duration(static_cast<double>(most));
  return low == high ? low : fmt::format("{} to {}", low, high);
}

// Streams and the queues they used. The log's refCount shows how many streams used a queue at the same time; the number
// of streams seen on it over time does not.
void add_sharing_verdict(const ProcessSummary& process, std::vector<std::string>& verdicts) {
  const auto seen = streams_by_queue(process);
  const auto streams =
      static_cast<std::uint64_t>(std::count_if(process.streams.begin(), process.streams.end(),
                                               [](const StreamSummary& stream) { return !stream.uses.empty(); }));
  int most = 0;
  bool is_known = true, all_at_once = true;
  std::uint64_t min_seen = UINT64_MAX, max_seen = 0;
  for (const auto& [hwq, count] : seen) {
    const QueueSummary* const queue = process.queue(hwq);
    min_seen = std::min(min_seen, count);
    max_seen = std::max(max_seen, count);
    if (queue == nullptr || !queue->streams_most) {
      is_known = false;
      continue;
    }
    most = std::max(most, *queue->streams_most);
    all_at_once = all_at_once && static_cast<std::uint64_t>(*queue->streams_most) == count;
  }
  if (seen.empty()) {
    if (!process.queues.empty())
      verdicts.push_back(fmt::format("{} in this log; it does not say which streams use them.",
                                     counted(process.queues.size(), "hardware queue")));
    return;
  }
  const std::string used =
      fmt::format("{} {{}} {}", counted(streams, "stream"), counted(seen.size(), "hardware queue"));
  const auto with = [&](std::string_view verb) { return fmt::format(fmt::runtime(used), verb); };
  if (!is_known)
    verdicts.push_back(with(streams == 1 ? "uses" : "use") +
                       "; the log has no refCount, so whether several used one at the same time is not known.");
  else if (most <= 1)
    verdicts.push_back(with(streams == 1 ? "uses" : "use") + ", and never two the same one at a time.");
  else if (all_at_once && min_seen == max_seen)
    verdicts.push_back(with("share") + fmt::format(", {}{}.", most, seen.size() == 1 ? " on it" : " each"));
  else if (all_at_once)
    verdicts.push_back(with("share") + fmt::format(", {} to {} each.", min_seen, max_seen));
  else
    verdicts.push_back(with("used") + fmt::format(" over time; at most {} shared one at a time (refCount).", most));
}

void add_creation_verdict(const ProcessSummary& process, std::vector<std::string>& verdicts) {
  const CreationTimes times = creation_times(process);
  if (!times.first_ns) return;
  const std::string first = format_duration(static_cast<double>(*times.first_ns));
  verdicts.push_back(times.later > 0 ? fmt::format("Creating a queue took {} the first time and {} later ({}).", first,
                                                   span(times.min_ns, times.max_ns), counted(times.later, "queue"))
                                     : fmt::format("Creating its one queue took {}.", first));
}

void add_launch_verdicts(const ProcessSummary& process, const LogReading& reading, std::vector<std::string>& verdicts) {
  if (process.dispatches == 0) {
    verdicts.push_back(fmt::format(
        "No packets in this log (its highest level is {}): {}. {} writes them.", reading.highest_level,
        process.named > 0 ? "kernels are counted by their names, on the queue of their stream, and backlog is not known"
                          : "launches and backlog are not known",
        kQueueLogSettings));
    return;
  }
  LogHistogram backlog;
  for (const QueueSummary& queue : process.queues) backlog.merge(queue.backlog);
  if (backlog.count() == 0)
    verdicts.push_back("This version of ROCm writes no read and write index: backlog is not known.");
  else if (*backlog.max() == 0)
    verdicts.push_back("No packet waited behind another when it was written: no backlog.");
  else
    verdicts.push_back(
        fmt::format("Backlog at submit: median {}, at most {} packets; {:.1f} % of packets found a queue "
                    "that was not empty.",
                    *backlog.quantile(0.5), *backlog.max(),
                    100.0 * static_cast<double>(backlog.at_least(1)) / static_cast<double>(backlog.count())));
}

}  // namespace

std::vector<std::string> log_verdicts(const ProcessSummary& process, const LogReading& reading) {
  std::vector<std::string> verdicts;
  if (process.queue_errors > 0)
    verdicts.push_back(fmt::format("{} aborted with an error.", counted(process.queue_errors, "queue")));
  add_sharing_verdict(process, verdicts);
  add_creation_verdict(process, verdicts);
  add_launch_verdicts(process, reading, verdicts);
  if (std::any_of(process.queues.begin(), process.queues.end(), [](const QueueSummary& q) { return !q.is_ring; }))
    verdicts.push_back(
        "This version of ROCm prints a queue's object as HWq, not its ring: it cannot be looked up in KFD's files.");
  if (!process.pid)
    verdicts.push_back(
        reading.runtimes > 1
            ? fmt::format(
                  "Lines have no pid, and {} wrote into this file: they cannot be distinguished, and are grouped by "
                  "their order alone.",
                  counted(reading.runtimes, "program"))
            : std::string("Lines have no pid and no thread: they are grouped by their order alone."));
  return verdicts;
}

}  // namespace weir::amd
