// The probe against the truth: what it infers must be what the simulated device was told, over random configurations.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>

#include "base/error.h"
#include "device/sim/sim.h"
#include "lab/queues/probe.h"

namespace weir {
namespace {

struct Configuration {
  sim::SimProfile profile;
  ProbeOptions options;
};

// What anybody who watches the streams could know at best.
struct Truth {
  MappingPolicy policy = MappingPolicy::unknown;
  int queues = 0;
  bool is_lower_bound = false;
  std::vector<int> partition;  // static mappings: numbered in the order in which streams show them
  std::optional<bool> record_blocks;
};

std::vector<int> in_order_of_appearance(const std::vector<std::int64_t>& queues) {
  std::map<std::int64_t, int> labels;
  std::vector<int> partition;
  for (const std::int64_t queue : queues)
    partition.push_back(labels.emplace(queue, static_cast<int>(labels.size())).first->second);
  return partition;
}

int classes_of(const std::vector<int>& partition) { return 1 + *std::max_element(partition.begin(), partition.end()); }

bool is_cyclic(const std::vector<int>& partition) {
  const int classes = classes_of(partition);
  for (std::size_t i = 0; i < partition.size(); ++i)
    if (partition[i] != static_cast<int>(i) % classes) return false;
  return true;
}

std::vector<int> fixed_partition(const sim::SimProfile& profile, int streams) {
  std::vector<std::int64_t> queues;
  for (std::size_t i = 0; i < static_cast<std::size_t>(streams); ++i)
    queues.push_back(profile.map[i % profile.map.size()]);
  return in_order_of_appearance(queues);
}

Truth truth_of(const Configuration& configuration) {
  const sim::SimProfile& profile = configuration.profile;
  const int streams = configuration.options.streams;
  Truth truth;
  switch (profile.mapping) {
    case sim::Mapping::round_robin:
      truth.policy = MappingPolicy::round_robin;
      break;
    case sim::Mapping::least_referenced:
      truth.policy = MappingPolicy::least_referenced;
      break;
    case sim::Mapping::load_based:
      truth.policy = MappingPolicy::load_based;
      break;
    case sim::Mapping::rotating:
      truth.policy = MappingPolicy::rotating;
      break;
    case sim::Mapping::fixed:
      truth.policy = MappingPolicy::fixed;
      break;
  }
  truth.queues = static_cast<int>(profile.queues);
  if (profile.mapping == sim::Mapping::fixed) {
    truth.partition = fixed_partition(profile, streams);
    truth.queues = classes_of(truth.partition);  // one that no stream maps to cannot be seen
  } else if (is_static(truth.policy)) {
    for (int i = 0; i < streams; ++i) truth.partition.push_back(i % truth.queues);
  }
  if (truth.queues >= streams) {
    return {MappingPolicy::unshared, streams, true, {}, std::nullopt};
  }
  // Behind a barrier a record stops its queue like any command.
  truth.record_blocks = profile.record_blocks != 0 || profile.barrier != 0;
  if (truth.queues == 1) {
    truth.policy = MappingPolicy::one_queue;
    truth.partition.assign(static_cast<std::size_t>(streams), 0);
  }
  return truth;
}

std::string text_of(const Configuration& configuration) {
  std::string text = "streams=" + std::to_string(configuration.options.streams) +
                     " seed=" + std::to_string(configuration.options.seed) + "\n" + to_yaml(configuration.profile);
  return text;
}

void expect_truth(const Configuration& configuration) {
  const Truth truth = truth_of(configuration);
  const auto device = open_sim(configuration.profile);
  const QueueProbe probe = probe_queues(*device, configuration.options);
  const std::string context = std::string(name_of(probe.policy)) + " " + probe.reason + "\n" + text_of(configuration);
  EXPECT_EQ(name_of(probe.policy), name_of(truth.policy)) << context;
  ASSERT_TRUE(probe.queues) << context;
  EXPECT_EQ(*probe.queues, truth.queues) << context;
  EXPECT_EQ(probe.is_lower_bound, truth.is_lower_bound) << context;
  EXPECT_EQ(probe.queue_of_stream, truth.partition) << context;
  // A table goes on where the last session's streams ended, so the map is that session's alone.
  if (truth.policy == MappingPolicy::fixed) {
    EXPECT_FALSE(probe.record_blocks) << context;
  } else if (probe.record_blocks) {
    EXPECT_EQ(probe.record_blocks, truth.record_blocks) << context;
  } else {
    // One stream is the events' own; of the others one must be left to be stopped.
    const bool is_known_to_be_few = probe.is_lower_bound || *probe.queues + 2 > probe.streams;
    EXPECT_TRUE(is_known_to_be_few) << context;
  }
  EXPECT_GE(probe.confidence, configuration.options.confidence) << context;
}

class Chance {
 public:
  explicit Chance(std::uint64_t seed) : random_(seed) {}
  std::int64_t between(std::int64_t low, std::int64_t high) {
    return std::uniform_int_distribution<std::int64_t>(low, high)(random_);
  }
  double upto(double most) { return std::uniform_real_distribution<double>(0, most)(random_); }
  bool happens(double probability) { return upto(1) < probability; }

