#include "trace/merge.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <set>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "base/error.h"

namespace weir {
namespace {

constexpr std::size_t kMaxMergedLanes = 65'535;

class Merger {
 public:
  Timeline merge(std::vector<Timeline>& parts) {
    reserve(parts);
    for (Timeline& part : parts) add(std::move(part));
    number_ranks();
    sort_by_start(whole_);
    std::sort(whole_.queues.begin(), whole_.queues.end(),
              [](const TraceQueue& a, const TraceQueue& b) { return a.id < b.id; });
    return std::move(whole_);
  }

 private:
  void reserve(std::vector<Timeline>& parts) {
    std::size_t spans = 0, calls = 0, processes = 0, devices = 0, streams = 0;
    whole_.has_exact_gaps = whole_.has_dependencies = true;
    bool has_spans = false;
    for (Timeline& part : parts) {
      add_lanes(part);
      spans += part.spans.size();
      calls += part.calls.size();
      processes += part.processes.size();
      devices += part.devices.size();
      streams += part.streams.size();
      whole_.clock_error_ns = std::max(whole_.clock_error_ns, part.clock_error_ns);
      if (part.spans.empty()) continue;  // it has no facts to contribute, and must not clear those of the others
      has_spans = true;
      whole_.has_exact_gaps &= part.has_exact_gaps;
      whole_.has_dependencies &= part.has_dependencies;
    }
    if (!has_spans) whole_.has_exact_gaps = whole_.has_dependencies = false;
    for (const auto& [what, count] :
         {std::pair{"processes", processes}, std::pair{"devices", devices}, std::pair{"streams", streams}})
      if (count > kMaxMergedLanes)
        reject(fmt::format("the traces have {} {} together, and one timeline holds {}", count, what, kMaxMergedLanes),
               "Analyse fewer ranks at a time.");
    if (spans >= UINT32_MAX || calls >= UINT32_MAX)
      reject(fmt::format("the traces have {} commands and {} calls together, and one timeline holds {}", spans, calls,
                         UINT32_MAX - 1),
             "Analyse fewer ranks at a time.");
    whole_.spans.reserve(spans);
    whole_.calls.reserve(calls);
  }

  std::uint32_t name(const std::vector<std::uint32_t>& name_of, std::uint32_t old) const {
    return old < name_of.size() ? name_of[old] : kNoName;
  }

  void add_lanes_and_queues(Timeline& part, std::unordered_map<std::int32_t, std::int32_t>& queue_of) {
    const std::size_t process_base = whole_.processes.size(), device_base = whole_.devices.size();
    std::unordered_map<std::int32_t, std::int32_t> clock_of;
    for (TraceProcess& process : part.processes) {
      // Different captures have different clocks, even where the numbers are equal.
      if (process.clock >= 0) {
        const auto [at, is_new] = clock_of.try_emplace(process.clock, clocks_);
        if (is_new) ++clocks_;
        process.clock = at->second;
      }
      whole_.processes.push_back(std::move(process));
    }
    for (TraceDevice device : part.devices) {
      device.process = static_cast<std::uint16_t>(device.process + process_base);
      whole_.devices.push_back(std::move(device));
    }
    for (TraceStream stream : part.streams) {
      stream.device = static_cast<std::uint16_t>(stream.device + device_base);
      whole_.streams.push_back(std::move(stream));
    }
    const auto renumber = [&](std::int32_t old) {
      const auto id = static_cast<std::int32_t>(queues_++) + (old >= kCopyQueues ? kCopyQueues : 0);
      queue_of.emplace(old, id);
      return id;
    };
    for (TraceQueue queue : part.queues) {
      queue.id = renumber(queue.id);
      queue.device = static_cast<std::uint16_t>(queue.device + device_base);
      whole_.queues.push_back(std::move(queue));
    }
    // Queues that spans name but no lane describes.
    for (const Span& span : part.spans)
      if (span.queue != kNoQueue && !queue_of.contains(span.queue)) renumber(span.queue);
    if (queues_ > static_cast<std::size_t>(kCopyQueues))
      reject("the traces have more than a million hardware queues together", "Analyse fewer ranks at a time.");
  }

