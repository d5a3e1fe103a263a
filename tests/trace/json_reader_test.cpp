#include "trace/import/json_reader.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <random>

#include "trace/import/json_blocks.h"
#include "trace/import/json_text.h"

namespace weir {
namespace {

using In = JsonReader::In;

// Hands out a few bytes at a time.
class Drops : public ByteSource {
 public:
  Drops(std::string text, std::size_t chunk) : text_(std::move(text)), chunk_(chunk) {}

 protected:
  std::size_t fetch(char* to, std::size_t capacity) override {
    const std::size_t count = std::min({capacity, chunk_, text_.size() - taken_});
    text_.copy(to, count, taken_);
    taken_ += count;
    return count;
  }

 private:
  std::string text_;
  std::size_t chunk_, taken_ = 0;
};

// Reads a whole document with an explicit stack, as the reader's users never need to.
nlohmann::json read_all(JsonReader& reader) {
  nlohmann::json root;
  struct Level {
    nlohmann::json* at;
    bool is_object;
  };
  std::vector<Level> levels;
  nlohmann::json* into = &root;
  bool is_object = false;
  while (true) {
    const char next = reader.peek();
    if (next == '{' || next == '[') {
      reader.take(next);
      *into = next == '{' ? nlohmann::json::object() : nlohmann::json::array();
      levels.push_back({into, next == '{'});
    } else {
      bool is_text = false;
      const std::string text(reader.scalar(is_object ? In::object : In::array, &is_text));
      if (is_text)
        *into = decoded(text);
      else if (text == "true" || text == "false")
        *into = text == "true";
      else if (text == "null")
        *into = nullptr;
      else if (const auto whole = signed_of(text); whole && text.find_first_of(".eE") == std::string::npos)
        *into = *whole;
      else
        *into = std::stod(text);
    }
    while (!levels.empty()) {
      nlohmann::json& top = *levels.back().at;
      is_object = levels.back().is_object;
      std::string_view key;
      if (is_object && reader.next_key(&key)) {
        into = &top[decoded(key)];
        break;
      }
      if (!is_object && reader.next_element()) {
        top.push_back(nullptr);
        into = &top.back();
        break;
      }
      levels.pop_back();
    }
    if (levels.empty() || reader.is_broken()) return root;
  }
}

nlohmann::json random_json(std::mt19937& random, int depth) {
  const auto text = [&] {
    static const std::vector<std::string> kParts = {"a",  "\"", "\\",   "{", "}",          "[",  "]",       ",", ":",
                                                    "\n", "\t", "\x01", "é", "\U0001F600", "  ", "\"ph\":", "k"};
    std::string made;
    for (auto left = random() % 40; left > 0; --left) made += kParts[random() % kParts.size()];
    return made;
  };
  switch (depth > 0 ? random() % 8 : random() % 6) {
    case 0:
      return text();
    case 1:
      return static_cast<std::int64_t>(random()) * 1'000'003 - 1'000'000'000'000'000;
    case 2:
      return (random() % 2) != 0;
    case 3:
      return nullptr;
    case 4:
      return static_cast<double>(random()) / 1024.0 + 0.5;
    case 5:
      return "";
    case 6: {
      nlohmann::json made = nlohmann::json::array();
      for (auto left = random() % 7; left > 0; --left) made.push_back(random_json(random, depth - 1));
      return made;
    }
    default: {
      nlohmann::json made = nlohmann::json::object();
      for (auto left = random() % 7; left > 0; --left) made[text()] = random_json(random, depth - 1);
      return made;
    }
  }
}

TEST(JsonReader, AgreesWithNlohmannOnRandomDocuments) {
  std::mt19937 random(7);
  for (int round = 0; round < 1500; ++round) {
    nlohmann::json document = nlohmann::json::array();
    while (document.size() < 3) document.push_back(random_json(random, 6));
    const std::string text = document.dump(round % 3 == 0 ? -1 : 4, ' ', round % 2 == 0);
    Drops source(text, 1 + static_cast<std::size_t>(round) % 100);
    // A small window moves often and grows for texts.
    JsonReader reader(source, {}, {1024, 1 << 20});
    const nlohmann::json read = read_all(reader);
    ASSERT_FALSE(reader.is_broken()) << reader.problem() << "\n" << text;
    ASSERT_EQ(read, document) << text;
    ASSERT_TRUE(reader.is_at_end());

    Drops again(text + " \"after\"", 1 + static_cast<std::size_t>(round) % 100);
    JsonReader skipper(again, {}, {1024, 1 << 20});
    skipper.skip(In::array);
    ASSERT_FALSE(skipper.is_broken()) << skipper.problem() << "\n" << text;
    ASSERT_EQ(skipper.scalar(In::array), "after") << text;
  }
}

TEST(JsonReader, MasksTellWhatEachByteIs) {
  std::mt19937 random(3);
  const std::string alphabet = "\"\\{}[],: \n\tabc\x7f\xff\x80\x01";
  for (int round = 0; round < 200; ++round) {
    std::string text;
    while (text.size() < 64 + 16) text += alphabet[random() % alphabet.size()];
    const json_blocks::Masks masks = json_blocks::masks_of(text.data());
    for (std::size_t i = 0; i < 64; ++i) {
      const char c = text[i];
      ASSERT_EQ(masks.quote >> i & 1U, c == '"');
      ASSERT_EQ(masks.backslash >> i & 1U, c == '\\');
      ASSERT_EQ(masks.open >> i & 1U, c == '{' || c == '[');
      ASSERT_EQ(masks.close >> i & 1U, c == '}' || c == ']');
      ASSERT_EQ(masks.brace >> i & 1U, c == '{');
      ASSERT_EQ(masks.between >> i & 1U, std::string_view("{}[],: \n\t\x01").find(c) != std::string_view::npos);
    }
    bool carried = round % 2 != 0;
    bool expected = carried;
    const std::uint64_t escaped = json_blocks::escaped_of(masks.backslash, carried);
    for (std::size_t i = 0; i < 64; ++i) {
      ASSERT_EQ(escaped >> i & 1U, expected);
      expected = !expected && text[i] == '\\';
    }
    ASSERT_EQ(carried, expected);
  }
}

struct Pairs {
  std::vector<std::pair<std::string, std::string>> found;
  std::string problem;
};

Pairs pairs_of(const std::string& text) {
  const auto source = bytes_of(text);
  JsonReader reader(*source);
  Pairs made;
  EXPECT_TRUE(reader.take('{'));
  std::string_view key;
  while (reader.next_key(&key)) {
    const std::string name(key);
    made.found.emplace_back(name, reader.scalar(In::object));
  }
  if (reader.is_broken()) made.problem = reader.problem();
  return made;
}

TEST(JsonReader, ReadsWhatIsNoJson) {
  using List = std::vector<std::pair<std::string, std::string>>;
  EXPECT_EQ(pairs_of(R"({"a": "say "hi" there", "b": 1})").found, (List{{"a", R"(say "hi" there)"}, {"b", "1"}}));
  EXPECT_EQ(pairs_of(R"j({"a": "f("x", 1)", "b": 1})j").found, (List{{"a", R"j(f("x", 1))j"}, {"b", "1"}}));
  EXPECT_EQ(pairs_of(R"({"a"b": 2})").found, (List{{"a\"b", "2"}}));
  EXPECT_EQ(pairs_of("{\"a\": \"x\x01\n\xff y\", \"b\": NaN, \"c\": -nan(ind), \"d\": Infinity,}").found,
            (List{{"a", "x\x01\n\xff y"}, {"b", "NaN"}, {"c", "-nan(ind)"}, {"d", "Infinity"}}));
  EXPECT_EQ(pairs_of(R"({"a": 1 "b": 2,, "c":,})").found, (List{{"a", "1"}, {"b", "2"}, {"c", ""}}));
  EXPECT_EQ(pairs_of(R"({"a": "\"\\", "b": "\\\\"})").found, (List{{"a", R"(\"\\)"}, {"b", R"(\\\\)"}}));
}

