// Rows for the log's queues, and what snapshots show about them.
#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <tuple>
#include <unordered_map>

#include "amd/join/join_match.h"

namespace weir::amd {
namespace {

constexpr std::size_t kMaxNotes = 32;
// Reading thousands of registers takes tens of milliseconds, and more on a busy machine.
constexpr std::int64_t kLongestReadingNs = 1'000'000'000;

void note(Join& join, std::string text) {
  if (join.notes.size() < kMaxNotes) join.notes.push_back(std::move(text));
}

std::int64_t begin_of(const QueueSummary& queue) {
  return queue.asked_ns != kNoTime ? queue.asked_ns : queue.created_ns;
}

// Whether the queue may have existed at a time, according to the log.
bool may_live_at(const QueueSummary& queue, std::int64_t ns) {
  const std::int64_t begin = begin_of(queue);
  return (begin == kNoTime || begin <= ns) &&
         (queue.deleted_ns == kNoTime || ns <= moment_of_log(queue.deleted_ns).high_ns);
}

bool is_same_process(const JoinedQueue& row, const kfd::Queue& queue) {
  return !row.host_pid || !queue.pid || *row.host_pid == *queue.pid;
}

// A queue that the log does not show: the same one in several snapshots unless something contradicts that.
bool is_same_queue(const kfd::Queue& a, const kfd::Queue& b) {
  if (a.queue_id && b.queue_id && *a.queue_id != *b.queue_id) return false;
  if (a.doorbell && b.doorbell && *a.doorbell != *b.doorbell) return false;
  if (!a.mqd_bases.empty() && !b.mqd_bases.empty() && a.mqd_bases.front() != b.mqd_bases.front()) return false;
  return a.ring_bytes == 0 || b.ring_bytes == 0 || a.ring_bytes == b.ring_bytes;
}

class SnapshotMatcher {
 public:
  SnapshotMatcher(const JoinInput& input, Join& join) : input_(input), join_(join), owners_(ring_owners(input)) {
    for (std::size_t i = 0; i < join.queues.size(); ++i) {
      const QueueSummary* const runtime = join.queues[i].runtime;
      if (runtime != nullptr && runtime->is_ring) by_ring_[runtime->hwq].push_back(i);
    }
  }

  void match() {
    for (std::size_t i = 0; i < input_.snapshots.size(); ++i) match(i);
    // Without a ring (sysfs alone), a queue has only its id, which other snapshots may have shown together with a ring.
    for (const Sighting& sighting : without_ring_) add_by_id(sighting);
  }

 private:
  void match(std::size_t index) {
    const JoinSnapshot& snapshot = input_.snapshots[index];
    std::map<std::size_t, std::vector<const kfd::Queue*>> found;  // row -> queues that could be it
    std::vector<const kfd::Queue*> alone;
    for (const kfd::Queue& queue : snapshot.queues) {
      if (queue.kind == kfd::QueueKind::hiq || queue.kind == kfd::QueueKind::diq) continue;  // the kernel's own
      if (queue.ring_base == 0) {
        without_ring_.push_back({index, &queue});
        continue;
      }
      bool is_unplaced = false;
      if (const auto row = row_of(index, queue, is_unplaced))
        found[*row].push_back(&queue);
      else if (is_unplaced)
        ++join_.unplaced_sightings;
      else
        alone.push_back(&queue);
    }
    for (const auto& [row, queues] : found) {
      if (queues.size() == 1) {
        add(row, {index, queues[0]});
        continue;
      }
      note(join_, fmt::format("Snapshot {}: {} queues have the ring {:#x}, and the process of the log's is not known: "
                              "none of them is taken for it.",
                              snapshot.when, queues.size(), queues[0]->ring_base));
      alone.insert(alone.end(), queues.begin(), queues.end());
    }
    for (const kfd::Queue* queue : alone) add_alone({index, queue});
  }

  // The latest end of a snapshot: when the next one began, or the limit for reading one.
  std::int64_t end_of(std::size_t index) const {
    const std::int64_t latest = plus(input_.snapshots[index].taken_ns, kLongestReadingNs);
    return index + 1 < input_.snapshots.size() ? std::min(latest, input_.snapshots[index + 1].taken_ns) : latest;
  }

