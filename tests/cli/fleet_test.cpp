// `weir fleet probe` as an operator or a prolog script starts it: documents, exit codes, one node and several. Numbers
// are those of the simulator, whose time is virtual; those of the CPU are not compared.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "base/json.h"
#include "cli/program.h"
#include "support/text.h"

namespace weir::testing {
namespace {

using Words = std::vector<std::string>;

Outcome probe(const Words& more, const std::filesystem::path& folder = ".", const std::string& device = "sim:h200") {
  Words words = {"fleet", "probe", "--device", device};
  words.insert(words.end(), more.begin(), more.end());
  return weir(words, folder);
}

// Documents of `count` other nodes, all like this one.
void make_peers(const Folder& folder, int count) {
  ASSERT_EQ(probe({"-o", "one.json", "-q"}, folder.path()).code, 0);
  Json node = read_json(folder / "one.json");
  std::filesystem::create_directory(folder / "peers");
  for (int i = 0; i < count; ++i) {
    node["name"] = "peer" + std::to_string(i);
    std::ofstream(folder / ("peers/peer" + std::to_string(i) + ".json")) << to_text(node);
  }
}

TEST(FleetProbeCli, ANodeAloneIsReportedAndFit) {
  const Outcome outcome = probe({"--node", "node7"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_TRUE(has(outcome.out, "node7: 1 device")) << outcome.out;
  for (const char* const words : {"GEMM bf16", "memory bandwidth", "launch, one thread", "There are no peers"})
    EXPECT_TRUE(has(outcome.out, words)) << outcome.out;
  for (const std::string& line : lines_of(outcome.out)) EXPECT_LE(line.size(), 80u) << line;
}

TEST(FleetProbeCli, ACpuIsADeviceLikeAnyOther) {
  const Folder folder;
  const Outcome outcome = probe({"--budget", "1ms", "-o", "node.json"}, folder.path(), "cpu");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  expect_valid_as(folder / "node.json", "weir.fleet_probe.1.json");
  const Json node = read_json(folder / "node.json");
  EXPECT_EQ(node["devices"][0]["name"], "cpu");
  EXPECT_TRUE(node["devices"][0]["wrong"].empty()) << node["devices"][0]["wrong"].dump();
  EXPECT_EQ(node["facts"]["CUDA_DEVICE_MAX_CONNECTIONS"], "not set");
}

TEST(FleetProbeCli, FilesAndFoldersAreNotOverwritten) {
  const Folder folder;
  ASSERT_EQ(probe({"--node", "../n", "-o", "probes", "-q"}, folder.path()).code, 0);
  EXPECT_TRUE(std::filesystem::exists(folder / "probes/_.._n.json")) << "a name leads nowhere else";
  EXPECT_EQ(probe({"--node", "../n", "-o", "probes", "-q"}, folder.path()).code, 2);
  EXPECT_EQ(probe({"--node", "../n", "-o", "probes", "-q", "-f"}, folder.path()).code, 0);
}

TEST(FleetProbeCli, MistakesAreNamed) {
  const Folder folder;
  std::filesystem::create_directory(folder / "empty");
  std::ofstream(folder / "other.json") << R"({"schema": "weir.result/2"})";
  const struct {
    Words words;
    std::string part;
  } kMistakes[] = {{{"--device", "cdua:0"}, "cdua:0: there is no such device"},
                   {{"--peers", "missing.json"}, "missing.json"},
                   {{"--peers", "other.json"}, "is not a document of `weir fleet probe`"},
                   {{"--peers", "empty"}, "has no document of `weir fleet probe`"},
                   {{"--budget", "never"}, "--budget never"},
                   {{"--slow-down", "clock=5%"}, "--slow-down clock=5%"},
                   {{"--json", "--drain-command"}, "--drain-command"}};
  for (const auto& [words, part] : kMistakes) {
    const Outcome outcome = probe(words, folder.path());
    EXPECT_EQ(outcome.code, 2) << outcome.err;
    EXPECT_TRUE(has(outcome.err, part)) << outcome.err;
  }
}

// A GPU that has fallen off the bus has no device: the number is no mistake of whoever started the probe.
TEST(FleetProbeCli, ADeviceThatIsNotThereFails) {
  const Outcome outcome = probe({}, ".", "cuda:1000");
  EXPECT_EQ(outcome.code, 1) << outcome.err;
  EXPECT_TRUE(has(outcome.err, "cuda:1000")) << outcome.err;
  const Outcome half = probe({"--device", "cuda:1000"});
  EXPECT_EQ(half.code, 5) << half.err;
  EXPECT_TRUE(has(half.err, "cuda:1000")) << half.err;
}

TEST(FleetProbeCli, ASlowDeviceIsNamedAmongItsPeers) {
  const Folder folder;
  make_peers(folder, 20);
  const Outcome fit = probe({"--peers", "peers", "--drain-command"}, folder.path());
  EXPECT_EQ(fit.code, 0) << fit.err;
  EXPECT_FALSE(has(fit.out, "scontrol")) << fit.out;
  const Outcome slow = probe(
      {"--peers", "peers", "--node", "it's", "--slow-down", "gemm_bf16=50%", "--drain-command", "-q"}, folder.path());
  EXPECT_EQ(slow.code, 5) << slow.err;
  const std::vector<std::string> reasons = lines_of(slow.err);
  ASSERT_EQ(reasons.size(), 1u) << slow.err;
  EXPECT_TRUE(has(reasons[0], "it's is unfit: ")) << slow.err;
  EXPECT_TRUE(has(reasons[0], "GEMM bf16")) << slow.err;
  EXPECT_EQ(slow.out.find(R"(scontrol update NodeName='it'\''s' State=DRAIN Reason='weir: )"), 0u) << slow.out;
  // A shell reads it as meant.
  std::ofstream(folder / "drain.sh") << "scontrol() { printf '%s\\n' \"$#\" \"$2\"; }\n" << slow.out;
  EXPECT_EQ(run_program({"sh", folder / "drain.sh"}).out, "4\nNodeName=it's\n");
}

std::string missing_for_fleet() {
  if (!std::filesystem::exists(std::filesystem::path(WEIR_BINARY).parent_path() / "libweir_mpi.so"))
    return "libweir_mpi.so was not built: no MPI";
  return run_program({"mpirun", "--version"}).code == 0 ? "" : "there is no mpirun";
}

Outcome probe_job(const std::string& ranks, const Words& more, const std::filesystem::path& folder) {
  Words words = {"mpirun",    "-q",    "-n",    ranks,      "--oversubscribe", "--allow-run-as-root",
                 WEIR_BINARY, "fleet", "probe", "--device", "sim:h200"};
  words.insert(words.end(), more.begin(), more.end());
  return run_program(words, folder);
}

TEST(FleetProbeCli, AJobGathersItsNodesAndTheirLinks) {
  if (const std::string reason = missing_for_fleet(); !reason.empty()) GTEST_SKIP() << reason;
  const Folder folder;
  const Outcome outcome = probe_job("3", {"--each-rank", "--node", "n", "-o", "probes"}, folder.path());
  // Their links share a busy machine's memory: one may be slow enough to be named.
  EXPECT_TRUE(outcome.code == 0 || outcome.code == 5) << outcome.err;
  EXPECT_TRUE(has(outcome.out, "3 nodes")) << outcome.out;
  expect_valid_as(folder / "probes/fleet.json", "weir.fleet.1.json");
  for (const std::string name : {"n-0", "n-1", "n-2"}) {
    const Json node = read_json(folder / ("probes/" + name + ".json"));
    expect_valid_as(folder / ("probes/" + name + ".json"), "weir.fleet_probe.1.json");
    EXPECT_EQ(node["name"], name);
    ASSERT_EQ(node["links"].size(), 2u) << name;
    for (const Json& link : node["links"]) {
      EXPECT_NE(link["to"], name);
      EXPECT_EQ(link["bytes_per_s"].size(), 5u) << link.dump();
    }
  }
}

TEST(FleetProbeCli, ANodeOfAJobIsProbedOnce) {
  if (const std::string reason = missing_for_fleet(); !reason.empty()) GTEST_SKIP() << reason;
  const Folder folder;
  const Outcome outcome = probe_job("2", {"--node", "n", "-o", "probes", "-q"}, folder.path());
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  const Json fleet = read_json(folder / "probes/fleet.json");
  EXPECT_EQ(fleet["nodes"], 1);
  EXPECT_TRUE(read_json(folder / "probes/n.json")["links"].empty());
}

// As a plain srun starts it: the tasks cannot reach each other.
TEST(FleetProbeCli, WithoutMpiEachNodeIsForItself) {
  const Folder folder;
  const auto task = [&](const std::string& rank, const std::string& local) {
    return run_program(
        {"env", "SLURM_PROCID=" + rank, "SLURM_STEP_NUM_TASKS=4", "SLURM_LOCALID=" + local,
         "SLURMD_NODENAME=node" + rank, WEIR_BINARY, "fleet", "probe", "--device", "sim:h200", "-o", "probes"},
        folder.path());
  };
  EXPECT_EQ(task("2", "0").code, 0);
  const Outcome idle = task("3", "1");
  EXPECT_EQ(idle.code, 0) << idle.err;
  EXPECT_EQ(idle.out, "");
  EXPECT_TRUE(std::filesystem::exists(folder / "probes/node2.json"));
  EXPECT_FALSE(std::filesystem::exists(folder / "probes/node3.json"));
}

// Twelve days of four nodes, one of which loses 4 % on the seventh: too little among three peers, enough against
// itself.
TEST(FleetReportCli, AHistoryNamesTheDeviceThatBecameSlowerAndTheDay) {
  const Folder folder;
  ASSERT_EQ(probe({"-o", "one.json", "-q"}, folder.path()).code, 0);
  Json node = read_json(folder / "one.json");
  std::filesystem::create_directory(folder / "days");
  for (int day = 1; day <= 12; ++day)
    for (int at = 1; at <= 4; ++at) {
      node["name"] = "node" + std::to_string(at);
      node["created"] = (day < 10 ? "2026-11-0" : "2026-11-") + std::to_string(day) + "T03:00:00Z";
      Json device = node["devices"][0];
      device["serial"] = "16520" + std::to_string(at);
      for (Json& figure : device["figures"]) {
        if (figure["name"] != "gemm_bf16") continue;
        const double rate = (700 + (day * 7 + at) % 3) * 1e12 * (at == 3 && day >= 7 ? 0.96 : 1);
        figure["value"] = rate;
        figure["range"] = Json::array({rate * 0.98, rate * 1.02});
        figure["samples"] = Json::array({rate, rate, rate, rate, rate});
      }
      node["devices"][0] = device;
      std::ofstream(folder / ("days/" + std::to_string(at) + "-" + std::to_string(day) + ".json")) << to_text(node);
    }
  const Outcome added = weir({"history", "add", "days", "--db", "fleet.db", "-q"}, folder.path());
  if (has(added.err, "without SQLite")) GTEST_SKIP() << added.err;
  ASSERT_EQ(added.code, 0) << added.err;

  const Outcome report = weir({"fleet", "report", "fleet.db"}, folder.path());
  EXPECT_EQ(report.code, 0) << report.out << report.err;
  EXPECT_TRUE(has(report.out, "4 nodes, 4 devices: all are fit")) << report.out;
  EXPECT_TRUE(has(report.out, "GPU 165203 (node3 sim:h200): GEMM bf16 slower by 4.")) << report.out;
  EXPECT_TRUE(has(report.out, "since 2026-11-07")) << report.out;
  for (const std::string& line : lines_of(report.out)) EXPECT_LE(line.size(), 80u) << line;
  const Outcome early = weir({"fleet", "report", "fleet.db", "--since", "2026-11-10"}, folder.path());
  EXPECT_FALSE(has(early.out, "slower by")) << early.out;
  EXPECT_EQ(weir({"fleet", "report", "fleet.db", "--since", "2027"}, folder.path()).code, 2);

  const Outcome judged =
      probe({"--node", "node9", "--peers", "fleet.db", "-q", "--slow-down", "gemm_fp32=30%"}, folder.path());
  EXPECT_EQ(judged.code, 5) << judged.err;
  const Outcome page = weir({"fleet", "report", "fleet.db", "--html", "fleet.html", "-q"}, folder.path());
  if (has(page.err, "without the report's page")) GTEST_SKIP() << page.err;
  EXPECT_EQ(page.code, 0) << page.err;
  const std::string html = content(folder / "fleet.html");
  EXPECT_TRUE(has(html, "since 2026-11-07"));
  EXPECT_FALSE(has(html, "weir_child_")) << "the page names what was read";
}

}  // namespace
}  // namespace weir::testing
