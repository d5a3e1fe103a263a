// How a Weir run served its streams, roles and requests: fairness among streams, latencies of a role's commands and of
// tokens. Knows timelines and marks only.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "measure/timeline.h"

namespace weir {

// Jain's index over the service rates of streams that had the same number of commands of the same roles in an
// iteration; service rate = commands over the time from the iteration's first start to the stream's last end. Averaged
// over groups and iterations, weighted by streams. Empty where no group has two streams.
std::optional<double> fairness(const Timeline& timeline);

// How long commands of one role took until their end, from when the program wanted them: from enqueueing, where
// something sits between the program and the device, else from submission.
std::vector<double> role_latencies(const Timeline& timeline, std::uint8_t role);

// Command `command` delivers the next token of request `request`.
struct TokenMark {
  std::uint32_t command = 0;
  std::uint32_t request = 0;
};

struct TokenLatencies {
  std::vector<double> first_ns;  // per request and iteration: from the iteration's first submit to the first token
  std::vector<double> next_ns;   // per token after the first: time since the previous one
};

// Marks of one request are in token order. Requests arrive when their iteration begins.
TokenLatencies token_latencies(const Timeline& timeline, std::span<const TokenMark> marks);

}  // namespace weir
