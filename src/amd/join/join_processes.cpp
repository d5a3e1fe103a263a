// Finds the host process of a process in the log. Never by equal pids alone.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "amd/join/join_match.h"

namespace weir::amd {
namespace {

// By shared rings: exactly one host process has any of them.
void match_by_rings(const ProcessSummary& summary, const RingOwners& owners, JoinedProcess& process) {
  std::map<int, std::set<std::uint64_t>> common;
  for (const QueueSummary& queue : summary.queues) {
    if (!queue.is_ring) continue;
    const auto found = owners.find(queue.hwq);
    if (found == owners.end()) continue;
    for (const int pid : found->second) common[pid].insert(queue.hwq);
  }
  if (common.size() == 1) {
    process.host_pid = common.begin()->first;
    process.rings = common.begin()->second.size();
    process.basis = ProcessBasis::rings;
    process.reason.clear();
  } else if (common.size() > 1) {
    process.reason += fmt::format("; {} processes of the host have rings at its addresses", common.size());
  } else {
    process.reason += "; no process of the host was seen with one of its rings";
  }
}

std::vector<const CapturedProcess*> named_by(const std::vector<CapturedProcess>& processes, int log_pid) {
  std::vector<const CapturedProcess*> found;
  // The program sees its innermost pid, which is the last in NSpid.
  for (const CapturedProcess& process : processes)
    if (!process.pids.empty() && process.pids.back() == log_pid) found.push_back(&process);
  return found;
}

void match_by_manifest(const JoinInput& input, const ProcessSummary& summary, JoinedProcess& process) {
  const auto take = [&](const CapturedProcess& captured, ProcessBasis basis) {
    process.host_pid = captured.pids.front();
    process.name = captured.name;
    process.basis = basis;
  };
  if (!summary.pid) {
    // Lines without pid may come from any process that inherited the log.
    if (input.processes.size() == 1 && !input.processes[0].pids.empty() && input.logged.size() == 1)
      return take(input.processes[0], ProcessBasis::only_process);
    process.reason = input.processes.empty()
                         ? "the log has no process ids (they begin with AMD_LOG_LEVEL=4), and there is no manifest"
                         : fmt::format(
                               "the log has no process ids (they begin with AMD_LOG_LEVEL=4), and the manifest "
                               "has {} processes",
                               input.processes.size());
    return;
  }
  const auto found = named_by(input.processes, *summary.pid);
  if (found.size() == 1) return take(*found[0], ProcessBasis::manifest);
  if (input.processes.empty())
    process.reason = "there is no list of processes (a manifest has one)";
  else if (found.empty())
    process.reason = fmt::format("the manifest has no process {}", *summary.pid);
  else
    process.reason =
        fmt::format("the manifest has {} processes {}, in namespaces of their own", found.size(), *summary.pid);
}

// Children of one parent have equal addresses: rings that fit two processes of the log prove nothing about either.
void drop_contested(std::vector<JoinedProcess>& processes) {
  std::map<int, std::set<int>> claims;  // host process -> processes of the log
  for (const JoinedProcess& process : processes)
    if (process.host_pid && process.log_pid) claims[*process.host_pid].insert(*process.log_pid);
  for (JoinedProcess& process : processes) {
    if (process.basis != ProcessBasis::rings || claims[*process.host_pid].size() < 2) continue;
    process.reason = fmt::format(
        "process {} of the host has rings at its addresses, and at those of another of the log", *process.host_pid);
    process.host_pid.reset();
    process.basis = ProcessBasis::none;
    process.rings = 0;
  }
}

}  // namespace

RingOwners ring_owners(const JoinInput& input) {
  RingOwners owners;
  for (const JoinSnapshot& snapshot : input.snapshots)
    for (const kfd::Queue& queue : snapshot.queues)
      if (queue.pid && queue.ring_base != 0) owners[queue.ring_base].insert(*queue.pid);
  for (const ftrace::KfdSpan& call : input.calls)
    if (call.process && call.ring_base && *call.ring_base != 0) owners[*call.ring_base].insert(*call.process);
  return owners;
}

std::vector<JoinedProcess> match_processes(const JoinInput& input) {
  const RingOwners owners = ring_owners(input);
  std::vector<JoinedProcess> processes;
  for (const LoggedProcess& logged : input.logged) {
    JoinedProcess process;
    process.log_pid = logged.summary->pid;
    const auto given = std::find_if(input.given.begin(), input.given.end(), [&](const auto& pair) {
      return process.log_pid && pair.first == *process.log_pid;
    });
    if (given != input.given.end()) {
      process.host_pid = given->second;
      process.basis = ProcessBasis::given;
    } else {
      match_by_manifest(input, *logged.summary, process);
    }
    if (process.basis == ProcessBasis::none) match_by_rings(*logged.summary, owners, process);
    processes.push_back(std::move(process));
  }
  drop_contested(processes);
  return processes;
}

}  // namespace weir::amd
