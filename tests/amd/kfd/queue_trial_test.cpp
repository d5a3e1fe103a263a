// Listing, suspending and resuming the queues of a running process, against a model of the driver.
#include "amd/kfd/queue_trial.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "support/fake_kfd.h"
#include "support/message_of.h"

namespace weir::kfd {
namespace {

using testing::FakeKfd;
using State = FakeKfd::QueueState;
constexpr int kTrialVictim = 200;

FakeKfd trial_kfd() {
  FakeKfd kfd;
  kfd.processes[kTrialVictim].queues = {{1, {}}, {2, {}}, {5, {.type = 1}}};
  return kfd;
}

// Time passes where the trial waits.
QueueTrialPlan plan_of(FakeKfd& kfd, int rounds, bool suspends) {
  QueueTrialPlan plan;
  plan.rounds = rounds;
  plan.suspends = suspends;
  plan.wait = [&kfd](std::int64_t ns) {
    kfd.clock_ns += ns;
    return true;
  };
  return plan;
}

TEST(QueueTrial, lists_queues_and_suspends_none_unless_asked) {
  FakeKfd kfd = trial_kfd();
  const QueueTrialPlan plan = plan_of(kfd, 3, false);
  const QueueTrial trial = try_queues(kfd, kTrialVictim, plan);
  EXPECT_EQ(trial.queues.size(), 3U);
  EXPECT_EQ(trial.snapshot_ns.size(), 3U);
  EXPECT_TRUE(trial.suspend_ns.empty());
  for (const std::string& line : kfd.log) EXPECT_FALSE(line.starts_with("suspend")) << line;
  const Json document = queue_trial_document(trial, plan, "python3");
  EXPECT_TRUE(document["suspend_ns"].is_null());
  EXPECT_TRUE(document["reason"].is_string());
  EXPECT_EQ(document["queues"].size(), 3U);
  EXPECT_FALSE(kfd.processes[kTrialVictim].is_traced) << "detached";
}

TEST(QueueTrial, suspends_what_runs_kernels_and_notes_how_long_each_call_took) {
  FakeKfd kfd = trial_kfd();
  QueueTrialPlan plan = plan_of(kfd, 4, true);
  std::vector<std::size_t> held;
  plan.wait = [&](std::int64_t ns) {
    if (ns == plan.hold_ns) held.push_back(kfd.suspended());
    kfd.clock_ns += ns;
    return true;
  };
  const QueueTrial trial = try_queues(kfd, kTrialVictim, plan);
  EXPECT_EQ(held, std::vector<std::size_t>(4, 2)) << "not the copy engine's";
  EXPECT_EQ(kfd.suspended(), 0U);
  EXPECT_EQ(trial.suspend_ns, std::vector<std::int64_t>(4, kfd.suspend_ns));
  EXPECT_EQ(trial.resume_ns, std::vector<std::int64_t>(4, kfd.resume_ns));
  const Json document = queue_trial_document(trial, plan, "");
  EXPECT_EQ(document["suspend_ns"]["p99"], static_cast<double>(kfd.suspend_ns));
  EXPECT_EQ(document["suspend_ns"]["samples"], 4);
  EXPECT_EQ(document["queues"][0]["was_suspended"], true);
  EXPECT_EQ(document["queues"][2]["was_suspended"], false);
  EXPECT_TRUE(document["name"].is_null());
}

TEST(QueueTrial, takes_the_queues_that_were_named) {
  FakeKfd kfd = trial_kfd();
  QueueTrialPlan plan = plan_of(kfd, 1, true);
  plan.ids = {2};
  EXPECT_EQ(try_queues(kfd, kTrialVictim, plan).suspended, std::vector<std::uint32_t>{2});
  plan.ids = {7};
  EXPECT_NE(message_of([&] { try_queues(kfd, kTrialVictim, plan); }).find("no such queue"), std::string::npos);
  EXPECT_EQ(kfd.suspended(), 0U);
}

TEST(QueueTrial, nothing_stays_suspended_when_it_is_stopped_or_fails) {
  FakeKfd kfd = trial_kfd();
  QueueTrialPlan plan = plan_of(kfd, 5, true);
  plan.wait = [](std::int64_t) { return false; };
  const QueueTrial trial = try_queues(kfd, kTrialVictim, plan);
  EXPECT_TRUE(trial.is_stopped);
  EXPECT_EQ(trial.resume_ns.size(), 1U) << "the round that was begun ends";
  EXPECT_EQ(kfd.suspended(), 0U);
  plan.wait = [](std::int64_t) -> bool { throw std::runtime_error("while suspended"); };
  EXPECT_THROW(try_queues(kfd, kTrialVictim, plan), std::runtime_error);
  EXPECT_EQ(kfd.suspended(), 0U);
  EXPECT_FALSE(kfd.processes[kTrialVictim].is_enabled);
  // Whatever call fails, at whichever end of it.
  for (const auto failing : {FakeKfd::Failing::before, FakeKfd::Failing::after})
    for (int call = 0; call < 12; ++call) {
      FakeKfd broken = trial_kfd();
      broken.fail_call = call;
      broken.failing = failing;
      try {
        try_queues(broken, kTrialVictim, plan_of(broken, 1, true));
      } catch (const Error&) {
      }
      EXPECT_EQ(broken.suspended(), 0U) << call;
    }
}

TEST(QueueTrial, a_process_without_queues_is_listed_and_cannot_be_suspended) {
  FakeKfd kfd;
  kfd.processes[kTrialVictim].queues = {};
  EXPECT_TRUE(try_queues(kfd, kTrialVictim, plan_of(kfd, 1, false)).queues.empty());
  EXPECT_THROW(try_queues(kfd, kTrialVictim, plan_of(kfd, 1, true)), Error);
}

}  // namespace
}  // namespace weir::kfd
