#include "cli/manual/reference.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <iterator>
#include <sstream>

namespace weir::cli {
namespace {

// "TEXT:{text,markdown,json}" -> "TEXT" and the three
void take_choices(FlagFacts& facts) {
  const auto open = facts.type.find(":{");
  if (open == std::string::npos || !facts.type.ends_with('}')) return;
  std::istringstream list(facts.type.substr(open + 2, facts.type.size() - open - 3));
  for (std::string choice; std::getline(list, choice, ',');) facts.choices.push_back(choice);
  facts.type.resize(open);
}

FlagFacts facts_of(const CLI::Option& option) {
  FlagFacts facts;
  for (const std::string& name : option.get_snames()) facts.names.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) facts.names.push_back("--" + name);
  const bool takes_value = option.get_items_expected_max() != 0;
  if (takes_value) facts.type = option.get_type_name();
  take_choices(facts);
  facts.value = facts.names.empty() ? option.get_name(true) : facts.type;
  facts.initial = option.get_default_str();
  facts.help = option.get_description();
  facts.is_required = option.get_required();
  facts.takes_several = option.get_items_expected_max() > 1 || option.get_allow_extra_args();
  facts.is_repeatable =
      facts.takes_several || (takes_value && option.get_multi_option_policy() == CLI::MultiOptionPolicy::TakeAll);
  return facts;
}

bool is_shown(const CLI::Option& option) { return !option.get_group().empty() && option.get_group() != "Tests"; }

}  // namespace

bool FlagFacts::is_named(std::string_view name) const {
  return std::find(names.begin(), names.end(), name) != names.end();
}

std::string FlagFacts::heading() const {
  if (is_argument()) {
    const std::string name = value + (takes_several ? "..." : "");
    return is_required ? name : "[" + name + "]";
  }
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return value.empty() ? text : text + " " + value + (takes_several ? "..." : "");
}

std::string CommandFacts::usage() const {
  std::string text = full_name();
  if (!flags.empty()) text += " [OPTIONS]";
  for (const FlagFacts& argument : arguments) text += " " + argument.heading();
  if (!commands.empty()) text += needs_command ? " COMMAND" : " [COMMAND]";
  return text;
}

std::vector<FlagFacts> CommandFacts::described() const {
  std::vector<FlagFacts> all = arguments;
  std::copy_if(flags.begin(), flags.end(), std::back_inserter(all),
               [](const FlagFacts& facts) { return !facts.is_named("--help"); });
  return all;
}

const CommandFacts* CommandFacts::find(std::string_view name) const {
  const auto found =
      std::find_if(commands.begin(), commands.end(), [&](const auto& each) { return each.name() == name; });
  return found == commands.end() ? nullptr : &*found;
}

std::string path_of(const CLI::App& app) {
  if (app.get_parent() == nullptr) return "";
  const std::string before = path_of(*app.get_parent());
  return before.empty() ? app.get_name() : before + " " + app.get_name();
}

CommandFacts facts_of(CommandSyntax syntax) {
  CLI::App& app = syntax.app();
  CommandFacts facts;
  facts.path = path_of(app);
  facts.summary = app.get_description();
  facts.footer = app.get_footer();
  // Commands inherit the program's footer.
  const CLI::App* root = &app;
  while (root->get_parent() != nullptr) root = root->get_parent();
  if (root != &app && facts.footer == root->get_footer()) facts.footer.clear();
  std::replace(facts.footer.begin(), facts.footer.end(), '\n', ' ');
  facts.footer.erase(0, facts.footer.find_first_not_of(' '));
  for (const CLI::Option* option : app.get_options()) {
    if (!is_shown(*option)) continue;
    (option->nonpositional() ? facts.flags : facts.arguments).push_back(facts_of(*option));
  }
  for (CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; }))
    if (!command->get_group().empty()) facts.commands.push_back(facts_of(CommandSyntax(*command)));
  facts.needs_command = app.get_require_subcommand_min() > 0;
  return facts;
}

std::string help_of(CommandSyntax root, std::span<const std::string> words) {
  const CLI::App* command = &root.app();
  for (const std::string& word : words) command = command->get_subcommand(word);
  // For a command that was not chosen, CLI11 needs the words before its name.
  const std::string path = path_of(*command);
  return command->get_formatter()->make_help(command, path.empty() ? "weir" : "weir " + path,
                                             CLI::AppFormatMode::Normal);
}

std::vector<const CommandFacts*> all_commands(const CommandFacts& root) {
  std::vector<const CommandFacts*> all = {&root};
  for (const CommandFacts& command : root.commands) {
    const auto below = all_commands(command);
    all.insert(all.end(), below.begin(), below.end());
  }
  return all;
}

}  // namespace weir::cli
