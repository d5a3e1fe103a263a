#include "trace/timeline_bytes.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <type_traits>
#include <utility>

#include "base/error.h"

namespace weir {
namespace {

// The last digit is the version of the layout.
constexpr std::string_view kMagic = "weir timeline 5\n";

// One list of fields serves both directions: an archive is a Writer or a Reader.
class Writer {
 public:
  template <class Value>
  using Of = const Value;

  template <class Value>
  void field(const Value& value) {
    static_assert(std::is_arithmetic_v<Value> || std::is_enum_v<Value>);
    to_.append(reinterpret_cast<const char*>(&value), sizeof(value));
  }
  void field(const std::string& text) {
    field(static_cast<std::uint64_t>(text.size()));
    to_ += text;
  }
  template <class Value>
  void field(const std::optional<Value>& value) {
    field(value.has_value());
    if (value) field(*value);
  }
  template <class... Values>
  void fields(const Values&... values) {
    (field(values), ...);
  }
  template <class Item, class Each>
  void list(const std::vector<Item>& items, Each each) {
    field(static_cast<std::uint64_t>(items.size()));
    for (const Item& item : items) each(item);
  }
  std::string take() && { return std::move(to_); }

 private:
  std::string to_ = std::string(kMagic);
};

class Reader {
 public:
  template <class Value>
  using Of = Value;

  Reader(std::string_view bytes, const std::string& from) : left_(bytes), from_(from) {}

  [[noreturn]] void fail(const char* what) const {
    weir::fail(fmt::format("{}: is not a timeline: {}", from_, what), "Do all ranks run the same build of weir?");
  }
  std::string_view take(std::uint64_t count) {
    if (count > left_.size()) fail("it is cut off");
    const std::string_view found = left_.substr(0, count);
    left_.remove_prefix(count);
    return found;
  }
  template <class Value>
  void field(Value& value) {
    static_assert(std::is_arithmetic_v<Value> && !std::is_same_v<Value, bool>);
    std::memcpy(&value, take(sizeof(value)).data(), sizeof(value));
  }
  void field(bool& value) { value = counted(1) != 0; }
  void field(SpanKind& value) { value = static_cast<SpanKind>(counted(static_cast<int>(SpanKind::host))); }
  void field(CallKind& value) { value = static_cast<CallKind>(counted(static_cast<int>(CallKind::other))); }
  void field(CollectiveKind& value) {
    value = static_cast<CollectiveKind>(counted(static_cast<int>(CollectiveKind::unknown)));
  }
  void field(Phase& value) { value = static_cast<Phase>(counted(static_cast<int>(Phase::optimizer))); }
  template <class Value>
  void field(std::optional<Value>& value) {
    bool has_value = false;
    field(has_value);
    value.reset();
    if (has_value) field(value.emplace());
  }
  void field(std::string& text) {
    std::uint64_t size = 0;
    field(size);
    text = take(size);
  }
  template <class... Values>
  void fields(Values&... values) {
    (field(values), ...);
  }
  template <class Item, class Each>
  void list(std::vector<Item>& items, Each each) {
    std::uint64_t count = 0;
    field(count);
    // Every item takes at least one byte, so a count cannot allocate more than the bytes received.
    if (count > left_.size()) fail("it is cut off");
    items.clear();
    items.reserve(std::min<std::uint64_t>(count, left_.size() / sizeof(Item) + 1));
    for (std::uint64_t i = 0; i < count; ++i) each(items.emplace_back());
  }
  void end() const {
    if (!left_.empty()) fail("it is longer than it says");
  }

 private:
  std::uint8_t counted(int most) {
    const auto value = static_cast<std::uint8_t>(take(1)[0]);
    if (value > most) fail("a kind in it is not known");
    return value;
  }