  // `is_unplaced`: the ring and process are in the log, but not at that time, or two queues of the log had the ring
  // then. A snapshot takes a while, and the runtime logs before and after the kernel acts: this may be the log's queue
  // or an earlier or later one, and a row of its own might count it twice.
  std::optional<std::size_t> row_of(std::size_t index, const kfd::Queue& queue, bool& is_unplaced) {
    const JoinSnapshot& snapshot = input_.snapshots[index];
    const auto found = by_ring_.find(queue.ring_base);
    if (found == by_ring_.end() || queue.kind == kfd::QueueKind::sdma) return std::nullopt;
    std::vector<std::size_t> rows;
    bool is_outside = false;
    std::size_t later = 0;  // later queues that may have taken the ring over while it was read
    for (const std::size_t i : found->second) {
      if (!is_same_process(join_.queues[i], queue)) continue;
      const QueueSummary& runtime = *join_.queues[i].runtime;
      if (snapshot.taken_ns == INT64_MIN || may_live_at(runtime, snapshot.taken_ns)) {
        rows.push_back(i);
      } else {
        is_outside = true;
        const std::int64_t begin = begin_of(runtime);
        later += begin > snapshot.taken_ns && begin <= end_of(index) ? 1 : 0;
      }
    }
    // If the log's process for this host process is known, the ring does not belong to a stranger.
    const auto is_known = [&](std::size_t i) {
      return queue.pid && join_.processes[*join_.queues[i].process].host_pid == queue.pid;
    };
    if (std::any_of(rows.begin(), rows.end(), is_known)) std::erase_if(rows, std::not_fn(is_known));
    if (rows.size() == 1 && later == 0) {
      const auto owners = owners_.find(queue.ring_base);
      if (join_.queues[rows[0]].host_pid || owners == owners_.end() || owners->second.size() < 2) return rows[0];
      note(join_, fmt::format("Snapshot {}: {} processes have the ring {:#x}, and which one is the log's is not known.",
                              snapshot.when, owners->second.size(), queue.ring_base));
      return std::nullopt;
    }
    if (!rows.empty())
      note(join_, fmt::format("Snapshot {}: {} queues of the log have the ring {:#x}: which one is not known.",
                              snapshot.when, rows.size() + later, queue.ring_base));
    else if (is_outside)
      note(join_,
           fmt::format("Snapshot {}: a queue has the ring {:#x} at a time at which the log's queue did not live.",
                       snapshot.when, queue.ring_base));
    is_unplaced = !rows.empty() || (is_outside && queue.pid.has_value());
    return std::nullopt;
  }

  void add(std::size_t row, const Sighting& sighting) {
    JoinedQueue& joined = join_.queues[row];
    const kfd::Queue& queue = *sighting.queue;
    Evidence evidence{MatchSide::log, MatchSide::snapshot, {MatchKey::ring}, sighting.snapshot, true};
    evidence.is_process_known = joined.host_pid.has_value() && queue.pid.has_value();
    if (!joined.host_pid) joined.host_pid = queue.pid;
    joined.evidence.push_back(std::move(evidence));
    joined.sightings.push_back(sighting);
  }

  void add_alone(const Sighting& sighting) {
    const kfd::Queue& queue = *sighting.queue;
    const Key key{queue.pid.value_or(-1), queue.gpu_id, queue.ring_base, queue.kind};
    std::vector<std::size_t>& rows = alone_[key];
    for (const std::size_t i : rows) {
      JoinedQueue& row = join_.queues[i];
      if (row.sightings.back().snapshot == sighting.snapshot || !is_same_queue(*row.sightings.back().queue, queue) ||
          keys_between(*row.sightings.back().queue, queue).empty())
        continue;
      row.evidence.push_back({MatchSide::snapshot, MatchSide::snapshot,
                              keys_between(*row.sightings.back().queue, queue), sighting.snapshot,
                              queue.pid.has_value()});
      row.sightings.push_back(sighting);
      return;
    }
    rows.push_back(new_row(sighting));
  }

  std::size_t new_row(const Sighting& sighting) {
    JoinedQueue row;
    row.host_pid = sighting.queue->pid;
    row.sightings.push_back(sighting);
    join_.queues.push_back(std::move(row));
    return join_.queues.size() - 1;
  }

  static std::vector<MatchKey> keys_between(const kfd::Queue& a, const kfd::Queue& b) {
    std::vector<MatchKey> keys;
    if (a.ring_base != 0 && a.ring_base == b.ring_base) keys.push_back(MatchKey::ring);
    if (a.queue_id && b.queue_id && *a.queue_id == *b.queue_id) keys.push_back(MatchKey::queue_id);
    if (!a.mqd_bases.empty() && !b.mqd_bases.empty() && a.mqd_bases.front() == b.mqd_bases.front())
      keys.push_back(MatchKey::mqd);
    if (a.doorbell && b.doorbell && *a.doorbell == *b.doorbell) keys.push_back(MatchKey::doorbell);
    return keys;
  }

