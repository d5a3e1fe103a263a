// The planes, lines and events of an XLA profile in memory, with the names and statistics that events refer to. Knows
// the schema; what the events mean is xplane.cpp's.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "trace/timeline_builder.h"

namespace weir {

// Statistics that mean something to a timeline. Others are skipped.
enum class XStat : std::uint8_t {
  correlation,
  kernel,
  copy,
  memset,
  allocation,
  hlo_op,
  hlo_module,
  tf_op,
  name,
  step,
  vendor,
  device_type,
  cores,
  start_time,
  none
};

// The values of an event's statistics. Texts are parts of the plane.
class XStats {
 public:
  void set(XStat stat, std::uint64_t number, std::string_view text) noexcept;
  bool has(XStat stat) const noexcept { return (known_ >> static_cast<unsigned>(stat) & 1U) != 0; }
  std::string_view text(XStat stat) const noexcept { return texts_[static_cast<std::size_t>(stat)]; }
  std::uint64_t number(XStat stat) const noexcept { return numbers_[static_cast<std::size_t>(stat)]; }

 private:
  static constexpr auto kCount = static_cast<std::size_t>(XStat::none);
  std::array<std::string_view, kCount> texts_{};
  std::array<std::uint64_t, kCount> numbers_{};
  std::uint32_t known_ = 0;
};

struct XLine {
  std::uint64_t id = 0;
  std::string_view name;
  std::int64_t start_ns = 0;
};

struct XEvent {
  std::int64_t started_ns = kNoTime, ended_ns = kNoTime;
  std::uint64_t name_id = 0;
  std::string_view name;  // empty where the plane does not have it
  XStats stats;
};

class XPlane {
 public:
  // `bytes` must outlive it; `at` is their place in the file. What is damaged is counted by `to`, and memory too.
  XPlane(std::string_view bytes, std::uint64_t at, TimelineBuilder& to);

  std::string_view name() const noexcept { return name_; }
  bool has_lines() const noexcept { return !lines_.empty(); }
  XStats stats() const;
  std::size_t count_events() const noexcept;  // of all lines
  // Gives each event of each line for which `is_wanted` is true to `use`.
  void events(const std::function<bool(const XLine&)>& is_wanted,
              const std::function<void(const XLine&, const XEvent&)>& use) const;

 private:
  struct EventName {
    std::string_view name;
    std::vector<std::string_view> stats;  // of all events of this name
  };
  struct StatName {
    std::string_view name;
    XStat stat = XStat::none;
  };

  void keep(std::vector<std::string_view>& all, std::string_view bytes);
  void name_event(std::uint64_t id, std::string_view bytes);
  void name_stat(std::uint64_t id, std::string_view bytes);
  void use_stat(std::string_view bytes, XStats& stats) const;
  bool read_event(const XLine& line, std::string_view bytes, XEvent& event) const;

  TimelineBuilder& to_;
  std::uint64_t at_;
  std::string_view name_;
  std::vector<std::string_view> lines_, stats_;
  std::unordered_map<std::uint64_t, EventName> event_names_;
  std::unordered_map<std::uint64_t, StatName> stat_names_;
};

}  // namespace weir
