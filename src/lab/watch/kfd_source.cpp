#include "lab/watch/kfd_source.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <tuple>
#include <utility>

#include "base/clock.h"
#include "lab/watch/kfd_use.h"

namespace weir::watch {
namespace {

constexpr const char* kNoStreams = "KFD knows queues, not streams: `weir amd log` does";
constexpr const char* kNoKernels = "a packet may be a kernel or a barrier, and KFD does not look into it";
constexpr const char* kNoBusy = "KFD shows a moment, not how long a queue was busy";
constexpr const char* kMayWrap = "the ring may have wrapped more than once between two looks";

std::string queue_key(const kfd::Queue& queue) {
  return fmt::format("{:x}/{}/{}/{:x}", queue.gpu_id, queue.pid ? fmt::format("{}", *queue.pid) : "-",
                     name_of(queue.kind), queue.ring_base);
}

// "f7bc pid 4000 #3", or "f7bc 4000 @7f41b5200000" if KFD's number for it is unknown.
std::string label_of(const kfd::Queue& queue) {
  const std::string pid = queue.pid ? fmt::format("{}", *queue.pid) : "?";
  std::string label = queue.queue_id ? fmt::format("{:x} pid {} #{}", queue.gpu_id, pid, *queue.queue_id)
                                     : fmt::format("{:x} {} @{:x}", queue.gpu_id, pid, queue.ring_base);
  if (queue.kind != kfd::QueueKind::compute) label += fmt::format(" {}", name_of(queue.kind));
  return label;
}

using SlotId = std::tuple<std::uint32_t, int, int, int>;  // GPU, XCC, pipe, queue

std::map<SlotId, RingPosition> positions_by_slot(const kfd::Snapshot& snapshot) {
  std::map<SlotId, RingPosition> positions;
  if (!snapshot.hqds) return positions;
  for (const kfd::HqdNode& node : snapshot.hqds->nodes)
    for (const kfd::HqdSlot& slot : node.slots)
      if (slot.state == kfd::SlotState::active)
        positions.try_emplace({node.gpu_id, slot.xcc, slot.pipe, slot.queue},
                              RingPosition{slot.xcc, slot.image.read_dword, slot.image.write_dword,
                                           slot.image.ring_dwords, slot.image.backlog_dwords()});
  return positions;
}

std::vector<RingPosition> positions_of(const kfd::Queue& queue, const std::map<SlotId, RingPosition>& by_slot) {
  std::vector<RingPosition> positions;
  if (queue.kind != kfd::QueueKind::compute) return positions;
  for (const kfd::Slot& slot : queue.slots)
    if (const auto found = by_slot.find({queue.gpu_id, slot.xcc, slot.pipe, slot.queue}); found != by_slot.end())
      positions.push_back(found->second);
  return positions;
}

// "7 medium": the queue's own priority, and the level that its pipe derives from it.
void set_priority(const kfd::Queue& queue, Row& row) {
  static constexpr std::array<const char*, 3> kPipe = {"low", "medium", "high"};
  if (!queue.queue_priority) {
    row.priority = unknown("not shown for this queue");
    return;
  }
  row.priority = known(*queue.queue_priority);
  if (queue.pipe_priority && *queue.pipe_priority >= 0 && *queue.pipe_priority < 3)
    row.priority_text =
        fmt::format("{} {}", *queue.queue_priority, kPipe[static_cast<std::size_t>(*queue.pipe_priority)]);
}

Row row_of(const kfd::Snapshot& snapshot, const kfd::Queue& queue) {
  Row row;
  row.key = queue_key(queue);
  row.label = label_of(queue);
  row.device = fmt::format("gpu {:x}", queue.gpu_id);
  row.kind = name_of(queue.kind);
  row.pid = queue.pid;
  if (queue.is_mapping_known) {
    row.is_active = queue.is_active;
    row.is_mapped = !queue.slots.empty();
  } else {
    row.active_reason = snapshot.hqds ? "hqds does not show all slots of its GPU" : "hqds could not be read";
  }
  row.is_preempted = queue.was_preempted;
  row.backlog = queue.backlog_packets ? known(static_cast<double>(*queue.backlog_packets))
                : queue.kind == kfd::QueueKind::sdma
                    ? unknown("packets of an SDMA ring differ in size")
                    : unknown("its pointers are not shown, or a full ring looks like an empty one");
  row.most_backlog = unknown("KFD shows a moment, not what was between two");
  set_priority(queue, row);
  row.streams = unknown(kNoStreams);
  row.kernels_per_s = row.kernels = unknown(kNoKernels);
  row.commands_per_s = row.commands = unknown(kNoKernels);
  row.busy = unknown(kNoBusy);
  return row;
}

std::string why_no_position(const kfd::Snapshot& snapshot, const kfd::Queue& queue) {
  if (!snapshot.hqds) return "hqds could not be read";
  if (queue.kind == kfd::QueueKind::sdma) return "packets of an SDMA ring differ in size";
  return queue.slots.empty() ? "not mapped now" : "its slot's pointers are not shown";
}

}  // namespace

SampleValue dwords_read(const RingPosition& before, const RingPosition& after) {
  if (before.ring_dwords == 0 || before.ring_dwords != after.ring_dwords) return unknown("not the same ring as before");
  if (after.write_dword < before.write_dword && before.write_dword >= before.ring_dwords)
    return unknown("the write pointer went back: not the same queue as before");
  const bool counts_on = after.write_dword >= after.ring_dwords && after.write_dword >= before.write_dword;
  if (counts_on && before.backlog_dwords && after.backlog_dwords) {
    const std::uint64_t had = before.write_dword - std::min(before.write_dword, *before.backlog_dwords);
    const std::uint64_t has = after.write_dword - std::min(after.write_dword, *after.backlog_dwords);
    if (has >= had) return known(static_cast<double>(has - had));
  }
  const std::uint64_t ring = before.ring_dwords;
  const std::uint64_t from = before.read_dword % ring, to = after.read_dword % ring;
  if (to >= from) return at_least(static_cast<double>(to - from), kMayWrap);
  // It can only have wrapped at the ring's end; a write pointer that counts on has passed it as well.
  if (!counts_on) return unknown("the read pointer went back: over the ring's end, or not the same queue as before");
  return at_least(static_cast<double>(ring - from + to), kMayWrap);
}

SampleValue dwords_read(const std::vector<RingPosition>& before, const std::vector<RingPosition>& after) {
  SampleValue least = unknown("not mapped on the same XCC at both looks");
  for (const RingPosition& now : after) {
    const auto then =
        std::find_if(before.begin(), before.end(), [&](const RingPosition& one) { return one.xcc == now.xcc; });
    if (then == before.end()) continue;
    SampleValue advance = dwords_read(*then, now);
    if (!advance.value) return advance;
    if (!least.value || *advance.value < *least.value) least = std::move(advance);
  }
  return least;
}

// If there are more queues than slots, queues take turns: what one read while unmapped is counted when it is mapped
// again.
void KfdRates::add_rate(std::vector<RingPosition> positions, const std::string& why_none,
                        std::optional<std::int64_t> window_ns, Seen& seen, Row& row) {
  const bool was_mapped = std::exchange(seen.is_mapped, !positions.empty());
  const bool is_first = seen.positions.empty() || !window_ns;
  if (positions.empty()) {
    row.packets_per_s = unknown(why_none);
    row.packets = is_first ? row.packets_per_s : at_least(seen.packets, why_none);
    return;
  }
  if (is_first) {
    row.packets_per_s = row.packets = unknown("seen for the first time: a rate needs two samples");
    seen.positions = std::move(positions);
    return;
  }
  const SampleValue advance = dwords_read(seen.positions, positions);
  seen.positions = std::move(positions);
  const double packets = advance.value.value_or(0) / static_cast<double>(kfd::kPacketDwords);
  seen.packets += packets;
  seen.is_at_least = seen.is_at_least || advance.is_at_least || !advance.value;
  row.packets = seen.is_at_least ? at_least(seen.packets, kMayWrap) : known(seen.packets);
  row.packets_per_s = was_mapped ? advance : unknown("not mapped in the sample before");
  if (row.packets_per_s.value) row.packets_per_s.value = packets / (static_cast<double>(*window_ns) / 1e9);
}

Sample KfdRates::sample_of(const kfd::Snapshot& snapshot) {
  Sample sample;
  sample.source = "kfd";
  sample.unit = Unit::packets;
  sample.taken_ns = snapshot.taken_ns;
  const bool has_times = taken_ns_ != INT64_MIN && snapshot.taken_ns > taken_ns_;
  if (has_times) sample.window_ns = snapshot.taken_ns - taken_ns_;
  for (const kfd::MissingPart& part : snapshot.missing)
    sample.missing.push_back({part.part, part.path, part.reason, part.hint});
  if (snapshot.runlists)
    for (const kfd::Runlist& list : snapshot.runlists->lists)
      if (list.is_chained)
        sample.notes.push_back(
            fmt::format("gpu {:x}: the run list is chained: more queues or processes than fit at once", list.gpu_id));

  const std::map<SlotId, RingPosition> by_slot = positions_by_slot(snapshot);
  std::map<std::string, Seen> now;
  std::map<std::string, int> copies;
  for (const kfd::Queue& queue : kfd::queues_of(snapshot)) {
    if (queue.kind == kfd::QueueKind::hiq)
      continue;  // KFD's own queue to the scheduler firmware: always present, runs nothing
    Row row = row_of(snapshot, queue);
    // Two queues with one key cannot be distinguished from sample to sample, but each still has a row.
    if (const int copy = ++copies[row.key]; copy > 1) row.key += fmt::format("+{}", copy);
    const auto before = seen_.find(row.key);
    Seen seen = before == seen_.end() ? Seen{} : before->second;
    add_rate(positions_of(queue, by_slot), why_no_position(snapshot, queue), sample.window_ns, seen, row);
    now.emplace(row.key, std::move(seen));
    sample.rows.push_back(std::move(row));
  }
  seen_ = std::move(now);
  taken_ns_ = snapshot.taken_ns;
  return sample;
}

bool can_watch(const kfd::Snapshot& snapshot) { return snapshot.hqds.has_value() || snapshot.mqds.has_value(); }

Feed::Body watch_kfd(kfd::Roots roots) {
  return [roots = std::move(roots)](Feed& feed) {
    KfdRates rates;
    KfdUse use(roots);
    while (feed.await_due()) {
      kfd::Snapshot snapshot = kfd::read_snapshot(roots);
      if (snapshot.taken_ns == INT64_MIN) snapshot.taken_ns = now_ns();
      Sample sample = rates.sample_of(snapshot);
      use.add_to(sample, snapshot);
      feed.publish(std::move(sample));
    }
  };
}

}  // namespace weir::watch
