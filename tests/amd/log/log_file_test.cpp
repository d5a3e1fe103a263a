// A file is read alike whoever reads it: by blocks and threads, as a stream, packed.
#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>
#include <zlib.h>

#include <filesystem>
#include <fstream>
#include <random>

#include "amd/log/log_blocks.h"
#include "amd/log/log_document.h"
#include "base/error.h"
#include "support/amd_log_text.h"

namespace weir::amd {
namespace {

namespace fs = std::filesystem;
using testing::amd_log_text;
using testing::Gfx;
using testing::LogTextOptions;
using testing::random_scene;

class Scratch {
 public:
  Scratch() {
    std::string name = (fs::temp_directory_path() / "weir-amd-log-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error("mkdtemp failed");
    path_ = name;
  }
  ~Scratch() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  fs::path write(const char* name, const std::string& text) const {
    std::ofstream(path_ / name, std::ios::binary) << text;
    return path_ / name;
  }
  fs::path pack(const char* name, const std::string& text) const {
    gzFile file = gzopen((path_ / name).c_str(), "wb");
    gzwrite(file, text.data(), static_cast<unsigned>(text.size()));
    gzclose(file);
    return path_ / name;
  }

 private:
  fs::path path_;
};

Json document_of(SummarisedLog log) {
  log.file = "file";
  std::vector<SummarisedLog> logs;
  logs.push_back(std::move(log));
  return log_document(logs);
}

Json read_file(const fs::path& path, unsigned threads) {
  SummarisedLog log;
  LogOptions options;
  options.threads = threads;
  log.reading = read_log(path, log.summary, options);
  return document_of(std::move(log));
}

Json read_text(const std::string& text) {
  SummarisedLog log;
  log.reading = read_log_text(text, "text", log.summary);
  return document_of(std::move(log));
}

// Records of several processes, with what else a file may hold in between: lines that are too long, holes, nothing.
std::string mixed_text(std::uint64_t seed, std::size_t least) {
  std::mt19937_64 random(seed);
  std::string text;
  for (std::uint64_t part = 0; text.size() < least; ++part) {
    LogTextOptions options;
    options.has_noise = true;
    options.is_glued = part % 2 == 0;
    options.rocm = part % 3 == 0 ? 60 : 70;
    options.level = part % 5 == 4 ? 3 : 4;
    text += amd_log_text(random_scene(random() % 1000, Gfx::gfx10), options);
    switch (random() % 6) {
      case 0:
        text += std::string(60'000 + random() % 20'000, 'x') + "\n";
        break;
      case 1:
        text += std::string(random() % 300'000, '\0') + "\n";
        break;
      case 2:
        text += std::string(random() % 700'000, 'y') + "\n";
        break;
      case 3:
        text += "\n\n\n";
        break;
      default:
        break;
    }
  }
  return text;
}

TEST(AmdLogFile, is_read_alike_by_any_number_of_threads_as_a_stream_and_packed) {
  const Scratch scratch;
  for (std::uint64_t seed = 1; seed <= 3; ++seed) {
    std::string text = mixed_text(seed, 1'200'000);
    if (seed % 2 == 0) text += ":4:rocvirtual.cpp           :1083: 20161701400 us: [pid:1 tid: 0x1] SWq=0x1, HWq=0x";
    const Json stream = read_text(text);
    const fs::path plain = scratch.write("plain.log", text);
    EXPECT_EQ(read_file(plain, 1), stream) << seed;
    EXPECT_EQ(read_file(plain, 2), stream) << seed;
    EXPECT_EQ(read_file(plain, 5), stream) << seed;
    EXPECT_EQ(read_file(scratch.pack("packed.log.gz", text), 0), stream) << seed;
    EXPECT_GT(stream["files"][0]["records"].get<std::uint64_t>(), 1000u);
    EXPECT_FALSE(stream["files"][0]["unread"].empty());
  }
}

TEST(AmdLogFile, each_line_is_in_one_block_wherever_blocks_end) {
  const Scratch scratch;
  const std::string line =
      ":3:rocdevice.cpp            :2967: 20161701400 us: [pid:1 tid: 0x1] releaseQueue refCount:0x20 (1)\n";
  // An end of a line on each of the bytes around the block's end.
  for (std::size_t shift = 0; shift < line.size() + 2; shift += shift % 8 == 0 ? 1 : 7) {
    std::string text = std::string(LogFile::kBlock - 4 * line.size() + shift, 'z');
    text += "\n";
    std::size_t lines = 1;
    for (; text.size() < 2 * LogFile::kBlock + 500; ++lines) text += line;
    SummarisedLog log;
    LogOptions options;
    options.threads = 1;
    log.reading = read_log(scratch.write("edge.log", text), log.summary, options);
    ASSERT_EQ(log.reading.lines, lines) << shift;
    ASSERT_EQ(log.reading.records, lines - 1) << shift;
  }
}

TEST(AmdLogFile, rejects_what_is_missing_empty_or_a_folder) {
  const Scratch scratch;
  LogSummary summary;
  EXPECT_THROW(read_log("/nonexistent/amd.log", summary), Error);
  EXPECT_THROW(read_log(scratch.write("empty.log", ""), summary), Error);
  EXPECT_THROW(read_log(fs::temp_directory_path(), summary), Error);
}

TEST(AmdLogFile, a_packed_file_that_ends_early_is_read_as_far_as_it_goes) {
  const Scratch scratch;
  const std::string text = mixed_text(9, 1'000'000);
  const fs::path whole = scratch.pack("whole.gz", text);
  fs::resize_file(whole, fs::file_size(whole) / 2);
  SummarisedLog log;
  log.reading = read_log(whole, log.summary);
  EXPECT_FALSE(log.reading.problem.empty());
  EXPECT_GT(log.reading.records, 0u);
}

TEST(AmdLogFile, a_real_log_of_16_streams) {
  const char* const folder = std::getenv("WEIR_REAL_DATA");
  if (folder == nullptr) GTEST_SKIP() << "WEIR_REAL_DATA does not name the folder of real captures";
  SummarisedLog log;
  log.reading = read_log(fs::path(folder) / "amd/mi308x_16streams_level3.log", log.summary);
  ASSERT_EQ(log.summary.processes().size(), 1u);
  const ProcessSummary& process = log.summary.processes()[0];
  EXPECT_EQ(process.streams.size(), 16u);
  ASSERT_EQ(process.queues.size(), 4u);
  for (std::size_t i = 0; i < 4; ++i) {
    const QueueSummary& queue = process.queues[i];
    EXPECT_EQ(queue.streams_most, 4);
    EXPECT_EQ(queue.packets, 16384u);
    ASSERT_TRUE(queue.creation_ns().has_value());
    EXPECT_GE(*queue.creation_ns(), i == 0 ? 9'170'000 : 4'500'000);
    EXPECT_LE(*queue.creation_ns(), i == 0 ? 9'190'000 : 4'640'000);
    EXPECT_EQ(queue.named, 24u);
  }
  EXPECT_EQ(log_verdicts(process, log.reading).at(0), "16 streams share 4 hardware queues, 4 each.");
  EXPECT_EQ(log_verdicts(process, log.reading).at(1),
            "Creating a queue took 9.18 ms the first time and 4.50 ms to 4.63 ms later (3 queues).");
  EXPECT_TRUE(log.reading.unread.empty());
}

}  // namespace
}  // namespace weir::amd
