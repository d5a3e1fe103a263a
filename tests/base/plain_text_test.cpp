#include "base/plain_text.h"

#include <gtest/gtest.h>

namespace weir::testing {
namespace {

TEST(PlainText, control_characters_of_both_sets_are_replaced) {
  EXPECT_EQ(without_controls("a\033[31mb\x7f\n", '?'), "a?[31mb??");
  // U+009B is ESC [ in one character, and U+0085 a new line.
  EXPECT_EQ(without_controls("a\xc2\x9b"
                             "31mb\xc2\x85",
                             '?'),
            "a?31mb?");
  EXPECT_EQ(without_controls("a\x9b"
                             "31m",
                             '?'),
            "a?31m");
  EXPECT_EQ(without_controls("\xc3\xa9\x9b", '?'), "\xc3\xa9?");
  EXPECT_EQ(without_controls("a\nb\tc\r", ' ', "\n\t"), "a\nb\tc ");
}

TEST(PlainText, other_characters_stay_although_their_bytes_look_alike) {
  // e acute, an arrow (e2 86 92), an emoji (f0 9f 9a 80), a no-break space (c2 a0).
  const char* const text = "\xc3\xa9 \xe2\x86\x92 \xf0\x9f\x9a\x80 \xc2\xa0.";
  EXPECT_EQ(without_controls(text, '?'), text);
}

TEST(PlainText, marks_that_nobody_sees_are_replaced) {
  // U+202E turns the rest of the line around, U+2066 begins such a part, U+200B and U+FEFF have no width.
  EXPECT_EQ(without_controls("a\xe2\x80\xae"
                             "b\xe2\x81\xa6"
                             "c\xe2\x80\x8b"
                             "d\xef\xbb\xbf"
                             "e",
                             '?'),
            "a?b?c?d?e");
  EXPECT_EQ(without_controls("a\xe2\x80\xa8\xef\xbf\xbf\xc2\xad", '?'), "a???");
  EXPECT_EQ(without_controls("a\xff\xe2\x86", '?'), "a???") << "bytes that are no character";
  EXPECT_EQ(shell_word("a\xe2\x80\xae"), "$'a\\xe2\\x80\\xae'");
  EXPECT_EQ(shell_word("\xc3\xa9"), "'\xc3\xa9'");
}

TEST(PlainText, a_cut_leaves_no_part_of_a_character) {
  EXPECT_EQ(whole_characters("abc", 3), "abc");
  EXPECT_EQ(whole_characters("abcd", 3), "abc");
  EXPECT_EQ(whole_characters("a\xe2\x86\x92"
                             "b",
                             3),
            "a");
  EXPECT_EQ(whole_characters("a\xe2\x86\x92"
                             "b",
                             4),
            "a\xe2\x86\x92");
}

TEST(PlainText, blanks_at_both_ends_are_trimmed) {
  EXPECT_EQ(trimmed(" \ta b\t "), "a b");
  EXPECT_EQ(trimmed(" a\n"), "a\n");
  EXPECT_EQ(trimmed(" a\n", " \n"), "a");
  EXPECT_EQ(trimmed("  "), "");
  EXPECT_EQ(trimmed(""), "");
}

TEST(PlainText, a_number_is_all_of_its_text) {
  EXPECT_EQ(parse_as<int>("-12"), -12);
  EXPECT_EQ(parse_as<double>("0.5"), 0.5);
  for (const char* text : {"", " 1", "1 ", "1x", "+1", "300"}) EXPECT_FALSE(parse_as<std::uint8_t>(text)) << text;
}

}  // namespace
}  // namespace weir::testing
