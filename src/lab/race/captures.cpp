#include "lab/race/captures.h"

#include <algorithm>
#include <tuple>

namespace weir::race {

bool Captures::end(std::uint32_t stream, std::uint64_t graph) {
  const auto found = capture_of_stream_.find(stream);
  if (found == capture_of_stream_.end()) return false;
  const std::uint32_t capture = found->second;
  std::erase_if(capture_of_stream_, [&](const auto& entry) { return entry.second == capture; });
  std::erase_if(capture_of_event_, [&](const auto& entry) { return entry.second == capture; });
  if (auto ranges = ranges_of_capture_.extract(capture)) {
    graphs_[graph] = unite(std::move(ranges.mapped()));
  } else {
    graphs_[graph] = {};
  }
  return true;
}

void Captures::make(std::uint64_t executable, std::uint64_t graph) {
  if (const auto found = graphs_.find(graph); found != graphs_.end()) {
    executables_[executable] = found->second;
  } else {
    executables_.erase(executable);
  }
}

Captures::Part Captures::unite(std::vector<Range> ranges) {
  const auto place = [](const Range& range) { return std::tuple(range.is_exact, range.begin, range.end); };
  std::sort(ranges.begin(), ranges.end(), [&](const Range& a, const Range& b) { return place(a) < place(b); });
  Part part{static_cast<std::uint32_t>(log_.ranges.size()), 0};
  for (const Range& range : ranges) {
    if (part.count != 0) {
      Range& last = log_.ranges.back();
      const bool is_same_use = last.reads == range.reads && last.writes == range.writes;
      const bool continues = range.is_exact && last.is_exact && is_same_use && range.begin <= last.end;
      if (continues || place(last) == place(range)) {
        last.end = std::max(last.end, range.end);
        last.reads |= range.reads;
        last.writes |= range.writes;
        continue;
      }
    }
    log_.ranges.push_back(range);
    ++part.count;
  }
  return part;
}

bool Captures::assign(Call& call) {
  const auto event = capture_of_event_.find(call.object);
  if (call.kind == Kind::stream_wait_event && event != capture_of_event_.end()) {
    capture_of_stream_[call.stream] = event->second;
    call.is_captured = true;
  }
  if (call.kind == Kind::event_record && !call.is_captured && event != capture_of_event_.end())
    capture_of_event_.erase(event);
  if (!call.is_captured) return true;
  const auto found = capture_of_stream_.find(call.stream);
  if (found == capture_of_stream_.end()) return false;
  call.capture = found->second;
  if (call.kind == Kind::event_record) capture_of_event_[call.object] = call.capture;
  if (is_command(call.kind)) {
    auto& ranges = ranges_of_capture_[call.capture];
    const auto mine = log_.ranges_of(call);
    ranges.insert(ranges.end(), mine.begin(), mine.end());
  }
  return true;
}

bool Captures::fill(Call& launch) const {
  const auto found = executables_.find(launch.object);
  if (found == executables_.end()) return false;
  launch.first_range = found->second.first;
  launch.range_count = found->second.count;
  return true;
}

}  // namespace weir::race
