#include "trace/import/kineto_timeline.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>

#include "trace/capture_format.h"

namespace weir {
namespace {

// Limit of begun events that are open at a time.
constexpr std::size_t kMaxOpenRanges = 20'000;

SpanKind kind_of(KinetoCategory category) noexcept {
  switch (category) {
    case KinetoCategory::copy:
      return SpanKind::copy;
    case KinetoCategory::memset:
      return SpanKind::memset;
    case KinetoCategory::host_function:
      return SpanKind::host;
    default:
      return SpanKind::kernel;
  }
}

std::uint32_t folded(std::int64_t thread_id) noexcept {
  const auto thread = static_cast<std::uint64_t>(thread_id);
  return static_cast<std::uint32_t>(thread ^ thread >> 32);
}

std::int64_t end_of(const KinetoEvent& event) noexcept { return event.started_ns + event.duration_ns; }

bool has_type(const KinetoArguments& arguments, capture::ChannelType type) noexcept {
  return arguments.channel_type == static_cast<std::uint64_t>(type);
}

constexpr std::uint64_t kEngines = 1000;  // in a group

struct Queue {
  std::uint64_t id;
  bool is_copy_engine;
  bool is_engine = false;  // id: group * kEngines + number in it
};
std::optional<Queue> queue_of(const KinetoArguments& arguments) noexcept {
  if (arguments.queue) return Queue{*arguments.queue, arguments.is_copy_engine};
  // A channel of unknown type has a number that means nothing.
  if (arguments.channel && !has_type(arguments, capture::ChannelType::unknown))
    return Queue{*arguments.channel, has_type(arguments, capture::ChannelType::async_memcpy)};
  if (arguments.hsa_queue.value_or(0) != 0) return Queue{*arguments.hsa_queue, false};
  // "engine_ordinal": 1, "engine_index": 0: a group of engines, and one of it. What a group is for is not written.
  if (arguments.engine_ordinal && arguments.engine_index && *arguments.engine_ordinal < kEngines &&
      *arguments.engine_index < kEngines)
    return Queue{*arguments.engine_ordinal * kEngines + *arguments.engine_index, false, true};
  return std::nullopt;
}

using Extents = std::array<std::uint32_t, 3>;

template <class Number>
Number product_of(const Extents& extents) noexcept {
  std::uint64_t product = 1;
  for (const std::uint32_t extent : extents)
    if (__builtin_mul_overflow(product, std::uint64_t{extent}, &product)) product = UINT64_MAX;
  return static_cast<Number>(std::min<std::uint64_t>(product, std::numeric_limits<Number>::max()));
}

// hipExtModuleLaunchKernel is given the grid in threads, and the trace has what the call was given:
// "grid": [501760, 1, 1], "block": [256, 1, 1]
Extents blocks_of(const KinetoEvent& call) noexcept {
  Extents blocks = call.arguments.grid;
  if (call.name != "hipExtModuleLaunchKernel") return blocks;
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    const std::uint32_t threads = std::max(call.arguments.block[i], 1U);
    blocks[i] = blocks[i] / threads + (blocks[i] % threads == 0 ? 0 : 1);
  }
  return blocks;
}

}  // namespace

bool KinetoTimeline::add(KinetoEvent& event, bool is_damaged) {
  if (event.phase == 'B' || event.phase == 'E') return !is_damaged && pair(event);
  if (event.phase == 'X') return use(event, is_damaged);
  if (event.phase == 'i') return !is_damaged && add_memory(event);
  if (event.phase == 0 && is_command(event.category) && !is_damaged) to_.drop("event without a phase", event.at);
  return false;
}

// ph B opens an event that the next ph E of the same thread closes; the pairs of a thread nest.
bool KinetoTimeline::pair(KinetoEvent& event) {
  const std::uint64_t key =
      static_cast<std::uint64_t>(event.process_id) * 0x9E3779B97F4A7C15U ^ static_cast<std::uint64_t>(event.thread_id);
  if (event.phase == 'B') {
    if (begun_count_ == kMaxOpenRanges) {
      to_.drop("event that begins while too many others are open", event.at);
      return false;
    }
    ++begun_count_;
    begun_bytes_ += sizeof(KinetoEvent) + event.name.size();
    if (begun_bytes_ > begun_charged_) {
      to_.charge(begun_bytes_ - begun_charged_);
      begun_charged_ = begun_bytes_;
    }
    begun_[key].push_back(std::move(event));
    return true;
  }
  const auto found = begun_.find(key);
  if (found == begun_.end() || found->second.empty()) {
    to_.drop("event that ends and never began", event.at);
    return false;
  }
  KinetoEvent whole = std::move(found->second.back());
  found->second.pop_back();
  --begun_count_;
  begun_bytes_ -= sizeof(KinetoEvent) + whole.name.size();
  if (found->second.empty()) begun_.erase(found);
  whole.has_bad_time = whole.has_bad_time || event.has_bad_time;
  if (whole.started_ns != kNoTime && event.started_ns != kNoTime &&
      __builtin_sub_overflow(event.started_ns, whole.started_ns, &whole.duration_ns))
    whole.has_bad_time = true;
  return use(whole, false);
}

