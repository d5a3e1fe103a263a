#include "device/gpu/activity_trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <thread>

namespace weir {
namespace {

constexpr std::size_t kMaxSpans = 500'000;
constexpr int kPatience = 20;  // flushes, a millisecond apart, before incomplete records are accepted

// Channels are numbered per kind of engine, so a copy and a kernel may have the same number.
std::int32_t queue_of(const GpuActivityRecord& record) noexcept {
  const auto channel = static_cast<std::int32_t>(record.channel);
  switch (record.channel_type) {
    case GpuActivityRecord::Channel::unknown:
      return kNoQueue;
    case GpuActivityRecord::Channel::compute:
      return channel;
    default:
      return channel + kCopyQueues;
  }
}

}  // namespace

std::unique_ptr<ActivityTrace> ActivityTrace::start(PrimaryContext& context, const Step& step,
                                                    const Placement& placement, std::span<const GpuStream> streams,
                                                    GpuCommands& commands, int iterations, std::string* reason) {
  const auto open = context.api().activity;
  if (open == nullptr) return *reason = fmt::format("{} has no profiler here", context.api().vendor_name), nullptr;
  const GpuActivity* const activity = open(reason);
  if (activity == nullptr) return nullptr;
  for (CommandId id = 0; id < step.commands().size() && activity->mark == nullptr; ++id) {
    if (commands.activity_count(id)) continue;
    *reason = step.commands()[id].kind == CommandKind::collective
                  ? "the step has collectives, of which a library decides how many kernels they are"
                  : "the step has products of which the library decides how many kernels they are";
    return nullptr;
  }

  std::unique_ptr<ActivityTrace> trace(new ActivityTrace(*activity, commands, step, placement, iterations));
  if (const int result = activity->start(); result != 0)
    return *reason = fmt::format("{} does not start: {}", activity->version, activity->describe(result)), nullptr;
  trace->is_started_ = true;
  for (std::size_t i = 0; i < streams.size() && activity->stream_id != nullptr; ++i) {
    const int result = activity->stream_id(context.handle(), streams[i], &trace->lanes_[i].id);
    if (result == 0) continue;
    *reason = fmt::format("{} does not know a stream: {}", activity->version, activity->describe(result));
    return nullptr;
  }
  commands.note_host_runs(trace->slots_);
  return trace;
}

ActivityTrace::ActivityTrace(const GpuActivity& activity, const GpuCommands& commands, const Step& step,
                             const Placement& placement, int iterations)
    : activity_(activity),
      commands_(commands),
      step_(step),
      placement_(placement),
      slots_(std::clamp(kMaxSpans / std::max<std::size_t>(step.commands().size(), 1), std::size_t{1},
                        static_cast<std::size_t>(std::max(iterations, 1)))),
      host_submissions_(step.commands().size(), 0),
      lanes_(static_cast<std::size_t>(placement.stream_count)),
      noted_(slots_ * step.commands().size()) {
  for (CommandId id = 0; id < step.commands().size(); ++id)
    counts_of_.push_back(commands.activity_count(id).value_or(1));
  if (is_marked()) found_.resize(noted_.size());
}

ActivityTrace::~ActivityTrace() {
  if (is_started_) activity_.stop();
}

void ActivityTrace::begin() noexcept {
  const std::size_t slot = begun_++ % slots_;
  first_ = slot * counts_of_.size();
  std::fill_n(noted_.begin() + static_cast<std::ptrdiff_t>(first_), counts_of_.size(), Noted{});
  if (is_marked()) std::fill_n(found_.begin() + static_cast<std::ptrdiff_t>(first_), counts_of_.size(), Found{});
}

bool ActivityTrace::is_complete() const noexcept {
  if (is_marked()) {
    for (std::size_t i = 0; i < noted_.size(); ++i)
      if (noted_[i].submitted_ns != kNoTime && counts_of_[i % counts_of_.size()] != 0 && found_[i].count == 0)
        return false;
    return true;
  }
  return std::all_of(lanes_.begin(), lanes_.end(),
                     [](const Lane& lane) { return lane.forgotten + lane.records.size() >= lane.submitted; });
}

void ActivityTrace::collect() {
  std::map<std::uint64_t, Lane*> lane_of;
  for (Lane& lane : lanes_) lane_of[lane.id] = &lane;
  // Records arrive some time after their commands have ended; without force, only full buffers of complete ones arrive.
  for (int i = 0; i <= kPatience; ++i) {
    activity_.flush(i == kPatience);
    std::vector<GpuActivityRecord> records;
    lost_ += activity_.take(&records);
    for (const GpuActivityRecord& record : records)
      if (is_marked())
        add_marked(record);
      else if (const auto lane = lane_of.find(record.stream); lane != lane_of.end())
        lane->second->records.push_back(record);
    if (is_complete()) break;
    if (i < kPatience) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  if (is_marked()) return;
  for (Lane& lane : lanes_) {
    std::stable_sort(lane.records.begin(), lane.records.end(),
                     [](const auto& a, const auto& b) { return a.correlation < b.correlation; });
    const std::uint64_t found = lane.forgotten + lane.records.size();
    lane.mismatch.clear();
    if (found != lane.submitted) lane.mismatch = fmt::format("{} records for {}", found, lane.submitted);
  }
}

void ActivityTrace::add_marked(const GpuActivityRecord& record) {
  ++(record.mark == 0 ? unmarked_ : marked_);
  if (record.mark == 0) return;
  const std::uint64_t iteration = (record.mark - 1) / counts_of_.size(),
                      command = (record.mark - 1) % counts_of_.size();
  if (iteration >= begun_ || iteration + slots_ < begun_) return;  // no longer kept
  Found& found = found_[iteration % slots_ * counts_of_.size() + command];
  ++found.count;
  if (record.kind == GpuActivityRecord::Kind::kernel) found.has_kernel = true;
  if (found.queue == kNoQueue) found.queue = queue_of(record);
  if (record.started_ns == kNoTime || record.ended_ns == kNoTime) return;
  found.started_ns = found.started_ns == kNoTime ? record.started_ns : std::min(found.started_ns, record.started_ns);
  found.ended_ns = std::max(found.ended_ns, record.ended_ns);
  found.last_started_ns = std::max(found.last_started_ns, record.started_ns);
}

void ActivityTrace::fill_marked(Span& span, std::size_t index) {
  const Found& found = found_[index];
  // Where records were lost, only a command with all of its own can be trusted.
  const auto known = commands_.activity_count(span.command);
  const bool is_whole = found.count > 0 && (lost_ == 0 || (known && *known == found.count));
  const bool is_right = found.has_kernel || step_.commands()[span.command].kind != CommandKind::kernel;
  if (!is_whole || !is_right || found.started_ns == kNoTime) return void(++missing_);
  span.queue = found.queue;
  span.started_ns = found.started_ns;
  span.ended_ns = found.ended_ns;
  if (found.count > 1) span.launched_ns = found.last_started_ns;
}

void ActivityTrace::fill(Span& span, const Noted& noted, Lane& lane) const {
  const std::uint32_t count = counts_of_[span.command];
  if (count == 0) {
    const HostBody* const host = commands_.host_body(span.command);
    const HostBody::Run run = host == nullptr ? HostBody::Run{} : host->run_at(noted.position);
    span.started_ns = run.started_ns;
    span.ended_ns = run.ended_ns;
    return;
  }
  if (!lane.mismatch.empty()) return;
  const auto first = lane.records.begin() + static_cast<std::ptrdiff_t>(noted.position - lane.forgotten);
  const auto kind = commands_.is_copy(span.command) ? GpuActivityRecord::Kind::copy : GpuActivityRecord::Kind::kernel;
  std::int64_t started = first->started_ns, ended = first->ended_ns;
  for (auto record = first; record != first + count; ++record) {
    // A product may clear its workspace first.
    const bool is_memset = record->kind == GpuActivityRecord::Kind::memset && count > 1;
    if (record->kind != kind && !is_memset) {
      lane.mismatch = fmt::format("command {} has a record of another kind", span.command);
      return;
    }
    if (record->started_ns == kNoTime || record->ended_ns == kNoTime) return;
    started = std::min(started, record->started_ns);
    ended = std::max(ended, record->ended_ns);
  }
  span.queue = queue_of(*first);
  span.started_ns = started;
  span.ended_ns = ended;
  // A command leaves its queue when its last kernel does. CUPTI's "submitted" time, if requested, is exactly that: on
  // an H200 (CUPTI 13.0, November 2026) it was never before the end of the previous kernel in the stream, and 0.6 us
  // before the start if the device had room.
  if (const GpuActivityRecord& last = *(first + count - 1); last.submitted_ns != kNoTime) {
    span.launched_ns = last.submitted_ns;
  } else if (count > 1) {
    span.launched_ns = last.started_ns;
  }
}

// In a long session this is called repeatedly: drop records that no kept iteration needs.
void ActivityTrace::forget() {
  std::vector<std::uint64_t> needed(lanes_.size());
  for (std::size_t i = 0; i < lanes_.size(); ++i) needed[i] = lanes_[i].submitted;
  for (std::size_t i = 0; i < noted_.size(); ++i) {
    const std::size_t command = i % counts_of_.size();
    if (noted_[i].submitted_ns == kNoTime || counts_of_[command] == 0) continue;
    std::uint64_t& first = needed[placement_.stream_of[command]];
    first = std::min(first, noted_[i].position);
  }
  for (std::size_t i = 0; i < lanes_.size(); ++i) {
    Lane& lane = lanes_[i];
    if (!lane.mismatch.empty()) continue;
    lane.records.erase(lane.records.begin(),
                       lane.records.begin() + static_cast<std::ptrdiff_t>(needed[i] - lane.forgotten));
    lane.forgotten = needed[i];
  }
}

std::string ActivityTrace::source() const {
  std::string text = fmt::format("activity records of {}", activity_.version);
  if (lost_ > 0) text += fmt::format("; {} of them were dropped", lost_);
  if (unmarked_ > 0 && marked_ == 0)
    text += fmt::format(
        "; none of {} has a mark: the runtime submits from a thread of its own (AMD_DIRECT_DISPATCH=0 asks it to)",
        unmarked_);
  if (missing_ > 0) text += fmt::format("; {} commands have no times, because records are missing", missing_);
  std::size_t count = 0;
  const Lane* first = nullptr;
  for (const Lane& lane : lanes_) {
    if (lane.mismatch.empty()) continue;
    if (count++ == 0) first = &lane;
  }
  if (first != nullptr)
    text += fmt::format("; {} of {} streams have no times, because records and commands do not fit (stream {}: {})",
                        count, lanes_.size(), first - lanes_.data(), first->mismatch);
  return text;
}

Timeline ActivityTrace::timeline() {
  collect();
  missing_ = 0;
  Timeline timeline;
  timeline.has_exact_gaps = true;
  const std::uint64_t kept = std::min<std::uint64_t>(begun_, slots_);
  timeline.spans.reserve(kept * counts_of_.size());
  for (std::uint64_t iteration = begun_ - kept; iteration < begun_; ++iteration) {
    for (CommandId id = 0; id < counts_of_.size(); ++id) {
      const Noted& noted = noted_[iteration % slots_ * counts_of_.size() + id];
      if (noted.submitted_ns == kNoTime) continue;  // never submitted
      Span span = untimed_span(step_, placement_, id, iteration);
      span.submitted_ns = noted.submitted_ns;
      span.accepted_ns = noted.accepted_ns;
      if (is_marked() && counts_of_[id] != 0)
        fill_marked(span, iteration % slots_ * counts_of_.size() + id);
      else
        fill(span, noted, lanes_[span.stream]);
      timeline.spans.push_back(span);
    }
  }
  // A kind that does not match may be anywhere in a stream, so nothing of that stream can be trusted.
  for (Span& span : timeline.spans) {
    if (lanes_[span.stream].mismatch.empty() || counts_of_[span.command] == 0) continue;
    span.queue = kNoQueue;
    span.started_ns = span.ended_ns = kNoTime;
  }
  // The profiler does not report the error of its host times. One bound is certain: nothing starts before it is
  // submitted.
  for (const Span& span : timeline.spans)
    if (span.started_ns != kNoTime)
      timeline.clock_error_ns =
          std::max(timeline.clock_error_ns, static_cast<double>(span.submitted_ns - span.started_ns));
  timeline.source = source();
  if (!is_marked()) forget();
  return timeline;
}

}  // namespace weir
