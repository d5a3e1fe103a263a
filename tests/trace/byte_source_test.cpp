#include "trace/import/byte_source.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <random>

#include "base/error.h"
#include "trace/archive_testing.h"

namespace weir {
namespace {

std::string all_of(ByteSource& source, std::size_t chunk) {
  std::string text, buffer(chunk, '\0');
  while (const std::size_t got = source.read(buffer.data(), buffer.size())) text.append(buffer, 0, got);
  return text;
}

std::string noise(std::size_t size) {
  std::mt19937 random(7);
  std::string text(size, '\0');
  for (char& c : text) c = static_cast<char>('a' + random() % 16);
  return text;
}

TEST(ByteSource, peeking_takes_nothing) {
  const std::string text = noise(1000);
  const auto source = bytes_of(text);
  EXPECT_EQ(source->peek(10), text.substr(0, 10));
  EXPECT_EQ(source->peek(300), text.substr(0, 300));
  EXPECT_EQ(source->position(), 0U);
  std::string start(4, '\0');
  EXPECT_EQ(source->read(start.data(), 4), 4U);
  EXPECT_EQ(source->position(), 4U);
  EXPECT_EQ(source->peek(5000), text.substr(4));
  EXPECT_EQ(start + all_of(*source, 7), text);
  EXPECT_EQ(source->position(), 1000U);
}

TEST(ByteSource, unpacks_gzip_of_several_members) {
  const std::string first = noise(300'000), second = "the second";
  const std::string packed = gzip(first) + gzip(second);
  for (const std::size_t chunk : {1UL, 100UL, 1UL << 20}) {
    const auto source = bytes_of(packed);
    EXPECT_EQ(all_of(*source, chunk), first + second);
    EXPECT_EQ(source->problem(), "");
  }
  // What follows a complete file is ignored, as gunzip does.
  const std::string padded = gzip(second) + std::string(100, '\0');
  const auto source = bytes_of(padded);
  EXPECT_EQ(all_of(*source, 64), second);
  EXPECT_EQ(source->problem(), "");
}

TEST(ByteSource, broken_gzip_gives_what_there_was_and_says_so) {
  const std::string text = noise(200'000);
  std::string packed = gzip(text);
  const std::string cut = packed.substr(0, packed.size() / 2);
  auto source = bytes_of(cut);
  const std::string got = all_of(*source, 4096);
  EXPECT_GT(got.size(), 1000U);
  EXPECT_EQ(got, text.substr(0, got.size()));
  EXPECT_NE(source->problem().find("ends in the middle"), std::string::npos);

  packed[packed.size() / 2] = static_cast<char>(packed[packed.size() / 2] ^ 0x55);
  source = bytes_of(packed);
  all_of(*source, 4096);
  EXPECT_NE(source->problem().find("damaged"), std::string::npos);
}

TEST(ByteSource, files_that_are_none) {
  const auto folder = std::filesystem::temp_directory_path() / ("weir-bytes-" + std::to_string(::getpid()));
  std::filesystem::create_directories(folder);
  EXPECT_THROW(open_bytes(folder), Error);
  EXPECT_THROW(open_bytes(folder / "missing"), Error);
  std::ofstream(folder / "empty").flush();
  try {
    open_bytes(folder / "empty");
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("is empty"), std::string::npos);
  }
  std::ofstream(folder / "text") << "hello";
  EXPECT_EQ(all_of(*open_bytes(folder / "text"), 3), "hello");
  std::filesystem::remove_all(folder);
}

TEST(TarReader, members_in_order_whatever_was_read_of_them) {
  const std::string long_name(150, 'n');
  const std::string archive = tar_member("folder", "", '5') + tar_member("a.json", "first") +
                              tar_member("b.json", noise(1000)) +
                              tar_member("././@LongLink", long_name + std::string(1, '\0'), 'L') +
                              tar_member("cut", "third") + tar_member("empty", "") + std::string(1024, '\0');
  ASSERT_TRUE(TarReader::sniff(archive));
  const std::string packed = gzip(archive);
  const auto bytes = bytes_of(packed);
  TarReader tar(*bytes);
  std::string name;
  ByteSource* found = tar.next(&name);
  ASSERT_NE(found, nullptr);
  EXPECT_EQ(name, "a.json");
  EXPECT_EQ(found->peek(100), "first");
  found = tar.next(&name);  // nothing taken of the first
  ASSERT_NE(found, nullptr);
  EXPECT_EQ(name, "b.json");
  std::string part(10, '\0');
  found->read(part.data(), 10);
  found = tar.next(&name);
  ASSERT_NE(found, nullptr);
  EXPECT_EQ(name, long_name);
  EXPECT_EQ(all_of(*found, 2), "third");
  found = tar.next(&name);
  ASSERT_NE(found, nullptr);
  EXPECT_EQ(name, "empty");
  EXPECT_EQ(all_of(*found, 2), "");
  EXPECT_EQ(tar.next(&name), nullptr);
  EXPECT_EQ(tar.problem(), "");
}

TEST(TarReader, broken_archives_end_with_a_word) {
  const std::string archive = tar_member("a", noise(2000)) + tar_member("b", noise(100));
  EXPECT_FALSE(TarReader::sniff(noise(600)));
  EXPECT_FALSE(TarReader::sniff(archive.substr(0, 100)));
  const std::string cut = archive.substr(0, 1500);
  const auto bytes = bytes_of(cut);
  TarReader tar(*bytes);
  std::string name;
  ByteSource* const found = tar.next(&name);
  ASSERT_NE(found, nullptr);
  EXPECT_EQ(all_of(*found, 64).size(), 1500U - 512U);
  EXPECT_NE(found->problem(), "");
  EXPECT_EQ(tar.next(&name), nullptr);

  std::string damaged = archive;
  damaged[512 + 2048 + 3] ^= 1;  // the second header
  const auto other = bytes_of(damaged);
  TarReader second(*other);
  ASSERT_NE(second.next(&name), nullptr);
  EXPECT_EQ(second.next(&name), nullptr);
  EXPECT_NE(second.problem().find("damaged"), std::string::npos);
}

TEST(ByteSource, many_small_members_fill_a_read) {
  std::string packed;
  for (int i = 0; i < 300; ++i) packed += gzip("x");
  const auto source = bytes_of(packed);
  std::string got(1000, '\0');
  EXPECT_EQ(source->read(got.data(), got.size()), 300U);
}

TEST(TarReader, posix_headers_tell_names_and_sizes) {
  const std::string long_name(150, 'n');
  const std::string facts = "160 path=" + long_name + "\n" + "9 size=5\n";
  ASSERT_EQ(facts.size(), 169U);
  // The size of a member beyond 8 GiB does not fit into its own header, which says 0 then.
  std::string large = tar_member("cut", "");
  large += "large" + std::string(507, '\0');
  const std::string archive =
      tar_member("PaxHeaders/cut", facts, 'x') + large + tar_member("b", "other") + std::string(1024, '\0');
  const auto bytes = bytes_of(archive);
  TarReader tar(*bytes);
  std::string name;
  ByteSource* found = tar.next(&name);
  ASSERT_NE(found, nullptr);
  EXPECT_EQ(name, long_name);
  EXPECT_EQ(all_of(*found, 3), "large");
  found = tar.next(&name);
  ASSERT_NE(found, nullptr);
  EXPECT_EQ(name, "b");
  EXPECT_EQ(all_of(*found, 3), "other");
  EXPECT_EQ(tar.next(&name), nullptr);
  EXPECT_EQ(tar.problem(), "");
}

TEST(TarReader, lies_in_posix_headers_are_passed_over) {
  for (const char* facts : {"", "9", "9 ", "0 path=a\n", "999999999999999999999 path=a\n", "500 path=a\n", "2 path=a\n",
                            "x path=a\n", "10 size=-1\n", "9 path=\n"}) {
    const std::string archive = tar_member("h", facts, 'x') + tar_member("name", "text");
    const auto bytes = bytes_of(archive);
    TarReader tar(*bytes);
    std::string name;
    ByteSource* const found = tar.next(&name);
    ASSERT_NE(found, nullptr) << facts;
    EXPECT_EQ(name, "name") << facts;
    EXPECT_EQ(all_of(*found, 64), "text") << facts;
  }
}

TEST(TarReader, an_archive_that_ends_in_what_is_passed_over_says_so) {
  const std::string archive = tar_member("a", noise(2000));
  const std::string cut = archive.substr(0, 1500);
  const auto bytes = bytes_of(cut);
  TarReader tar(*bytes);
  std::string name;
  ASSERT_NE(tar.next(&name), nullptr);
  EXPECT_EQ(tar.next(&name), nullptr);
  EXPECT_NE(tar.problem().find("ends in the middle"), std::string::npos);
}

}  // namespace
}  // namespace weir
