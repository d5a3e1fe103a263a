#include "lab/preempt/contest.h"

#include <algorithm>
#include <deque>
#include <thread>
#include <vector>

#include "base/error.h"
#include "lab/preempt/arena.h"
#include "lab/preempt/intruder.h"

namespace weir::preempt {
namespace {

constexpr std::int64_t kVirtualTickNs = 1'000;
constexpr std::int64_t kHostTickNs = 20'000;               // between two checks if the device runs on CPU cores
constexpr std::int64_t kProgressNs = 100'000'000;          // between two progress reports
constexpr std::int64_t kLeadNs = 2'000'000;                // from the victim's start to the earliest due time
constexpr std::int64_t kStuckContestNs = 120'000'000'000;  // without anything ending: the device is stuck
constexpr std::uint32_t kPersistentAhead = 2;              // one that runs, one that follows
constexpr std::int64_t kUndisturbedIntervals = 200, kUndisturbedKernels = 10;

std::uint32_t slots_for(const Experiment& experiment, const Victim* victim, const Rules& rules) {
  if (victim == nullptr) return 1;
  if (rules.in_flight > 0) return rules.in_flight;
  const std::uint32_t ahead = std::max(1u, experiment.plan->queued_ahead);
  return victim->kind == VictimKind::persistent ? std::min(ahead, kPersistentAhead) : ahead;
}

// Keeps the victim on the device: launches its jobs one after the other, resumes interrupted ones, and adds up the
// finished work. The caller decides when it may launch. A state machine without its own thread.
class Feeder {
 public:
  // Uses the arena's slots as the limit of launches in flight.
  explicit Feeder(Arena& arena);

  // Records launches that have ended. Returns true if there were any.
  bool collect_ended();
  // Launches as much as there is room for. `epoch` is the flag value that the launches ignore; it never changes for
  // victims that ignore the flag.
  void launch(std::int64_t epoch);
  // From now on no new job is started: launch() only resumes interrupted ones.
  void finish_jobs() { is_finishing_ = true; }
  bool is_done() const { return pending_.empty() && interrupted_.empty(); }

  // The observation ends with the last launch that has ended, or if none has, with the first to end.
  void close() { (has_ended_ ? is_closed_ : is_closing_) = true; }
  bool is_closed() const { return is_closed_; }
  std::int64_t wall_ns() const { return is_closed_ ? ended_ns_ - started_ns_ : 0; }
  std::uint64_t blocks() const { return blocks_; }

  std::int64_t jobs() const { return jobs_; }  // finished
  std::uint64_t preemptions() const { return preemptions_; }

 private:
  struct Job {
    std::int64_t number = 0;
    std::int64_t taken = 0;  // units taken by earlier launches
  };
  struct Pending {
    Job job;
    std::uint32_t slot = 0;
    std::int64_t launches = 0;  // that the slot had counted before
  };
  void note(const Pending& launch, const Arena::VictimRecord& report);

  Arena& arena_;
  std::deque<Pending> pending_;  // in launch order, in which they also end
  std::deque<Job> interrupted_;  // in order
  std::vector<std::uint32_t> free_;
  std::int64_t next_job_ = 0, jobs_ = 0, epoch_ = 0;
  std::uint64_t preemptions_ = 0, blocks_ = 0;
  std::int64_t started_ns_ = 0, ended_ns_ = 0;
  bool has_ended_ = false, was_interrupted_ = false, is_finishing_ = false, is_closing_ = false, is_closed_ = false;
};

Feeder::Feeder(Arena& arena) : arena_(arena) {
  for (std::uint32_t slot = arena.slots(); slot > 0; --slot) free_.push_back(slot - 1);
}

bool Feeder::collect_ended() {
  bool has_ended = false;
  while (!pending_.empty()) {
    const Pending launch = pending_.front();
    const Arena::VictimRecord report = arena_.report(launch.slot);
    if (report.launches == launch.launches) break;
    pending_.pop_front();
    free_.push_back(launch.slot);
    note(launch, report);
    has_ended = true;
  }
  return has_ended;
}

void Feeder::note(const Pending& launch, const Arena::VictimRecord& report) {
  if (!has_ended_) started_ns_ = report.started_ns;
  has_ended_ = true;
  if (!is_closed_) {
    blocks_ += static_cast<std::uint64_t>(report.taken - launch.job.taken);
    ended_ns_ = report.ended_ns;
    is_closed_ = is_closing_;
  }
  if (report.taken >= arena_.units()) {
    ++jobs_;
    return;
  }
  interrupted_.push_back({launch.job.number, report.taken});
  // The launch that was told to end and those behind it count as one preemption.
  preemptions_ += was_interrupted_ ? 0 : 1;
  was_interrupted_ = true;
}

void Feeder::launch(std::int64_t epoch) {
  // Jobs are done in order: nothing is launched after launches that were told to end until it is known what they left
  // undone. They end together, even if the intruder leaves before they do.
  if (!pending_.empty() && (epoch != epoch_ || !interrupted_.empty())) return;
  epoch_ = epoch;
  was_interrupted_ = false;
  while (!free_.empty() && (!interrupted_.empty() || !is_finishing_)) {
    Job job{next_job_, 0};
    if (interrupted_.empty()) {
      ++next_job_;
    } else {
      job = interrupted_.front();
      interrupted_.pop_front();
    }
    const std::uint32_t slot = free_.back();
    free_.pop_back();
    pending_.push_back({job, slot, arena_.report(slot).launches});
    arena_.launch(slot, job.number, epoch);
  }
}

class Contest {
 public:
  Contest(const Experiment& experiment, const Victim* victim, const Rules& rules)
      : experiment_(experiment),
        rules_(rules),
        has_victim_(victim != nullptr),
        arena_(*experiment.device, {.victim = victim,
                                    .is_stoppable = rules.is_stoppable,
                                    .slots = slots_for(experiment, victim, rules),
                                    .requests = experiment.plan->requests,
                                    .intruder_ns = experiment.plan->intruder_ns,
                                    .intruder_priority = rules.intruder_priority}),
        feeder_(arena_),
        intruder_(arena_, due_times(*experiment.plan), rules.is_stoppable) {}

