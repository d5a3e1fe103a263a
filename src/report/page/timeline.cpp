#include "report/page/timeline.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <tuple>

#include "base/named_values.h"
#include "report/page/drawn_window.h"
#include "report/page/lane_encoding.h"
#include "report/page/span_names.h"
#include "trace/analyse/iterations.h"
#include "trace/analyse/operator_calls.h"

namespace weir::page {
namespace {

constexpr std::size_t kMaxLanes = 2000;     // of a group
constexpr std::size_t kMaxSteps = 100'000;  // they are few, and do not count against the limit

struct Lane {
  std::string label;
  std::int64_t order = 0;
  std::vector<Piece> pieces;
};

struct LaneGroup {
  std::string label;
  std::map<std::int64_t, Lane> lanes;
};

struct Odd {
  std::size_t without_times = 0, backwards = 0, far = 0, unplaced = 0;
};

class Drawing {
 public:
  Drawing(const Timeline& timeline, std::size_t most)
      : timeline_(timeline), begins_(operator_calls(timeline)), names_(timeline), max_(most) {
    std::set<int> ranks;
    for (const TraceDevice& device : timeline.devices) ranks.insert(rank_of(device.process));
    has_ranks_ = ranks.size() > 1;
  }

  DrawnTimeline draw() {
    add_steps();
    each_piece([&](const Piece& piece) { window_.consider(piece); });
    window_.choose(max_);
    place_steps();
    place_commands();
    place_calls();
    names_.number();
    return finish();
  }

 private:
  int rank_of(std::uint16_t process) const {
    return process < timeline_.processes.size() ? timeline_.processes[process].rank : 0;
  }
  std::string rank_words(std::uint16_t process) const {
    return has_ranks_ ? fmt::format("rank {}, ", rank_of(process)) : "";
  }

  // The piece to draw; empty where its times are unusable, which is counted in `odd` unless that is null.
  std::optional<Piece> piece_of(std::int64_t started_ns, std::int64_t ended_ns, std::uint32_t name, DrawnKind kind,
                                Odd* odd) const {
    if (started_ns == kNoTime || ended_ns == kNoTime) {
      if (odd != nullptr) ++odd->without_times;
      return std::nullopt;
    }
    if (ended_ns < started_ns) {
      if (odd != nullptr) ++odd->backwards;
      return std::nullopt;
    }
    return Piece{started_ns, ended_ns, name, kind};
  }
  std::optional<Piece> piece_of(const Span& span, Odd* odd = nullptr) const {
    return piece_of(span.started_ns, span.ended_ns, span.name, drawn_kind(span.kind), odd);
  }
  std::optional<Piece> piece_of(const HostCall& call, Odd* odd = nullptr) const {
    return piece_of(call.started_ns, call.ended_ns, call.name, DrawnKind::host, odd);
  }

  template <class Visit>
  void each_piece(Visit visit) const {
    for (const Span& span : timeline_.spans)
      if (const auto piece = piece_of(span)) visit(*piece);
    for (const HostCall& call : timeline_.calls)
      if (const auto piece = piece_of(call)) visit(*piece);
  }

  // Whether it is drawn; counts it if so.
  bool keep(const Piece& piece) {
    if (!window_.is_near(piece)) {
      ++odd_.far;
      return false;
    }
    if (piece.kind == DrawnKind::step ? !window_.covers(piece) : !window_.takes(piece)) return false;
    if (piece.kind != DrawnKind::step) ++drawn_;
    origin_ns_ = std::min(origin_ns_, piece.started_ns);
    return true;
  }