bool KinetoTimeline::use(const KinetoEvent& event, bool is_damaged) {
  switch (event.category) {
    case KinetoCategory::kernel:
    case KinetoCategory::copy:
    case KinetoCategory::memset:
    case KinetoCategory::host_function:
      return has_times(event, is_damaged) && add_command(event, is_damaged);
    case KinetoCategory::call:
      return has_times(event, is_damaged) && add_call(event);
    case KinetoCategory::synchronization:
      return has_times(event, is_damaged) && add_sync(event);
    case KinetoCategory::annotation:
    case KinetoCategory::operation:
    case KinetoCategory::python:
      return has_times(event, is_damaged) && add_range(event);
    case KinetoCategory::unknown:
    case KinetoCategory::instant:
    case KinetoCategory::other:
      break;
  }
  return false;
}

bool KinetoTimeline::has_times(const KinetoEvent& event, bool is_damaged) {
  const char* lacks = nullptr;
  std::int64_t end = 0;
  if (event.has_bad_time)
    lacks = "event whose time is not a number, or out of range";
  else if (event.started_ns == kNoTime)
    lacks = "event without a start";
  else if (event.duration_ns == kNoTime)
    lacks = "event without a duration";
  else if (event.duration_ns < 0)
    lacks = "event of negative duration";
  else if (__builtin_add_overflow(event.started_ns, event.duration_ns, &end))
    lacks = "event whose time is not a number, or out of range";
  if (lacks == nullptr) return true;
  if (!is_damaged) to_.drop(lacks, event.at);
  return false;
}

std::uint16_t KinetoTimeline::process_of(const KinetoEvent& event) {
  const auto& rank = event.arguments.rank;
  if (!rank || *rank < 0 || *rank > std::numeric_limits<int>::max()) return file_.process;
  if (has_ranks_ && *rank == last_rank_) return last_process_;
  has_ranks_ = true;
  last_rank_ = *rank;
  last_process_ = to_.process_of_rank(file_.process, static_cast<int>(*rank));
  processes_.insert(last_process_);
  return last_process_;
}

std::optional<std::uint16_t> KinetoTimeline::stream_of(std::uint16_t device, std::uint64_t id, std::uint64_t at) {
  const auto stream = to_.stream(device, id);
  if (!stream) to_.drop("command beyond 65,535 streams", at);
  return stream;
}

bool KinetoTimeline::place(const KinetoEvent& event, bool is_damaged, Place* to) {
  const KinetoArguments& arguments = event.arguments;
  std::optional<std::uint64_t> lane = event.lane;
  if (arguments.stream && *arguments.stream >= 0) lane = static_cast<std::uint64_t>(*arguments.stream);
  if (!lane) {
    if (!is_damaged) to_.drop("command without a stream", event.at);
    return false;
  }
  to->process = process_of(event);
  const std::int64_t id = arguments.device ? *arguments.device : event.device.value_or(0);
  const auto device = to_.device(to->process, id);
  if (!device) {
    to_.drop("command beyond 65,535 devices", event.at);
    return false;
  }
  devices_.try_emplace(*device, UsedDevice{to->process, {arguments.rank, id}});
  to->device = *device;
  const auto stream = stream_of(*device, *lane, event.at);
  to->stream = stream.value_or(0);
  return stream.has_value();
}

TraceCollective KinetoTimeline::facts_of(const KinetoEvent& event) {
  const KinetoArguments& arguments = event.arguments;
  TraceCollective facts;
  facts.kind = arguments.collective;
  facts.ranks = arguments.ranks;
  if (arguments.sequence && *arguments.sequence < UINT64_MAX) facts.sequence = *arguments.sequence + 1;
  if (!arguments.group.empty()) facts.group = to_.name(arguments.group);
  std::uint64_t elements = std::max(arguments.in_elements, arguments.out_elements);
  if (elements == 0) elements = arguments.input_elements;
  if (__builtin_mul_overflow(elements, std::uint64_t{arguments.element_bytes}, &facts.bytes)) facts.bytes = 0;
  return facts;
}

