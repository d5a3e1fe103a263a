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

// A small file of each format with a text at every place that takes one.
struct Sink {
  const char* name;
  std::string (*file)(const std::string& text);
  SinkRule rule;
};

const Sink kSinks[] = {
    {"line", [](const std::string& text) { return for_line(text); }, terminal_rule},
    {"terminal", [](const std::string& text) { return for_terminal(text); }, terminal_rule},
    {"json", [](const std::string& text) { return for_json(Json(text).dump()); }, json_rule},
    {"csv", [](const std::string& text) { return CsvLine(1, text, 2.5, text).text() + "\r\n"; }, csv_rule},
    {"markup",
     [](const std::string& text) { return Markup::format("<a b=\"{0}\"><c d=\"{1}\"/>{0}</a>", text, 1).text(); },
     xml_rule},
    {"xml", [](const std::string& text) { return Xml::format("<a b=\"{0}\">{0}</a>", text).text(); }, xml_rule},
    {"markdown",
     [](const std::string& text) {
       return Markdown::format("# {0}\n\n| a | b |\n| - | - |\n| {0} | {0} |\n\n- {0}\n", text).text();
     },
     markdown_rule},
    {"code", [](const std::string& text) { return "`" + for_markdown_code(text) + "`"; }, markdown_rule},
    {"openmetrics",
     [](const std::string& text) {
       return "# TYPE a gauge\n# HELP a b\na{c=\"" + for_openmetrics(text) + "\"} 1\n# EOF\n";
     },
     openmetrics_rule},
    {"dot",
     [](const std::string& text) { return Dot::format("digraph a {{\n  graph [label=\"{0}\"];\n}}\n", text).text(); },
     dot_rule},
    {"frame", [](const std::string& text) { return for_frame(text); },
     [](const std::string& text) { return text.find(';') == text.npos ? terminal_rule(text) : "two frames"; }},
    {"github",
     [](const std::string& text) {
       return "::error title=weir " + for_github_property(text) + "::" + for_github_message(text) + "\n";
     },
     runner_rule},
    {"runner", [](const std::string& text) { return without_commands("a: " + text + "\n" + text); }, runner_rule},
    {"runner_json", [](const std::string& text) { return without_commands(Json::array({text}).dump(1), true); },
     runner_rule},
    {"word", [](const std::string& text) { return shell_word(text); }, terminal_rule},
};

TEST(TextGate, every_sink_is_safe_from_every_hostile_text) {
  for (const Sink& sink : kSinks)
    for (const std::string& text : hostile_texts())
      for (const std::string& whole : {text, "name" + text, text + "name", text + text, "\xff" + text}) {
        const std::string made = sink.file(whole);
        EXPECT_EQ(sink.rule(made), "") << sink.name << ": " << Json(whole).dump(-1, true) << "\n" << made;
      }
}

TEST(TextGate, random_mixtures_of_hostile_texts_and_bytes_are_safe) {
  std::mt19937 random(27);
  for (int i = 0; i < 3'000; ++i) {
    std::string text;
    for (unsigned piece = 0; piece < 1 + random() % 6; ++piece) {
      const std::string& whole = hostile_texts()[random() % hostile_texts().size()];
      text += random() % 3 == 0 ? std::string(1, static_cast<char>(random() % 256))
                                : whole.substr(random() % whole.size(), 1 + random() % 8);
    }
    for (const Sink& sink : kSinks)
      ASSERT_EQ(sink.rule(sink.file(text)), "") << sink.name << ": " << Json(text).dump(-1, true);
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
