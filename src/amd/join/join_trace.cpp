// Matches rows with the trace: the creation and the destruction of their queues.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <unordered_map>

#include "amd/join/join_match.h"

namespace weir::amd {
namespace {

using ftrace::KfdSpan;
using ftrace::KfdVerb;

// Where a key of a row comes from, and whether a creation in the trace has the same key.
struct KeyAgreement {
  std::vector<MatchKey> keys;
  bool is_contradicted = false;
  std::optional<std::size_t> snapshot;  // the source of the keys; nothing: the log's ring

  void compare(bool is_known, bool is_same, MatchKey key) {
    if (!is_known) return;
    if (!is_same)
      is_contradicted = true;
    else if (std::find(keys.begin(), keys.end(), key) == keys.end())
      keys.push_back(key);
  }
};

KeyAgreement agreement_of(const JoinedQueue& row, const KfdSpan& call) {
  KeyAgreement found;
  if (call.process && row.host_pid && *call.process != *row.host_pid) found.is_contradicted = true;
  if (row.runtime != nullptr && row.runtime->is_ring)
    found.compare(call.ring_base.has_value(), call.ring_base == row.runtime->hwq, MatchKey::ring);
  const bool has_log_ring = !found.keys.empty();
  for (const Sighting& sighting : row.sightings) {
    const kfd::Queue& queue = *sighting.queue;
    const std::size_t before = found.keys.size();
    found.compare(call.ring_base && queue.ring_base != 0, call.ring_base == queue.ring_base, MatchKey::ring);
    found.compare(call.queue_id && queue.queue_id && call.process && queue.pid,
                  call.queue_id == queue.queue_id && call.process == queue.pid, MatchKey::queue_id);
    found.compare(call.doorbell && queue.doorbell, call.doorbell == queue.doorbell, MatchKey::doorbell);
    if (call.mqd_base && !queue.mqd_bases.empty())
      found.compare(true,
                    std::find(queue.mqd_bases.begin(), queue.mqd_bases.end(), *call.mqd_base) != queue.mqd_bases.end(),
                    MatchKey::mqd);
    if (call.gpu_id && queue.gpu_id != 0 && *call.gpu_id != queue.gpu_id) found.is_contradicted = true;
    if (!has_log_ring && !found.snapshot && found.keys.size() > before) found.snapshot = sighting.snapshot;
  }
  return found;
}

class TraceMatcher {
 public:
  TraceMatcher(const JoinInput& input, Join& join) : input_(input), join_(join) {
    for (const KfdSpan& call : input.calls) {
      if (call.verb != KfdVerb::create) continue;
      if (has_failed(call))
        ++join.failed_creates;
      else
        creates_.push_back(&call);
    }
    row_of_.assign(creates_.size(), kNone);
    index_rows();
  }

  void match() {
    match_by_keys(false);
    if (join_.clock.is_known()) match_by_keys(true);
    if (join_.clock.is_known() && !input_.has_lost_events && input_.uncounted_calls == 0) match_by_time();
    add_rows();
    find_destroys();
  }

 private:
  static constexpr std::size_t kNone = SIZE_MAX;
  static constexpr std::size_t kMaxCandidates = 64;  // if more rows share a key, it identifies none

  void index_rows() {
    for (std::size_t i = 0; i < join_.queues.size(); ++i) {
      const JoinedQueue& row = join_.queues[i];
      if (row.runtime != nullptr && row.runtime->is_ring) by_ring_[row.runtime->hwq].insert(i);
      for (const Sighting& sighting : row.sightings) {
        const kfd::Queue& queue = *sighting.queue;
        if (queue.ring_base != 0) by_ring_[queue.ring_base].insert(i);
        for (const std::uint64_t mqd : queue.mqd_bases) by_mqd_[mqd].insert(i);
        if (queue.doorbell) by_doorbell_[*queue.doorbell].insert(i);
        if (queue.queue_id && queue.pid) by_id_[{*queue.pid, *queue.queue_id}].insert(i);
      }
    }
  }

