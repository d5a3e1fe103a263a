// One side of a comparison from a timeline. Knows spans, but no AMD file.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <unordered_map>

#include "amd/compare/case_load.h"
#include "amd/compare/case_samples.h"
#include "base/error.h"
#include "trace/device_spans.h"
#include "trace/intervals.h"

namespace weir::amd {
namespace {

bool is_launch(const Span& span) { return span.kind == SpanKind::kernel || span.kind == SpanKind::collective; }

std::uint16_t process_of(const Timeline& timeline, const Span& span) {
  if (span.stream >= timeline.streams.size()) return 0;
  const std::uint16_t device = timeline.streams[span.stream].device;
  return device < timeline.devices.size() ? timeline.devices[device].process : std::uint16_t{0};
}

class TimelineSide {
 public:
  TimelineSide(const Timeline& timeline, const std::string& name) : timeline_(timeline) {
    side_.source = CaseSource::timeline;
    side_.name = name;
    side_.basis.push_back(
        fmt::format("timeline ({})", timeline.source.empty() ? "of no stated origin" : timeline.source));
    for (const std::uint32_t i : device_work_by_start(timeline)) {
      const Span& span = timeline.spans[i];
      by_process_[process_of(timeline, span)].push_back(i);
      if (!is_launch(span)) continue;
      ++side_.launches;
      are_submitted_ = are_submitted_ && handed_over_ns(span) != kNoTime;
    }
    if (side_.launches == 0)
      reject(fmt::format("{}: no kernel in it ran on a device", name), "Trace a run that launches kernels.");
  }

  CaseSide finish() {
    take_queues();
    take_kernels();
    sampler_.set_idle_known();
    for (const auto& [process, spans] : by_process_) take_process(spans);
    if (by_process_.size() > 1)
      side_.notes.push_back(
          fmt::format("{} processes are put together: gaps and pauses are within each.", by_process_.size()));
    side_.launch_time = are_submitted_ ? "when the driver had it" : "when it started on the device";
    side_.pause_time = fmt::format("{} ms or more in which no kernel ran", kPauseNs / 1'000'000);
    side_.barriers_reason = side_.of(CaseQuantity::barrier_rate).reason = "a timeline shows no packets of its queues";
    if (!are_submitted_)
      side_.of(CaseQuantity::backlog).reason = "the timeline does not say when launches were submitted";
    take_copies();
    take_samples(sampler_, side_);
    return std::move(side_);
  }

 private:
  // A queue with copies but no kernels belongs to a copy engine, as does one that the source marks as such by its id.
  void take_queues() {
    struct Use {
      std::uint64_t launches = 0, copies = 0;
    };
    std::map<std::int32_t, Use> uses;
    Use without;
    for (const auto& [process, spans] : by_process_)
      for (const std::uint32_t i : spans) {
        const Span& span = timeline_.spans[i];
        Use& use = span.queue == kNoQueue ? without : uses[span.queue];
        (is_launch(span) ? use.launches : use.copies) += 1;
      }
    std::map<std::int32_t, std::string> labels;
    for (const TraceQueue& named : timeline_.queues) labels[named.id] = named.label;
    for (const auto& [id, use] : uses) {
      CaseQueue queue;
      queue.kind = id >= kCopyQueues || use.launches == 0 ? CaseQueue::Kind::copy : CaseQueue::Kind::compute;
      queue.label = labels[id].empty() ? fmt::format("queue {}", id) : labels[id];
      queue.seen_in = "timeline";
      queue.launches = use.launches;
      side_.queues.push_back(std::move(queue));
    }
    if (without.copies > 0)
      side_.copy_queues_reason = fmt::format("the timeline does not name the queues of {} copies", without.copies);
    if (side_.count(CaseQueue::Kind::compute) == 0) {
      side_.queues_reason = "the timeline names no hardware queue that a kernel was on";
    } else if (without.launches > 0) {
      side_.notes.push_back(fmt::format("{} launches have no queue: there may be more queues.", without.launches));
    }
  }

