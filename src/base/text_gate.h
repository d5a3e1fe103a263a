// The one gate for text. A string may come from a file, a program, a driver, the environment or the command line, and
// every place that text goes to obeys some characters: here is one function for each of them, and a type that makes it
// impossible to forget it (docs/adr/0033-one-gate-for-text.md). Knows formats, and no document.
#pragma once

#include <fmt/format.h>

#include <concepts>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

namespace weir {

// A name or a message as a part of one line, for people: line breaks and tabs become blanks, everything else that a
// terminal obeys or does not show (is_control in plain_text.h) becomes '?'. All gates below do this first, unless they
// say otherwise.
std::string for_line(std::string_view text);
// Whole lines that are finished: line breaks (LF, CR LF) and tabs stay.
std::string for_terminal(std::string_view text);
// A JSON document that is finished: what a terminal would obey is written as \u009b and the like, which means the same.
std::string for_json(std::string_view text);
// A cell, quoted where necessary, always on one line. Spreadsheets execute what begins with = + - @, so an apostrophe
// is put before it, unless it is a number; GitHub's runner executes "##[", so a blank is put into it.
std::string for_csv(std::string_view text);
// Character data or an attribute of HTML, SVG and Graphviz's HTML-like labels.
std::string for_markup(std::string_view text);
// The same for XML 1.0, with line breaks and tabs as references.
std::string for_xml(std::string_view text);
// Text or a table's cell of Markdown: no markup, and nothing that GitHub would make a link of (@name, #12, addresses).
std::string for_markdown(std::string_view text);
// Between backticks in Markdown.
std::string for_markdown_code(std::string_view text);
// A value between quotes in OpenMetrics and Prometheus; line breaks are written as \n.
std::string for_openmetrics(std::string_view text);
// A text between quotes in Graphviz.
std::string for_dot(std::string_view text);
// A frame of a folded stack, where ';' separates frames.
std::string for_frame(std::string_view text);
// A property (title=...) and the message of a command to GitHub's runner; line breaks of messages are kept, as %0A.
std::string for_github_property(std::string_view text);
std::string for_github_message(std::string_view text);

// GitHub's runner executes lines that begin with "::" and anything in "##[...]", wherever they are printed (others have
// "##vso[", "##teamcity["): the last gate of what is printed there. Text without either is unchanged; JSON keeps its
// meaning.
std::string without_commands(std::string_view text, bool is_json = false);

// A constant of the program: no text from elsewhere can become one.
struct TextLiteral {
  consteval TextLiteral(const char* words) : text(words) {}
  std::string_view text;
};

// Text in the language of one sink. It is made of literals, numbers and texts of the same sink; any other text among
// the arguments goes through the gate. So there is no way to write a raw string into it.
template <std::string (*gate)(std::string_view)>
class SafeText {
  static std::string_view shown(const SafeText& safe) { return safe.text_; }
  template <class Text>
    requires std::convertible_to<const Text&, std::string_view>
  static std::string shown(const Text& text) {
    return gate(text);
  }
  static std::string shown(char letter) { return gate(std::string_view(&letter, 1)); }
  template <class Number>
    requires(std::is_arithmetic_v<Number> && !std::same_as<Number, char>)
  static Number shown(Number number) {
    return number;
  }
  template <class... Shown>
  static SafeText formatted(fmt::string_view format, const Shown&... shown) {
    SafeText made;
    made.text_ = fmt::vformat(format, fmt::make_format_args(shown...));
    return made;
  }

 public:
  SafeText() = default;
  explicit SafeText(std::string_view text) : text_(gate(text)) {}
  // The format is a literal: it is checked by the compiler.
  template <class... Args>
  static SafeText format(fmt::format_string<decltype(shown(std::declval<const Args&>()))...> format,
                         const Args&... args) {
    return formatted(format, shown(args)...);
  }
  // With braces as they are.
  static SafeText literal(TextLiteral words) {
    SafeText made;
    made.text_ = words.text;
    return made;
  }
  // Another language within this one, which takes it as it is.
  template <std::string (*other)(std::string_view)>
  static SafeText embed(const SafeText<other>& inner) {
    SafeText made;
    made.text_ = inner.text();
    return made;
  }

  SafeText& operator+=(const SafeText& more) {
    text_ += more.text_;
    return *this;
  }
  friend SafeText operator+(SafeText left, const SafeText& right) { return left += right; }
  bool empty() const { return text_.empty(); }
  std::size_t size() const { return text_.size(); }
  // For the file or the stream that it was made for.
  const std::string& text() const& { return text_; }
  std::string text() && { return std::move(text_); }

 private:
  std::string text_;
};

using Markup = SafeText<for_markup>;
using Xml = SafeText<for_xml>;
using Markdown = SafeText<for_markdown>;
using MarkdownCode = SafeText<for_markdown_code>;
using Dot = SafeText<for_dot>;

// A line of a table for spreadsheets, cell by cell. Numbers are written as they are, and nothing for null.
class CsvLine {
 public:
  template <class... Cells>
  explicit CsvLine(const Cells&... cells) {
    (add(cells), ...);
  }
  void add(std::string_view text) { put(for_csv(text)); }
  template <class Number>
    requires std::is_arithmetic_v<Number>
  void add(Number number) {
    put(fmt::to_string(number));
  }
  template <class Value>
  void add(const std::optional<Value>& value) {
    value ? add(*value) : put("");
  }
  // Without the line break.
  const std::string& text() const { return text_; }

 private:
  void put(std::string_view cell) {
    if (!is_first_) text_ += ',';
    is_first_ = false;
    text_ += cell;
  }
  std::string text_;
  bool is_first_ = true;
};

}  // namespace weir
