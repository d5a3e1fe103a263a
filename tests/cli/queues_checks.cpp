#include "cli/queues_checks.h"

#include <gtest/gtest.h>

#include <sstream>

namespace weir::testing {

void expect_valid(const std::string& file) { expect_valid_as(file, "weir.queues.2.json"); }

void expect_narrow(const std::string& text) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (has(line, "Written to") || has(line, "The calibrated device is in") || has(line, "Baseline '")) continue;
    EXPECT_LE(line.size(), 80u) << line;
  }
}

}  // namespace weir::testing
