#include "trace/export/chrome_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "base/named_values.h"
#include "base/options.h"
#include "trace/export/chrome_lanes.h"
#include "trace/export/chrome_tracks.h"
#include "trace/export/text_file.h"
#include "trace/intervals.h"
#include "trace/timeline_builder.h"

namespace weir {
namespace {

// A queue may have several commands in flight at once, which one lane cannot show.
constexpr std::int64_t kNextLane = 100'000'000;

// Correlations: 4 (i + 1) is command i, one less is its wait, one more is the record of its event, two more is a call
// without a command.
constexpr std::uint64_t correlation_of(std::uint32_t span) { return 4 * (std::uint64_t{span} + 1); }

class Writer {
 public:
  Writer(const Timeline& timeline, const ChromeExport& options, TextFile& to)
      : timeline_(timeline),
        options_(options),
        to_(to),
        lanes_(timeline, options.process, options.process_id),
        is_written_(written_spans()),
        tracks_(timeline, lanes_, is_written_) {
    for (const std::string& name : timeline.names) names_.push_back(quoted(name));
    for (const TraceQueue& queue : timeline.queues) queues_[queue.id] = {number_of(queue), queue.label};
    first_span_of_.resize(timeline.calls.size(), UINT32_MAX);
    for (std::uint32_t i = 0; i < timeline.spans.size(); ++i) {
      const Span& span = timeline.spans[i];
      if (!is_written(span)) {
        left_out_ += is_ours(span) ? 1 : 0;
        continue;
      }
      if (span.call < first_span_of_.size()) first_span_of_[span.call] = std::min(first_span_of_[span.call], i);
      // Viewers read microseconds as doubles. Larger ones have no nanoseconds, so whole seconds go into the base.
      constexpr std::int64_t kExact = 9'000'000'000'000'000, kSecond = 1'000'000'000;
      if (base_ns_ == 0 && span.started_ns > kExact) base_ns_ = (span.started_ns - kSecond) / kSecond * kSecond;
    }
  }

  void write() {
    to_ << "{\"schemaVersion\":1,\n\"deviceProperties\":" << text_of(device_properties())
        << ",\n\"distributedInfo\":" << text_of(distributed_info()) << ",\n\"displayTimeUnit\":\"ns\"";
    if (base_ns_ != 0) {
      to_ << ",\n\"baseTimeNanoseconds\":";
      to_.number(base_ns_);
    }
    to_ << ",\n\"traceEvents\":[";
    name_lanes();
    // Enclosing slices come first, and an arrow comes after both slices that it joins: Perfetto takes events with equal
    // times in file order, and ties an arrow to the innermost slice that is open then.
    write_ranges();
    for (const std::uint32_t i : tracks_.calls) write_call(i);
    for (std::uint32_t i = 0; i < timeline_.spans.size(); ++i)
      if (is_written(timeline_.spans[i])) write_command(i);
    write_queues();
    write_waits();
    to_ << "\n],\n\"weir\":" << text_of(about()) << "}\n";
  }

 private:
  static std::string text_of(const Json& json) { return json.dump(); }
  static std::string quoted(const std::string& text) { return text_of(Json(text)); }

  const TraceStream* stream_of(const Span& span) const {
    return span.stream < timeline_.streams.size() ? &timeline_.streams[span.stream] : nullptr;
  }
  const TraceDevice* device_of(const Span& span) const {
    const TraceStream* const stream = stream_of(span);
    return stream != nullptr && stream->device < timeline_.devices.size() ? &timeline_.devices[stream->device]
                                                                          : nullptr;
  }
  std::size_t process_of(const Span& span) const {
    const TraceDevice* const device = device_of(span);
    return device == nullptr ? options_.process.value_or(0) : device->process;
  }
  bool is_ours(std::size_t process) const { return host_of(process).is_written; }
  bool is_ours(const Span& span) const { return is_ours(process_of(span)); }
  bool is_written(const Span& span) const {
    return span.started_ns != kNoTime && span.ended_ns != kNoTime && span.ended_ns >= span.started_ns && is_ours(span);
  }
  std::int64_t device_id(const Span& span) const {
    const TraceDevice* const device = device_of(span);
    return device == nullptr ? 0 : device->id;
  }
  std::vector<bool> written_spans() const {
    std::vector<bool> written(timeline_.spans.size());
    for (std::size_t i = 0; i < written.size(); ++i) written[i] = is_written(timeline_.spans[i]);
    return written;
  }
  const ChromeLanes::Host& host_of(std::size_t process) const { return lanes_.host_of(process); }
  const ChromeLanes::Device& lane_of(const Span& span) const { return lanes_.device_of(timeline_, span); }
  std::uint64_t stream_id(const Span& span) const {
    const TraceStream* const stream = stream_of(span);
    return stream == nullptr ? span.stream : stream->id;
  }
  std::string_view name_of(std::uint32_t name) const {
    return name < names_.size() ? std::string_view(names_[name]) : std::string_view("\"?\"");
  }

