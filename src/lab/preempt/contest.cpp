#include "lab/preempt/contest.h"

#include <algorithm>
#include <thread>

#include "base/error.h"
#include "lab/preempt/arena.h"
#include "lab/preempt/feeder.h"
#include "lab/preempt/intruder.h"

namespace weir::preempt {
namespace {

constexpr std::int64_t kVirtualTickNs = 1'000;
constexpr std::int64_t kHostTickNs = 20'000;        // between two looks where the device is made of cores
constexpr std::int64_t kProgressNs = 100'000'000;   // between two words to who watches
constexpr std::int64_t kLeadNs = 2'000'000;         // from when the victim runs to the first moment that may be due
constexpr std::int64_t kStuckNs = 120'000'000'000;  // without anything ending: the device is not coming back
constexpr std::uint32_t kPersistentAhead = 2;       // one that runs, one that follows
constexpr std::int64_t kUndisturbedIntervals = 200, kUndisturbedKernels = 10;

std::uint32_t slots_for(const Experiment& experiment, const Victim* victim, const Rules& rules) {
  if (victim == nullptr) return 1;
  if (rules.in_flight > 0) return rules.in_flight;
  const std::uint32_t ahead = std::max(1u, experiment.plan->queued_ahead);
  return victim->kind == VictimKind::persistent ? std::min(ahead, kPersistentAhead) : ahead;
}

class Contest {
 public:
  Contest(const Experiment& experiment, const Victim* victim, const Rules& rules)
      : experiment_(experiment),
        rules_(rules),
        has_victim_(victim != nullptr),
        arena_(*experiment.device, {.victim = victim,
                                    .obeys = rules.obeys,
                                    .slots = slots_for(experiment, victim, rules),
                                    .requests = experiment.plan->requests,
                                    .intruder_ns = experiment.plan->intruder_ns,
                                    .intruder_priority = rules.intruder_priority}),
        feeder_(arena_),
        intruder_(arena_, due_times(*experiment.plan), rules.obeys) {}

  // `is_over`: where there are no requests to wait for.
  Observation hold(const std::function<bool()>& is_over) {
    const bool has_clock = arena_.has_own_clock() && experiment_.plan->requests > 0;
    const ClockFix before = has_clock ? arena_.fix_clock() : ClockFix{};
    set_out();
    run(is_over);
    wind_up();
    const ClockFix after = has_clock ? arena_.fix_clock() : ClockFix{};
    return observed(has_clock ? ClockLine(before, after) : ClockLine());
  }

 private:
  // The victim runs when the first request can come.
  void set_out() {
    if (has_victim_) feeder_.launch(0);
    const std::int64_t begun_ns = arena_.now_ns();
    while (has_victim_ && arena_.report(0).started_ns == 0 && arena_.now_ns() - begun_ns < kStuckNs) rest();
    started_ns_ = arena_.now_ns();
    intruder_.begin(started_ns_ + kLeadNs);
  }

  void run(const std::function<bool()>& is_over) {
    // Submits with the caller's thread, but for the requests: a host that is busy with the victim must not be late for
    // the intruder. Where time is virtual there is one thread, which is never late.
    std::jthread thread;
    if (!arena_.is_virtual()) thread = std::jthread([this] { intruder_.run(); });
    struct Stopper {  // also where who watches throws
      Contest& contest;
      ~Stopper() { contest.stop(); }
    } const stopper{*this};
    std::int64_t told_ns = started_ns_, moved_ns = started_ns_;
    int seen = 0;
    bool is_ending = false;
    while (!is_ending || (has_victim_ && !feeder_.is_closed())) {
      const std::int64_t now_ns = arena_.now_ns();
      next_due_ns_ = arena_.is_virtual() ? intruder_.send(now_ns) : kNoTime;
      if (tick() || intruder_.ended() != seen) moved_ns = now_ns;
      seen = intruder_.ended();
      const bool is_awaited = is_ending || intruder_.arrived() > seen;
      if (is_awaited && now_ns - moved_ns > kStuckNs) break;  // finish() says what is wrong
      if (!is_ending && now_ns - told_ns > kProgressNs) {
        told_ns = now_ns;
        if (!tell_progress(now_ns)) stop();
      }
      if (!is_ending && intruder_.is_over() && (is_stopped_ || is_over())) {
        is_ending = true;
        feeder_.close();
      }
      rest();
    }
  }

