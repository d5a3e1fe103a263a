// The fake GPU's profiler: records arrive late, in the wrong order, and not all of them where a test wants that.
#include <algorithm>

#include "base/clock.h"
#include "device/fake_gpu_state.h"

namespace weir::fake_gpu {
namespace {

constexpr std::uint64_t kFirstStream = 7;  // ids are not ours

std::uint64_t id_of(GpuStream stream) { return kFirstStream + static_cast<std::uint64_t>(stream->number); }

void report(GpuActivityRecord record) {
  Activity& a = state().activity;
  const Settings& settings = state().settings;
  if (!a.is_open) return;
  const int index = a.made++;
  if (index == settings.drop_record) {
    a.dropped += settings.counts_dropped ? 1 : 0;
    return;
  }
  if (settings.swaps_kinds && record.kind == GpuActivityRecord::Kind::copy)
    record.kind = GpuActivityRecord::Kind::kernel;
  if (index == settings.incomplete_record) {
    record.started_ns = record.ended_ns = kNoTime;
    a.incomplete.push_back(record);
    return;
  }
  a.pending.push_back(record);
}

}  // namespace

int enqueue_seen(GpuStream stream, GpuActivityRecord::Kind kind, std::function<int()> work) {
  State& s = state();
  if (!s.activity.is_open || stream->capture != nullptr) return enqueue_work(stream, std::move(work));
  GpuActivityRecord record;
  record.kind = kind;
  record.correlation = ++s.activity.correlation;
  record.stream = id_of(stream);
  const bool is_copy = kind == GpuActivityRecord::Kind::copy;
  record.channel = is_copy ? 0 : static_cast<std::uint32_t>(stream->number % 8);
  record.channel_type = is_copy ? GpuActivityRecord::Channel::copy : GpuActivityRecord::Channel::compute;
  return enqueue_work(stream, [record, work = std::move(work)]() mutable {
    record.started_ns = now_ns();
    const int result = work();
    record.ended_ns = now_ns();
    report(record);
    return result;
  });
}

const GpuActivity* activity(std::string* reason) {
  static const GpuActivity kActivity = [] {
    GpuActivity table{};
    table.start = [] {
      const Lock lock(state().mutex);
      Activity& a = state().activity;
      if (state().settings.activity_error != 0) return state().settings.activity_error;
      if (a.is_open) return kActivityBusy;
      return a.is_open = true, ++a.starts, 0;
    };
    table.stop = [] {
      const Lock lock(state().mutex);
      state().activity.is_open = false;
      ++state().activity.stops;
    };
    table.flush = [](bool is_forced) {
      const Lock lock(state().mutex);
      Activity& a = state().activity;
      if (is_forced) a.pending.insert(a.pending.end(), a.incomplete.begin(), a.incomplete.end());
      if (is_forced) a.incomplete.clear();
      a.arrived.insert(a.arrived.end(), a.pending.rbegin(), a.pending.rend());
      a.pending.clear();
      return 0;
    };
    table.stream_id = [](GpuContext, GpuStream stream, std::uint64_t* id) { return *id = id_of(stream), 0; };
    table.take = [](std::vector<GpuActivityRecord>* records) {
      const Lock lock(state().mutex);
      Activity& a = state().activity;
      records->insert(records->end(), a.arrived.begin(), a.arrived.end());
      a.arrived.clear();
      return std::exchange(a.dropped, 0);
    };
    table.describe = [](int result) { return "fake profiler's error " + std::to_string(result); };
    table.version = "fake profiler 1";
    return table;
  }();
  if (state().settings.has_activity) return &kActivity;
  *reason = "there is no fake profiler";
  return nullptr;
}

int graph_kernels(GpuGraph graph, std::vector<GpuRecordedKernel>* kernels) {
  for (auto& [stream, operation] : graph->capture.operations) {
    kernels->push_back({.grid = {3, 2, 1}, .block = {128, 1, 1}, .parameters = reinterpret_cast<void**>(&operation)});
    kernels->push_back({.grid = {1, 1, 1}, .block = {128, 1, 1}});  // as if it added parts up
  }
  return 0;
}

int launch_recorded(const GpuRecordedKernel& kernel, GpuStream stream) {
  const Lock lock(state().mutex);
  const auto* const operation = reinterpret_cast<const Operation*>(kernel.parameters);
  return enqueue_seen(stream, GpuActivityRecord::Kind::kernel,
                      operation == nullptr ? std::function<int()>([] { return 0; }) : operation->work);
}

}  // namespace weir::fake_gpu
