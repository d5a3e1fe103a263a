// weir history: results over time in one file. One file per command; this one only tells them apart.
#include "cli/list.h"

namespace weir::cli {

CliCommand history() {
  return {"history", "keep results over time, and say when and where they changed",
          [](CommandSyntax syntax) -> std::function<int()> {
            syntax.require_command();
            const auto chosen = syntax.add_commands(history_commands());
            return [chosen] { return (*chosen)(); };
          }};
}

}  // namespace weir::cli
