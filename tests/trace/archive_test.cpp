// Packed traces and archives of every kind, made by libarchive's writer.
#include "trace/import/archive.h"

#include <gtest/gtest.h>
#include <weir_build.h>

#include <random>

#include "archive_testing.h"
#include "importer_testing.h"

#if WEIR_HAVE_LIBARCHIVE
#include <archive.h>
#include <archive_entry.h>
#endif

namespace weir {
namespace {

const std::string kKineto =
    R"({"traceEvents": [{"ph": "X", "cat": "kernel", "name": "k", "ts": 1, "dur": 2, "args": {"device": 0, "stream": 7}}]})";

#if WEIR_HAVE_LIBARCHIVE

struct PackedMember {
  std::string name, contents;
};

// `filter` packs the whole; without members named, one stream.
std::string archived(int filter, int format, const std::vector<PackedMember>& members) {
  archive* const made = ::archive_write_new();
  std::string packed;
  EXPECT_EQ(::archive_write_add_filter(made, filter), ARCHIVE_OK);
  EXPECT_EQ(::archive_write_set_format(made, format), ARCHIVE_OK);
  ::archive_write_set_bytes_in_last_block(made, 1);
  const auto write = [](archive*, void* to, const void* bytes, std::size_t size) -> la_ssize_t {
    static_cast<std::string*>(to)->append(static_cast<const char*>(bytes), size);
    return static_cast<la_ssize_t>(size);
  };
  EXPECT_EQ(::archive_write_open(made, &packed, nullptr, write, nullptr), ARCHIVE_OK);
  for (const PackedMember& member : members) {
    archive_entry* const entry = ::archive_entry_new();
    const bool is_folder = member.name.ends_with('/');
    ::archive_entry_set_pathname(entry, member.name.c_str());
    ::archive_entry_set_filetype(entry, is_folder ? AE_IFDIR : AE_IFREG);
    ::archive_entry_set_perm(entry, 0644);
    if (!is_folder) ::archive_entry_set_size(entry, static_cast<la_int64_t>(member.contents.size()));
    EXPECT_EQ(::archive_write_header(made, entry), ARCHIVE_OK);
    EXPECT_EQ(::archive_write_data(made, member.contents.data(), member.contents.size()),
              static_cast<la_ssize_t>(member.contents.size()));
    ::archive_entry_free(entry);
  }
  EXPECT_EQ(::archive_write_close(made), ARCHIVE_OK);
  ::archive_write_free(made);
  return packed;
}

std::string packed_by(int filter, const std::string& contents) {
  return archived(filter, ARCHIVE_FORMAT_RAW, {{"data", contents}});
}

const std::vector<int>& filters() {
  static const std::vector<int> kFilters = {ARCHIVE_FILTER_ZSTD, ARCHIVE_FILTER_XZ, ARCHIVE_FILTER_BZIP2,
                                            ARCHIVE_FILTER_LZ4};
  return kFilters;
}

std::string contents_of(ByteSource& source, std::size_t step) {
  std::string all, part(step, '\0');
  while (const std::size_t got = source.read(part.data(), part.size())) all.append(part, 0, got);
  return all;
}

std::string scrambled(std::size_t size) {
  std::mt19937 random(5);
  std::string text(size, '\0');
  for (char& c : text) c = static_cast<char>(random());
  return text;
}

TEST(Archive, packed_streams_give_what_was_packed) {
  for (const int filter : filters())
    for (const std::string& contents : {std::string("x"), kKineto, scrambled(300'000), std::string(3'000'000, 'a')}) {
      const std::string packed = packed_by(filter, contents);
      EXPECT_TRUE(is_packed_stream(packed)) << filter;
      for (const std::size_t step : {std::size_t{7}, std::size_t{100'000}}) {
        const auto source = bytes_of(packed);
        EXPECT_TRUE(source->is_unpacked());
        EXPECT_EQ(contents_of(*source, step), contents) << filter;
        EXPECT_EQ(source->problem(), "");
      }
    }
}

TEST(Archive, a_packed_stream_that_is_cut_off_or_damaged_says_so) {
  const std::string contents = scrambled(300'000);
  for (const int filter : filters()) {
    std::string packed = packed_by(filter, contents);
    const auto cut = bytes_of(std::string_view(packed).substr(0, packed.size() / 2));
    EXPECT_LT(contents_of(*cut, 1000).size(), contents.size());
    EXPECT_NE(cut->problem(), "") << filter;
    for (std::size_t i = packed.size() / 2; i < packed.size() / 2 + 40; ++i) packed[i] = static_cast<char>(~packed[i]);
    const auto damaged = bytes_of(packed);
    const std::string got = contents_of(*damaged, 1000);
    EXPECT_TRUE(got != contents || !damaged->problem().empty()) << filter;
  }
}

TEST(Archive, names_of_methods_alone_are_no_packed_stream) {
  for (const char* text : {"BZh", "BZhello, this is a text", "", "(", "PK", "{\"a\": 1}"}) {
    EXPECT_FALSE(is_packed_stream(text)) << text;
    EXPECT_FALSE(is_zip(text)) << text;
  }
}

ImportedTrace import_packed(const std::string& name, const std::string& bytes) {
  const ScratchFolder folder;
  return std::move(import_traces({folder.write(name.c_str(), bytes)}, {}).front());
}

TEST(Archive, a_trace_is_read_however_it_is_packed) {
  for (const int filter : filters())
    EXPECT_EQ(import_packed("t.json.pack", packed_by(filter, kKineto)).timeline.spans.size(), 1U);
  // An archive in a packed stream, and packed traces in an archive.
  const std::string tar =
      tar_member("rank0.json", kKineto) + tar_member("rank1.json", kKineto) + std::string(1024, '\0');
  for (const int filter : filters()) {
    const ImportedTrace trace = import_packed("t.tar.pack", packed_by(filter, tar));
    EXPECT_EQ(trace.timeline.spans.size(), 2U) << filter;
    EXPECT_EQ(trace.timeline.processes.size(), 2U) << filter;
    const std::string mixed =
        tar_member("a.json.pack", packed_by(filter, kKineto)) + tar_member("b.json.gz", gzip(kKineto));
    EXPECT_EQ(import_packed("mixed.tar", mixed).timeline.spans.size(), 2U) << filter;
  }
}

TEST(Archive, the_members_of_a_zip_are_processes) {
  const std::string zip = archived(ARCHIVE_FILTER_NONE, ARCHIVE_FORMAT_ZIP,
                                   {{"run/", ""},
                                    {"run/readme.txt", "how it was made"},
                                    {"run/rank0.json", kKineto},
                                    {"run/rank1.json.gz", gzip(kKineto)},
                                    {"run/rank2.json.zst", packed_by(ARCHIVE_FILTER_ZSTD, kKineto)}});
  EXPECT_TRUE(is_zip(zip));
  const ImportedTrace trace = import_packed("t.zip", zip);
  EXPECT_EQ(trace.timeline.spans.size(), 3U);
  ASSERT_EQ(trace.files.size(), 3U);
  EXPECT_TRUE(trace.files[0].name.ends_with("t.zip/run/rank0.json")) << trace.files[0].name;
  EXPECT_EQ(dropped(trace.timeline, "not a trace"), 1U);
  EXPECT_EQ(trace.timeline.processes.size(), 3U);
}

TEST(Archive, a_zip_that_is_cut_off_or_damaged_gives_what_it_has) {
  std::vector<PackedMember> members;
  for (int i = 0; i < 4; ++i) members.push_back({"rank" + std::to_string(i) + ".json", kKineto});
  members.push_back({"noise", scrambled(50'000)});
  const std::string zip = archived(ARCHIVE_FILTER_NONE, ARCHIVE_FORMAT_ZIP, members);
  const ImportedTrace cut = import_packed("cut.zip", zip.substr(0, zip.size() - 30'000));
  EXPECT_EQ(cut.timeline.spans.size(), 4U);
  EXPECT_EQ(dropped(cut.timeline, "damaged"), 1U);
  for (std::size_t size = 4; size < zip.size(); size += 997) {
    try {
      import_packed("cut.zip", zip.substr(0, size));
    } catch (const Error& error) {
      EXPECT_EQ(error.fault, Fault::input);
    }
  }
  for (unsigned seed = 0; seed < 60; ++seed) {
    std::mt19937 random(seed);
    std::string damaged = zip;
    for (int i = 0; i < 20; ++i) damaged[random() % 2000] = static_cast<char>(random());
    try {
      import_packed("damaged.zip", damaged);
    } catch (const Error& error) {
      EXPECT_EQ(error.fault, Fault::input);
    }
  }
  EXPECT_THROW(import_packed("empty.zip", archived(ARCHIVE_FILTER_NONE, ARCHIVE_FORMAT_ZIP, {})), Error);
}

// Zeros pack to next to nothing, so a small file could keep a reader busy for hours.
TEST(Archive, what_unpacks_to_thousands_of_times_its_size_is_stopped) {
  const std::string block = packed_by(ARCHIVE_FILTER_ZSTD, std::string(std::size_t{64} << 20, '\0'));
  std::string zeros;
  for (int i = 0; i < 8; ++i) zeros += block;  // frames follow each other
  EXPECT_LT(zeros.size(), 200'000U);
  const auto source = bytes_of(zeros);
  std::uint64_t size = 0;
  std::string part(1 << 20, '\0');
  while (const std::size_t got = source->read(part.data(), part.size())) size += got;
  EXPECT_LT(size, std::uint64_t{300} << 20);
  EXPECT_NE(source->problem().find("more than 1000 times"), std::string::npos) << source->problem();
}

#if WEIR_HAVE_SQLITE
TEST(Archive, a_packed_database_is_read_from_memory) {
  const std::string database = database_of("CREATE TABLE a(b)");
  const std::string packed = packed_by(ARCHIVE_FILTER_XZ, database);
  EXPECT_EQ(import_packed("packed.sqlite", packed_by(ARCHIVE_FILTER_ZSTD, kKineto)).timeline.spans.size(), 1U);
  try {
    import_packed("t.sqlite", packed);
    ADD_FAILURE() << "it has no tables of a trace";
  } catch (const Error& error) {
    EXPECT_EQ(std::string(error.what()).find("not an SQLite database"), std::string::npos) << error.what();
  }
}
#endif

#else

TEST(Archive, without_libarchive_the_message_says_what_to_do) {
  for (const std::string& start : {std::string("\x28\xb5\x2f\xfd rest"), std::string("PK\x03\x04 rest of it")}) {
    try {
      const auto source = bytes_of(start);
      zip_members(*source);
      ADD_FAILURE() << "not rejected";
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find("libarchive was not found"), std::string::npos);
      EXPECT_NE(error.hint.find("libarchive-dev"), std::string::npos);
    }
  }
}

#endif

}  // namespace
}  // namespace weir
