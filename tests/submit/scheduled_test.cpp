// The order in which a policy lets commands go, seen by a session that writes it down. Times are the test's own.
#include "submit/scheduled.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "base/error.h"
#include "kernel/chain.h"
#include "submit/order_session.h"
#include "submit/placement.h"

namespace weir {
namespace {

constexpr std::int64_t kKernelNs = 10'000;

// Runs one command after the other, in the order in which they came, each for the same time. Time passes only while
// somebody waits.
class LoggingSession final : public Session {
 public:
  explicit LoggingSession(const Placement& placement)
      : placement_(placement), ended_(static_cast<std::size_t>(placement.stream_count), 0) {}
  void begin_iteration() noexcept override {}
  void submit(std::span<const CommandId> commands) noexcept override {
    for (const CommandId id : commands) log.push_back(id);
    max_in_flight = std::max(max_in_flight, log.size() - done_);
  }
  void finish() override {
    while (done_ < log.size()) relax(0);
  }
  std::vector<IterationSpan> take_spans() override { return {}; }
  Timeline timeline() override { return {}; }
  void reset() override {}
  void read(BufferId, std::span<std::byte>) override {}
  MemoryUse memory() const override { return {}; }
  std::int64_t now_ns() noexcept override { return now_; }
  std::optional<std::uint64_t> ended(StreamId stream) noexcept override {
    if (has_failed) return kAllEnded;
    return ended_[stream];
  }
  void relax(int) noexcept override {
    now_ += kKernelNs;
    if (has_failed || done_ == log.size()) return;
    ++ended_[placement_.stream_of[log[done_]]];
    ++done_;
  }

  std::vector<CommandId> log;
  std::size_t max_in_flight = 0;
  bool has_failed = false;

 private:
  const Placement& placement_;
  std::vector<std::uint64_t> ended_;
  std::size_t done_ = 0;
  std::int64_t now_ = 0;
};

// Streams that have nothing to do with each other; the step goes round them.
struct Streams {
  explicit Streams(int streams, int each, const std::vector<int>& priorities = {}) {
    StepBuilder builder(1);
    for (int i = 0; i < each; ++i) {
      for (int s = 0; s < streams; ++s) {
        const BufferId data = builder.uniform(ElementType::f32, 4);
        const auto at = static_cast<std::size_t>(s);
        builder.launch("chain",
                       {.stream = static_cast<StreamId>(s),
                        .priority = static_cast<std::int8_t>(priorities.empty() ? 0 : priorities[at])},
                       {.dims = {4, chain_ops({ChainOp::abs})}, .scalars = {}}, {{data}, {data}});
      }
    }
    step = std::move(builder).seal(streams);
    placement = place(*step, "natural");
  }