  // `is_over` ends observations without requests.
  Observation hold(const std::function<bool()>& is_over) {
    const bool has_clock = arena_.has_own_clock() && experiment_.plan->requests > 0;
    const KernelClockFix before = has_clock ? arena_.fix_clock() : KernelClockFix{};
    set_out();
    run(is_over);
    finish_jobs();
    const KernelClockFix after = has_clock ? arena_.fix_clock() : KernelClockFix{};
    return observed(has_clock ? ClockLine(before, after) : ClockLine());
  }

 private:
  // Makes sure that the victim runs before the first request can come.
  void set_out() {
    if (has_victim_) feeder_.launch(0);
    const std::int64_t begun_ns = arena_.now_ns();
    while (has_victim_ && arena_.report(0).started_ns == 0 && arena_.now_ns() - begun_ns < kStuckContestNs) rest();
    started_ns_ = arena_.now_ns();
    intruder_.begin(started_ns_ + kLeadNs);
  }

  void run(const std::function<bool()>& is_over) {
    // The caller's thread submits everything except the requests: a host that is busy with the victim must not delay
    // the intruder. With virtual time there is only one thread, which is never late.
    std::jthread thread;
    if (!arena_.is_virtual()) thread = std::jthread([this] { intruder_.run(); });
    struct Stopper {  // stops even if the progress callback throws
      Contest& contest;
      ~Stopper() { contest.stop(); }
    } const stopper{*this};
    std::int64_t reported_ns = started_ns_, moved_ns = started_ns_;
    int seen = 0;
    bool is_ending = false;
    while (!is_ending || (has_victim_ && !feeder_.is_closed())) {
      const std::int64_t now_ns = arena_.now_ns();
      next_due_ns_ = arena_.is_virtual() ? intruder_.send(now_ns) : kNoTime;
      if (tick() || intruder_.ended() != seen) moved_ns = now_ns;
      seen = intruder_.ended();
      const bool is_awaited = is_ending || intruder_.arrived() > seen;
      if (is_awaited && now_ns - moved_ns > kStuckContestNs) break;  // finish() reports what is wrong
      if (!is_ending && now_ns - reported_ns > kProgressNs) {
        reported_ns = now_ns;
        if (!report_progress(now_ns)) stop();
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

  bool report_progress(std::int64_t now_ns) {
    if (!experiment_.progress) return true;
    const int of = experiment_.plan->requests;
    if (of > 0) return experiment_.progress("requests", intruder_.ended(), of);
    return experiment_.progress("ms of the victim", static_cast<int>((now_ns - started_ns_) / 1'000'000), 0);
  }

  // Checks what has ended, and launches what may be launched now.
  bool tick() {
    if (!has_victim_) return false;
    const bool has_ended = feeder_.collect_ended();
    // Reads the number of arrivals first, then whether all have ended: a request that arrives in between raises a flag
    // that the launch does not know, and ends it.
    const int arrived = intruder_.arrived();
    if (!rules_.waits_for_end || intruder_.ended() == arrived) feeder_.launch(rules_.is_stoppable ? arrived : 0);
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

  // Finishes all jobs that were started, so that every unit can be accounted for.
  void finish_jobs() {
    feeder_.finish_jobs();
    const std::int64_t begun_ns = arena_.now_ns();
    while (has_victim_ && !feeder_.is_done() && arena_.now_ns() - begun_ns < kStuckContestNs) {
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
  // Without requests: as long as some would take, and at least for some kernels.
  bool has_observed_enough() {
    const ExperimentPlan& plan = *experiment_.plan;
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
  ExperimentPlan plan = *experiment.plan;
  plan.requests = 0;
  Experiment alone = experiment;
  alone.plan = &plan;
  return Contest(alone, &victim, {}).hold(is_over);
}

}  // namespace weir::preempt