bool KinetoTimeline::add_command(const KinetoEvent& event, bool is_damaged) {
  if (is_damaged && !event.has_name) return false;
  Place where;
  if (!place(event, is_damaged, &where)) return false;
  const KinetoArguments& arguments = event.arguments;
  if (arguments.out_of_range > 0) to_.drop("number out of range", event.at, arguments.out_of_range);
  TraceCommand command;
  command.kind = kind_of(event.category);
  command.process = where.process;
  command.stream = where.stream;
  if (event.has_name) command.name = to_.name(event.name);
  command.correlation = arguments.correlation.value_or(0);
  command.bytes = arguments.bytes;
  command.iteration = arguments.iteration;
  command.blocks = product_of<std::uint32_t>(arguments.grid);
  command.threads = product_of<std::uint16_t>(arguments.block);
  command.enqueued_ns = arguments.enqueued_ns;
  command.submitted_ns = arguments.submitted_ns;
  command.accepted_ns = arguments.accepted_ns;
  command.launched_ns = arguments.launched_ns;
  command.started_ns = event.started_ns;
  command.ended_ns = end_of(event);
  command.seen_ns = arguments.seen_ns;
  command.at = event.at;
  if (const auto queue = queue_of(arguments)) {
    command.queue = to_.queue(
        where.device, queue->id, queue->is_copy_engine,
        queue->is_engine ? fmt::format("engine {}.{}", queue->id / kEngines, queue->id % kEngines) : std::string());
  } else if (arguments.has_kind && !arguments.hsa_queue && arguments.stream && *arguments.stream >= 0) {
    // Kineto on ROCm until mid-2026, "kind": "Dispatch Kernel", "stream": 4, no "queue": its stream is roctracer's
    // queue. Can be removed when such files are no longer in use.
    command.queue = to_.queue(where.device, static_cast<std::uint64_t>(*arguments.stream));
    if (!has_noted_queues_)
      to_.note(
          "what this trace calls streams are hardware queues: Kineto on ROCm wrote the queue there until mid-2026");
    has_noted_queues_ = true;
  }
  has_rocm_ = has_rocm_ || arguments.has_kind;
  has_fine_times_ = has_fine_times_ || event.started_ns % 1000 != 0;
  const auto number = to_.add(command);
  if (!number) return false;
  if (arguments.priority) to_.set_priority(where.stream, static_cast<std::int32_t>(*arguments.priority));
  if (event.category == KinetoCategory::kernel && arguments.has_kind && command.correlation != 0) {
    to_.charge(sizeof(KinetoFacts::Pending));
    facts_.rocm_kernels.push_back({*number, where.process, command.correlation, 0});
  }
  if (arguments.command) {
    to_.charge(64);
    commands_.insert_or_assign(*arguments.command, *number);
  }
  if (event.category == KinetoCategory::kernel) {
    if (arguments.is_collective)
      to_.about_collective(*number, facts_of(event));
    else if (command.name != kNoName && to_.is_collective(command.name))
      facts_.collectives.push_back({*number, where.process, command.correlation, arguments.external.value_or(0)});
  } else if (event.category != KinetoCategory::host_function && command.bytes == 0 && command.correlation != 0) {
    facts_.copies.push_back({*number, where.process, command.correlation, 0});
  }
  return true;
}

bool KinetoTimeline::add_call(const KinetoEvent& event) {
  const KinetoArguments& arguments = event.arguments;
  if (arguments.out_of_range > 0) to_.drop("number out of range", event.at, arguments.out_of_range);
  HostCall call;
  if (event.has_name) {
    call.name = to_.name(event.name);
    call.kind = to_.call_kind_of(call.name);
    has_cuda_calls_ = has_cuda_calls_ || event.name.starts_with("cuda");
    has_rocm_ = has_rocm_ || event.name.starts_with("hip");
  }
  call.thread = folded(event.thread_id);
  call.correlation = arguments.correlation.value_or(0);
  call.process = process_of(event);
  call.started_ns = event.started_ns;
  call.ended_ns = end_of(event);
  to_.add(call);
  if (call.correlation == 0) return true;
  to_.charge(sizeof(KinetoFacts::Call));
  if (call.kind == CallKind::launch)
    facts_.launches.push_back(
        {call.process, call.correlation, arguments.external.value_or(0), event.thread_id, call.started_ns});
  if (arguments.grid[0] != 0)
    facts_.grids.push_back({call.process, product_of<std::uint16_t>(arguments.block),
                            product_of<std::uint32_t>(blocks_of(event)), call.correlation});
  if (call.kind == CallKind::copy && arguments.bytes != 0)
    facts_.copy_calls.push_back({call.process, call.correlation, arguments.bytes});
  return true;
}

