// weir help: a command's help, a topic, or the whole reference as Markdown or as a man page.
#include <fmt/format.h>

#include <vector>

#include "base/console.h"
#include "base/error.h"
#include "base/options.h"
#include "cli/list.h"
#include "cli/manual/reference.h"
#include "cli/manual/topics.h"
#include "cli/old_spellings.h"
#include "weir_build.h"

namespace weir::cli {
namespace {

struct HelpFlags {
  std::vector<std::string> words;
  bool is_markdown = false, is_man = false, lists_old = false;
  std::optional<CommandSyntax> root;

  void add_to(CommandSyntax syntax) {
    syntax.add("words COMMAND|TOPIC", words, "a command (queues map) or a topic (exit-codes); none: a list");
    syntax.add("--markdown", is_markdown, "all commands as Markdown: docs/cli.md");
    syntax.add("--man", is_man, "all commands as a manual page: weir.1").excludes("--markdown");
    syntax.add("--old-spellings", lists_old, "old spellings of commands and flags, and the new ones");
    root = syntax.parent();
  }
};

std::string page_of(CommandSyntax root, const std::vector<std::string>& words) {
  const CommandFacts facts = facts_of(root);
  const CommandFacts* command = &facts;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (const CommandFacts* const next = command->find(words[i])) {
      command = next;
      continue;
    }
    std::vector<std::string> names;
    for (const CommandFacts& each : command->commands) names.push_back(each.name());
    if (const Topic* const topic = i == 0 && words.size() == 1 ? topic_named(words[0]) : nullptr)
      return fmt::format("{}: {}\n\n{}", topic->name, topic->summary, topic->text);
    if (command == &facts)
      for (const Topic& topic : topics()) names.emplace_back(topic.name);
    if (names.empty())
      reject(fmt::format("help: `weir {}` has no commands of its own", command->path),
             fmt::format("Run `weir help {}`.", command->path));
    reject(command == &facts ? fmt::format("help: unknown command or topic '{}'", words[i])
                             : fmt::format("help: `weir {}` has no command '{}'", command->path, words[i]),
           suggestion(words[i], names));
  }
  return help_of(root, words);
}

std::string list_of_topics() {
  std::string text = "\nTopics:\n";
  for (const Topic& topic : topics()) text += fmt::format("  {:<28}{}\n", topic.name, topic.summary);
  return text + "\n`weir help TOPIC` and `weir help COMMAND` say more.\n";
}

int execute_help(const HelpFlags& flags) {
  const CommandSyntax root = *flags.root;
  if ((flags.is_markdown || flags.is_man) && !flags.words.empty())
    reject(fmt::format("help {}: --markdown and --man print all commands", flags.words[0]), "Leave one of them out.");
  if (flags.lists_old) {
    for (const OldSpelling& row : old_spellings())
      print_out("{:<17}{:<24}  {}\n", row.command.empty() ? "(any)" : row.command, row.was, row.is);
  } else if (flags.is_markdown) {
    print_out("{}", markdown_reference(facts_of(root)));
  } else if (flags.is_man) {
    print_out("{}", man_page(facts_of(root), WEIR_VERSION));
  } else {
    print_out("{}", page_of(root, flags.words));
    if (flags.words.empty()) write_out(list_of_topics());
  }
  return 0;
}

}  // namespace

CliCommand help() { return command("help", "explain a command or a topic", execute_help); }

}  // namespace weir::cli
