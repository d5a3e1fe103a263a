// How a run of ours served its streams, roles and requests: fairness among streams, latencies of a role's commands and
// of tokens. Knows timelines and marks only.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "measure/timeline.h"

namespace weir {

// Jain's index over the service rates of streams that had the same number of commands of the same roles in an
// iteration; service rate = commands over the time from the iteration's first start to the stream's last end. Averaged
// over groups and iterations by streams. Nothing where no group has two streams.
std::optional<double> fairness(const Timeline& timeline);

// How long commands of one role took to their end, from when the program wanted them: enqueued, where something stood
// between it and the device, else submitted.
std::vector<double> role_latencies(const Timeline& timeline, std::uint8_t role);

// Command `command` hands request `request` its next token.
struct TokenMark {
  std::uint32_t command = 0;
  std::uint32_t request = 0;
};

struct TokenLatencies {
  std::vector<double> first_ns;  // per request and iteration: from the iteration's first submit to the first token
  std::vector<double> next_ns;   // per token after the first: from the one before
};

// Marks of one request are in the order of its tokens. Requests arrive when their iteration begins.
TokenLatencies token_latencies(const Timeline& timeline, std::span<const TokenMark> marks);

}  // namespace weir