  std::string_view left_;
  const std::string& from_;
};

template <class Archive>
using TimelineOf = typename Archive::template Of<Timeline>;

template <class Archive>
void fields_of(Archive& archive, TimelineOf<Archive>& timeline) {
  archive.list(timeline.spans, [&](auto& span) {
    archive.fields(span.command, span.iteration, span.name, span.call, span.bytes, span.stream, span.role, span.kind,
                   span.queue, span.blocks, span.threads, span.enqueued_ns, span.submitted_ns, span.accepted_ns,
                   span.launched_ns, span.started_ns, span.ended_ns, span.seen_ns);
  });
  archive.list(timeline.names, [&](auto& name) { archive.fields(name); });
  archive.list(timeline.processes, [&](auto& process) { archive.fields(process.rank, process.label, process.clock); });
  archive.list(timeline.devices, [&](auto& device) {
    archive.fields(device.process, device.id, device.label, device.model, device.multiprocessors,
                   device.resident_threads);
  });
  archive.list(timeline.streams,
               [&](auto& stream) { archive.fields(stream.device, stream.id, stream.label, stream.priority); });
  archive.list(timeline.queues, [&](auto& queue) { archive.fields(queue.id, queue.device, queue.label); });
  archive.fields(timeline.source, timeline.has_exact_gaps, timeline.clock_error_ns);
  archive.list(timeline.calls, [&](auto& call) {
    archive.fields(call.name, call.thread, call.correlation, call.process, call.kind, call.started_ns, call.ended_ns,
                   call.operation, call.line, call.is_first_of_operation);
  });
  archive.list(timeline.modules, [&](auto& module) { archive.fields(module.name, module.parent); });
  archive.list(timeline.operations, [&](auto& operation) {
    archive.fields(operation.name, operation.shapes, operation.module, operation.phase);
  });
  archive.fields(timeline.has_operations);
  archive.list(timeline.dependencies, [&](auto& dependency) { archive.fields(dependency.before, dependency.after); });
  archive.fields(timeline.has_dependencies);
  archive.list(timeline.collectives, [&](auto& facts) {
    archive.fields(facts.span, facts.kind, facts.ranks, facts.group, facts.bytes, facts.sequence);
  });
  archive.list(timeline.ranges,
               [&](auto& range) { archive.fields(range.name, range.process, range.started_ns, range.ended_ns); });
  archive.list(timeline.memory, [&](auto& change) {
    archive.fields(change.device, change.at_ns, change.bytes, change.allocated_bytes, change.reserved_bytes,
                   change.operation, change.line);
  });
  archive.list(timeline.dropped, [&](auto& dropped) { archive.fields(dropped.reason, dropped.count, dropped.first); });
  archive.list(timeline.notes, [&](auto& note) { archive.fields(note); });
}

// Analyses index by these numbers and trust what importers produced.
void check_numbers(const Timeline& timeline, const Reader& reader) {
  const auto is_in = [&](std::size_t index, std::size_t count, const char* what) {
    if (index >= count) reader.fail(what);
  };
  const auto is_name = [&](std::uint32_t name) {
    if (name != kNoName) is_in(name, timeline.names.size(), "it has a name too few");
  };
  if (!std::isfinite(timeline.clock_error_ns) || timeline.clock_error_ns < 0) reader.fail("its clock has no error");
  for (const TraceDevice& device : timeline.devices)
    is_in(device.process, timeline.processes.size(), "it has a process too few");
  for (const TraceStream& stream : timeline.streams)
    is_in(stream.device, timeline.devices.size(), "it has a device too few");
  for (const TraceQueue& queue : timeline.queues)
    is_in(queue.device, timeline.devices.size(), "it has a device too few");
  for (const Span& span : timeline.spans) {
    is_name(span.name);
    if (span.call != kNoCall) is_in(span.call, timeline.calls.size(), "it has a call too few");
    if (!timeline.streams.empty()) is_in(span.stream, timeline.streams.size(), "it has a stream too few");
    if (span.queue < kNoQueue) reader.fail("it has a queue of negative number");
  }
  for (std::size_t i = 0; i < timeline.modules.size(); ++i) {
    is_name(timeline.modules[i].name);
    if (timeline.modules[i].parent != kNoModule) is_in(timeline.modules[i].parent, i, "its modules are out of order");
  }
  for (const Operation& operation : timeline.operations) {
    is_name(operation.name);
    is_name(operation.shapes);
    if (operation.module != kNoModule) is_in(operation.module, timeline.modules.size(), "it has a module too few");
  }
  for (const HostCall& call : timeline.calls) {
    is_name(call.name);
    is_name(call.line);
    if (call.operation != kNoOperation)
      is_in(call.operation, timeline.operations.size(), "it has an operation too few");
    is_in(call.process, timeline.processes.size(), "it has a process too few");
  }
  for (const Dependency& dependency : timeline.dependencies)
    is_in(std::max(dependency.before, dependency.after), timeline.spans.size(), "it has a command too few");
  for (std::size_t i = 0; i < timeline.collectives.size(); ++i) {
    const CollectiveFacts& facts = timeline.collectives[i];
    is_in(facts.span, timeline.spans.size(), "it has a command too few");
    if (i > 0 && facts.span <= timeline.collectives[i - 1].span) reader.fail("its collectives are out of order");
    is_name(facts.group);
  }
  for (const TraceRange& range : timeline.ranges) {
    is_name(range.name);
    is_in(range.process, timeline.processes.size(), "it has a process too few");
  }
  for (const MemoryChange& change : timeline.memory) {
    is_in(change.device, timeline.devices.size(), "it has a device too few");
    if (change.operation != kNoOperation)
      is_in(change.operation, timeline.operations.size(), "it has an operation too few");
    is_name(change.line);
  }
}

}  // namespace

std::string timeline_bytes(const Timeline& timeline) {
  Writer writer;
  fields_of(writer, timeline);
  return std::move(writer).take();
}

Timeline timeline_of_bytes(std::string_view bytes, const std::string& from) {
  Reader reader(bytes, from);
  if (!bytes.starts_with(kMagic)) reader.fail("it does not begin as this version's do");
  reader.take(kMagic.size());
  Timeline timeline;
  fields_of(reader, timeline);
  reader.end();
  check_numbers(timeline, reader);
  return timeline;
}

}  // namespace weir