  // Commands of one call (a graph launch) share its correlation, as in Kineto's traces.
  std::uint64_t correlation(std::uint32_t span) const {
    const std::uint32_t call = timeline_.spans[span].call;
    return correlation_of(call < first_span_of_.size() ? first_span_of_[call] : span);
  }

  // The hardware's own number: importers give queues numbers that are unique within a timeline, and keep this one in
  // the label: "queue 17", "copy engine 2".
  static std::int64_t number_of(const TraceQueue& queue) {
    const std::size_t digits = queue.label.find_last_not_of("0123456789") + 1;
    const auto number = parse_integer(std::string_view(queue.label).substr(std::min(digits, queue.label.size())));
    return number.value_or(queue.id < kCopyQueues ? queue.id : queue.id - kCopyQueues);
  }
  std::int64_t queue_number(const Span& span) const {
    const auto found = queues_.find(span.queue);
    if (found != queues_.end()) return found->second.number;
    return span.queue < kCopyQueues ? span.queue : span.queue - kCopyQueues;
  }

  void moment(std::int64_t ns) { time(minus(ns, base_ns_)); }
  // 1234567 -> 1234.567
  void time(std::int64_t ns) {
    std::uint64_t amount = static_cast<std::uint64_t>(ns);
    if (ns < 0) {
      to_ << '-';
      amount = 0 - amount;
    }
    to_.number(amount / 1000);
    const std::uint64_t rest = amount % 1000;
    const std::array<char, 4> digits = {'.', static_cast<char>('0' + rest / 100),
                                        static_cast<char>('0' + rest / 10 % 10), static_cast<char>('0' + rest % 10)};
    to_ << std::string_view(digits.data(), digits.size());
  }
  void begin(std::string_view phase, std::string_view category, std::string_view quoted_name, std::int64_t pid,
             std::int64_t tid) {
    to_ << (is_first_ ? "\n{" : ",\n{") << "\"ph\":\"" << phase << "\",\"cat\":\"" << category
        << "\",\"name\":" << quoted_name << ",\"pid\":";
    is_first_ = false;
    to_.number(pid);
    to_ << ",\"tid\":";
    to_.number(tid);
  }
  void slice(std::int64_t started_ns, std::int64_t ended_ns) {
    to_ << ",\"ts\":";
    moment(started_ns);
    to_ << ",\"dur\":";
    time(ended_ns - started_ns);
  }
  template <class Number>
  void argument(std::string_view key, Number value) {
    to_ << ",\"" << key << "\":";
    to_.number(value);
  }
  // The importer uses this to distinguish the ranks of one file.
  void rank_argument(std::size_t process) {
    if (const auto& rank = host_of(process).rank) argument("rank", std::int64_t{*rank});
  }
  void time_argument(std::string_view key, std::int64_t ns) {
    if (ns == kNoTime) return;
    to_ << ",\"" << key << "\":";
    moment(ns);
  }

  static std::string_view category_of(SpanKind kind) {
    switch (kind) {
      case SpanKind::copy:
        return "gpu_memcpy";
      case SpanKind::memset:
        return "gpu_memset";
      case SpanKind::host:
        return "host_function";
      default:
        return "kernel";
    }
  }

  // Only their number is known: "grid":[1024,1,1]
  void whole_shape(const char* key, std::uint32_t count) {
    to_ << ",\"" << key << "\":[";
    to_.number(std::uint64_t{count});
    to_ << ",1,1]";
  }

