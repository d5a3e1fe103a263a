// weir amd roadmap and weir amd queues through the binary: on the simulated device, from captures, and without a GPU.
#include <gtest/gtest.h>

#include <filesystem>

#include "amd/capture/manifest.h"
#include "base/json.h"
#include "cli/program.h"
#include "cli/queues_checks.h"
#include "support/amd_capture.h"
#include "support/text.h"

namespace weir::testing {
namespace {

// The kernel's files of a machine without an AMD GPU.
std::vector<std::string> nowhere(const Folder& folder) {
  return {"--tracefs", folder / "no/tracing", "--debugfs", folder / "no/debug",
          "--sysfs",   folder / "no/sys",     "--kmsg",    folder / "no/kmsg"};
}

TEST(AmdRoadmap, captures_both_cases_and_says_what_cannot_be_seen_here) {
  const Folder folder;
  std::vector<std::string> words = {"amd",  "roadmap",   "--device", "sim:mi300x", "--scale",
                                    "tiny", "--seconds", "100ms",    "--folder",   folder / "study"};
  for (const std::string& word : nowhere(folder)) words.push_back(word);
  const Outcome outcome = weir(words, folder.path());
  EXPECT_TRUE(outcome.code == 0 || outcome.code == 3) << outcome.code << outcome.err;
  expect_narrow(outcome.out);
  for (const char* part : {"Targets", "queue creation", "cannot say", "[x] case A ran", "[?] kernel trace recorded",
                           "convolution", "normalisation", "pooling", "softmax", "Preemption"})
    EXPECT_TRUE(has(outcome.out, part)) << part << "\n" << outcome.out;
  for (const char* name : {"study/case_a.capture", "study/case_b.capture"}) {
    EXPECT_EQ(amd::load_manifest(folder / name).exit_code, 0);
    EXPECT_TRUE(std::filesystem::exists(folder.path() / name / "profile.json"));
  }
  // The same from the two folders.
  const std::string file = folder / "roadmap.json";
  const Outcome again =
      weir({"amd", "roadmap", folder / "study/case_a.capture", folder / "study/case_b.capture", "--json", "-o", file});
  EXPECT_EQ(again.code, outcome.code) << again.err;
  expect_valid_as(file, "weir.amd_roadmap.1.json");
  const Json document = read_json(file);
  for (const Json& row : document["targets"]) {
    if (row["name"] != "kernel_classes") continue;
    EXPECT_EQ(row["outcome"], "met") << row.dump();
  }
  EXPECT_EQ(weir({"amd", "roadmap", folder / "nothing", "case_b_transformer"}).code, 2);
}

TEST(AmdRoadmap, a_missed_target_is_exit_code_3) {
  const Folder folder;
  for (const char* name : {"a", "b"}) {
    std::filesystem::create_directories(folder.path() / name);
    Scene scene = random_scene(7, Gfx::gfx9_4_3);
    for (SceneLaunch& launch : scene.launches) launch.write_index = launch.read_index + 500;
    write_capture(scene, folder.path() / name);
  }
  const Outcome outcome = weir({"amd", "roadmap", folder / "a", folder / "b"});
  EXPECT_EQ(outcome.code, 3) << outcome.err;
  EXPECT_TRUE(has(outcome.out, "missed")) << outcome.out;
}

TEST(AmdQueues, says_what_is_missing_without_a_driver) {
  if (std::filesystem::exists("/dev/kfd")) GTEST_SKIP() << "there is one";
  const Outcome outcome = weir({"amd", "queues", "1"});
  EXPECT_EQ(outcome.code, 2);
  EXPECT_TRUE(has(outcome.err, "no /dev/kfd on this machine")) << outcome.err;
  for (const std::vector<std::string>& words :
       std::vector<std::vector<std::string>>{{"amd", "queues"},
                                             {"amd", "queues", "x"},
                                             {"amd", "queues", "0"},
                                             {"amd", "queues", "1", "--queue", "2"},
                                             {"amd", "queues", "1", "--suspend", "--hold", "2s"},
                                             {"amd", "queues", "1", "--iterations", "0"}}) {
    const Outcome refused = weir(words);
    EXPECT_EQ(refused.code, 2) << words.back();
    EXPECT_FALSE(has(refused.err, "/dev/kfd")) << refused.err;
  }
}

}  // namespace
}  // namespace weir::testing
