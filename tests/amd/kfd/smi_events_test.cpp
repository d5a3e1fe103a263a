// Lines of the driver's events: evictions and restores with the NUL in them, cut anywhere; what is none is counted.
#include "amd/kfd/smi_events.h"

#include <gtest/gtest.h>

namespace weir::kfd {
namespace {

using namespace std::string_literals;

const std::string kText =
    "9 177770879589000 -3934101 f7bc 2\n"
    "a 177770881230000 -3934101 f7bc \0\n"
    "1 3a2f:python\n"
    "9 177770900000000 -12 f7bc 0\n"
    "a 177770900500000 -12 f7bc R\n"s;

TEST(SmiEvents, reads_evictions_and_restores) {
  SmiEvents reader;
  reader.feed(kText);
  const auto events = reader.take();
  ASSERT_EQ(events.size(), 4u);
  EXPECT_FALSE(events[0].is_restore);
  EXPECT_EQ(events[0].at_ns, 177770879589000);
  EXPECT_EQ(events[0].pid, 3934101);
  EXPECT_EQ(events[0].gpu_id, 0xf7bcu);
  EXPECT_EQ(name_of(events[0].trigger), "ttm");
  EXPECT_TRUE(events[1].is_restore);
  EXPECT_FALSE(events[1].is_rescheduled);
  EXPECT_EQ(events[2].trigger, EvictionTrigger::svm);
  EXPECT_TRUE(events[3].is_rescheduled);
  EXPECT_EQ(reader.others()[1], 1u);
  EXPECT_TRUE(reader.unread().empty());
  EXPECT_TRUE(reader.take().empty());
}

TEST(SmiEvents, lines_may_be_cut_anywhere) {
  for (std::size_t size = 1; size <= kText.size(); ++size) {
    SmiEvents reader;
    for (std::size_t at = 0; at < kText.size(); at += size) reader.feed(std::string_view(kText).substr(at, size));
    EXPECT_EQ(reader.take().size(), 4u) << size;
    EXPECT_TRUE(reader.unread().empty()) << size;
  }
}

TEST(SmiEvents, counts_what_it_cannot_read) {
  SmiEvents reader;
  reader.feed("\nhello\n9 12 -3 f7bc\n9 12 3 f7bc 2\n9 12 -3 f7bc 2 5\na 1 -2 3 X\n9 99999999999999999999 -3 f 1\n");
  reader.feed(std::string(100'000, '9'));
  reader.feed("\n9 1 -2 3 77\n");
  const auto events = reader.take();
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0].trigger, EvictionTrigger::unknown);
  ASSERT_EQ(reader.unread().size(), 5u);
  EXPECT_EQ(reader.unread()[0].reason, "no event");
  EXPECT_EQ(reader.unread()[0].first_line, 2u);
  EXPECT_EQ(reader.unread()[1].count, 3u) << "fields are missing";
  EXPECT_EQ(reader.unread()[4].reason, "longer than a line of the driver");
  EXPECT_EQ(reader.unread()[4].first_line, 8u);
}

TEST(SmiEvents, a_restore_that_lost_its_nul_is_one) {
  SmiEvents reader;
  reader.feed("a 5 -6 7 \n");
  EXPECT_EQ(reader.take().size(), 1u);
}

}  // namespace
}  // namespace weir::kfd
