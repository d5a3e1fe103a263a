// weir queues: the queue lab. One file per experiment; this one only tells them apart.
#include "cli/list.h"

namespace weir::cli {

CliCommand queues() {
  return {"queues", "find, map and price hardware queues", [](CommandSyntax syntax) -> std::function<int()> {
            syntax.require_command();
            const auto chosen = syntax.add_commands(queues_commands());
            return [chosen] { return (*chosen)(); };
          }};
}

}  // namespace weir::cli