  void add(Timeline part) {
    const auto process_base = static_cast<std::uint16_t>(whole_.processes.size());
    const auto device_base = whole_.devices.size(), stream_base = whole_.streams.size();
    const auto span_base = static_cast<std::uint32_t>(whole_.spans.size());
    const auto call_base = static_cast<std::uint32_t>(whole_.calls.size());
    std::vector<std::uint32_t> name_of;
    for (std::string& text : part.names) {
      const auto [at, is_new] = names_.try_emplace(text, static_cast<std::uint32_t>(whole_.names.size()));
      if (is_new) whole_.names.push_back(std::move(text));
      name_of.push_back(at->second);
    }
    std::unordered_map<std::int32_t, std::int32_t> queue_of;
    add_lanes_and_queues(part, queue_of);
    for (Span span : part.spans) {
      span.name = name(name_of, span.name);
      span.stream = static_cast<std::uint16_t>(span.stream + stream_base);
      if (span.call != kNoCall) span.call += call_base;
      if (span.queue != kNoQueue) span.queue = queue_of.at(span.queue);
      whole_.spans.push_back(span);
    }
    whole_.has_operations |= part.has_operations;
    const auto operation_base = static_cast<std::uint32_t>(whole_.operations.size());
    const auto module_base = static_cast<std::uint32_t>(whole_.modules.size());
    for (TraceModule module : part.modules) {
      module.name = name(name_of, module.name);
      if (module.parent != kNoModule) module.parent += module_base;
      whole_.modules.push_back(module);
    }
    for (Operation operation : part.operations) {
      operation.name = name(name_of, operation.name);
      operation.shapes = name(name_of, operation.shapes);
      if (operation.module != kNoModule) operation.module += module_base;
      whole_.operations.push_back(operation);
    }
    for (HostCall call : part.calls) {
      if (call.operation != kNoOperation) call.operation += operation_base;
      call.line = name(name_of, call.line);
      call.name = name(name_of, call.name);
      call.process = static_cast<std::uint16_t>(call.process + process_base);
      whole_.calls.push_back(call);
    }
    for (const Dependency& dependency : part.dependencies)
      whole_.dependencies.push_back({dependency.before + span_base, dependency.after + span_base});
    for (CollectiveFacts facts : part.collectives) {
      facts.span += span_base;
      facts.group = name(name_of, facts.group);
      whole_.collectives.push_back(facts);
    }
    for (TraceRange range : part.ranges) {
      range.name = name(name_of, range.name);
      range.process = static_cast<std::uint16_t>(range.process + process_base);
      whole_.ranges.push_back(range);
    }
    for (MemoryChange change : part.memory) {
      change.device = static_cast<std::uint16_t>(change.device + device_base);
      if (change.operation != kNoOperation) change.operation += operation_base;
      change.line = name(name_of, change.line);
      whole_.memory.push_back(change);
    }
    for (Dropped& dropped : part.dropped) {
      const auto same = std::find_if(whole_.dropped.begin(), whole_.dropped.end(),
                                     [&](const Dropped& other) { return other.reason == dropped.reason; });
      if (same == whole_.dropped.end())
        whole_.dropped.push_back(std::move(dropped));
      else
        same->count += std::min(dropped.count, UINT64_MAX - same->count);
    }
    for (std::string& text : part.notes) note(std::move(text));
    if (!part.source.empty() && sources_.insert(part.source).second)
      whole_.source += (whole_.source.empty() ? "" : "; ") + part.source;
  }

  void note(std::string text) {
    if (notes_.insert(text).second) whole_.notes.push_back(std::move(text));
  }

  // Captures that do not know their rank all have rank 0.
  void number_ranks() {
    std::set<int> taken;
    for (const TraceProcess& process : whole_.processes) taken.insert(process.rank);
    if (taken.size() == whole_.processes.size()) return;
    std::set<int> given;
    int free = 0;
    std::size_t renumbered = 0;
    std::string first;
    for (TraceProcess& process : whole_.processes) {
      if (given.insert(process.rank).second) continue;
      while (taken.contains(free)) ++free;
      if (++renumbered == 1)
        first = fmt::format("{} calls itself rank {} as another does: it is rank {} here",
                            process.label.empty() ? "a process" : process.label, process.rank, free);
      process.rank = free;
      taken.insert(free);
      given.insert(free);
    }
    note(renumbered == 1 ? first : fmt::format("{} ({} processes were renumbered)", first, renumbered));
  }

  Timeline whole_;
  std::unordered_map<std::string, std::uint32_t> names_;
  std::set<std::string> notes_, sources_;
  std::size_t queues_ = 0;
  std::int32_t clocks_ = 0;
};

}  // namespace

void add_lanes(Timeline& part) {
  if (part.processes.empty()) part.processes.push_back({0, part.source});
  if (part.devices.empty()) part.devices.push_back({0, 0, "GPU 0"});
  if (!part.streams.empty()) return;
  std::size_t streams = 0;
  for (const Span& span : part.spans) streams = std::max(streams, std::size_t{span.stream} + 1);
  for (std::size_t i = 0; i < streams; ++i) part.streams.push_back({0, i, fmt::format("stream {}", i)});
}

Timeline merge(std::vector<Timeline> parts) {
  if (parts.size() == 1) return std::move(parts.front());
  return Merger().merge(parts);
}

void sort_by_start(Timeline& timeline) {
  std::vector<std::uint32_t> order(timeline.spans.size()), place(timeline.spans.size());
  std::iota(order.begin(), order.end(), 0U);
  std::sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
    const Span &first = timeline.spans[a], &second = timeline.spans[b];
    return std::tie(first.started_ns, first.ended_ns, first.stream, a) <
           std::tie(second.started_ns, second.ended_ns, second.stream, b);
  });
  std::vector<Span> spans;
  spans.reserve(order.size());
  for (const std::uint32_t i : order) {
    place[i] = static_cast<std::uint32_t>(spans.size());
    spans.push_back(timeline.spans[i]);
  }
  timeline.spans = std::move(spans);
  for (Dependency& dependency : timeline.dependencies) dependency = {place[dependency.before], place[dependency.after]};
  std::sort(timeline.dependencies.begin(), timeline.dependencies.end(), [](const Dependency& a, const Dependency& b) {
    return std::tie(a.after, a.before) < std::tie(b.after, b.before);
  });
  for (CollectiveFacts& facts : timeline.collectives) facts.span = place[facts.span];
  std::sort(timeline.collectives.begin(), timeline.collectives.end(),
            [](const CollectiveFacts& a, const CollectiveFacts& b) { return a.span < b.span; });
  std::stable_sort(timeline.memory.begin(), timeline.memory.end(),
                   [](const MemoryChange& a, const MemoryChange& b) { return a.at_ns < b.at_ns; });
}

}  // namespace weir
