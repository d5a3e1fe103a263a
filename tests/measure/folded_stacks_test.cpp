#include "measure/folded_stacks.h"

#include <gtest/gtest.h>

namespace weir {
namespace {

std::string folded(std::string_view text) {
  FoldedStacks stacks;
  stacks.add(text);
  stacks.end();
  return folded_text(stacks.stacks());
}

// perf 6.1: perf script -F comm,tid,ip,sym,dso
constexpr std::string_view kTwo =
    "burn  9848 \n"
    "\t           36e14 __sin (/usr/lib/aarch64-linux-gnu/libm.so.6)\n"
    "\t             7b8 inner (/tmp/burn)\n"
    "\t             814 main (/tmp/burn)\n"
    "\n"
    "burn  9848 \n"
    "\t           36e14 __sin (/usr/lib/aarch64-linux-gnu/libm.so.6)\n"
    "\t             7b8 inner (/tmp/burn)\n"
    "\t             814 main (/tmp/burn)\n"
    "\n"
    "burn  9850 \n"
    "\t             900 other (/tmp/burn)\n"
    "\n";

TEST(FoldedStacks, equal_stacks_are_counted_the_outermost_first) {
  EXPECT_EQ(folded(kTwo), "burn;main;inner;__sin 2\nburn;other 1\n");
}

TEST(FoldedStacks, the_text_may_come_in_any_pieces_and_lack_its_end) {
  for (std::size_t cut = 0; cut <= kTwo.size(); ++cut) {
    FoldedStacks stacks;
    stacks.add(kTwo.substr(0, cut));
    stacks.add(kTwo.substr(cut));
    stacks.end();
    EXPECT_EQ(folded_text(stacks.stacks()), "burn;main;inner;__sin 2\nburn;other 1\n") << cut;
  }
  EXPECT_EQ(folded("burn 1 \n\t 7b8 inner (/tmp/burn)"), "burn;inner 1\n");
}

TEST(FoldedStacks, heads_of_other_fields_and_names_with_blanks_are_read) {
  EXPECT_EQ(folded("burn  9848 47993.736070:    1003009 cpu-clock:pppH: \n\t 36e14 __sin+0x84 (/lib/libm.so.6)\n"),
            "burn;__sin 1\n");
  EXPECT_EQ(folded("weir worker 3  9848/9850 [001] 47993.736070:          1 cycles: \n\t 1 f (a)\n"),
            "weir worker 3;f 1\n");
  EXPECT_EQ(folded("pool 12  9848 \n\t 1 f (a)\n"), "pool 12;f 1\n");
  EXPECT_EQ(folded(":19647 19647 \n\t 1 f (a)\n"), "[thread];f 1\n");
}

TEST(FoldedStacks, names_of_functions_keep_their_blanks_and_brackets) {
  EXPECT_EQ(folded("w 1\n\t 7f void weir::f<int, (char)3>(std::vector<int>, int)+0x1f (/usr/bin/weir)\n"),
            "w;void weir::f<int, (char)3>(std::vector<int>, int) 1\n");
  EXPECT_EQ(folded("w 1\n\t 7f operator+ (/tmp/my file (deleted))\n"), "w;operator+ 1\n");
}

TEST(FoldedStacks, what_has_no_name_is_told_by_its_place) {
  EXPECT_EQ(folded("w 1\n\t 7f [unknown] (/usr/lib/libcuda.so.1)\n\tffff [unknown] ([kernel.kallsyms])\n"
                   "\t 1 [unknown] ([unknown])\n"),
            "w;[unknown];[kernel.kallsyms];[libcuda.so.1] 1\n");
  EXPECT_EQ(folded("w 1\n\n"), "w;[no stack] 1\n");
}

TEST(FoldedStacks, no_name_can_part_frames_or_lines_or_reach_a_terminal) {
  EXPECT_EQ(folded("a;b 1\n\t 7f f;g\x1b[2J (x)\n"), "a:b;f:g?[2J 1\n");
}

TEST(FoldedStacks, lines_that_are_neither_are_counted) {
  FoldedStacks stacks;
  stacks.add("# comment without a number\nw 1\n\tnonsense\n\t7f f (x)\n\n\t7f lonely frame (x)\n");
  stacks.end();
  EXPECT_EQ(stacks.unknown_lines(), 3U);
  EXPECT_EQ(folded_text(stacks.stacks()), "w;f 1\n");
}

TEST(FoldedStacks, deep_stacks_long_names_and_long_lines_are_bounded) {
  std::string deep = "w 1\n";
  for (int i = 0; i < 1000; ++i) deep += "\t 7f f" + std::to_string(i) + " (x)\n";
  const std::string text = folded(deep);
  EXPECT_TRUE(text.starts_with("w;[deeper];f255;"));
  EXPECT_TRUE(text.ends_with(";f0 1\n"));
  EXPECT_EQ(folded("w 1\n\t 7f " + std::string(5000, 'n') + " (x)\n"), "w;" + std::string(300, 'n') + " 1\n");
  FoldedStacks stacks;
  for (int i = 0; i < 100; ++i) stacks.add(std::string(10'000, 'n'));
  stacks.add("\nw 1\n\t 7f f (x)\n");
  stacks.end();
  EXPECT_EQ(stacks.unknown_lines(), 1U);
  EXPECT_EQ(folded_text(stacks.stacks()), "w;f 1\n");
}

TEST(FoldedStacks, stacks_beyond_the_room_are_counted_not_kept) {
  FoldedStacks stacks;
  const std::string name(FoldedStacks::kLongestName, 'n');
  std::string frames;
  for (std::size_t i = 0; i < FoldedStacks::kDeepest - 1; ++i) frames += "\t 7f " + name + " (x)\n";
  const std::size_t room = FoldedStacks::kMaxBytes / (FoldedStacks::kDeepest * (FoldedStacks::kLongestName + 1));
  for (std::size_t i = 0; i < room + 50; ++i) stacks.add("w 1\n\t 7f f" + std::to_string(i) + " (x)\n" + frames + "\n");
  stacks.end();
  EXPECT_EQ(stacks.samples(), room + 50);
  EXPECT_GT(stacks.left_out(), 0U);
  EXPECT_EQ(stacks.left_out() + stacks.stacks().size(), stacks.samples());
}

}  // namespace
}  // namespace weir
