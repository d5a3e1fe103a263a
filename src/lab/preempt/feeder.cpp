#include "lab/preempt/feeder.h"

namespace weir::preempt {

Feeder::Feeder(Arena& arena) : arena_(arena) {
  for (std::uint32_t slot = arena.slots(); slot > 0; --slot) free_.push_back(slot - 1);
}

bool Feeder::harvest() {
  bool has_ended = false;
  while (!pending_.empty()) {
    const Pending launch = pending_.front();
    const Arena::Report report = arena_.report(launch.slot);
    if (report.launches == launch.launches) break;
    pending_.pop_front();
    free_.push_back(launch.slot);
    note(launch, report);
    has_ended = true;
  }
  return has_ended;
}

void Feeder::note(const Pending& launch, const Arena::Report& report) {
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
  // Who was told to end, and those behind it, gave way together.
  preemptions_ += was_interrupted_ ? 0 : 1;
  was_interrupted_ = true;
}

void Feeder::launch(std::int64_t epoch) {
  // Jobs are done in order: nothing follows launches that were told to end before it is known what they left undone.
  // They end together, also where the intruder is gone before they are.
  if (!pending_.empty() && (epoch != epoch_ || !interrupted_.empty())) return;
  epoch_ = epoch;
  was_interrupted_ = false;
  while (!free_.empty() && (!interrupted_.empty() || !is_winding_up_)) {
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

}  // namespace weir::preempt
