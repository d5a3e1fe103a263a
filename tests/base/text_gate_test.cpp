// Every gate on every hostile text, by the rules of the sink; and what the type refuses.
#include "base/text_gate.h"

#include <gtest/gtest.h>

#include <random>

#include "base/plain_text.h"
#include "support/sink_rules.h"

namespace weir::testing {
namespace {

// A raw string is no text of a sink, neither is text of another sink, and nothing gives the text away by itself.
static_assert(!std::is_convertible_v<std::string, Markup> && !std::is_convertible_v<const char*, Markup>);
static_assert(!std::is_convertible_v<Markup, std::string> && !std::is_convertible_v<Markup, std::string_view>);
static_assert(!std::is_convertible_v<Markup, Markdown> && !fmt::is_formattable<Markup>::value);
template <class Text, class Added>
concept Takes = requires(Text text, Added added) { text += added; };
static_assert(Takes<Markup, Markup> && !Takes<Markup, std::string> && !Takes<Markup, Markdown>);

std::string as_it_is(std::string_view text) { return std::string(text); }
std::string json_string(std::string_view text) { return for_json(Json(std::string(text)).dump()); }
std::string runner_text(std::string_view text) { return without_commands(text); }
std::string runner_json(std::string_view text) { return without_commands(Json(std::string(text)).dump(), true); }

std::string one_frame_rule(const std::string& text) {
  return text.find(';') == std::string::npos ? terminal_rule(text) : "two frames";
}

// A small file of each format: the text is between the parts.
struct Sink {
  const char* name;
  std::string (*gate)(std::string_view text);
  SinkRule rule;
  std::vector<std::string> parts = {"", ""};

