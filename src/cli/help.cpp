// weir help: a command's help, a topic, or the whole reference as Markdown or as a man page.
#include <fmt/format.h>

#include <vector>

#include "base/error.h"
#include "base/options.h"
#include "cli/list.h"
#include "cli/man_page.h"
#include "cli/markdown_reference.h"
#include "cli/topics.h"
#include "weir_build.h"

namespace weir::cli {
namespace {

struct Flags {
  std::vector<std::string> words;
  bool is_markdown = false, is_man = false;
};

// Called for a command that was not chosen, CLI11 needs to be told what stands before its name.
std::string help_of(const CLI::App& command) {
  const std::string path = path_of(command);
  const std::string name = path.empty() ? "weir" : "weir " + path;
  return command.get_formatter()->make_help(&command, name, CLI::AppFormatMode::Normal);
}

const CLI::App* command_below(const CLI::App& app, const std::string& name) {
  const auto found = app.get_subcommands([&](const CLI::App* each) { return each->get_name() == name; });
  return found.empty() ? nullptr : found.front();
}

void add_names(const CLI::App& app, std::vector<std::string>& names) {
  for (const CLI::App* each : app.get_subcommands([](const CLI::App*) { return true; }))
    if (!each->get_group().empty()) names.push_back(each->get_name());
}

std::string page_of(const CLI::App& root, const std::vector<std::string>& words) {
  const CLI::App* command = &root;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const CLI::App* const next = command_below(*command, words[i]);
    if (next != nullptr) {
      command = next;
      continue;
    }
    if (const Topic* const topic = i == 0 && words.size() == 1 ? topic_named(words[0]) : nullptr)
      return fmt::format("{}: {}\n\n{}", topic->name, topic->summary, topic->text);
    std::vector<std::string> names;
    add_names(*command, names);
    if (command == &root)
      for (const Topic& topic : topics()) names.emplace_back(topic.name);
    if (names.empty())
      reject(fmt::format("help: `weir {}` has no commands of its own", path_of(*command)),
             fmt::format("Run `weir help {}`.", path_of(*command)));
    reject(command == &root ? fmt::format("help: there is no command or topic '{}'", words[i])
                            : fmt::format("help: `weir {}` has no command '{}'", path_of(*command), words[i]),
           suggestion(words[i], names));
  }
  return help_of(*command);
}

std::string list_of_topics() {
  std::string text = "\nTopics:\n";
  for (const Topic& topic : topics()) text += fmt::format("  {:<28}{}\n", topic.name, topic.summary);
  return text + "\n`weir help TOPIC` and `weir help COMMAND` say more.\n";
}

int execute(const CLI::App& root, const Flags& flags) {
  if ((flags.is_markdown || flags.is_man) && !flags.words.empty())
    reject(fmt::format("help {}: --markdown and --man are of all commands", flags.words[0]), "Leave one of them out.");
  if (flags.is_markdown) {
    fmt::print("{}", markdown_reference(facts_of(root)));
  } else if (flags.is_man) {
    fmt::print("{}", man_page(facts_of(root), WEIR_VERSION));
  } else {
    fmt::print("{}", page_of(root, flags.words));
    if (flags.words.empty()) fmt::print("{}", list_of_topics());
  }
  return 0;
}

}  // namespace

CliCommand help() {
  return {"help", "explain a command or a topic", [](CLI::App& app) -> std::function<int()> {
            const auto flags = std::make_shared<Flags>();
            app.add_option("words", flags->words, "a command (queues map) or a topic (exit-codes); none: a list")
                ->type_name("COMMAND|TOPIC");
            app.add_flag("--markdown", flags->is_markdown, "all commands as Markdown: docs/cli.md");
            app.add_flag("--man", flags->is_man, "all commands as a manual page: weir.1")->excludes("--markdown");
            const CLI::App* const root = app.get_parent();
            return [flags, root] { return execute(*root, *flags); };
          }};
}

}  // namespace weir::cli