  std::set<std::size_t> rows_with_a_key(const KfdSpan& call) const {
    std::set<std::size_t> rows;
    const auto take = [&](const auto& index, const auto& key) {
      const auto found = index.find(key);
      if (found != index.end() && found->second.size() <= kMaxCandidates)
        rows.insert(found->second.begin(), found->second.end());
    };
    if (call.ring_base) take(by_ring_, *call.ring_base);
    if (call.mqd_base) take(by_mqd_, *call.mqd_base);
    if (call.doorbell) take(by_doorbell_, *call.doorbell);
    if (call.queue_id && call.process) take(by_id_, std::pair(*call.process, *call.queue_id));
    return rows;
  }

  // Whether the call may have happened between the runtime's two lines, and before the queue was first seen.
  bool fits_in_time(const JoinedQueue& row, const KfdSpan& call) const {
    if (call.started_ns == INT64_MIN) return true;
    const Moment start = moment_of_trace(call.started_ns, join_.clock.range);
    const Moment end = call.ended_ns == INT64_MIN ? start : moment_of_trace(call.ended_ns, join_.clock.range);
    if (row.runtime != nullptr) {
      if (row.runtime->asked_ns != kNoTime && start.high_ns < moment_of_log(row.runtime->asked_ns).low_ns) return false;
      if (row.runtime->created_ns != kNoTime && end.low_ns > moment_of_log(row.runtime->created_ns).high_ns)
        return false;
    }
    if (!row.sightings.empty()) {
      const std::int64_t seen_ns = input_.snapshots[row.sightings.front().snapshot].taken_ns;
      if (seen_ns != INT64_MIN && row.runtime == nullptr && start.low_ns > seen_ns) return false;
    }
    return true;
  }

  void match_by_keys(bool uses_time) {
    std::vector<std::vector<std::size_t>> rows(creates_.size());
    std::map<std::size_t, std::size_t> claims;  // row -> creations that could belong to it
    for (std::size_t i = 0; i < creates_.size(); ++i) {
      if (row_of_[i] != kNone) continue;
      for (const std::size_t row : rows_with_a_key(*creates_[i])) {
        const JoinedQueue& joined = join_.queues[row];
        if (joined.create != nullptr || agreement_of(joined, *creates_[i]).is_contradicted) continue;
        if (uses_time && !fits_in_time(joined, *creates_[i])) continue;
        rows[i].push_back(row);
        ++claims[row];
      }
    }
    for (std::size_t i = 0; i < creates_.size(); ++i) {
      if (rows[i].empty()) continue;
      if (rows[i].size() == 1 && claims[rows[i][0]] == 1)
        take(i, rows[i][0], uses_time);
      else if (uses_time || !join_.clock.is_known())
        for (const std::size_t row : rows[i]) contested_[row] = std::max(contested_[row], claims[row]);
    }
  }

  // According to the log, one creation of this process lies in this bracket; if the trace has exactly one there that
  // may belong to this process, it is the one.
  void match_by_time() {
    std::map<std::size_t, std::vector<std::size_t>> creates_of;  // row -> creations
    std::vector<std::size_t> rows_of(creates_.size());
    std::vector<std::size_t> rows;
    for (std::size_t row = 0; row < join_.queues.size(); ++row) {
      const JoinedQueue& joined = join_.queues[row];
      if (joined.create == nullptr && joined.process && join_.processes[*joined.process].host_pid &&
          joined.runtime->asked_ns != kNoTime && joined.runtime->created_ns != kNoTime)
        rows.push_back(row);
    }
    if (rows.size() * creates_.size() > kMaxPairs) return;
    for (const std::size_t row : rows)
      for (std::size_t i = 0; i < creates_.size(); ++i) {
        const KfdSpan& call = *creates_[i];
        const JoinedQueue& joined = join_.queues[row];
        if (row_of_[i] != kNone || call.started_ns == INT64_MIN || !may_be_of(call, *joined.host_pid) ||
            agreement_of(joined, call).is_contradicted || !fits_in_time(joined, call))
          continue;
        creates_of[row].push_back(i);
        ++rows_of[i];
      }
    for (const auto& [row, creates] : creates_of) {
      if (creates.size() == 1 && rows_of[creates[0]] == 1)
        take(creates[0], row, true);
      else
        contested_[row] = std::max(contested_[row], creates.size());
    }
  }

