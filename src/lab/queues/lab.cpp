#include "lab/queues/lab.h"

#include <algorithm>
#include <atomic>

#include "submit/placement.h"

namespace weir {
namespace {

constexpr std::uint64_t kFlagStride = 16;  // elements: a cache line for each flag, as many kernels poll them

struct LabStep {
  Step step;
  BufferId flag = 0, moments = 0;
};

LabStep lab_step(int streams, const Lab::Options& options) {
  StepBuilder builder(1);
  LabStep lab;
  lab.flag = builder.host(ElementType::i32, static_cast<std::uint64_t>(streams) * kFlagStride, Init::constant, 1, 0);
  const std::uint64_t commands = static_cast<std::uint64_t>(streams) * Lab::kPerStream;
  lab.moments = builder.host(ElementType::i32, commands * kMomentElements, Init::constant, 1, 0);
  const KernelShape hold{.type = ElementType::i32, .dims = {options.hold_limit_ns}, .scalars = {}};
  const KernelShape mark{.type = ElementType::i32, .dims = {Lab::kMarkNs, 1}, .scalars = {}};
  const auto moment = [&](CommandId id) { return Operand{lab.moments, kMomentElements * id, kMomentElements}; };
  for (int i = 0; i < streams; ++i) {
    const auto stream = static_cast<StreamId>(i);
    const CommandId first = Lab::hold_of(stream);
    builder.launch("hold", {.stream = stream}, hold, {{lab.flag, stream * kFlagStride, 1}, moment(first)});
    // This kernel blocks the queue: it cannot start before the hold ends.
    builder.launch("stamp", {.stream = stream}, mark, {moment(first + 1)});
    builder.launch("stamp", {.stream = stream}, mark, {moment(Lab::mark_of(stream))});
  }
  if (options.records) {
    // Never submitted: it depends on each hold from another stream, which is why an event is recorded after each hold.
    const auto last = static_cast<StreamId>(streams);
    for (int i = 0; i < streams; ++i)
      builder.launch("stamp", {.stream = last}, mark, {moment(Lab::hold_of(static_cast<StreamId>(i)))});
  }
  lab.step = std::move(builder).seal(streams + (options.records ? 1 : 0));
  return lab;
}

}  // namespace

Lab::Lab(Device& device, int streams, const Options& wanted) : streams_(streams), hold_limit_ns_(wanted.hold_limit_ns) {
  const DeviceInfo info = device.info();
  is_virtual_ = info.is_virtual;
  is_gpu_ = info.is_gpu;
  LabStep lab = lab_step(streams, wanted);
  step_ = std::move(lab.step);
  placement_ = place(step_, "natural");
  SessionOptions options;
  options.is_traced = wanted.is_traced;
  options.marks_iterations = false;
  options.trace_iterations = 64;
  session_ = device.prepare(step_, placement_, options);
  const auto memory = [&](BufferId buffer) {
    return reinterpret_cast<std::int32_t*>(session_->host_memory(buffer).data());
  };
  flags_ = memory(lab.flag);
  moments_ = memory(lab.moments);
}

std::int32_t* Lab::record_of(CommandId command) {
  return moments_ + static_cast<std::ptrdiff_t>(command) * kMomentElements;
}

Moment Lab::moment_of_mark(StreamId stream) { return read_moment(record_of(mark_of(stream))); }
Moment Lab::moment_of_hold(StreamId stream) { return read_moment(record_of(hold_of(stream))); }

void Lab::submit(CommandId command) {
  const std::int64_t called_ns = session_->now_ns();
  session_->submit(std::span(&command, 1));
  // Only a full queue makes the host wait for as long as a stream is held.
  if (session_->now_ns() - called_ns > hold_limit_ns_ / 2) has_waited_for_room_ = true;
}

std::int32_t& Lab::flag_of(StreamId stream) { return flags_[stream * kFlagStride]; }

void Lab::let_go(StreamId stream) {
  std::atomic_ref(flag_of(stream)).store(1, std::memory_order_release);  // pairs with the loads in hold's bodies
  std::erase(held_, stream);
}

void Lab::wait_briefly() {
  // Sleeping takes at least 60 us, longer than a GPU needs to answer; on the cpu device, spinning would take a core
  // that the workers need.
  if (is_virtual_) {
    session_->pause(500);
  } else if (!is_gpu_) {
    session_->pause(20'000);
  }
}

void Lab::begin() {
  if (is_open_) release();
  for (CommandId id = 0; id < static_cast<CommandId>(streams_) * kPerStream; ++id) {
    write_started(record_of(id), 0);
    write_ended(record_of(id), 0);
  }
  for (int i = 0; i < streams_; ++i)  // pairs with the loads in hold's bodies
    std::atomic_ref(flag_of(static_cast<StreamId>(i))).store(0, std::memory_order_release);
  session_->begin_iteration();
  held_.clear();
  has_waited_for_room_ = false;
  is_open_ = true;
}

void Lab::hold(StreamId stream, bool is_blocking) {
  submit(hold_of(stream));
  if (is_blocking) submit(hold_of(stream) + 1);
  held_.push_back(stream);
}

bool Lab::settle(std::int64_t window_ns) {
  std::size_t started = 0;
  std::int64_t since = session_->now_ns();
  while (started < held_.size() && session_->now_ns() - since < window_ns) {
    wait_briefly();
    std::size_t now = 0;
    for (const StreamId stream : held_) now += moment_of_hold(stream).started_ns != 0;
    if (now > started) since = session_->now_ns();
    started = now;
  }
  return started == held_.size();
}

std::int64_t Lab::mark(StreamId stream, std::int64_t window_ns) {
  write_started(record_of(mark_of(stream)), 0);  // this may not be its first mark in this trial
  write_ended(record_of(mark_of(stream)), 0);
  const std::int64_t begun = session_->now_ns();
  submit(mark_of(stream));
  for (;;) {
    const bool is_done = moment_of_mark(stream).ended_ns != 0;
    const std::int64_t waited = session_->now_ns() - begun;
    if (is_done) {
      session_->poll(stream);
      return waited;
    }
    if (waited > window_ns) return kNoTime;
    wait_briefly();
  }
}

void Lab::look_again(std::span<const StreamId> marked, std::vector<std::uint8_t>& is_stuck, std::int64_t window_ns) {
  const std::int64_t begun = session_->now_ns();
  while (std::find(is_stuck.begin(), is_stuck.end(), 1) != is_stuck.end()) {
    // Reads the clock first: the time must not be later than the observation.
    const bool is_last = session_->now_ns() - begun > window_ns;
    for (std::size_t i = 0; i < marked.size(); ++i)
      if (is_stuck[i] != 0) is_stuck[i] = moment_of_mark(marked[i]).ended_ns == 0;
    if (is_last) return;
    wait_briefly();
  }
}

bool Lab::is_holding() {
  for (const StreamId stream : held_)
    if (moment_of_hold(stream).ended_ns != 0) return false;
  return true;
}

void Lab::release() {
  for (int i = 0; i < streams_; ++i) let_go(static_cast<StreamId>(i));
  session_->finish();
  is_open_ = false;
}

std::optional<std::vector<std::uint8_t>> Lab::stuck(std::span<const StreamId> held, std::span<const StreamId> marked,
                                                    std::int64_t window_ns, std::int64_t grace_ns, bool is_blocking) {
  std::vector<std::uint8_t> verdict;
  begin();
  for (const StreamId stream : held) hold(stream, is_blocking);
  // Without a kernel after it in its stream, a hold stops others only once it runs.
  if (!settle(window_ns) && !is_blocking && !settle(grace_ns)) {
    release();
    return std::nullopt;
  }
  for (const StreamId stream : marked) verdict.push_back(mark(stream, window_ns) == kNoTime);
  look_again(marked, verdict, grace_ns);
  const bool is_valid = is_holding();
  release();
  return is_valid ? std::optional(std::move(verdict)) : std::nullopt;
}

}  // namespace weir