  void take_kernels() {
    std::unordered_map<std::uint32_t, CaseKernel> kernels;
    for (const auto& [process, spans] : by_process_)
      for (const std::uint32_t i : spans) {
        const Span& span = timeline_.spans[i];
        if (!is_launch(span)) continue;
        if (span.name >= timeline_.names.size()) {
          ++side_.unnamed_launches;
          continue;
        }
        CaseKernel& kernel = kernels[span.name];
        ++kernel.count;
        kernel.total_ns =
            kernel.total_ns.value_or(0) + static_cast<double>(distance_ns(span.started_ns, span.ended_ns));
      }
    for (auto& [name, kernel] : kernels) {
      kernel.name = timeline_.names[name];
      side_.kernels.push_back(std::move(kernel));
    }
    std::sort(side_.kernels.begin(), side_.kernels.end(), [](const CaseKernel& a, const CaseKernel& b) {
      return a.count != b.count ? a.count > b.count : a.name < b.name;
    });
    if (side_.kernels.empty()) side_.kernels_reason = "the timeline has no names";
  }

  void take_copies() {
    std::uint64_t copies = 0, bytes = 0;
    for (const auto& [process, spans] : by_process_)
      for (const std::uint32_t i : spans) {
        const Span& span = timeline_.spans[i];
        if (is_launch(span)) continue;
        ++copies;
        bytes += span.bytes;
      }
    side_.copies = copies;
    side_.copied_bytes = bytes;
    std::uint64_t engines = side_.count(CaseQueue::Kind::copy);
    if (engines > 0) side_.copy_engines = engines;
  }

  // Sorted by start. Launches use the time that all of them have.
  void take_process(const std::vector<std::uint32_t>& spans) {
    sampler_.begin_run();
    struct Moment {
      std::int64_t at;
      std::uint32_t span;
    };
    std::vector<Moment> moments;
    std::int64_t busy_until = kNoTime;
    for (const std::uint32_t i : spans) {
      const Span& span = timeline_.spans[i];
      const bool is_by_submit = are_submitted_ && is_launch(span);
      moments.push_back({is_by_submit ? handed_over_ns(span) : span.started_ns, i});
      if (!is_launch(span)) continue;
      const auto duration = static_cast<double>(distance_ns(span.started_ns, span.ended_ns));
      sampler_.duration_ns.add(duration);
      side_.kernel_time_ns += duration;
      side_.longest_kernel_ns = std::max(side_.longest_kernel_ns, duration);
    }
    std::stable_sort(moments.begin(), moments.end(), [](const Moment& a, const Moment& b) { return a.at < b.at; });
    for (const Moment& moment : moments) {
      const Span& span = timeline_.spans[moment.span];
      if (is_launch(span)) {
        sampler_.launch(moment.at);
      } else {
        sampler_.copy(moment.at, static_cast<double>(span.bytes));
      }
    }
    for (const std::uint32_t i : spans) {
      const Span& span = timeline_.spans[i];
      if (!is_launch(span)) continue;
      if (busy_until != kNoTime) sampler_.idle(busy_until, span.started_ns);
      busy_until = std::max(busy_until, span.ended_ns);
    }
    if (are_submitted_) take_backlog(spans);
  }

  // Launches on the same queue (or stream, if queues are not named) that had been submitted but not started when this
  // one was submitted.
  void take_backlog(const std::vector<std::uint32_t>& spans) {
    std::map<std::pair<bool, std::int64_t>, std::vector<std::uint32_t>> lanes;
    for (const std::uint32_t i : spans) {
      const Span& span = timeline_.spans[i];
      if (!is_launch(span)) continue;
      const bool has_queue = span.queue != kNoQueue;
      lanes[{has_queue, has_queue ? span.queue : span.stream}].push_back(i);
    }
    for (const auto& [lane, own] : lanes) {
      std::vector<std::int64_t> handed, started;
      for (const std::uint32_t i : own) {
        handed.push_back(handed_over_ns(timeline_.spans[i]));
        started.push_back(timeline_.spans[i].started_ns);
      }
      std::sort(handed.begin(), handed.end());
      std::sort(started.begin(), started.end());
      std::size_t before = 0;
      for (std::size_t i = 0; i < handed.size(); ++i) {
        while (before < started.size() && started[before] <= handed[i]) ++before;
        sampler_.backlog.add(static_cast<double>(i > before ? i - before : 0));
      }
    }
  }

  const Timeline& timeline_;
  CaseSide side_;
  CaseSampler sampler_;
  std::map<std::uint16_t, std::vector<std::uint32_t>> by_process_;
  bool are_submitted_ = true;
};

}  // namespace

CaseSide side_of_timeline(const Timeline& timeline, const std::string& name) {
  return TimelineSide(timeline, name).finish();
}

}  // namespace weir::amd