  void take(std::size_t create, std::size_t row, bool uses_time) {
    JoinedQueue& joined = join_.queues[row];
    const KfdSpan& call = *creates_[create];
    KeyAgreement found = agreement_of(joined, call);
    const bool is_log = joined.runtime != nullptr && !found.snapshot;
    if (uses_time) found.keys.push_back(MatchKey::time);
    joined.evidence.push_back({is_log ? MatchSide::log : MatchSide::snapshot, MatchSide::trace, std::move(found.keys),
                               is_log ? std::nullopt : found.snapshot, call.process && joined.host_pid});
    joined.create = &call;
    if (!joined.host_pid) joined.host_pid = call.process;
    row_of_[create] = row;
    contested_.erase(row);
  }

  // An unmatched creation gets a row only if it cannot belong to a row that lacks a creation; otherwise a queue would
  // be counted twice because two parts show too little of it.
  void add_rows() {
    const std::size_t rows = join_.queues.size();
    std::vector<std::size_t> open;
    for (std::size_t row = 0; row < rows; ++row)
      if (join_.queues[row].create == nullptr) open.push_back(row);
    const bool is_too_much = open.size() * creates_.size() > kMaxPairs;
    for (std::size_t i = 0; i < creates_.size(); ++i) {
      if (row_of_[i] != kNone) continue;
      const KfdSpan& call = *creates_[i];
      const bool may_be_open = is_too_much || std::any_of(open.begin(), open.end(), [&](std::size_t row) {
                                 return !agreement_of(join_.queues[row], call).is_contradicted &&
                                        (!join_.clock.is_known() || fits_in_time(join_.queues[row], call));
                               });
      if (may_be_open) {
        ++join_.unplaced_creates;
        continue;
      }
      JoinedQueue row;
      row.host_pid = call.process;
      row.create = &call;
      join_.queues.push_back(std::move(row));
    }
  }

  // The first destruction of this id after the creation, unless the id was assigned again before: then this queue's
  // destruction was not traced.
  void find_destroys() {
    std::map<std::pair<int, std::uint32_t>, const KfdSpan*> last_create;
    std::unordered_map<const KfdSpan*, const KfdSpan*> destroy_of;
    for (const KfdSpan& call : input_.calls) {
      if (call.verb == KfdVerb::update || !call.process || !call.queue_id || call.started_ns == INT64_MIN ||
          has_failed(call))
        continue;
      const KfdSpan*& create = last_create[{*call.process, *call.queue_id}];
      if (call.verb == KfdVerb::destroy && create != nullptr) destroy_of[create] = &call;
      create = call.verb == KfdVerb::create ? &call : nullptr;
    }
    for (JoinedQueue& row : join_.queues)
      if (const auto found = destroy_of.find(row.create); found != destroy_of.end()) row.destroy = found->second;
  }

 public:
  // Rows that several creations fit, or that share one.
  const std::map<std::size_t, std::size_t>& contested() const { return contested_; }

 private:
  static constexpr std::size_t kMaxPairs = std::size_t{1} << 24;
  const JoinInput& input_;
  Join& join_;
  std::vector<const KfdSpan*> creates_;
  std::vector<std::size_t> row_of_;  // creates_
  std::unordered_map<std::uint64_t, std::set<std::size_t>> by_ring_, by_mqd_;
  std::unordered_map<std::uint32_t, std::set<std::size_t>> by_doorbell_;
  std::map<std::pair<int, std::uint32_t>, std::set<std::size_t>> by_id_;
  std::map<std::size_t, std::size_t> contested_;
};

}  // namespace

void match_trace(const JoinInput& input, Join& join) {
  TraceMatcher matcher(input, join);
  matcher.match();
  for (const auto& [row, creations] : matcher.contested())
    join.queues[row].absences.push_back(
        {MatchSide::trace,
         creations == 1 ? std::string("a creation of the trace fits it and other queues alike")
                        : fmt::format("{} creations of the trace fit it and cannot be distinguished", creations)});
}

}  // namespace weir::amd
