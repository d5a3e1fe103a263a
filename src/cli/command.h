// One command of the program, as main.cpp sees it.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <span>

namespace weir::cli {

// `configure` adds flags to `app` and returns what to do when the command is chosen: its result is the exit code.
struct CliCommand {
  const char* name;
  const char* summary;
  std::function<int()> (*configure)(CLI::App& app);
};

std::span<const CliCommand> commands();

}  // namespace weir::cli