  std::string file(const std::string& text, std::string (*by)(std::string_view)) const {
    std::string made = parts[0];
    for (std::size_t i = 1; i < parts.size(); ++i) made += by(text) + parts[i];
    return made;
  }
};

const std::vector<Sink>& sinks() {
  static const std::vector<Sink> kSinks = {
      {"line", for_line, terminal_rule},
      {"terminal", for_terminal, terminal_rule},
      {"json", json_string, json_rule},
      {"csv", for_csv, csv_rule, {"1,", ",2\r\n2,", ",3\r\n"}},
      {"markup", for_markup, xml_rule, {"<a b=\"", "\"><c/>", "</a>"}},
      {"xml", for_xml, xml_rule, {"<a b=\"", "\"><c/>", "</a>"}},
      {"markdown", for_markdown, markdown_rule, {"# ", "\n\n| a | b |\n| - | - |\n| ", " | ", " |\n\n- ", "\n"}},
      {"code", for_markdown_code, markdown_rule, {"`", "`\n"}},
      {"openmetrics", for_openmetrics, openmetrics_rule, {"# TYPE a gauge\n# HELP a b\na{c=\"", "\"} 1\n# EOF\n"}},
      {"dot", for_dot, dot_rule, {"digraph a {\n  graph [label=\"", "\"];\n}\n"}},
      {"frame", for_frame, one_frame_rule},
      {"github_property", for_github_property, runner_rule, {"::error title=weir ", "::a\n"}},
      {"github_message", for_github_message, runner_rule, {"::error title=weir a::", "\n"}},
      {"runner", runner_text, runner_rule, {"a: ", "\n", ""}},
      {"runner_json", runner_json, runner_rule, {"[\n", "]\n"}},
      {"word", shell_word, terminal_rule}};
  return kSinks;
}

TEST(TextGate, every_sink_is_safe_from_every_hostile_text) {
  for (const Sink& sink : sinks()) {
    bool is_harmed = false;
    for (const std::string& text : hostile_texts())
      for (const std::string& whole : {text, "name" + text, text + "name", text + text, "\xff" + text}) {
        const std::string made = sink.file(whole, sink.gate);
        EXPECT_EQ(sink.rule(made), "") << sink.name << ": " << Json(whole).dump(-1, true) << "\n" << made;
        is_harmed = is_harmed || !sink.rule(sink.file(whole, as_it_is)).empty();
      }
    EXPECT_TRUE(is_harmed) << sink.name << ": its rule finds nothing wrong with raw text";
  }
}

TEST(TextGate, random_mixtures_of_hostile_texts_and_bytes_are_safe) {
  std::mt19937 random(27);
  for (int i = 0; i < 2'000; ++i) {
    std::string text;
    for (unsigned piece = 0; piece < 1 + random() % 6; ++piece) {
      const std::string& whole = hostile_texts()[random() % hostile_texts().size()];
      text += random() % 3 == 0 ? std::string(1, static_cast<char>(random() % 256))
                                : whole.substr(random() % whole.size(), 1 + random() % 8);
    }
    for (const Sink& sink : sinks())
      ASSERT_EQ(sink.rule(sink.file(text, sink.gate)), "") << sink.name << ": " << Json(text).dump(-1, true);
  }
}

TEST(TextGate, harmless_names_stay_as_they_are) {
  for (const char* name :
       {"void gemm_128x64<float, 4>(int)", "r\xc3\xa9sum\xc3\xa9 \xe2\x86\x92 \xf0\x9f\x9a\x80", "a-b_c.d"}) {
    EXPECT_EQ(for_line(name), name);
    EXPECT_EQ(for_terminal(name), name);
    EXPECT_EQ(for_json(name), name);
    EXPECT_EQ(for_frame(name), name);
    EXPECT_EQ(for_dot(name), name);
    EXPECT_EQ(for_openmetrics(name), name);
    EXPECT_EQ(without_commands(name), name);
  }
  EXPECT_EQ(for_terminal("a\tb\r\nc\n"), "a\tb\r\nc\n");
  EXPECT_EQ(for_line("a\nb\tc\r\n"), "a b c  ");
  EXPECT_EQ(for_markdown("a_b_c"), "a_b_c");
}

TEST(TextGate, cells_are_quoted_and_formulas_become_text) {
  EXPECT_EQ(for_csv("=cmd|' /C calc'!A0"), "'=cmd|' /C calc'!A0");
  for (const char* text : {"+1+1", "-2+3", "@SUM(A1)", "=1", " =1", "\t=1", "\r=1"})
    EXPECT_EQ(for_csv(text)[0], '\'') << text;
  EXPECT_EQ(for_csv("-5"), "-5") << "a number is none";
  EXPECT_EQ(for_csv("=a,b"), "\"'=a,b\"");
  EXPECT_EQ(for_csv("a\"b\nc"), "\"a\"\"b c\"");
  EXPECT_EQ(for_csv("f<int, -1>"), "\"f<int, -1>\"");
  EXPECT_EQ(for_csv("\x1b[31m\xff"), "?[31m?");
  EXPECT_EQ(CsvLine(1, "a", std::optional<double>(), std::optional(2.5), true).text(), "1,a,,2.5,true");
}

TEST(TextGate, arguments_pass_the_gate_and_texts_of_the_sink_do_not_pass_twice) {
  const std::string name = "<b>";
  const Markup inner = Markup::format("<i>{}</i>", name);
  EXPECT_EQ(inner.text(), "<i>&lt;b&gt;</i>");
  EXPECT_EQ(Markup::format("<p a=\"{:.1f}\">{}{}{}</p>", 1.25, inner, '<', "&").text(),
            "<p a=\"1.2\"><i>&lt;b&gt;</i>&lt;&amp;</p>");
  EXPECT_EQ((Markup::literal("{<br/>}") + Markup(name)).text(), "{<br/>}&lt;b&gt;");
}

TEST(TextGate, json_means_the_same_after_it) {
  for (const std::string& text : hostile_texts()) {
    const Json json = Json::array({text});
    EXPECT_EQ(Json::parse(without_commands(for_json(json.dump(1)), true)), json);
  }
}

}  // namespace
}  // namespace weir::testing
