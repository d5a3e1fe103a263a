// Two clocks that differ and drift: where a moment of one lies on the other.
#include "lab/preempt/kernel_clock.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <random>

namespace weir::preempt {
namespace {

constexpr std::int64_t kOffsetNs = 1'700'000'000'000'000'000;  // as a GPU's clock counts from 1970
constexpr double kDrift = 12e-6;

std::int64_t kernel_clock(std::int64_t host_ns) {
  return host_ns + kOffsetNs + static_cast<std::int64_t>(kDrift * static_cast<double>(host_ns));
}

// The kernel sees the flag some time after it was set, and the host the answer some time later, neither known.
KernelClockFix fix(std::int64_t host_ns, std::mt19937& random) {
  std::vector<Exchange> exchanges;
  for (int i = 0; i < 30; ++i, host_ns += 20'000) {
    const std::int64_t there = 600 + static_cast<std::int64_t>(random() % 20'000);
    const std::int64_t back = 400 + static_cast<std::int64_t>(random() % 5'000);
    exchanges.push_back({host_ns, kernel_clock(host_ns + there), host_ns + there + back});
  }
  return closest(exchanges);
}

TEST(KernelClock, is_brought_to_the_hosts_within_what_it_says) {
  std::mt19937 random(7);
  std::int64_t largest_ns = 0;
  for (int trial = 0; trial < 200; ++trial) {
    const KernelClockFix before = fix(5'000'000'000, random), after = fix(9'000'000'000, random);
    const ClockLine line(before, after);
    EXPECT_EQ(line.error_ns(), std::max(before.error_ns, after.error_ns));
    for (std::int64_t host_ns = 5'000'000'000; host_ns <= 9'000'000'000; host_ns += 250'000'000) {
      const std::int64_t off_ns = std::abs(line.host_ns(kernel_clock(host_ns)) - host_ns);
      EXPECT_LE(off_ns, line.error_ns() + 2);
      largest_ns = std::max(largest_ns, off_ns);
    }
  }
  EXPECT_GT(largest_ns, 100);  // they were not known exactly
}

TEST(KernelClock, the_closest_exchange_counts) {
  const Exchange exchanges[] = {{100, 5'000, 900}, {1'000, 6'000, 1'200}, {2'000, 7'000, 3'000}};
  const KernelClockFix found = closest(exchanges);
  EXPECT_EQ(found.kernel_ns, 6'000);
  EXPECT_EQ(found.host_ns, 1'100);
  EXPECT_EQ(found.error_ns, 100);
}

TEST(KernelClock, one_clock_is_itself) {
  const ClockLine same;
  EXPECT_EQ(same.host_ns(123'456'789'012), 123'456'789'012);
  EXPECT_EQ(same.error_ns(), 0);
}

}  // namespace
}  // namespace weir::preempt
