#include "support/fake_kfd.h"

#include <cerrno>
#include <set>

namespace weir::testing {

using kfd::RuntimeState;

template <class Body>
int FakeKfd::call(const char* name, int pid, std::int64_t takes_ns, std::span<const std::uint32_t> ids, Body&& body) {
  std::string line = std::string(name) + " " + std::to_string(pid) + (ids.empty() ? "" : ":");
  for (const std::uint32_t id : ids) line += " " + std::to_string(id);
  log.push_back(std::move(line));
  clock_ns += takes_ns;
  const bool fails = calls++ == fail_call;
  if (fails && failing == Failing::before) return -fail_error;
  const int result = body();
  return fails ? -fail_error : result;
}

FakeKfd::Process* FakeKfd::admitted(int pid, bool is_enable, bool is_disable, bool touches_hardware, int* error) {
  const auto refuse = [&](int number) -> Process* { return *error = -number, nullptr; };
  if (sched_policy == 2) return refuse(EINVAL);
  const auto found = processes.find(pid);
  if (found == processes.end()) return refuse(ESRCH);
  Process& process = found->second;
  if (pid != self && !is_disable && !process.is_traced) return refuse(EPERM);
  if (process.is_sampled) return refuse(EBUSY);
  if (!is_enable && !process.is_enabled) return refuse(EINVAL);
  if (touches_hardware && process.runtime != RuntimeState::enabled) return refuse(EPERM);
  return &process;
}

void FakeKfd::remap_others(std::uint32_t gpu_id, const Queue* meant) {
  if (is_mes) return;
  for (auto& [pid, process] : processes)
    for (auto& [id, queue] : process.queues)
      if (&queue != meant && queue.gpu_id == gpu_id &&
          (queue.state == QueueState::active || queue.state == QueueState::fresh))
        ++queue.remapped;
}

void FakeKfd::resume(Queue& queue) {
  if (queue.state != QueueState::suspended) return;
  queue.state = queue.is_being_destroyed ? QueueState::destroyed : QueueState::active;
}

std::size_t FakeKfd::suspended() const {
  std::size_t count = 0;
  for (const auto& [pid, process] : processes)
    for (const auto& [id, queue] : process.queues) count += queue.state == QueueState::suspended;
  return count;
}

bool FakeKfd::destroy_queue(int pid, std::uint32_t id) {
  Queue& queue = processes.at(pid).queues.at(id);
  queue.is_being_destroyed = true;
  if (queue.state == QueueState::suspended) return false;
  queue.state = QueueState::destroyed;
  return true;
}

int FakeKfd::version(kfd::InterfaceVersion* version) noexcept {
  return call("version", self, other_ns, {}, [&] { return *version = interface, 0; });
}

int FakeKfd::attach(int pid) noexcept {
  return call("attach", pid, other_ns, {}, [&] {
    const auto found = processes.find(pid);
    if (found == processes.end()) return -ESRCH;
    if (!found->second.may_be_traced || found->second.is_traced) return -EPERM;
    return found->second.is_traced = true, 0;
  });
}

int FakeKfd::detach(int pid) noexcept {
  return call("detach", pid, other_ns, {}, [&] { return processes[pid].is_traced = false, 0; });
}

int FakeKfd::runtime_enable() noexcept {
  return call("runtime", self, other_ns, {}, [&] {
    Process& process = processes[self];
    if (process.runtime != RuntimeState::disabled) return -EBUSY;
    if (!process.queues.empty()) return -EEXIST;
    return process.runtime = RuntimeState::enabled, 0;
  });
}

int FakeKfd::runtime_disable() noexcept {
  return call("no runtime", self, other_ns, {}, [&] { return processes[self].runtime = RuntimeState::disabled, 0; });
}

int FakeKfd::enable(int pid, std::uint64_t, RuntimeState* state) noexcept {
  return call("enable", pid, other_ns, {}, [&] {
    int error = 0;
    Process* const process = admitted(pid, true, false, false, &error);
    if (process == nullptr) return error;
    if (process->is_enabled) return -EALREADY;
    process->is_enabled = true;
    return *state = process->runtime, 0;
  });
}

int FakeKfd::disable(int pid) noexcept {
  return call("disable", pid, other_ns, {}, [&] {
    int error = 0;
    Process* const process = admitted(pid, false, true, false, &error);
    if (process == nullptr) return error;
    process->is_enabled = false;
    for (auto& [id, queue] : process->queues) resume(queue);
    return 0;
  });
}

int FakeKfd::suspend_queues(int pid, std::span<std::uint32_t> ids, std::uint64_t, std::uint32_t) noexcept {
  return call("suspend", pid, suspend_ns, ids, [&] {
    int error = 0, count = miscount;
    Process* const process = admitted(pid, false, false, true, &error);
    if (process == nullptr) return error;
    std::set<std::uint32_t> gpus;
    for (std::uint32_t& id : ids) {
      const auto found = process->queues.find(id);
      id |= kfd::kQueueInvalid;
      if (found == process->queues.end()) continue;
      Queue& queue = found->second;
      if (queue.state == QueueState::fresh || queue.state == QueueState::destroyed) continue;
      if (queue.is_being_destroyed && queue.state != QueueState::suspended) continue;
      id &= ~kfd::kQueueInvalid;
      queue.state = QueueState::suspended;  // also where the hardware then does not let go
      if (gpus.insert(queue.gpu_id).second) remap_others(queue.gpu_id, &queue);
      if (queue.is_stuck)
        id |= kfd::kQueueFailed;
      else
        ++count;
    }
    return count;
  });
}

int FakeKfd::resume_queues(int pid, std::span<std::uint32_t> ids) noexcept {
  return call("resume", pid, resume_ns, ids, [&] {
    int error = 0, count = 0;
    Process* const process = admitted(pid, false, false, true, &error);
    if (process == nullptr) return error;
    if (ids.empty())
      for (auto& [id, queue] : process->queues) count += queue.state == QueueState::suspended, resume(queue);
    for (std::uint32_t& id : ids) {
      const auto found = process->queues.find(id);
      if (found == process->queues.end() || found->second.state == QueueState::destroyed) {
        id |= kfd::kQueueInvalid;
        continue;
      }
      resume(found->second);
      remap_others(found->second.gpu_id, &found->second);
      ++count;
    }
    return count;
  });
}

int FakeKfd::queue_snapshot(int pid, std::uint64_t mask, std::span<kfd::QueueSnapshot> queues) noexcept {
  return call("snapshot", pid, other_ns, {}, [&] {
    int error = 0, count = 0;
    Process* const process = admitted(pid, false, false, true, &error);
    if (process == nullptr) return error;
    for (auto& [id, queue] : process->queues) {
      if (queue.state == QueueState::destroyed) continue;
      const auto at = static_cast<std::size_t>(count++);
      if (at < queues.size())
        queues[at] = {.exception_status = queue.state == QueueState::fresh ? kfd::kQueueNew : 0,
                      .queue_id = id,
                      .gpu_id = queue.gpu_id,
                      .ring_bytes = 1 << 20,
                      .queue_type = queue.type};
      if (at < queues.size() && queue.state == QueueState::fresh && (mask & kfd::kQueueNew) != 0)
        queue.state = QueueState::active;
    }
    return count;
  });
}

}  // namespace weir::testing
