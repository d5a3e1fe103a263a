#include "amd/kfd/queue_trial.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "base/error.h"
#include "base/named_values.h"
#include "base/schemas.h"

namespace weir::kfd {
namespace {

std::set<std::uint32_t> ids_in(const std::vector<QueueSnapshot>& queues) {
  std::set<std::uint32_t> ids;
  for (const QueueSnapshot& queue : queues) ids.insert(queue.queue_id);
  return ids;
}

std::vector<std::uint32_t> ids_to_suspend(const QueueTrialPlan& plan, const std::vector<QueueSnapshot>& queues,
                                          int pid) {
  const std::set<std::uint32_t> there = ids_in(queues);
  for (const std::uint32_t id : plan.ids)
    if (!there.contains(id))
      reject(fmt::format("queue {}: process {} has no such queue", id, pid), "`weir amd queues PID` lists them.");
  if (!plan.ids.empty()) return plan.ids;
  std::vector<std::uint32_t> ids = compute_ids(queues);
  if (ids.empty())
    fail(fmt::format("process {} has no queue that runs kernels", pid),
         "It has not used the GPU yet: wait, and try again.");
  return ids;
}

// The value below which a share of the samples lies, by the nearest rank.
double ranked(const std::vector<std::int64_t>& sorted, double share) {
  const auto rank = static_cast<std::size_t>(std::ceil(share * static_cast<double>(sorted.size())));
  return static_cast<double>(sorted[std::max<std::size_t>(rank, 1) - 1]);
}

Json times_json(std::vector<std::int64_t> times) {
  if (times.empty()) return nullptr;
  std::sort(times.begin(), times.end());
  Json json;
  json["samples"] = times.size();
  json["min"] = times.front();
  json["p50"] = ranked(times, 0.5);
  json["p95"] = ranked(times, 0.95);
  json["p99"] = ranked(times, 0.99);
  json["max"] = times.back();
  return json;
}

const char* kind_of(const QueueSnapshot& queue) {
  constexpr const char* kKinds[] = {"compute (PM4)", "copy (SDMA)", "compute (AQL)", "copy (SDMA over XGMI)",
                                    "copy (SDMA by engine)"};
  return queue.queue_type < std::size(kKinds) ? kKinds[queue.queue_type] : "unknown";
}

}  // namespace

QueueTrial try_queues(DebugTrap& trap, int pid, const QueueTrialPlan& plan) {
  QueueTrial trial;
  trial.pid = pid;
  QueueControl control(trap, pid);
  std::set<std::uint32_t> before;
  for (int round = 0; round < plan.rounds && !trial.is_stopped; ++round) {
    if (round > 0 && !plan.wait(plan.pause_ns)) {
      trial.is_stopped = true;
      break;
    }
    const std::int64_t began_ns = trap.now_ns();
    const std::vector<QueueSnapshot> queues = control.queues();
    trial.snapshot_ns.push_back(trap.now_ns() - began_ns);
    if (round == 0) trial.queues = queues;
    if (round > 0 && ids_in(queues) != before) ++trial.changes;
    before = ids_in(queues);
    if (!plan.suspends) continue;
    trial.suspended = ids_to_suspend(plan, queues, pid);
    Suspension suspension(control, trial.suspended);
    trial.is_stopped = !plan.wait(plan.hold_ns);
    trial.suspend_ns.push_back(suspension.took_ns());
    trial.resume_ns.push_back(suspension.resume().took_ns);
  }
  return trial;
}

Json queue_trial_document(const QueueTrial& trial, const QueueTrialPlan& plan, const std::string& name) {
  Json json;
  json["schema"] = schemas::amd_queues;
  json["pid"] = trial.pid;
  json["name"] = text_or_null(name);
  json["queues"] = Json::array();
  for (const QueueSnapshot& queue : trial.queues) {
    const bool was_suspended =
        std::find(trial.suspended.begin(), trial.suspended.end(), queue.queue_id) != trial.suspended.end();
    Json row =
        WEIR_NAMED(queue.queue_id, named("gpu_id", fmt::format("{:x}", queue.gpu_id)), named("kind", kind_of(queue)),
                   named("ring", fmt::format("{:#x}", queue.ring_address)), queue.ring_bytes, queue.save_area_bytes);
    row["is_new"] = queue.is_new();
    row["was_suspended"] = was_suspended;
    json["queues"].push_back(std::move(row));
  }
  json["rounds"] = trial.snapshot_ns.size();
  json["changes"] = trial.changes;
  json["is_stopped"] = trial.is_stopped;
  json["hold_ns"] = plan.suspends ? Json(plan.hold_ns) : Json(nullptr);
  json["snapshot_ns"] = times_json(trial.snapshot_ns);
  json["suspend_ns"] = times_json(trial.suspend_ns);
  json["resume_ns"] = times_json(trial.resume_ns);
  json["reason"] = plan.suspends ? Json(nullptr) : Json("nothing was suspended: --suspend was not given");
  return json;
}

}  // namespace weir::kfd
