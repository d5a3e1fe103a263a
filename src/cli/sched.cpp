// weir sched: a scheduler for programs that share a GPU. One file per command; this one only tells them apart.
#include "cli/list.h"

namespace weir::cli {

CliCommand sched() {
  return {"sched", "let programs share a GPU by priority, weight, deadline or turns",
          [](CommandSyntax syntax) -> std::function<int()> {
            syntax.require_command();
            const auto chosen = syntax.add_commands(sched_commands());
            return [chosen] { return (*chosen)(); };
          }};
}

}  // namespace weir::cli
