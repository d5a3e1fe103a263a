#include "trace/import/protobuf_reader.h"

#include <gtest/gtest.h>

#include <memory>

#include "protobuf_testing.h"

namespace weir {
namespace {

// Hands out a few bytes at a time, as a pipe may.
class DripSource : public ByteSource {
 public:
  DripSource(std::string text, std::size_t step) : text_(std::move(text)), step_(step) {}

 protected:
  std::size_t fetch(char* to, std::size_t capacity) override {
    const std::size_t count = std::min({capacity, step_, text_.size() - at_});
    text_.copy(to, count, at_);
    at_ += count;
    return count;
  }

 private:
  std::string text_;
  std::size_t step_, at_ = 0;
};

Proto every_type() {
  return Proto()
      .number(1, 0)
      .number(2, 300)
      .number(536'870'911, UINT64_MAX)
      .signed_number(3, -2)
      .fixed64(4, 0x0102030405060708)
      .fixed32(5, 0xfffffffe)
      .real(6, 0.25)
      .text(7, "some text")
      .text(8, "");
}

TEST(Protobuf, a_message_has_fields_of_every_type) {
  const std::string bytes = every_type().bytes();
  ProtobufMessage message(bytes);
  const auto next = [&] {
    EXPECT_TRUE(message.next());
    return message.field();
  };
  EXPECT_TRUE(next().is(1, ProtobufType::varint));
  EXPECT_EQ(message.field().value, 0U);
  EXPECT_EQ(next().value, 300U);
  EXPECT_EQ(next().value, UINT64_MAX);
  EXPECT_EQ(message.field().number, 536'870'911U);
  EXPECT_EQ(next().signed_value(), -2);
  EXPECT_EQ(next().value, 0x0102030405060708U);
  EXPECT_TRUE(next().is(5, ProtobufType::fixed32));
  EXPECT_EQ(message.field().value, 0xfffffffeU);
  EXPECT_EQ(next().value, 0x3fd0000000000000U) << "0.25";
  EXPECT_EQ(next().bytes, "some text");
  EXPECT_TRUE(next().is(8, ProtobufType::bytes));
  EXPECT_EQ(message.field().bytes, "");
  EXPECT_FALSE(message.next());
  EXPECT_FALSE(message.is_damaged());
}

TEST(Protobuf, what_is_no_message_is_called_damaged) {
  const std::string long_varint(10, '\xff');
  for (const std::string& bytes :
       {std::string("\x08"), std::string("\x08\x80"), "\x08" + long_varint + "\x01",
        std::string("\x0a\x05"
                    "abcd"),
        "\x0a" + long_varint,
        std::string("\x09"
                    "1234567"),
        std::string("\x0d"
                    "123"),
        std::string("\x00\x01", 2), std::string("\x0b"), std::string("\x0c"), std::string("\x0e\x01"),
        std::string("\x0f\x01"), std::string("\xf8\xff\xff\xff\x7f\x01"), long_varint}) {
    ProtobufMessage message(bytes);
    EXPECT_FALSE(message.next()) << bytes.size();
    EXPECT_TRUE(message.is_damaged()) << bytes.size();
    EXPECT_FALSE(message.next());
  }
}

TEST(Protobuf, every_cut_of_a_message_ends_in_time) {
  const std::string whole = every_type().bytes();
  for (std::size_t size = 0; size < whole.size(); ++size) {
    const auto exact = std::make_unique<char[]>(size + 1);  // not a byte more, for the sanitizer
    std::copy_n(whole.begin(), size, exact.get());
    ProtobufMessage message({exact.get(), size});
    std::size_t fields = 0;
    while (message.next()) ++fields;
    EXPECT_LT(fields, 9U) << size;
  }
}

TEST(Protobuf, a_file_gives_the_same_fields_however_it_arrives) {
  std::string bytes;
  for (std::uint64_t i = 0; i < 300; ++i)
    bytes += Proto().text(1, std::string(i * 17 % 5000, 'a')).number(2, i).bytes();
  for (const std::size_t step : {std::size_t{1}, std::size_t{7}, std::size_t{65536}, bytes.size()}) {
    DripSource source(bytes, step);
    ProtobufFile file(source, [](std::size_t) {});
    for (std::uint64_t i = 0; i < 300; ++i) {
      ASSERT_TRUE(file.next()) << step << " " << i;
      ASSERT_TRUE(file.field().is(1, ProtobufType::bytes));
      if (i % 3 != 0) {  // what is not read is skipped
        EXPECT_EQ(file.read(), std::string(i * 17 % 5000, 'a'));
      }
      ASSERT_TRUE(file.next());
      EXPECT_EQ(file.field().value, i);
    }
    EXPECT_FALSE(file.next());
    EXPECT_EQ(file.problem(), "");
  }
}

TEST(Protobuf, a_field_of_a_file_knows_its_place) {
  const std::string bytes = Proto().text(1, "abc").fixed32(2, 1).number(3, 1).bytes();
  DripSource source(bytes, 2);
  ProtobufFile file(source, [](std::size_t) {});
  for (const std::uint64_t at : {0U, 5U, 10U}) {
    ASSERT_TRUE(file.next());
    EXPECT_EQ(file.at(), at);
  }
}

TEST(Protobuf, memory_grows_with_what_is_there_and_not_with_what_is_claimed) {
  // Nearly 2^63 bytes, of which five are there.
  const std::string bytes = std::string("\x0a\xff\xff\xff\xff\xff\xff\xff\xff\x7f") + "short";
  DripSource source(bytes, 3);
  std::size_t charged = 0;
  ProtobufFile file(source, [&](std::size_t more) { charged += more; });
  ASSERT_TRUE(file.next());
  EXPECT_EQ(file.field().value, UINT64_MAX >> 1);
  EXPECT_EQ(file.read(), "short");
  EXPECT_FALSE(file.next());
  EXPECT_NE(file.problem().find("cut off"), std::string::npos);
  EXPECT_LE(charged, std::size_t{2} << 20);
}

TEST(Protobuf, a_file_ends_where_it_is_no_longer_one) {
  for (const std::string& tail : {std::string("\x0b"), std::string("\x00", 1), std::string(12, '\xff')}) {
    DripSource source(Proto().number(1, 5).bytes() + tail, 4);
    ProtobufFile file(source, [](std::size_t) {});
    EXPECT_TRUE(file.next());
    EXPECT_FALSE(file.next());
    EXPECT_NE(file.problem(), "");
    EXPECT_FALSE(file.next());
  }
  DripSource source("\x09short", 4);
  ProtobufFile file(source, [](std::size_t) {});
  EXPECT_FALSE(file.next());
  EXPECT_NE(file.problem().find("cut off"), std::string::npos);
}

}  // namespace
}  // namespace weir
