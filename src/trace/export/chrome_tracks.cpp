#include "trace/export/chrome_tracks.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <set>
#include <utility>

namespace weir {
namespace {

constexpr std::int64_t kRangesTrack = 1'999'999'999;
constexpr std::int64_t kMoreTracks = 2'000'000'000;
constexpr std::uint64_t kOrdinaryStreams = 50'000'000;

}  // namespace

std::vector<std::uint32_t> nesting_lanes(const std::vector<TrackSlice>& slices) {
  std::vector<std::uint32_t> order(slices.size()), lanes(slices.size());
  std::iota(order.begin(), order.end(), 0U);
  const auto track_of = [&](std::uint32_t slice) { return std::pair(slices[slice].pid, slices[slice].tid); };
  // Viewers take slices by their begin, and in the order of the file where that is the same.
  std::stable_sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
    return std::tuple(track_of(a), slices[a].from_ns) < std::tuple(track_of(b), slices[b].from_ns);
  });
  std::vector<std::vector<std::int64_t>> open;  // by lane: the ends of slices that are open, the inner ones last
  for (std::size_t i = 0; i < order.size(); ++i) {
    const TrackSlice& slice = slices[order[i]];
    if (i == 0 || track_of(order[i]) != track_of(order[i - 1])) open.clear();
    std::uint32_t lane = 0;
    for (; lane < kMostLanes; ++lane) {
      if (lane == open.size()) open.emplace_back();
      std::vector<std::int64_t>& ends = open[lane];
      while (!ends.empty() && ends.back() <= slice.from_ns) ends.pop_back();
      if (ends.empty() || slice.to_ns <= ends.back()) break;
    }
    if (lane < kMostLanes) open[lane].push_back(slice.to_ns);
    lanes[order[i]] = std::min(lane, kMostLanes - 1);
  }
  return lanes;
}

ChromeTracks::ChromeTracks(const Timeline& timeline, const ChromeLanes& lanes, const std::vector<bool>& is_written)
    : timeline_(timeline), lanes_(lanes) {
  place_spans(is_written);
  place_host();
}

std::int64_t ChromeTracks::of_stream(std::size_t stream) const {
  const std::uint64_t id = stream < timeline_.streams.size() ? timeline_.streams[stream].id : stream;
  return static_cast<std::int64_t>(id < kOrdinaryStreams ? id : kOrdinaryStreams + stream);
}

// The track of a lane beyond the first has a number of its own.
std::int64_t ChromeTracks::beside(const TrackSlice& slice, std::uint32_t lane) {
  if (lane == 0) return slice.tid;
  return more_.try_emplace({slice.pid, slice.tid, lane}, kMoreTracks + static_cast<std::int64_t>(more_.size()))
      .first->second;
}

// Commands of a stream may overlap: dependent launches do, and some profilers' times do.
void ChromeTracks::place_spans(const std::vector<bool>& is_written) {
  std::vector<TrackSlice> slices;
  std::vector<std::uint32_t> spans;
  for (std::uint32_t i = 0; i < timeline_.spans.size(); ++i) {
    const Span& span = timeline_.spans[i];
    if (!is_written[i]) continue;
    spans.push_back(i);
    slices.push_back({lanes_.device_of(timeline_, span).pid, of_stream(span.stream), span.started_ns, span.ended_ns});
  }
  const std::vector<std::uint32_t> lanes = nesting_lanes(slices);
  of_span.assign(timeline_.spans.size(), 0);
  for (std::size_t i = 0; i < spans.size(); ++i) of_span[spans[i]] = beside(slices[i], lanes[i]);
}

