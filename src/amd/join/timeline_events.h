// Writes events of Chrome's trace format one after another: slices, marks, arrows and names of lanes. Overlapping
// slices on one lane get lanes beside it, because viewers draw them wrongly otherwise. Knows no queue.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "trace/export/text_file.h"

namespace weir::amd {

// A lane: a group (drawn as a process) and a place in it.
struct Lane {
  std::int64_t group = 0, place = 0;
};

class TimelineEvents {
 public:
  explicit TimelineEvents(TextFile& to) : to_(to) {}

  void open();                    // before the first event
  void close(const Json& about);  // after the last event; `about` is written as "weir"

  void name_group(std::int64_t group, const std::string& name);
  // Assigns lanes of a group by any number; at most kMaxLanes, the rest share the last one.
  Lane lane(std::int64_t group, std::uint64_t number, const std::string& name);

  // `arguments`: members of an object without braces, or empty.
  Lane slice(const Lane& lane, std::string_view category, std::string_view name, std::int64_t started_ns,
             std::int64_t ended_ns, std::string_view arguments);
  // A slice without a duration: how long it took is unknown.
  void point(const Lane& lane, std::string_view category, std::string_view name, std::int64_t ns,
             std::string_view arguments);
  void mark(const Lane& lane, std::string_view category, std::string_view name, std::int64_t ns,
            std::string_view arguments);
  // From a slice that is open at that time to a point at the same time.
  void arrow(const Lane& from, std::int64_t from_ns, const Lane& to, std::int64_t to_ns);

  std::uint64_t slices() const { return slices_; }
  std::uint64_t marks() const { return marks_; }
  std::uint64_t arrows() const { return arrows_; }
  std::uint64_t without_lane() const { return without_lane_; }

  static constexpr std::size_t kMaxLanes = 4096;  // over all groups
  static std::string quoted(std::string_view text);

 private:
  static constexpr std::size_t kMaxParallelLanes = 8;  // lanes for overlapping slices
  static constexpr std::int64_t kBeside = 1'000'000;   // a lane beside is at its place plus this times its number
  static constexpr std::size_t kLongestName = 512;
  void begin(std::string_view phase, std::string_view category, std::string_view name, const Lane& lane);
  void time(std::string_view key, std::int64_t ns);
  void finish(std::string_view arguments);
  void metadata(std::string_view what, const Lane& lane, std::string_view key, std::string_view value);
  void name_lane(const Lane& lane, const std::string& name);

  TextFile& to_;
  bool is_first_ = true;
  std::map<std::pair<std::int64_t, std::uint64_t>, Lane> lanes_;
  std::map<std::pair<std::int64_t, std::int64_t>, std::string> names_;               // group and place
  std::map<std::pair<std::int64_t, std::int64_t>, std::vector<std::int64_t>> ends_;  // of the last slice, per lane
  std::uint64_t slices_ = 0, marks_ = 0, arrows_ = 0, without_lane_ = 0, arrow_id_ = 0;
};

}  // namespace weir::amd
