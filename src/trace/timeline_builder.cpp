#include "trace/timeline_builder.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <numeric>
#include <tuple>
#include <utility>

#include "base/error.h"
#include "base/units.h"

namespace weir {
namespace {

constexpr std::size_t kMaxLanes = 65'535;
// A command cannot start before the host submitted it; host and device clocks differ by less than this.
constexpr std::int64_t kClockSlack = 2'000;
// Times beyond 146 years are invalid; differences of the remaining times cannot overflow.
constexpr std::int64_t kMaxTime = (std::int64_t{1} << 62) - 1;

bool is_beyond(std::int64_t ns) noexcept { return ns != kNoTime && (ns > kMaxTime || ns < -kMaxTime); }

void forget_beyond(std::int64_t& ns) noexcept {
  if (is_beyond(ns)) ns = kNoTime;
}

std::uint64_t mixed(std::uint64_t x) noexcept {
  x ^= x >> 31;
  x *= 0x9E3779B97F4A7C15U;
  return x ^ x >> 29;
}

std::uint64_t slot_of(std::string_view text) noexcept {
  std::uint64_t first = 0, last = 0;
  const std::size_t part = std::min(text.size(), sizeof(first));
  if (part == 0) return 0;
  std::memcpy(&first, text.data(), part);
  std::memcpy(&last, text.data() + (text.size() - part), part);
  return mixed(first + mixed(last + text.size()));
}

}  // namespace

std::size_t TimelineBuilder::LaneHash::operator()(const LaneKey& key) const noexcept {
  return mixed(key.id + mixed(key.owner + 1));
}

TimelineBuilder::TimelineBuilder(const TraceLimits& limits, std::vector<std::string> collectives, bool wants_operations)
    : limits_(limits), collectives_(std::move(collectives)), used_bytes_(limits.used_bytes) {
  timeline_.has_operations = wants_operations;
}

void TimelineBuilder::charge(std::size_t bytes) {
  used_bytes_ += bytes;
  if (used_bytes_ > limits_.memory_bytes)
    reject(fmt::format("the trace needs more than {} of memory: {} commands, {} calls and {} names so far",
                       format_bytes(limits_.memory_bytes), origins_.size(), timeline_.calls.size(), texts_.size()),
           "Allow more with --memory, or trace a shorter stretch.");
}

void TimelineBuilder::expect(std::size_t commands, std::size_t calls) {
  const auto reserve = [&](auto& all, std::size_t more) {
    // Twice the size is what each will be charged for.
    const std::uint64_t left = limits_.memory_bytes - std::min(used_bytes_, limits_.memory_bytes);
    more = static_cast<std::size_t>(std::min<std::uint64_t>(more, left / (2 * sizeof(all[0]))));
    if (all.capacity() - all.size() < more) all.reserve(std::max(all.size() + more, all.size() * 3 / 2));
  };
  reserve(timeline_.spans, commands);
  reserve(origins_, commands);
  reserve(timeline_.calls, calls);
}

void TimelineBuilder::begin_file(std::string name, std::string_view unit) {
  file_ = std::move(name);
  unit_ = unit;
  if (!files_.empty() && files_.back().name == file_) return;
  charge(sizeof(FileRange) + 2 * file_.size());
  files_.push_back({file_});
  FileRange& file = files_.back();
  file.commands = origins_.size();
  file.calls = timeline_.calls.size();
  file.syncs = syncs_.size();
  file.ranges = timeline_.ranges.size();
  file.memory = timeline_.memory.size();
}

std::int64_t TimelineBuilder::file_start() const noexcept {
  return files_.empty() || files_.back().first_ns > files_.back().last_ns ? kNoTime : files_.back().first_ns;
}

bool TimelineBuilder::shift_file(std::int64_t by_ns) {
  if (files_.empty()) return false;
  FileRange& file = files_.back();
  const auto moved = [by_ns](std::int64_t ns) {
    std::int64_t sum = 0;
    return ns == kNoTime || __builtin_add_overflow(ns, by_ns, &sum) || is_beyond(sum) ? kNoTime : sum;
  };
  if (file_start() != kNoTime) {
    if (moved(file.first_ns) == kNoTime || moved(file.last_ns) == kNoTime) return false;
    file.first_ns = moved(file.first_ns);
    file.last_ns = moved(file.last_ns);
  }
  for (std::size_t i = file.commands; i < origins_.size(); ++i) {
    Span& span = timeline_.spans[i];
    for (std::int64_t Span::* time : {&Span::enqueued_ns, &Span::submitted_ns, &Span::accepted_ns, &Span::launched_ns,
                                      &Span::started_ns, &Span::ended_ns, &Span::seen_ns})
      span.*time = moved(span.*time);
  }
  const auto move = [&](auto& all, std::size_t first) {
    for (std::size_t i = first; i < all.size(); ++i) {
      all[i].started_ns = moved(all[i].started_ns);
      all[i].ended_ns = moved(all[i].ended_ns);
    }
  };
  move(timeline_.calls, file.calls);
  move(syncs_, file.syncs);
  move(timeline_.ranges, file.ranges);
  for (std::size_t i = file.memory; i < timeline_.memory.size(); ++i)
    timeline_.memory[i].at_ns = moved(timeline_.memory[i].at_ns);
  return true;
}

std::uint32_t TimelineBuilder::name(std::string_view text) {
  // Kernel names are long and few: most are found by their length and both ends, without hashing the whole name.
  std::uint32_t& recent = recent_names_[slot_of(text) % recent_names_.size()];
  if (recent < texts_.size() && *texts_[recent] == text) return recent;
  if (const auto found = names_.find(text); found != names_.end()) return recent = found->second;
  charge(text.size() + 128);
  texts_.push_back(std::make_unique<const std::string>(text));
  const bool is_chosen = std::any_of(collectives_.begin(), collectives_.end(),
                                     [&](const std::string& pattern) { return matches_pattern(pattern, text); });
  kernel_kinds_.push_back(is_chosen ? SpanKind::collective : kernel_kind_of(text));
  call_kinds_.push_back(weir::call_kind_of(text));
  recent = static_cast<std::uint32_t>(texts_.size() - 1);
  names_.emplace(*texts_.back(), recent);
  return recent;
}

std::uint16_t TimelineBuilder::add_process(int rank, std::string label) {
  if (timeline_.processes.size() == kMaxLanes) reject("a trace of more than 65,535 processes");
  timeline_.processes.push_back({rank, std::move(label)});
  has_rank_.push_back(false);
  return static_cast<std::uint16_t>(timeline_.processes.size() - 1);
}

void TimelineBuilder::set_rank(std::uint16_t process, int rank) {
  timeline_.processes[process].rank = rank;
  has_rank_[process] = true;
}

std::uint16_t TimelineBuilder::process_of_rank(std::uint16_t of, int rank) {
  const LaneKey key{of, static_cast<std::uint64_t>(rank)};
  if (const auto found = ranks_.find(key); found != ranks_.end()) return found->second;
  std::uint16_t process = of;
  if (has_rank_[of]) process = add_process(rank, timeline_.processes[of].label);
  set_rank(process, rank);
  ranks_.emplace(key, process);
  return process;
}

std::optional<std::uint16_t> TimelineBuilder::device(std::uint16_t process, std::int64_t id, std::string_view label) {
  const LaneKey key{process, static_cast<std::uint64_t>(id)};
  if (const auto found = devices_.find(key); found != devices_.end()) return found->second;
  if (timeline_.devices.size() == kMaxLanes) return std::nullopt;
  timeline_.devices.push_back({process, id, label.empty() ? fmt::format("GPU {}", id) : std::string(label)});
  const auto device = static_cast<std::uint16_t>(timeline_.devices.size() - 1);
  devices_.emplace(key, device);
  return device;
}

std::optional<std::uint16_t> TimelineBuilder::stream(std::uint16_t device, std::uint64_t id, std::uint16_t owner) {
  const LaneKey key{device | std::uint32_t{owner} << 16, id};
  if (const auto found = streams_.find(key); found != streams_.end()) return found->second;
  if (timeline_.streams.size() == kMaxLanes) return std::nullopt;
  timeline_.streams.push_back({device, id, fmt::format("stream {}", id)});
  const auto stream = static_cast<std::uint16_t>(timeline_.streams.size() - 1);
  streams_.emplace(key, stream);
  return stream;
}

std::optional<TimelineBuilder::Lane> TimelineBuilder::lane(std::uint16_t process, std::int64_t device_id,
                                                           std::uint64_t stream_id, std::uint64_t at,
                                                           std::string_view device_label) {
  const auto known = device(process, device_id, device_label);
  const auto own = known ? stream(*known, stream_id) : std::nullopt;
  if (own) return Lane{*known, *own};
  drop("command on one device or stream too many", at);
  return std::nullopt;
}

void TimelineBuilder::label_device(std::uint16_t device, std::string label) {
  timeline_.devices[device].label = std::move(label);
}

void TimelineBuilder::describe_device(std::uint16_t device, std::string model, std::uint32_t multiprocessors,
                                      std::uint32_t resident_threads) {
  TraceDevice& facts = timeline_.devices[device];
  facts.model = std::move(model);
  facts.multiprocessors = multiprocessors;
  facts.resident_threads = resident_threads;
}

void TimelineBuilder::label_stream(std::uint16_t stream, std::string label) {
  timeline_.streams[stream].label = std::move(label);
}

std::int32_t TimelineBuilder::queue(std::uint16_t device, std::uint64_t id, bool is_copy_engine, std::string label) {
  const LaneKey key{device * 2U + (is_copy_engine ? 1U : 0U), id};
  if (const auto found = queues_.find(key); found != queues_.end()) return found->second;
  if (timeline_.queues.size() == kMaxLanes) return kNoQueue;
  const auto queue = static_cast<std::int32_t>(timeline_.queues.size()) + (is_copy_engine ? kCopyQueues : 0);
  if (label.empty()) label = fmt::format("{} {}", is_copy_engine ? "copy queue" : "queue", id);
  timeline_.queues.push_back({queue, device, std::move(label)});
  queues_.emplace(key, queue);
  return queue;
}

std::optional<std::uint32_t> TimelineBuilder::add(const TraceCommand& command) {
  const char* problem = nullptr;
  if (command.started_ns == kNoTime || command.ended_ns == kNoTime)
    problem = "command without a start or an end";
  else if (is_beyond(command.started_ns) || is_beyond(command.ended_ns))
    problem = "command with a time beyond all clocks";
  else if (command.ended_ns < command.started_ns)
    problem = "command that ends before it starts";
  if (problem != nullptr) {
    drop(problem, command.at);
    return std::nullopt;
  }
  extend(command.process, command.started_ns, command.ended_ns);
  charge(2 * (sizeof(Span) + sizeof(Origin)));
  Span& span = timeline_.spans.emplace_back(command);
  span.command = static_cast<std::uint32_t>(origins_.size());
  origins_.push_back({command.correlation, command.process});
  // By name for every source: dispatches from both Kineto and rocprofiler include kernels of the runtime's own copies.
  if (span.kind == SpanKind::kernel && span.name != kNoName) span.kind = kernel_kinds_[span.name];
  for (std::int64_t* ns : {&span.enqueued_ns, &span.submitted_ns, &span.accepted_ns, &span.launched_ns, &span.seen_ns})
    forget_beyond(*ns);
  return span.command;
}

void TimelineBuilder::set_name(std::uint32_t command, std::uint32_t name) {
  Span& span = timeline_.spans[command];
  span.name = name;
  if (span.kind == SpanKind::kernel && name != kNoName) span.kind = kernel_kinds_[name];
}

void TimelineBuilder::set_grid(std::uint32_t command, std::uint32_t blocks, std::uint16_t threads) {
  timeline_.spans[command].blocks = blocks;
  timeline_.spans[command].threads = threads;
}

void TimelineBuilder::about_collective(std::uint32_t command, const TraceCollective& collective) {
  charge(sizeof(Fact));
  facts_.push_back({command, collective});
}

void TimelineBuilder::add(HostCall call, std::uint64_t at) {
  if (call.ended_ns < call.started_ns && call.ended_ns != kNoTime) return drop("call that ends before it starts", at);
  charge(sizeof(HostCall) * 2);
  if (call.kind == CallKind::other && call.name != kNoName) call.kind = call_kinds_[call.name];
  forget_beyond(call.started_ns);
  forget_beyond(call.ended_ns);
  extend(call.process, call.started_ns, call.ended_ns);
  timeline_.calls.push_back(call);
}

void TimelineBuilder::add(const TraceWait& wait) {
  charge(sizeof(TraceWait));
  waits_.push_back(wait);
  timeline_.has_dependencies = true;
}

void TimelineBuilder::add(TraceSync sync) {
  charge(sizeof(TraceSync));
  forget_beyond(sync.started_ns);
  forget_beyond(sync.ended_ns);
  syncs_.push_back(sync);
}

void TimelineBuilder::add(TraceRange range) {
  forget_beyond(range.started_ns);
  forget_beyond(range.ended_ns);
  charge(sizeof(TraceRange));
  timeline_.ranges.push_back(range);
}

void TimelineBuilder::add(const MemoryChange& change, std::uint64_t at) {
  if (change.at_ns == kNoTime || is_beyond(change.at_ns)) return drop("allocation with a time beyond all clocks", at);
  charge(sizeof(MemoryChange) * 2);
  timeline_.memory.push_back(change);
}

std::size_t TimelineBuilder::OperationHash::operator()(const Operation& operation) const noexcept {
  return LaneHash()({operation.name ^ (static_cast<std::uint32_t>(operation.phase) << 30),
                     (static_cast<std::uint64_t>(operation.shapes) << 32) | operation.module});
}

std::uint32_t TimelineBuilder::operation(const Operation& operation) {
  const auto [at, is_new] =
      known_operations_.try_emplace(operation, static_cast<std::uint32_t>(timeline_.operations.size()));
  if (is_new) {
    charge(sizeof(Operation) * 4);
    timeline_.operations.push_back(operation);
  }
  return at->second;
}

std::uint32_t TimelineBuilder::module_in(std::uint32_t parent, std::uint32_t name) {
  const auto [at, is_new] =
      modules_.try_emplace(LaneKey{parent, name}, static_cast<std::uint32_t>(timeline_.modules.size()));
  if (is_new) {
    charge(sizeof(TraceModule) * 4);
    timeline_.modules.push_back({name, parent});
  }
  return at->second;
}

std::span<HostCall> TimelineBuilder::file_calls() noexcept {
  return std::span(timeline_.calls).subspan(files_.empty() ? 0 : files_.back().calls);
}

void TimelineBuilder::add(const Dependency& dependency) {
  charge(sizeof(Dependency));
  dependencies_.push_back(dependency);
  timeline_.has_dependencies = true;
}

void TimelineBuilder::drop(std::string_view reason, std::uint64_t at, std::uint64_t count) {
  for (Dropped& dropped : timeline_.dropped) {
    if (dropped.reason != reason) continue;
    // Counts come from files too, and must not wrap around.
    dropped.count += std::min(count, UINT64_MAX - dropped.count);
    return;
  }
  timeline_.dropped.push_back({std::string(reason), count, fmt::format("{}, {} {}", file_, unit_, at)});
}

void TimelineBuilder::note(std::string text) {
  if (std::find(timeline_.notes.begin(), timeline_.notes.end(), text) == timeline_.notes.end())
    timeline_.notes.push_back(std::move(text));
}

void TimelineBuilder::sort_commands() {
  std::vector<Span>& spans = timeline_.spans;
  std::sort(spans.begin(), spans.end(), [](const Span& a, const Span& b) {
    return std::tie(a.started_ns, a.ended_ns, a.stream, a.command) <
           std::tie(b.started_ns, b.ended_ns, b.stream, b.command);
  });
  place_of_.resize(spans.size());
  for (std::uint32_t i = 0; i < spans.size(); ++i) place_of_[spans[i].command] = i;
}

void TimelineBuilder::join_calls() {
  std::vector<HostCall>& calls = timeline_.calls;
  std::sort(calls.begin(), calls.end(), [](const HostCall& a, const HostCall& b) {
    return std::tie(a.process, a.thread, a.started_ns, a.ended_ns) <
           std::tie(b.process, b.thread, b.started_ns, b.ended_ns);
  });
  // Calls by correlation, open addressing: at most half of the slots are in use.
  std::vector<std::uint32_t> table(std::bit_ceil(calls.size() * 2 + 1), kNoCall);
  const auto place_of = [&](std::uint16_t process, std::uint64_t correlation) -> std::uint32_t& {
    std::size_t at = LaneHash()({process, correlation});
    while (true) {
      std::uint32_t& place = table[at++ & (table.size() - 1)];
      if (place == kNoCall || (calls[place].correlation == correlation && calls[place].process == process))
        return place;
    }
  };
  for (std::uint32_t i = 0; i < calls.size(); ++i) {
    if (calls[i].correlation == 0) continue;
    std::uint32_t& place = place_of(calls[i].process, calls[i].correlation);
    // A runtime call and the driver call within it may share an id; the one that launches is used.
    if (place == kNoCall || (calls[place].kind == CallKind::other && calls[i].kind != CallKind::other)) place = i;
  }
  for (Span& span : timeline_.spans) {
    const Origin& origin = origins_[span.command];
    if (origin.correlation == 0) continue;
    const std::uint32_t found = place_of(origin.process, origin.correlation);
    if (found == kNoCall) continue;
    const HostCall& call = calls[found];
    span.call = found;
    if (span.submitted_ns == kNoTime) span.submitted_ns = call.started_ns;
    // A call that waits for its own command (a blocking copy) returns when that has ended.
    if (span.accepted_ns == kNoTime && call.ended_ns != kNoTime &&
        call.ended_ns <= std::max(span.started_ns, call.started_ns))
      span.accepted_ns = call.ended_ns;
    if (span.seen_ns == kNoTime && call.kind == CallKind::copy && call.ended_ns >= span.ended_ns)
      span.seen_ns = call.ended_ns;
  }
}

void TimelineBuilder::join_syncs() {
  for (const HostCall& call : timeline_.calls) {
    if (call.kind != CallKind::synchronize || call.name == kNoName) continue;
    const std::string& name = *texts_[call.name];
    if (waits_for_everything(name)) syncs_.push_back({call.process, std::nullopt, call.started_ns, call.ended_ns});
  }
  if (syncs_.empty()) return;
  // Ends of waits by what they cover: a stream, or a whole process.
  Lanes<std::vector<std::int64_t>> ends;
  constexpr std::uint64_t kAll = UINT64_MAX;
  for (const TraceSync& sync : syncs_)
    if (sync.ended_ns != kNoTime) ends[{sync.process, sync.stream ? *sync.stream : kAll}].push_back(sync.ended_ns);
  for (auto& [key, times] : ends) std::sort(times.begin(), times.end());
  const auto first_after = [&](std::uint16_t process, std::uint64_t what, std::int64_t ns) {
    const auto found = ends.find({process, what});
    if (found == ends.end()) return kNoTime;
    const auto at = std::lower_bound(found->second.begin(), found->second.end(), ns);
    return at == found->second.end() ? kNoTime : *at;
  };
  for (Span& span : timeline_.spans) {
    if (span.seen_ns != kNoTime || span.ended_ns == kNoTime) continue;
    const std::uint16_t process = origins_[span.command].process;
    const std::int64_t own = first_after(process, span.stream, span.ended_ns);
    const std::int64_t all = first_after(process, kAll, span.ended_ns);
    span.seen_ns = own == kNoTime ? all : all == kNoTime ? own : std::min(own, all);
  }
}

void TimelineBuilder::resolve_waits() {
  for (const Dependency& dependency : dependencies_)
    if (dependency.before < place_of_.size() && dependency.after < place_of_.size())
      timeline_.dependencies.push_back({place_of_[dependency.before], place_of_[dependency.after]});
  if (waits_.empty()) return;
  // Commands of each stream in the order of their calls.
  struct Issued {
    std::uint64_t correlation;
    std::uint32_t span;
  };
  std::vector<std::vector<Issued>> streams(timeline_.streams.size());
  for (std::size_t i = 0; i < origins_.size(); ++i)
    if (const std::uint16_t stream = timeline_.spans[place_of_[i]].stream;
        origins_[i].correlation != 0 && stream < streams.size())
      streams[stream].push_back({origins_[i].correlation, place_of_[i]});
  const auto earlier = [](const Issued& a, const Issued& b) { return a.correlation < b.correlation; };
  for (auto& stream : streams) std::stable_sort(stream.begin(), stream.end(), earlier);
  for (const TraceWait& wait : waits_) {
    if (wait.stream >= streams.size() || wait.on_stream >= streams.size() || wait.stream == wait.on_stream) continue;
    const auto& before = streams[wait.on_stream];
    const auto& after = streams[wait.stream];
    const auto last = std::lower_bound(before.begin(), before.end(), Issued{wait.record_correlation, 0}, earlier);
    const auto first = std::upper_bound(after.begin(), after.end(), Issued{wait.correlation, 0}, earlier);
    if (last == before.begin() || first == after.end()) continue;  // nothing to wait for, or nothing that waits
    timeline_.dependencies.push_back({(last - 1)->span, first->span});
  }
  const auto order = [](const Dependency& a, const Dependency& b) {
    return std::tie(a.after, a.before) < std::tie(b.after, b.before);
  };
  auto& all = timeline_.dependencies;
  std::sort(all.begin(), all.end(), order);
  all.erase(
      std::unique(all.begin(), all.end(),
                  [](const Dependency& a, const Dependency& b) { return a.after == b.after && a.before == b.before; }),
      all.end());
}

void TimelineBuilder::mark_collectives() {
  std::vector<CollectiveFacts>& all = timeline_.collectives;
  for (const Fact& fact : facts_) {
    if (fact.command >= place_of_.size()) continue;
    Span& span = timeline_.spans[place_of_[fact.command]];
    span.kind = SpanKind::collective;
    if (span.bytes == 0) span.bytes = fact.collective.bytes;
    all.push_back({place_of_[fact.command], fact.collective.kind, fact.collective.ranks, fact.collective.group,
                   fact.collective.bytes, fact.collective.sequence});
  }
  std::stable_sort(all.begin(), all.end(),
                   [](const CollectiveFacts& a, const CollectiveFacts& b) { return a.span < b.span; });
  all.erase(std::unique(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.span == b.span; }),
            all.end());
  std::vector<CollectiveFacts> merged;
  auto known = all.begin();
  for (std::uint32_t i = 0; i < timeline_.spans.size(); ++i) {
    const Span& span = timeline_.spans[i];
    if (span.kind != SpanKind::collective) continue;
    while (known != all.end() && known->span < i) ++known;
    CollectiveFacts facts{i, CollectiveKind::unknown, 0, kNoName, span.bytes};
    if (known != all.end() && known->span == i) facts = *known;
    if (facts.kind == CollectiveKind::unknown && span.name != kNoName)
      facts.kind = collective_kind_of(*texts_[span.name]);
    merged.push_back(facts);
  }
  all = std::move(merged);
}

