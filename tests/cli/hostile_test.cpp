// Damaged files of every kind, given to the commands that read them (scripts/hostile.py). A few here; 10,000 of them,
// and shapes that make readers slow, with WEIR_LONG_TESTS=1.
#include <gtest/gtest.h>

#include <cstdlib>

#include "cli/program.h"

namespace weir::testing {
namespace {

bool is_long() { return std::getenv("WEIR_LONG_TESTS") != nullptr; }

void expect_passed(const std::vector<std::string>& arguments) {
  if (run_program({"python3", "--version"}).code != 0) GTEST_SKIP() << "python3 is not installed";
  std::vector<std::string> command = {"env", "WEIR=" WEIR_BINARY, "python3", WEIR_SOURCE_DIR "/scripts/hostile.py"};
  command.insert(command.end(), arguments.begin(), arguments.end());
  const Outcome outcome = run_program(command);
  EXPECT_EQ(outcome.code, 0) << outcome.out << outcome.err;
}

TEST(Hostile, damaged_files_are_read_or_rejected) {
  expect_passed({"mutate", "--runs", is_long() ? "10000" : "54", "--seed", "7"});
}

TEST(Hostile, time_grows_with_the_size_of_a_file) {
  if (!is_long()) GTEST_SKIP() << "takes minutes: set WEIR_LONG_TESTS=1";
  expect_passed({"grow"});
}

}  // namespace
}  // namespace weir::testing
