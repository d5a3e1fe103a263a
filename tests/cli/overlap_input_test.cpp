// What `weir overlap` refuses, and how: before anything runs, with exit code 2 and one message that names the key, the
// flag or the line.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "cli/overlap_runs.h"
#include "cli/queues_checks.h"

namespace weir::testing {
namespace {

void expect_refused(const Outcome& outcome, std::initializer_list<const char*> parts) {
  EXPECT_EQ(outcome.code, 2) << outcome.err << outcome.out;
  EXPECT_EQ(outcome.err.find("weir: "), 0u) << outcome.err;
  EXPECT_EQ(outcome.err.rfind("weir: "), 0u) << "one message: " << outcome.err;
  EXPECT_EQ(outcome.out, "");
  std::string text = outcome.err;
  std::replace(text.begin(), text.end(), '\n', ' ');
  for (std::size_t at = text.find("  "); at != std::string::npos; at = text.find("  ")) text.erase(at, 1);
  for (const char* const part : parts) EXPECT_TRUE(has(text, part)) << part << "\n" << outcome.err;
}

// Of a run with the default config, which must not leave anything behind.
void expect_refused(std::initializer_list<std::string> arguments, std::initializer_list<const char*> parts) {
  const Folder folder;
  expect_refused(weir(tiny_overlap(config_file("default"), arguments), folder.path()), parts);
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

void expect_refused_file(const std::string& text, std::initializer_list<const char*> parts) {
  const Folder folder;
  write_text(folder / "my.yaml", text);
  expect_refused(weir(tiny_overlap("my.yaml"), folder.path()), parts);
  EXPECT_FALSE(std::filesystem::exists(folder / "results"));
}

TEST(OverlapInput, files_are_refused_by_line) {
  expect_refused_file("fsdp:\n  prefetch: 1\n  prefech: 2\n",
                      {"my.yaml:3: ", "unknown key 'fsdp.prefech'", "Did you mean 'fsdp.prefetch'?"});
  expect_refused_file("fsdp:\n  prefetch: many\n", {"my.yaml:2: ", "cannot be 'many'", "Use 0 to 64"});
  expect_refused_file("fsdp:\n  prefetch: 1\n  prefetch: 2\n", {"my.yaml:3: ", "twice"});
  expect_refused_file("model: [1, 2\n  - }{", {"my.yaml:2: not YAML"});
  expect_refused_file("just words\n", {"my.yaml:1: ", "sections"});
  expect_refused_file("", {"my.yaml: empty"});
  expect_refused_file("sweep:\n  fsdp.prefetch: 1\n", {"my.yaml:2: ", "a list of values is needed"});
  expect_refused_file("sweep:\n  fsdp.prefetch: [1, 2, 1]\n", {"my.yaml:2: ", "1 is swept already"});
  expect_refused_file("sweep:\n  run.ranks: [1, 2]\n", {"my.yaml:2: ", "one job", "--ranks"});
  expect_refused_file("logging:\n  level: 1\ntraining:\n  batch_size: 9000000000000000000\n",
                      {"my.yaml:4: ", "is not a batch size"});
  expect_refused_file("distributed:\n  bucket_cap_mb: 9000000000000000000\n", {"my.yaml:2: ", "is not a size"});
}

TEST(OverlapInput, files_that_are_none_are_refused) {
  const Folder folder;
  expect_refused(weir(tiny_overlap("absent.yaml"), folder.path()),
                 {"absent.yaml: cannot be read: No such file", "config/default.yaml"});
  expect_refused(weir(tiny_overlap("."), folder.path()), {".: is a folder, not a file"});
  expect_refused(weir({"overlap"}, folder.path()), {"a config is required", "weir overlap config/default.yaml"});
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

TEST(OverlapInput, settings_are_refused_by_key) {
  expect_refused({"--set", "fsdp.prefech=2"}, {"--set fsdp.prefech=2: ", "Did you mean 'fsdp.prefetch'?"});
  expect_refused({"--set", "training.prefetch=2"}, {"Did you mean 'fsdp.prefetch'?"});
  expect_refused({"--set", "fsdp.prefetch"}, {"--set fsdp.prefetch: not an assignment"});
  expect_refused({"--set", "run.submit=pigeon"}, {"run.submit pigeon: ", "inline, threads, graph"});
  expect_refused({"--set", "model.heads=3"}, {"model.dim=16: heads = 3 does not divide it", "model.dim=15 or 18"});
  expect_refused({"--set", "training.batch=100000000"}, {"training.batch=100000000: out of range"});
  expect_refused({"--set", "training.batch=1048576", "--set", "model.sparse=1000"},
                 {"training.batch: the step needs ", "of memory, 'cpu' has ", "Use a smaller training.batch"});
  expect_refused({"--set", "network.absent_rank=1"}, {"network.absent_rank 1: there is 1 rank", "count from 0"});
  expect_refused({"--hang-timeout", "soon"}, {"--hang-timeout soon: not a time"});
  expect_refused({"--device", "null"}, {"run.device null: it runs nothing"});
  expect_refused({"--device", "cpu:7:8"}, {"cpu:7:8"});
  expect_refused({"--device", "sim:h200", "--set", "network.latency_us=5"}, {"'sim:h200' lives in virtual time"});
}

TEST(OverlapInput, folders_that_cannot_be_written_are_refused_before_the_run) {
  const Folder folder;
  write_text(folder / "file", "");
  expect_refused(weir(tiny_overlap(config_file("default"), {"-o", folder / "file"})), {"is not a folder"});
  expect_refused(weir(tiny_overlap(config_file("default"), {"-o", folder / "file/run"})), {"cannot write into "});
}

TEST(OverlapInput, ranks_must_fit_the_batch_and_the_job) {
  expect_refused({"--ranks", "0"}, {"--ranks 0: not a number of ranks"});
  expect_refused({"--ranks", "2", "--set", "network.absent_rank=2"}, {"network.absent_rank 2: there are 2 ranks"});
  expect_refused({"--ranks", "3"}, {"training.batch=8: world size = 3 does not divide it",
                                    "training.batch=6 or 9, or another world size"});
  expect_refused({"--ranks", "4", "--set", "run.ranks=2"}, {"run.ranks 2: --ranks says 4 processes", "mpirun -n 2"});
  expect_refused({"--ranks", "4", "--set", "training.batch=1048576", "--set", "model.dim=1024"},
                 {"training.batch: the step needs ", "on each of this host's ranks"});
  NEEDS_RANKS();
  const Folder folder;
  std::vector<std::string> command = {"mpirun", "-q", "-n", "2", "--oversubscribe", "--allow-run-as-root", WEIR_BINARY};
  for (const std::string& argument : tiny_overlap(config_file("default"), {"--set", "run.ranks=4"}))
    command.push_back(argument);
  expect_refused(run_program(command, folder.path()), {"run.ranks 4: this job has 2 processes", "mpirun -n 4"});
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

constexpr const char* kAorta =
    "training:\n"
    "  epochs: 1\n"
    "  batch_size: 4\n"
    "  gradient_accumulation: 2\n"
    "  mixed_precision: none\n"
    "  grad_clip_norm: 0.5\n"
    "optimizer:\n"
    "  lr: 0.002\n"
    "  betas: [0.9, 0.98]\n"
    "model:\n"
    "  num_layers: 3\n"
    "  dropout: 0.1\n"
    "fsdp:\n"
    "  sharding_strategy: full_shard\n"
    "  backward_prefetch: BACKWARD_PRE\n"
    "  param_init_device: cpu\n"
    "distributed:\n"
    "  mode: fsdp\n"
    "  enable_overlap: true\n";

TEST(OverlapInput, a_config_of_aortas_is_taken_and_what_is_not_is_named) {
  const Folder folder;
  write_text(folder / "aorta.yaml", kAorta);
  const Outcome outcome = weir(tiny_overlap(folder / "aorta.yaml", {"-o", folder / "run"}));
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const Json summary = read_json(folder / "run/summary.json");
  EXPECT_EQ(summary["parameters"]["layers"], 3);
  EXPECT_EQ(summary["parameters"]["batch"], 4);
  EXPECT_EQ(summary["parameters"]["accumulation"], 1);
  EXPECT_EQ(summary["parameters"]["prefetch"], 1);
  EXPECT_DOUBLE_EQ(summary["parameters"]["clip"].get<double>(), 0.5);
  EXPECT_DOUBLE_EQ(summary["parameters"]["rate"].get<double>(), 0.002);
  EXPECT_DOUBLE_EQ(summary["parameters"]["beta2"].get<double>(), 0.98);
  EXPECT_DOUBLE_EQ(summary["parameters"]["dropout"].get<double>(), 0.1);
  const std::string report = file_content(folder / "run/report.md");
  for (const char* const note :
       {"not taken: training.epochs: ", "not taken: training.gradient_accumulation: AORTA read it and never used it",
        "not taken: fsdp.param_init_device: AORTA never read it",
        "not taken: distributed.enable_overlap: AORTA never read it"}) {
    const Json& notes = summary["notes"];
    EXPECT_TRUE(std::any_of(notes.begin(), notes.end(),
                            [&](const Json& each) { return each.get<std::string>().starts_with(note); }))
        << note << "\n"
        << notes;
  }
  EXPECT_TRUE(has(report, "not taken: ")) << report;
}

TEST(OverlapInput, a_batch_of_aortas_is_that_of_each_rank) {
  NEEDS_RANKS();
  const Folder folder;
  write_text(folder / "aorta.yaml", kAorta);
  for (const std::vector<std::string>& ranks :
       std::vector<std::vector<std::string>>{{"--ranks", "2"}, {"--set", "run.ranks=2"}}) {
    const Outcome outcome = weir(
        tiny_overlap(folder / "aorta.yaml", {ranks[0], ranks[1], "--summary", folder / "summary.json", "--force"}));
    ASSERT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_EQ(read_json(folder / "summary.json")["parameters"]["batch"], 8);
  }
}

}  // namespace
}  // namespace weir::testing
