// Which steps of different threads do not commute: for what a step is put off, and what goes on when it has come.
#include "channel/exploration.h"

namespace weir::explored {

void Exploration::did(Deed deed, int x) {
  std::uint32_t& threads = deeds_[static_cast<int>(deed)][x + 1];
  if ((threads >> running_ & 1U) != 0) return;
  threads |= 1U << running_;
  has_new_deeds_ = true;
}

bool Exploration::may_come(Deed deed, int x) {
  const std::uint32_t threads = deeds_[static_cast<int>(deed)][x + 1];
  for (int i = 0; i < count_; ++i) {
    if (i != running_ && thread(i).status != Status::ended && (threads >> i & 1U) != 0) return true;
  }
  return false;
}

// Whether something may still happen that the step would be put off for.
bool Exploration::is_worth_waiting(Until until, int x) {
  if (!is_reduced()) return false;
  bool may_happen = false;
  switch (until) {
    case Until::stored:
      may_happen = may_come(Deed::store, x);
      break;
    case Until::touched:
      may_happen = may_come(Deed::touch, x);
      break;
    case Until::fenced:
      may_happen = may_come(Deed::fence, -1) || may_come(Deed::heavy_fence, -1);
      break;
    case Until::passed:
      may_happen = may_come(Deed::heavy_fence, -1);
      break;
    case Until::reached:
      may_happen = may_come(Deed::fence, -1) || may_come(Deed::heavy_fence, -1) || may_come(Deed::light_fence, -1);
      break;
    case Until::called:
      may_happen = may_come(Deed::store, x) || may_come(Deed::wake, x);
      break;
    case Until::waited:
      may_happen = may_come(Deed::sleep, x);
      break;
    case Until::nothing:
      break;
  }
  if (!may_happen) return false;
  for (int i = 0; i < count_; ++i) {
    if (i != running_ && is_enabled(i)) return true;
  }
  return false;
}

void Exploration::resume(Until until, int x) {
  for (int i = 0; i < count_; ++i) {
    Thread& other = thread(i);
    if (other.status == Status::put_off && other.until == until && other.step.x == x) other.status = Status::runnable;
  }
}

void Exploration::after_store(int x, std::size_t position) {
  if (called_[static_cast<std::size_t>(x)] >= position) ++called_[static_cast<std::size_t>(x)];
  for (int i = 0; i < count_; ++i) {
    Thread& other = thread(i);
    if (other.status != Status::put_off || other.step.x != x || position < memory_.oldest(i, x)) continue;
    if (other.until == Until::stored || other.until == Until::called || other.until == Until::touched)
      other.status = Status::runnable;
  }
}

// Two fences commute if neither tells the other anything.
void Exploration::after_fence(const View& before) {
  const bool has_reported = !before.covers(memory_.fenced());
  for (int i = 0; i < count_; ++i) {
    Thread& other = thread(i);
    if (other.status != Status::put_off || (other.until != Until::fenced && other.until != Until::reached)) continue;
    if (has_reported || memory_.is_news(i, before)) other.status = Status::runnable;
  }
}

}  // namespace weir::explored
