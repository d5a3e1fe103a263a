#include "cli/command.h"

#include <CLI/CLI.hpp>

namespace weir::cli {

const Flag& Flag::takes(const char* kind) const {
  option_->type_name(kind);
  return *this;
}

const Flag& Flag::one_of(std::initializer_list<const char*> values) const {
  option_->check(CLI::IsMember(std::vector<std::string>(values.begin(), values.end())));
  return *this;
}

const Flag& Flag::required() const {
  option_->required();
  return *this;
}

const Flag& Flag::excludes(const char* flag) const {
  option_->excludes(flag);
  return *this;
}

const Flag& Flag::takes_several() const {
  option_->expected(1, -1);
  return *this;
}

const Flag& Flag::hidden() const {
  option_->group("");
  return *this;
}

const Flag& Flag::for_tests() const {
  option_->group("Tests");
  return *this;
}

Flag CommandSyntax::add(const char* names, std::string& target, const std::string& help) const {
  CLI::Option* const option = app_->add_option(names, target, help);
  return Flag(target.empty() ? *option : *option->capture_default_str());
}

Flag CommandSyntax::add(const char* names, std::optional<std::string>& target, const std::string& help) const {
  return Flag(*app_->add_option(names, target, help));
}

Flag CommandSyntax::add(const char* names, std::vector<std::string>& target, const std::string& help) const {
  return Flag(*app_->add_option(names, target, help));
}

Flag CommandSyntax::add(const char* names, int& target, const std::string& help) const {
  return Flag(*app_->add_option(names, target, help)->capture_default_str());
}

Flag CommandSyntax::add(const char* names, std::int64_t& target, const std::string& help) const {
  return Flag(*app_->add_option(names, target, help)->capture_default_str());
}

Flag CommandSyntax::add(const char* names, double& target, const std::string& help) const {
  return Flag(*app_->add_option(names, target, help)->capture_default_str());
}

Flag CommandSyntax::add(const char* names, bool& target, const std::string& help) const {
  return Flag(*app_->add_flag(names, target, help));
}

std::shared_ptr<std::function<int()>> CommandSyntax::add_commands(std::span<const CliCommand> commands) const {
  const auto chosen = std::make_shared<std::function<int()>>();
  for (const CliCommand& command : commands) {
    CLI::App* const sub = app_->add_subcommand(command.name, command.summary);
    sub->callback([chosen, action = command.configure(CommandSyntax(*sub))] { *chosen = action; });
  }
  return chosen;
}

void CommandSyntax::require_command() const { app_->require_subcommand(1); }
void CommandSyntax::footer(const std::string& text) const { app_->footer(text); }
bool CommandSyntax::has(const char* flag) const { return app_->get_option(flag)->count() > 0; }
CommandSyntax CommandSyntax::parent() const { return CommandSyntax(*app_->get_parent()); }

}  // namespace weir::cli