void TimelineBuilder::check_clocks() {
  std::size_t joined = 0, early = 0;
  std::int64_t worst = 0;
  for (const Span& span : timeline_.spans) {
    if (span.call == kNoCall || span.submitted_ns == kNoTime || span.started_ns == kNoTime) continue;
    ++joined;
    const std::int64_t ahead = span.submitted_ns - span.started_ns;
    if (ahead <= kClockSlack) continue;
    ++early;
    worst = std::max(worst, ahead);
  }
  if (early * 100 <= joined) return;  // a few are errors of the source
  note(
      fmt::format("{} of {} commands start before the call that submitted them, by up to {}: the host's and the "
                  "device's times are on different clocks, so what lies between them means little",
                  early, joined, format_duration(static_cast<double>(worst))));
  timeline_.clock_error_ns = std::max(timeline_.clock_error_ns, static_cast<double>(worst));
}

void TimelineBuilder::extend(std::uint16_t process, std::int64_t from_ns, std::int64_t to_ns) noexcept {
  if (files_.empty() || from_ns == kNoTime || to_ns == kNoTime) return;
  FileRange& file = files_.back();
  file.first_ns = std::min(file.first_ns, from_ns);
  file.last_ns = std::max(file.last_ns, to_ns);
  file.process = process;
}

