// weir.1, from the program's own commands.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <sstream>

#include "cli/manual/manual.h"
#include "cli/manual/reference.h"
#include "cli/manual/topics.h"

namespace weir::cli {
namespace {

// Escapes text for roff: a backslash opens an escape, a hyphen would become a dash that cannot be copied, and a dot or
// an apostrophe at the beginning of a line makes it a request.
std::string escaped(std::string_view text) {
  constexpr std::string_view kSpecial = "\\-~^'`";
  constexpr const char* kEscapes[] = {"\\e", "\\-", "\\(ti", "\\(ha", "\\(aq", "\\(ga"};
  std::string result;
  for (const char each : text) {
    const std::size_t at = kSpecial.find(each);
    result += at == std::string_view::npos ? std::string(1, each) : kEscapes[at];
  }
  return result;
}

std::string line_of(const std::string& text) { return (text.starts_with('.') ? "\\&" : "") + text + "\n"; }

// Names must not be hyphenated: a word that looks like one gets \% before it.
std::string unbroken(const std::string& text) {
  std::string result;
  std::istringstream words(text);
  for (std::string word; std::getline(words, word, ' ');) {
    if (!result.empty()) result += ' ';
    if (word.find_first_of("\\/_:") != std::string::npos) result += "\\%";
    result += word;
  }
  return result;
}

// `code` becomes bold, [text](page.md#place) the installed page.
std::string paragraph(std::string_view text) {
  std::string result;
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (text[at] == '`') {
      const std::size_t end = text.find('`', at + 1);
      if (end != std::string_view::npos) {
        result += "\\fB" + escaped(text.substr(at + 1, end - at - 1)) + "\\fP";
        at = end;
        continue;
      }
    }
    if (text[at] == '[') {
      const std::size_t middle = text.find("](", at);
      const std::size_t end = middle == std::string_view::npos ? middle : text.find(')', middle);
      if (end != std::string_view::npos && text.substr(at, middle - at).find('`') == std::string_view::npos) {
        const std::string_view page = text.substr(middle + 2, end - middle - 2);
        result += "\\fI" + escaped("docs/" + std::string(page.substr(0, page.find('#')))) + "\\fP";
        at = end;
        continue;
      }
    }
    result += escaped(text.substr(at, 1));
  }
  return line_of(unbroken(result));
}

std::string verbatim(std::string_view text) {
  std::string result = ".PP\n.EX\n";
  std::istringstream lines{std::string(text)};
  for (std::string line; std::getline(lines, line);) result += line_of(escaped(line));
  return result + ".EE\n";
}

std::string notes_of(std::string_view notes) {
  std::string result;
  std::istringstream lines{std::string(notes)};
  for (std::string line; std::getline(lines, line);) {
    if (line.empty()) continue;
    const bool is_item = line.starts_with("- ");
    result += is_item ? ".IP \\(bu 2\n" : ".PP\n";
    result += paragraph(is_item ? line.substr(2) : line);
  }
  return result;
}

std::string flag_of(const FlagFacts& facts) {
  std::string names;
  for (const std::string& name : facts.names) names += (names.empty() ? "\\fB" : ", \\fB") + escaped(name) + "\\fP";
  if (facts.is_argument()) {
    names = "\\fI" + escaped(facts.value) + "\\fP";
  } else if (!facts.value.empty()) {
    names += " \\fI" + escaped(facts.value) + "\\fP";
  }
  std::string help = facts.help;
  std::replace(help.begin(), help.end(), '\n', ' ');
  std::string text = ".TP\n" + names + "\n" + paragraph(help);
  if (!facts.choices.empty()) text += line_of(escaped(fmt::format("One of: {}.", fmt::join(facts.choices, ", "))));
  if (facts.is_required) text += "Required.\n";
  if (!facts.initial.empty()) text += line_of(escaped("Default: " + facts.initial + "."));
  return text;
}

std::string command_of(const CommandFacts& command) {
  std::string text = fmt::format(".SS \"{}\"\n", escaped(command.usage())) + paragraph(command.summary);
  const ManualEntry* const entry = manual_entry(command.path);
  if (entry != nullptr) text += notes_of(entry->notes);
  for (const FlagFacts& facts : command.described()) text += flag_of(facts);
  if (!command.footer.empty()) text += ".PP\n" + paragraph(command.footer);
  if (entry != nullptr && !entry->examples.empty()) text += verbatim(entry->examples);
  for (const CommandFacts& each : command.commands) text += command_of(each);
  return text;
}

std::string topic_of(const char* section, std::string_view name) {
  return fmt::format(".SH \"{}\"\n", section) + verbatim(topic_named(name)->text);
}

}  // namespace

std::string man_page(const CommandFacts& root, std::string_view version) {
  std::string description = root.summary;
  std::replace(description.begin(), description.end(), '\n', ' ');
  std::string text = fmt::format(".TH WEIR 1 \"\" \"weir {}\" \"User Commands\"\n", escaped(version));
  text += ".nh\n.ad l\n";
  text += ".SH NAME\nweir \\- follow GPU commands from host threads to hardware queues\n";
  text +=
      ".SH SYNOPSIS\n\\fBweir\\fP \\fICOMMAND\\fP [\\fIOPTIONS\\fP]\n.br\n\\fBweir help\\fP "
      "[\\fICOMMAND\\fP|\\fITOPIC\\fP]\n";
  text += ".SH DESCRIPTION\n" + paragraph(description);
  text += ".SH COMMANDS\n";
  for (const CommandFacts& each : root.commands) text += command_of(each);
  text += topic_of("DEVICES", "devices") + topic_of("TERMS", "terms") + topic_of("EXIT STATUS", "exit-codes") +
          topic_of("ENVIRONMENT", "environment") + topic_of("FILES", "files") +
          topic_of("CONFIGURATION", "configuration");
  text += ".SH \"SEE ALSO\"\n" + paragraph(
                                     "`weir help statistics`, `weir help troubleshooting`, `weir help reproducing`; "
                                     "the pages in share/doc/weir/docs.");
  return text;
}

}  // namespace weir::cli
