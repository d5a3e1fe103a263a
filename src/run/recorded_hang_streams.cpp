#include "run/recorded_hang_streams.h"

#include <algorithm>

namespace weir {
namespace {

using record::Kind;
using record::kNone;
using Why = StreamStand::Why;

constexpr int kMaxDepth = 64;  // of events that wait for events
constexpr std::size_t kMaxCandidates = 8;
constexpr std::uint64_t kMaxSubmitted = UINT64_MAX / 4;  // no program submits more, and sums of a few fit
constexpr std::uint64_t kNoNumber = UINT64_MAX;

bool has_run(const RecordedEntry& entry) noexcept { return entry.flags == 0; }

}  // namespace

std::int64_t elapsed_ns(std::int64_t then_ns, std::int64_t now_ns) noexcept {
  if (then_ns >= now_ns) return 0;
  const std::uint64_t apart = static_cast<std::uint64_t>(now_ns) - static_cast<std::uint64_t>(then_ns);
  return static_cast<std::int64_t>(std::min<std::uint64_t>(apart, INT64_MAX));
}

RecordedStreams::RecordedStreams(const Recording& recording)
    : recording_(recording), roles_(record::kFunctions, Role::other), of_(recording.streams.size()) {
  is_complete_ = recording.header.claimed <= recording.header.chunks && recording.header.lost == 0;
  for (std::uint32_t i = 0; i < roles_.size(); ++i) {
    const std::string_view name = recording.function(i);
    const auto has = [&](std::string_view part) { return name.find(part) != std::string_view::npos; };
    roles_[i] = has("WaitValue")       ? Role::wait_value
                : has("WriteValue")    ? Role::write_value
                : has("BatchMemOp")    ? Role::batch
                : has("StreamDestroy") ? Role::destroy_stream
                                       : Role::other;
  }
  std::uint32_t device = kNone;
  for (std::size_t i = 0; i < of_.size(); ++i) {
    const record::Stream& from = recording.streams[i];
    if (from.is_used == 0) continue;
    OneStream& to = of_[i];
    to.submitted = std::min(from.submitted, kMaxSubmitted);
    to.ended = std::min(from.ended, to.submitted);
    to.pending = from.pending > to.ended && from.pending <= to.submitted ? from.pending : 0;
    to.is_destroyed = from.is_destroyed != 0;
    if (device != kNone && from.device != kNone && from.device != device) has_devices_ = true;
    if (from.device != kNone) device = from.device;
  }
  read_entries();
  raise_ends();
  for (OneStream& one : of_) {
    while (one.open < one.operations.size() && one.operations[one.open].number <= one.ended) ++one.open;
    if (one.pending <= one.ended) one.pending = 0;
  }
}

RecordedStreams::Role RecordedStreams::role(const RecordedEntry& entry) const noexcept {
  return entry.function < roles_.size() ? roles_[entry.function] : Role::other;
}

bool RecordedStreams::is_used(std::uint32_t place) const noexcept {
  return place < of_.size() && recording_.streams[place].is_used != 0;
}

bool RecordedStreams::is_unfinished(std::uint32_t place) const noexcept {
  // Nobody looks at the end of a stream that was destroyed, unless a mark stands on it.
  const OneStream& one = of_[place];
  return one.ended < one.submitted && (!one.is_destroyed || one.pending != 0);
}

bool RecordedStreams::is_proven(std::uint32_t place) const noexcept { return of_[place].pending != 0; }

std::uint64_t RecordedStreams::number_of(const RecordedEntry& entry) const noexcept {
  const std::uint64_t submitted = of_[entry.stream].submitted;
  const auto low = static_cast<std::uint32_t>(submitted);
  const std::uint32_t behind = low - entry.number;
  if (behind < submitted) return submitted - behind;
  // The table was copied before the entries: commands may have followed.
  if (entry.number > low && entry.ended_ns > recording_.streams[entry.stream].submitted_ns)
    return submitted + (entry.number - low);
  return 0;
}

// Streams use the places of destroyed ones: the first entry of each place that belongs to its stream of now.
std::vector<std::size_t> RecordedStreams::first_entries() const {
  std::vector<std::size_t> first(of_.size(), 0), last(of_.size(), kNoEntry);
  for (std::size_t i = 0; i < recording_.entries.size(); ++i) {
    const RecordedEntry& entry = recording_.entries[i];
    if (entry.stream >= of_.size() || !has_run(entry)) continue;
    if (role(entry) == Role::destroy_stream && !of_[entry.stream].is_destroyed) {
      first[entry.stream] = i + 1;
      last[entry.stream] = kNoEntry;
    }
    if (!record::is_command(static_cast<Kind>(entry.kind))) continue;
    const std::uint64_t number = number_of(entry);
    if (number == 0) {
      first[entry.stream] = i + 1;
    } else if (number == 1 && last[entry.stream] != kNoEntry) {
      first[entry.stream] = last[entry.stream] + 1;
    }
    last[entry.stream] = i;
  }
  return first;
}

void RecordedStreams::read_entries() {
  const std::vector<std::size_t> first = first_entries();
  // Waits that no command has followed so far: indexes into operations. Only a command that was submitted after the
  // wait had returned is known to stand after it.
  struct Pending {
    std::vector<std::size_t> waits;
    std::size_t next = 0;
  };
  std::vector<Pending> pending(of_.size());
  // Records of events before the first kept command of a stream, by event and place in its points: how many commands
  // stand before them shows when that command comes.
  std::vector<std::vector<std::pair<std::uint64_t, std::size_t>>> early(of_.size());
  const auto place_early = [&](std::uint32_t stream, std::uint64_t number) {
    for (const auto& [event, at] : early[stream]) {
      EventPoint& point = events_[event][at];
      point.number = of_[stream].operations[point.operation].number = number;
    }
    early[stream].clear();
  };
  for (std::size_t i = 0; i < recording_.entries.size(); ++i) {
    const RecordedEntry& entry = recording_.entries[i];
    if (!has_run(entry)) continue;
    const auto kind = static_cast<Kind>(entry.kind);
    if (kind == Kind::event_create || kind == Kind::event_destroy) {
      events_[entry.object].push_back({.entry = i, .is_creation = kind == Kind::event_create});
      continue;
    }
    const bool is_known = entry.stream < of_.size();
    const bool is_of_now = is_known && i >= first[entry.stream];
    if (kind == Kind::event_record && !is_of_now) events_[entry.object].push_back({.entry = i, .is_record = is_known});
    if (record::is_command(kind) && is_known && !is_of_now) ++ended_launches_[entry.name];
    if (!is_of_now) continue;
    OneStream& one = of_[entry.stream];
    if (record::is_command(kind)) {
      const std::uint64_t number = number_of(entry);
      one.submitted = std::max(one.submitted, number);
      place_early(entry.stream, number - 1);
      Pending& waits = pending[entry.stream];
      for (; waits.next < waits.waits.size(); ++waits.next) {
        Operation& wait = one.operations[waits.waits[waits.next]];
        if (recording_.entries[wait.entry].ended_ns > entry.started_ns) break;
        wait.number = number;
      }
      if (role(entry) == Role::write_value)
        writes_[entry.object].push_back({entry.stream, number, one.operations.size() + 1});
      if (number <= one.ended) ++ended_launches_[entry.name];
      one.operations.push_back({Operation::Kind::command, i, number});
    } else if (kind == Kind::stream_wait_event) {
      pending[entry.stream].waits.push_back(one.operations.size());
      one.operations.push_back({Operation::Kind::wait, i, kNoNumber});
    } else if (kind == Kind::event_record) {
      // Commands that other threads submitted meanwhile may stand before it or after it, and do not count.
      std::uint64_t number = kNoNumber;
      for (std::size_t at = one.operations.size(); number == kNoNumber && at-- > 0;) {
        const Operation& earlier = one.operations[at];
        if (earlier.kind == Operation::Kind::record) {
          number = earlier.number;
          break;
        }
        if (earlier.kind == Operation::Kind::command && recording_.entries[earlier.entry].ended_ns <= entry.started_ns)
          number = earlier.number;
      }
      if (number == kNoNumber) early[entry.stream].push_back({entry.object, events_[entry.object].size()});
      events_[entry.object].push_back({.entry = i,
                                       .stream = entry.stream,
                                       .is_record = true,
                                       .number = number,
                                       .operation = one.operations.size()});
      one.operations.push_back({Operation::Kind::record, i, number});
    }
  }
  for (std::uint32_t place = 0; place < of_.size(); ++place) place_early(place, of_[place].submitted);
}

// A stream is further than its marks say where something that waited for it has ended.
void RecordedStreams::raise_ends() {
  const auto raise = [&](std::uint32_t place, std::uint64_t number) {
    OneStream& one = of_[place];
    if (number <= one.ended || number > one.submitted) return false;
    one.ended = number;
    return true;
  };
  if (recording_.header.is_exact != 0) {
    std::unordered_map<std::uint32_t, Write> unfinished;  // by correlation
    for (std::uint32_t place = 0; place < of_.size(); ++place)
      for (const Operation& operation : of_[place].operations)
        if (const RecordedEntry& entry = recording_.entries[operation.entry];
            operation.kind == Operation::Kind::command && operation.number > of_[place].ended &&
            static_cast<Kind>(entry.kind) != Kind::graph_launch)
          unfinished[entry.correlation] = {place, operation.number};
    for (const RecordedEntry& entry : recording_.entries)
      if (static_cast<Kind>(entry.kind) == Kind::device)
        if (const auto found = unfinished.find(entry.correlation); found != unfinished.end())
          raise(found->second.stream, found->second.number);
  }
  for (std::size_t i = 0; i < recording_.entries.size(); ++i)
    if (const RecordedEntry& entry = recording_.entries[i];
        static_cast<Kind>(entry.kind) == Kind::event_synchronize && has_run(entry))
      if (const EventPoint* const point = point_before(entry.object, i); point != nullptr && point->stream != kNone)
        raise(point->stream, point->number);
  bool has_changed = true;
  for (int round = 0; round < 8 && has_changed; ++round) {
    has_changed = false;
    for (const OneStream& one : of_)
      for (const Operation& operation : one.operations) {
        if (operation.kind != Operation::Kind::wait || operation.number > one.ended) continue;
        const EventPoint* const point = point_before(recording_.entries[operation.entry].object, operation.entry);
        if (point != nullptr && point->stream != kNone) has_changed |= raise(point->stream, point->number);
      }
  }
}

const RecordedStreams::EventPoint* RecordedStreams::point_before(std::uint64_t event, std::size_t entry) const {
  const auto found = events_.find(event);
  if (found == events_.end()) return nullptr;
  const auto after = std::lower_bound(found->second.begin(), found->second.end(), entry,
                                      [](const EventPoint& point, std::size_t at) { return point.entry < at; });
  return after == found->second.begin() ? nullptr : &*(after - 1);
}

RecordedStreams::Recorded RecordedStreams::recorded_last(std::uint64_t event) const {
  const EventPoint* const point = point_before(event, kNoEntry);
  return point == nullptr ? Recorded{} : Recorded{point->stream, point->number};
}

RecordedStreams::EventState RecordedStreams::state_of(const Operation& wait, const EventPoint*& point,
                                                      int depth) const {
  point = point_before(recording_.entries[wait.entry].object, wait.entry);
  if (point == nullptr) return is_complete_ ? EventState::foreign : EventState::lost;
  // Waiting for an event that was created and never recorded does nothing.
  if (point->stream == kNone) return EventState::reached;
  const OneStream& one = of_[point->stream];
  if (point->number > one.ended) return EventState::blocked;
  if (const auto known = known_states_.find(wait.entry); known != known_states_.end()) return known->second;
  // Between the last command and the record there may be waits that have not ended.
  EventState state = EventState::reached;
  for (std::size_t at = point->operation; depth < kMaxDepth && state == EventState::reached && at-- > 0;) {
    if (steps_left_ == 0 || --steps_left_ == 0) break;
    const Operation& before = one.operations[at];
    if (before.kind == Operation::Kind::command) break;
    const EventPoint* ignored = nullptr;
    if (before.kind == Operation::Kind::wait && before.number > one.ended &&
        state_of(before, ignored, depth + 1) == EventState::blocked)
      state = EventState::blocked;
  }
  known_states_[wait.entry] = state;
  return state;
}

// `bound`: the first unfinished command is not after this one. Only the first `end` operations count; with a tail also
// the waits after that command.
StreamStand RecordedStreams::stand_of(std::uint32_t place, std::uint64_t bound, std::size_t end, bool has_tail) const {
  const OneStream& one = of_[place];
  if (one.pending != 0 && one.pending < bound) {
    bound = one.pending;
    has_tail = false;
  }
  StreamStand stand;
  stand.stream = place;
  stand.first = one.ended + 1;
  stand.last = bound;
  std::vector<StreamCandidate> found;
  end = std::min(end, one.operations.size());
  for (std::size_t at = one.open; at < end && steps_left_ > 0; ++at) {
    --steps_left_;
    const Operation& operation = one.operations[at];
    const RecordedEntry& entry = recording_.entries[operation.entry];
    if (operation.number <= one.ended || operation.kind == Operation::Kind::record) continue;
    if (operation.number > bound && !(has_tail && operation.kind == Operation::Kind::wait)) continue;
    if (operation.kind == Operation::Kind::wait) {
      const EventPoint* point = nullptr;
      const EventState state = state_of(operation, point, 0);
      stand.object = entry.object;
      stand.position = operation.number;
      stand.blocker = operation.entry;
      if (state == EventState::blocked) {
        stand.why = Why::event;
        stand.target = point->stream;
        stand.target_number = point->number;
        stand.target_end = point->operation;
        stand.last = std::min(bound, operation.number);
        return stand;
      }
      const bool is_next = operation.number == one.ended + 1;
      if (state == EventState::foreign && is_next) {
        stand.why = Why::foreign;
        stand.last = stand.first;
        return stand;
      }
      if (state == EventState::lost && is_next) stand.lost_event = entry.object;
      continue;
    }
    if (role(entry) == Role::wait_value)
      if (const auto writes = writes_.find(entry.object); writes != writes_.end())
        for (const Write& write : writes->second) {
          if (steps_left_ > 0) --steps_left_;
          const bool is_earlier = write.stream == place && write.number < operation.number;
          if (is_earlier || write.number <= of_[write.stream].ended) continue;
          stand.why = Why::value;
          stand.object = entry.object;
          stand.position = stand.last = operation.number;
          stand.blocker = operation.entry;
          stand.target = write.stream;
          stand.target_number = write.number;
          stand.target_end = write.operation;
          return stand;
        }
    found.push_back({operation.number, operation.entry});
  }
  stand.blocker = kNoEntry;
  stand.known = found.size();
  rank(stand, found);
  return stand;
}

bool RecordedStreams::has_name(const StreamCandidate& command) const {
  return command.entry != kNoEntry && recording_.entries[command.entry].name != record::kNoText;
}

void RecordedStreams::rank(StreamStand& stand, std::vector<StreamCandidate>& found) const {
  enum : int {
    waits_for_value = 0,
    communicates = 1,
    may_wait = 2,
    is_new = 3,
    is_unknown = 4,
    copies = 5,
    ran_before = 6
  };
  const auto writes_of = [&](const StreamCandidate& one) {
    const auto writes = writes_.find(recording_.entries[one.entry].object);
    return writes == writes_.end() ? 0 : writes->second.size();
  };
  for (StreamCandidate& one : found) {
    const RecordedEntry& entry = recording_.entries[one.entry];
    const auto kind = static_cast<Kind>(entry.kind);
    const auto ran = ended_launches_.find(entry.name);
    if (role(entry) == Role::wait_value) {
      one.rank = writes_of(one) == 0 ? waits_for_value : may_wait;
    } else if (role(entry) == Role::batch) {
      one.rank = may_wait;
    } else if (kind == Kind::launch && is_collective(one)) {
      one.rank = communicates;
    } else if (kind == Kind::copy || kind == Kind::memset || kind == Kind::synchronous_copy ||
               role(entry) == Role::write_value) {
      one.rank = copies;
    } else if (entry.name != record::kNoText && ran != ended_launches_.end()) {
      // The more often it has ended, the less likely it is the one that does not.
      one.rank = ran_before + static_cast<int>(std::min<std::uint64_t>(ran->second, 1'000'000));
    } else {
      one.rank = kind == Kind::launch && entry.name == record::kNoText ? is_unknown : is_new;
    }
  }
  std::stable_sort(found.begin(), found.end(), [](const auto& a, const auto& b) { return a.rank < b.rank; });
  if (found.size() > kMaxCandidates) found.resize(kMaxCandidates);
  if (found.empty() && stand.first <= stand.last) found.push_back({stand.first, kNoEntry, is_unknown});
  stand.candidates = std::move(found);
  if (stand.candidates.empty() || stand.candidates[0].entry == kNoEntry) return;
  if (role(recording_.entries[stand.candidates[0].entry]) != Role::wait_value) return;
  stand.why = Why::written;
  stand.object = recording_.entries[stand.candidates[0].entry].object;
  stand.position = stand.candidates[0].number;
  stand.writes = writes_of(stand.candidates[0]);
}

}  // namespace weir
