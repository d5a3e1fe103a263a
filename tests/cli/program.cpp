#include "cli/program.h"

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

pid_t start_weir(const std::vector<std::string>& arguments, const std::filesystem::path& folder) {
  return start_program(with_binary(arguments), folder, "/dev/null", "/dev/null");
}

}  // namespace weir::testing
