// How long requests wait for their tokens: to the first one, and from one to the next. Knows timelines and marks only.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "measure/timeline.h"

namespace weir {

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
