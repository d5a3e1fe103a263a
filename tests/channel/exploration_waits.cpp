// Sleeping and spinning: see explorer.h for what is assumed of them.
#include <algorithm>
#include <climits>
#include <utility>

#include "channel/exploration.h"

namespace weir::explored {

bool Exploration::wait(Call& step) {
  did(Deed::sleep, step.x);
  self().is_spinning = false;
  const auto& stores = memory_.stores(step.x);
  const std::size_t called = called_[static_cast<std::size_t>(step.x)];
  bool can_sleep = false;
  std::size_t other = stores.size();
  for (std::size_t p = std::max(first_option(step.x), called); p < stores.size(); ++p) {
    if (stores[p].value == step.value) {
      can_sleep = true;
    } else if (other == stores.size()) {
      other = p;
    }
  }
  enum class Way { sleep, go_on, late };
  Way ways[3];
  std::size_t count = 0;
  if (can_sleep) ways[count++] = Way::sleep;
  if (other != stores.size()) ways[count++] = Way::go_on;
  if (step.has_deadline) ways[count++] = Way::late;
  const int chosen = choose(count + (is_worth_waiting(Until::called, step.x) ? 1 : 0));
  if (chosen < 0) return false;
  if (static_cast<std::size_t>(chosen) == count) return put_off(Until::called);
  resume(Until::touched, step.x);
  resume(Until::waited, step.x);
  switch (ways[chosen]) {
    case Way::late:
      return done(0);
    case Way::go_on:
      memory_.see(running_, step.x, other);
      return done(1);
    case Way::sleep:
      break;
  }
  if (is_traced_) trace(self(), " sleeps");
  self().status = Status::sleeping;
  self().until = Until::nothing;
  return false;
}

bool Exploration::wake(Call& step) {
  did(Deed::wake, step.x);
  if (!take(Until::waited)) return false;
  int left = static_cast<int>(std::min<std::uint64_t>(step.value, INT_MAX));
  for (; left > 0; --left) {
    options_now_.clear();
    for (int i = 0; i < count_; ++i) {
      if (thread(i).status == Status::sleeping && thread(i).step.x == step.x) {
        options_now_.push_back(static_cast<std::size_t>(i));
      }
    }
    const std::size_t sleepers = options_now_.size();
    if (sleepers == 0) break;
    // Which of them does not matter where all are woken.
    const int chosen = sleepers <= static_cast<std::size_t>(left) ? 0 : choose(sleepers);
    if (chosen < 0) return false;
    Thread& other = *threads_[options_now_[static_cast<std::size_t>(chosen)]];
    other.status = Status::runnable;
    other.step.kind = Kind::woken;
  }
  std::size_t& called = called_[static_cast<std::size_t>(step.x)];
  called = std::max(called, memory_.oldest(running_, step.x));
  resume(Until::called, step.x);
  return done(step.value);
}

bool Exploration::may_learn(int i) {
  for (const Seen& seen : thread(i).last) {
    const auto& stores = memory_.stores(seen.x);
    for (std::size_t p = is_sequential() ? stores.size() - 1 : memory_.oldest(i, seen.x); p < stores.size(); ++p) {
      if (stores[p].value != seen.value) return true;
    }
  }
  return false;
}

void Exploration::note_seen(int x, std::uint64_t value) {
  Thread& own = self();
  const auto at = [x](std::vector<Seen>& seen) {
    return std::lower_bound(seen.begin(), seen.end(), x, [](const Seen& a, int b) { return a.x < b; });
  };
  const auto before = at(own.last);
  if (before == own.last.end() || before->x != x || before->value != value) own.has_differed = true;
  const auto place = at(own.round);
  if (place == own.round.end() || place->x != x) {
    own.round.insert(place, {x, value});
  } else {
    place->value = value;
  }
}

bool Exploration::relax(Call& step) {
  Thread& own = self();
  if (std::exchange(own.has_waited, false)) return done(0);
  if (step.value == 0 || !own.is_spinning) {  // the first round is free: it has no other to be compared with
    own.is_spinning = true;
    own.last.clear();
  } else if (!own.has_differed) {
    end_ = End::given_up;
    return false;
  } else {
    std::swap(own.round, own.last);
  }
  own.has_differed = false;
  own.round.clear();
  if (own.last.empty() || may_learn(running_)) return done(0);
  own.has_waited = true;  // when it comes here again
  own.status = Status::relaxing;
  return false;
}

}  // namespace weir::explored
