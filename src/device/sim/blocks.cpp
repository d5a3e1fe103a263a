#include "device/sim/blocks.h"

#include <algorithm>
#include <cmath>

#include "kernel/moment.h"
#include "kernel/toil.h"

namespace weir::sim {

Blocks::Blocks(const SimProfile& profile, Calendar& calendar)
    : calendar_(calendar),
      priorities_(profile.priorities),
      save_ns_(profile.device.preempt_save_ns),
      restore_ns_(profile.device.preempt_restore_ns),
      timer_ns_(profile.timer_ns),
      packet_queues_(static_cast<std::int32_t>(packet_queues(profile))),
      slots_(profile.multiprocessors * profile.slots_per_multiprocessor),
      free_(slots_) {}

std::uint32_t Blocks::add(const Flight& flight) {
  std::uint32_t id = 0;
  if (free_flights_.empty()) {
    id = static_cast<std::uint32_t>(flights_.size());
    flights_.push_back(flight);
  } else {
    id = free_flights_.back();
    free_flights_.pop_back();
    flights_[id] = flight;
  }
  flights_[id].age = age_++;
  return id;
}

std::uint32_t Blocks::new_group() {
  if (free_groups_.empty()) {
    groups_.emplace_back();
    return static_cast<std::uint32_t>(groups_.size()) - 1;
  }
  const std::uint32_t id = free_groups_.back();
  free_groups_.pop_back();
  return id;
}

bool Blocks::is_before(const Flight& a, const Flight& b) const noexcept {
  if (priorities_ >= Priorities::blocks && a.work->level != b.work->level) return a.work->level > b.work->level;
  return static_cast<std::int32_t>(a.age - b.age) < 0;
}

void Blocks::note_started(Flight& flight, std::int64_t now_ns) noexcept {
  flight.is_started = true;
  if (flight.work->record != nullptr) flight.work->record[kToilStarted] = now_ns / timer_ns_ * timer_ns_;
  Client& client = *flight.client;
  IterationSpan& iteration = client.iterations[flight.iteration - client.first_iteration];
  if (iteration.started_ns == kNoTime || now_ns < iteration.started_ns) iteration.started_ns = now_ns;
  if (Span* const span = client.span(flight.command, flight.iteration)) {
    span->started_ns = now_ns;
    span->queue = flight.queue < packet_queues_ ? flight.queue : kCopyQueues + flight.queue - packet_queues_;
  }
}

void Blocks::write(const Flight& flight, std::uint32_t first, std::uint32_t count, std::int64_t ns,
                   bool is_start) noexcept {
  const std::int64_t read_ns = ns / timer_ns_ * timer_ns_;
  for (std::uint32_t block = first; block < first + count; ++block) {
    std::int32_t* const at = flight.work->moments + static_cast<std::size_t>(block) * kMomentElements;
    is_start ? write_started(at, read_ns) : write_ended(at, read_ns);
  }
}

// Counts as the kernel does: each unit holds the number of jobs that it has completed.
void Blocks::count(const Flight& flight, std::uint32_t first, std::uint32_t count) noexcept {
  const Work& work = *flight.work;
  if (work.done == nullptr || flight.is_idle) return;
  for (std::uint32_t unit = first; unit < first + count; ++unit) ++work.done[unit];
}

void Blocks::enter(std::uint32_t id, std::uint32_t count, std::uint32_t first_block, std::int64_t now_ns,
                   std::int64_t ns) {
  Flight& flight = flights_[id];
  if (!flight.is_started) note_started(flight, now_ns);
  free_ -= static_cast<std::int64_t>(count) * flight.work->slots;
  flight.running += count;
  const std::uint32_t group = new_group();
  const std::uint32_t order = calendar_.enter(now_ns + ns, DueKind::end, group);
  groups_[group] = {id, count, first_block, order, now_ns + ns, 0, false};
}

void Blocks::run(std::uint32_t id, std::int64_t start_ns, std::int64_t end_ns) {
  Flight& flight = flights_[id];
  note_started(flight, start_ns);
  flight.running = 1;
  const std::uint32_t group = new_group();
  const std::uint32_t order = calendar_.enter(end_ns, DueKind::end, group);
  groups_[group] = {id, 1, 0, order, end_ns, 0, false};
}

// Blocks of other kernels take cache and bandwidth from this kernel's; the effect grows with their share of the device.
std::int64_t Blocks::crowded(const Flight& flight, std::int64_t ns) const noexcept {
  const double contention = flight.work->contention;
  if (contention == 0 || flight.work->is_timed) return ns;
  const double others = static_cast<double>(slots_ - free_ - std::int64_t{flight.running} * flight.work->slots);
  return ns + std::llround(static_cast<double>(ns) * contention * others / static_cast<double>(slots_));
}

// True when no more blocks wait for a slot.
bool Blocks::dispatch(std::uint32_t id, std::int64_t now_ns) {
  Flight& flight = flights_[id];
  const Work& work = *flight.work;
  const auto room = [&] {
    const std::int64_t fit = free_ / work.slots;
    return static_cast<std::uint32_t>(std::min<std::int64_t>(fit, work.most_at_once - flight.running));
  };
  while (flight.saved != kNone) {
    Part& part = parts_[flight.saved];
    const std::uint32_t count = std::min(part.count, room());
    if (count == 0) return false;
    enter(id, count, part.first_block, now_ns, part.remaining_ns + restore_ns_);
    part.first_block += count;
    part.count -= count;
    if (part.count != 0) return false;
    free_parts_.push_back(flight.saved);
    flight.saved = part.next;
  }
  const bool fits = flight.waiting <= work.most_at_once - flight.running &&
                    static_cast<std::int64_t>(flight.waiting) * work.slots <= free_;
  const std::uint32_t count = fits ? flight.waiting : std::min(flight.waiting, room());
  if (count != 0) {
    if (work.moments != nullptr) write(flight, flight.next_block, count, now_ns, true);
    const std::uint32_t first = flight.next_block;
    flight.waiting -= count;
    flight.next_block += count;
    enter(id, count, first, now_ns, crowded(flight, flight.block_ns));
  }
  return flight.waiting == 0;
}

void Blocks::set_starved(std::uint32_t id) {
  if (flights_[id].is_starved) return;
  flights_[id].is_starved = true;
  auto at = starved_.end();
  while (at != starved_.begin() && is_before(flights_[id], flights_[*(at - 1)])) --at;
  starved_.insert(at, id);
}

void Blocks::start(std::uint32_t id, std::int64_t now_ns) {
  if (!is_suspended_ && dispatch(id, now_ns)) return;
  set_starved(id);
  if (priorities_ == Priorities::full && !is_suspended_) evict_for(flights_[id], now_ns);
}

void Blocks::evict_for(const Flight& urgent, std::int64_t now_ns) {
  const Work& work = *urgent.work;
  std::int64_t coming = free_;  // slots that are free or being freed
  for (const Group& group : groups_)
    if (group.flight != kNone && group.is_saving)
      coming += std::int64_t{group.count} * flights_[group.flight].work->slots;
  const std::uint32_t wanted = std::min(urgent.waiting, work.most_at_once - urgent.running);
  std::int64_t missing = std::int64_t{wanted} * work.slots - coming;
  while (missing > 0) {
    // Evict the least urgent kernel first, of these the youngest, and of its blocks the last.
    std::uint32_t victim = kNone;
    for (std::uint32_t i = 0; i < groups_.size(); ++i) {
      const Group& group = groups_[i];
      if (group.flight == kNone || group.is_saving) continue;
      const Flight& flight = flights_[group.flight];
      if (flight.work->slots == 0 || flight.work->level >= work.level || group.due_ns <= now_ns) continue;
      if (victim == kNone) {
        victim = i;
        continue;
      }
      const Group& best = groups_[victim];
      const bool is_later =
          best.flight == group.flight ? group.first_block > best.first_block : is_before(flights_[best.flight], flight);
      if (is_later) victim = i;
    }
    if (victim == kNone) return;
    Flight& flight = flights_[groups_[victim].flight];
    const std::int64_t slots = flight.work->slots;
    const auto count =
        static_cast<std::uint32_t>(std::min<std::int64_t>(groups_[victim].count, (missing + slots - 1) / slots));
    const std::uint32_t aside = count == groups_[victim].count ? victim : new_group();
    Group& from = groups_[victim];
    Group part = from;
    part.count = count;
    part.first_block = from.first_block + from.count - count;
    part.remaining_ns = from.due_ns - now_ns;
    part.is_saving = true;
    part.due_ns = now_ns + save_ns_;
    part.order = calendar_.enter(part.due_ns, DueKind::end, aside);
    from.count -= count;
    groups_[aside] = part;
    flight.running -= count;
    flight.saving += count;
    missing -= std::int64_t{count} * slots;
  }
}

std::uint32_t Blocks::end(const Due& due, std::int64_t now_ns) {
  Group& group = groups_[due.subject()];
  if (group.flight == kNone || group.order != due.order) return kNone;  // rescheduled since
  const std::uint32_t id = group.flight;
  Flight& flight = flights_[id];
  free_ += static_cast<std::int64_t>(group.count) * flight.work->slots;
  group.flight = kNone;
  free_groups_.push_back(due.subject());
  if (group.is_saving) {
    flight.saving -= group.count;
    std::uint32_t part = static_cast<std::uint32_t>(parts_.size());
    if (free_parts_.empty()) {
      parts_.emplace_back();
    } else {
      part = free_parts_.back();
      free_parts_.pop_back();
    }
    const bool is_released = flight.work->is_hold && flight.work->is_released;
    parts_[part] = {group.count, group.first_block, is_released ? 0 : group.remaining_ns, flight.saved};
    flight.saved = part;
    set_starved(id);
    return kNone;
  }
  if (flight.work->moments != nullptr) write(flight, group.first_block, group.count, now_ns, false);
  count(flight, group.first_block, group.count);
  flight.running -= group.count;
  // Further blocks of this kernel may fit now; distribute() starts them.
  return has_ended(flight) ? id : kNone;
}

void Blocks::distribute(std::int64_t now_ns) {
  if (starved_.empty() || is_suspended_ || free_ == 0) return;
  std::size_t kept = 0;
  for (std::size_t i = 0; i < starved_.size(); ++i) {
    const std::uint32_t id = starved_[i];
    if (free_ > 0 && dispatch(id, now_ns)) {
      flights_[id].is_starved = false;
    } else {
      starved_[kept++] = id;
    }
  }
  starved_.resize(kept);
}

void Blocks::stop_starting(const Client& client, CommandId command) {
  // A kernel that is not starved has already started all of its blocks.
  std::erase_if(starved_, [&](std::uint32_t id) {
    Flight& flight = flights_[id];
    if (flight.client != &client || flight.command != command || flight.is_idle) return false;
    flight.taken = flight.next_block;
    flight.waiting = 0;
    if (flight.saved != kNone) return false;  // must return for the parts that were set aside
    if (flight.running + flight.saving == 0) {
      go_idle(flight);
      return false;
    }
    flight.is_starved = false;
    return true;
  });
}

void Blocks::release(const Client& client, CommandId command, std::int64_t ns) {
  const std::int64_t due_ns = is_suspended_ ? std::max(ns, suspended_until_ns_) : ns;
  for (std::uint32_t i = 0; i < groups_.size(); ++i) {
    Group& group = groups_[i];
    if (group.flight == kNone || group.is_saving) continue;
    const Flight& flight = flights_[group.flight];
    if (flight.client != &client || flight.command != command || group.due_ns <= due_ns) continue;
    group.due_ns = due_ns;
    group.order = calendar_.enter(due_ns, DueKind::end, i);
  }
  for (const std::uint32_t id : starved_) {
    Flight& flight = flights_[id];
    if (flight.client != &client || flight.command != command) continue;
    flight.block_ns = 0;
    for (std::uint32_t part = flight.saved; part != kNone; part = parts_[part].next) parts_[part].remaining_ns = 0;
  }
}

void Blocks::suspend(std::int64_t now_ns, std::int64_t until_ns) {
  is_suspended_ = true;
  suspended_until_ns_ = until_ns;
  for (std::uint32_t i = 0; i < groups_.size(); ++i) {
    Group& group = groups_[i];
    if (group.flight == kNone || flights_[group.flight].work->slots == 0) continue;
    group.due_ns += until_ns - now_ns;
    group.order = calendar_.enter(group.due_ns, DueKind::end, i);
  }
}

void Blocks::resume(std::int64_t now_ns) {
  is_suspended_ = false;
  distribute(now_ns);
}

}  // namespace weir::sim