TEST(JsonReader, SaysWhereItCannotGoOn) {
  EXPECT_NE(pairs_of(R"({"a": 1, x: 2})").problem, "");
  EXPECT_NE(pairs_of(R"({"a": [1]})").problem, "");
  EXPECT_NE(pairs_of("{\"a\": \"no end,\n \"b\": \"x\",\n \"c\": 3}").problem, "");
  for (const char* const cut : {"{", "{\"a", "{\"a\"", "{\"a\":", "{\"a\": \"x", "{\"a\": 1", "{\"a\": 1,"}) {
    const auto source = bytes_of(cut);
    JsonReader reader(*source);
    reader.skip(In::array);
    EXPECT_TRUE(reader.is_cut_off()) << cut;
  }
}

TEST(JsonReader, PassesOverQuotesThatAreContent) {
  // Skipped 64 bytes at a time: pairs of quotes must not invert what is inside.
  const std::string odd = R"j({"kernel": "op("x")<"y"> { [", "list": ["a"b", {"c": "]"}], "n": 1} "after")j";
  for (std::size_t pad = 0; pad < 130; ++pad) {
    const std::string text = std::string("{\"pad\": \"") + std::string(pad, 'p') + "\", " + odd.substr(1);
    const auto source = bytes_of(text);
    JsonReader reader(*source);
    reader.skip(In::array);
    ASSERT_FALSE(reader.is_broken()) << reader.problem() << " " << pad;
    ASSERT_EQ(reader.scalar(In::array), "after") << pad;
  }
}