// "cuda_sync_kind": "Stream Wait Event", "wait_on_stream": 20, "wait_on_cuda_event_record_corr_id": 1385, "stream": 24
bool KinetoTimeline::add_sync(const KinetoEvent& event) {
  to_.knows_dependencies();
  const KinetoArguments& arguments = event.arguments;
  const std::uint16_t process = process_of(event);
  if (arguments.sync == KinetoSync::context) {
    to_.add(TraceSync{process, std::nullopt, event.started_ns, end_of(event)});
    return true;
  }
  const auto device = to_.device(process, arguments.device ? *arguments.device : event.device.value_or(0));
  const auto stream = [&](const std::optional<std::int64_t>& id) -> std::optional<std::uint16_t> {
    if (!device || !id || *id < 0) return std::nullopt;
    return stream_of(*device, static_cast<std::uint64_t>(*id), event.at);
  };
  if (arguments.sync == KinetoSync::stream_wait && arguments.before && arguments.after) {
    to_.charge(2 * sizeof(own_waits_[0]));
    own_waits_.emplace_back(*arguments.before, *arguments.after);
    return true;
  }
  if (arguments.sync == KinetoSync::stream_wait) {
    // -1: the event was recorded before the trace began
    if (!arguments.correlation || !arguments.record_correlation) return true;
    const auto waiting = stream(arguments.stream), on = stream(arguments.wait_on_stream);
    if (waiting && on)
      to_.add(TraceWait{process, *waiting, *on, *arguments.correlation, *arguments.record_correlation});
    return true;
  }
  const auto what = stream(arguments.sync == KinetoSync::event ? arguments.wait_on_stream : arguments.stream);
  if (what) to_.add(TraceSync{process, what, event.started_ns, end_of(event)});
  return true;
}

bool KinetoTimeline::add_range(const KinetoEvent& event) {
  if (!event.has_name) return false;
  const std::uint16_t process = process_of(event);
  if (to_.wants_operations()) stacks_.add(event, process, folded(event.thread_id));
  const bool is_of_collective = event.name == "record_param_comms" || event.name.starts_with("nccl:");
  if (is_of_collective) {
    KinetoFacts::Operation made{
        process,        event.thread_id, event.started_ns, end_of(event), event.arguments.external.value_or(0),
        facts_of(event)};
    if (made.facts.kind == CollectiveKind::unknown && event.name.starts_with("nccl:"))
      made.facts.kind = collective_kind_of(event.name.substr(5, event.name.find(' ') - 5));
    to_.charge(sizeof(Operation) * 2);
    facts_.operations.push_back(made);
  }
  // Until 2022 the profiler's steps were operators.
  if (event.category == KinetoCategory::annotation || event.name.starts_with("ProfilerStep#"))
    to_.add(TraceRange{to_.name(event.name), process, event.started_ns, end_of(event)});
  return true;
}

// "args": {"Total Reserved": 2629828608, "Total Allocated": 1003059712, "Bytes": -18317312, "Device Id": 0, ...}
bool KinetoTimeline::add_memory(const KinetoEvent& event) {
  const KinetoArguments& arguments = event.arguments;
  if (event.category != KinetoCategory::instant || event.name != kMemoryEvent) return false;
  if (arguments.memory_device == -1) return false;  // the host's
  if (event.has_bad_time || event.started_ns == kNoTime)
    to_.drop("allocation without a time", event.at);
  else if (!arguments.memory_device || !arguments.memory_bytes)
    to_.drop("allocation without a size or a device", event.at);
  else if (!arguments.allocated_bytes)
    to_.drop("allocation without the sum of all (PyTorch before 1.12)", event.at);
  else {
    to_.charge(sizeof(KinetoFacts::Memory) * 2 + (to_.wants_operations() ? sizeof(HostCall) : 0));
    MemoryChange change;
    change.at_ns = event.started_ns;
    change.bytes = *arguments.memory_bytes;
    change.allocated_bytes = *arguments.allocated_bytes;
    change.reserved_bytes = arguments.reserved_bytes.value_or(0);
    facts_.memory.push_back({process_of(event), folded(event.thread_id), *arguments.memory_device, event.at, change});
    return true;
  }
  return false;
}

void KinetoTimeline::set_device(std::optional<std::int64_t> rank, std::int64_t device, DeviceFacts facts) {
  constexpr std::size_t kMaxDevices = 65'535;
  if (device_facts_.size() < kMaxDevices) device_facts_.insert_or_assign(DeviceKey{rank, device}, std::move(facts));
}

}  // namespace weir
