// Drives `weir analyze` over folders, and as a job of several processes: one document, whoever reads what.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "base/json.h"
#include "cli/program.h"
#include "support/text.h"

namespace weir::testing {
namespace {

namespace fs = std::filesystem;

// Why jobs cannot be tested here; empty where they can.
std::string missing_for_jobs() {
  if (!fs::exists(fs::path(WEIR_BINARY).parent_path() / "libweir_mpi.so"))
    return "libweir_mpi.so was not built: no MPI";
  return run_program({"mpirun", "--version"}).code == 0 ? "" : "there is no mpirun";
}

#define NEEDS_JOBS() \
  if (const std::string reason = missing_for_jobs(); !reason.empty()) GTEST_SKIP() << reason

// A rank of a training job as PyTorch writes it: each step is a product, an all-reduce that all ranks leave together,
// and what the rank waits for. The clocks of the ranks are apart.
std::string rank_of_job(int rank, int ranks) {
  std::string events;
  const auto add = [&](const char* category, const std::string& name, int tid, double at, double lasts,
                       const std::string& arguments) {
    events +=
        fmt::format(R"({}{{"ph":"X","cat":"{}","name":"{}","pid":{},"tid":{},"ts":{:.3f},"dur":{:.3f},"args":{{{}}}}})",
                    events.empty() ? "" : ",\n", category, name, tid == 9 ? 9 : 0, tid, at, lasts, arguments);
  };
  int correlation = 0;
  for (int step = 0; step < 40; ++step) {
    const double begun = 1000.0 + 5000.0 * rank + 1000.0 * step + 7 * (step * step % 11);
    add("user_annotation", fmt::format("ProfilerStep#{}", step), 9, begun, 990, "");
    for (int i = 0; i < 4; ++i) {
      ++correlation;
      add("cuda_runtime", "cudaLaunchKernel", 9, begun + 10 + 30 * i, 5,
          fmt::format("\"correlation\":{}", correlation));
      add("kernel", fmt::format("gemm{}", (rank + i) % 3), 7, begun + 20 + 150 * i, 100 + 3 * (rank % 5) + i,
          fmt::format(R"("device":0,"stream":7,"correlation":{})", correlation));
    }
    const double arrived = begun + 640 + 4 * rank * (step % 3);
    add("kernel", "ncclDevKernel_AllReduce_Sum_f32_RING_LL", 20, arrived, begun + 900 - arrived + 0.1 * (rank % 3),
        fmt::format(R"("device":0,"stream":20,"correlation":{},"Collective name":"allreduce","In msg nelems":{},)"
                    R"("Out msg nelems":{},"Group size":{},"dtype":"Float","Process Group Name":"0")",
                    ++correlation, 1000 + step, 1000 + step, ranks));
  }
  return fmt::format(R"({{"schemaVersion":1,"distributedInfo":{{"rank":{},"world_size":{}}},"traceEvents":[
{}]}})",
                     rank, ranks, events);
}

void write_file(const fs::path& path, const std::string& text) { std::ofstream(path) << text; }

void write_job(const Folder& folder, int ranks) {
  fs::create_directory(folder.path() / "traces");
  for (int rank = 0; rank < ranks; ++rank)
    write_file(folder.path() / "traces" / fmt::format("rank{}.json", rank), rank_of_job(rank, ranks));
}

Outcome analyze_in_job(const Folder& folder, const std::vector<std::string>& words, int processes) {
  std::vector<std::string> command = {
      "mpirun",    "-q",     "-n", std::to_string(processes), "--oversubscribe", "--allow-run-as-root",
      WEIR_BINARY, "analyze"};
  command.insert(command.end(), words.begin(), words.end());
  return run_program(command, folder.path());
}

// The time at which it was made is the only part that may differ.
std::string document_in(const Outcome& outcome) {
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  Json document = Json::parse(outcome.out);
  document["created"] = nullptr;
  return document.dump(1);
}

void expect_same_in_jobs(const Folder& folder, std::vector<std::string> words) {
  words.emplace_back("--json");
  std::vector<std::string> alone = {"analyze"};
  alone.insert(alone.end(), words.begin(), words.end());
  const std::string expected = document_in(weir(alone, folder.path()));
  for (const int processes : {2, 3}) EXPECT_EQ(document_in(analyze_in_job(folder, words, processes)), expected);
}

