// Steps for examining devices, how to run them, and their expected results. Draws no conclusions.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "device/device.h"
#include "kernel/random.h"
#include "submit/submitter.h"

namespace weir::conformance {

using Contents = std::vector<std::vector<std::byte>>;  // by buffer

// Random numbers that depend only on the seed.
class Dice {
 public:
  explicit Dice(std::uint64_t seed) : seed_(seed) {}
  std::uint32_t below(std::size_t bound) { return random_bits(seed_, ++count_) % static_cast<std::uint32_t>(bound); }

 private:
  std::uint64_t seed_, count_ = 0;
};

struct Mix {
  bool has_host = false;  // host functions on the buffer in host memory
  bool has_cuts = false;  // more than one graph, some with only a host function
};

// Element-wise kernels, fills and copies between slices of few buffers: dense in hazards, and exact on any device,
// because every kernel rounds once.
Step random_step(std::uint64_t seed, int streams, Mix mix = {});

Placement natural(const Step& step);
Placement random_placement(const Step& step, std::uint64_t seed, int streams);

// The contents of buffers before the first iteration.
Contents initial_contents(const Step& step);
// The buffers after `iterations` in which commands run one after the other on the host.
Contents reference(const Step& step, int iterations);
Contents read_all(Session& session, const Step& step);

struct RunChoice {
  std::string submit = "inline";
  bool is_pipelined = false;
  int iterations = 1;
};

// The session options for a choice.
SessionOptions options_of(const SubmitChoice& submit, bool is_pipelined);
void iterate(Session& session, Submitter& submitter, const RunChoice& choice);
// Runs the step and returns all buffers.
Contents run(Device& device, const Step& step, const Placement& placement, const RunChoice& choice);

}  // namespace weir::conformance
