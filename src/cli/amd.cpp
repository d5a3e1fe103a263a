// weir amd: AMD's hardware queues from the outside. One file per command; this one only tells them apart.
#include "cli/list.h"

namespace weir::cli {

CliCommand amd() {
  return {"amd", "AMD's hardware queues: logs, kernel traces, debugfs",
          [](CommandSyntax syntax) -> std::function<int()> {
            syntax.require_command();
            const auto chosen = syntax.add_commands(amd_commands());
            return [chosen] { return (*chosen)(); };
          }};
}

}  // namespace weir::cli
