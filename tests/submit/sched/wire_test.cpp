#include "submit/sched/wire.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace weir::testing {
namespace {

using namespace weir::scheduler;

std::span<const std::byte> bytes_of(const std::string& packet) { return std::as_bytes(std::span(packet)); }

TEST(Wire, terms_read_back_as_written) {
  for (const Terms& terms : {Terms{}, Terms{-10, 0.01, 0}, Terms{10, 100, kLongestDeadlineNs}, Terms{3, 1.0 / 3, 1},
                             Terms{0, 1, 0, kShortestP99Ns}, Terms{0, 1, 0, kLongestP99Ns, true}}) {
    Terms read{7, 7, 7};
    ASSERT_TRUE(read_terms(write_terms(terms), &read)) << write_terms(terms);
    EXPECT_EQ(read.priority, terms.priority);
    EXPECT_EQ(read.weight, terms.weight);
    EXPECT_EQ(read.deadline_ns, terms.deadline_ns);
    EXPECT_EQ(read.p99_ns, terms.p99_ns);
    EXPECT_EQ(read.is_isolated, terms.is_isolated);
  }
  EXPECT_EQ(write_terms({10, 1, 0}), "priority=10;weight=1;deadline_ns=0");
  EXPECT_EQ(write_terms({10, 1, 0, 1'000'000, true}), "priority=10;weight=1;deadline_ns=0;p99_ns=1000000;isolated=1");
}

TEST(Wire, text_that_holds_no_terms_changes_nothing) {
  for (const char* text : {"",
                           ";",
                           "priority",
                           "priority=",
                           "priority=1x",
                           "priority= 1",
                           "priority=11",
                           "weight=0",
                           "weight=nan",
                           "weight=inf",
                           "deadline_ns=-1",
                           "deadline_ns=99999999999999999999",
                           "priority=1;priority=2",
                           "colour=red",
                           "priority=1;;weight=1",
                           "priority=1,weight=1",
                           "p99_ns=9999",
                           "p99_ns=-1",
                           "p99_ns=3600000000001",
                           "p99_ns=",
                           "isolated=2",
                           "isolated=",
                           "isolated=1;isolated=1"}) {
    Terms terms{4, 5, 6};
    EXPECT_FALSE(read_terms(text, &terms)) << text;
    EXPECT_EQ(terms.priority, 4) << text;
    EXPECT_EQ(terms.weight, 5) << text;
    EXPECT_EQ(terms.deadline_ns, 6) << text;
  }
  Terms terms{4, 5, 6};
  EXPECT_TRUE(read_terms("weight=2", &terms));
  EXPECT_EQ(terms.priority, 0) << "what is left out has its usual value";
}

TEST(Wire, requests_read_back_as_written) {
  Request read;
  const std::string packet = write_request({Ask::stop, {-3, 0.5, 12, 10'000, true}, "pro\x1bgram"});
  EXPECT_EQ(packet.size(), kRequestBytes);
  ASSERT_EQ(read_request(bytes_of(packet), &read), nullptr);
  EXPECT_EQ(read.ask, Ask::stop);
  EXPECT_EQ(read.terms.priority, -3);
  EXPECT_EQ(read.terms.weight, 0.5);
  EXPECT_EQ(read.terms.deadline_ns, 12);
  EXPECT_EQ(read.terms.p99_ns, 10'000);
  EXPECT_TRUE(read.terms.is_isolated);
  EXPECT_EQ(read.program, "pro?gram");
}

TEST(Wire, a_long_name_is_cut_between_characters) {
  std::string name(63, 'x');
  name += "\xc3\xa9";  // its second byte would be the 65th
  Request read;
  ASSERT_EQ(read_request(bytes_of(write_request({Ask::join, {}, name})), &read), nullptr);
  EXPECT_EQ(read.program, std::string(63, 'x'));
}

TEST(Wire, requests_out_of_range_are_refused) {
  for (const Terms& terms : {Terms{11, 1, 0}, Terms{0, std::nan(""), 0}, Terms{0, 0, 0}, Terms{0, 1, -1},
                             Terms{0, 1, std::numeric_limits<std::int64_t>::max()}}) {
    Request read;
    read.program = "unchanged";
    EXPECT_NE(read_request(bytes_of(write_request({Ask::join, terms, "x"})), &read), nullptr);
    EXPECT_EQ(read.program, "unchanged");
  }
  for (const std::int64_t ns : {std::int64_t{-1}, kShortestP99Ns - 1, kLongestP99Ns + 1}) {
    Request read;
    EXPECT_NE(read_request(bytes_of(write_request({Ask::join, {0, 1, 0, ns}, "x"})), &read), nullptr) << ns;
  }
  std::string packet = write_request({Ask::join, {}, "x"});
  packet[12] = 65;  // length of the name
  Request read;
  EXPECT_NE(read_request(bytes_of(packet), &read), nullptr);
}

TEST(Wire, replies_read_back_as_written) {
  Reply read;
  ASSERT_EQ(read_reply(bytes_of(write_reply({Answer::seat, 63, 4711, {}})), &read), nullptr);
  EXPECT_EQ(read.answer, Answer::seat);
  EXPECT_EQ(read.seat, 63U);
  EXPECT_EQ(read.board_bytes, 4711U);
  ASSERT_EQ(read_reply(bytes_of(write_reply({Answer::status, 0, 0, "{\n}"})), &read), nullptr);
  EXPECT_EQ(read.text, "{\n}") << "a document stays as it is";
  ASSERT_EQ(read_reply(bytes_of(write_reply({Answer::refused, 0, 0, "no\nway"})), &read), nullptr);
  EXPECT_EQ(read.text, "no?way");
}

TEST(Wire, every_part_of_a_packet_is_too_short) {
  const std::string request = write_request({Ask::join, {}, "x"}), reply = write_reply({Answer::refused, 0, 0, "why"});
  Request asked;
  Reply answered;
  for (std::size_t size = 0; size < request.size(); ++size)
    EXPECT_NE(read_request(bytes_of(request).first(size), &asked), nullptr) << size;
  for (std::size_t size = 0; size < reply.size(); ++size)
    EXPECT_NE(read_reply(bytes_of(reply).first(size), &answered), nullptr) << size;
  EXPECT_NE(read_reply(bytes_of(reply + "y"), &answered), nullptr);
}

}  // namespace
}  // namespace weir::testing
