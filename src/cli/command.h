// One command of the program, and how it names its flags and arguments. CLI11 does the parsing; only command.cpp,
// reference.cpp and main.cpp see it, because a source that includes it compiles twice as long.
#pragma once

#include <functional>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <type_traits>

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace weir::cli {

struct CliCommand;

// A flag or an argument of a command; sets further properties of it.
class Flag {
 public:
  explicit Flag(CLI::Option& option) : option_(&option) {}
  const Flag& one_of(std::initializer_list<const char*> values) const;
  const Flag& required() const;
  const Flag& excludes(const char* flag) const;
  // One occurrence may be followed by several values.
  const Flag& takes_several() const;
  // Not shown in the help: for the program's own children and for scripts.
  const Flag& hidden() const;
  // Listed separately in the help, and not in the reference.
  const Flag& for_tests() const;

 private:
  CLI::Option* option_;
};

// The flags and arguments of a command. Borrows; the parser lives as long as the program.
class CommandSyntax {
 public:
  explicit CommandSyntax(CLI::App& app) : app_(&app) {}

  // `names` is "--output,-o", or one word without dashes for an argument; after a blank follows the placeholder for the
  // value in the help: "--output,-o FILE". The target (text, optional text, list of texts, number or switch) keeps its
  // value if the command line has none; a text that is not empty is shown in the help as the default.
  template <class Target>
  Flag add(const char* names, Target& target, const std::string& help = {}) const;

  // Adds the commands below this one. The function that is pointed to runs the chosen one, and is empty if none was
  // chosen.
  std::shared_ptr<std::function<int()>> add_commands(std::span<const CliCommand> commands) const;
  // One of them must be chosen.
  void require_command() const;
  void footer(const std::string& text) const;
  // Whether the command line has this flag.
  bool has(const char* flag) const;

  CommandSyntax parent() const;
  CLI::App& app() const { return *app_; }

 private:
  CLI::App* app_;
};

// `configure` adds flags to `syntax` and returns the function to call when the command is chosen; its result is the
// exit code.
struct CliCommand {
  const char* name;
  const char* summary;
  std::function<std::function<int()>(CommandSyntax syntax)> configure;
  const char* heading = "Commands";  // above it in the help
};

// A command from flags that can add themselves, and a function that uses them.
template <class Flags>
CliCommand command(const char* name, const char* summary, int (*execute)(Flags)) {
  return {name, summary, [execute](CommandSyntax syntax) {
            const auto flags = std::make_shared<std::remove_cvref_t<Flags>>();
            flags->add_to(syntax);
            return [flags, execute] { return execute(*flags); };
          }};
}

std::span<const CliCommand> commands();

}  // namespace weir::cli
