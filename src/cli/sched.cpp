// weir sched: a scheduler for programs that share a GPU. One file per command; this one only tells them apart.
#include "cli/list.h"

namespace weir::cli {

CliCommand sched() {
  return {"sched", "let programs share a GPU by priority, weight, deadline or turns",
          [](CLI::App& app) -> std::function<int()> {
            app.require_subcommand(1);
            const auto chosen = std::make_shared<std::function<int()>>();
            for (const CliCommand& command : sched_commands()) {
              CLI::App* const sub = app.add_subcommand(command.name, command.summary);
              sub->callback([chosen, action = command.configure(*sub)] { *chosen = action; });
            }
            return [chosen] { return (*chosen)(); };
          }};
}

}  // namespace weir::cli