  void stop() {
    is_stopped_ = true;
    intruder_.stop();
  }

  bool tell_progress(std::int64_t now_ns) {
    if (!experiment_.progress) return true;
    const int of = experiment_.plan->requests;
    if (of > 0) return experiment_.progress("requests", intruder_.ended(), of);
    return experiment_.progress("ms of the victim", static_cast<int>((now_ns - started_ns_) / 1'000'000), 0);
  }

  // One look at what has ended, and what may be launched now.
  bool tick() {
    if (!has_victim_) return false;
    const bool has_ended = feeder_.harvest();
    // The number of those that came first, then whether they are gone: who comes in between raises a flag that the
    // launch does not know, and ends it.
    const int arrived = intruder_.arrived();
    if (!rules_.waits_for_end || intruder_.ended() == arrived) feeder_.launch(rules_.obeys ? arrived : 0);
    return has_ended;
  }

  void rest() {
    if (arena_.is_virtual()) {
      const std::int64_t now_ns = arena_.now_ns();
      const std::int64_t until_due_ns = next_due_ns_ == kNoTime ? kVirtualTickNs : next_due_ns_ - now_ns;
      arena_.pause(std::clamp<std::int64_t>(until_due_ns, 1, kVirtualTickNs));
    } else if (!arena_.is_gpu()) {
      arena_.pause(kHostTickNs);
    }
  }

  // Jobs that were begun are brought to their end, so that every unit can be accounted for.
  void wind_up() {
    feeder_.wind_up();
    const std::int64_t begun_ns = arena_.now_ns();
    while (has_victim_ && !feeder_.is_done() && arena_.now_ns() - begun_ns < kStuckNs) {
      tick();
      rest();
    }
    arena_.finish();
    if (has_victim_ && !feeder_.is_done()) fail("the victim's kernels did not come to their end");
  }

  Observation observed(const ClockLine& clock) {
    Observation found;
    found.requests = intruder_.requests(clock);
    found.clock_error_ns = clock.error_ns();
    if (!has_victim_) return found;
    found.victim_wall_ns = feeder_.wall_ns();
    found.victim_blocks = feeder_.blocks();
    found.preemptions = feeder_.preemptions();
    found.block_ns = arena_.block_ns();
    found.block_words = arena_.block_words();
    found.blocks_at_once = arena_.blocks_at_once();
    if (const auto count = arena_.count(feeder_.jobs())) {
      found.lost_blocks = count->lost;
      found.repeated_blocks = count->repeated;
    }
    return found;
  }

 public:
  // Without requests: as long as some would take, and for some kernels at least.
  bool has_observed_enough() {
    const Plan& plan = *experiment_.plan;
    if (plan.requests > 0 || !has_victim_) return true;
    const std::int64_t wanted_ns =
        plan.undisturbed_ns > 0 ? plan.undisturbed_ns : kUndisturbedIntervals * plan.interval_ns;
    return arena_.now_ns() - started_ns_ >= std::max(wanted_ns, kUndisturbedKernels * arena_.kernel_ns());
  }

 private:
  const Experiment& experiment_;
  Rules rules_;
  bool has_victim_;
  Arena arena_;
  Feeder feeder_;
  Intruder intruder_;
  std::int64_t started_ns_ = 0, next_due_ns_ = kNoTime;
  bool is_stopped_ = false;
};

}  // namespace

Observation hold_contest(const Experiment& experiment, const Victim* victim, const Rules& rules) {
  Contest contest(experiment, victim, rules);
  return contest.hold([&] { return contest.has_observed_enough(); });
}

Observation run_victim(const Experiment& experiment, const Victim& victim, const std::function<bool()>& is_over) {
  Plan plan = *experiment.plan;
  plan.requests = 0;
  Experiment alone = experiment;
  alone.plan = &plan;
  return Contest(alone, &victim, {}).hold(is_over);
}

}  // namespace weir::preempt
