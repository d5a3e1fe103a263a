#include "cli/queues_checks.h"

#include <gtest/gtest.h>

#include <sstream>

#include "cli/program.h"
#include "support/text.h"

namespace weir::testing {

void expect_valid_as(const std::string& file, const std::string& schema) {
  if (run_program({"python3", "-c", "import jsonschema"}).code != 0)
    GTEST_SKIP() << "python3-jsonschema is not installed";
  const Outcome outcome = run_program({"python3", "-c",
                                       "import json,sys,jsonschema\n"
                                       "s = json.load(open(sys.argv[2]))\n"
                                       "jsonschema.Draft7Validator.check_schema(s)\n"
                                       "jsonschema.validate(json.load(open(sys.argv[1])), s)\n",
                                       file, WEIR_SOURCE_DIR "/docs/schema/" + schema});
  EXPECT_EQ(outcome.code, 0) << file << ": " << outcome.err;
}

void expect_valid(const std::string& file) { expect_valid_as(file, "weir.queues.1.json"); }

void expect_narrow(const std::string& text) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (has(line, "Written to") || has(line, "The calibrated device is in") || has(line, "Baseline '")) continue;
    EXPECT_LE(line.size(), 80u) << line;
  }
}

}  // namespace weir::testing
