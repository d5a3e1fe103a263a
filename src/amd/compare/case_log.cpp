// One side of a comparison from runtime logs, with or without KFD snapshots. Knows no timeline.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "amd/capture/manifest.h"
#include "amd/compare/case_load.h"
#include "amd/compare/case_samples.h"
#include "amd/kfd/snapshot.h"
#include "amd/log/log_reader.h"
#include "amd/log/log_summary.h"
#include "base/error.h"

namespace weir::amd {
namespace {

// The summary of a log, and the samples in order, which a summary does not keep.
class CaseSink : public LogSummary {
 public:
  using LogSummary::on;
  void on(const Packet& packet) override {
    LogSummary::on(packet);
    if (packet.at.time_ns == INT64_MIN) return;
    switch (packet.kind) {
      case Packet::Kind::dispatch:
        sampler.launch(packet.at.time_ns);
        if (packet.read_index && packet.write_index && *packet.write_index >= *packet.read_index)
          sampler.backlog.add(static_cast<double>(*packet.write_index - *packet.read_index));
        break;
      case Packet::Kind::other:
        break;
      default:
        sampler.barrier(packet.at.time_ns);
    }
  }
  void on(const KernelNamed& kernel) override {
    LogSummary::on(kernel);
    if (kernel.at.time_ns != INT64_MIN) sampler.launch(kernel.at.time_ns);
  }
  void on(const LoggedCopy& copy) override {
    LogSummary::on(copy);
    if (copy.at.time_ns != INT64_MIN) sampler.copy(copy.at.time_ns, static_cast<double>(copy.bytes));
  }
  void on_restart(std::uint64_t line) override {
    LogSummary::on_restart(line);
    sampler.begin_run();
  }
  CaseSampler sampler;
};

void take_queues(const ProcessSummary& process, CaseSide& side) {
  for (const QueueSummary& from : process.queues) {
    CaseQueue queue;
    queue.label = fmt::format("{:#x}", from.hwq);
    queue.seen_in = "log";
    if (from.is_ring) queue.ring = from.hwq;
    queue.pid = process.pid;
    queue.created_ns = from.created_ns;
    queue.priority = from.priority;
    queue.ring_packets = from.packets;
    queue.launches = from.launched();
    if (process.dispatches > 0) queue.barriers = from.barriers;
    if (from.streams_most) queue.streams = static_cast<std::uint64_t>(std::max(0, *from.streams_most));
    side.queues.push_back(std::move(queue));
  }
}

void take_kernels(const LogSummary& log, CaseSide& side) {
  std::map<std::uint32_t, std::uint64_t> counts;
  for (const ProcessSummary& process : log.processes()) {
    for (const auto& [name, count] : process.kernels) counts[name] += count;
    side.unnamed_launches += process.uncounted_kernels;
  }
  for (const auto& [name, count] : counts)
    if (name < log.kernel_names().size()) side.kernels.push_back({log.kernel_names()[name], count, {}});
}

void take_log(const CaseSink& log, CaseSide& side) {
  LogTotals totals;
  std::set<std::uint32_t> engines;
  std::set<int> pids;
  for (const ProcessSummary& process : log.processes()) {
    totals.dispatches += process.dispatches;
    totals.barriers += process.barriers;
    side.launches += process.launched();
    for (const auto& [engine, found] : process.copies) {
      totals.copies += found.count;
      totals.copied_bytes += found.bytes;
      if (engine) engines.insert(*engine);
    }
    if (process.pid) {
      pids.insert(*process.pid);
    } else {
      side.has_unknown_process = true;
    }
    take_queues(process, side);
  }
  side.pids.assign(pids.begin(), pids.end());
  totals.engines = engines.size();
  take_kernels(log, side);
  take_totals(totals, side);
  side.of(CaseQuantity::barrier_rate).reason = side.of(CaseQuantity::backlog).reason = side.barriers_reason;
  side.of(CaseQuantity::copy_rate).reason = side.of(CaseQuantity::copied_bytes_rate).reason = side.copies_reason;
  side.pause_time =
      fmt::format("{} ms or more between one launch and the next, by the host's clock", kPauseNs / 1'000'000);
  if (side.launches == 0)
    for (const CaseQuantity quantity : {CaseQuantity::launch_rate, CaseQuantity::gap, CaseQuantity::pause_share})
      side.of(quantity).reason = "the log shows no launch";
  if (log.restart_count() > 0)
    side.notes.push_back(fmt::format("The log begins anew {} time{}: runs are put together.", log.restart_count(),
                                     log.restart_count() == 1 ? "" : "s"));
}

void read_into(const std::filesystem::path& file, CaseSink& sink, CaseSide& side, const std::atomic<bool>* stop) {
  LogOptions options;
  options.stop = stop;
  const LogReading reading = read_log(file, sink, options);
  side.basis.push_back(
      fmt::format("log {}: {} lines, level {}", file.filename().string(), reading.lines, reading.highest_level));
  std::uint64_t unread = 0;
  for (const UnreadLines& lines : reading.unread) unread += lines.count;
  if (unread > 0)
    side.notes.push_back(
        fmt::format("{}: {} lines could not be read; `weir amd log` says why.", file.filename().string(), unread));
  if (!reading.problem.empty()) side.notes.push_back(fmt::format("{}: {}", file.filename().string(), reading.problem));
}

// Queues from snapshots: those of the captured processes if KFD names the owner, otherwise those that came with the
// run.
class SnapshotQueues {
 public:
  explicit SnapshotQueues(const CaptureManifest& manifest) {
    for (const CapturedProcess& process : manifest.processes)
      if (!process.pids.empty()) host_pids_.insert(process.pids.front());
  }
  void add_before(const std::vector<kfd::Queue>& queues) {
    has_before_ = true;
    for (const kfd::Queue& queue : queues) before_.insert({queue.gpu_id, queue.ring_base});
  }
  void add_during(const std::vector<kfd::Queue>& queues) {
    for (const kfd::Queue& queue : queues) {
      if (queue.kind != kfd::QueueKind::compute && queue.kind != kfd::QueueKind::sdma) continue;
      if (queue.pid ? !host_pids_.contains(*queue.pid) : before_.contains({queue.gpu_id, queue.ring_base})) continue;
      is_owner_known_ = is_owner_known_ && queue.pid.has_value();
      found_.try_emplace({queue.gpu_id, queue.ring_base}, queue);
      for (const kfd::Slot& slot : queue.slots) slots_.insert({queue.gpu_id, slot.pipe, slot.queue});
    }
  }