  void add_by_id(const Sighting& sighting) {
    const kfd::Queue& queue = *sighting.queue;
    if (!queue.pid || !queue.queue_id) {
      // Its memory image or its doorbell must distinguish it; otherwise each snapshot would add another queue.
      if (!queue.mqd_bases.empty() || queue.doorbell)
        add_alone(sighting);
      else
        ++join_.unplaced_sightings;
      return;
    }
    if (by_id_.empty())
      for (std::size_t i = 0; i < join_.queues.size(); ++i) remember_id(i);
    auto& rows = by_id_[{*queue.pid, queue.gpu_id, *queue.queue_id}];
    if (rows.size() == 1 && is_same_queue(*join_.queues[rows[0]].sightings.back().queue, queue) &&
        is_alive_at(join_.queues[rows[0]], sighting)) {
      JoinedQueue& row = join_.queues[rows[0]];
      row.evidence.push_back({MatchSide::snapshot, MatchSide::snapshot, {MatchKey::queue_id}, sighting.snapshot, true});
      const auto at = std::upper_bound(row.sightings.begin(), row.sightings.end(), sighting,
                                       [](const Sighting& a, const Sighting& b) { return a.snapshot < b.snapshot; });
      row.sightings.insert(at, sighting);
      return;
    }
    rows.push_back(new_row(sighting));
  }

  bool is_alive_at(const JoinedQueue& row, const Sighting& sighting) const {
    const std::int64_t taken_ns = input_.snapshots[sighting.snapshot].taken_ns;
    return row.runtime == nullptr || taken_ns == INT64_MIN || may_live_at(*row.runtime, taken_ns);
  }

  void remember_id(std::size_t i) {
    const JoinedQueue& row = join_.queues[i];
    for (const Sighting& sighting : row.sightings) {
      if (!sighting.queue->pid || !sighting.queue->queue_id) continue;
      auto& rows = by_id_[{*sighting.queue->pid, sighting.queue->gpu_id, *sighting.queue->queue_id}];
      if (rows.empty() || rows.back() != i) rows.push_back(i);
    }
  }

  using Key = std::tuple<int, std::uint32_t, std::uint64_t, kfd::QueueKind>;
  const JoinInput& input_;
  Join& join_;
  const RingOwners owners_;
  std::unordered_map<std::uint64_t, std::vector<std::size_t>> by_ring_;
  std::map<Key, std::vector<std::size_t>> alone_;
  std::vector<Sighting> without_ring_;
  std::map<std::tuple<int, std::uint32_t, std::uint32_t>, std::vector<std::size_t>> by_id_;
};

}  // namespace

std::vector<JoinedQueue> rows_of_log(const JoinInput& input, const std::vector<JoinedProcess>& processes) {
  std::vector<JoinedQueue> rows;
  for (std::size_t i = 0; i < input.logged.size(); ++i) {
    const ProcessSummary& summary = *input.logged[i].summary;
    std::unordered_map<std::uint64_t, std::vector<std::size_t>> by_address;
    for (const QueueSummary& queue : summary.queues) {
      JoinedQueue row;
      row.role = QueueRole::runtime;
      row.process = i;
      row.host_pid = processes[i].host_pid;
      row.runtime = &queue;
      by_address[queue.hwq].push_back(rows.size());
      rows.push_back(std::move(row));
    }
    for (const StreamSummary& stream : summary.streams) {
      std::vector<std::size_t> used;
      for (const StreamUse& use : stream.uses) {
        const auto found = by_address.find(use.hwq);
        if (found == by_address.end()) continue;
        // An address may be reused: take the queue that existed at that time.
        std::size_t best = found->second.front();
        for (const std::size_t row : found->second)
          if (use.since_ns != kNoTime && begin_of(*rows[row].runtime) <= use.since_ns) best = row;
        if (std::find(used.begin(), used.end(), best) != used.end()) continue;
        used.push_back(best);
        rows[best].streams.push_back({stream.handle, stream.priority, use.since_ns, stream.is_default});
      }
    }
  }
  return rows;
}

void match_snapshots(const JoinInput& input, Join& join) { SnapshotMatcher(input, join).match(); }

}  // namespace weir::amd
