#include "support/sink_rules.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <exception>
#include <set>

#include "support/openmetrics_check.h"
#include "support/text.h"

namespace weir::testing {
namespace {

using std::string_literals::operator""s;

constexpr const char* kNotUtf8 = "NOT-UTF-8";

std::string around(const std::string& text, std::size_t at) {
  return fmt::format("at byte {}: {}", at, Json(text.substr(at < 40 ? 0 : at - 40, 80)).dump(-1, true));
}

// The code point at `at` and its length; a length of 0 if these bytes are not UTF-8.
std::pair<std::uint32_t, std::size_t> decoded(const std::string& text, std::size_t at) {
  const auto byte = [&](std::size_t i) { return at + i < text.size() ? static_cast<unsigned char>(text[at + i]) : 0U; };
  const std::size_t length = byte(0) < 0x80 ? 1 : byte(0) < 0xc2 ? 0 : byte(0) < 0xe0 ? 2 : byte(0) < 0xf0 ? 3 : 4;
  if (length < 2) return {byte(0), length};
  std::uint32_t c = byte(0) & (0xffU >> (length + 1));
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0U) != 0x80) return {0, 0};
    c = c << 6U | (byte(i) & 0x3fU);
  }
  const std::uint32_t least = length == 2 ? 0x80 : length == 3 ? 0x800 : 0x10000;
  if (c < least || c > 0x10ffff || (c >= 0xd800 && c < 0xe000)) return {0, 0};
  return {c, length};
}

bool is_obeyed(std::uint32_t c) {
  return c < 0x20 || (c >= 0x7f && c < 0xa0) || (c >= 0x200b && c <= 0x200f) || (c >= 0x2028 && c <= 0x202e) ||
         (c >= 0x2060 && c <= 0x206f) || c == 0xfeff || c == 0x61c || (c & 0xfffeU) == 0xfffe || (c >> 12U) == 0xe0;
}

bool is_number(const std::string& text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size();
}

void poison(Json& json, std::size_t& next, bool has_own_names) {
  static const std::set<std::string> kKept = {"schema",  "status",  "kind",   "experiment",
                                              "created", "verdict", "backend"};
  static const std::set<std::string> kOpen = {"params", "variables", "key"};
  const auto text = [&] { return hostile_texts()[next++ % hostile_texts().size()]; };
  if (json.is_string()) {
    const bool is_before = next % 2 == 0;
    json = is_before ? text() + json.string() : json.string() + text();
  } else if (json.is_array()) {
    for (Json& each : json) poison(each, next, false);
  } else if (json.is_object()) {
    Json changed = Json::object();
    for (const auto& [name, value] : json.items()) {
      Json& made = changed[has_own_names ? name + text() : name];
      made = value;
      if (!kKept.contains(name)) poison(made, next, kOpen.contains(name));
    }
    json = std::move(changed);
  }
}

}  // namespace

const std::vector<std::string>& hostile_texts() {
  static const std::vector<std::string> kTexts = {"=cmd|' /C calc'!A0",
                                                  "\x1b]0;title\x07\x1b[31m",
                                                  "\xc2\x9b"
                                                  "31m and \x7f",
                                                  "\n::set-output name=a::b\n",
                                                  "@SUM(1;=2)",
                                                  "\r\n##[add-path]/tmp",
                                                  "##vso[task.setvariable variable=a]b",
                                                  "]]></failure><!-- -->\"'>",
                                                  "</script><script>alert(1)</script></svg>",
                                                  "|a|`b`|[c](http://d)|@e #1 *f* _g_",
                                                  kNotUtf8,
                                                  "\xe2\x80\xaegpj.\xe2\x81\xa6",
                                                  "\xe2\x80\x8b::debug::\xef\xbb\xbf#\xe2\x80\x8b#[group]",
                                                  "a\0b"s,
                                                  "\" ]; }\ndigraph x {\\",
                                                  "-1+1\t=2",
                                                  ";frame;other 12\n",
                                                  "%0A::error::a",
                                                  "\xef\xbf\xbf\xf3\xa0\x80\xa1\xc2\xad",
                                                  "\xe2\x80\xa8::notice::a",
                                                  "\xef\xbc\x9d"
                                                  "1+1"};
  return kTexts;
}

Json poisoned(const Json& document, std::size_t first) {
  Json changed = document;
  poison(changed, first, false);
  return changed;
}