  // A queue in the log with the same ring is the same queue; the log's facts take precedence.
  void merge_into(CaseSide& side) const {
    for (const auto& [key, from] : found_) {
      const bool is_compute = from.kind == kfd::QueueKind::compute;
      const auto same = std::find_if(side.queues.begin(), side.queues.end(), [&](const CaseQueue& queue) {
        return is_compute && queue.ring && *queue.ring == from.ring_base;
      });
      CaseQueue* queue = same == side.queues.end() ? nullptr : &*same;
      if (queue == nullptr) {
        queue = &side.queues.emplace_back();
        queue->kind = is_compute ? CaseQueue::Kind::compute : CaseQueue::Kind::copy;
        queue->label = fmt::format("{:#x}", from.ring_base);
        queue->seen_in = "snapshot";
        queue->ring = from.ring_base;
      } else {
        queue->seen_in = "log and snapshot";
      }
      if (!queue->priority) queue->priority = from.pipe_priority;
      if (!queue->ring_packets && from.is_aql) queue->ring_packets = from.ring_bytes / 64;
    }
    side.slots.assign(slots_.begin(), slots_.end());
    if (!found_.empty() && !is_owner_known_)
      side.notes.push_back(has_before_ ? "Snapshots do not say whose queues are: those that were there before the run "
                                         "are left out, others may be of other programs."
                                       : "Snapshots do not say whose queues are, and none was taken before the run: "
                                         "some may be of other programs.");
  }

 private:
  std::set<int> host_pids_;
  std::set<std::pair<std::uint32_t, std::uint64_t>> before_;
  std::map<std::pair<std::uint32_t, std::uint64_t>, kfd::Queue> found_;
  std::set<CaseSlot> slots_;
  bool has_before_ = false, is_owner_known_ = true;
};

}  // namespace

CaseSide side_of_log(const std::filesystem::path& file, const std::atomic<bool>* stop) {
  CaseSide side;
  side.source = CaseSource::log;
  side.name = file.string();
  CaseSink sink;
  read_into(file, sink, side, stop);
  take_log(sink, side);
  take_samples(sink.sampler, side);
  return side;
}

CaseSide side_of_capture(const std::filesystem::path& folder, const std::atomic<bool>* stop) {
  const CaptureManifest manifest = load_manifest(folder);
  CaseSide side;
  side.source = CaseSource::capture;
  side.name = folder.string();
  CaseSink sink;
  bool has_log = false;
  for (const CapturePart& part : manifest.parts)
    for (const std::string& file : part.files) {
      if (part.name != "log") continue;
      if (has_log) sink.sampler.begin_run();
      has_log = true;
      read_into(folder / file, sink, side, stop);
    }
  SnapshotQueues snapshots(manifest);
  std::size_t taken = 0;
  bool has_hqds = false;
  for (const bool is_during : {false, true})
    for (const CaptureSnapshot& snapshot : manifest.snapshots) {
      if (snapshot.when.starts_with("during") != is_during || snapshot.when == "after") continue;
      const kfd::Snapshot loaded = kfd::load_snapshot(folder / snapshot.folder);
      if (!loaded.hqds && !loaded.mqds) continue;
      const std::vector<kfd::Queue> queues = kfd::queues_of(loaded);
      if (is_during) {
        snapshots.add_during(queues);
        ++taken;
        has_hqds = has_hqds || loaded.hqds.has_value();
      } else {
        snapshots.add_before(queues);
      }
    }
  if (!has_log && taken == 0)
    reject(fmt::format("{}: an empty capture: neither a log nor a snapshot that was taken during the run",
                       folder.string()),
           "Its manifest.json says what was missing and why. Capture again.");
  take_log(sink, side);
  if (!has_log) {
    side.queues_reason.clear();
    side.kernels_reason = side.copies_reason = side.barriers_reason = "the capture has no log";
    for (CaseSamples& samples : side.samples) samples.reason = "the capture has no log";
  }
  if (taken > 0) {
    side.basis.push_back(fmt::format("{} snapshot{} of KFD during the run", taken, taken == 1 ? "" : "s"));
    snapshots.merge_into(side);
    side.copy_queues_reason = has_hqds ? "" : "the snapshots have no hqds, where queues of copy engines would be";
    if (side.queues.empty()) side.queues_reason = "neither the log nor a snapshot shows a queue of the program";
    if (!side.queues.empty()) side.queues_reason.clear();
  }
  take_samples(sink.sampler, side);
  return side;
}

}  // namespace weir::amd
