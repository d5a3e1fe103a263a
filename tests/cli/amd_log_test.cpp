// Drives `weir amd log`: what it tells of a log, and what it says of files that are none.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "base/json.h"
#include "cli/program.h"
#include "cli/queues_checks.h"
#include "support/amd_log_text.h"

namespace weir::testing {
namespace {

class AmdLog : public ::testing::Test {
 protected:
  Folder folder;

  std::string put(const std::string& name, const std::string& text) const {
    std::ofstream(folder / name, std::ios::binary) << text;
    return folder / name;
  }
  std::string scene(const std::string& name, int level, int streams = 16) const {
    LogTextOptions options;
    options.level = level;
    options.has_noise = options.is_glued = options.has_long_messages = true;
    return put(name, amd_log_text(sequential_scene(streams, 4, 5), options));
  }
};

TEST_F(AmdLog, says_first_how_streams_share_queues) {
  const Outcome outcome = weir({"amd", "log", scene("a.log", 4)});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_TRUE(has(outcome.out, "16 streams share 4 hardware queues, 4 each.")) << outcome.out;
  EXPECT_TRUE(has(outcome.out, "Creating a queue took 9.18 ms the first time")) << outcome.out;
  EXPECT_TRUE(has(outcome.out, "0x7f8acd200000")) << outcome.out;
  EXPECT_TRUE(has(outcome.out, "Process 17")) << outcome.out;
  expect_narrow(outcome.out);
  EXPECT_EQ(outcome.out.find('\x1b'), std::string::npos);
}

TEST_F(AmdLog, level_3_says_what_it_rests_on) {
  const Outcome outcome = weir({"amd", "log", scene("a.log", 3)});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_TRUE(has(outcome.out, "16 streams share 4 hardware queues, 4 each.")) << outcome.out;
  EXPECT_TRUE(has(outcome.out, "grouped by their order")) << outcome.out;
  EXPECT_TRUE(has(outcome.out, "No packets in this log")) << outcome.out;
}

TEST_F(AmdLog, the_document_is_valid_and_has_totals_of_all_files) {
  const std::string a = scene("a.log", 4), b = scene("b.log", 3, 8);
  const Outcome outcome = weir({"amd", "log", a, b, "--json", "-o", folder / "log.json"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  const Json document = read_json(folder / "log.json");
  EXPECT_EQ(document["files"].size(), 2u);
  EXPECT_EQ(document["totals"]["launches"], 16 * 5 + 8 * 5);
  EXPECT_EQ(document["totals"]["queues"], 8);
  EXPECT_TRUE(document["files"][1]["processes"][0]["pid"].is_null());
  EXPECT_TRUE(document["files"][1]["processes"][0]["backlog_packets"].is_null());
  const Outcome again = weir({"amd", "log", a, "-o", folder / "log.json"});
  EXPECT_EQ(again.code, 2);
  EXPECT_EQ(weir({"amd", "log", a, "-o", folder / "log.json", "--force", "--quiet"}).out, "");
  EXPECT_EQ(weir({"amd", "log", a, "--json", "-o", folder / "log.json", "--force"}).code, 0);
  expect_valid_as(folder / "log.json", "weir.amd_log.2.json");
}

TEST_F(AmdLog, markdown_has_tables) {
  const Outcome outcome = weir({"amd", "log", scene("a.log", 4), "--format", "markdown"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_TRUE(has(outcome.out, "| HWq |")) << outcome.out;
}

TEST_F(AmdLog, names_never_reach_the_terminal_as_commands) {
  const Outcome outcome = weir(
      {"amd", "log",
       put("evil.log",
           ":3:rocvirtual.cpp           :3351: 20161701384 us: [pid:4 tid: 0x7f8edc1c4400] ShaderName : a\x1b]0;x\x07"
           "b\n:4:rocvirtual.cpp           :1083: 20161701400 us: [pid:4 tid: 0x7f8edc1c4400] SWq=0x1, HWq=0x2, id=1, "
           "Dispatch Header = 0xb02 (type=2), grid=[1, 1, 1], workgroup=[1, 1, 1], completion_signal=0x0, rptr=0, "
           "wptr=0\n:1:rocdevice.cpp            :1 : 20161701401 us: [pid:4 tid: 0x7f8edc1c4400] bad \x1b[2J\n")});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_TRUE(has(outcome.out, "bad")) << outcome.out;
  EXPECT_EQ(outcome.out.find('\x1b'), std::string::npos);
  EXPECT_EQ(outcome.out.find('\x07'), std::string::npos);
}

TEST_F(AmdLog, rejects_what_is_no_log) {
  const auto rejected = [&](const std::string& path) {
    const Outcome outcome = weir({"amd", "log", path});
    EXPECT_EQ(outcome.code, 2) << outcome.out;
    EXPECT_TRUE(has(outcome.err, std::filesystem::path(path).filename().string())) << outcome.err;
    return outcome.err;
  };
  EXPECT_TRUE(has(rejected(put("text.log", "hello\n")), "AMD_LOG_LEVEL=5"));
  EXPECT_TRUE(has(rejected(put("binary", std::string(10000, '\2'))), "binary"));
  EXPECT_TRUE(has(rejected(put("empty.log", "")), "is empty"));
  rejected(folder / "missing.log");
  EXPECT_EQ(weir({"amd", "log"}).code, 2);
  EXPECT_EQ(weir({"amd", "log", scene("a.log", 4), "--top", "0"}).code, 2);
}

}  // namespace
}  // namespace weir::testing
