// Drives `weir compare` and `weir overlap tune` as a user would.
#include <gtest/gtest.h>

#include <algorithm>

#include "cli/overlap_runs.h"
#include "cli/queues_checks.h"

namespace weir::testing {
namespace {

// In virtual time: what other programs do to the machine makes no difference.
std::string steady_run(const Folder& folder, const std::string& name) {
  const Outcome outcome =
      weir(tiny_overlap(config_file("default"), {"--device", "sim:h200", "--set", "run.iterations=7", "--set",
                                                 "run.traced=6", "-q", "-o", folder / name}));
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  return folder / name;
}

TEST(OverlapCompare, the_same_twice_is_not_slower_and_twice_as_long_is) {
  const Folder folder;
  const std::string before = steady_run(folder, "before"), after = steady_run(folder, "after");
  const Outcome same = weir({"compare", before, after, "--strict"});
  EXPECT_EQ(same.code, 0) << same.out << same.err;
  expect_narrow(same.out.substr(same.out.find('\n')));
  for (const char* const metric : {"step ", "exposed ", "efficiency "})
    EXPECT_TRUE(has(same.out, metric)) << metric << "\n" << same.out;

  Json doctored = read_json(before + "/summary.json");
  for (Json& sample : doctored["step_ns"]["overlapped"]["samples_ns"]) sample = 2 * sample.get<double>();
  write_text(folder / "slow.json", doctored.dump());
  const Outcome slower = weir({"compare", before, folder / "slow.json"});
  EXPECT_EQ(slower.code, 3) << slower.out << slower.err;
  EXPECT_TRUE(has(slower.out, "slower")) << slower.out;
  EXPECT_EQ(weir({"compare", folder / "slow.json", before}).code, 0) << "faster is no regression";

  doctored["status"] = "failed";
  doctored["failure"] = "step 3: the loss of rank 1 is another: a race";
  write_text(folder / "wrong.json", doctored.dump());
  const Outcome wrong = weir({"compare", before, folder / "wrong.json"});
  EXPECT_EQ(wrong.code, 3) << wrong.out << wrong.err;
  EXPECT_TRUE(has(wrong.out, "a race")) << wrong.out;

  const Outcome json = weir({"compare", before, folder / "slow.json", "--json"});
  EXPECT_EQ(json.code, 3);
  EXPECT_EQ(Json::parse(json.out)["exit_code"], 3);
}

TEST(OverlapCompare, refuses_what_is_no_run) {
  const Folder folder;
  write_text(folder / "other.json", R"({"schema": "weir.result/2"})");
  write_text(folder / "words.json", "words");
  for (const char* const name : {"other.json", "words.json", "absent.json", "."}) {
    const Outcome outcome = weir({"compare", folder / name, folder / name});
    EXPECT_EQ(outcome.code, 2) << name << outcome.out;
    EXPECT_EQ(outcome.err.find("weir: "), 0u) << outcome.err;
  }
}

TEST(OverlapTune, finds_a_front_within_its_budget) {
  const Folder folder;
  const std::string file = folder / "tune.json";
  std::vector<std::string> arguments =
      tiny_overlap(config_file("default"), {"--set", "network.latency_us=200", "--budget", "4s", "-o", file});
  arguments.insert(arguments.begin() + 1, "tune");
  const Outcome outcome = weir(arguments);
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  expect_narrow(outcome.out.substr(outcome.out.find('\n')));
  EXPECT_TRUE(has(outcome.out, "Step time against memory")) << outcome.out;
  EXPECT_TRUE(has(outcome.out, "Least exposed: ")) << outcome.out;

  expect_valid_as(file, "weir.overlap_tune.2.json");
  const Json document = read_json(file);
  const Json& trials = document["trials"];
  ASSERT_FALSE(trials.empty());
  EXPECT_EQ(trials[0]["settings"]["fsdp.prefetch"], "1") << "as given";
  EXPECT_LT(document["best"].get<std::size_t>(), trials.size());
  EXPECT_TRUE(
      std::any_of(trials.begin(), trials.end(), [](const Json& trial) { return trial["is_on_front"] == true; }));
  const Json& best = trials[document["best"].get<std::size_t>()];
  for (const Json& trial : trials) {
    EXPECT_TRUE(trial["failure"].is_null()) << trial;
    EXPECT_LE(best["exposed_ns"].get<double>(), 1.5 * trial["exposed_ns"].get<double>()) << trial;
  }
  EXPECT_EQ(weir(arguments).code, 2) << "the file exists";
}

TEST(OverlapTune, starts_ranks_for_each_trial) {
  NEEDS_RANKS();
  const Folder folder;
  std::vector<std::string> arguments =
      tiny_overlap(config_file("ddp"), {"--ranks", "2", "--budget", "1s", "-q", "-o", folder / "tune.json"});
  arguments.insert(arguments.begin() + 1, "tune");
  const Outcome outcome = weir(arguments);
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(outcome.out, "");
  const Json document = read_json(folder / "tune.json");
  EXPECT_EQ(document["ranks"], 2);
  ASSERT_FALSE(document["trials"].empty());
  EXPECT_TRUE(document["trials"][0]["failure"].is_null()) << document["trials"][0];
  EXPECT_EQ(document["axes"][0]["key"], "ddp.bucket_kib");
}

TEST(OverlapTune, refuses_what_it_cannot_search) {
  const Folder folder;
  const auto refusal = [&](std::vector<std::string> arguments) {
    arguments.insert(arguments.begin() + 1, "tune");
    const Outcome outcome = weir(arguments, folder.path());
    EXPECT_EQ(outcome.code, 2) << outcome.out;
    return outcome.err;
  };
  EXPECT_TRUE(has(refusal(tiny_overlap(config_file("default"), {"--budget", "soon"})), "--budget soon: not a time"));
  EXPECT_TRUE(has(refusal(tiny_overlap(config_file("prefetch_sweep"))), "it sweeps fsdp.prefetch"));
  EXPECT_TRUE(has(refusal(tiny_overlap(config_file("default"), {"--set", "fsdp.prefech=1"})), "fsdp.prefetch"));
  EXPECT_TRUE(has(refusal(tiny_overlap("absent.yaml")), "absent.yaml: cannot be read: No such file"));
  // Every trial would be refused alike: that is told once, and at once.
  EXPECT_TRUE(has(refusal(tiny_overlap(config_file("default"), {"--ranks", "3", "--budget", "5s"})),
                  "training.batch=8: world size = 3"));
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

}  // namespace
}  // namespace weir::testing
