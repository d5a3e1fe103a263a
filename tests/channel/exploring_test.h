// What tests over the explorer share.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <iostream>
#include <memory>
#include <string>

#include "channel/explorer.h"

namespace weir::explored {

class ExploringTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!kCanExplore) GTEST_SKIP() << "ThreadSanitizer cannot follow fibers; other builds run this";
  }
};

// Programs of which there are many behaviours: they take minutes where every access is checked, and what they look for
// is not in memory.
class LargeExploringTest : public ExploringTest {
 protected:
  void SetUp() override {
    ExploringTest::SetUp();
#if defined(__SANITIZE_ADDRESS__)
    GTEST_SKIP()
        << "not under AddressSanitizer: slow, and fibers that are given up free nothing; other builds run this";
#endif
  }
};

// Larger programs: minutes.
class LongExploringTest : public ExploringTest {
 protected:
  void SetUp() override {
    ExploringTest::SetUp();
    if (std::getenv("WEIR_LONG_TESTS") == nullptr) GTEST_SKIP() << "set WEIR_LONG_TESTS=1 to explore larger programs";
  }
};

template <class Program, class... Args>
Report explore_program(const Options& options, const Args&... args) {
  return explore([&] { return std::make_unique<Program>(args...); }, options);
}

// All behaviours were seen, and each was as it should be.
template <class Program, class... Args>
void expect_whole(const std::string& name, const Options& options, const Args&... args) {
  const Report report = explore_program<Program>(options, args...);
  std::cout << "  " << name << (options.model == Model::sequential ? " (sequential)" : "") << ": " << report.executions
            << " executions, " << report.states << " states" << std::endl;
  EXPECT_TRUE(report.is_complete && report.failure.empty()) << name << ": " << report.text();
}

}  // namespace weir::explored