TEST(AnalyzeRanks, a_folder_stands_for_the_traces_in_it) {
  const Folder folder;
  write_job(folder, 11);
  write_file(folder.path() / "traces" / "notes.txt", "not a trace\n");
  write_file(folder.path() / "traces" / "empty.json", "");
  fs::create_directory(folder.path() / "traces" / "deeper");
  write_file(folder.path() / "traces" / "deeper" / "rank11.json", rank_of_job(11, 12));
  const Outcome outcome = weir({"analyze", "traces", "--json"}, folder.path());
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_TRUE(has(outcome.err, "traces: 2 files were passed over, not recognised as traces: empty.json, notes.txt"))
      << outcome.err;
  const Json document = Json::parse(outcome.out);
  ASSERT_EQ(document["files"].size(), 11u);
  EXPECT_EQ(document["files"][2]["name"], "traces/rank2.json");
  EXPECT_EQ(document["files"][10]["name"], "traces/rank10.json");
  EXPECT_EQ(document["devices"].size(), 11u);

  fs::create_directory(folder.path() / "none");
  const Outcome none = weir({"analyze", "none"}, folder.path());
  EXPECT_EQ(none.code, 2);
  EXPECT_TRUE(has(none.err, "no trace directly in this folder")) << none.err;
}

TEST(AnalyzeRanks, a_job_writes_the_document_of_one_process) {
  NEEDS_JOBS();
  const Folder folder;
  write_job(folder, 8);
  expect_same_in_jobs(folder, {"traces"});
  expect_same_in_jobs(folder, {"traces", "--operators", "--window", "5ms..30ms", "--top", "3"});
  // More processes than traces.
  expect_same_in_jobs(folder, {"traces/rank0.json"});
}

TEST(AnalyzeRanks, a_job_ends_when_one_of_its_processes_cannot_read) {
  NEEDS_JOBS();
  const Folder folder;
  write_job(folder, 4);
  fs::remove(folder.path() / "traces" / "rank2.json");
  // Named, it must be there; the first rank looks.
  const Outcome gone = analyze_in_job(folder, {"traces/rank0.json", "traces/rank2.json"}, 2);
  EXPECT_EQ(gone.code, 2) << gone.err;
  EXPECT_TRUE(has(gone.err, "rank2.json")) << gone.err;
  // As a trace of a format that it is not in: whoever reads it ends all.
  write_file(folder.path() / "traces" / "rank2.json", "not a database");
  const Outcome odd = analyze_in_job(folder, {"traces/rank2.json", "traces/rank0.json", "--input-format", "rpd"}, 2);
  EXPECT_NE(odd.code, 0) << odd.err;
  EXPECT_TRUE(has(odd.err, "rank2.json") || has(odd.err, "rank0.json")) << odd.err;
}

TEST(AnalyzeRanks, a_job_says_what_it_does_not_do) {
  NEEDS_JOBS();
  const Folder folder;
  write_job(folder, 2);
  const Outcome drawn = analyze_in_job(folder, {"traces", "--svg", "t.svg"}, 2);
  EXPECT_EQ(drawn.code, 2);
  EXPECT_TRUE(has(drawn.err, "need all timelines in one process")) << drawn.err;
  fs::copy_file(folder.path() / "traces" / "rank0.json", folder.path() / "again.json");
  const Outcome runs = analyze_in_job(folder, {"traces/rank0.json", "again.json"}, 2);
  EXPECT_EQ(runs.code, 2);
  EXPECT_TRUE(has(runs.err, "weir compare A B, without mpirun or srun")) << runs.err;
  expect_same_in_jobs(folder, {"traces/rank0.json", "again.json", "--ranks"});
}

TEST(AnalyzeRanks, real_ranks_have_one_document) {
  NEEDS_JOBS();
  const char* const data = std::getenv("WEIR_REAL_DATA");
  if (data == nullptr || *data == '\0') GTEST_SKIP() << "WEIR_REAL_DATA is not set: no real captures to read";
  const fs::path packed = fs::path(data) / "kineto" / "v100_dlrm_8ranks.tar.gz";
  if (!fs::exists(packed)) GTEST_SKIP() << packed << " is not there";
  const Folder folder;
  fs::create_directory(folder.path() / "packed");
  fs::create_directory(folder.path() / "ranks");
  ASSERT_EQ(run_program({"tar", "-xzf", packed.string(), "-C", folder / "packed"}).code, 0);
  for (const auto& entry : fs::recursive_directory_iterator(folder.path() / "packed"))
    if (entry.is_regular_file()) fs::rename(entry.path(), folder.path() / "ranks" / entry.path().filename());
  expect_same_in_jobs(folder, {"ranks", "--operators"});
  expect_same_in_jobs(folder, {packed.string()});
}

}  // namespace
}  // namespace weir::testing