  // Steps marked by the program, or else those whose numbers commands carry.
  void add_steps() {
    std::set<std::uint16_t> processes;
    for (const TraceRange& range : timeline_.ranges) processes.insert(range.process);
    for (const std::uint16_t process : processes)
      for (const TraceRange& range : iteration_ranges(timeline_, process))
        steps_[process].push_back({range.started_ns, range.ended_ns, range.name, DrawnKind::step});
    if (!steps_.empty()) return;
    std::map<std::pair<std::uint16_t, std::uint32_t>, Piece> found;
    for (const Span& span : timeline_.spans) {
      const auto piece = piece_of(span);
      if (!piece) continue;
      Piece& step = found.try_emplace({process_of(span), span.iteration}, *piece).first->second;
      step.started_ns = std::min(step.started_ns, piece->started_ns);
      step.ended_ns = std::max(step.ended_ns, piece->ended_ns);
      step.kind = DrawnKind::step;
    }
    std::map<std::uint16_t, std::size_t> counts;
    for (const auto& [key, step] : found) ++counts[key.first];
    for (auto& [key, step] : found) {
      if (counts[key.first] < 2) continue;
      step.name = key.second;  // the number of the iteration, until the table of names exists
      steps_[key.first].push_back(step);
      are_steps_numbers_ = true;
    }
  }

  std::uint16_t device_of(const Span& span) const {
    return span.stream < timeline_.streams.size() ? timeline_.streams[span.stream].device : std::uint16_t{0};
  }
  std::uint16_t process_of(const Span& span) const {
    const std::uint16_t device = device_of(span);
    return device < timeline_.devices.size() ? timeline_.devices[device].process : std::uint16_t{0};
  }

  void place_steps() {
    std::size_t placed = 0, beyond = 0;
    for (const auto& [process, pieces] : steps_)
      for (const Piece& piece : pieces) {
        if (placed == kMaxSteps || !keep(piece)) {
          beyond += placed == kMaxSteps ? 1 : 0;
          continue;
        }
        ++placed;
        Lane& lane = step_group_.lanes[process];
        if (lane.label.empty()) lane.label = has_ranks_ ? fmt::format("rank {}", rank_of(process)) : "steps";
        lane.pieces.push_back(piece);
        if (!are_steps_numbers_) names_.count(piece.name, DrawnKind::step);
      }
    step_group_.label = "steps";
    if (beyond > 0) notes_.push_back(fmt::format("The first {} steps are drawn, {} are not.", placed, beyond));
  }

  void place_commands() {
    bool has_queues = false;
    std::size_t without_queue = 0;
    for (const Span& span : timeline_.spans) {
      const auto piece = piece_of(span, &odd_);
      if (!piece || !keep(*piece)) continue;
      names_.count(piece->name, piece->kind);
      const std::uint16_t device = device_of(span);
      DeviceGroups& groups = devices_[device];
      Lane& stream = groups.streams.lanes[span.stream];
      if (stream.pieces.empty()) describe_stream(span.stream, stream);
      stream.pieces.push_back(*piece);
      place_operator(span, *piece, stream, groups.operators);
      if (span.queue == kNoQueue) {
        ++without_queue;
        continue;
      }
      has_queues = true;
      Lane& queue = groups.queues.lanes[span.queue];
      if (queue.pieces.empty()) describe_queue(span.queue, queue);
      queue.pieces.push_back(*piece);
    }
    if (has_queues && without_queue > 0)
      notes_.push_back(
          fmt::format("{} commands name no hardware queue: they are in their stream's lane only.", without_queue));
  }

  // Neighbours on a stream that one call of an operator launched are one piece.
  void place_operator(const Span& span, const Piece& piece, const Lane& stream, LaneGroup& group) {
    static constexpr HostCall kNone;
    const HostCall& call = span.call < timeline_.calls.size() ? timeline_.calls[span.call] : kNone;
    const std::uint32_t operation = call.operation;
    const bool is_known = operation < timeline_.operations.size() && timeline_.operations[operation].name != kNoName;
    const HostCall*& last = last_calls_[span.stream];
    const bool goes_on =
        is_known && last != nullptr && (last == &call || (last->operation == operation && !begins_[span.call]));
    last = is_known ? &call : nullptr;
    if (!is_known) return;
    Lane& lane = group.lanes[span.stream];
    if (goes_on) {
      lane.pieces.back().ended_ns = std::max(lane.pieces.back().ended_ns, piece.ended_ns);
      return;
    }
    if (lane.pieces.empty()) {
      lane.label = stream.label;
      lane.order = stream.order;
    }
    lane.pieces.push_back(
        {piece.started_ns, piece.ended_ns, timeline_.operations[operation].name, DrawnKind::operation});
    names_.count(lane.pieces.back().name, DrawnKind::operation);
  }