// Parts of one capture overlap in time. Parts that are far apart come from separate recordings or different clocks.
void TimelineBuilder::check_files() {
  constexpr double kApart = 10;       // times the length of both together
  constexpr double kMinApart = 60e9;  // one minute
  for (std::size_t i = 0; i + 1 < files_.size(); ++i) {
    for (std::size_t j = i + 1; j < std::min(files_.size(), i + 8); ++j) {
      const FileRange &a = files_[i], &b = files_[j];
      if (a.process != b.process || a.first_ns > a.last_ns || b.first_ns > b.last_ns) continue;
      const double gap = std::max(static_cast<double>(b.first_ns) - static_cast<double>(a.last_ns),
                                  static_cast<double>(a.first_ns) - static_cast<double>(b.last_ns));
      const double lengths = static_cast<double>(a.last_ns) - static_cast<double>(a.first_ns) +
                             static_cast<double>(b.last_ns) - static_cast<double>(b.first_ns);
      if (gap < kMinApart || gap < kApart * lengths) continue;
      note(
          fmt::format("{} and {} are {} apart: they are of different captures, or on different clocks, so what they "
                      "say together means little",
                      a.name, b.name, format_duration(gap)));
      return;
    }
  }
}

Timeline TimelineBuilder::finish() {
  sort_commands();
  join_calls();
  join_syncs();
  resolve_waits();
  mark_collectives();
  check_clocks();
  check_files();
  timeline_.names.reserve(texts_.size());
  for (const auto& text : texts_) timeline_.names.push_back(*text);
  std::sort(timeline_.queues.begin(), timeline_.queues.end(),
            [](const TraceQueue& a, const TraceQueue& b) { return a.id < b.id; });
  std::stable_sort(timeline_.memory.begin(), timeline_.memory.end(),
                   [](const MemoryChange& a, const MemoryChange& b) { return a.at_ns < b.at_ns; });
  Timeline made = std::move(timeline_);
  *this = TimelineBuilder(limits_, std::move(collectives_), made.has_operations);
  return made;
}

}  // namespace weir
