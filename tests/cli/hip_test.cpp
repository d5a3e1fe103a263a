// `weir` on AMD GPUs as a user sees it, with ROCm's libraries replaced by fakes that run on the host (tests/fake_hip):
// what is there, what is missing, queues, parts of the device, and GPUs that vanish.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "base/json.h"
#include "cli/overlap_runs.h"
#include "cli/program.h"
#include "cli/queues_checks.h"

namespace weir::testing {
namespace {

#ifdef WEIR_FAKE_HIP_DIR
constexpr const char* kFakes = WEIR_FAKE_HIP_DIR;
#else
constexpr const char* kFakes = "";
#endif

class HipCli : public ::testing::Test {
 protected:
  void SetUp() override {
    if (*kFakes == '\0') GTEST_SKIP() << "HIP's headers were not found when this was built";
  }

  // `settings` are variables of the environment besides.
  static Outcome run(const std::string& variant, const std::vector<std::string>& settings,
                     const std::vector<std::string>& arguments, const std::filesystem::path& folder = ".") {
    std::vector<std::string> command = {"env", "LD_LIBRARY_PATH=" + std::string(kFakes) + "/" + variant};
    command.insert(command.end(), settings.begin(), settings.end());
    command.emplace_back(WEIR_BINARY);
    command.insert(command.end(), arguments.begin(), arguments.end());
    return run_program(command, folder);
  }

