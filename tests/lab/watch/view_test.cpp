// What the live view looks like at any size, and what keys do to it.
#include "lab/watch/view.h"

#include <gtest/gtest.h>

#include <string>

#include "lab/watch/hand_made.h"

namespace weir::watch {
namespace {

TEST(View, shows_title_headings_rows_and_keys_in_80x24) {
  const Sample sample = testing::kfd_sample();
  const Grid grid = picture({}, &sample, 80, 24);
  EXPECT_EQ(grid.width(), 80);
  EXPECT_EQ(grid.height(), 24);
  EXPECT_EQ(grid.line(0), "weir watch  KFD  every 1 s  #7");
  EXPECT_EQ(grid.line(1), "QUEUE                      ACTIVE   BACKLOG  PRIORITY STREAMS   PACKETS/S   BUSY");
  EXPECT_EQ(grid.line(2), "f7bc pid 4000 #1              yes        12  7 medium       -       >=317      -");
  EXPECT_EQ(grid.line(3), "f7bc pid 4000 #2            saved         0   11 high       -      4.21 k      -");
  EXPECT_EQ(grid.line(4), "f7bc pid 4001 #0                -         -         -       -           -      -");
  EXPECT_EQ(grid.line(23), "q quit  s sort  r reverse  p pause  +- interval  h help");
}

TEST(View, never_draws_outside_whatever_the_size) {
  for (const Sample& sample : {testing::kfd_sample(), testing::many_rows(200), Sample{}}) {
    for (int width = 0; width <= 90; width += width < 24 ? 1 : 11) {
      for (int height = 0; height <= 30; ++height) {
        for (const bool shows_help : {false, true}) {
          View view;
          view.shows_help = shows_help;
          view.is_paused = true;
          view.first_row = 150;
          EXPECT_EQ(picture(view, &sample, width, height).height(), height);
          EXPECT_EQ(picture(view, nullptr, width, height).width(), width);
        }
      }
    }
  }
}

TEST(View, a_20x5_screen_still_has_queues_and_their_backlog) {
  const Sample sample = testing::kfd_sample();
  const Grid grid = picture({}, &sample, 20, 5);
  EXPECT_EQ(grid.line(1), "QUEUE        BACKLOG");
  EXPECT_EQ(grid.line(2), "f7bc pid 4        12");
  EXPECT_EQ(rows_shown({}, &sample, 20, 5), 2u);
}

TEST(View, the_column_that_is_sorted_by_is_shown_however_little_room_there_is) {
  const Sample sample = testing::kfd_sample();
  View view;
  view.sort = Column::streams;
  EXPECT_NE(picture(view, &sample, 20, 5).line(1).find("STREAMS"), std::string::npos);
}

TEST(View, names_with_escapes_reach_no_cell) {
  Sample sample = testing::kfd_sample();
  sample.rows[0].label =
      "a\x1b[2J\x07\x9b"
      "31m\nb\xc2\x9bz";
  sample.workload = "w\x1b]0;title\x07";
  sample.source = "device";
  sample.device = "d\x1b[H";
  sample.notes = {"note \x1b[31m red\r\n"};
  for (const bool shows_help : {false, true}) {
    View view;
    view.shows_help = shows_help;
    const Grid grid = picture(view, &sample, 80, 24);
    for (int y = 0; y < grid.height(); ++y)
      for (int x = 0; x < grid.width(); ++x)
        EXPECT_TRUE(grid.at(x, y).text >= 0x20 && grid.at(x, y).text < 0x7f) << x << ',' << y;
  }
  for (const char c : table_text({}, sample)) EXPECT_TRUE(c == '\n' || (c >= 0x20 && c < 0x7f)) << int{c};
}

TEST(View, keys_sort_by_every_column_and_come_round_again) {
  View view;
  for (std::size_t i = 0; i < columns().size(); ++i) press(view, Key::sort_next, 0, 0);
  EXPECT_EQ(view.sort, Column::queue);
  press(view, Key::sort_previous, 0, 0);
  EXPECT_EQ(view.sort, Column::busy);
}

TEST(View, scrolling_stops_at_both_ends_and_follows_a_resize) {
  View view;
  press(view, Key::up, 100, 20);
  EXPECT_EQ(view.first_row, 0u);
  press(view, Key::page_down, 100, 20);
  EXPECT_EQ(view.first_row, 20u);
  press(view, Key::last, 100, 20);
  EXPECT_EQ(view.first_row, 80u);
  press(view, Key::down, 100, 20);
  EXPECT_EQ(view.first_row, 80u);
  press(view, Key::resize, 100, 50);
  EXPECT_EQ(view.first_row, 50u);
  press(view, Key::none, 3, 50);  // rows have gone
  EXPECT_EQ(view.first_row, 0u);
}

TEST(View, says_which_rows_are_seen_where_there_are_more) {
  const Sample sample = testing::many_rows(100);
  View view;
  const std::size_t room = rows_shown(view, &sample, 80, 24);
  press(view, Key::page_down, 100, room);
  const Grid grid = picture(view, &sample, 80, 24);
  EXPECT_TRUE(grid.line(23).ends_with("22-42 of 100")) << grid.line(23);
  EXPECT_TRUE(grid.line(2).starts_with("queue 21 ")) << grid.line(2);
}

TEST(View, the_interval_has_steps_and_two_ends) {
  View view;
  press(view, Key::slower, 0, 0);
  EXPECT_EQ(view.interval_ns, 2'000'000'000);
  for (int i = 0; i < 20; ++i) press(view, Key::slower, 0, 0);
  EXPECT_EQ(interval_text(view.interval_ns), "10 min");
  for (int i = 0; i < 20; ++i) press(view, Key::faster, 0, 0);
  EXPECT_EQ(view.interval_ns, kMinIntervalNs);
  EXPECT_EQ(interval_text(view.interval_ns), "50 ms");
}

TEST(View, a_paused_picture_says_so) {
  const Sample sample = testing::kfd_sample();
  View view;
  press(view, key_of('p'), 3, 20);
  EXPECT_TRUE(picture(view, &sample, 80, 24).line(0).ends_with(" PAUSED"));
  EXPECT_TRUE(picture(view, &sample, 20, 5).line(0).ends_with(" PAUSED"));
}

TEST(View, facts_that_are_not_known_are_not_in_the_picture) {
  Sample sample = testing::kfd_sample();
  sample.facts = {{"power", "watts", "", known(312.4)}, {"utilisation", "ratio", "", unknown("no sensor")}};
  EXPECT_EQ(picture({}, &sample, 80, 24).line(1), "power 312 W");
}

TEST(View, a_table_has_all_rows_and_says_what_is_missing) {
  Sample sample = testing::many_rows(60);
  sample.missing.push_back({"rls", "/sys/kernel/debug/kfd/rls", "permission denied", "Run as root."});
  const std::string text = table_text({}, sample);
  EXPECT_NE(text.find("queue 59 "), std::string::npos);
  EXPECT_NE(text.find("rls: /sys/kernel/debug/kfd/rls: permission denied. Run as root."), std::string::npos);
  EXPECT_NE(table_text({}, Sample{}).find("No queues now."), std::string::npos);
}

TEST(View, text_is_broken_at_blanks_and_within_long_words) {
  EXPECT_EQ(broken("one two three", 8), (std::vector<std::string>{"one two", "three"}));
  EXPECT_EQ(broken("abcdefghij k", 4), (std::vector<std::string>{"abcd", "efgh", "ij k"}));
  EXPECT_TRUE(broken("", 10).empty());
  EXPECT_EQ(broken("ab", 0).size(), 2u);
}

}  // namespace
}  // namespace weir::watch
