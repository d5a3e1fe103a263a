#include "trace/export/timeline_csv.h"

#include <string_view>
#include <unordered_map>

#include "trace/export/text_file.h"
#include "trace/timeline_builder.h"

namespace weir {
namespace {

// Kernel names of C++ templates hold commas and quotes.
void write_text(TextFile& to, std::string_view text) {
  if (text.find_first_of(",\"\r\n") == std::string_view::npos) {
    to << text;
    return;
  }
  to << '"';
  for (const char letter : text) {
    if (letter == '"') to << '"';
    to << letter;
  }
  to << '"';
}

}  // namespace

void write_timeline_csv(const Timeline& timeline, const std::filesystem::path& path, bool overwrite,
                        const std::function<void()>& progress) {
  std::unordered_map<std::int32_t, std::string_view> labels;
  for (const TraceQueue& queue : timeline.queues) labels.emplace(queue.id, queue.label);
  TextFile to(path, overwrite, progress);
  to << "rank,device,stream,queue,kind,name,iteration,enqueued_ns,submitted_ns,accepted_ns,launched_ns,started_ns,"
        "ended_ns,seen_ns,bytes\r\n";
  for (const Span& span : timeline.spans) {
    const TraceStream* const stream = span.stream < timeline.streams.size() ? &timeline.streams[span.stream] : nullptr;
    const TraceDevice* const device =
        stream != nullptr && stream->device < timeline.devices.size() ? &timeline.devices[stream->device] : nullptr;
    if (device != nullptr && device->process < timeline.processes.size())
      to.number(std::int64_t{timeline.processes[device->process].rank});
    to << ',';
    if (device != nullptr) to.number(device->id);
    to << ',';
    to.number(stream != nullptr ? stream->id : std::uint64_t{span.stream});
    to << ',';
    // The label, which users know; the timeline's numbers of copy engines are internal.
    if (span.queue != kNoQueue) {
      const auto label = labels.find(span.queue);
      if (label == labels.end() || label->second.empty()) {
        to.number(std::int64_t{span.queue});
      } else {
        write_text(to, label->second);
      }
    }
    to << ',' << to_string(span.kind) << ',';
    if (span.name < timeline.names.size()) write_text(to, timeline.names[span.name]);
    to << ',';
    to.number(std::uint64_t{span.iteration});
    for (const std::int64_t ns : {span.enqueued_ns, span.submitted_ns, span.accepted_ns, span.launched_ns,
                                  span.started_ns, span.ended_ns, span.seen_ns}) {
      to << ',';
      if (ns != kNoTime) to.number(ns);
    }
    to << ',';
    if (span.bytes != 0) to.number(span.bytes);
    to << "\r\n";
  }
  to.commit();
}

}  // namespace weir
