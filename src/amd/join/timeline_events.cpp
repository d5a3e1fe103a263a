#include "amd/join/timeline_events.h"

#include <fmt/format.h>

#include <array>

namespace weir::amd {

std::string TimelineEvents::quoted(std::string_view text) {
  return Json(std::string(text.substr(0, kLongestName))).dump();
}

void TimelineEvents::open() { to_ << "{\"displayTimeUnit\":\"ns\",\n\"traceEvents\":["; }

void TimelineEvents::close(const Json& about) { to_ << "\n],\n\"weir\":" << about.dump() << "}\n"; }

// {"ph":"X","cat":"packet","name":"gemm","pid":1002,"tid":3,"ts":6306214.537,"dur":0.000,"args":{"stream":"0x1952020"}}
void TimelineEvents::begin(std::string_view phase, std::string_view category, std::string_view name, const Lane& lane) {
  to_ << (is_first_ ? "\n{" : ",\n{") << "\"ph\":\"" << phase << "\",\"cat\":\"" << category
      << "\",\"name\":" << quoted(name) << ",\"pid\":";
  is_first_ = false;
  to_.number(lane.group);
  to_ << ",\"tid\":";
  to_.number(lane.place);
}

void TimelineEvents::time(std::string_view key, std::int64_t ns) {
  std::uint64_t amount = static_cast<std::uint64_t>(ns);
  to_ << ",\"" << key << "\":";
  if (ns < 0) {
    to_ << '-';
    amount = 0 - amount;
  }
  to_.number(amount / 1000);
  const std::uint64_t rest = amount % 1000;
  const std::array<char, 4> digits = {'.', static_cast<char>('0' + rest / 100), static_cast<char>('0' + rest / 10 % 10),
                                      static_cast<char>('0' + rest % 10)};
  to_ << std::string_view(digits.data(), digits.size());
}

void TimelineEvents::finish(std::string_view arguments) {
  if (!arguments.empty()) to_ << ",\"args\":{" << arguments << "}";
  to_ << '}';
}

void TimelineEvents::metadata(std::string_view what, const Lane& lane, std::string_view key, std::string_view value) {
  begin("M", "__metadata", what, lane);
  to_ << ",\"args\":{\"" << key << "\":" << value << "}}";
}

void TimelineEvents::name_group(std::int64_t group, const std::string& name) {
  metadata("process_name", {group, 0}, "name", quoted(name));
  metadata("process_sort_index", {group, 0}, "sort_index", fmt::format_int(group).c_str());
}

void TimelineEvents::name_lane(const Lane& lane, const std::string& name) {
  metadata("thread_name", lane, "name", quoted(name));
  metadata("thread_sort_index", lane, "sort_index",
           fmt::format_int(lane.place % kBeside * 100 + lane.place / kBeside).c_str());
}

Lane TimelineEvents::lane(std::int64_t group, std::uint64_t number, const std::string& name) {
  const auto found = lanes_.find({group, number});
  if (found != lanes_.end()) return found->second;
  if (lanes_.size() >= kMaxLanes) {
    ++without_lane_;
    const Lane shared{group, static_cast<std::int64_t>(kMaxLanes) + 1};
    if (names_.emplace(std::pair(group, shared.place), "others").second) name_lane(shared, "others");
    return shared;
  }
  const Lane made{group, static_cast<std::int64_t>(lanes_.size()) + 1};
  lanes_.emplace(std::pair(group, number), made);
  names_[{group, made.place}] = name;
  name_lane(made, name);
  return made;
}

Lane TimelineEvents::slice(const Lane& lane, std::string_view category, std::string_view name, std::int64_t started_ns,
                           std::int64_t ended_ns, std::string_view arguments) {
  auto& ends = ends_[{lane.group, lane.place}];
  std::size_t beside = 0;
  while (beside < ends.size() && ends[beside] > started_ns) ++beside;
  if (beside >= kMaxParallelLanes) {
    mark(lane, category, name, started_ns, arguments);
    return lane;
  }
  const Lane place{lane.group, lane.place + kBeside * static_cast<std::int64_t>(beside)};
  if (beside == ends.size()) {
    ends.push_back(INT64_MIN);
    if (beside > 0) name_lane(place, fmt::format("{} ({})", names_[{lane.group, lane.place}], beside + 1));
  }
  ends[beside] = ended_ns;
  begin("X", category, name, place);
  time("ts", started_ns);
  time("dur", ended_ns - started_ns);
  finish(arguments);
  ++slices_;
  return place;
}

void TimelineEvents::point(const Lane& lane, std::string_view category, std::string_view name, std::int64_t ns,
                           std::string_view arguments) {
  begin("X", category, name, lane);
  time("ts", ns);
  time("dur", 0);
  finish(arguments);
  ++marks_;
}

void TimelineEvents::mark(const Lane& lane, std::string_view category, std::string_view name, std::int64_t ns,
                          std::string_view arguments) {
  begin("i", category, name, lane);
  time("ts", ns);
  to_ << ",\"s\":\"t\"";
  finish(arguments);
  ++marks_;
}

void TimelineEvents::arrow(const Lane& from, std::int64_t from_ns, const Lane& to, std::int64_t to_ns) {
  ++arrow_id_;
  begin("s", "submit", "submit", from);
  time("ts", from_ns);
  to_ << ",\"id\":";
  to_.number(arrow_id_);
  to_ << "}";
  begin("f", "submit", "submit", to);
  time("ts", to_ns);
  to_ << ",\"id\":";
  to_.number(arrow_id_);
  to_ << ",\"bp\":\"e\"}";
  ++arrows_;
}

}  // namespace weir::amd