// Calls are on their threads, the outer ones first. Ranges of which the thread is not known are on the first one if
// they fit between its calls, and on tracks of their own if not.
void ChromeTracks::place_host() {
  for (std::uint32_t i = 0; i < timeline_.calls.size(); ++i)
    if (lanes_.host_of(timeline_.calls[i].process).is_written && timeline_.calls[i].started_ns != kNoTime)
      calls.push_back(i);
  const auto end_of = [](const HostCall& call) { return std::max(call.started_ns, call.ended_ns); };
  std::stable_sort(calls.begin(), calls.end(), [&](std::uint32_t i, std::uint32_t j) {
    const HostCall &a = timeline_.calls[i], &b = timeline_.calls[j];
    return std::tuple(a.process, a.thread, a.started_ns, end_of(b)) <
           std::tuple(b.process, b.thread, b.started_ns, end_of(a));
  });
  std::vector<std::int64_t> threads(lanes_.hosts.size(), INT64_MAX);
  for (const std::uint32_t i : calls) {
    const HostCall& call = timeline_.calls[i];
    if (call.process < threads.size())
      threads[call.process] = std::min<std::int64_t>(threads[call.process], call.thread);
  }
  for (std::uint32_t i = 0; i < timeline_.ranges.size(); ++i) {
    const TraceRange& range = timeline_.ranges[i];
    if (lanes_.host_of(range.process).is_written && range.started_ns != kNoTime && range.ended_ns >= range.started_ns)
      ranges.push_back(i);
  }
  std::stable_sort(ranges.begin(), ranges.end(), [&](std::uint32_t i, std::uint32_t j) {
    const TraceRange &a = timeline_.ranges[i], &b = timeline_.ranges[j];
    return std::tuple(a.process, a.started_ns, b.ended_ns) < std::tuple(b.process, b.started_ns, a.ended_ns);
  });
  std::vector<TrackSlice> slices;
  for (const std::uint32_t i : ranges) {
    const TraceRange& range = timeline_.ranges[i];
    const std::int64_t thread = range.process < threads.size() ? threads[range.process] : INT64_MAX;
    slices.push_back(
        {lanes_.host_of(range.process).pid, thread == INT64_MAX ? 0 : thread, range.started_ns, range.ended_ns});
  }
  for (const std::uint32_t i : calls) {
    const HostCall& call = timeline_.calls[i];
    slices.push_back({lanes_.host_of(call.process).pid, std::int64_t{call.thread}, call.started_ns, end_of(call)});
  }
  std::vector<std::uint32_t> lanes = nesting_lanes(slices);
  if (!ranges.empty() && std::any_of(lanes.begin(), lanes.end(), [](std::uint32_t lane) { return lane > 0; })) {
    for (std::size_t i = 0; i < ranges.size(); ++i) slices[i].tid = kRangesTrack;
    lanes = nesting_lanes(slices);
  }
  for (std::size_t i = 0; i < slices.size(); ++i) slices[i].tid = beside(slices[i], lanes[i]);
  of_call.assign(timeline_.calls.size(), 0);
  for (std::size_t i = 0; i < ranges.size(); ++i) of_range.push_back(slices[i].tid);
  for (std::size_t i = 0; i < calls.size(); ++i) of_call[calls[i]] = slices[ranges.size() + i].tid;
}

std::vector<ChromeTracks::Name> ChromeTracks::names(const std::vector<bool>& is_written) const {
  std::vector<Name> found;
  std::set<std::pair<std::int64_t, std::int64_t>> known;
  std::pair<std::int64_t, std::int64_t> last{-1, -1};  // most slices are on the track of the one before
  const auto name = [&](std::int64_t pid, std::int64_t tid, std::int64_t first, const auto& label) {
    if (last == std::pair(pid, tid)) return;
    last = {pid, tid};
    if (known.insert(last).second) found.push_back({pid, tid, first, label() + (tid == first ? "" : " (beside)")});
  };
  for (std::size_t i = 0; i < timeline_.streams.size(); ++i) {
    const TraceStream& stream = timeline_.streams[i];
    if (stream.device < timeline_.devices.size() && lanes_.host_of(timeline_.devices[stream.device].process).is_written)
      name(lanes_.devices[stream.device].pid, of_stream(i), of_stream(i), [&] { return stream.label; });
  }
  for (std::size_t i = 0; i < timeline_.spans.size(); ++i) {
    const Span& span = timeline_.spans[i];
    if (!is_written[i]) continue;
    name(lanes_.device_of(timeline_, span).pid, of_span[i], of_stream(span.stream), [&] {
      return span.stream < timeline_.streams.size() ? timeline_.streams[span.stream].label
                                                    : fmt::format("stream {}", span.stream);
    });
  }
  for (const std::uint32_t i : calls) {
    const HostCall& call = timeline_.calls[i];
    name(lanes_.host_of(call.process).pid, of_call[i], call.thread,
         [&] { return fmt::format("thread {}", call.thread); });
  }
  for (std::size_t i = 0; i < ranges.size(); ++i)
    name(lanes_.host_of(timeline_.ranges[ranges[i]].process).pid, of_range[i], kRangesTrack,
         [] { return std::string("ranges"); });
  return found;
}

}  // namespace weir
