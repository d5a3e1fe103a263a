// `weir bench` on packages of plain Python, as QuASIM's are: found, called, checked, reported, and survived.
#include <gtest/gtest.h>

#include <filesystem>

#include "base/json.h"
#include "cli/program.h"
#include "cli/queues_checks.h"
#include "support/text.h"

namespace weir::testing {
namespace {

namespace fs = std::filesystem;

class BenchPython : public ::testing::Test {
 protected:
  void SetUp() override {
    if (run_program({"python3", "-c", ""}).code != 0) GTEST_SKIP() << "python3 is not there";
  }
  Outcome bench(std::vector<std::string> more = {}) {
    std::vector<std::string> arguments = {"bench", "--iterations", "5", "--budget", "1s", "--no-roofline", "--force"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return weir(arguments, folder_.path());
  }
  void put(const std::string& file, const std::string& text) { put_file(folder_.path() / file, text); }
  Json summary() const { return read_json(folder_ / "reports/summary.json"); }
  Json entry(const std::string& key) const {
    const Json all = summary();
    for (const Json& one : all["cases"])
      if (one["key"] == key) return one;
    ADD_FAILURE() << "no case " << key;
    return {};
  }
  Folder folder_;
};

constexpr const char* kSum =
    "def run_benchmark(problem_size=1024, iterations=1):\n"
    "    n = problem_size['grid_size'][0] if isinstance(problem_size, dict) else problem_size\n"
    "    return {'result': sum(range(n)), 'expected': n * (n - 1) / 2}\n";

// The document's own package: its bench.yaml, and a function of its signature.
TEST_F(BenchPython, a_package_of_the_original_runs_as_it_is) {
  put("integrations/kernels/poisson/poisson.py", kSum);
  put("integrations/kernels/poisson/bench.yaml",
      "problem_size:\n  grid_size: [64, 64, 64]\n  max_iterations: 50\n  tolerance: 1.0e-5\n"
      "precisions:\n  - fp32\n  - fp16\nbackends:\n  - cpu\n  - cuda\n"
      "tolerances:\n  rmse: 1.0e-3\n  relative_error: 1.0e-2\n"
      "skip_conditions:\n  - backend: cuda\n    reason: \"CUDA not available\"\n"
      "    check: \"not torch.cuda.is_available()\"\n");
  const Outcome outcome = bench({"--device", "cpu"});
  ASSERT_EQ(outcome.code, 0) << outcome.out << outcome.err;
  expect_narrow(outcome.out);
  const std::string problem = "/grid_size=64x64x64,max_iterations=50,tolerance=1e-05";
  const Json measured = entry("poisson/cpu/fp32" + problem);
  EXPECT_EQ(measured["status"], "ok") << measured.dump();
  EXPECT_EQ(measured["how"], "python");
  EXPECT_EQ(measured["accuracy"]["is_within"], true);
  // It cannot be told a precision, so the second one would be a mere label.
  EXPECT_EQ(entry("poisson/cpu/fp16" + problem)["error"]["what"], "the kernel does not have fp16: it has fp32");
  const Json python = read_json(folder_ / "reports/env.json")["python"];
  EXPECT_TRUE(python["version"].is_string() && python["libraries"].contains("torch")) << python.dump();
  EXPECT_TRUE(has(outcome.out, "python") && has(outcome.out, python["version"].get<std::string>())) << outcome.out;
  expect_valid_as(folder_ / "reports/env.json", "weir.bench_environment.1.json");
  expect_valid_as(folder_ / "reports/kernel_manifest.json", "weir.kernel_manifest.1.json");
}

TEST_F(BenchPython, all_usual_folders_are_searched) {
  const char* const folders[] = {"kernels", "src/kernels", "quasim/kernels", "integrations/kernels",
                                 "autonomous_systems_platform/services/backend/quasim/kernels"};
  for (int i = 0; i < 5; ++i) put(std::string(folders[i]) + "/k" + std::to_string(i) + ".py", kSum);
  const Outcome outcome = bench({"--list", "--json"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const Json plan = parse_json(outcome.out, "plan");
  ASSERT_EQ(plan["units"].size(), 5U) << outcome.out;
  for (int i = 0; i < 5; ++i) EXPECT_EQ(plan["units"][static_cast<std::size_t>(i)]["package"], "k" + std::to_string(i));
}

TEST_F(BenchPython, several_modules_of_a_folder_are_measured_each) {
  put("kernels/many/one.py", kSum);
  put("kernels/many/two.py", "def run_benchmark(grid=(2, 2, 2)):\n    return {'x': grid[2], 'expected': 16}\n");
  put("kernels/many/three.py", "def solve(n):\n    return n\n");
  ASSERT_EQ(bench().code, 1) << "one gets a wrong result";
  EXPECT_EQ(entry("one/cpu/fp64/problem_size=1024")["status"], "ok");
  EXPECT_EQ(entry("two/cpu/fp64/grid=2x2x2")["status"], "inaccurate");
  // As many numbers as the parameter has are one value.
  put("kernels/many/bench.yaml", "problem_size: {grid: [64, 32, 16]}\n");
  ASSERT_EQ(bench({"--filter", "two"}).code, 0);
  EXPECT_EQ(entry("two/cpu/fp64/grid=64x32x16")["status"], "ok");
  put("kernels/many/bench.yaml", "function_name: solve\nproblem_size: {n: [3, 4]}\n");
  ASSERT_EQ(bench().code, 0);
  EXPECT_EQ(entry("many/cpu/fp64/n=4")["status"], "ok");
}

TEST_F(BenchPython, without_python_it_is_skipped_with_the_reason) {
  put("kernels/sum/sum.py", kSum);
  const Folder empty;
  const Outcome outcome =
      run_program({"env", "PATH=" + empty.path().string(), WEIR_BINARY, "bench", "--device", "cpu"}, folder_.path());
  EXPECT_EQ(outcome.code, 1) << outcome.out << outcome.err;
  EXPECT_TRUE(has(outcome.out, "it needs python3, which is not here")) << outcome.out;
  EXPECT_TRUE(read_json(folder_ / "reports/env.json")["python"].is_null());
}

TEST_F(BenchPython, a_framework_that_is_not_here_is_a_reason) {
  put("kernels/net/net.py", "import torch\n" + std::string(kSum));
  put("kernels/sum/sum.py", kSum);
  put("kernels/sum/bench.yaml", "backends: [cpu, rocm, jax]\n");
  const Outcome outcome = bench();
  ASSERT_EQ(outcome.code, 0) << outcome.out << outcome.err;
  if (run_program({"python3", "-c", "import importlib.metadata as m; m.version('torch')"}).code != 0) {
    EXPECT_EQ(entry("net/pytorch")["error"]["what"], "pytorch is not on this machine: python3 has no torch");
  }
  EXPECT_EQ(entry("sum/cpu/fp64/problem_size=1024")["status"], "ok");
  EXPECT_EQ(weir({"bench", "--list", "--device", "rocm"}, folder_.path()).code, 0) << "rocm is hip";
}

TEST_F(BenchPython, a_hostile_module_costs_its_own_case) {
  put("kernels/aborts/a.py", "import os\ndef run_benchmark():\n    os.abort()\n");
  put("kernels/floods/f.py", "def run_benchmark():\n    print('x' * 10000000)\n    return 1\n");
  put("kernels/forks/g.py",
      "import os, time\ndef run_benchmark():\n    if os.fork() == 0: time.sleep(1000)\n    return 1\n");
  put("kernels/garbage/g.py",
      "import os\ndef run_benchmark():\n    for fd in range(3, 20):\n        try: os.write(fd, b'\\x1b[2J{{{\\n')\n"
      "        except OSError: pass\n");
  put("kernels/hangs/h.py", "import time\ntime.sleep(1000)\ndef run_benchmark():\n    return 1\n");
  put("kernels/sum/sum.py", kSum);
  const Outcome outcome = bench({"--time-limit", "5s", "--processes", "1"});
  EXPECT_EQ(outcome.code, 1) << outcome.out << outcome.err;
  EXPECT_EQ(outcome.out.find('\x1b'), std::string::npos);
  EXPECT_TRUE(has(entry("aborts/cpu/fp64")["error"]["what"].string(), "killed by signal 6"));
  EXPECT_EQ(entry("floods/cpu/fp64")["status"], "ok");
  EXPECT_TRUE(has(entry("garbage/cpu/fp64")["error"]["what"].string(), "is not JSON") ||
              has(entry("garbage/cpu/fp64")["error"]["what"].string(), "before it was asked"));
  EXPECT_EQ(entry("hangs/cpu")["status"], "timed_out");
  EXPECT_EQ(entry("sum/cpu/fp64/problem_size=1024")["status"], "ok");
}

TEST_F(BenchPython, errors_of_its_own_are_held_against_tolerances) {
  put("kernels/own/own.py", "def run_benchmark():\n    return {'accuracy': {'rmse': 0.01, 'max_error': 0.02}}\n");
  EXPECT_EQ(bench().code, 0);
  EXPECT_EQ(entry("own/cpu/fp64")["accuracy"]["rmse"], 0.01);
  put("kernels/own/bench.yaml", "tolerances: {rmse: 1.0e-3}\n");
  EXPECT_EQ(bench().code, 1);
  EXPECT_EQ(entry("own/cpu/fp64")["error"]["what"], "the kernel reports rmse 0.01, which is beyond 0.001");
}

}  // namespace
}  // namespace weir::testing
