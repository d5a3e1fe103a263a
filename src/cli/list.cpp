#include "cli/list.h"

#include <array>

namespace weir::cli {

std::span<const CliCommand> commands() {
  static const std::array kCommands = {
      list_workloads(), info(), run(), sweep(), run_priority(), compare(),
  };
  return kCommands;
}

}  // namespace weir::cli
