// weir history: results over time in one file. One file per command; this one only tells them apart.
#include "cli/list.h"

namespace weir::cli {

CliCommand history() {
  return {"history", "keep results over time, and say when and where they changed",
          [](CLI::App& app) -> std::function<int()> {
            app.require_subcommand(1);
            const auto chosen = std::make_shared<std::function<int()>>();
            for (const CliCommand& command : history_commands()) {
              CLI::App* const sub = app.add_subcommand(command.name, command.summary);
              sub->callback([chosen, action = command.configure(*sub)] { *chosen = action; });
            }
            return [chosen] { return (*chosen)(); };
          }};
}

}  // namespace weir::cli
