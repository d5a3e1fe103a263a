// Drives `weir overlap` as a user would: what a run writes and says, alone and on several ranks, and that it adds up.
#include <gtest/gtest.h>
#include <signal.h>

#include <cmath>
#include <filesystem>
#include <map>

#include "cli/overlap_runs.h"
#include "cli/queues_checks.h"
#include "support/text.h"

namespace weir::testing {
namespace {

namespace fs = std::filesystem;

constexpr const char* kSchema = "weir.overlap.2.json";

// What must hold of any run's figures, whatever they are.
void expect_sums(const Json& times) {
  const auto value = [&](const char* name) { return times[name].get<double>(); };
  EXPECT_NEAR(value("busy_ns") + value("idle_ns"), value("span_ns"), 0.01 * value("span_ns"));
  EXPECT_NEAR(value("hidden_ns") + value("exposed_ns"), value("communication_ns"), 1);
  EXPECT_GT(value("communication_ns"), 0);
  EXPECT_GT(value("compute_ns"), 0);
}

void expect_same_losses(const Json& a, const Json& b) {
  ASSERT_EQ(a.size(), b.size());
  ASSERT_FALSE(a.empty());
  for (std::size_t i = 0; i < a.size(); ++i)
    EXPECT_NEAR(a[i].get<double>(), b[i].get<double>(), 1e-4 * std::fabs(b[i].get<double>())) << "step " << i;
}

TEST(Overlap, one_rank_writes_all_files_and_they_add_up) {
  const Folder folder;
  const Outcome outcome = weir(tiny_overlap(config_file("default"), {"-o", folder / "run"}));
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  // Nothing but progress, which a slow machine shows.
  for (const std::string& line : lines_of(outcome.err)) EXPECT_TRUE(line.starts_with("weir: ")) << outcome.err;
  expect_narrow(outcome.out);
  EXPECT_TRUE(has(outcome.out, "weir overlap default: 1 rank on ")) << outcome.out;
  EXPECT_TRUE(has(outcome.out, "5 files, trace.json holds all ranks")) << outcome.out;
  for (const char* name : {"rank_00.jsonl", "summary.json", "report.md", "rank_00.svg", "trace.json"})
    EXPECT_TRUE(fs::exists(folder.path() / "run" / name)) << name;
  EXPECT_EQ(std::distance(fs::directory_iterator(folder / "run"), {}), 5);

  expect_valid_as(folder / "run/summary.json", kSchema);
  const Json summary = read_json(folder / "run/summary.json");
  EXPECT_EQ(summary["status"], "complete");
  EXPECT_EQ(summary["check"]["status"], "passed");
  EXPECT_EQ(summary["losses"].size(), 4u) << "warm-up too";
  EXPECT_EQ(summary["step_ns"]["overlapped"]["samples_ns"].size(), 3u);
  EXPECT_EQ(summary["unavailable"]["skew"], "one rank waits for nobody");
  EXPECT_LT(summary["overlap"]["serial_efficiency"].get<double>(), 0.05);
  expect_sums(summary["overlap"]);
  double share = 0;
  for (const Json& cause : summary["causes"]) share += cause["share"].get<double>();
  EXPECT_NEAR(share, 1, 1e-6) << "every nanosecond that is exposed has one cause";

  std::map<std::string, int> passes;
  for (const Json& line : json_lines(folder / "run/rank_00.jsonl")) {
    EXPECT_EQ(line["schema"], "weir.overlap_iteration/1");
    EXPECT_EQ(line["rank"], 0);
    EXPECT_TRUE(line["loss"].is_number()) << line;
    ++passes[line["pass"].string()];
    if (line["pass"] == "traced") expect_sums(line);
  }
  EXPECT_EQ(passes, (std::map<std::string, int>{{"overlapped", 3}, {"serial", 3}, {"traced", 2}}));
  const std::string report = file_content(folder / "run/report.md");
  for (const char* part : {"# weir overlap default", "efficiency", "Why communication was exposed"})
    EXPECT_TRUE(has(report, part)) << part << "\n" << report;
  EXPECT_TRUE(has(file_content(folder / "run/rank_00.svg"), "<svg"));
}

TEST(Overlap, prints_or_writes_only_the_summary_where_asked) {
  const Folder folder;
  const Outcome printed = weir(tiny_overlap(config_file("default"), {"--json", "-o", folder / "run"}));
  ASSERT_EQ(printed.code, 0) << printed.err;
  EXPECT_EQ(Json::parse(printed.out), read_json(folder / "run/summary.json"));

  const Outcome written =
      weir(tiny_overlap(config_file("default"), {"--summary", folder / "only.json", "--json"}), folder.path());
  ASSERT_EQ(written.code, 0) << written.err;
  EXPECT_EQ(Json::parse(written.out), read_json(folder / "only.json"));
  expect_valid_as(folder / "only.json", kSchema);
  EXPECT_FALSE(fs::exists(folder / "results")) << "no other file";
  EXPECT_EQ(weir(tiny_overlap(config_file("default"), {"--summary", folder / "only.json"})).code, 2);
  EXPECT_EQ(weir(tiny_overlap(config_file("default"), {"--summary", folder / "new.json", "-o", folder / "x"})).code, 2);

  const Outcome quiet = weir(tiny_overlap(config_file("default"), {"-q"}), folder.path());
  EXPECT_EQ(quiet.code, 0) << quiet.err;
  EXPECT_EQ(quiet.out, "");
  EXPECT_TRUE(fs::exists(folder / "results/overlap-default/summary.json"));
  EXPECT_EQ(weir(tiny_overlap(config_file("default"), {"-q"}), folder.path()).code, 0);
  EXPECT_TRUE(fs::exists(folder / "results/overlap-default-2/summary.json"));
}

TEST(Overlap, lists_its_keys) {
  const Outcome outcome = weir({"overlap", "--list"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  for (const char* part : {"training.batch ", "fsdp.prefetch ", "network.latency_us ", "run.hang_timeout "})
    EXPECT_TRUE(has(outcome.out, part)) << part << "\n" << outcome.out;
}

TEST(Overlap, replaces_files_only_by_force) {
  const Folder folder;
  fs::create_directory(folder / "run");
  write_text(folder / "run/summary.json", "mine");
  const Outcome refused = weir(tiny_overlap(config_file("default"), {"-o", folder / "run"}));
  EXPECT_EQ(refused.code, 2);
  EXPECT_TRUE(has(refused.err, "the folder is not empty")) << refused.err;
  EXPECT_TRUE(has(refused.err, "--force")) << refused.err;
  EXPECT_EQ(file_content(folder / "run/summary.json"), "mine");
  EXPECT_EQ(weir(tiny_overlap(config_file("default"), {"-o", folder / "run", "--force"})).code, 0);
  EXPECT_EQ(read_json(folder / "run/summary.json")["status"], "complete");
}

TEST(Overlap, four_ranks_train_as_one_does_and_their_trace_says_the_same) {
  NEEDS_RANKS();
  const Folder folder;
  const Outcome outcome = weir(
      tiny_overlap(config_file("default"), {"--ranks", "4", "--set", "network.latency_us=200", "-o", folder / "four"}));
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  // Rank 0 says what it does, a line for each stage.
  EXPECT_TRUE(has(outcome.err, "weir: overlapped: measure, ")) << outcome.err;
  EXPECT_EQ(outcome.err.find("weir: serial: trace\n"), outcome.err.rfind("weir: serial: trace\n")) << outcome.err;
  expect_narrow(outcome.out);
  EXPECT_EQ(outcome.out.find("Written to"), outcome.out.rfind("Written to")) << "one rank prints";
  for (const char* name : {"rank_03.jsonl", "rank_03.svg"}) EXPECT_TRUE(fs::exists(folder.path() / "four" / name));
  for (const Json& line : json_lines(folder / "four/rank_03.jsonl")) {
    EXPECT_EQ(line["rank"], 3);
    if (line["pass"] == "traced") expect_sums(line);
  }

  expect_valid_as(folder / "four/summary.json", kSchema);
  const Json summary = read_json(folder / "four/summary.json");
  EXPECT_EQ(summary["ranks"]["count"], 4);
  ASSERT_EQ(summary["per_rank"].size(), 4u);
  EXPECT_TRUE(summary["skew"].is_object());
  EXPECT_LT(summary["overlap"]["serial_efficiency"].get<double>(), 0.05);
  expect_sums(summary["overlap"]);
  // 12 collectives, each at least as long as the latency that was added.
  const Json& kinds = summary["per_rank"][0]["communication_alone"]["collectives"];
  EXPECT_GT(kinds["all_gather"].get<double>(), 200e3);
  EXPECT_GT(kinds["reduce_scatter"].get<double>(), 200e3);

  ASSERT_EQ(weir(tiny_overlap(config_file("default"), {"--summary", folder / "one.json"})).code, 0);
  expect_same_losses(summary["losses"], read_json(folder / "one.json")["losses"]);

  const Outcome analysed = weir({"analyze", folder / "four/trace.json", "--json"});
  ASSERT_EQ(analysed.code, 0) << analysed.err;
  const Json analysis = Json::parse(analysed.out);
  ASSERT_EQ(analysis["devices"].size(), 4u);
  EXPECT_EQ(analysis["clocks"]["is_aligned"], true);
  for (const Json& device : analysis["devices"]) {
    // Of both together, as the summary has it: on a busy machine a mean of ratios is something else.
    double hidden_ns = 0, communication_ns = 0;
    const Json& steps = device["iterations"]["list"];
    ASSERT_EQ(steps.size(), 2u);
    for (const Json& step : steps) {
      hidden_ns += step["times"]["hidden_communication_ns"].get<double>();
      communication_ns += step["times"]["communication_ns"].get<double>();
    }
    const Json& own = summary["per_rank"][device["rank"].get<std::size_t>()];
    EXPECT_NEAR(hidden_ns / communication_ns, own["overlapped"]["efficiency"].get<double>(), 0.02) << device["rank"];
  }
}

TEST(Overlap, everything_on_one_stream_hides_nothing) {
  const Folder folder;
  ASSERT_EQ(weir(tiny_overlap(config_file("default"), {"--set", "run.placement=serial", "--set",
                                                       "network.latency_us=200", "--summary", folder / "s.json"}))
                .code,
            0);
  const Json summary = read_json(folder / "s.json");
  EXPECT_LT(summary["overlap"]["efficiency"].get<double>(), 0.05);
  EXPECT_EQ(summary["placement"], "serial");
}

TEST(Overlap, the_configs_run) {
  const Folder folder;
  std::map<std::string, Json> summaries;
  for (const char* const name : {"ddp", "queue_starved", "small_buckets", "distributed"}) {
    const std::string file = folder / (std::string(name) + ".json");
    const Outcome outcome = weir(tiny_overlap(config_file(name), {"--summary", file}));
    ASSERT_EQ(outcome.code, 0) << name << outcome.err;
    expect_valid_as(file, kSchema);
    summaries[name] = read_json(file);
    EXPECT_EQ(summaries[name]["check"]["status"], "passed") << name;
    expect_sums(summaries[name]["overlap"]);
  }
  const Json& kinds = summaries["ddp"]["overlap"]["collectives"];
  EXPECT_TRUE(kinds.contains("all_reduce"));
  EXPECT_FALSE(kinds.contains("all_gather")) << "all ranks have all parameters";
  EXPECT_EQ(summaries["queue_starved"]["device"]["hardware_queues"], 1);
  EXPECT_EQ(summaries["distributed"]["parameters"]["accumulation"], 2);
}

TEST(Overlap, a_sweep_has_a_folder_for_each_point) {
  const Folder folder;
  write_text(folder / "sweep.yaml", "network:\n  latency_us: 100\nsweep:\n  fsdp.prefetch: [0, 2]\n");
  const Outcome outcome = weir(tiny_overlap(folder / "sweep.yaml", {"-o", folder / "out", "--json"}));
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const Json list = Json::parse(outcome.out);
  ASSERT_EQ(list.size(), 2u);
  EXPECT_EQ(list[1]["assignments"][0], "fsdp.prefetch=2");
  const std::string report = file_content(folder / "out/report.md");
  for (std::size_t i = 0; i < 2; ++i) {
    const std::string point = i == 0 ? "fsdp.prefetch=0" : "fsdp.prefetch=2";
    EXPECT_TRUE(has(report, point)) << report;
    expect_valid_as(folder / ("out/" + point + "/summary.json"), kSchema);
    EXPECT_EQ(list[i]["summary"], read_json(folder / ("out/" + point + "/summary.json")));
  }
  expect_same_losses(list[0]["summary"]["losses"], list[1]["summary"]["losses"]);

  const Outcome compared = weir({"compare", folder / "out", folder / "out"});
  EXPECT_EQ(compared.code, 0) << compared.err;
  for (const char* const point : {"fsdp.prefetch=0", "fsdp.prefetch=2"})
    EXPECT_TRUE(has(compared.out, point)) << compared.out;

  const Outcome reported = weir(tiny_overlap(
      folder / "sweep.yaml", {"--device", "sim:h200", "--set", "network.latency_us=0", "-o", folder / "sim"}));
  EXPECT_EQ(reported.code, 0) << reported.err;
  expect_narrow(reported.out);
  EXPECT_TRUE(has(reported.out, "weir overlap: a sweep\n")) << reported.out;
}

TEST(Overlap, a_simulated_device_has_figures_but_no_losses) {
  const Folder folder;
  const Outcome outcome =
      weir({"overlap", config_file("default"), "--device", "sim:h200", "--set", "run.scale=tiny", "--set",
            "run.iterations=3", "--set", "run.traced=2", "--summary", folder / "sim.json"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  expect_valid_as(folder / "sim.json", kSchema);
  const Json summary = read_json(folder / "sim.json");
  expect_sums(summary["overlap"]);
  EXPECT_TRUE(summary["losses"].is_null());
  EXPECT_TRUE(summary["unavailable"].contains("losses"));
  EXPECT_TRUE(has(summary["check"]["reason"].string(), "computes nothing"));
}

TEST(Overlap, ctrl_c_saves_what_there_is_and_claims_no_more) {
  const Folder folder;
  const pid_t process = start_program({WEIR_BINARY, "overlap", config_file("default"), "--device", "cpu", "--set",
                                       "run.scale=tiny", "--set", "run.iterations=1000000", "-o", folder / "run"},
                                      folder.path(), folder / "out", folder / "err");
  await_handler(process, SIGINT);
  ::kill(process, SIGINT);
  EXPECT_EQ(wait_for(process), 130) << file_content(folder / "err");
  expect_valid_as(folder / "run/summary.json", kSchema);
  const Json summary = read_json(folder / "run/summary.json");
  EXPECT_EQ(summary["status"], "interrupted");
  EXPECT_TRUE(summary["overlap"]["efficiency"].is_null());
  for (const char* const missing : {"overlap", "skew", "step_ns.serial"})
    EXPECT_TRUE(summary["unavailable"].contains(missing)) << missing;
  const std::string said = file_content(folder / "out");
  EXPECT_TRUE(has(said, "Not known: no step was traced.")) << said;
  for (const char* const untrue : {"trace.json", "serial and overlapped alike", "It was not."})
    EXPECT_FALSE(has(said, untrue)) << said;
}

TEST(Overlap, a_rank_that_stays_away_is_named_by_all) {
  NEEDS_RANKS();
  const Folder folder;
  const Outcome outcome =
      weir(tiny_overlap(config_file("hang"), {"--hang-timeout", "2s", "-o", folder / "run"}), folder.path());
  EXPECT_EQ(outcome.code, 1) << outcome.err;
  EXPECT_FALSE(fs::exists(folder / "run"));
  // Which rank says something: the last that has opened its report before.
  const auto says = [&](int rank, const std::string& part) {
    for (std::size_t at = outcome.err.find(part); at != std::string::npos; at = outcome.err.find(part, at + 1)) {
      const std::size_t own = outcome.err.rfind("rank " + std::to_string(rank) + " of 2: the run does not go on", at);
      const std::size_t other =
          outcome.err.rfind("rank " + std::to_string(1 - rank) + " of 2: the run does not go on", at);
      if (own != std::string::npos && (other == std::string::npos || other < own)) return true;
    }
    return false;
  };
  EXPECT_TRUE(says(1, "this rank has not started it: the others wait for this one")) << outcome.err;
  EXPECT_FALSE(says(0, "this rank has not started it")) << outcome.err;
  EXPECT_TRUE(says(0, "waits for other ranks to join")) << outcome.err;
  for (const int rank : {0, 1}) EXPECT_TRUE(says(rank, "all_gather,") || says(rank, "reduce_scatter,")) << outcome.err;
}

}  // namespace
}  // namespace weir::testing
