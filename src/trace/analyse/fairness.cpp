#include "trace/analyse/fairness.h"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "measure/statistics.h"

namespace weir {

std::optional<double> fairness(const Timeline& timeline) {
  struct Service {
    std::map<std::uint8_t, std::uint32_t> commands;  // by role
    std::uint32_t count = 0;
    std::int64_t ended_ns = kNoTime;
  };
  struct Iteration {
    std::int64_t started_ns = INT64_MAX;
    std::map<std::uint16_t, Service> streams;
  };
  std::map<std::uint32_t, Iteration> iterations;
  for (const Span& span : timeline.spans) {
    if (span.started_ns == kNoTime || span.ended_ns == kNoTime) continue;
    Iteration& iteration = iterations[span.iteration];
    iteration.started_ns = std::min(iteration.started_ns, span.started_ns);
    Service& service = iteration.streams[span.stream];
    ++service.commands[span.role];
    ++service.count;
    service.ended_ns = std::max(service.ended_ns, span.ended_ns);
  }

  double weighted = 0;
  double weight = 0;
  for (const auto& [number, iteration] : iterations) {
    std::map<std::map<std::uint8_t, std::uint32_t>, std::vector<double>> groups;
    for (const auto& [stream, service] : iteration.streams) {
      const auto elapsed = static_cast<double>(service.ended_ns - iteration.started_ns);
      if (elapsed > 0) groups[service.commands].push_back(service.count / elapsed);
    }
    for (const auto& [commands, rates] : groups) {
      if (rates.size() < 2) continue;
      if (const auto index = jain_index(rates)) {
        weighted += *index * static_cast<double>(rates.size());
        weight += static_cast<double>(rates.size());
      }
    }
  }
  if (weight == 0) return std::nullopt;
  return weighted / weight;
}

}  // namespace weir
