#include "trace/import/kineto_finish.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <tuple>

#include "trace/import/kineto_timeline.h"

namespace weir {
namespace {

// Limit of operations that share an external id; a collective has two or three.
constexpr int kMaxOperations = 16;

// Fills in the fields that are not known yet.
void complete(TraceCollective& facts, const TraceCollective& from) noexcept {
  if (facts.kind == CollectiveKind::unknown) facts.kind = from.kind;
  if (facts.ranks == 0) facts.ranks = from.ranks;
  if (facts.group == kNoName) facts.group = from.group;
  if (facts.bytes == 0) facts.bytes = from.bytes;
  if (facts.sequence == 0) facts.sequence = from.sequence;
}

}  // namespace

// A kernel belongs to the collective in which its call was made; files of 2024 and later give both the same external
// id.
void KinetoTimeline::join_collectives() {
  if (facts_.collectives.empty() || facts_.operations.empty()) return;
  const auto by_time = [](const KinetoFacts::Operation& a, const KinetoFacts::Operation& b) {
    return std::tie(a.process, a.thread, a.started_ns) < std::tie(b.process, b.thread, b.started_ns);
  };
  std::sort(facts_.operations.begin(), facts_.operations.end(), by_time);
  std::vector<const KinetoFacts::Operation*> by_external;
  for (const KinetoFacts::Operation& operation : facts_.operations)
    if (operation.external != 0) by_external.push_back(&operation);
  const auto earlier = [](const KinetoFacts::Operation* a, const KinetoFacts::Operation* b) {
    return std::tie(a->process, a->external, a) < std::tie(b->process, b->external, b);
  };
  std::sort(by_external.begin(), by_external.end(), earlier);
  const auto by_correlation = [](const KinetoFacts::Call& a, const KinetoFacts::Call& b) {
    return std::tie(a.process, a.correlation) < std::tie(b.process, b.correlation);
  };
  std::sort(facts_.launches.begin(), facts_.launches.end(), by_correlation);
  for (const KinetoFacts::Pending& pending : facts_.collectives) {
    TraceCollective facts;
    const auto take = [&](std::uint64_t external) {
      if (external == 0) return;
      const auto before = [&](const KinetoFacts::Operation* operation, std::uint64_t id) {
        return std::tie(operation->process, operation->external) < std::tie(pending.process, id);
      };
      auto at = std::lower_bound(by_external.begin(), by_external.end(), external, before);
      for (int i = 0; i < kMaxOperations && at != by_external.end(); ++i, ++at) {
        if ((*at)->process != pending.process || (*at)->external != external) break;
        complete(facts, (*at)->facts);
      }
    };
    take(pending.external);
    const KinetoFacts::Call wanted{pending.process, pending.correlation, 0, 0, 0};
    const auto call = std::lower_bound(facts_.launches.begin(), facts_.launches.end(), wanted, by_correlation);
    if (pending.correlation != 0 && call != facts_.launches.end() && !by_correlation(wanted, *call)) {
      take(call->external);
      const KinetoFacts::Operation now{call->process, call->thread, call->started_ns, 0, 0, {}};
      auto at = std::upper_bound(facts_.operations.begin(), facts_.operations.end(), now, by_time);
      // Few operations enclose a call: nccl:all_reduce in record_param_comms.
      for (int i = 0; i < 4 && at != facts_.operations.begin(); ++i) {
        --at;
        if (at->process != call->process || at->thread != call->thread) break;
        if (at->ended_ns >= call->started_ns) complete(facts, at->facts);
      }
    }
    to_.about_collective(pending.command, facts);
  }
}

// ROCm records a copy's size only in its call.
void KinetoTimeline::join_copies() {
  if (facts_.copies.empty() || facts_.copy_calls.empty()) return;
  const auto by_correlation = [](const KinetoFacts::Copy& a, const KinetoFacts::Copy& b) {
    return std::tie(a.process, a.correlation) < std::tie(b.process, b.correlation);
  };
  std::stable_sort(facts_.copy_calls.begin(), facts_.copy_calls.end(), by_correlation);
  for (const KinetoFacts::Pending& copy : facts_.copies) {
    const KinetoFacts::Copy wanted{copy.process, copy.correlation, 0};
    const auto call = std::lower_bound(facts_.copy_calls.begin(), facts_.copy_calls.end(), wanted, by_correlation);
    if (call != facts_.copy_calls.end() && !by_correlation(wanted, *call)) to_.set_bytes(copy.command, call->bytes);
  }
}

// Until 2025 ROCm recorded grids only in calls; and only a call shows in what its grid is counted.
void KinetoTimeline::join_grids() {
  if (facts_.rocm_kernels.empty() || facts_.grids.empty()) return;
  const auto by_correlation = [](const KinetoFacts::Grid& a, const KinetoFacts::Grid& b) {
    return std::tie(a.process, a.correlation) < std::tie(b.process, b.correlation);
  };
  std::stable_sort(facts_.grids.begin(), facts_.grids.end(), by_correlation);
  for (const KinetoFacts::Pending& kernel : facts_.rocm_kernels) {
    const KinetoFacts::Grid wanted{kernel.process, 0, 0, kernel.correlation};
    const auto grid = std::lower_bound(facts_.grids.begin(), facts_.grids.end(), wanted, by_correlation);
    if (grid != facts_.grids.end() && !by_correlation(wanted, *grid))
      to_.set_grid(kernel.command, grid->blocks, grid->threads);
  }
}

void KinetoTimeline::join_waits() {
  for (const auto& [before, after] : own_waits_) {
    const auto first = commands_.find(before), second = commands_.find(after);
    if (first != commands_.end() && second != commands_.end()) to_.add(Dependency{first->second, second->second});
  }
}

// Says which operators allocated, too: the ones around the call, as for calls of the driver.
void KinetoTimeline::finish_memory() {
  std::vector<HostCall> calls(to_.wants_operations() ? facts_.memory.size() : 0);
  for (std::size_t i = 0; i < calls.size(); ++i) {
    calls[i].process = facts_.memory[i].process;
    calls[i].thread = facts_.memory[i].thread;
    calls[i].started_ns = calls[i].ended_ns = facts_.memory[i].change.at_ns;
  }
  stacks_.finish(calls);
  std::map<std::pair<std::uint16_t, std::int64_t>, std::uint16_t> device_of;
  std::map<std::uint16_t, std::size_t> devices_of;
  for (const auto& [device, used] : devices_) {
    device_of[{used.process, used.key.second}] = device;
    ++devices_of[used.process];
  }
  for (std::size_t i = 0; i < facts_.memory.size(); ++i) {
    KinetoFacts::Memory& memory = facts_.memory[i];
    auto found = device_of.find({memory.process, memory.device});
    // On ROCm commands number devices with the CPUs among them, and allocations do not.
    if (const auto own = devices_of.find(memory.process);
        found == device_of.end() && own != devices_of.end() && own->second == 1)
      found = device_of.lower_bound({memory.process, INT64_MIN});
    if (found == device_of.end()) {
      to_.drop("allocation on a device that ran no command", memory.at);
      continue;
    }
    memory.change.device = found->second;
    if (i < calls.size()) {
      memory.change.operation = calls[i].operation;
      memory.change.line = calls[i].line;
    }
    to_.add(memory.change, memory.at);
  }
  facts_.memory = {};
}

void KinetoTimeline::finish() {
  for (const auto& [key, events] : begun_)
    for (const KinetoEvent& event : events)
      if (is_command(event.category) || event.category == KinetoCategory::call)
        to_.drop("event that begins and never ends", event.at);
  begun_.clear();
  join_collectives();
  join_copies();
  join_grids();
  join_waits();
  finish_memory();
  // CUPTI's timestamps come from the GPU; Kineto on ROCm clips commands so that they do not overlap.
  if (are_gaps_exact_.value_or(has_cuda_calls_ && !has_rocm_ && has_fine_times_)) to_.trust_gaps();
  if (!are_gaps_exact_ && has_cuda_calls_ && !has_rocm_ && !has_fine_times_ && to_.command_count() > 0)
    to_.note("times are whole microseconds: gaps between commands are as coarse");
  const bool is_one_model = std::all_of(device_facts_.begin(), device_facts_.end(), [&](const auto& each) {
    return each.second.name == device_facts_.begin()->second.name &&
           each.second.multiprocessors == device_facts_.begin()->second.multiprocessors;
  });
  for (const auto& [device, used] : devices_) {
    const DeviceKey& key = used.key;
    auto found = device_facts_.find(key);
    if (found == device_facts_.end()) found = device_facts_.find({std::nullopt, key.second});
    // On ROCm commands number devices with the CPUs among them, and properties do not.
    if (found == device_facts_.end() && has_rocm_ && is_one_model) found = device_facts_.begin();
    if (found == device_facts_.end()) continue;
    const DeviceFacts& facts = found->second;
    if (!facts.name.empty()) to_.label_device(device, fmt::format("GPU {}: {}", key.second, facts.name));
    to_.describe_device(device, facts.name, facts.multiprocessors, facts.resident_threads);
  }
  // Clock numbers only need to differ between files.
  if (is_one_clock_)
    for (const std::uint16_t process : processes_) to_.set_clock(process, file_.process);
  if (rank_ && !has_ranks_ && *rank_ >= 0 && *rank_ <= std::numeric_limits<int>::max())
    to_.set_rank(file_.process, static_cast<int>(*rank_));
}

}  // namespace weir
