#include "submit/inject/launch_gate.h"

#include <sched.h>

#include <algorithm>
#include <cmath>
#include <ctime>

#include "base/clock.h"
#include "channel/system.h"

namespace weir::inject {
namespace {

using State = GateDriver::State;

// How long a thread that waits for its own commands polls: with one command in flight, the device idles from a
// command's end until that is seen, and the attending thread sees it some 50 us late.
constexpr std::int64_t kSpinNs = 2'000'000;

// The gate's own calls of the driver arrive here like the program's.
thread_local bool t_is_inside = false;

const void* this_thread() noexcept { return &t_is_inside; }

class OwnVisit {
 public:
  OwnVisit(const GateDriver& driver, Context context) noexcept : visiting_(driver, context) {}
  explicit operator bool() const noexcept { return static_cast<bool>(visiting_); }

 private:
  struct Inside {
    Inside() noexcept { t_is_inside = true; }
    ~Inside() { t_is_inside = false; }
  };
  Inside inside_;  // around the visit, which calls the driver as well
  Visiting visiting_;
};

}  // namespace

LaunchGate::LaunchGate(scheduler::Gate& gate, const GateDriver& driver) : gate_(&gate), driver_(&driver) {
  lanes_.reserve(kLanes);
  spares_.reserve(kSpares);
}

Context LaunchGate::hold(Stream stream, scheduler::Gate::Fits fits) noexcept {
  if (t_is_inside) return nullptr;
  const Context context = driver_->context_of(stream.handle);
  if (context == nullptr) return nullptr;
  if (!gate_->try_enter(1, fits)) wait(fits);
  return context;
}

void LaunchGate::wait(scheduler::Gate::Fits fits) noexcept {
  const std::int64_t started_ns = now_ns();
  while (gate_->on_device() > 0) {
    look();
    if (gate_->try_enter(1, fits)) return;
    if (now_ns() - started_ns >= kSpinNs) break;
    ::sched_yield();
  }
  // It is the others' turn, or the wait is long: enter() sleeps until that changes.
  gate_->enter(1, fits);
}

void LaunchGate::after(Stream stream, Context context, bool was_launched) noexcept {
  // A command that cannot be marked counts as ended: one launch too many is better than one that never comes.
  if (!was_launched || !mark(stream, context)) gate_->leave(1);
}

bool LaunchGate::mark(Stream stream, Context context) noexcept {
  // The attending thread repeatedly holds the lock for about a microsecond: a launch must not sleep for that.
  constexpr int kLockSpins = 1000;
  std::unique_lock lock(mutex_, std::try_to_lock);
  for (int spins = 0; !lock && spins < kLockSpins; ++spins)
    if (!lock.try_lock()) System::pause();
  if (!lock) lock.lock();
  if (is_off_.load(std::memory_order_relaxed)) return false;
  const void* const thread = stream.is_of_thread ? this_thread() : nullptr;
  auto lane = std::find_if(lanes_.begin(), lanes_.end(), [&](const Lane& known) {
    return known.handle == stream.handle && known.context == context && known.thread == thread;
  });
  const OwnVisit visiting(*driver_, context);
  if (!visiting) return false;
  if (lane != lanes_.end() && lane->count == kMarks) {
    Mark& last = lane->marks[(lane->first + lane->count - 1) % kMarks];
    if (!driver_->record(last.event, stream.handle)) return false;
    ++last.commands;
    return true;
  }
  if (lane == lanes_.end() && lanes_.size() == kLanes) return false;
  const Event event = take_event(context);
  if (event == nullptr) return false;
  if (!driver_->record(event, stream.handle)) {
    driver_->drop(event);
    return false;
  }
  if (lane == lanes_.end()) lane = lanes_.insert(lanes_.end(), Lane{context, stream.handle, thread, {}, 0, 0, 0});
  lane->marks[(lane->first + lane->count++) % kMarks] = {event, 1, now_ns()};
  return true;
}

Event LaunchGate::take_event(Context context) noexcept {
  for (auto spare = spares_.rbegin(); spare != spares_.rend(); ++spare)
    if (spare->context == context) {
      const Event event = spare->event;
      *spare = spares_.back();
      spares_.pop_back();
      return event;
    }
  return driver_->make();
}

void LaunchGate::keep_event(Context context, Event event) noexcept {
  if (spares_.size() < kSpares)
    spares_.push_back({context, event});
  else
    driver_->drop(event);
}

// Returns how many of the lane's commands have ended since the last call.
std::uint32_t LaunchGate::collect(Lane& lane) noexcept {
  std::uint32_t ended = 0, count = 0;
  const OwnVisit visiting(*driver_, lane.context);
  State state = visiting ? State::ended : State::lost;
  while (lane.count > 0 && state != State::running) {
    const Mark mark = lane.marks[lane.first];
    if (state != State::lost) state = driver_->query(mark.event);
    if (state == State::running) break;
    // If an event's state is lost, the event is not reused, and those behind it are not waited for.
    if (state == State::ended) keep_event(lane.context, mark.event);
    ended += mark.commands;
    const std::int64_t now = now_ns();
    // Marks that were reached since the last look say nothing about one command.
    if (state == State::ended && mark.commands == 1 && count++ == 0)
      measure(now - std::max(mark.made_ns, lane.ended_ns));
    lane.ended_ns = now;
    lane.first = (lane.first + 1) % kMarks;
    --lane.count;
  }
  return ended;
}

// A rare late look must not make a program of short commands one of long ones, so what counts is the time: the length
// that says how long the commands are in which 95 % of the time goes by. A second ago counts half.
void LaunchGate::measure(std::int64_t ns) noexcept {
  constexpr std::int64_t kFadeNs = 1'000'000'000;
  constexpr double kMost = 0.95;
  constexpr int kSteps = 4;
  if (ns <= 0) return;
  const std::int64_t now = now_ns();
  const bool fades = now - lengths_.faded_ns > kFadeNs;
  if (fades) {
    for (double& part : lengths_.ns) part /= 2;
    lengths_.faded_ns = now;
  }
  const double steps = kSteps * std::log2(std::max(1.0, static_cast<double>(ns) / 1000));
  const auto place = std::min<std::size_t>(static_cast<std::size_t>(steps), lengths_.ns.size() - 1);
  lengths_.ns[place] += static_cast<double>(ns);
  double all = 0, passed = 0;
  for (const double part : lengths_.ns) all += part;
  std::size_t at = 0;
  while (at + 1 < lengths_.ns.size() && (passed += lengths_.ns[at]) < kMost * all) ++at;
  gate_->set_command_ns(static_cast<std::int64_t>(1000 * std::exp2((static_cast<double>(at) + 0.5) / kSteps)));
}

void LaunchGate::look() noexcept {
  // If the lock is taken, its holder is looking already, or is placing a mark in a full stream.
  std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock || is_off_.load(std::memory_order_relaxed)) return;
  std::uint32_t ended = 0;
  for (Lane& lane : lanes_) ended += collect(lane);
  std::erase_if(lanes_, [](const Lane& lane) { return lane.count == 0; });
  lock.unlock();
  if (ended > 0) gate_->leave(ended);
}

