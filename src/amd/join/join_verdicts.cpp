// The findings of a join as sentences.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>

#include "amd/join/join_document.h"
#include "base/units.h"

namespace weir::amd {
namespace {

std::string range_text(const DurationRange& range) {
  if (range.most_ns == INT64_MAX) return fmt::format("at least {}", format_duration(range.least_ns));
  if (!range.is_distinguishable) return fmt::format("at most {}", format_duration(range.most_ns));
  const std::string least = format_duration(range.least_ns), most = format_duration(range.most_ns);
  return least == most ? least : fmt::format("{} to {}", least, most);
}

struct Counts {
  std::array<std::size_t, 5> roles{};
  std::size_t seen = 0;
  std::set<std::pair<std::size_t, std::uint64_t>> streams;
  std::optional<int> most_at_once;  // streams, by refCount; more may have used the queue one after another
  std::size_t of(QueueRole role) const { return roles[static_cast<std::size_t>(role)]; }
};

Counts count(const Join& join) {
  Counts counts;
  for (const JoinedQueue& queue : join.queues) {
    ++counts.roles[static_cast<std::size_t>(queue.role)];
    if (queue.role != QueueRole::runtime) continue;
    counts.seen += queue.sightings.empty() ? 0 : 1;
    if (queue.runtime->streams_most)
      counts.most_at_once = std::max(counts.most_at_once.value_or(0), *queue.runtime->streams_most);
    for (const JoinedStream& stream : queue.streams) counts.streams.emplace(*queue.process, stream.handle);
  }
  return counts;
}

void add_match_verdict(const JoinInput& input, const Counts& counts, std::vector<std::string>& verdicts) {
  const std::size_t runtime = counts.of(QueueRole::runtime);
  if (runtime == 0) {
    if (input.has_log)
      verdicts.push_back("The log shows no hardware queue: was it written with the queue's mask (0x10)?");
    return;
  }
  std::string text =
      counts.streams.empty()
          ? fmt::format("The log shows {}", counted(runtime, "hardware queue"))
          : fmt::format("{} on {} of the log{}", counted(counts.streams.size(), "stream"),
                        counted(runtime, "hardware queue"),
                        counts.most_at_once ? fmt::format(", at most {} on one at a time", *counts.most_at_once) : "");
  if (input.snapshots.empty()) {
    verdicts.push_back(text + ". Where they are on the hardware is not known: there are no snapshots.");
    return;
  }
  if (!has_rings(input)) {
    verdicts.push_back(text +
                       ". Where they are on the hardware is not known: the snapshots have neither hqds nor mqds, which "
                       "root may read.");
    return;
  }
  if (counts.seen == 0) {
    verdicts.push_back(text + ".");
    verdicts.push_back(
        fmt::format("Nothing matches: no ring of the log is in a snapshot ({} read). Log and snapshots are of "
                    "different runs, or no snapshot was taken while these queues lived.",
                    input.snapshots.size()));
    return;
  }
  verdicts.push_back(fmt::format("{}; {} of {} found in KFD's snapshots by ring base.", text, counts.seen, runtime));
}

void add_other_verdicts(const Counts& counts, std::vector<std::string>& verdicts) {
  constexpr std::pair<QueueRole, const char*> kWords[] = {
      {QueueRole::internal, "of the runtime's own beside them: in KFD, and not in the log."},
      {QueueRole::unlogged,
       "of these processes in KFD only, and the log is not whole: the runtime's own, or lines that are missing."},
      {QueueRole::other_process, "of other processes on the same machine."},
      {QueueRole::unknown_process, "whose process may or may not be in the log."}};
  for (const auto& [role, words] : kWords)
    if (counts.of(role) > 0) verdicts.push_back(fmt::format("{} {}", counted(counts.of(role), "queue"), words));
}

// For the earliest queue whose creation both parts show.
void add_creation_verdict(const Join& join, std::vector<std::string>& verdicts) {
  const JoinedQueue* first = nullptr;
  for (const JoinedQueue& queue : join.queues)
    if (queue.hops.asked_to_created && queue.hops.entered_to_left &&
        (first == nullptr || queue.runtime->asked_ns < first->runtime->asked_ns))
      first = &queue;
  if (first == nullptr) return;
  const DurationRange& kfd = *first->hops.entered_to_left;
  verdicts.push_back(fmt::format("Creating the queue of ring {} took {} in the runtime, of which KFD's part is {}{}.",
                                 address_text(first->runtime->hwq), range_text(*first->hops.asked_to_created),
                                 range_text(kfd), first->hops.is_left_exact ? "" : " (no return was traced)"));
}

void add_clock_verdict(const JoinInput& input, const Join& join, std::vector<std::string>& verdicts) {
  if (!input.has_log || !input.has_trace) return;
  const ClockOffset& clock = join.clock;
  if (!clock.is_known()) {
    verdicts.push_back(fmt::format("Clocks of log and trace are not aligned: {}.", clock.reason));
    return;
  }
  const std::string left_out = clock.left_out == 0 ? "" : fmt::format(", {} left out that fit nothing", clock.left_out);
  if (clock.basis == OffsetBasis::same_clock)
    verdicts.push_back(fmt::format(
        "Log and trace have one clock (mono), {}; stamps are good to {}.",
        clock.brackets == 0 ? std::string("which nothing in them checks")
                            : fmt::format("checked against {}{}", counted(clock.brackets, "queue operation"), left_out),
        format_duration(kStampErrorNs)));
  else
    verdicts.push_back(
        fmt::format("Log = trace {} {}, to within {}, from {}{}{}. Nothing shorter than that is claimed.",
                    clock.middle_ns() < 0 ? "-" : "+", format_duration(std::abs(clock.middle_ns())),
                    format_duration(clock.half_width_ns()), counted(clock.brackets, "queue operation"), left_out,
                    clock.basis == OffsetBasis::order ? ", paired by their order" : ""));
}

void add_state_verdict(const JoinInput& input, const Join& join, std::vector<std::string>& verdicts) {
  std::uint64_t most = 0;
  const JoinedQueue* deepest = nullptr;
  std::size_t where = 0;
  std::size_t preempted = 0;
  for (const JoinedQueue& queue : join.queues) {
    bool was_preempted = false;
    for (const Sighting& sighting : queue.sightings) {
      if (sighting.queue->backlog_packets.value_or(0) > most) {
        most = *sighting.queue->backlog_packets;
        deepest = &queue;
        where = sighting.snapshot;
      }
      was_preempted = was_preempted || sighting.queue->was_preempted.value_or(false);
    }
    preempted += was_preempted ? 1 : 0;
  }
  if (deepest != nullptr && deepest->ring())
    verdicts.push_back(fmt::format("The most backlog that a snapshot shows is {} on ring {} ({}).",
                                   counted(most, "packet"), address_text(*deepest->ring()),
                                   input.snapshots[where].when));
  if (preempted > 0)
    verdicts.push_back(fmt::format("{} had saved waves in a snapshot: preempted in the middle of a kernel.",
                                   counted(preempted, "queue")));
}

}  // namespace

std::vector<std::string> join_verdicts(const JoinInput& input, const Join& join) {
  std::vector<std::string> verdicts;
  const Counts counts = count(join);
  add_match_verdict(input, counts, verdicts);
  add_other_verdicts(counts, verdicts);
  add_clock_verdict(input, join, verdicts);
  add_creation_verdict(join, verdicts);
  add_state_verdict(input, join, verdicts);
  if (join.unplaced_creates > 0)
    verdicts.push_back(fmt::format("{} of the trace could not be distinguished, and {} placed on no queue.",
                                   counted(join.unplaced_creates, "creation"),
                                   join.unplaced_creates == 1 ? "is" : "are"));
  if (join.failed_creates > 0)
    verdicts.push_back(
        fmt::format("{} failed in KFD: no queue came of that.", counted(join.failed_creates, "creation")));
  return verdicts;
}

}  // namespace weir::amd
