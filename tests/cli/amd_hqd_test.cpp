// weir amd hqd, as a user meets it.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "base/json.h"
#include "cli/program.h"
#include "cli/queues_checks.h"
#include "support/kfd_text.h"

namespace weir::testing {
namespace {

void save(const std::string& path, const std::string& text) { std::ofstream(path, std::ios::binary) << text; }

class AmdHqd : public ::testing::Test {
 protected:
  AmdHqd() : scene_(random_scene(4, Gfx::gfx9_4_3)) {}
  Scene scene_;
  Folder folder_;
};

TEST_F(AmdHqd, files_are_told_apart_by_content) {
  save(folder_ / "one", hqds_text(scene_));
  save(folder_ / "two", rls_text(scene_));
  save(folder_ / "three", mqds_text(scene_));
  const Outcome outcome = weir({"amd", "hqd", folder_ / "two", folder_ / "one", folder_ / "three"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_TRUE(has(outcome.out, "compute queue")) << outcome.out;
  EXPECT_TRUE(has(outcome.out, "hqds, mqds, rls"));
  expect_narrow(outcome.out);
}

TEST_F(AmdHqd, a_folder_and_the_running_kernel_give_the_same_queues) {
  write_snapshot(scene_, folder_.path() / "snapshot");
  write_debugfs(scene_, folder_.path() / "debug");
  write_sysfs(scene_, folder_.path() / "sys");
  const Outcome stored = weir({"amd", "hqd", folder_ / "snapshot", "--json"});
  ASSERT_EQ(stored.code, 0) << stored.err;
  const Outcome live =
      weir({"amd", "hqd", "--live", "--debugfs", folder_ / "debug", "--sysfs", folder_ / "sys", "--json"});
  ASSERT_EQ(live.code, 0) << live.err;
  const Json first = Json::parse(stored.out), second = Json::parse(live.out);
  EXPECT_EQ(first["schema"], "weir.amd_hqd/2");
  EXPECT_EQ(first["queues"].size(), scene_.queues.size());
  EXPECT_EQ(first["queues"], second["queues"]);
  EXPECT_EQ(first["verdict"], second["verdict"]);
  EXPECT_TRUE(first["taken_ns"].is_null());
  EXPECT_TRUE(second["taken_ns"].is_number());
}

TEST_F(AmdHqd, documents_are_valid) {
  for (const Gfx gfx : {Gfx::gfx9, Gfx::gfx9_4_3, Gfx::gfx12}) {
    const std::string at = folder_ / std::to_string(static_cast<int>(gfx));
    write_snapshot(random_scene(2, gfx), at);
    ASSERT_EQ(weir({"amd", "hqd", at, "--json", "-o", at + ".json"}).code, 0);
    expect_valid_as(at + ".json", "weir.amd_hqd.2.json");
  }
  // And of one file alone, where most is null.
  save(folder_ / "mqds.txt", mqds_text(scene_));
  ASSERT_EQ(weir({"amd", "hqd", folder_ / "mqds.txt", "--json", "-o", folder_ / "alone.json"}).code, 0);
  expect_valid_as(folder_ / "alone.json", "weir.amd_hqd.2.json");
}

TEST_F(AmdHqd, all_reports_are_written_and_kept) {
  write_snapshot(scene_, folder_.path() / "snapshot");
  const std::string output = folder_ / "report.md";
  const Outcome first = weir({"amd", "hqd", folder_ / "snapshot", "--format", "markdown", "--full", "-o", output});
  EXPECT_EQ(first.code, 0) << first.err;
  EXPECT_TRUE(has(first.out, "Written to"));
  EXPECT_EQ(weir({"amd", "hqd", folder_ / "snapshot", "-o", output}).code, 2);
  const Outcome forced = weir({"amd", "hqd", folder_ / "snapshot", "-o", output, "--force", "--quiet"});
  EXPECT_EQ(forced.code, 0) << forced.err;
  EXPECT_TRUE(forced.out.empty());
}

TEST_F(AmdHqd, stale_slots_are_no_queues) {
  KfdTextOptions options;
  options.stale_slots = 6;
  Scene scene = scene_;
  scene.queues.clear();
  save(folder_ / "hqds", hqds_text(scene, options));
  save(folder_ / "mqds", mqds_text(scene, options));
  const Outcome outcome = weir({"amd", "hqd", folder_ / "hqds", folder_ / "mqds"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_TRUE(has(outcome.out, "No compute queue exists.")) << outcome.out;
  const Json document = Json::parse(weir({"amd", "hqd", folder_ / "hqds", folder_ / "mqds", "--json"}).out);
  EXPECT_TRUE(document["queues"].empty());
  EXPECT_FALSE(document["stale_slots"].empty());
}

TEST_F(AmdHqd, bad_input_is_refused_by_name) {
  save(folder_ / "empty", "");
  save(folder_ / "binary", std::string("\x7f"
                                       "ELF\0\1\2\3",
                                       8));
  save(folder_ / "names", "Node 2:\nCP_HQD_ACTIVE = 0x1\n");
  save(folder_ / "words", "hello\n");
  std::filesystem::create_directories(folder_ / "nothing");
  for (const char* const name : {"empty", "binary", "names", "words", "nothing", "missing"}) {
    const Outcome outcome = weir({"amd", "hqd", folder_ / name});
    EXPECT_EQ(outcome.code, 2) << name;
    EXPECT_TRUE(has(outcome.err, name)) << outcome.err;
  }
  EXPECT_TRUE(has(weir({"amd", "hqd", folder_ / "names"}).err, "no kernel prints"));
  EXPECT_EQ(weir({"amd", "hqd"}).code, 2);
  EXPECT_EQ(weir({"amd", "hqd", "--live", folder_ / "words"}).code, 2);
}

// Its files are there: the message must not say that they are not.
TEST_F(AmdHqd, a_folder_of_files_that_cannot_be_used_says_why) {
  std::filesystem::create_directories(folder_ / "garbage");
  save(folder_ / "garbage/hqds", "hello\n");
  const Outcome outcome = weir({"amd", "hqd", folder_ / "garbage"});
  EXPECT_EQ(outcome.code, 2);
  EXPECT_TRUE(has(outcome.err, "garbage/hqds: not text of hqds")) << outcome.err;
}

TEST_F(AmdHqd, all_slots_are_told_with_their_pointers) {
  write_snapshot(scene_, folder_.path() / "snapshot");
  const Outcome outcome = weir({"amd", "hqd", folder_ / "snapshot", "--full"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_TRUE(has(outcome.out, "Slots in use")) << outcome.out;
  EXPECT_TRUE(has(outcome.out, "VMID")) << outcome.out;
  expect_narrow(outcome.out);
}

TEST_F(AmdHqd, a_kernel_that_shows_nothing_is_a_failed_run_with_a_cure) {
  const Outcome outcome = weir({"amd", "hqd", "--live", "--debugfs", folder_ / "debug", "--sysfs", folder_ / "sys"});
  EXPECT_EQ(outcome.code, 1);
  EXPECT_TRUE(has(outcome.err, "debug/kfd/hqds")) << outcome.err;
  EXPECT_TRUE(has(outcome.err, "mount -t debugfs none")) << outcome.err;
}

TEST_F(AmdHqd, another_kernels_rows_are_named_and_the_rest_is_told) {
  std::string text = hqds_text(scene_);
  std::size_t at = 0;
  for (int i = 0; i < 12; ++i) at = text.find('\n', at) + 1;
  text.erase(at, text.find('\n', at) + 1 - at);
  save(folder_ / "hqds", text + "something else\n");
  const Outcome outcome = weir({"amd", "hqd", folder_ / "hqds"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_TRUE(has(outcome.out, "What was not read")) << outcome.out;
  EXPECT_TRUE(has(outcome.out, "not a line of hqds")) << outcome.out;
  EXPECT_TRUE(has(outcome.out, "48")) << outcome.out;
  expect_narrow(outcome.out);
}

}  // namespace
}  // namespace weir::testing
