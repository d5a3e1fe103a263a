#include "report/page/trace.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "report/page/items.h"
#include "report/page/list.h"
#include "report/page/timeline.h"
#include "run/analyze.h"
#include "run/trace_compare.h"
#include "trace/import/byte_source.h"
#include "trace/import/import.h"
#include "trace/import/importer.h"
#include "trace/merge.h"

namespace weir::page {
namespace {

constexpr std::size_t kListed = 100;  // names in each list of the analysis, of which the page shows the first

// The document contains how many commands a queue ran; the timeline also shows which streams they came from.
CountedQueues count_queues(const Timeline& timeline) {
  std::map<std::pair<std::uint16_t, std::int32_t>, std::uint64_t> counts;
  for (const Span& span : timeline.spans)
    if (span.queue != kNoQueue && span.queue < kCopyQueues && span.stream < timeline.streams.size())
      ++counts[{span.stream, span.queue}];
  CountedQueues counted;
  const auto grid_of = [&](std::uint16_t device) -> QueueGrid& {
    const TraceDevice& facts = timeline.devices[device];
    return counted[{timeline.processes[facts.process].rank, facts.id}];
  };
  std::map<std::int32_t, std::string> labels;
  for (const TraceQueue& queue : timeline.queues) labels[queue.id] = queue.label;
  // Queues in the order of their ids, streams in the order of the source.
  for (const TraceQueue& queue : timeline.queues)
    if (queue.id < kCopyQueues && queue.device < timeline.devices.size()) grid_of(queue.device).queue(queue.label);
  for (const auto& [place, commands] : counts) {
    const TraceStream& stream = timeline.streams[place.first];
    const auto label = labels.find(place.second);
    QueueGrid& grid = grid_of(stream.device);
    grid.set(grid.stream(stream.label),
             grid.queue(label != labels.end() ? label->second : std::to_string(place.second)), commands);
  }
  return counted;
}

}  // namespace

bool is_trace(const std::filesystem::path& file) {
  try {
    return looks_like_trace(open_bytes(file)->peek(kSniffBytes));
  } catch (const Error&) {
    return false;
  }
}

ImportedTrace read_trace(const std::filesystem::path& file, const TraceOptions& options) {
  ImportOptions import;
  import.format = options.format;
  import.collectives = options.collectives;
  import.has_operations = true;
  import.limits.memory_bytes = options.memory_bytes;
  import.progress = options.progress;
  return std::move(import_traces({file}, import).front());
}

bool TraceJob::join(const std::filesystem::path& path, ImportedTrace& trace) {
  std::set<int> own;
  for (const TraceProcess& process : trace.timeline.processes) own.insert(process.rank);
  if (own.empty()) own.insert(0);
  if (std::any_of(own.begin(), own.end(), [&](int rank) { return ranks.contains(rank); })) return false;
  ranks.merge(own);
  paths.push_back(path);
  files.insert(files.end(), trace.files.begin(), trace.files.end());
  parts.push_back(std::move(trace.timeline));
  return true;
}

std::string TraceJob::name() const {
  const std::string first = paths.front().filename().string();
  return paths.size() == 1
             ? first
             : fmt::format("{} and {} more rank{}", first, paths.size() - 1, paths.size() == 2 ? "" : "s");
}

BaselineTrace baseline_trace(TraceJob job) {
  return {job.name(), job.parts.size() == 1 ? std::move(job.parts[0]) : merge(std::move(job.parts))};
}

std::size_t add_trace(Page& page, TraceJob job, const BaselineTrace* baseline, const TraceOptions& options) {
  std::size_t source = Page::kNoSource;
  for (const std::filesystem::path& path : job.paths) {
    const std::size_t index =
        page.add_source(path.string(), job.files.empty() ? "trace" : job.files.front().format, Json::object());
    if (source == Page::kNoSource) source = index;
  }
  const std::string name = job.name();
  const std::vector<ImportedFile> files = job.files;
  Timeline timeline = baseline_trace(std::move(job)).timeline;
  if (baseline != nullptr) {
    try {
      const TraceComparison found =
          compare_traces(baseline->timeline, baseline->name, timeline, name, {}, options.window);
      section_list::trace_comparison(page, source, trace_comparison_json(found, false));
    } catch (const Error& error) {
      page.refuse(fmt::format("{} against {}", name, baseline->name), error.what());
    }
  }
  // Aligns the clocks of ranks, so it comes before the drawing.
  const Json analysis = analyze_timeline(timeline, files, {.top = kListed, .window = options.window});

  std::string id;
  DrawnTimeline drawn = draw_timeline(timeline, options.max_spans);
  if (drawn.spans > 0 || drawn.fields["left_out"] != 0) {
    Json item = page.item("timelines", name, source, page.environment_of(source));
    for (const Dropped& dropped : timeline.dropped)
      drawn.notes.push_back(fmt::format("{} x {} (first: {})", dropped.count, dropped.reason, dropped.first));
    drawn.notes.insert(drawn.notes.end(), timeline.notes.begin(), timeline.notes.end());
    item["notes"] = std::move(drawn.notes);
    for (auto& [key, value] : drawn.fields.items()) item[key] = std::move(value);
    id = page.add("timelines", std::move(item));
  }
  CountedQueues counted = count_queues(timeline);
  timeline = {};
  add_analysis(page, source, name, analysis, id, std::move(counted));
  return drawn.spans;
}

}  // namespace weir::page
