// The verdict on a snapshot as sentences. A sentence that the files do not support is replaced by what is missing.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "amd/kfd/document.h"
#include "base/units.h"

namespace weir::kfd {
namespace {

// Queues on chips with several XCCs: how many slots they occupy, and whether each has one on every XCC.
std::string slots_remark(const Snapshot& snapshot, const std::vector<const Queue*>& queues, std::size_t mapped) {
  std::map<std::uint32_t, std::size_t> xccs;
  if (snapshot.hqds) {
    for (const HqdNode& node : snapshot.hqds->nodes) xccs[node.gpu_id] = node.xccs.size();
  }
  std::size_t slots = 0;
  bool is_everywhere = true;
  for (const Queue* const queue : queues) {
    slots += queue->slots.size();
    std::set<int> own;
    for (const Slot& slot : queue->slots) own.insert(slot.xcc);
    if (queue->is_active && (own.size() != queue->slots.size() || own.size() != xccs[queue->gpu_id]))
      is_everywhere = false;
  }
  if (slots == mapped) return "";
  return fmt::format(" ({} slots{})", slots, is_everywhere ? ": one on each XCC" : "");
}

std::string queues_sentence(const Snapshot& snapshot, const std::vector<const Queue*>& queues) {
  const auto mapped = static_cast<std::size_t>(
      std::count_if(queues.begin(), queues.end(), [](const Queue* queue) { return queue->is_active; }));
  const auto open = static_cast<std::size_t>(
      std::count_if(queues.begin(), queues.end(), [](const Queue* queue) { return !queue->is_mapping_known; }));
  const std::string where = slots_remark(snapshot, queues, mapped);
  if (snapshot.hqds && snapshot.mqds) {
    if (queues.empty()) return "No compute queue exists.";
    if (mapped == queues.size())
      return fmt::format("{}, {}mapped{}.", counted(queues.size(), "compute queue"), queues.size() == 1 ? "" : "all ",
                         where);
    const std::string unknown =
        open > 0 ? fmt::format(" Of {} it is not known: hqds does not show all slots of the GPU.", open) : "";
    return fmt::format("{}: {} mapped{}, {} not.{}", counted(queues.size(), "compute queue"), mapped, where,
                       queues.size() - mapped - open, unknown);
  }
  if (snapshot.hqds)
    return fmt::format("{} mapped{}. Queues that are not mapped are in mqds, which was not read.",
                       counted(mapped, "compute queue"), where);
  if (snapshot.mqds)
    return fmt::format("{}. Which of them are mapped is in hqds, which was not read.",
                       queues.empty() ? "No compute queue exists" : counted(queues.size(), "compute queue"));
  return "Queues are in hqds and mqds, which were not read.";
}

void add_oversubscription(std::vector<std::string>& verdict, const std::vector<GpuOccupancy>& gpus) {
  std::size_t fine = 0;
  std::string why;
  for (const GpuOccupancy& gpu : gpus) {
    // An unused GPU needs no sentence.
    const bool is_used = gpu.queues.value_or(0) > 0 || gpu.active_slots.value_or(0) > 0 || gpu.is_runlist_chained ||
                         gpu.is_runlist_broken;
    if (!is_used) continue;
    if (!gpu.is_oversubscribed) {
      verdict.push_back(fmt::format("GPU {:x}: oversubscribed or not is open: {}.", gpu.gpu_id, gpu.why));
    } else if (*gpu.is_oversubscribed) {
      verdict.push_back(fmt::format("GPU {:x} is oversubscribed: {}.", gpu.gpu_id, gpu.why));
    } else {
      ++fine;
      why = fmt::format("GPU {:x}, {}", gpu.gpu_id, gpu.why);
    }
  }
  if (fine == 1) verdict.push_back(fmt::format("Not oversubscribed: {}.", why));
  if (fine > 1) verdict.push_back(fmt::format("{} GPUs are not oversubscribed.", fine));
}

std::string preemption_sentence(const std::vector<const Queue*>& queues) {
  std::size_t known = 0, saved = 0, back = 0, open = 0;
  for (const Queue* const queue : queues) {
    if (!queue->was_preempted) continue;
    ++known;
    if (*queue->was_preempted) ++(queue->is_active ? back : queue->is_mapping_known ? saved : open);
  }
  if (known == 0)
    return "Whether a queue was preempted in mid-kernel is not shown: CWSR is off, or control stacks are larger than "
           "the "
           "kernel's own test knows.";
  const std::string rest =
      known < queues.size() ? fmt::format(" (of {} it is not known)", counted(queues.size() - known, "queue")) : "";
  if (saved + back + open == 0)
    return fmt::format("No queue was in mid-kernel when it last left the hardware{}.", rest);
  if (open > 0)
    return fmt::format("{} in mid-kernel when last taken off the hardware{}.",
                       saved + back + open == 1 ? "1 queue was" : fmt::format("{} queues were", saved + back + open),
                       rest);
  std::string text = fmt::format("Preempted in mid-kernel{}: ", rest);
  if (saved > 0) text += fmt::format("{} not mapped, with waves saved", counted(saved, "queue"));
  if (back > 0)
    text += fmt::format("{}{} that {} mapped again", saved > 0 ? ", and " : "", counted(back, "queue"),
                        back == 1 ? "is" : "are");
  return text + ".";
}

std::string backlog_sentence(const std::vector<const Queue*>& queues) {
  std::size_t known = 0, behind = 0;
  std::uint64_t sum = 0;
  bool is_least = false;
  const Queue* most = nullptr;
  for (const Queue* const queue : queues) {
    if (!queue->backlog_packets) continue;
    ++known;
    is_least = is_least || queue->is_backlog_least;
    if (*queue->backlog_packets == 0) continue;
    ++behind;
    sum += *queue->backlog_packets;
    if (!most || *most->backlog_packets < *queue->backlog_packets) most = queue;
  }
  const std::string rest =
      known < queues.size() ? fmt::format(" Of {} it is not known.", counted(queues.size() - known, "queue")) : "";
  if (known == 0) return "Backlog is not known: " + queues.front()->backlog_reason + ".";
  const char* const least = is_least ? "at least " : "";
  if (behind == 0)
    return fmt::format("No backlog: no packet waits{}.{}",
                       is_least ? ", as far as known: queues that are not mapped may have got some" : "", rest);
  return fmt::format("Backlog: {}{} in {}, the most {} in ring 0x{:x}.{}", least, counted(sum, "packet"),
                     counted(behind, "queue"), *most->backlog_packets, most->ring_base, rest);
}

}  // namespace

std::vector<std::string> verdict_of(const Snapshot& snapshot, const std::vector<Queue>& queues,
                                    const std::vector<GpuOccupancy>& gpus) {
  std::vector<const Queue*> computes;
  for (const Queue& queue : queues) {
    if (queue.kind == QueueKind::compute) computes.push_back(&queue);
  }
  std::vector<std::string> verdict{queues_sentence(snapshot, computes)};
  add_oversubscription(verdict, gpus);
  if (!computes.empty()) {
    verdict.push_back(preemption_sentence(computes));
    verdict.push_back(backlog_sentence(computes));
  }
  for (const Queue* const queue : computes) {
    if (queue->errors != 0 && verdict.size() < 20)
      verdict.push_back(
          fmt::format("The queue of ring 0x{:x} has errors: {}.", queue->ring_base, error_names(queue->errors)));
    if (queue->dequeue_request != 0 && verdict.size() < 20)
      verdict.push_back(fmt::format("The queue of ring 0x{:x} is being taken off the hardware (request {}).",
                                    queue->ring_base, queue->dequeue_request));
  }
  for (const GpuOccupancy& gpu : gpus) {
    if (gpu.is_stopped && verdict.size() < 40)
      verdict.push_back(fmt::format("GPU {:x} is stopped: KFD shows nothing of it.", gpu.gpu_id));
  }
  return verdict;
}

}  // namespace weir::kfd
