#include "trace/analyse/service.h"

#include <algorithm>
#include <map>

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

std::vector<double> role_latencies(const Timeline& timeline, std::uint8_t role) {
  std::vector<double> latencies;
  for (const Span& span : timeline.spans) {
    if (span.role != role || span.submitted_ns == kNoTime || span.ended_ns == kNoTime) continue;
    // Otherwise a scheduler that holds commands back would look fast.
    const std::int64_t wanted_ns = span.enqueued_ns != kNoTime ? span.enqueued_ns : span.submitted_ns;
    latencies.push_back(static_cast<double>(span.ended_ns - wanted_ns));
  }
  return latencies;
}

TokenLatencies token_latencies(const Timeline& timeline, std::span<const TokenMark> marks) {
  struct Iteration {
    std::int64_t begun_ns = INT64_MAX;
    std::map<std::uint32_t, std::int64_t> ended_ns;  // by command
  };
  std::map<std::uint32_t, Iteration> iterations;
  for (const Span& span : timeline.spans) {
    Iteration& iteration = iterations[span.iteration];
    const std::int64_t begun = span.submitted_ns != kNoTime ? span.submitted_ns : span.started_ns;
    if (begun != kNoTime) iteration.begun_ns = std::min(iteration.begun_ns, begun);
    if (span.ended_ns != kNoTime) iteration.ended_ns[span.command] = span.ended_ns;
  }
  TokenLatencies found;
  for (const auto& [number, iteration] : iterations) {
    std::map<std::uint32_t, std::int64_t> last_ns;  // by request
    for (const TokenMark& mark : marks) {
      const auto ended = iteration.ended_ns.find(mark.command);
      if (ended == iteration.ended_ns.end() || iteration.begun_ns == INT64_MAX) continue;
      const auto [last, is_first] = last_ns.try_emplace(mark.request, ended->second);
      if (is_first) {
        found.first_ns.push_back(static_cast<double>(ended->second - iteration.begun_ns));
      } else {
        found.next_ns.push_back(static_cast<double>(ended->second - last->second));
        last->second = ended->second;
      }
    }
  }
  return found;
}

}  // namespace weir