void LaunchGate::forget() noexcept {
  if (is_off_.load(std::memory_order_relaxed)) return;
  std::uint32_t forgotten = 0;
  {
    const std::lock_guard lock(mutex_);
    for (Lane& lane : lanes_)
      for (; lane.count > 0; --lane.count, lane.first = (lane.first + 1) % kMarks) {
        const Mark& mark = lane.marks[lane.first];
        forgotten += mark.commands;
        const OwnVisit visiting(*driver_, lane.context);
        if (visiting) driver_->drop(mark.event);
      }
    lanes_.clear();
    for (const Spare& spare : spares_) {
      const OwnVisit visiting(*driver_, spare.context);
      if (visiting) driver_->drop(spare.event);
    }
    spares_.clear();
  }
  if (forgotten > 0) gate_->leave(forgotten);
}

void LaunchGate::turn_off() noexcept {
  is_off_.store(true, std::memory_order_relaxed);
  gate_->open_for_good();
  // Another thread may be calling the driver, which will be gone soon; but a driver that does not answer must not keep
  // the process from ending.
  for (int tries = 0; tries < 100; ++tries) {
    if (mutex_.try_lock()) return mutex_.unlock();
    const timespec rest{0, 1'000'000};
    ::clock_nanosleep(CLOCK_MONOTONIC, 0, &rest, nullptr);
  }
}

}  // namespace weir::inject
