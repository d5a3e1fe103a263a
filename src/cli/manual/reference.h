// The program's commands and flags as data, read from its own parser: the source for the manual, docs/cli.md and
// completions. Knows the parser; no shell and no text format.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cli/command.h"

namespace weir::cli {

// A flag, or an argument (`names` is then empty).
struct FlagFacts {
  std::vector<std::string> names;    // "-o", "--output"
  std::string value;                 // FILE, TEXT ...; the name of an argument; empty where there is no value
  std::string type;                  // FILE, TEXT ...
  std::vector<std::string> choices;  // as the parser itself checks them
  std::string initial;
  std::string help;
  bool is_required = false;
  bool is_repeatable = false;  // may be given several times
  bool takes_several = false;  // values one after the other

  bool is_argument() const { return names.empty(); }
  bool is_named(std::string_view name) const;
  // "-o,--output FILE", "[workload]", "files..."
  std::string heading() const;
};

struct CommandFacts {
  std::string path;  // "queues map"; empty: the program
  std::string summary;
  std::string footer;                  // exit codes, in one line; empty where they are those of the program
  std::vector<FlagFacts> arguments;    // in order
  std::vector<FlagFacts> flags;        // without hidden flags and those for tests
  std::vector<CommandFacts> commands;  // likewise
  bool needs_command = false;

  // "map"
  std::string name() const { return path.substr(path.rfind(' ') + 1); }
  // "weir queues map"
  std::string full_name() const { return path.empty() ? "weir" : "weir " + path; }
  // "weir queues map [OPTIONS] [workload]"
  std::string usage() const;
  // All entries with a description: arguments, then flags except --help.
  std::vector<FlagFacts> described() const;
  // Null where there is none below this command.
  const CommandFacts* find(std::string_view name) const;
};

// For this command and all below it.
CommandFacts facts_of(CommandSyntax syntax);
// "queues map"; empty for the program.
std::string path_of(const CLI::App& app);
// What `weir queues map --help` prints, for the words "queues" and "map".
std::string help_of(CommandSyntax root, std::span<const std::string> words);
// The command and all below it, in the order of the help pages.
std::vector<const CommandFacts*> all_commands(const CommandFacts& root);

// docs/cli.md: `weir help --markdown`.
std::string markdown_reference(const CommandFacts& root);
// weir.1: `weir help --man`. Uses only macros of man(7) that groff and mandoc both know.
std::string man_page(const CommandFacts& root, std::string_view version);

}  // namespace weir::cli