std::string file_text(const Json& document) {
  std::string text = to_text(document);
  for (std::size_t at = 0; (at = text.find(kNotUtf8, at)) != std::string::npos;)
    text.replace(at, std::string(kNotUtf8).size(), "\xff\x9b\xe2\x80");
  return text;
}

std::string terminal_rule(const std::string& text) {
  for (std::size_t i = 0; i < text.size();) {
    const auto [c, length] = decoded(text, i);
    const bool is_break = c == '\n' || c == '\t' || (c == '\r' && i + 1 < text.size() && text[i + 1] == '\n');
    if (length == 0) return "not UTF-8 " + around(text, i);
    if (!is_break && is_obeyed(c)) return fmt::format("U+{:04X} {}", c, around(text, i));
    i += length;
  }
  return {};
}

std::string json_rule(const std::string& text) {
  try {
    (void)Json::parse(text);
  } catch (const std::exception& error) {
    return error.what();
  }
  return terminal_rule(text);
}

std::string csv_rule(const std::string& text) {
  if (const std::string wrong = terminal_rule(text); !wrong.empty()) return wrong;
  std::vector<std::vector<std::string>> rows(1, {""});
  bool is_quoted = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    std::string& cell = rows.back().back();
    if (is_quoted && text[i] == '"' && i + 1 < text.size() && text[i + 1] == '"') {
      cell += text[i++];
    } else if (text[i] == '"' && (is_quoted || cell.empty())) {
      is_quoted = !is_quoted;
    } else if (text[i] == '"' && !is_quoted) {
      return "a quote within a cell " + around(text, i);
    } else if (text[i] == ',' && !is_quoted) {
      rows.back().emplace_back();
    } else if (text[i] == '\n' && !is_quoted) {
      rows.push_back({""});
    } else if (text[i] != '\r' || is_quoted) {
      cell += text[i];
    }
  }
  if (is_quoted || rows.back() != std::vector<std::string>{""}) return "the last line does not end";
  rows.pop_back();
  for (const auto& row : rows) {
    if (row.size() != rows[0].size()) return fmt::format("{} cells below {}: {}", row.size(), rows[0].size(), row[0]);
    for (const std::string& cell : row) {
      if (cell.find_first_of("\r\n\t") != std::string::npos) return "a line break within the cell " + cell;
      if (is_number(cell)) continue;
      std::string piece = ";" + cell;  // ';' separates cells where the comma is the decimal sign
      for (std::size_t at = 0; (at = piece.find(';', at)) != std::string::npos; ++at) {
        const std::size_t begin = piece.find_first_not_of(" \"", at + 1);
        if (begin == std::string::npos) continue;
        if (std::string_view("=+-@").find(piece[begin]) != std::string_view::npos ||
            piece.compare(begin, 3, "\xef\xbc\x9d") == 0)
          return "a formula: " + cell;
      }
    }
  }
  return {};
}

std::string markdown_rule(const std::string& text) {
  if (const std::string wrong = terminal_rule(text); !wrong.empty()) return wrong;
  std::size_t columns = 0;
  for (const std::string& line : lines_of(text)) {
    std::size_t bars = 0;
    bool is_code = false;
    for (std::size_t i = 0; i < line.size(); ++i) {
      const auto begins = [&](std::string_view part) { return line.compare(i, part.size(), part) == 0; };
      if (!is_code && line[i] == '\\') {
        ++i;
        continue;
      }
      if (line[i] == '`') is_code = !is_code;
      bars += line[i] == '|';
      if (is_code) continue;
      if (line[i] == '<' && !begins("<!-- -->") && !begins("<details><summary>") && !begins("<summary>") &&
          !begins("</details>") && !begins("</summary>"))
        return "HTML " + around(line, i);
      if (line[i] == '[' && line.find("](", i) != std::string::npos) return "a link " + around(line, i);
      if (line[i] == '*' && !begins("**") && (i == 0 || line[i - 1] != '*')) return "emphasis " + around(line, i);
      const bool is_heading = line[i] == '#' && line.find_first_not_of('#') >= i;
      if ((line[i] == '@' || (line[i] == '#' && !is_heading)) && !begins(std::string(1, line[i]) + "<!-- -->"))
        return "a mention " + around(line, i);
      if (begins("://") && !begins("://<") && !begins(":<!")) {
        if (line.compare(i, 9, ":<!-- -->") != 0) return "an address " + around(line, i);
      }
    }
    if (is_code) return "code that does not end: " + line;
    if (!line.starts_with("|")) {
      columns = 0;
      continue;
    }
    if (columns == 0) columns = bars;
    if (bars != columns) return fmt::format("{} bars instead of {}: {}", bars, columns, line);
  }
  return {};
}

