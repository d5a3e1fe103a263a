// What work costs and how it grows: the vocabulary that kernels, workloads and statistics share. No measurement here.
#pragma once

#include <cstdint>
#include <string_view>

namespace weir {

struct Cost {
  double flop = 0;
  double bytes = 0;  // least traffic: each operand read or written once
  Cost& operator+=(const Cost& other) {
    flop += other.flop;
    bytes += other.bytes;
    return *this;
  }
};

// What a workload does with more streams. Efficiency is only a statement about the hardware if every stream has work:
// a fixed amount of work on fewer streams than were asked for makes it N0 / N whatever the device does.
enum class Scaling : std::uint8_t {
  grows,     // each stream brings its own work (weak scaling)
  divided,   // the same work is divided among the streams (strong scaling)
  requests,  // independent requests are spread over the streams
};

constexpr std::string_view name_of(Scaling scaling) {
  switch (scaling) {
    case Scaling::grows:
      return "grows";
    case Scaling::divided:
      return "divided";
    case Scaling::requests:
      return "requests";
  }
  return "?";
}

}  // namespace weir
