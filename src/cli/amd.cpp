// weir amd: AMD's hardware queues from the outside. One file per command; this one only tells them apart.
#include "cli/list.h"

namespace weir::cli {

CliCommand amd() {
  return {"amd", "AMD's hardware queues: logs, kernel traces, debugfs", [](CLI::App& app) -> std::function<int()> {
            app.require_subcommand(1);
            const auto chosen = std::make_shared<std::function<int()>>();
            for (const CliCommand& command : amd_commands()) {
              CLI::App* const sub = app.add_subcommand(command.name, command.summary);
              sub->callback([chosen, action = command.configure(*sub)] { *chosen = action; });
            }
            return [chosen] { return (*chosen)(); };
          }};
}

}  // namespace weir::cli
