// weir amd join as a user runs it: a capture folder, files by name, and what it says of bad ones.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include "base/json.h"
#include "cli/program.h"
#include "cli/queues_checks.h"
#include "support/amd_capture.h"

namespace weir::testing {
namespace {

namespace fs = std::filesystem;

std::string text_of(const fs::path& path) {
  std::ifstream file(path);
  std::ostringstream out;
  out << file.rdbuf();
  return out.str();
}

TEST(AmdJoinCli, tells_queues_of_a_capture_and_writes_the_timeline_into_its_folder) {
  CaptureFolder folder;
  write_capture(random_scene(3, Gfx::gfx9_4_3), folder.path());
  const Outcome outcome = weir({"amd", "join", folder.path().string()});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_NE(outcome.out.find("snapshots by ring base"), std::string::npos) << outcome.out;
  EXPECT_NE(outcome.out.find("Queues, from streams to hardware slots"), std::string::npos);
  EXPECT_NE(outcome.err.find("Timeline written to"), std::string::npos);
  EXPECT_TRUE(read_json(folder.path() / "timeline.json")["traceEvents"].is_array());
  // A second run leaves the file alone and takes another name.
  const std::string before = text_of(folder.path() / "timeline.json");
  std::ofstream(folder.path() / "timeline.json", std::ios::app) << " ";
  const Outcome again = weir({"amd", "join", folder.path().string()});
  EXPECT_EQ(again.code, 0);
  EXPECT_EQ(text_of(folder.path() / "timeline-2.json"), before);
  EXPECT_NE(text_of(folder.path() / "timeline.json"), before);
  EXPECT_EQ(weir({"amd", "join", folder.path().string(), "-f", "-q"}).code, 0);
  EXPECT_EQ(text_of(folder.path() / "timeline.json"), before);
}

TEST(AmdJoinCli, slots_of_several_gpus_are_told_apart_within_80_columns) {
  std::set<bool> seen;
  for (std::uint64_t seed = 1; seed < 40 && seen.size() < 2; ++seed) {
    const Scene scene = random_scene(seed, Gfx::gfx9_4_3);
    std::set<int> gpus;
    for (const SceneQueue& queue : scene.queues) gpus.insert(queue.gpu);
    const bool has_several = gpus.size() > 1;
    if (!seen.insert(has_several).second) continue;
    CaptureFolder folder;
    write_capture(scene, folder.path());
    const Outcome outcome = weir({"amd", "join", folder.path().string(), "--no-timeline", "--full"});
    ASSERT_EQ(outcome.code, 0) << outcome.err;
    const std::string id = fmt::format(" {:04x} ", scene.gpus[static_cast<std::size_t>(*gpus.begin())].gpu_id);
    EXPECT_EQ(outcome.out.find("  gpu  ") != std::string::npos, has_several) << outcome.out;
    EXPECT_EQ(outcome.out.find(id) != std::string::npos, has_several) << outcome.out;
    std::istringstream lines(outcome.out);
    for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 80u) << line;
  }
  EXPECT_EQ(seen.size(), 2u);
}

TEST(AmdJoinCli, its_document_keeps_the_schema) {
  CaptureFolder folder;
  CaptureShape shape;
  shape.trace_clock = "local";
  shape.trace_offset_ns = 382'463'000;
  write_capture(random_scene(3, Gfx::gfx9_4_3), folder.path(), shape);
  const std::string file = (folder.path() / "join.json").string();
  const Outcome outcome = weir({"amd", "join", folder.path().string(), "--json", "-o", file});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const Json document = read_json(file);
  EXPECT_EQ(document["schema"], "weir.amd_join/1");
  EXPECT_TRUE(document["clock"]["offset_ns"].is_number());
  EXPECT_EQ(document["timeline"]["file"], (folder.path() / "timeline.json").string());
  expect_valid_as(file, "weir.amd_join.1.json");
}

TEST(AmdJoinCli, takes_files_without_a_manifest) {
  CaptureFolder folder;
  const Scene scene = random_scene(3, Gfx::gfx9_4_3);
  write_capture(scene, folder.path());
  fs::remove(folder.path() / "manifest.json");
  const std::string timeline = (folder.path() / "picture.json.gz").string();
  const std::vector<std::string> files = {"--log",      (folder.path() / "log.txt").string(),
                                          "--ftrace",   (folder.path() / "ftrace.txt").string(),
                                          "--snapshot", (folder.path() / "snapshots/during-02").string(),
                                          "--json"};
  std::vector<std::string> command = {"amd", "join"};
  command.insert(command.end(), files.begin(), files.end());
  command.insert(command.end(), {"--timeline", timeline, "--trace-clock", "mono"});
  const Outcome outcome = weir(command);
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const Json document = parse_json(outcome.out, "stdout");
  EXPECT_TRUE(document["folder"].is_null());
  EXPECT_EQ(document["snapshots"].size(), 1u);
  EXPECT_EQ(document["snapshots"][0]["when"], "during-02");
  EXPECT_EQ(document["processes"][0]["rests_on"], "rings in common");
  EXPECT_EQ(document["clock"]["rests_on"], "same clock");
  EXPECT_TRUE(fs::exists(timeline));
}

TEST(AmdJoinCli, takes_a_process_from_the_user) {
  CaptureFolder folder;
  const Scene scene = random_scene(3, Gfx::gfx9_4_3);
  CaptureShape shape;
  shape.has_processes = shape.has_debugfs = shape.has_sysfs = false;
  write_capture(scene, folder.path(), shape);
  const std::string pair =
      std::to_string(scene.processes[0].namespace_pid) + "=" + std::to_string(scene.processes[0].host_pid);
  const Outcome outcome = weir({"amd", "join", folder.path().string(), "--pid", pair, "--json", "--no-timeline"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  bool is_given = false;
  const Json document = parse_json(outcome.out, "stdout");
  for (const Json& process : document["processes"]) is_given = is_given || process["rests_on"] == "given";
  EXPECT_TRUE(is_given);
  EXPECT_FALSE(fs::exists(folder.path() / "timeline.json"));
  for (const char* const bad : {"17", "17=", "=4000", "a=b", "17=-4", "0=1"}) {
    const Outcome refused = weir({"amd", "join", folder.path().string(), "--pid", bad});
    EXPECT_EQ(refused.code, 2) << bad;
    EXPECT_NE(refused.err.find(std::string("--pid ") + bad), std::string::npos) << refused.err;
  }
}

TEST(AmdJoinCli, bad_input_is_refused_by_name_with_what_to_do) {
  CaptureFolder folder;
  EXPECT_EQ(weir({"amd", "join"}).code, 2);
  const Outcome no_manifest = weir({"amd", "join", folder.path().string()});
  EXPECT_EQ(no_manifest.code, 2);
  EXPECT_NE(no_manifest.err.find("manifest.json"), std::string::npos);
  EXPECT_NE(no_manifest.err.find("weir amd capture"), std::string::npos);
  CaptureShape shape;
  shape.has_log = shape.has_trace = shape.has_debugfs = shape.has_sysfs = false;
  write_capture(random_scene(1, Gfx::gfx9), folder.path(), shape);
  const Outcome empty = weir({"amd", "join", folder.path().string()});
  EXPECT_EQ(empty.code, 2);
  EXPECT_NE(empty.err.find("nothing of this capture can be read"), std::string::npos) << empty.err;
  EXPECT_FALSE(fs::exists(folder.path() / "timeline.json"));
  const Outcome both = weir({"amd", "join", folder.path().string(), "--log", "x"});
  EXPECT_EQ(both.code, 2);
  const Outcome nowhere = weir({"amd", "join", "--log", (folder.path() / "no.log").string()});
  EXPECT_EQ(nowhere.code, 2);
  EXPECT_NE(nowhere.err.find("no.log"), std::string::npos);
}

TEST(AmdJoinCli, markdown_has_the_tables) {
  CaptureFolder folder;
  write_capture(random_scene(3, Gfx::gfx9_4_3), folder.path());
  const Outcome outcome =
      weir({"amd", "join", folder.path().string(), "--format", "markdown", "--no-timeline", "--full"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_TRUE(outcome.out.starts_with("# weir amd join"));
  EXPECT_NE(outcome.out.find("## Snapshot by snapshot"), std::string::npos);
}

}  // namespace
}  // namespace weir::testing
