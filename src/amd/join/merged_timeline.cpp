#include "amd/join/merged_timeline.h"

#include <fmt/format.h>

#include "amd/ftrace/read.h"
#include "amd/join/timeline_events.h"
#include "amd/log/log_reader.h"
#include "base/named_values.h"
#include "trace/import/byte_source.h"

namespace weir::amd {
namespace {

constexpr std::int64_t kKfdGroups = 1'000'000;
constexpr std::size_t kMaxKfdProcesses = 256;

std::string end_word(ftrace::EndKind end) {
  return end == ftrace::EndKind::exact ? "return traced" : "last step seen: it took at least this long";
}

// KFD's calls, on a lane per process and verb.
class KfdLanes : public ftrace::KfdSink {
 public:
  KfdLanes(TimelineEvents& events, const Join& join, bool is_log_clock, TimelineCounts& counts)
      : events_(events), join_(join), counts_(counts) {
    if (!is_log_clock) return;
    offset_ns_ = join.clock.middle_ns();
    error_ = fmt::format(",\"clock error us\":{:.3f}",
                         static_cast<double>(join.clock.half_width_ns() + kStampErrorNs) / 1000.0);
  }

  void on(const ftrace::KfdSpan& span) override {
    if (span.started_ns <= -kMaxTimeNs || span.started_ns >= kMaxTimeNs) {
      ++counts_.without_time;
      return;
    }
    ++counts_.kfd_spans;
    const std::string_view verb = ftrace::name_of(span.verb);
    const Lane lane = events_.lane(group_of(span.process), static_cast<std::uint64_t>(span.verb), std::string(verb));
    std::string arguments = fmt::format("\"thread\":{},\"cpu\":{},\"line\":{}", span.pid, span.cpu, span.line);
    if (span.queue_id) arguments += fmt::format(",\"queue id\":{}", *span.queue_id);
    if (span.gpu_id) arguments += fmt::format(",\"gpu\":\"{:#x}\"", *span.gpu_id);
    if (span.doorbell) arguments += fmt::format(",\"doorbell\":\"{:#x}\"", *span.doorbell);
    if (span.ring_base) arguments += fmt::format(",\"ring\":\"{:#x}\"", *span.ring_base);
    if (span.result) arguments += fmt::format(",\"result\":{}", *span.result);
    const std::int64_t started_ns = plus(span.started_ns, offset_ns_);
    const bool has_end =
        span.end != ftrace::EndKind::unknown && span.ended_ns >= span.started_ns && span.ended_ns < kMaxTimeNs;
    const std::string name = span.queue_id ? fmt::format("{} queue {}", verb, *span.queue_id) : std::string(verb);
    if (has_end)
      events_.slice(lane, "kfd", name, started_ns, plus(span.ended_ns, offset_ns_),
                    arguments + fmt::format(",\"end\":\"{}\"", end_word(span.end)) + error_);
    else
      events_.mark(lane, "kfd", name, started_ns, arguments + ",\"end\":\"not known\"" + error_);
  }

 private:
  std::int64_t group_of(const std::optional<int>& process) {
    const int pid = process.value_or(-1);
    const auto found = groups_.find(pid);
    if (found != groups_.end()) return found->second;
    const bool is_full = groups_.size() >= kMaxKfdProcesses;
    const std::int64_t group = kKfdGroups + (is_full ? static_cast<std::int64_t>(kMaxKfdProcesses)
                                                     : static_cast<std::int64_t>(groups_.size()));
    if (is_full) {
      if (!has_others_) events_.name_group(group, "KFD: other processes");
      has_others_ = true;
      return group;
    }
    groups_[pid] = group;
    std::string name = process ? fmt::format("KFD: process {} of the host", pid) : "KFD: process not known";
    for (const JoinedProcess& joined : join_.processes)
      if (process && joined.host_pid == process && joined.log_pid)
        name += fmt::format(" ({} of the log)", *joined.log_pid);
    events_.name_group(group, name);
    return group;
  }

  TimelineEvents& events_;
  const Join& join_;
  TimelineCounts& counts_;
  std::int64_t offset_ns_ = 0;
  std::string error_;
  std::map<int, std::int64_t> groups_;
  bool has_others_ = false;
};

// Counts what cannot be drawn.
class LeftOut : public ftrace::KfdSink {
 public:
  explicit LeftOut(TimelineCounts& counts) : counts_(counts) {}
  void on(const ftrace::KfdSpan&) override { ++counts_.kfd_left_out; }

 private:
  TimelineCounts& counts_;
};

struct WriteStopped {};

void write_traces(const LoadedCapture& capture, const Join& join, TimelineEvents& events, TimelineCounts& counts,
                  const std::atomic<bool>* stop) {
  const bool has_log = capture.input.has_log || !capture.input.snapshots.empty();
  KfdLanes lanes(events, join, join.clock.is_known(), counts);
  LeftOut left_out(counts);
  const bool is_drawn = join.clock.is_known() || !has_log;
  for (const std::filesystem::path& path : capture.traces) {
    const auto source = open_bytes(path);
    ftrace::FtraceOptions options;
    options.name = path.string();
    options.progress = [stop] {
      if (is_stopped(stop)) throw WriteStopped{};
    };
    ftrace::read_ftrace(*source, is_drawn ? static_cast<ftrace::KfdSink&>(lanes) : left_out, options);
  }
}

Json about_json(const LoadedCapture& capture, const Join& join, const TimelineCounts& counts) {
  Json about = {{"schema", "weir.amd_timeline/1"},
                {"clock", nullptr},
                {"offset_ns", nullptr},
                {"error_ns", nullptr},
                {"kfd_left_out", counts.kfd_left_out}};
  about["clock"] = capture.input.has_log || !capture.input.snapshots.empty() ? "CLOCK_MONOTONIC" : "of the trace";
  if (join.clock.is_known()) {
    about["offset_ns"] = join.clock.middle_ns();
    about["error_ns"] = join.clock.half_width_ns() + kStampErrorNs;
  }
  about["packets"] =
      "Points without a duration: when the host wrote them. The log has no time at which the GPU ran them.";
  return about;
}

}  // namespace

TimelineCounts write_merged_timeline(const LoadedCapture& capture, const Join& join, const std::filesystem::path& path,
                                     bool overwrite, const std::atomic<bool>* stop) {
  TimelineCounts counts;
  try {
    TextFile file(path, overwrite, [stop] {
      if (is_stopped(stop)) throw WriteStopped{};
    });
    TimelineEvents events(file);
    events.open();
    write_log_lanes(capture, join, events, stop);
    if (is_stopped(stop)) throw WriteStopped{};
    write_traces(capture, join, events, counts, stop);
    counts.slices = events.slices();
    counts.marks = events.marks();
    counts.arrows = events.arrows();
    counts.without_lane = events.without_lane();
    events.close(about_json(capture, join, counts));
    file.commit();
  } catch (const WriteStopped&) {
    counts.is_stopped = true;
  }
  return counts;
}

Json to_json(const TimelineCounts& counts, const std::string& file) {
  return WEIR_NAMED(file, counts.slices, counts.marks, counts.arrows, counts.kfd_spans, counts.kfd_left_out,
                    counts.without_time, counts.without_lane);
}

}  // namespace weir::amd