 private:
  std::mt19937_64 random_;
};

// A table that looks like turns is left out: nobody could tell it from round robin (see ATableOfTurns below).
void choose_table(sim::SimProfile& profile, int streams, Chance& chance) {
  do {
    profile.map.resize(static_cast<std::size_t>(chance.between(1, 80)));
    for (std::int64_t& queue : profile.map) queue = chance.between(0, profile.queues - 1);
    const std::vector<int> partition = fixed_partition(profile, streams);
    const int classes = classes_of(partition);
    if (classes == 1 || classes == streams || !is_cyclic(partition)) return;
  } while (true);
}

Configuration random_configuration(std::uint64_t seed) {
  Chance chance(seed);
  Configuration configuration;
  sim::SimProfile& profile = configuration.profile;
  configuration.options.streams = static_cast<int>(chance.between(2, 64));
  configuration.options.seed = static_cast<std::uint64_t>(chance.between(0, 1'000'000));
  profile.queues = chance.between(1, 40);
  constexpr sim::Mapping kMappings[] = {sim::Mapping::round_robin, sim::Mapping::least_referenced,
                                        sim::Mapping::load_based, sim::Mapping::rotating, sim::Mapping::fixed};
  profile.mapping = kMappings[chance.between(0, 4)];
  if (profile.mapping == sim::Mapping::fixed) choose_table(profile, configuration.options.streams, chance);
  profile.seed = chance.between(1, 1'000'000);
  profile.jitter = chance.happens(0.5) ? chance.upto(0.5) : 0;
  profile.barrier = chance.happens(0.3) ? 1 : 0;
  profile.queue_depth = chance.between(130, 2000);  // a hold, one behind it and a mark for each of 64 streams at most
  profile.multiprocessors = chance.between(8, 300);
  profile.slots_per_multiprocessor = chance.between(16, 64);
  profile.resident_kernels = chance.between(configuration.options.streams, 256);
  profile.max_streams = chance.between(configuration.options.streams + 1, 1024);  // one more waits for events
  constexpr std::int64_t kTimers[] = {1, 10, 32, 1000, 1024, 10'000, 1'000'000};
  profile.timer_ns = kTimers[chance.between(0, 6)];
  profile.host.clock_ns = chance.between(1, 100);
  for (std::int64_t* cost : {&profile.host.launch_ns, &profile.host.record_ns, &profile.host.wait_ns,
                             &profile.host.finish_ns, &profile.device.doorbell_ns, &profile.device.launch_ns,
                             &profile.device.stream_gap_ns, &profile.device.event_gap_ns, &profile.device.switch_ns})
    *cost = chance.happens(0.7) ? chance.between(0, 10'000) : 0;
  profile.device.switch_per_doubling_ns = chance.between(0, 1000);
  profile.record_blocks = chance.between(0, 1);
  profile.engine_queues = chance.between(0, 1);
  return configuration;
}

class ProbeSim : public testing::TestWithParam<int> {};

// 320 configurations in 8 tests: count, policy and map are what the device was told, in all of them.
TEST_P(ProbeSim, InfersWhatTheDeviceWasTold) {
  constexpr int kEach = 40;
  for (int i = 0; i < kEach; ++i) {
    expect_truth(random_configuration(static_cast<std::uint64_t>(1 + GetParam() * kEach + i)));
    if (testing::Test::HasFailure()) return;
  }
}

// What a sanitizer would find, it finds in a quarter of them.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
INSTANTIATE_TEST_SUITE_P(Random, ProbeSim, testing::Range(0, 2));
#else
INSTANTIATE_TEST_SUITE_P(Random, ProbeSim, testing::Range(0, 8));
#endif

// Where counts are small and close to the number of streams, everything that can be confused is.
TEST(ProbeSim, SmallCountsOfEveryMapping) {
  for (const sim::Mapping mapping :
       {sim::Mapping::round_robin, sim::Mapping::least_referenced, sim::Mapping::load_based, sim::Mapping::rotating}) {
    for (std::int64_t queues = 1; queues <= 5; ++queues) {
      for (int streams = 2; streams <= 7; ++streams) {
        Configuration configuration;
        configuration.profile.mapping = mapping;
        configuration.profile.queues = queues;
        configuration.options.streams = streams;
        expect_truth(configuration);
      }
    }
  }
}

QueueProbe probe_of(const Configuration& configuration) {
  const auto device = open_sim(configuration.profile);
  return probe_queues(*device, configuration.options);
}

Configuration with_queues(std::int64_t queues, sim::Mapping mapping, int streams) {
  Configuration configuration;
  configuration.profile.queues = queues;
  configuration.profile.mapping = mapping;
  configuration.options.streams = streams;
  return configuration;
}

TEST(ProbeSim, ATableOfTurnsIsRoundRobin) {
  Configuration configuration = with_queues(8, sim::Mapping::fixed, 12);
  configuration.profile.map = {5, 2, 7};
  const QueueProbe probe = probe_of(configuration);
  EXPECT_EQ(probe.policy, MappingPolicy::round_robin) << probe.reason;
  EXPECT_EQ(probe.queues, 3);
  for (std::size_t i = 0; i < 12; ++i) EXPECT_EQ(probe.queue_of_stream[i], static_cast<int>(i % 3)) << i;
}

TEST(ProbeSim, ATableWithARepetitionIsFixed) {
  Configuration configuration = with_queues(4, sim::Mapping::fixed, 10);
  configuration.profile.map = {3, 3, 0, 1};
  const QueueProbe probe = probe_of(configuration);
  EXPECT_EQ(probe.policy, MappingPolicy::fixed) << probe.reason;
  EXPECT_EQ(probe.queues, 3);
  EXPECT_EQ(probe.queue_of_stream, (std::vector<int>{0, 0, 1, 2, 0, 0, 1, 2, 0, 0}));
}

// A queue with a barrier and the device's room for kernels look alike when all queues are held. They do not when one of
// the holds ends: then one queue goes on, or everybody.
TEST(ProbeSim, ABarrierIsNotTakenForRoom) {
  for (const sim::Mapping mapping : {sim::Mapping::load_based, sim::Mapping::rotating, sim::Mapping::round_robin}) {
    for (const std::int64_t barrier : {0, 1, 2}) {
      for (const std::int64_t queues : {2, 4, 11}) {
        Configuration configuration = with_queues(queues, mapping, 14);
        configuration.profile.barrier = barrier;
        const QueueProbe probe = probe_of(configuration);
        const std::string context = text_of(configuration) + probe.reason;
        ASSERT_TRUE(probe.queues) << context;
        EXPECT_EQ(*probe.queues, queues) << context;
        EXPECT_FALSE(probe.is_lower_bound) << context;
        EXPECT_EQ(name_of(probe.policy), sim::name_of(mapping)) << context;
        if (barrier != 2) {
          EXPECT_EQ(probe.barrier, barrier == 1) << context;
        }
        EXPECT_GE(probe.confidence, configuration.options.confidence) << context;
      }
    }
  }
}

// Fewer kernels than queues, with and without barriers: the count is a lower bound then, and nothing more is claimed.
TEST(ProbeSim, RoomForFewKernelsIsALowerBoundWhateverTheQueuesDo) {
  for (const sim::Mapping mapping : {sim::Mapping::load_based, sim::Mapping::rotating}) {
    for (const std::int64_t barrier : {0, 1, 2}) {
      for (const std::int64_t room : {1, 2, 5}) {
        Configuration configuration = with_queues(9, mapping, 30);
        configuration.profile.barrier = barrier;
        configuration.profile.resident_kernels = room;
        const QueueProbe probe = probe_of(configuration);
        const std::string context = text_of(configuration) + probe.reason;
        EXPECT_EQ(probe.queues, room) << context;
        EXPECT_TRUE(probe.is_lower_bound) << context;
        EXPECT_EQ(probe.policy, MappingPolicy::unknown) << context;
        EXPECT_NE(probe.reason.find("runs only " + std::to_string(room) + " kernel"), std::string::npos) << context;
      }
    }
  }
}

// One kernel at a time: streams on one queue, or on any number of them. A copy tells them apart.
TEST(ProbeSim, OneKernelAtATimeIsNotOneQueue) {
  for (const std::int64_t queues : {1, 2, 8}) {
    for (const std::int64_t engine_queues : {0, 1}) {
      for (const sim::Mapping mapping : {sim::Mapping::round_robin, sim::Mapping::load_based}) {
        Configuration configuration = with_queues(queues, mapping, 20);
        configuration.profile.resident_kernels = 1;
        configuration.profile.engine_queues = engine_queues;
        const QueueProbe probe = probe_of(configuration);
        const std::string context = text_of(configuration) + probe.reason;
        EXPECT_EQ(probe.queues, 1) << context;
        EXPECT_EQ(probe.is_lower_bound, queues > 1) << context;
        EXPECT_EQ(name_of(probe.policy), queues > 1 ? "unknown" : "one_queue") << context;
      }
    }
  }
}

TEST(ProbeSim, ShallowQueuesAreNamedAsTheReason) {
  for (const std::int64_t depth : {1, 2, 5, 20}) {
    for (const sim::Mapping mapping : {sim::Mapping::round_robin, sim::Mapping::load_based}) {
      Configuration configuration = with_queues(2, mapping, 40);
      configuration.profile.queue_depth = depth;
      const QueueProbe probe = probe_of(configuration);
      const std::string context = text_of(configuration) + probe.reason;
      if (probe.queues) {
        EXPECT_EQ(*probe.queues, 2) << context;
        continue;
      }
      EXPECT_NE(probe.reason.find("too shallow"), std::string::npos) << context;
      EXPECT_NE(probe.reason.find("--sim queue_depth=80"), std::string::npos) << context;
      // What it says to type helps.
      configuration.profile.queue_depth = 80;
      EXPECT_EQ(probe_of(configuration).queues, 2) << context;
    }
  }
}

TEST(ProbeSim, RoomForKernelsIsNotTakenForQueues) {
  for (const sim::Mapping mapping : {sim::Mapping::load_based, sim::Mapping::rotating}) {
    for (const bool is_limit_of_slots : {false, true}) {
      Configuration configuration = with_queues(16, mapping, 40);
      configuration.profile.resident_kernels = is_limit_of_slots ? 128 : 6;
      if (is_limit_of_slots) configuration.profile.multiprocessors = 1;
      if (is_limit_of_slots) configuration.profile.slots_per_multiprocessor = 6;
      const QueueProbe probe = probe_of(configuration);
      EXPECT_EQ(probe.policy, MappingPolicy::unknown);
      EXPECT_TRUE(probe.is_lower_bound);
      EXPECT_EQ(probe.queues, 6);
      EXPECT_NE(probe.reason.find("runs only 6 kernels at once"), std::string::npos) << probe.reason;
    }
  }
  // One held stream at a time tells a map that stays, with room for two kernels.
  Configuration configuration = with_queues(16, sim::Mapping::round_robin, 40);
  configuration.profile.resident_kernels = 2;
  expect_truth(configuration);
}

// Somebody else's kernels delay ours. Then the probe may say that it does not know, but a wrong answer must show the
// disturbance beside it.
TEST(ProbeSim, ForeignLoadIsNoticedOrDoesNotMatter) {
  int noticed = 0;
  for (std::uint64_t seed = 1; seed <= 15; ++seed) {
    Chance chance(1000 + seed);
    Configuration configuration = random_configuration(seed);
    configuration.profile.foreign_load = 0.05 + chance.upto(0.85);
    constexpr std::int64_t kSlices[] = {20'000, 200'000, 2'000'000};
    configuration.profile.foreign_slice_ns = kSlices[chance.between(0, 2)];
    QueueProbe probe;
    try {
      probe = probe_of(configuration);
    } catch (const Error&) {
      continue;  // refused
    }
    const bool is_noticed = probe.baseline.late > 0 || probe.baseline.stretched > 0 || probe.spoilt > 0;
    noticed += is_noticed;
    if (is_noticed) continue;
    const Truth truth = truth_of(configuration);
    // A map whose order of creation did not show is called fixed, with that as the reason.
    const bool is_undecided = probe.policy == MappingPolicy::fixed && !probe.reason.empty();
    EXPECT_TRUE(is_undecided || probe.policy == truth.policy) << name_of(probe.policy) << text_of(configuration);
    EXPECT_EQ(probe.queues, truth.queues) << probe.reason << "\n" << text_of(configuration);
  }
  EXPECT_GT(noticed, 0);
}

TEST(ProbeSim, ForeignKernelsInBetweenStretchMarks) {
  for (std::int64_t seed = 1; seed <= 10; ++seed) {
    Configuration configuration = with_queues(8, sim::Mapping::load_based, 40);
    configuration.profile.seed = seed;
    configuration.profile.foreign_load = 0.5;
    configuration.profile.foreign_slice_ns = 50'000;
    const QueueProbe probe = probe_of(configuration);
    EXPECT_GT(probe.baseline.late + probe.baseline.stretched, 0) << seed;
  }
  const QueueProbe alone = probe_of(with_queues(8, sim::Mapping::load_based, 40));
  EXPECT_EQ(alone.baseline.late + alone.baseline.stretched, 0);
}

TEST(ProbeSim, MoreStreamsThanTheDeviceHasAreRejectedByTheFlag) {
  Configuration configuration = with_queues(4, sim::Mapping::round_robin, 40);
  configuration.profile.max_streams = 20;
  try {
    probe_of(configuration);
    FAIL() << "opened 40 streams of 20";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("40 streams"), std::string::npos) << error.what();
    EXPECT_NE(error.hint.find("--sim max_streams"), std::string::npos) << error.hint;
  }
  EXPECT_THROW(probe_of(with_queues(4, sim::Mapping::round_robin, 1)), Error);
}

// The order in which streams are marked follows the seed, and so does everything else.
TEST(ProbeSim, OneSeedGivesOneProbe) {
  Configuration configuration = random_configuration(7);
  const QueueProbe first = probe_of(configuration), second = probe_of(configuration);
  EXPECT_EQ(first.trials, second.trials);
  EXPECT_EQ(first.elapsed_ns, second.elapsed_ns);
  EXPECT_EQ(first.baseline.median_ns, second.baseline.median_ns);
}

}  // namespace
}  // namespace weir
