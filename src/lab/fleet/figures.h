// What `weir fleet probe` measures of each device, one line per figure. Knows names, units and words; measures nothing.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace weir::fleet {

// Whether devices are judged by a figure, and which of its ends is good.
enum class Goal : std::uint8_t {
  lower,   // a time
  higher,  // a rate
  none,    // a state: it explains other figures, or is judged by rules of its own
};
std::string_view name_of(Goal goal);

struct FigureKind {
  std::string_view name;   // as in documents: gemm_bf16
  std::string_view unit;   // ns, B/s, flop/s, MHz, W, C, lanes, ...; "count" where it has none
  std::string_view words;  // for people: "GEMM bf16"
  Goal goal;
};

std::span<const FigureKind> figure_kinds();
const FigureKind* find_figure(std::string_view name);  // null for an unknown name

}  // namespace weir::fleet
