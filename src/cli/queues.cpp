// weir queues: the queue lab. One file per experiment; this one only tells them apart.
#include "cli/list.h"

namespace weir::cli {

CliCommand queues() {
  return {"queues", "find, map and price hardware queues", [](CLI::App& app) -> std::function<int()> {
            app.require_subcommand(1);
            const auto chosen = std::make_shared<std::function<int()>>();
            for (const CliCommand& command : queues_commands()) {
              CLI::App* const sub = app.add_subcommand(command.name, command.summary);
              sub->callback([chosen, action = command.configure(*sub)] { *chosen = action; });
            }
            return [chosen] { return (*chosen)(); };
          }};
}

}  // namespace weir::cli
