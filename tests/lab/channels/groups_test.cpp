// Every benchmark of `weir channel`, run for a moment: commands are counted, checked and not lost, and each benchmark
// has a name of its own. Says nothing about how long anything takes.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "lab/channels/loops/benchmark.h"
#include "lab/channels/loops/carried.h"
#include "lab/channels/loops/core_pairs.h"
#include "lab/channels/loops/entry.h"
#include "lab/channels/loops/team.h"
#include "lab/channels/loops/uncontended.h"
#include "measure/environment.h"

namespace weir::channel_bench {
namespace {

#if defined(__SANITIZE_THREAD__)
constexpr bool kIsTsan = true;
#else
constexpr bool kIsTsan = false;
#endif

Conditions a_moment() {
  Conditions conditions;
  conditions.cores = usable_cores();
  conditions.samples = 1;
  conditions.sample_ms = 0.05;
  conditions.capacity = 64;
  return conditions;
}

// Other people's queues order their memory by fences, which ThreadSanitizer does not see.
bool is_from_elsewhere(const Benchmark& benchmark) {
  return benchmark.contestant.starts_with("boost") || benchmark.contestant.starts_with("moodycamel") ||
         benchmark.contestant.starts_with("atomic_queue");
}

class EachGroup : public ::testing::TestWithParam<Group> {};

TEST_P(EachGroup, loses_nothing) {
  const Conditions conditions = a_moment();
  int ran = 0;
  for (const Benchmark& benchmark : GetParam().benchmarks(conditions)) {
    if (!benchmark.unavailable.empty() || (kIsTsan && is_from_elsewhere(benchmark))) continue;
    SCOPED_TRACE(benchmark.id());
    const Measurement measurement = benchmark.run(conditions);
    ++ran;
    EXPECT_EQ(measurement.failure, "");
    EXPECT_TRUE(measurement.is_checksum_right);
    EXPECT_EQ(measurement.sent, measurement.received);
    EXPECT_EQ(measurement.samples.size(), 1U);
    for (const double sample : measurement.samples) EXPECT_GT(sample, 0);
    EXPECT_EQ(measurement.p50_ns.has_value(), measurement.p99_ns.has_value());
  }
  if (ran == 0) GTEST_SKIP() << "nothing of this group can be run here";
}

TEST_P(EachGroup, benchmarks_can_be_told_apart) {
  std::set<std::string> ids;
  for (const Benchmark& benchmark : GetParam().benchmarks(a_moment())) {
    EXPECT_EQ(benchmark.group, GetParam().name);
    EXPECT_FALSE(benchmark.what.empty()) << benchmark.id();
    EXPECT_TRUE(benchmark.run || !benchmark.unavailable.empty()) << benchmark.id();
    EXPECT_TRUE(ids.insert(benchmark.id()).second) << benchmark.id() << " comes twice";
  }
  EXPECT_FALSE(ids.empty());
}

INSTANTIATE_TEST_SUITE_P(Groups, EachGroup, ::testing::ValuesIn(groups().begin(), groups().end()),
                         [](const auto& tested) { return tested.param.name; });

TEST(Groups, have_names_of_their_own) {
  std::set<std::string> names;
  for (const Group& group : groups()) EXPECT_TRUE(names.insert(group.name).second) << group.name << " comes twice";
}

// A channel that forgets every hundredth command, and one that hands out something else.
struct Forgetful {
  explicit Forgetful(std::size_t) {}
  struct End {
    Forgetful& channel;
    bool try_push(const CommandRecord& item) {
      if (++channel.pushed % 100 != 0) channel.kept.push_back(item);
      return true;
    }
    bool try_pop(CommandRecord& item) {
      if (channel.kept.empty()) return false;
      item = channel.kept.back();
      channel.kept.pop_back();
      return true;
    }
  };
  End producer() { return {*this}; }
  End consumer() { return {*this}; }
  int pushed = 0;
  std::vector<CommandRecord> kept;
};
struct Mistaken : Forgetful {
  using Forgetful::Forgetful;
  struct End : Forgetful::End {
    bool try_push(CommandRecord item) {
      channel.kept.push_back((item.id = item.id == 17 ? 18 : item.id, item));
      return true;
    }
  };
  End producer() { return {{*this}}; }
};

TEST(Groups, a_channel_that_loses_commands_fails) {
  const Measurement measurement = measure_uncontended<Timed::push, Forgetful, Small>(a_moment(), 200);
  EXPECT_TRUE(measurement.samples.empty());
  EXPECT_FALSE(measurement.is_checksum_right);
  EXPECT_NE(measurement.failure.find("commands arrived"), std::string::npos) << measurement.failure;
  EXPECT_LT(measurement.received, measurement.sent);
}
TEST(Groups, a_channel_that_mistakes_commands_fails) {
  const Measurement measurement = measure_uncontended<Timed::push, Mistaken, Small>(a_moment(), 200);
  EXPECT_TRUE(measurement.samples.empty());
  EXPECT_FALSE(measurement.is_checksum_right);
  EXPECT_EQ(measurement.received, measurement.sent);
}

TEST(CorePairs, are_usable_or_say_why_not) {
  const std::vector<int> usable = usable_cores();
  const auto is_usable = [&](int core) { return std::find(usable.begin(), usable.end(), core) != usable.end(); };
  std::set<std::string> names;
  for (const CorePair& pair : core_pairs()) {
    EXPECT_TRUE(names.insert(pair.name).second) << pair.name;
    if (!pair.unavailable.empty()) continue;
    EXPECT_TRUE(is_usable(pair.first) && is_usable(pair.second)) << pair.name;
    EXPECT_EQ(pair.first == pair.second, pair.name == "same_cpu");
  }
  EXPECT_TRUE(names.contains("same_cpu") && names.contains("neighbours") && names.contains("other_socket"));
}

}  // namespace
}  // namespace weir::channel_bench
