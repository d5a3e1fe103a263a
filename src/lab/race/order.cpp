#include "lab/race/order.h"

#include <algorithm>
#include <set>

namespace weir::race {

// True if something was news.
bool Order::merge(Clock& into, const Clock& from) {
  if (into.size() < from.size()) into.resize(from.size(), 0);
  bool has_grown = false;
  for (std::size_t i = 0; i < from.size(); ++i) {
    has_grown |= from[i] > into[i];
    into[i] = std::max(into[i], from[i]);
  }
  return has_grown;
}

std::uint32_t Order::lane_of(std::uint32_t stream) {
  const auto [place, is_new] = lane_of_stream_.try_emplace(stream, static_cast<std::uint32_t>(lanes_.size()));
  if (is_new) {
    lanes_.emplace_back().stream = stream;
    lanes_.back().clock.resize(lanes_.size(), 0);
  }
  return place->second;
}

Order::Host& Order::host_of(std::uint32_t thread) {
  const auto [place, is_new] = host_of_thread_.try_emplace(thread, static_cast<std::uint32_t>(hosts_.size()));
  if (is_new) hosts_.emplace_back();
  return hosts_[place->second];
}

bool Order::has_waited(std::uint32_t thread, Moment earlier) const {
  const auto found = host_of_thread_.find(thread);
  return found != host_of_thread_.end() && knows(hosts_[found->second].clock, earlier);
}

void Order::wait_in_host(std::uint32_t thread, const Clock& clock) {
  Host& host = host_of(thread);
  if (merge(host.clock, clock)) ++host.version;
  merge(all_hosts_, clock);
}

// What every operation of a stream comes after: what its thread has waited for and, by the rules of the legacy default
// stream, what that or the blocking streams have got.
void Order::begin(const Call& call) {
  Lane& lane = lanes_[now_.lane];
  if (capture_ != 0) return;  // nothing runs while it is captured
  const Host& host = host_of(call.name.thread);
  if (host.version != 0 && (lane.host != call.name.thread || lane.host_version != host.version)) {
    merge(lane.clock, host.clock);
    lane.host = call.name.thread;
    lane.host_version = host.version;
  }
  const Stream& stream = log_->streams[call.stream];
  if (!stream.is_legacy && !stream.is_blocking) return;
  Legacy& legacy = legacies_[stream.device];
  if (stream.is_legacy) {
    for (const std::uint32_t unseen : legacy.unseen) {
      merge(lane.clock, lanes_[unseen].clock);
      lanes_[unseen].is_unseen = false;
    }
    legacy.unseen.clear();
  } else if (lane.legacy_version != legacy.version) {
    merge(lane.clock, legacy.clock);
    lane.legacy_version = legacy.version;
  }
}

void Order::end(const Call& call) {
  if (capture_ != 0) return;
  Lane& lane = lanes_[now_.lane];
  const Stream& stream = log_->streams[call.stream];
  if (stream.is_legacy) {
    Legacy& legacy = legacies_[stream.device];
    if (merge(legacy.clock, lane.clock)) ++legacy.version;
  } else if (stream.is_blocking && !lane.is_unseen) {
    lane.is_unseen = true;
    legacies_[stream.device].unseen.push_back(now_.lane);
  }
  if (call.is_synchronous && is_command(call.kind)) wait_in_host(call.name.thread, lane.clock);
}

// A stream that waits for a word in memory comes after whoever wrote it last in the order of the log.
void Order::pass_words(const Call& call) {
  Clock& clock = lanes_[now_.lane].clock;
  for (const Range& range : log_->ranges_of(call)) {
    if (range.reads) {
      if (const auto found = words_.find(range.begin); found != words_.end()) merge(clock, found->second);
    }
    if (range.writes) merge(words_[range.begin], clock);
  }
}

// The allocator hands out a block only where its release is over in the new owner's stream; it adds waits for that.
void Order::reuse(const Call& call) {
  Clock& clock = lanes_[now_.lane].clock;
  for (const Range& range : log_->ranges_of(call)) {
    auto block = freed_.lower_bound(range.begin);
    if (block != freed_.begin() && std::prev(block)->second.end > range.begin) --block;
    while (block != freed_.end() && block->first < range.end) {
      if (call.kind == Kind::allocate) merge(clock, block->second.clock);
      const bool is_covered = block->first >= range.begin && block->second.end <= range.end;
      block = is_covered ? freed_.erase(block) : std::next(block);
    }
    if (call.kind == Kind::release) freed_[range.begin] = {range.end, clock};
  }
}

void Order::operate(const Call& call) {
  if (call.stream >= log_->streams.size()) return;
  now_.lane = lane_of(call.stream);
  begin(call);
  Clock& clock = lanes_[now_.lane].clock;
  switch (call.kind) {
    case Kind::event_record:
      events_[call.object] = clock;
      break;
    case Kind::stream_wait_event:
      if (const auto event = events_.find(call.object); event != events_.end()) merge(clock, event->second);
      break;
    case Kind::allocate:
    case Kind::release:
      reuse(call);
      break;
    default: {
      std::uint32_t& position = clock[now_.lane];
      now_.position = ++position;
      if (call.kind == Kind::memory_operation) pass_words(call);
    }
  }
  end(call);
}

void Order::synchronize(const Call& call) {
  const bool is_whole = call.kind == Kind::context_synchronize;
  if (!is_whole && call.stream >= log_->streams.size()) return;
  for (const Lane& lane : lanes_) {
    const Stream& stream = log_->streams[lane.stream];
    // A wait for the legacy default stream is one for what that would come after.
    const bool is_behind_legacy = !is_whole && log_->streams[call.stream].is_legacy && stream.is_blocking &&
                                  stream.device == log_->streams[call.stream].device;
    if (is_behind_legacy || (is_whole ? stream.device == call.device : lane.stream == call.stream))
      wait_in_host(call.name.thread, lane.clock);
  }
}

void Order::take(std::uint32_t index) {
  const Call& call = log_->calls[index];
  if (call.is_captured ? capture_ == 0 || call.capture != capture_ : capture_ != 0) return;
  switch (call.kind) {
    case Kind::event_synchronize:
      if (const auto event = events_.find(call.object); event != events_.end())
        wait_in_host(call.name.thread, event->second);
      return;
    case Kind::stream_synchronize:
    case Kind::context_synchronize:
      return synchronize(call);
    case Kind::checkpoint:
      return;
    default:
      return operate(call);
  }
}

std::vector<bool> are_ordered(const Log& log, std::span<const std::pair<std::uint32_t, std::uint32_t>> pairs) {
  std::vector<bool> ordered(pairs.size(), false);
  const auto is_command_of = [&](std::uint32_t index, std::uint32_t capture) {
    return index < log.calls.size() && is_command(log.calls[index].kind) &&
           log.calls[index].stream < log.streams.size() && log.calls[index].capture == capture &&
           log.calls[index].is_captured == (capture != 0);
  };
  std::set<std::uint32_t> captures;
  for (const auto& [first, second] : pairs)
    if (first < log.calls.size()) captures.insert(log.calls[first].capture);
  for (const std::uint32_t capture : captures) {
    std::unordered_map<std::uint32_t, Moment> firsts;
    std::unordered_multimap<std::uint32_t, std::size_t> seconds;
    for (std::size_t i = 0; i < pairs.size(); ++i) {
      const auto [first, second] = pairs[i];
      if (first >= second || !is_command_of(first, capture) || !is_command_of(second, capture)) continue;
      firsts[first] = {};
      seconds.emplace(second, i);
    }
    if (seconds.empty()) continue;
    Order order(log, capture);
    for (std::uint32_t index = 0; index < log.calls.size(); ++index) {
      order.take(index);
      if (const auto found = firsts.find(index); found != firsts.end()) found->second = order.now();
      const auto [begin, end] = seconds.equal_range(index);
      for (auto pair = begin; pair != end; ++pair)
        ordered[pair->second] = order.is_after(firsts[pairs[pair->second].first]);
    }
  }
  return ordered;
}

}  // namespace weir::race
