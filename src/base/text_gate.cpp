#include "base/text_gate.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdint>
#include <iterator>
#include <utility>

#include "base/plain_text.h"

namespace weir {
namespace {

using Replacement = std::pair<char, std::string_view>;

template <std::size_t count>
std::string replaced(std::string_view text, const std::array<Replacement, count>& pairs) {
  std::string out;
  out.reserve(text.size());
  for (const char c : text) {
    const auto found =
        std::find_if(pairs.begin(), pairs.end(), [&](const Replacement& pair) { return pair.first == c; });
    out += found == pairs.end() ? std::string_view(&c, 1) : found->second;
  }
  return out;
}

constexpr std::array<Replacement, 7> kMarkup = {
    {{'&', "&amp;"}, {'<', "&lt;"}, {'>', "&gt;"}, {'"', "&quot;"}, {'\'', "&#39;"}, {'\n', "&#10;"}, {'\t', "&#9;"}}};

// Whether a spreadsheet would compute what begins here: =1+1, and the same in full-width characters. Some remove blanks
// and quotes first.
bool is_formula(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(" \"'");
  if (begin == std::string_view::npos) return false;
  text.remove_prefix(begin);
  for (const std::string_view sign :
       {"=", "+", "-", "@", "\xef\xbc\x9d", "\xef\xbc\x8b", "\xef\xbc\x8d", "\xef\xbc\xa0"})
    if (text.starts_with(sign)) return true;
  return false;
}

// The text without characters that are not shown, up to `most` letters: "#\u200b#[" is "##[" for whoever compares as
// people read.
std::string seen(std::string_view text, std::size_t most) {
  std::string shown;
  for (std::size_t i = 0; i < text.size() && shown.size() < most && text[i] != '\n';) {
    const std::size_t length = character_bytes(text, i);
    if (length > 0 && !is_control(code_point(text.substr(i, length)))) shown += text.substr(i, length);
    i += length == 0 ? 1 : length;
  }
  return shown;
}

// ##[group] of GitHub, ##vso[task.setvariable] of Azure, ##teamcity[...]
bool is_bracket_command(std::string_view text) {
  constexpr std::size_t kLongestWord = 16;
  const std::string shown = seen(text, kLongestWord);
  return shown.starts_with("##") && shown.find_first_not_of("abcdefghijklmnopqrstuvwxyz", 2) == shown.find('[') &&
         shown.find('[') != std::string::npos;
}

// Whether the bracket at `at` belongs to "[1.071, 1.110]", which is no link: numbers between brackets, and nothing
// after them that would make a link of it.
bool is_within_interval(std::string_view text, std::size_t at) {
  if (text[at] != '[' && text[at] != ']') return false;
  // Only as far as an interval goes, in either direction: a text of brackets would take quadratic time.
  constexpr std::string_view kInside = "0123456789., -";
  const std::size_t from = text[at] == '[' ? at : text.substr(0, at).find_last_not_of(kInside);
  if (from == std::string_view::npos || text[from] != '[') return false;
  const std::size_t to = text.find_first_not_of(kInside, from + 1);
  return to != std::string_view::npos && text[to] == ']' &&
         text.substr(from, to - from).find(", ") != std::string_view::npos &&
         text.substr(to + 1, 1).find_first_of("([:") != 0;
}

std::string percent_encoded(std::string_view text, std::string_view special) {
  std::string safe;
  for (const char c : text) {
    if (special.find(c) == std::string_view::npos)
      safe += c;
    else
      fmt::format_to(std::back_inserter(safe), "%{:02X}", static_cast<unsigned char>(c));
  }
  return safe;
}

}  // namespace

std::string for_line(std::string_view text) {
  std::string line(text);
  std::replace_if(line.begin(), line.end(), [](char c) { return c >= '\t' && c <= '\r'; }, ' ');
  return without_controls(line, '?');
}

std::string for_terminal(std::string_view text) {
  // Tables may have millions of lines, and nearly all of them are like this.
  const auto is_plain = [](char c) { return (c >= ' ' && c < 0x7f) || c == '\n' || c == '\t'; };
  if (std::all_of(text.begin(), text.end(), is_plain)) return std::string(text);
  std::string lines = without_controls(text, '?', "\n\t\r");
  for (std::size_t at = 0; (at = lines.find('\r', at)) != std::string::npos; ++at)
    if (at + 1 == lines.size() || lines[at + 1] != '\n') lines[at] = '?';
  return lines;
}

std::string for_json(std::string_view text) {
  std::string safe;
  safe.reserve(text.size());
  for (std::size_t i = 0; i < text.size();) {
    const std::size_t length = std::max<std::size_t>(1, character_bytes(text, i));
    const std::string_view character = text.substr(i, length);
    const char32_t c = code_point(character);
    i += length;
    if (c < 0x7f || !is_control(c))
      safe += character;
    else if (c < 0x10000)
      fmt::format_to(std::back_inserter(safe), "\\u{:04x}", static_cast<std::uint32_t>(c));
    else
      fmt::format_to(std::back_inserter(safe), "\\u{:04x}\\u{:04x}", 0xd800U + ((c - 0x10000) >> 10U),
                     0xdc00U + ((c - 0x10000) & 0x3ffU));
  }
  return safe;
}

std::string for_csv(std::string_view text) {
  const std::string line = for_line(text);
  std::string cell;
  if (is_formula(line) && !parse_as<double>(line)) cell += '\'';
  for (std::size_t i = 0; i < line.size(); ++i) {
    cell += line[i];
    const std::string_view rest = std::string_view(line).substr(i + 1);
    // In countries with a decimal comma, ';' separates the cells.
    if (line[i] == ';' && is_formula(rest)) cell += '\'';
    if (line[i] == '#' && is_bracket_command(std::string_view(line).substr(i))) cell += ' ';
  }
  if (cell.find_first_of(",;\"") == std::string::npos) return cell;
  return '"' + replaced(cell, std::array<Replacement, 1>{{{'"', "\"\""}}}) + '"';
}

std::string for_markup(std::string_view text) { return replaced(for_line(text), kMarkup); }

std::string for_xml(std::string_view text) { return replaced(without_controls(text, '?', "\n\t"), kMarkup); }

std::string for_markdown(std::string_view text) {
  const std::string line = for_line(text);
  const std::string_view whole = line;
  const std::size_t begin = whole.find_first_not_of(' ');
  const auto is_word = [&](std::size_t i) {
    return i < whole.size() && (std::isalnum(static_cast<unsigned char>(whole[i])) != 0 || whole[i] == '_');
  };
  std::string safe;
  for (std::size_t i = 0; i < whole.size(); ++i) {
    const char c = whole[i];
    if (c == '&') {
      safe += "&amp;";
      continue;
    }
    // Within a word '_' is no markup, and names are full of them; '>' is some only where a line begins.
    const bool is_markup = std::string_view("|<`*\\[]~$").find(c) != std::string_view::npos ||
                           (c == '_' && (i == 0 || !is_word(i - 1) || !is_word(i + 1))) || (c == '>' && i == begin);
    if (is_markup && !is_within_interval(whole, i)) safe += '\\';
    safe += c;
    // GitHub detects mentions, issues and addresses in the rendered text, where backslashes are gone: an empty comment
    // breaks them up.
    const std::string_view rest = whole.substr(i);
    const std::string_view before = whole.substr(i < 2 ? 0 : i - 2, i < 2 ? 0 : 2);
    if (c == '@' || c == '#' || rest.starts_with("://") || (c == '-' && before == "GH") ||
        (rest.starts_with("w.") && before == "ww"))
      safe += "<!-- -->";
  }
  return safe;
}

std::string for_markdown_code(std::string_view text) {
  return replaced(for_line(text), std::array<Replacement, 2>{{{'`', "'"}, {'|', "\\|"}}});
}

std::string for_openmetrics(std::string_view text) {
  return replaced(without_controls(text, '?', "\n"),
                  std::array<Replacement, 3>{{{'\\', "\\\\"}, {'"', "\\\""}, {'\n', "\\n"}}});
}

std::string for_dot(std::string_view text) {
  return replaced(for_line(text), std::array<Replacement, 2>{{{'"', "\\\""}, {'\\', "\\\\"}}});
}

std::string for_frame(std::string_view text) {
  return replaced(for_line(text), std::array<Replacement, 1>{{{';', ":"}}});
}

std::string for_github_property(std::string_view text) {
  return percent_encoded(without_commands(for_line(text)), "%:,");
}

std::string for_github_message(std::string_view text) {
  return percent_encoded(without_commands(without_controls(text, '?', "\n\t")), "%\n");
}

std::string without_commands(std::string_view text, bool is_json) {
  std::string safe;
  safe.reserve(text.size());
  bool is_beginning = true;  // nothing since the beginning of the line that the runner would not trim
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    if (byte == '#' && is_bracket_command(text.substr(i))) {
      safe += is_json ? "\\u0023" : "# ";
      is_beginning = false;
      continue;
    }
    // This never happens in JSON, whose lines begin with brackets and quotes.
    if (is_beginning && byte == ':' && seen(text.substr(i), 2) == "::") safe += '|';
    is_beginning = byte == '\n' || byte == '\r' || (is_beginning && (byte <= ' ' || byte >= 0x7f));
    safe += text[i];
  }
  return safe;
}

}  // namespace weir
