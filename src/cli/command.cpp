#include "cli/command.h"

#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/options.h"

namespace weir::cli {

const Flag& Flag::one_of(std::initializer_list<const char*> values) const {
  const std::vector<std::string> choices(values.begin(), values.end());
  const auto check = [choices, name = option_->get_name()](const std::string& value) {
    if (std::find(choices.begin(), choices.end(), value) == choices.end())
      reject(fmt::format("{} {}: unknown {}", name, value, name.substr(name.find_first_not_of('-'))),
             value == "json" ? "Write --json." : suggestion(value, choices));
    return std::string();
  };
  option_->check(CLI::Validator(check, fmt::format("{{{}}}", fmt::join(choices, ","))));
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

template <class Target>
Flag CommandSyntax::add(const char* names, Target& target, const std::string& help) const {
  const std::string text = names;
  const std::size_t blank = std::min(text.find(' '), text.size());
  if constexpr (std::is_same_v<Target, bool>) {
    return Flag(*app_->add_flag(text, target, help));
  } else {
    CLI::Option* const option = app_->add_option(text.substr(0, blank), target, help);
    if constexpr (std::is_same_v<Target, std::string>) {
      if (!target.empty()) option->capture_default_str();
    } else if constexpr (std::is_arithmetic_v<Target>) {
      option->capture_default_str();
    }
    if (blank < text.size()) option->type_name(text.substr(blank + 1));
    return Flag(*option);
  }
}
template Flag CommandSyntax::add(const char*, std::string&, const std::string&) const;
template Flag CommandSyntax::add(const char*, std::optional<std::string>&, const std::string&) const;
template Flag CommandSyntax::add(const char*, std::vector<std::string>&, const std::string&) const;
template Flag CommandSyntax::add(const char*, int&, const std::string&) const;
template Flag CommandSyntax::add(const char*, std::int64_t&, const std::string&) const;
template Flag CommandSyntax::add(const char*, double&, const std::string&) const;
template Flag CommandSyntax::add(const char*, bool&, const std::string&) const;

std::shared_ptr<std::function<int()>> CommandSyntax::add_commands(std::span<const CliCommand> commands) const {
  const auto chosen = std::make_shared<std::function<int()>>();
  for (const CliCommand& command : commands) {
    CLI::App* const sub = app_->add_subcommand(command.name, command.summary)->group(command.heading);
    sub->callback([chosen, action = command.configure(CommandSyntax(*sub))] { *chosen = action; });
  }
  return chosen;
}

void CommandSyntax::require_command() const { app_->require_subcommand(1); }
void CommandSyntax::footer(const std::string& text) const { app_->footer(text); }
bool CommandSyntax::has(const char* flag) const { return app_->get_option(flag)->count() > 0; }
CommandSyntax CommandSyntax::parent() const { return CommandSyntax(*app_->get_parent()); }

}  // namespace weir::cli
