// The names that spans of a drawn timeline share, the most used first, so that their numbers take the fewest bytes.
// Knows no lane.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/json.h"
#include "measure/timeline.h"

namespace weir::page {

// As in web/src/document.ts: kinds of commands, steps, and operators.
enum class DrawnKind : std::uint8_t { kernel, collective, copy, memset, host, step, operation };
inline constexpr std::size_t kDrawnKinds = 7;

const char* to_string(DrawnKind kind) noexcept;
inline DrawnKind drawn_kind(SpanKind kind) noexcept { return static_cast<DrawnKind>(kind); }

class SpanNames {
 public:
  explicit SpanNames(const Timeline& timeline);

  // All uses are counted first; numbers are assigned afterwards. `name` is an index into the timeline's names, or
  // kNoName.
  void count(std::uint32_t name, DrawnKind kind) { ++uses_[slot(name, kind)]; }
  void number();
  std::uint32_t of(std::uint32_t name, DrawnKind kind) const { return numbers_[slot(name, kind)]; }
  // Adds a name that is not from the timeline.
  std::uint32_t add(std::string text, DrawnKind kind);

  std::size_t left_out() const noexcept { return left_out_; }  // names for which there was no room
  Json take() { return std::move(table_); }

 private:
  std::size_t slot(std::uint32_t name, DrawnKind kind) const noexcept {
    const std::size_t at = name < timeline_.names.size() ? name : timeline_.names.size();
    return at * kDrawnKinds + static_cast<std::size_t>(kind);
  }

  const Timeline& timeline_;
  std::vector<std::uint32_t> uses_, numbers_;
  Json table_ = Json::array();
  std::size_t bytes_ = 0, left_out_ = 0;
};

}  // namespace weir::page