  void write_command(std::uint32_t i) {
    const Span& span = timeline_.spans[i];
    begin("X", category_of(span.kind), name_of(span.name), lane_of(span).pid, tracks_.of_span[i]);
    slice(span.started_ns, span.ended_ns);
    to_ << ",\"args\":{\"device\":";
    to_.number(device_id(span));
    to_ << ",\"context\":1";
    argument("stream", stream_id(span));
    argument("correlation", correlation(i));
    if (span.bytes != 0) argument("bytes", span.bytes);
    if (span.blocks != 0) whole_shape("grid", span.blocks);
    if (span.threads != 0) whole_shape("block", span.threads);
    if (span.queue != kNoQueue) argument("queue", queue_number(span));
    if (span.queue >= kCopyQueues) to_ << ",\"copy engine\":true";
    argument("iteration", std::uint64_t{span.iteration});
    argument("command", std::uint64_t{i});
    rank_argument(process_of(span));
    time_argument("enqueued", span.enqueued_ns);
    time_argument("submitted", span.submitted_ns);
    time_argument("accepted", span.accepted_ns);
    time_argument("launched", span.launched_ns);
    time_argument("seen", span.seen_ns);
    if (span.kind == SpanKind::collective) write_collective(i);
    to_ << "}}";
    if (span.call >= timeline_.calls.size()) return;
    const HostCall& call = timeline_.calls[span.call];
    // Arrows go forward in time: clocks may disagree.
    if (call.started_ns == kNoTime || call.started_ns > span.started_ns || !is_ours(call.process)) return;
    arrow("s", "ac2g", correlation_of(i), host_of(call.process).pid, tracks_.of_call[span.call], call.started_ns);
    arrow("f", "ac2g", correlation_of(i), lane_of(span).pid, tracks_.of_span[i], span.started_ns);
  }

  // "Collective name":"allreduce","In msg nelems":1024,"dtype":"Byte","Group size":4
  void write_collective(std::uint32_t i) {
    const auto at =
        std::lower_bound(timeline_.collectives.begin(), timeline_.collectives.end(), i,
                         [](const CollectiveFacts& facts, std::uint32_t span) { return facts.span < span; });
    if (at == timeline_.collectives.end() || at->span != i) return;
    to_ << ",\"Collective name\":\"" << to_string(at->kind) << '"';
    const std::uint64_t bytes = at->bytes != 0 ? at->bytes : timeline_.spans[i].bytes;
    if (bytes != 0) {
      // The number of elements is not known here, so bytes are written as elements.
      argument("In msg nelems", bytes);
      argument("Out msg nelems", bytes);
      to_ << ",\"dtype\":\"Byte\"";
    }
    if (at->ranks != 0) argument("Group size", std::uint64_t{at->ranks});
    if (at->group != kNoName) to_ << ",\"Process Group Name\":" << name_of(at->group);
    if (at->sequence != 0) argument("Seq", at->sequence - 1);
  }

  void arrow(std::string_view phase, std::string_view category, std::uint64_t id, std::int64_t pid, std::int64_t tid,
             std::int64_t ns) {
    begin(phase, category, category == "ac2g" ? "\"ac2g\"" : "\"event wait\"", pid, tid);
    to_ << ",\"ts\":";
    moment(ns);
    to_ << ",\"id\":";
    to_.number(id);
    to_ << (phase == "f" ? ",\"bp\":\"e\"}" : "}");
  }

  void call_event(std::string_view quoted_name, std::uint32_t index, std::int64_t from_ns, std::int64_t to_ns,
                  std::uint64_t correlation) {
    const HostCall& call = timeline_.calls[index];
    begin("X", "cuda_runtime", quoted_name, host_of(call.process).pid, tracks_.of_call[index]);
    slice(from_ns, std::max(from_ns, to_ns));
    to_ << ",\"args\":{\"External id\":";
    to_.number(correlation);
    argument("correlation", correlation);
    rank_argument(call.process);
    to_ << "}}";
  }
  void write_call(std::uint32_t i) {
    const HostCall& call = timeline_.calls[i];
    const std::uint32_t span = first_span_of_[i];
    call_event(name_of(call.name), i, call.started_ns, call.ended_ns,
               span == UINT32_MAX ? correlation_of(i) + 2 : correlation_of(span));
  }