  void place_calls() {
    for (const HostCall& call : timeline_.calls) {
      const auto piece = piece_of(call, &odd_);
      if (!piece || !keep(*piece)) continue;
      names_.count(piece->name, piece->kind);
      Lane& lane = hosts_[call.process].lanes[call.thread];
      if (lane.pieces.empty()) lane.label = fmt::format("thread {}", call.thread);
      lane.pieces.push_back(*piece);
    }
  }

  void describe_stream(std::uint16_t stream, Lane& lane) const {
    if (stream < timeline_.streams.size()) {
      const TraceStream& facts = timeline_.streams[stream];
      lane.label = facts.label;
      lane.order = static_cast<std::int64_t>(std::min<std::uint64_t>(facts.id, INT64_MAX));
    } else {
      lane.order = stream;
    }
    if (lane.label.empty()) lane.label = fmt::format("stream {}", lane.order);
  }
  void describe_queue(std::int32_t queue, Lane& lane) const {
    const auto at = std::lower_bound(timeline_.queues.begin(), timeline_.queues.end(), queue,
                                     [](const TraceQueue& a, std::int32_t id) { return a.id < id; });
    lane.order = queue;
    lane.label = at != timeline_.queues.end() && at->id == queue && !at->label.empty() ? at->label
                 : queue >= kCopyQueues ? fmt::format("copy engine {}", queue - kCopyQueues)
                                        : fmt::format("queue {}", queue);
  }

  void add_group(LaneGroup& group, bool is_by_count, Json& groups) {
    if (group.lanes.empty()) return;
    std::vector<Lane*> lanes;
    for (auto& [key, lane] : group.lanes) lanes.push_back(&lane);
    const auto is_longer = [](const Lane* a, const Lane* b) { return a->pieces.size() > b->pieces.size(); };
    if (lanes.size() > kMaxLanes) {
      std::stable_sort(lanes.begin(), lanes.end(), is_longer);
      notes_.push_back(fmt::format("{}: {} lanes, of which the {} with most spans are drawn.", group.label,
                                   lanes.size(), kMaxLanes));
      lanes.resize(kMaxLanes);
    }
    if (is_by_count)
      std::stable_sort(lanes.begin(), lanes.end(), is_longer);
    else
      std::stable_sort(lanes.begin(), lanes.end(), [](const Lane* a, const Lane* b) { return a->order < b->order; });
    Json list = Json::array();
    std::vector<LaneSpan> spans;
    for (Lane* lane : lanes) {
      spans.clear();
      spans.reserve(lane->pieces.size());
      for (const Piece& piece : lane->pieces)
        spans.push_back({distance(piece.started_ns, origin_ns_), distance(piece.ended_ns, origin_ns_), name_of(piece)});
      lane->pieces = {};
      EncodedLane encoded = encode_lane(spans);
      end_ns_ = std::max(end_ns_, encoded.end_ns);
      list.push_back(WEIR_NAMED(std::move(lane->label), encoded.count, encoded.busy_ns, std::move(encoded.spans)));
    }
    groups.push_back({{"label", std::move(group.label)}, {"lanes", std::move(list)}});
  }

  std::uint32_t name_of(const Piece& piece) {
    if (piece.kind != DrawnKind::step || !are_steps_numbers_) return names_.of(piece.name, piece.kind);
    const auto [at, is_new] = step_names_.try_emplace(piece.name, 0);
    if (is_new) at->second = names_.add(fmt::format("step {}", piece.name), DrawnKind::step);
    return at->second;
  }

