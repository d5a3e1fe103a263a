// Submitting through a channel: the available channels, and their submitters.
#pragma once

#include <span>
#include <string_view>

#include "submit/submitter.h"

namespace weir {

struct ChannelWay {
  std::string_view name;  // file and CLI name: mpsc
  int max_producers;      // that may push into one such channel
  std::unique_ptr<Submitter> (*make)(const SubmitChoice& choice, const Step& step, const Placement& placement,
                                     Session& session, int traced_iterations);
};

std::span<const ChannelWay> channel_ways();

}  // namespace weir