  // The same commands again, by hardware queue. Their arguments are not called stream and correlation:
  // HolisticTraceAnalysis and TraceLens treat everything with these as GPU work and would count it twice.
  void write_queues() {
    std::map<std::pair<std::int64_t, std::int32_t>, std::vector<std::int64_t>> ends;  // by device and queue, by lane
    const auto tid_of = [&](const Span& span, std::int64_t lane) {
      return kNextLane * lane + (span.queue < kCopyQueues ? 0 : kCopyQueues) + queue_number(span);
    };
    for (std::uint32_t i = 0; i < timeline_.spans.size(); ++i) {
      const Span& span = timeline_.spans[i];
      if (span.queue == kNoQueue || !is_written(span)) continue;
      const ChromeLanes::Device& device = lane_of(span);
      const std::int64_t pid = device.queue_pid;
      auto& lanes = ends[{pid, span.queue}];
      const auto free =
          std::find_if(lanes.begin(), lanes.end(), [&](std::int64_t ns) { return ns <= span.started_ns; });
      const auto lane = free - lanes.begin();
      const std::int64_t tid = tid_of(span, lane);
      if (free == lanes.end()) {
        lanes.push_back(0);
        process_name(pid, device.queue_label, host_of(process_of(span)).rank ? device.order + 1 : pid);
        const auto known = queues_.find(span.queue);
        const std::string name = known != queues_.end() && !known->second.label.empty()
                                     ? known->second.label
                                     : fmt::format("queue {}", queue_number(span));
        thread_name(pid, tid, lane == 0 ? name : fmt::format("{} ({})", name, lane + 1), tid_of(span, 0));
      }
      lanes[static_cast<std::size_t>(lane)] = span.ended_ns;
      begin("X", "hardware_queue", name_of(span.name), pid, tid);
      slice(span.started_ns, span.ended_ns);
      to_ << ",\"args\":{\"of stream\":";
      to_.number(stream_id(span));
      argument("of correlation", correlation(i));
      to_ << "}}";
    }
  }

  void write_waits() {
    // Where the source has the calls themselves, made-up ones would count them twice.
    std::set<std::size_t> has_calls;  // processes
    for (const HostCall& call : timeline_.calls)
      if (call.kind == CallKind::record || call.kind == CallKind::wait) has_calls.insert(call.process);
    std::set<std::uint32_t> recorded;
    std::uint64_t id = 0;
    for (const Dependency& dependency : timeline_.dependencies) {
      ++id;
      if (dependency.before >= timeline_.spans.size() || dependency.after >= timeline_.spans.size()) continue;
      const Span& before = timeline_.spans[dependency.before];
      const Span& after = timeline_.spans[dependency.after];
      if (!is_written(before) || !is_written(after)) continue;
      const std::uint64_t record = correlation_of(dependency.before) + 1, wait = correlation_of(dependency.after) - 1;
      const std::int64_t ns = std::min(before.ended_ns, after.started_ns);
      begin("X", "cuda_sync", "\"Stream Wait Event\"", lane_of(after).pid, tracks_.of_span[dependency.after]);
      slice(ns, ns);
      to_ << ",\"args\":{\"cuda_sync_kind\":\"Stream Wait Event\"";
      argument("stream", stream_id(after));
      argument("correlation", wait);
      argument("device", device_id(after));
      to_ << ",\"context\":1";
      argument("wait_on_stream", stream_id(before));
      argument("wait_on_cuda_event_record_corr_id", record);
      argument("wait_on_cuda_event_id", std::uint64_t{dependency.before} + 1);
      // Correlations cannot distinguish the commands of one call (a graph launch).
      argument("before command", std::uint64_t{dependency.before});
      argument("after command", std::uint64_t{dependency.after});
      rank_argument(process_of(after));
      to_ << "}}";
      const std::int64_t left_ns = std::max(before.started_ns, before.ended_ns - 1);
      if (left_ns <= after.started_ns) {
        arrow("s", "event_wait", id, lane_of(before).pid, tracks_.of_span[dependency.before], left_ns);
        arrow("f", "event_wait", id, lane_of(after).pid, tracks_.of_span[dependency.after], after.started_ns);
      }
      if (has_calls.contains(process_of(after))) continue;
      if (recorded.insert(dependency.before).second) invented_call(before, "\"cudaEventRecord\"", true, record);
      if (recorded.insert(~dependency.after).second) invented_call(after, "\"cudaStreamWaitEvent\"", false, wait);
    }
  }
  void invented_call(const Span& span, std::string_view quoted_name, bool is_behind, std::uint64_t correlation) {
    if (span.call >= timeline_.calls.size()) return;
    const HostCall& call = timeline_.calls[span.call];
    const std::int64_t ns = is_behind && call.ended_ns != kNoTime ? call.ended_ns : call.started_ns;
    if (ns != kNoTime && call.started_ns != kNoTime) call_event(quoted_name, span.call, ns, ns, correlation);
  }

  void write_ranges() {
    for (std::size_t i = 0; i < tracks_.ranges.size(); ++i) {
      const TraceRange& range = timeline_.ranges[tracks_.ranges[i]];
      const ChromeLanes::Host& host = host_of(range.process);
      begin("X", "user_annotation", name_of(range.name), host.pid, tracks_.of_range[i]);
      slice(range.started_ns, range.ended_ns);
      if (host.rank) to_ << fmt::format(",\"args\":{{\"rank\":{}}}", *host.rank);
      to_ << '}';
    }
  }

