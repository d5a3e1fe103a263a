// docs/cli.md, from the program's own commands.

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "cli/manual/manual.h"
#include "cli/manual/reference.h"
#include "cli/manual/topics.h"

namespace weir::cli {
namespace {

// Text must not end a table cell.
std::string cell(const std::string& text) {
  std::string escaped;
  for (const char each : text) {
    if (each == '|') escaped += '\\';
    escaped += each == '\n' ? ' ' : each;
  }
  return escaped;
}

// "<" opens a tag outside code.
std::string prose(std::string_view text) {
  std::string escaped;
  bool is_code = false;
  for (const char each : text) {
    if (each == '`') is_code = !is_code;
    escaped += each == '<' && !is_code ? "&lt;" : std::string(1, each);
  }
  return escaped;
}

std::string sentence(std::string text) {
  if (text.empty()) return text;
  text[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(text[0])));
  return text.back() == '.' || text.back() == '?' ? text : text + ".";
}

std::string meaning_of(const FlagFacts& facts) {
  std::string text = prose(facts.help);
  const auto add = [&](const std::string& more) { text += (text.empty() ? "" : "; ") + more; };
  if (!facts.choices.empty()) {
    std::string names;
    for (const std::string& choice : facts.choices) names += (names.empty() ? "`" : ", `") + choice + "`";
    add(names);
  }
  if (facts.is_required) add("required");
  return cell(text);
}

std::string table_of(const CommandFacts& command) {
  std::string rows;
  for (const FlagFacts& facts : command.described())
    rows += fmt::format("| `{}` | {} | {} |\n", cell(facts.heading()),
                        facts.initial.empty() ? "" : "`" + cell(facts.initial) + "`", meaning_of(facts));
  return rows.empty() ? rows : "| flag | default | meaning |\n| --- | --- | --- |\n" + rows + "\n";
}

// weir queues map -> #weir-queues-map, as GitHub makes anchors.
std::string anchor_of(const CommandFacts& command) {
  std::string anchor = command.full_name();
  std::replace(anchor.begin(), anchor.end(), ' ', '-');
  return anchor;
}

std::string commands_of(const CommandFacts& command) {
  std::string rows;
  for (const CommandFacts& each : command.commands)
    rows += fmt::format("| [{}](#{}) | {} |\n", each.full_name(), anchor_of(each), cell(prose(each.summary)));
  return rows.empty() ? rows : "| command | what it does |\n| --- | --- |\n" + rows + "\n";
}

std::string section_of(const CommandFacts& command) {
  const ManualEntry* const entry = manual_entry(command.path);
  const auto depth = static_cast<std::size_t>(std::count(command.path.begin(), command.path.end(), ' '));
  std::string text = fmt::format("{} {}\n\n{}\n\n```synopsis\n{}\n```\n\n", std::string(2 + depth, '#'),
                                 command.full_name(), prose(sentence(command.summary)), command.usage());
  if (entry != nullptr && !entry->notes.empty()) text += std::string(entry->notes) + "\n\n";
  if (entry != nullptr && !entry->examples.empty()) text += fmt::format("```sh\n{}\n```\n\n", entry->examples);
  text += table_of(command);
  text += commands_of(command);
  if (!command.footer.empty()) text += prose(command.footer) + "\n\n";
  for (const CommandFacts& each : command.commands) text += section_of(each);
  return text;
}

}  // namespace

std::string markdown_reference(const CommandFacts& root) {
  std::string text =
      "# Commands\n\n"
      "`weir COMMAND --help` shows the same in a terminal, and `weir help TOPIC` explains what commands share. Exit "
      "codes: 0\n"
      "fine, 1 a run failed, 2 bad usage or input, 3 a comparison regressed, 4 ambiguous (with `--strict`), 130 "
      "interrupted\n"
      "(143 by SIGTERM, 129 by SIGHUP). `weir help --markdown` writes this page (`make docs`).\n\n";
  text += commands_of(root) + "| topic | |\n| --- | --- |\n";
  for (const Topic& topic : topics()) text += fmt::format("| `weir help {}` | {} |\n", topic.name, topic.summary);
  text += "\n";
  for (const CommandFacts& each : root.commands) text += section_of(each);
  text.pop_back();  // one line break at the end
  return text;
}

}  // namespace weir::cli
