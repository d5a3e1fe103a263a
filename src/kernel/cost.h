// The cost of work and how it grows: terms shared by kernels, workloads and statistics. No measurement here.
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

// How a workload uses more streams. Efficiency describes the hardware only if every stream has work: a fixed amount of
// work on fewer streams than requested makes it N0 / N on any device.
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
