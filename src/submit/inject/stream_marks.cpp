#include "submit/inject/stream_marks.h"

#include <algorithm>

namespace weir::inject {

StreamMarks::StreamMarks(const GateDriver& driver, std::int64_t period_ns, std::uint32_t places)
    : driver_(driver), period_ns_(period_ns), known_(places) {
  pending_.reserve(kMarks);
  spares_.reserve(kSpares);
}

void StreamMarks::know(std::uint32_t place, void* stream, Context context) noexcept {
  if (place >= known_.size() || is_off_) return;
  const std::lock_guard lock(mutex_);
  if (known_[place].stream != stream || known_[place].context != context)
    known_[place] = Known{.stream = stream, .context = context};
  known_end_ = std::max(known_end_, place + 1);
}

void StreamMarks::set_captures(bool is_any) noexcept {
  if (is_off_) return;
  const std::lock_guard lock(mutex_);
  has_captures_ = is_any;
}

void StreamMarks::before_end(void* stream) noexcept {
  if (is_off_) return;
  const std::lock_guard lock(mutex_);
  for (std::uint32_t place = 0; place < known_end_; ++place) {
    if (known_[place].stream != stream) continue;
    known_[place] = Known{};
    // The place may be another stream's when these are reached.
    for (Mark& mark : pending_)
      if (mark.place == place) mark.place = kNowhere;
  }
}

// An event in the stream, or null. The calling thread has entered the context.
Event StreamMarks::recorded(Context context, void* stream) noexcept {
  const auto spare =
      std::find_if(spares_.begin(), spares_.end(), [&](const Spare& one) { return one.context == context; });
  Event event = nullptr;
  if (spare != spares_.end()) {
    event = spare->event;
    spares_.erase(spare);
  } else {
    event = driver_.make();
  }
  if (event != nullptr && !driver_.record(event, stream)) {
    driver_.drop(event);
    event = nullptr;
  }
  return event;
}

void StreamMarks::add(Context context, Event event, std::uint32_t place, std::uint64_t number,
                      std::int64_t now_ns) noexcept {
  pending_.push_back({context, event, place, number, now_ns, now_ns});
  known_[place].marked = std::max(known_[place].marked, number);
  known_end_ = std::max(known_end_, place + 1);
  waiting_.store(true, std::memory_order_relaxed);
}

void StreamMarks::after(void* stream, std::uint32_t place, std::uint64_t number, std::int64_t now_ns,
                        bool is_wanted) noexcept {
  std::int64_t marked_ns = marked_ns_.load(std::memory_order_relaxed);
  if ((now_ns - marked_ns < period_ns_ && !is_wanted) || place >= known_.size()) return;
  if (!marked_ns_.compare_exchange_strong(marked_ns, now_ns, std::memory_order_relaxed) && !is_wanted) return;
  // A launch does not wait for the thread that asks: the next one will do.
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock || is_off_ || pending_.size() == kMarks) return;
  const Context context = driver_.context_of(stream);
  if (context == nullptr) return;
  GateDriver::Visit visit;
  if (!driver_.begin(context, &visit)) return;
  const Event event = recorded(context, stream);
  driver_.end(visit);
  if (event != nullptr) add(context, event, place, number, now_ns);
}

void StreamMarks::mark_end(std::uint32_t place, std::uint64_t number, std::int64_t now_ns) noexcept {
  if (pending_.size() == kMarks) return;
  const Known& known = known_[place];
  GateDriver::Visit visit;
  // Only within the context can be asked whether its default stream is being captured.
  if (!driver_.begin(known.context, &visit)) return;
  const Context context = driver_.context_of(known.stream);
  const Event event = context == known.context ? recorded(context, known.stream) : nullptr;
  driver_.end(visit);
  if (event != nullptr) add(context, event, place, number, now_ns);
}

// A mark whose state is lost counts as ended by nobody, and its event is not reused.
StreamMarks::State StreamMarks::ask(std::size_t at, std::int64_t now_ns) noexcept {
  Mark& mark = pending_[at];
  // Behind one that has not been reached: neither has this one.
  for (std::size_t before = 0; before < at; ++before)
    if (pending_[before].place == mark.place && mark.place != kNowhere) return State::running;
  GateDriver::Visit visit;
  State state = State::lost;
  if (driver_.begin(mark.context, &visit)) {
    state = driver_.query(mark.event);
    if (state == State::ended && spares_.size() == kSpares) driver_.drop(mark.event);
    driver_.end(visit);
  }
  if (state == State::running) {
    mark.asked_ns = now_ns;
    return state;
  }
  mark.asked_ns = std::max(mark.asked_ns, looked_ns_);
  if (state == State::ended && spares_.size() < kSpares) spares_.push_back({mark.context, mark.event});
  if (pending_.size() == 1) waiting_.store(false, std::memory_order_relaxed);
  return state;
}

void StreamMarks::forget() noexcept {
  if (is_off_) return;
  const std::lock_guard lock(mutex_);
  const auto drop = [&](Context context, Event event) {
    GateDriver::Visit visit;
    if (!driver_.begin(context, &visit)) return;
    driver_.drop(event);
    driver_.end(visit);
  };
  for (const Mark& mark : pending_) drop(mark.context, mark.event);
  for (const Spare& spare : spares_) drop(spare.context, spare.event);
  pending_.clear();
  spares_.clear();
  // Streams that are used again are made known again.
  for (std::uint32_t place = 0; place < known_end_; ++place) known_[place].stream = nullptr;
  waiting_.store(false, std::memory_order_relaxed);
}

}  // namespace weir::inject
