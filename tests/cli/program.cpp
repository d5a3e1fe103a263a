#include "cli/program.h"

#include <gtest/gtest.h>

namespace weir::testing {
namespace {

std::vector<std::string> with_binary(const std::vector<std::string>& arguments) {
  std::vector<std::string> command = {WEIR_BINARY};
  command.insert(command.end(), arguments.begin(), arguments.end());
  return command;
}

}  // namespace

Outcome weir(const std::vector<std::string>& arguments, const std::filesystem::path& folder) {
  return run_program(with_binary(arguments), folder);
}

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

pid_t start_weir(const std::vector<std::string>& arguments, const std::filesystem::path& folder) {
  return start_program(with_binary(arguments), folder, "/dev/null", "/dev/null");
}

}  // namespace weir::testing
