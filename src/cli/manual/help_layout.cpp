#include "cli/manual/help_layout.h"

#include <sstream>

#include "cli/manual/manual.h"
#include "cli/manual/reference.h"
#include "report/text/sections.h"

namespace weir::cli {
namespace {

// Lines that fit behind `column`; CLI11 indents them.
std::string broken_lines(const std::string& text, std::size_t column) {
  const std::string indent = "\n" + std::string(column, ' ');
  std::string result;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (!result.empty()) result += '\n';
    const bool fits = column + line.size() <= kReportColumns;  // then its blanks are left as they are
    result += fits ? line : CLI::detail::find_and_replace(wrapped(line, column), indent, "\n");
  }
  return result;
}

}  // namespace

std::string HelpLayout::make_option_desc(const CLI::Option* option) const {
  return broken_lines(CLI::Formatter::make_option_desc(option), get_column_width());
}

std::string HelpLayout::make_subcommand(const CLI::App* command) const {
  std::ostringstream out;
  CLI::detail::format_help(out, command->get_display_name(true),
                           broken_lines(command->get_description(), get_column_width()), get_column_width());
  return out.str();
}

std::string HelpLayout::make_description(const CLI::App* app) const {
  const std::string description = CLI::Formatter::make_description(app);
  return description.empty() ? description : broken_lines(description, 0) + "\n";
}

std::string HelpLayout::make_footer(const CLI::App* app) const {
  std::string footer = CLI::Formatter::make_footer(app);
  if (!footer.empty()) footer = broken_lines(footer, 0) + "\n";
  const ManualEntry* const entry = manual_entry(path_of(*app));
  if (entry == nullptr || entry->examples.empty()) return footer;
  return footer + "\nExamples:\n  " + CLI::detail::find_and_replace(std::string(entry->examples), "\n", "\n  ") + "\n";
}

}  // namespace weir::cli