TEST(JsonReader, GoesThroughAnyDepth) {
  std::string text;
  for (int i = 0; i < 300'000; ++i) text += i % 2 == 0 ? "[" : "{\"a\":";
  const std::string open = text;
  for (int i = 299'999; i >= 0; --i) text += i % 2 == 0 ? "]" : "}";
  const auto source = bytes_of(text);
  JsonReader reader(*source);
  reader.skip(In::array);
  EXPECT_FALSE(reader.is_broken());
  EXPECT_TRUE(reader.is_at_end());
  const auto cut = bytes_of(open);
  JsonReader never(*cut);
  never.skip(In::array);
  EXPECT_TRUE(never.is_cut_off());
}

TEST(JsonReader, DropsTextsBeyondItsLimit) {
  const std::string text = "{\"a\": \"" + std::string(20'000, 'x') + "\", \"b\": \"" + std::string(5'000, 'y') + "\"}";
  Drops source(text, 777);
  JsonReader reader(source, {}, {1024, 8192});
  std::string_view key;
  ASSERT_TRUE(reader.take('{'));
  ASSERT_TRUE(reader.next_key(&key));
  EXPECT_EQ(reader.scalar(In::object), "");
  EXPECT_TRUE(reader.is_broken());
  EXPECT_FALSE(reader.is_cut_off());
  ASSERT_TRUE(reader.recover([](std::string_view ahead) { return ahead.substr(0, 3) == "\"b\""; }));
  ASSERT_TRUE(reader.next_key(&key));
  EXPECT_EQ(reader.scalar(In::object), std::string(5'000, 'y'));
}

TEST(JsonReader, TakesPlainNumbersOrNothing) {
  const auto taken = [](const std::string& value, int places) -> std::int64_t {
    const std::string text = "{\"a\": " + value + ", \"b\": 2}" + std::string(64, ' ');
    const auto source = bytes_of(text);
    JsonReader reader(*source);
    std::string_view key;
    reader.take('{');
    reader.next_key(&key);
    std::int64_t number = -1;
    const bool is_plain = reader.plain_number(places, &number);
    if (!is_plain) {
      EXPECT_EQ(reader.scalar(In::object), value);
    }
    // Whichever way the value went, what follows it is found.
    EXPECT_TRUE(reader.next_key(&key) && key == "b") << value;
    return is_plain ? number : -1;
  };
  EXPECT_EQ(taken("0", 0), 0);
  EXPECT_EQ(taken("42", 0), 42);
  EXPECT_EQ(taken("42", 3), 42000);
  EXPECT_EQ(taken("4.25", 3), 4250);
  EXPECT_EQ(taken("1106964728033.929", 3), 1106964728033929);
  EXPECT_EQ(taken("9223372036854775807", 0), INT64_MAX);
  EXPECT_EQ(taken("9223372036854775.807", 3), INT64_MAX);
  for (const char* const other :
       {"9223372036854775808", "99999999999999999999", "4.25", "-1", "1e3", "4.", "x", "0x1f"})
    EXPECT_EQ(taken(other, 0), -1) << other;
  for (const char* const other : {"9223372036854775.808", "1.2345", "12345678901234567"})
    EXPECT_EQ(taken(other, 3), -1) << other;
}

TEST(JsonText, NumbersAreExact) {
  EXPECT_EQ(scaled_of("1106964728033.929", 3), 1106964728033929);
  EXPECT_EQ(scaled_of("1661203462598772", 3), 1661203462598772000);
  EXPECT_EQ(scaled_of("-1.5", 3), -1500);
  EXPECT_EQ(scaled_of("0.0004", 3), 0);
  EXPECT_EQ(scaled_of("0.0005", 3), 1);
  EXPECT_EQ(scaled_of("1.106964728033929e12", 3), 1106964728033929);
  EXPECT_EQ(scaled_of("1e-30", 3), 0);
  EXPECT_EQ(scaled_of("0e999999999999", 3), 0);
  EXPECT_EQ(scaled_of("9223372036854775.807", 3), INT64_MAX);
  for (const char* const bad : {"", "-", ".", "NaN", "-nan", "Infinity", "1e99", "9223372036854775.808", "1.2.3", "1e",
                                "99999999999999999999999", "0x10"})
    EXPECT_EQ(scaled_of(bad, 3), std::nullopt) << bad;
  EXPECT_EQ(unsigned_of("18446744073709551615"), UINT64_MAX);
  EXPECT_EQ(unsigned_of("18446744073709551616"), std::nullopt);
  EXPECT_EQ(unsigned_of("340282366920938463463374607431768211456"), std::nullopt);
  EXPECT_EQ(unsigned_of("0x0"), 0U);
  EXPECT_EQ(unsigned_of("0x55d8564ba340"), 0x55d8564ba340U);
  EXPECT_EQ(unsigned_of("-1"), std::nullopt);
  EXPECT_EQ(signed_of("-1"), -1);
  EXPECT_EQ(signed_of("3.0"), 3);
  EXPECT_EQ(signed_of("3e2"), 300);
  EXPECT_EQ(signed_of("3.5"), std::nullopt);
  EXPECT_EQ(signed_of(" 7 "), 7);
}

TEST(JsonText, EscapesAreResolvedOrLeft) {
  EXPECT_EQ(decoded(R"(a\n\t\"\\\/b)"), "a\n\t\"\\/b");
  EXPECT_EQ(decoded(R"(\u0041\u00e9\u20ac\ud83d\ude00)"), "A\u00e9\u20ac\U0001F600");
  EXPECT_EQ(decoded(R"(\ud83d x)"), "\uFFFD x");
  EXPECT_EQ(decoded(R"(\q \u12 \)"), R"(\q \u12 \)");
  EXPECT_EQ(decoded("\xff\xfe"), "\xff\xfe");
}

}  // namespace
}  // namespace weir
