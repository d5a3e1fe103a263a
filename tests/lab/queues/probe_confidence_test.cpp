// A stated confidence must be true: random devices, many of them with room for few kernels, with barriers or with
// somebody else's kernels, and how often the probe claims something that is not so.
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <random>
#include <string>

#include "base/error.h"
#include "device/sim/sim.h"
#include "lab/queues/probe.h"

namespace weir {
namespace {

sim::SimProfile random_device(std::uint64_t seed) {
  std::mt19937_64 random(seed);
  const auto below = [&](std::int64_t count) {
    return static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(count));
  };
  sim::SimProfile profile;
  constexpr sim::Mapping kMappings[] = {sim::Mapping::load_based, sim::Mapping::rotating, sim::Mapping::round_robin,
                                        sim::Mapping::least_referenced};
  profile.mapping = kMappings[below(4)];
  profile.queues = 1 + below(below(2) == 0 ? 12 : 38);  // with many there are few streams left to mark
  profile.resident_kernels = below(2) == 0 ? 1 + below(profile.queues) : 128;
  profile.barrier = below(3);
  constexpr double kLoads[] = {0, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5};
  profile.foreign_load = kLoads[below(7)];
  constexpr std::int64_t kSlices[] = {20'000, 100'000, 300'000, 1'000'000, 3'000'000};
  profile.foreign_slice_ns = kSlices[below(5)];
  profile.host.launch_ns = 500 + below(4000);
  profile.host.clock_ns = 20;
  profile.device.doorbell_ns = below(2000);
  profile.device.stream_gap_ns = below(3000);
  profile.seed = 1 + below(1'000'000);
  return profile;
}

// Why the probe is wrong; empty if everything that it claims holds.
std::string mistake_of(const sim::SimProfile& profile, const QueueProbe& probe) {
  if (!probe.queues) return "";  // it claims nothing
  const bool claims_room = probe.reason.starts_with("the device runs only");
  if (claims_room && profile.resident_kernels != *probe.queues) return "room for " + std::to_string(*probe.queues);
  if (probe.is_lower_bound) return *probe.queues <= profile.queues ? "" : "at least " + std::to_string(*probe.queues);
  const bool is_one = profile.queues == 1;
  if (*probe.queues != profile.queues) return "exactly " + std::to_string(*probe.queues);
  const std::string_view policy = name_of(probe.policy);
  const bool is_right =
      policy == (is_one ? "one_queue" : sim::name_of(profile.mapping)) || policy == "unknown" ||
      // The order of creation did not show; the map itself is right.
      (policy == "fixed" && !probe.reason.empty() && profile.mapping <= sim::Mapping::least_referenced);
  return is_right ? "" : std::string(policy);
}

TEST(ProbeConfidence, IsTrueOnRandomDevices) {
  const bool is_long = std::getenv("WEIR_LONG_TESTS") != nullptr;
  const std::uint64_t count = is_long ? 1000 : 20;
  int answered = 0, exact = 0, refused = 0, wrong = 0;
  for (std::uint64_t seed = 1; seed <= count; ++seed) {
    const sim::SimProfile profile = random_device(seed);
    ProbeOptions options;
    options.seed = seed;
    QueueProbe probe;
    try {
      probe = probe_queues(*open_sim(profile), options);
    } catch (const Error&) {
      ++refused;
      continue;
    }
    if (!probe.queues) {
      ++refused;
      continue;
    }
    ++answered;
    exact += probe.is_lower_bound ? 0 : 1;
    const std::string mistake = mistake_of(profile, probe);
    if (mistake.empty()) continue;
    ++wrong;
    std::printf(
        "seed %d: %s at %.6f; %s, %d queues, room for %d, barrier %d, foreign load %.2f in slices of %d us: %s\n",
        static_cast<int>(seed), mistake.c_str(), probe.confidence, std::string(sim::name_of(profile.mapping)).c_str(),
        static_cast<int>(profile.queues), static_cast<int>(profile.resident_kernels), static_cast<int>(profile.barrier),
        profile.foreign_load, static_cast<int>(profile.foreign_slice_ns / 1000), probe.reason.c_str());
  }
  std::printf("%d of %d maps wrong (%d exact, %d at least); %d without an answer\n", wrong, answered, exact,
              answered - exact, refused);
  EXPECT_EQ(wrong, 0);
  EXPECT_GT(exact, answered / 2);
}

}  // namespace
}  // namespace weir
