// Requests that come while the victim is suspended, against the model of the driver: in virtual time, with an intruder
// that cannot run while the victim does.
#include "lab/preempt/suspended_visits.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "support/fake_kfd.h"

namespace weir::preempt {
namespace {

using weir::testing::FakeKfd;
using State = FakeKfd::QueueState;

constexpr int kVictim = 200;
constexpr std::int64_t kKernelNs = 20'000;

FakeKfd populated() {
  FakeKfd kfd;
  kfd.processes[kVictim].queues = {{1, {}}, {2, {}}, {3, {.type = 1}}};  // the last one copies
  return kfd;
}

// Its kernels end only while all compute queues of the victim are suspended.
class FakeVisitor final : public Visitor {
 public:
  FakeVisitor(FakeKfd& kfd, std::vector<std::int64_t> due_ns) : kfd_(kfd), due_ns_(std::move(due_ns)) {}
  std::int64_t now_ns() noexcept override { return kfd_.clock_ns; }
  void wait_until(std::int64_t ns) noexcept override { kfd_.clock_ns = std::max(kfd_.clock_ns, ns); }
  std::int64_t send(std::int64_t now_ns) noexcept override {
    while (next_ < due_ns_.size() && due_ns_[next_] <= now_ns) {
      sent_ns.push_back(now_ns);
      was_suspended.push_back(kfd_.suspended() == 2);
      ++next_;
    }
    return next_ < due_ns_.size() ? due_ns_[next_] : kNoTime;
  }
  bool has_pending() noexcept override {
    kfd_.clock_ns += kKernelNs;
    if (kfd_.suspended() == 2 && !is_stuck) ended = sent_ns.size();
    return ended < sent_ns.size();
  }

  std::vector<std::int64_t> sent_ns;
  std::vector<bool> was_suspended;
  std::size_t ended = 0;
  bool is_stuck = false;

 private:
  FakeKfd& kfd_;
  std::vector<std::int64_t> due_ns_;
  std::size_t next_ = 0;
};

TEST(SuspendedVisits, each_request_finds_the_victim_suspended) {
  FakeKfd kfd = populated();
  FakeVisitor visitor(kfd, {1'000'000, 5'000'000, 9'000'000});
  Visits visits;
  {
    kfd::QueueControl control(kfd, kVictim);
    visits = serve(visitor, 1'000'000, control, {});
    EXPECT_EQ(kfd.suspended(), 0u);
  }
  EXPECT_EQ(visitor.ended, 3u);
  EXPECT_EQ(visitor.was_suspended, (std::vector<bool>(3, true)));
  EXPECT_EQ(visits.suspend_ns, (std::vector<std::int64_t>(3, kfd.suspend_ns)));
  EXPECT_EQ(visits.resume_ns, (std::vector<std::int64_t>(3, kfd.resume_ns)));
  // A request waits for the suspension, and for nothing else.
  EXPECT_EQ(visitor.sent_ns[0], 1'000'000 + kfd.suspend_ns);
  EXPECT_EQ(visitor.sent_ns[2], 9'000'000 + kfd.suspend_ns);
  EXPECT_EQ(std::count(kfd.log.begin(), kfd.log.end(), "suspend 200: 1 2"), 3) << "copies are left alone";
  EXPECT_EQ(std::count(kfd.log.begin(), kfd.log.end(), "resume 200: 1 2"), 3);
}

TEST(SuspendedVisits, those_that_come_meanwhile_share_a_suspension) {
  FakeKfd kfd = populated();
  FakeVisitor visitor(kfd, {1'000'000, 1'000'001, 1'400'000, 1'455'000});
  kfd::QueueControl control(kfd, kVictim);
  const Visits visits = serve(visitor, 1'000'000, control, {});
  EXPECT_EQ(visitor.ended, 4u);
  // Three are due when the first suspension is done; the last one comes while the intruder runs, and is next.
  EXPECT_EQ(visits.suspend_ns.size(), 2u);
}

TEST(SuspendedVisits, ends_when_it_is_told_to) {
  FakeKfd kfd = populated();
  FakeVisitor visitor(kfd, {1, 2'000'000, 4'000'000});
  kfd::QueueControl control(kfd, kVictim);
  int asked = 0;
  EXPECT_EQ(serve(visitor, 1, control, [&] { return ++asked < 3; }).suspend_ns.size(), 2u);
  EXPECT_EQ(kfd.suspended(), 0u);
  EXPECT_TRUE(serve(visitor, kNoTime, control, {}).suspend_ns.empty()) << "no requests";
}

TEST(SuspendedVisits, a_request_that_never_ends_does_not_keep_the_victim_suspended) {
  FakeKfd kfd = populated();
  FakeVisitor visitor(kfd, {1});
  visitor.is_stuck = true;
  kfd::QueueControl control(kfd, kVictim);
  EXPECT_THROW(serve(visitor, 1, control, {}), Error);
  EXPECT_EQ(kfd.suspended(), 0u);
}

TEST(SuspendedVisits, no_failing_call_leaves_the_victim_suspended) {
  bool was_reached = true;
  for (int call = 0; was_reached; ++call) {
    for (const auto failing : {FakeKfd::Failing::before, FakeKfd::Failing::after}) {
      FakeKfd kfd = populated();
      kfd.fail_call = call;
      kfd.failing = failing;
      FakeVisitor visitor(kfd, {1, 2'000'000});
      try {
        kfd::QueueControl control(kfd, kVictim);
        serve(visitor, 1, control, {});
      } catch (const Error&) {
      }
      EXPECT_EQ(kfd.suspended(), 0u) << call;
      was_reached = call < kfd.calls;
    }
  }
}

TEST(SuspendedVisits, a_victim_without_kernels_is_said) {
  FakeKfd kfd = populated();
  kfd.processes[kVictim].queues = {{3, {.type = 1}}};
  kfd::QueueControl control(kfd, kVictim);
  EXPECT_THROW(compute_queues(control), Error);
}

TEST(SuspendedVisits, what_forbids_it_is_said_beforehand) {
  const SuspendFacts good{"hip", {1, 17}, "0", "1"};
  EXPECT_TRUE(can_suspend(good));
  EXPECT_TRUE(can_suspend({"hip", {1, 13}, std::nullopt, std::nullopt}));
  EXPECT_EQ(can_suspend({"cuda", {1, 17}, {}, {}}).reason, "queues can be suspended on AMD GPUs only");
  EXPECT_EQ(can_suspend({"hip", {1, 12}, {}, {}}).reason,
            "the driver's interface is 1.12; 1.13 or newer can suspend queues");
  EXPECT_NE(can_suspend({"hip", {1, 17}, "2", {}}).reason.find("sched_policy=2"), std::string::npos);
  EXPECT_NE(can_suspend({"hip", {1, 17}, "0", "3"}).reason.find("ptrace_scope=3"), std::string::npos);
}

}  // namespace
}  // namespace weir::preempt
