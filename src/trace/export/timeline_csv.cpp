#include "trace/export/timeline_csv.h"

#include <string>
#include <unordered_map>
#include <vector>

#include "base/text_gate.h"
#include "trace/export/text_file.h"
#include "trace/timeline_builder.h"

namespace weir {
void write_timeline_csv(const Timeline& timeline, const std::filesystem::path& path, bool overwrite,
                        const std::function<void()>& progress) {
  // There may be millions of commands, so each name passes the gate once.
  std::unordered_map<std::int32_t, std::string> labels;
  for (const TraceQueue& queue : timeline.queues) labels.emplace(queue.id, for_csv(queue.label));
  std::vector<std::string> names;
  names.reserve(timeline.names.size());
  for (const std::string& name : timeline.names) names.push_back(for_csv(name));
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
        to << label->second;
      }
    }
    to << ',' << to_string(span.kind) << ',';
    if (span.name < names.size()) to << names[span.name];
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