std::string xml_rule(const std::string& text) {
  if (const std::string wrong = terminal_rule(text); !wrong.empty()) return wrong;
  std::vector<std::string> open;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '&') {
      const std::string name = text.substr(i + 1, text.find(';', i) - i - 1);
      const bool is_code = name.size() > 1 && name[0] == '#' && name.find_first_not_of("0123456789", 1) == name.npos;
      if (name != "amp" && name != "lt" && name != "gt" && name != "quot" && !is_code)
        return "an ampersand " + around(text, i);
    }
    if (text[i] == '>' || text.compare(i, 3, "]]>") == 0) return "a bracket " + around(text, i);
    if (text[i] != '<') continue;
    std::size_t end = i + 1;
    for (bool is_value = false; end < text.size() && (is_value || text[end] != '>'); ++end) {
      if (text[end] == '"') is_value = !is_value;
      if (text[end] == '<') return "a tag within a tag " + around(text, end);
    }
    const std::string tag = text.substr(i + 1, end - i - 1);
    i = end;
    if (tag.starts_with("?")) continue;
    const std::string name = tag.substr(0, tag.find_first_of(" /", 1));
    if (name == "script" || name.empty() || std::isalpha(static_cast<unsigned char>(name.back())) == 0)
      return "the tag " + tag;
    if (tag.starts_with("/")) {
      if (open.empty() || "/" + open.back() != tag) return "ends nothing: " + tag;
      open.pop_back();
    } else if (!tag.ends_with("/")) {
      open.push_back(name);
    }
  }
  return open.empty() ? std::string() : "never ends: " + open.back();
}

std::string openmetrics_rule(const std::string& text) {
  try {
    (void)check_openmetrics(text);
  } catch (const std::exception& error) {
    return error.what();
  }
  return terminal_rule(text);
}

std::string dot_rule(const std::string& text) {
  if (const std::string wrong = terminal_rule(text); !wrong.empty()) return wrong;
  int braces = 0, angles = 0;
  bool is_text = false;
  std::string outside;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (is_text) {
      if (text[i] == '\n') return "a text that does not end " + around(text, i);
      if (text[i] == '\\')
        ++i;
      else if (text[i] == '"')
        is_text = false;
      continue;
    }
    const bool is_arrow = text[i] == '>' && text[i - 1] == '-';
    if (text[i] == '<')
      ++angles;
    else if (text[i] == '>' && !is_arrow)
      --angles;
    else if (angles == 0 && text[i] == '"')
      is_text = true;
    else if (angles == 0) {
      braces += text[i] == '{' ? 1 : text[i] == '}' ? -1 : 0;
      outside += text[i];
    }
    if (braces < 0 || angles < 0) return "closes what is not open " + around(text, i);
  }
  if (is_text || braces != 0 || angles != 0) return "does not end";
  return count(outside, "graph ") == count(outside, "subgraph ") + 2 ? std::string() : "several graphs";
}

std::string html_rule(const std::string& text) {
  for (std::size_t i = 0; i < text.size();) {
    const auto [c, length] = decoded(text, i);
    if (length == 0) return "not UTF-8 " + around(text, i);
    i += length;
  }
  return has(text, "alert(1)</script>") || has(text, "<script>alert") ? "a script of a document" : std::string();
}

std::string runner_rule(const std::string& text) {
  for (const std::string& line : lines_of(text)) {
    std::string shown;  // as the runner compares: without what nobody sees
    for (std::size_t i = 0; i < line.size();) {
      const auto [c, length] = decoded(line, i);
      if (length > 0 && !is_obeyed(c)) shown += line.substr(i, length);
      i += std::max<std::size_t>(1, length);
    }
    const std::size_t begin = shown.find_first_not_of(' ');
    const bool is_ours = shown.starts_with("::error title=weir ") || shown.starts_with("::warning title=weir ") ||
                         shown.starts_with("::notice title=weir ");
    if (begin != std::string::npos && shown.compare(begin, 2, "::") == 0 && !is_ours) return "a command: " + line;
    if (is_ours && count(shown, "::") > 2) {
      const std::size_t message = shown.find("::", 2);
      if (has(shown.substr(2, message - 2), "::")) return "a command in a command: " + line;
    }
    for (const char* command : {"##[", "##vso[", "##teamcity["})
      if (has(shown, command)) return "a command: " + line;
  }
  return {};
}

}  // namespace weir::testing