  // Streams in the order in which their commands went, "aab": the first, the first, the second.
  std::string order(const char* policy, int in_flight, std::vector<scheduler::Terms> terms = {},
                    scheduler::Settings settings = {.slice_ns = 1'000'000'000, .ageing_ns = 0}) {
    LoggingSession session(placement);
    if (terms.empty()) terms = stream_terms(*step, placement);
    const auto submitter =
        scheduled_submitter({&scheduler::policy_named(policy), in_flight, settings, terms}, *step, placement, session);
    submitter->submit_step();
    EXPECT_LE(session.max_in_flight, static_cast<std::size_t>(in_flight));
    std::string order;
    for (const CommandId id : session.log) order += static_cast<char>('a' + placement.stream_of[id]);
    return order;
  }

  std::optional<Step> step;
  Placement placement;
};

TEST(Scheduled, fifo_keeps_the_order_of_the_step) {
  for (const int in_flight : {1, 2, 100}) EXPECT_EQ(Streams(3, 3).order("fifo", in_flight), "abcabcabc");
}

TEST(Scheduled, the_highest_priority_goes_first) {
  Streams streams(3, 3, {0, 2, 1});
  EXPECT_EQ(streams.order("priority", 1), "bbbcccaaa");
  EXPECT_EQ(streams.order("priority", 2), "bbbcccaaa");
  EXPECT_EQ(Streams(3, 2, {1, 0, 1}).order("priority", 1), "acacbb") << "of equals, the first in the step";
}

TEST(Scheduled, priorities_beyond_the_scale_count_as_its_ends) {
  Streams streams(2, 2, {-100, 100});
  const auto terms = stream_terms(*streams.step, streams.placement);
  EXPECT_EQ(terms[0].priority, scheduler::kLowestPriority);
  EXPECT_EQ(terms[1].priority, scheduler::kHighestPriority);
  EXPECT_EQ(streams.order("priority", 1), "bbaa");
}

TEST(Scheduled, the_earliest_deadline_goes_first) {
  Streams streams(3, 2);
  EXPECT_EQ(streams.order("earliest_deadline", 1,
                          {{.deadline_ns = 3'000'000}, {.deadline_ns = 1'000'000}, {.deadline_ns = 2'000'000}}),
            "bbccaa");
  EXPECT_EQ(streams.order("earliest_deadline", 1, {{}, {.deadline_ns = 2'000'000}, {.deadline_ns = 1'000'000}}),
            "ccbbaa")
      << "one without a deadline can wait";
}

TEST(Scheduled, turns_end_with_their_slice) {
  const std::string order = Streams(2, 6).order("time_slice", 1, {}, {.slice_ns = 2 * kKernelNs, .ageing_ns = 0});
  EXPECT_EQ(std::count(order.begin(), order.end(), 'a'), 6);
  // A turn is two kernels, or three where it begins within one.
  for (const char* const long_turn : {"aaaa", "bbbb"}) {
    const std::size_t at = order.find(long_turn);
    EXPECT_TRUE(at == std::string::npos || at + 4 == order.size()) << order;
  }
  EXPECT_NE(order, "aaaaaabbbbbb");
  EXPECT_NE(order, "abababababab");
}

TEST(Scheduled, shares_follow_weights) {
  const std::string order =
      Streams(2, 40).order("weighted_fair", 1, {{.weight = 1}, {.weight = 3}}, {.slice_ns = kKernelNs, .ageing_ns = 0});
  const std::string both = order.substr(0, order.find_last_of('b') + 1);
  const auto mine = std::count(both.begin(), both.end(), 'a'), theirs = std::count(both.begin(), both.end(), 'b');
  EXPECT_EQ(theirs, 40);
  EXPECT_NEAR(static_cast<double>(mine), 40.0 / 3, 3) << order;
}

TEST(Scheduled, who_waits_too_long_comes_first_for_a_slice) {
  Streams streams(2, 12, {1, 0});
  EXPECT_EQ(streams.order("priority", 1), "aaaaaaaaaaaabbbbbbbbbbbb");
  const std::string aged = streams.order("priority", 1, {}, {.slice_ns = 2 * kKernelNs, .ageing_ns = 4 * kKernelNs});
  const std::size_t first = aged.find('b');
  EXPECT_GE(first, 3u) << aged;
  EXPECT_LE(first, 6u) << aged;
  EXPECT_EQ(aged.find('a', first) == std::string::npos, false) << "for a slice only: " << aged;
}

// The urgent stream's commands each wait for one of the other's: what it cannot use it does not keep.
TEST(Scheduled, a_stream_without_a_ready_command_keeps_nobody_waiting) {
  StepBuilder builder(1);
  const KernelShape shape{.dims = {4, chain_ops({ChainOp::abs})}, .scalars = {}};
  for (int i = 0; i < 3; ++i) {
    const BufferId shared = builder.uniform(ElementType::f32, 4), own = builder.uniform(ElementType::f32, 4);
    builder.launch("chain", {.stream = 0}, shape, {{own}, {shared}});
    builder.launch("chain", {.stream = 1, .priority = 1}, shape, {{shared}, {shared}});
  }
  const Step step = std::move(builder).seal(2);
  const Placement placement = place(step, "natural");
  LoggingSession session(placement);
  const auto submitter = make_submitter(parse_submit("scheduled:priority:1", 2), step, placement, session);
  submitter->submit_step();
  EXPECT_EQ(session.log, (std::vector<CommandId>{0, 1, 2, 3, 4, 5}));
}

TEST(Scheduled, never_more_in_flight_than_asked_for_over_steps_too) {
  Streams streams(4, 5);
  for (const std::size_t in_flight : {1u, 2u, 3u, 7u}) {
    LoggingSession session(streams.placement);
    const auto submitter = make_submitter(parse_submit(fmt::format("scheduled:fifo:{}", in_flight), 4), *streams.step,
                                          streams.placement, session);
    for (int i = 0; i < 4; ++i) {
      submitter->submit_step();  // steps are pipelined: nobody waits between them
      EXPECT_EQ(session.log.size(), static_cast<std::size_t>(20 * (i + 1)));
    }
    EXPECT_EQ(session.max_in_flight, in_flight);
  }
}

TEST(Scheduled, a_device_that_has_failed_is_not_waited_for) {
  Streams streams(2, 5);
  LoggingSession session(streams.placement);
  const auto submitter =
      make_submitter(parse_submit("scheduled:priority:1", 2), *streams.step, streams.placement, session);
  session.has_failed = true;
  submitter->submit_step();
  session.has_failed = false;  // finish() has thrown what it was; the counts are where they were
  submitter->submit_step();
  EXPECT_EQ(session.log.size(), 20u);
}

TEST(Scheduled, commands_are_wanted_from_the_begin_of_the_step_on) {
  Streams streams(2, 3);
  LoggingSession session(streams.placement);
  const auto submitter =
      make_submitter(parse_submit("scheduled:fifo:1", 2), *streams.step, streams.placement, session, 2);
  for (int i = 0; i < 3; ++i) {
    submitter->submit_step();
    session.finish();
  }
  Timeline timeline;
  for (std::uint32_t iteration = 0; iteration < 3; ++iteration)
    timeline.spans.push_back({.command = 5, .iteration = iteration});
  submitter->stamp(timeline);
  EXPECT_EQ(timeline.spans[0].enqueued_ns, 0);
  EXPECT_EQ(timeline.spans[1].enqueued_ns, 6 * kKernelNs);
  EXPECT_EQ(timeline.spans[2].enqueued_ns, kNoTime) << "nobody traced that one";
}

TEST(Scheduled, commands_go_behind_what_they_depend_on_under_every_policy) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    const Step step = random_step(seed, 5);
    for (const PlacementPolicy& policy : placement_policies()) {
      const Placement placement = policy.place(step);
      for (const scheduler::Policy& order : scheduler::policies()) {
        OrderSession session(step, placement);
        const auto choice = parse_submit(fmt::format("scheduled:{}:3", order.name), 5);
        const auto submitter = make_submitter(choice, step, placement, session);
        for (int iteration = 0; iteration < 5; ++iteration) {
          session.begin_iteration();
          submitter->submit_step();
          ASSERT_TRUE(session.all_arrived()) << order.name;
        }
        EXPECT_EQ(session.too_early(), 0) << order.name << " " << policy.name << " seed " << seed;
        EXPECT_EQ(session.out_of_order(), 0) << order.name << " " << policy.name << " seed " << seed;
        EXPECT_EQ(session.repeated(), 0) << order.name;
      }
    }
  }
}

std::string said(const std::string& text, int streams) {
  try {
    parse_submit(text, streams);
  } catch (const Error& error) {
    return fmt::format("{} {}", error.what(), error.hint);
  }
  return "";
}

TEST(Scheduled, choices_are_read_from_text) {
  const SubmitChoice choice = parse_submit("scheduled:priority", 8);
  EXPECT_EQ(choice.name, "scheduled:priority:2");
  EXPECT_EQ(choice.policy, "priority");
  EXPECT_EQ(choice.in_flight, 2);
  EXPECT_EQ(choice.host_threads(), 1);
  EXPECT_TRUE(choice.session_options().follows_progress);
  EXPECT_FALSE(parse_submit("inline", 8).session_options().follows_progress);
  EXPECT_EQ(parse_submit("scheduled:weighted_fair:16", 8).name, "scheduled:weighted_fair:16");
  for (const char* text : {"scheduled:fifo", "scheduled:time_slice:7"})
    EXPECT_EQ(parse_submit(parse_submit(text, 8).name, 8).name, parse_submit(text, 8).name)
        << "a name must mean itself";

  EXPECT_NE(said("scheduled:priorty", 8).find("priority"), std::string::npos) << "a suggestion";
  EXPECT_NE(said("scheduled", 8).find("a policy is needed"), std::string::npos);
  EXPECT_NE(said("scheduled:fifo:0", 8).find("in_flight 0"), std::string::npos);
  EXPECT_NE(said("scheduled:fifo", 65).find("64 streams at most, not 65"), std::string::npos);
  for (const char* bad : {"scheduled:", "scheduled:fifo:", "scheduled:fifo:x", "scheduled:fifo:-1",
                          "scheduled:fifo:1025", "scheduled:fifo:2:2", "scheduled:fifo,priority"})
    EXPECT_THROW(parse_submit(bad, 8), Error) << bad;
}

// A session that says nothing about ends.
class SilentSession final : public Session {
 public:
  void begin_iteration() noexcept override {}
  void submit(std::span<const CommandId>) noexcept override {}
  void finish() override {}
  std::vector<IterationSpan> take_spans() override { return {}; }
  Timeline timeline() override { return {}; }
  void reset() override {}
  void read(BufferId, std::span<std::byte>) override {}
  MemoryUse memory() const override { return {}; }
};

TEST(Scheduled, a_session_that_does_not_tell_is_refused) {
  Streams streams(2, 1);
  SilentSession session;
  EXPECT_THROW(make_submitter(parse_submit("scheduled:fifo", 2), *streams.step, streams.placement, session), Error);
}

}  // namespace
}  // namespace weir