  DrawnTimeline finish() {
    DrawnTimeline drawn;
    drawn.spans = drawn_;
    if (origin_ns_ == INT64_MAX) origin_ns_ = 0;
    Json groups = Json::array();
    add_group(step_group_, false, groups);
    std::vector<std::uint16_t> order;
    for (const auto& [device, lanes] : devices_) order.push_back(device);
    const auto key = [&](std::uint16_t device) {
      if (device >= timeline_.devices.size()) return std::tuple(0, std::int64_t{device});
      return std::tuple(rank_of(timeline_.devices[device].process), timeline_.devices[device].id);
    };
    std::stable_sort(order.begin(), order.end(), [&](std::uint16_t a, std::uint16_t b) { return key(a) < key(b); });
    for (const std::uint16_t device : order) {
      DeviceGroups& lanes = devices_[device];
      std::string label = "device";
      if (device < timeline_.devices.size())
        label = rank_words(timeline_.devices[device].process) + timeline_.devices[device].label;
      lanes.operators.label = "Operators of " + label;
      lanes.streams.label = "Streams of " + label;
      lanes.queues.label = "Hardware queues of " + label;
      add_group(lanes.operators, false, groups);
      add_group(lanes.streams, false, groups);
      add_group(lanes.queues, false, groups);
    }
    for (auto& [process, lanes] : hosts_) {
      lanes.label = rank_words(process) + "host threads";
      add_group(lanes, true, groups);
    }
    warn_about_odd_spans();
    drawn.fields = {{"origin_ns", origin_ns_},
                    {"end_ns", end_ns_},
                    {"source_of_times", timeline_.source},
                    {"names", names_.take()},
                    {"groups", std::move(groups)},
                    {"left_out", window_.is_cut() ? window_.total() - drawn_ : 0},
                    {"left_out_reason", nullptr}};
    if (window_.is_cut())
      drawn.fields["left_out_reason"] = fmt::format(
          "The trace has {} commands and host calls; the {} in its middle are drawn, {}. A stretch without holes "
          "from "
          "the middle is shown because the beginning warms up; --max-spans sets how many.",
          window_.total(), drawn_, window_.words());
    drawn.notes = std::move(notes_);
    return drawn;
  }

  void warn_about_odd_spans() {
    const auto warn_about = [&](std::size_t count, const char* what) {
      if (count > 0) notes_.push_back(fmt::format("{} of the trace {}, and are not drawn.", count, what));
    };
    warn_about(odd_.without_times, "have no start or no end");
    warn_about(odd_.backwards, "end before they start");
    warn_about(odd_.far, "lie more than 52 days from the middle of the trace");
    if (names_.left_out() > 0)
      notes_.push_back(fmt::format("{} names are too many to keep; their spans go by their kind.", names_.left_out()));
  }

  struct DeviceGroups {
    LaneGroup operators, streams, queues;
  };

  const Timeline& timeline_;
  const std::vector<bool> begins_;  // by call: the first one of an operator that gave the device work
  SpanNames names_;
  std::size_t max_;
  bool has_ranks_ = false, are_steps_numbers_ = false;
  DrawnWindow window_;
  Odd odd_;
  std::map<std::uint16_t, std::vector<Piece>> steps_;
  std::map<std::uint32_t, std::uint32_t> step_names_;
  LaneGroup step_group_;
  std::map<std::uint16_t, DeviceGroups> devices_;
  std::map<std::uint16_t, LaneGroup> hosts_;
  std::map<std::uint16_t, const HostCall*> last_calls_;  // by stream: an operator's, of the command before
  std::vector<std::string> notes_;
  std::size_t drawn_ = 0;
  std::int64_t origin_ns_ = INT64_MAX;
  std::uint64_t end_ns_ = 0;
};

}  // namespace

DrawnTimeline draw_timeline(const Timeline& timeline, std::size_t most) { return Drawing(timeline, most).draw(); }

}  // namespace weir::page