  void metadata(std::string_view what, std::int64_t pid, std::int64_t tid, std::string_view key,
                std::string_view value) {
    begin("M", "__metadata", quoted(std::string(what)), pid, tid);
    to_ << ",\"ts\":0,\"args\":{\"" << key << "\":" << value << "}}";
  }
  void process_name(std::int64_t pid, const std::string& name, std::int64_t order) {
    if (!named_.insert(pid).second) return;
    metadata("process_name", pid, 0, "name", quoted(name));
    metadata("process_sort_index", pid, 0, "sort_index", fmt::format_int(order).c_str());
  }
  void thread_name(std::int64_t pid, std::int64_t tid, const std::string& name, std::int64_t order) {
    metadata("thread_name", pid, tid, "name", quoted(name));
    metadata("thread_sort_index", pid, tid, "sort_index", fmt::format_int(order).c_str());
  }
  void name_lanes() {
    for (const ChromeLanes::Host& host : lanes_.hosts)
      if (host.is_written) process_name(host.pid, host.label, host.order);
    for (std::size_t i = 0; i < timeline_.devices.size(); ++i)
      if (is_ours(timeline_.devices[i].process))
        process_name(lanes_.devices[i].pid, lanes_.devices[i].label, lanes_.devices[i].order);
    for (const ChromeTracks::Name& track : tracks_.names(is_written_))
      thread_name(track.pid, track.tid, track.label, track.order);
  }

  Json device_properties() const {
    Json list = Json::array();
    for (const TraceDevice& device : timeline_.devices) {
      if (!is_ours(device.process)) continue;
      // Importers put the number before the name: "GPU 3: NVIDIA A100". It must not be added again with each export.
      const std::string number = fmt::format("GPU {}: ", device.id);
      const bool has_number = device.label.starts_with(number) && device.label.size() > number.size();
      Json properties = {{"id", device.id}, {"name", has_number ? device.label.substr(number.size()) : device.label}};
      if (const auto& rank = host_of(device.process).rank) properties["rank"] = *rank;
      properties.update(options_.device_properties);
      list.push_back(std::move(properties));
    }
    return list;
  }
  Json distributed_info() const {
    Json info = {{"backend", "nccl"}, {"world_size", options_.world_size}};
    if (options_.process) {
      const bool has_process = *options_.process < timeline_.processes.size();
      info["rank"] = has_process ? timeline_.processes[*options_.process].rank : 0;
      return info;
    }
    for (const ChromeLanes::Host& host : lanes_.hosts) info["ranks"].push_back(*host.rank);
    std::sort(info["ranks"].begin(), info["ranks"].end());
    info["world_size"] = std::max(options_.world_size, static_cast<int>(lanes_.hosts.size()));
    return info;
  }
  bool is_one_clock() const {
    const auto& processes = timeline_.processes;
    return !processes.empty() && processes[0].clock >= 0 &&
           std::all_of(processes.begin(), processes.end(),
                       [&](const TraceProcess& process) { return process.clock == processes[0].clock; });
  }
  Json about() const {
    Json about = WEIR_NAMED(timeline_.source, timeline_.has_exact_gaps, timeline_.has_dependencies,
                            number_or_null(timeline_.clock_error_ns), named("left_out_without_times", left_out_),
                            timeline_.notes);
    if (!options_.process) about["is_one_clock"] = is_one_clock();
    about.update(options_.about);
    return about;
  }

  const Timeline& timeline_;
  std::int64_t base_ns_ = 0;  // times count from here
  const ChromeExport& options_;
  TextFile& to_;
  const ChromeLanes lanes_;
  const std::vector<bool> is_written_;  // by span
  const ChromeTracks tracks_;
  bool is_first_ = true;
  std::uint64_t left_out_ = 0;
  std::vector<std::string> names_;  // quoted
  struct Queue {
    std::int64_t number = 0;
    std::string label;
  };
  std::map<std::int32_t, Queue> queues_;      // by id
  std::vector<std::uint32_t> first_span_of_;  // by call; UINT32_MAX: none
  std::set<std::int64_t> named_;
};

}  // namespace

void write_chrome_json(const Timeline& timeline, const ChromeExport& options, const std::filesystem::path& path,
                       bool overwrite) {
  TextFile to(path, overwrite, options.progress);
  Writer(timeline, options, to).write();
  to.commit();
}

}  // namespace weir
