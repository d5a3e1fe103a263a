// Finding the part of the device in which a client's kernels cost least, with devices that are formulas.
#include "submit/sched/part_fit.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

namespace weir::scheduler {
namespace {

using Candidate = PartFit::Candidate;

const std::vector<Candidate> kCandidates = {
    {Confine::always, 91}, {Confine::always, 97}, {Confine::always, 85}, {Confine::always, 79}};

// What a client does per second and how long a request takes, by candidate.
struct Device {
  std::vector<double> rates, requests_ms;
  double requests_per_s = 200, scatter = 0;
};

// Lets a fit see a device every 2 ms, and returns when it settled; 0: never.
double run(PartFit& fit, const Device& device, double seconds, double* now_s, PartFit::Counters* counted,
           std::int64_t command_ns = 1'000'000) {
  static std::mt19937 random(1);
  double commands = static_cast<double>(counted->commands), requests = static_cast<double>(counted->requests),
         requests_ns = static_cast<double>(counted->requests_ns), settled_s = 0;
  for (double passed = 0; passed < seconds; passed += 0.002, *now_s += 0.002) {
    fit.see(kCandidates, command_ns, *counted, static_cast<std::int64_t>(*now_s * 1e9));
    if (fit.is_settled() && settled_s == 0) settled_s = *now_s;
    std::size_t at = 0;
    while (!(kCandidates[at] == fit.candidate())) ++at;
    commands += device.rates[at] * 0.002;
    const double more = device.requests_per_s * 0.002;
    const double scatter = std::exp(std::normal_distribution<double>(0, 1)(random) * device.scatter);
    requests += more;
    requests_ns += more * device.requests_ms[at] * 1e6 * scatter;
    *counted = {static_cast<std::uint64_t>(commands), static_cast<std::uint64_t>(requests),
                static_cast<std::uint64_t>(requests_ns)};
  }
  return settled_s;
}

class PartFitTest : public ::testing::Test {
 protected:
  double run(const Device& device, double seconds = 10, std::int64_t command_ns = 1'000'000) {
    return scheduler::run(fit_, device, seconds, &now_s_, &counted_, command_ns);
  }
  PartFit fit_;
  double now_s_ = 1;
  PartFit::Counters counted_;
};

TEST_F(PartFitTest, the_most_work_wins_where_nobody_takes_longer) {
  EXPECT_GT(run({.rates = {78, 98, 78, 77}, .requests_ms = {0.4, 0.42, 0.4, 0.4}}), 0);
  EXPECT_EQ(fit_.candidate(), (Candidate{Confine::always, 97}));
}

TEST_F(PartFitTest, more_work_does_not_count_where_requests_take_longer) {
  run({.rates = {90, 98, 88, 80}, .requests_ms = {0.41, 0.6, 0.4, 0.4}});
  EXPECT_EQ(fit_.candidate(), (Candidate{Confine::always, 91}));
}

TEST_F(PartFitTest, a_tenth_of_one_is_worth_a_tenth_of_the_other) {
  run({.rates = {78, 97, 78, 77}, .requests_ms = {0.4, 0.47, 0.4, 0.4}});
  EXPECT_EQ(fit_.candidate(), (Candidate{Confine::always, 97}));
  ASSERT_EQ(fit_.tried().size(), 4U);
  EXPECT_NEAR(fit_.tried()[1].commands_per_s, 97, 4);
  EXPECT_NEAR(fit_.tried()[1].request_ns, 0.47e6, 0.02e6);
}

TEST_F(PartFitTest, of_equal_rates_the_shorter_requests_win) {
  run({.rates = {80, 80.1, 80, 80}, .requests_ms = {0.42, 0.43, 0.4, 0.41}});
  EXPECT_EQ(fit_.candidate(), (Candidate{Confine::always, 85}));
}

TEST_F(PartFitTest, without_requests_the_first_candidate_is_used) {
  EXPECT_GT(run({.rates = {78, 98, 78, 77}, .requests_ms = {1, 1, 1, 1}, .requests_per_s = 1}, 20), 0);
  EXPECT_EQ(fit_.candidate(), kCandidates[0]);
}

TEST_F(PartFitTest, begins_again_when_the_program_changes_and_after_a_while) {
  run({.rates = {78, 98, 78, 77}, .requests_ms = {0.4, 0.4, 0.4, 0.4}});
  const Device changed{.rates = {90, 70, 78, 77}, .requests_ms = {0.4, 0.4, 0.4, 0.4}};
  run(changed, 10);
  EXPECT_EQ(fit_.candidate(), (Candidate{Confine::always, 97}));  // what it found stays for a while
  run(changed, 10, 5'000'000);
  EXPECT_EQ(fit_.candidate(), (Candidate{Confine::always, 91}));
  run({.rates = {78, 98, 78, 77}, .requests_ms = {0.4, 0.4, 0.4, 0.4}}, 620, 5'000'000);
  EXPECT_EQ(fit_.candidate(), (Candidate{Confine::always, 97}));
}

TEST_F(PartFitTest, a_client_that_comes_back_on_the_same_seat_is_measured_anew) {
  const Device device{.rates = {78, 98, 78, 77}, .requests_ms = {0.4, 0.4, 0.4, 0.4}};
  run(device, 0.5);
  counted_ = {};
  EXPECT_GT(run(device), 0);
  EXPECT_EQ(fit_.candidate(), (Candidate{Confine::always, 97}));
}

// Random devices, on which everything scatters: what is found costs hardly more than the best does.
TEST(PartFit, finds_the_best_of_random_devices) {
  std::mt19937 random(7);
  std::uniform_real_distribution<double> rate(600, 1000), request(0.4, 0.6);
  double worst = 1;
  for (int i = 0; i < 40; ++i) {
    Device device{.rates = {}, .requests_ms = {}, .scatter = 0.3};
    for (std::size_t c = 0; c < kCandidates.size(); ++c) {
      device.rates.push_back(rate(random));
      device.requests_ms.push_back(request(random));
    }
    PartFit fit;
    double now_s = 1;
    PartFit::Counters counted;
    ASSERT_GT(run(fit, device, 20, &now_s, &counted), 0);
    const double shortest = *std::min_element(device.requests_ms.begin(), device.requests_ms.end());
    double best = 1e9, found = 1e9;
    for (std::size_t c = 0; c < kCandidates.size(); ++c) {
      const double cost = device.requests_ms[c] / device.rates[c];
      if (device.requests_ms[c] <= 1.25 * shortest) best = std::min(best, cost);
      if (kCandidates[c] == fit.candidate()) found = cost;
    }
    worst = std::max(worst, found / best);
  }
  EXPECT_LT(worst, 1.1);
}

}  // namespace
}  // namespace weir::scheduler