  // What `weir info` says of HIP.
  static std::string found(const std::string& variant, const std::string& settings = "") {
    const Outcome outcome = run(variant, {"WEIR_FAKE_HIP=" + settings}, {"info"});
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    std::string text;
    std::size_t at = 0;
    while ((at = outcome.out.find("\n  hip", at)) != std::string::npos) {
      const std::size_t end = outcome.out.find("\n  ", at + 5 + outcome.out.substr(at + 5).find_first_not_of(' '));
      text += outcome.out.substr(at, end - at);
      ++at;
    }
    return text;
  }
};

std::vector<std::string> tiny_on_hip(const char* command, const std::vector<std::string>& more,
                                     const std::string& workload = "tiny_kernel_stress") {
  std::vector<std::string> words = {command, workload, "--device", "hip", "--scale", "tiny", "--no-trace"};
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

TEST_F(HipCli, InfoShowsTheGpus) {
  const std::string text = found("rocm6", "devices=2");
  EXPECT_TRUE(has(text, "hip:0")) << text;
  EXPECT_TRUE(has(text, "hip:1")) << text;
  EXPECT_TRUE(has(text, "AMD Instinct MI300X (fake)")) << text;
}

TEST_F(HipCli, InfoSaysWhyThereAreNone) {
  EXPECT_TRUE(has(found("rocm6", "devices=0"), "no device: HIP error 100 (hipErrorNoDevice)"));
  EXPECT_TRUE(has(found("rocm6", "init_error=35"), "driver too old for this runtime: HIP error 35"));
  EXPECT_TRUE(has(found("rocm6", "init_error=3"), "the runtime does not start: HIP error 3"));
  EXPECT_TRUE(has(found("broken"), "libamdhip64.so.6 lacks hipModuleLaunchKernel")) << found("broken");
  EXPECT_TRUE(has(found("text"), "libamdhip64.so cannot be used:")) << found("text");
}

TEST_F(HipCli, ADeviceThatIsNotThereIsBadUsage) {
  const Outcome outcome = run("broken", {}, tiny_on_hip("run", {}));
  EXPECT_EQ(outcome.code, 2) << outcome.err;
  EXPECT_TRUE(has(outcome.err, "--device hip:0: ")) << outcome.err;
  EXPECT_TRUE(has(outcome.err, "lacks hipModuleLaunchKernel")) << outcome.err;
}

TEST_F(HipCli, RunsAndChecksWorkloads) {
  const Folder folder;
  for (const char* workload : {"tiny_kernel_stress", "moe", "zero_offload"}) {
    for (const char* submit : {"inline", "graph", "scheduled:priority:2"}) {
      const Outcome outcome = run(
          "rocm6", {},
          tiny_on_hip("run", {"--iterations", "3", "--submit", submit, "--force", "-o", folder / "r.json"}, workload));
      ASSERT_EQ(outcome.code, 0) << workload << " " << submit << ": " << outcome.err;
      EXPECT_EQ(read_json(folder / "r.json")["check"]["status"], "passed") << workload << " " << submit;
      expect_valid_as(folder / "r.json", "weir.result.2.json");
    }
  }
}

TEST_F(HipCli, OlderRocmCallsTheHostByCallbacks) {
  const Folder folder;
  std::ofstream(folder / "by_host.yaml") << "name: by_host\n"
                                            "summary: to the host, changed there, and back\n"
                                            "unit: steps/s\n"
                                            "work: 1\n"
                                            "streams: {min: 1, recommended: 2, max: 2}\n"
                                            "buffers:\n"
                                            "  data: {count: 1000, init: uniform}\n"
                                            "  seen: {count: 1000, place: host}\n"
                                            "  answer: {count: 1000, place: host}\n"
                                            "  back: {count: 1000}\n"
                                            "commands:\n"
                                            "  - copy: {from: data, to: seen}\n"
                                            "  - host: gelu\n"
                                            "    reads: seen\n"
                                            "    writes: answer\n"
                                            "    stream: streams - 1\n"
                                            "  - copy: {from: answer, to: back}\n";
  const auto run_file = [&](const char* variant, const char* submit) {
    return run(variant, {},
               {"run", "--file", folder / "by_host.yaml", "--device", "hip", "--iterations", "5", "--submit", submit,
                "--no-trace"});
  };
  for (const char* variant : {"rocm5", "rocm6"}) {
    const Outcome outcome = run_file(variant, "inline");
    EXPECT_EQ(outcome.code, 0) << variant << ": " << outcome.err;
    EXPECT_TRUE(has(outcome.out, "passed")) << variant << ": " << outcome.out;
  }
  EXPECT_EQ(run_file("rocm6", "graph").code, 0);
  // Callbacks cannot be captured.
  const Outcome graph = run_file("rocm5", "graph");
  EXPECT_NE(graph.code, 0);
  EXPECT_TRUE(has(graph.err, "900 (hipErrorStreamCaptureUnsupported)")) << graph.err;
  const Outcome plain = run("rocm5", {}, tiny_on_hip("run", {"--iterations", "3", "--submit", "graph"}));
  EXPECT_EQ(plain.code, 0) << "graphs by the older instantiation: " << plain.err;
}

TEST_F(HipCli, WithoutRocblasItSaysWhatIsMissing) {
  const Outcome outcome = run("rocm5", {}, tiny_on_hip("run", {"--iterations", "3"}, "moe"));
  EXPECT_NE(outcome.code, 0);
  EXPECT_TRUE(has(outcome.err, "rocBLAS was not found")) << outcome.err;
}

// Both truths, because a probe that cannot tell them apart still names one. On a busy machine a map may not show a
// policy: then it is asked again, but the other policy is never a right answer.
TEST_F(HipCli, FindsTheQueuesThatTheVariableSetsAndWhoGetsThem) {
  const Folder folder;
  for (const int queues : {2, 4}) {
    for (const bool takes_turns : {false, true}) {
      const std::string truth = takes_turns ? "round_robin" : "least_referenced";
      const std::string other = takes_turns ? "least_referenced" : "round_robin";
      std::string said;
      for (int attempt = 0; attempt < 10 && said != truth; ++attempt) {
        const std::string file = folder / "map.json";
        const Outcome outcome =
            run("rocm6", {"GPU_MAX_HW_QUEUES=" + std::to_string(queues), takes_turns ? "WEIR_FAKE_HIP=turns=1" : "A=b"},
                {"queues", "map", "--device", "hip", "--streams", "12", "--force", "-o", file});
        ASSERT_LE(outcome.code, 1) << outcome.err;
        if (outcome.code == 1) continue;  // too noisy to say
        expect_valid(file);
        const Json probe = read_json(file)["map"]["probe"];
        said = probe["policy"].get<std::string>();
        EXPECT_NE(said, other) << queues << " queues: " << outcome.out;
        if (said != truth) continue;
        EXPECT_EQ(probe["queues"], queues) << outcome.out;
        for (std::size_t i = 0; i < 12; ++i)
          EXPECT_EQ(probe["queue_of_stream"][i], i % static_cast<std::size_t>(queues)) << outcome.out;
      }
      if (said.empty()) GTEST_SKIP() << "the machine is too busy to hold streams while others are watched";
      EXPECT_EQ(said, truth) << queues << " queues";
    }
  }
}

TEST_F(HipCli, MeasuresLimitsAndSwitches) {
  const Folder folder;
  const Outcome limits =
      run("rocm6", {"GPU_MAX_HW_QUEUES=2"},
          {"queues", "limits", "--device", "hip", "--streams", "6", "--launches", "64", "-o", folder / "limits.json"});
  if (limits.code == 1 && has(limits.err, "The machine is too busy")) GTEST_SKIP() << limits.err;
  ASSERT_EQ(limits.code, 0) << limits.err;
  expect_valid(folder / "limits.json");
  EXPECT_EQ(read_json(folder / "limits.json")["limits"]["hardware_queues"]["told"], 2);
  const Outcome hops = run("rocm6", {},
                           {"queues", "switch", "--device", "hip", "--hw-queues", "2,4", "--streams", "2,4", "--hops",
                            "32", "--iterations", "2", "-o", folder / "switch.json"});
  ASSERT_EQ(hops.code, 0) << hops.err;
  expect_valid(folder / "switch.json");
  const Json settings = read_json(folder / "switch.json")["switch"]["settings"];
  ASSERT_EQ(settings.size(), 2u);
  EXPECT_EQ(settings[0]["hardware_queues"], 2);
  EXPECT_EQ(settings[1]["hardware_queues"], 4);
}

TEST_F(HipCli, SweepsQueueCountsByTheVariable) {
  const Folder folder;
  const Outcome outcome =
      run("rocm6", {},
          {"queues", "sweep", "tiny_kernel_stress", "--device", "hip", "--hw-queues", "1,4", "--scale", "tiny",
           "--iterations", "5", "--warmup", "1", "--processes", "1", "-o", folder / "s.json"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  expect_valid(folder / "s.json");
  const Json sweep = read_json(folder / "s.json")["sweep"];
  EXPECT_EQ(sweep["settings"]["queues_set_by"], "GPU_MAX_HW_QUEUES");
  ASSERT_EQ(sweep["points"].size(), 2u);
  for (const Json& point : sweep["points"]) EXPECT_EQ(point["status"], "complete") << point.dump();
}

TEST_F(HipCli, ComputeUnitsAreAnAxisOfSweeps) {
  const Folder folder;
  const std::vector<std::string> sweep = tiny_on_hip(
      "sweep",
      {"--streams", "1,2", "--compute-units", "8,16", "--iterations", "4", "--warmup", "1", "-o", folder / "s.json"});
  const Outcome outcome = run("rocm6", {}, sweep);
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_TRUE(has(outcome.out, "inline on 16 units")) << outcome.out;
  expect_valid_as(folder / "s.json", "weir.sweep.1.json");
  const Json document = read_json(folder / "s.json");
  ASSERT_EQ(document["results"].size(), 4u);
  std::vector<std::pair<int, int>> points;
  for (const Json& result : document["results"])
    points.emplace_back(result["device"]["compute_units"].get<int>(), result["streams"].get<int>());
  const std::vector<std::pair<int, int>> expected = {{8, 1}, {8, 2}, {16, 1}, {16, 2}};
  EXPECT_EQ(points, expected);
  EXPECT_EQ(document["floor"].size(), 2u);
  EXPECT_TRUE(document["scaling"].contains("inline on 8 units")) << document["scaling"].dump();
  std::vector<std::string> again = sweep;
  again.insert(again.end(), {"--resume", "--compute-units", "8,16,32"});
  std::erase(again, "8,16");
  again.erase(std::find(again.begin(), again.end(), "--compute-units"));
  const Outcome resumed = run("rocm6", {}, again);
  ASSERT_EQ(resumed.code, 0) << resumed.err;
  const Json more = read_json(folder / "s.json");
  ASSERT_EQ(more["results"].size(), 6u);
  EXPECT_EQ(more["results"][0]["samples"], document["results"][0]["samples"]) << "kept";
}

// The case asks for a stream that has what the others leave; the command once forgot to pass that on.
TEST_F(HipCli, ConformanceExaminesTheRestOfTheDevice) {
  const Outcome outcome = run("rocm6", {"WEIR_FAKE_HIP=cu=32"},
                              {"conformance", "--device", "hip:0", "--filter", "one stream has the rest"});
  EXPECT_EQ(outcome.code, 0) << outcome.out << outcome.err;
  EXPECT_NE(outcome.out.find("nothing failed in 1 case"), std::string::npos) << outcome.out;
}

TEST_F(HipCli, ComputeUnitsThatCannotBeHadAreBadUsage) {
  const Outcome many = run("rocm6", {"WEIR_FAKE_HIP=cu=32"}, tiny_on_hip("run", {"--compute-units", "64"}));
  EXPECT_EQ(many.code, 2);
  EXPECT_TRUE(has(many.err, "--compute-units 64: hip:0 has 32")) << many.err;
  const Outcome none = weir({"run", "tiny_kernel_stress", "--device", "cpu", "--compute-units", "4"});
  EXPECT_EQ(none.code, 2);
  EXPECT_TRUE(has(none.err, "--compute-units 4: device 'cpu'")) << none.err;
  const Outcome queues = weir({"queues", "map", "--device", "cpu", "--compute-units", "4"});
  EXPECT_EQ(queues.code, 2);
  EXPECT_TRUE(has(queues.err, "--compute-units 4")) << queues.err;
  const Outcome list = weir({"run", "tiny_kernel_stress", "--device", "cpu", "--compute-units", "4,8"});
  EXPECT_EQ(list.code, 2);
  EXPECT_TRUE(has(list.err, "weir sweep")) << list.err;
}

int commands_of_a_step() {
  const Folder folder;
  const Outcome outcome = weir({"run", "tiny_kernel_stress", "--device", "cpu", "--scale", "tiny", "--streams", "1",
                                "--iterations", "1", "--no-trace", "-q", "-o", folder / "r.json"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  return read_json(folder / "r.json")["commands_per_iteration"].get<int>();
}

TEST_F(HipCli, ARunOnAGpuThatVanishesKeepsItsSamples) {
  const std::string lost = "WEIR_FAKE_HIP=lost_after=" + std::to_string(20 * commands_of_a_step());
  // A scheduled host waits for ends: it must not for those that a lost GPU owes.
  for (const char* submit : {"inline", "scheduled:fifo:2"}) {
    const Folder folder;
    const Outcome outcome = run("rocm6", {lost},
                                tiny_on_hip("run", {"--streams", "1", "--warmup", "2", "--iterations", "1000",
                                                    "--submit", submit, "-o", folder / "r.json"}));
    EXPECT_EQ(outcome.code, 1) << outcome.err;
    EXPECT_TRUE(has(outcome.err, "HIP error 719 (hipErrorLaunchFailure)")) << outcome.err;
    EXPECT_TRUE(has(outcome.err, "The GPU is lost")) << outcome.err;
    expect_valid_as(folder / "r.json", "weir.result.2.json");
    const Json result = read_json(folder / "r.json");
    EXPECT_EQ(result["status"], "failed");
    EXPECT_GE(result["samples"]["latency_ns"].size(), 5u);
    EXPECT_LE(result["samples"]["latency_ns"].size(), 20u);
    EXPECT_TRUE(result["metrics"]["latency_ns"]["p50"].is_number());
  }
}

TEST_F(HipCli, ASweepOnAGpuThatVanishesKeepsItsPoints) {
  const Folder folder;
  std::vector<std::string> sweep = tiny_on_hip(
      "sweep", {"--streams", "1,2", "--warmup", "1", "--iterations", "20", "--no-check", "-o", folder / "s.json"});
  const std::string lost = "WEIR_FAKE_HIP=lost_after=" + std::to_string(32 * commands_of_a_step());
  const Outcome outcome = run("rocm6", {lost}, sweep);
  EXPECT_EQ(outcome.code, 1) << outcome.err;
  const Json first = read_json(folder / "s.json");
  ASSERT_EQ(first["results"].size(), 2u);
  EXPECT_EQ(first["results"][0]["status"], "complete");
  EXPECT_EQ(first["results"][1]["status"], "failed");
  EXPECT_GE(first["results"][1]["samples"]["latency_ns"].size(), 1u);
  sweep.emplace_back("--resume");
  const Outcome resumed = run("rocm6", {}, sweep);
  ASSERT_EQ(resumed.code, 0) << resumed.err;
  const Json second = read_json(folder / "s.json");
  ASSERT_EQ(second["results"].size(), 2u);
  EXPECT_EQ(second["results"][0]["samples"], first["results"][0]["samples"]) << "kept";
  EXPECT_EQ(second["results"][1]["status"], "complete");
}

TEST_F(HipCli, a_class_suggests_commands_that_the_gpu_can_run) {
  const Folder folder;
  const Outcome outcome =
      run("rocm6", {}, {"run", "P0", "--device", "hip", "--scale", "tiny", "--iterations", "3", "--streams", "1"},
          folder.path());
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  int count = 0;
  std::istringstream lines(outcome.out);
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with("  " WEIR_BINARY " ")) continue;
    ++count;
    EXPECT_NE(line.find("--device hip:0"), std::string::npos) << line;
    // At full scale a fake takes minutes.
    if (line.find("queues map") == std::string::npos) line += " --scale tiny";
    const Outcome tried =
        run_program({"env", "LD_LIBRARY_PATH=" + std::string(kFakes) + "/rocm6", "sh", "-c", line}, folder.path());
    EXPECT_EQ(tried.code, 0) << line << "\n" << tried.err;
  }
  EXPECT_EQ(count, 3) << outcome.out;
}

// The fake runtime has no RCCL, and its variant rocm5 no BLAS: each rank says so, and of how many it is one.
TEST_F(HipCli, OverlapStartsARankForEachGpu) {
  if (const std::string why = why_no_ranks(); !why.empty()) GTEST_SKIP() << why;
  struct Case {
    const char* device;
    std::vector<std::string> settings, flags;
    bool has_ranks;
  };
  for (const Case& each :
       {Case{"hip", {"WEIR_FAKE_HIP=devices=2"}, {}, true}, Case{"auto", {"WEIR_FAKE_HIP=devices=2"}, {}, true},
        Case{"hip", {"WEIR_FAKE_HIP=devices=1"}, {}, false}, Case{"hip:1", {"WEIR_FAKE_HIP=devices=2"}, {}, false},
        Case{"hip", {"WEIR_FAKE_HIP=devices=2"}, {"--ranks", "1"}, false},
        // A launcher that starts one process is obeyed.
        Case{"hip", {"WEIR_FAKE_HIP=devices=2", "OMPI_COMM_WORLD_RANK=0", "OMPI_COMM_WORLD_SIZE=1"}, {}, false}}) {
    const Folder folder;
    std::vector<std::string> words =
        tiny_overlap(config_file("default"), {"--device", each.device, "--summary", folder / "s.json"});
    words.insert(words.end(), each.flags.begin(), each.flags.end());
    const Outcome outcome = run("rocm5", each.settings, words);
    EXPECT_EQ(outcome.code, 1) << outcome.err;
    EXPECT_NE(outcome.err.find("rocBLAS was not found"), std::string::npos) << outcome.err;
    EXPECT_EQ(outcome.err.find(" of 2 (") != std::string::npos, each.has_ranks) << each.device << ": " << outcome.err;
  }
  const Outcome lone = run("rocm5", {"WEIR_FAKE_HIP=devices=2", "PATH=/nonexistent"},
                           tiny_overlap(config_file("default"), {"--device", "hip"}));
  EXPECT_NE(lone.err.find("using 1 of 2 GPUs"), std::string::npos) << lone.err;
}

TEST_F(HipCli, ASoakSeesABoardThatHeatsUp) {
  const Folder folder;
  for (const char* const how : {"steady", "heating"}) {
    const std::string file = folder / (std::string(how) + ".json");
    const Outcome outcome = run("rocm6", {std::string("WEIR_FAKE_SMI=") + how},
                                tiny_on_hip("run", {"--seconds", "1", "--warmup", "1", "-o", file}));
    ASSERT_EQ(outcome.code, 0) << outcome.err;
    expect_valid_as(file, "weir.result.2.json");
    const Json result = read_json(file);
    const Json& soak = result["metrics"]["soak"];
    EXPECT_GT(soak["temperature_c"]["last"].get<double>(), 40);
    bool is_hot = false;
    for (const Json& alarm : soak["alarms"]) is_hot = is_hot || alarm["code"] == "soak_temperature";
    EXPECT_EQ(is_hot, std::string(how) == "heating") << soak.dump();
    EXPECT_EQ(outcome.out.find("still rising") != std::string::npos, is_hot) << outcome.out;
  }
}

}  // namespace
}  // namespace weir::testing
