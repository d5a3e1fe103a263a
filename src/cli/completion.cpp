// weir completion: scripts for shells, and what they ask at each TAB.
#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "base/error.h"
#include "base/options.h"
#include "cli/list.h"
#include "cli/manual/completion_words.h"

namespace weir::cli {
namespace {

struct Flags {
  std::vector<std::string> words;  // a shell; with --complete what was typed
  bool is_asked = false;
  std::optional<CommandSyntax> root;

  void add_to(CommandSyntax syntax) {
    syntax.add("shell SHELL", words, "bash, zsh or fish");
    syntax.add("--complete", is_asked, "what may follow the words after --; for the scripts").hidden();
    root = syntax.parent();
  }
};

int execute(const Flags& flags) {
  const CommandSyntax root = *flags.root;
  if (flags.is_asked) {
    fmt::print("{}", completion_lines(complete(facts_of(root), flags.words)));
    return 0;
  }
  std::vector<std::string> shells;
  for (const CompletionScript& script : completion_scripts()) shells.emplace_back(script.shell);
  if (flags.words.size() != 1)
    reject("completion: one shell is needed", "Use bash, zsh or fish: source <(weir completion bash)");
  const auto scripts = completion_scripts();
  const auto found = std::find_if(scripts.begin(), scripts.end(),
                                  [&](const CompletionScript& each) { return each.shell == flags.words[0]; });
  if (found == scripts.end())
    reject(fmt::format("completion {}: there is no script for that shell", flags.words[0]),
           suggestion(flags.words[0], shells));
  fmt::print("{}", found->text);
  return 0;
}

}  // namespace

CliCommand completion() {
  return command("completion", "print a script that completes weir's commands in a shell", execute);
}

}  // namespace weir::cli
