// Python modules with run_benchmark(): how they are called, what of their results is checked, and what becomes of those
// that hang, die or print.
#include <gtest/gtest.h>

#include <array>
#include <cmath>

#include "lab/kernels/package/backends.h"
#include "lab/kernels/package/discovery.h"
#include "packages.h"

namespace weir::testing {
namespace {

using package::Backend;
using package::Case;

class Python : public ::testing::Test {
 protected:
  void SetUp() override {
    if (std::system("python3 -c '' >/dev/null 2>&1") != 0) GTEST_SKIP() << "python3 is not there";
  }
  package::Package package(const std::string& source, const std::string& config = "") {
    folder_.write("solver.py", source);
    if (!config.empty()) folder_.write("bench.yaml", config);
    package::Package package = package::discover(std::array{folder_.path()}).packages.at(0);
    EXPECT_EQ(package.trouble, "");
    package.name = "solver";
    return package;
  }
  std::unique_ptr<package::OpenPackage> open(const std::string& source, const std::string& config = "",
                                             Backend backend = Backend::cpu, double limit_s = 60) {
    package::OpenOptions options = folder_.options();
    options.reply_limit_s = limit_s;
    return open_package(package(source, config), backend, options);
  }
  // Runs the first problem of the config, and returns the outputs of a checked run.
  package::Checked checked(const std::string& source, const std::string& config = "",
                           Precision precision = Precision::fp64) {
    const auto opened = open(source, config);
    const package::Problem problem =
        package::problems_of(package::discover(std::array{folder_.path()}).packages.at(0).config.problem_size).front();
    const auto kernel = opened->prepare({Backend::cpu, precision, problem, 1337});
    EXPECT_GT(kernel->run(3).device_ns, 0);
    return kernel->check();
  }
  std::string trouble(const std::string& source, double limit_s = 60) {
    return words_of([&] {
      const auto kernel = open(source, "", Backend::cpu, limit_s)->prepare({Backend::cpu, Precision::fp64, {}, 1});
      kernel->run(2);
      kernel->check();
    });
  }
  PackageFolder folder_;
};

std::string returning(const std::string& signature, const std::string& value) {
  return "def run_benchmark(" + signature + "):\n    return " + value + "\n";
}

TEST_F(Python, is_a_kernel_like_any_other) {
  const auto opened = open("'''Adds numbers.'''\n" + returning("problem_size=1024, iterations=1",
                                                               "{'result': sum(range(problem_size)), 'flop': "
                                                               "problem_size, 'items': 3, 'item_name': 'cells'}"));
  EXPECT_EQ(opened->summary(), "Adds numbers.");
  EXPECT_EQ(opened->backends(), bit_of(Backend::cpu));
  EXPECT_EQ(opened->precisions(), bit_of(Precision::fp64)) << "numbers of Python are doubles";
  EXPECT_EQ(opened->defaults(), (package::Problem{{"problem_size", {1024}}}));
  const auto kernel = opened->prepare({Backend::cpu, Precision::fp64, {{"problem_size", {10}}}, 42});
  EXPECT_EQ(kernel->how(), "python");
  EXPECT_EQ(kernel->work().flop, 10);
  EXPECT_EQ(kernel->work().item_name, "cells");
  EXPECT_NE(kernel->device_model().find("Python"), std::string::npos) << kernel->device_model();
  EXPECT_GT(kernel->run(100).device_ns, kernel->run(1).device_ns);
  EXPECT_TRUE(kernel->memory().peak_bytes);
  EXPECT_EQ(kernel->check().outputs.at(0).actual, std::vector<double>{45});
  EXPECT_EQ(kernel->check().reason, "the executable has no reference for output result");
}

TEST_F(Python, every_way_to_take_a_problem_is_called_so) {
  struct Call {
    const char *signature, *value, *config;
    std::vector<double> expected;
  };
  const Call calls[] = {
      {"problem_size=1024, iterations=1", "problem_size + iterations", "", {1025}},
      {"problem_size=1024, iterations=1", "problem_size", "problem_size: {size: 2048}", {2048}},
      {"problem_size: int", "problem_size", "problem_size: {size: 7}", {7}},
      {"problem_size",
       "problem_size['grid_size'] + [problem_size['n']]",
       "problem_size: {grid_size: [64, 32, 64], n: 5}",
       {64, 32, 64, 5}},
      {"problem_size={'n': 3, 'how': 'x'}",
       "[problem_size['n'], len(problem_size['how'])]",
       "problem_size: {n: 4}",
       {4, 1}},
      {"grid=(2, 3), n=4", "[isinstance(grid, tuple), *grid, n]", "problem_size: {grid: [5, 5]}", {1, 5, 5, 4}},
      {"n, seed, threads", "[n, seed, threads]", "problem_size: {n: 9}", {9, 1337, 1}},
      {"config",
       "[config['n'], config['problem_size']['n'], config['precision'] == 'fp32']",
       "problem_size: {n: 2}\nprecisions: [fp32]",
       {2, 2, 1}},
      {"what", "[what['iterations'], what['backend'] == 'cpu']", "", {1, 1}},
      {"**options",
       "[options['n'], options['dtype'] == 'float32', options['device'] == 'cpu']",
       "problem_size: {n: 6}\nprecisions: [fp32]",
       {6, 1, 1}},
  };
  for (const Call& call : calls) {
    std::filesystem::remove(folder_.path() / "bench.yaml");
    const bool is_fp32 = std::string_view(call.config).find("fp32") != std::string_view::npos;
    const package::Checked found = checked(returning(call.signature, call.value), call.config,
                                           is_fp32 || call.signature[0] == 'w' ? Precision::fp32 : Precision::fp64);
    EXPECT_EQ(found.outputs.at(0).actual, call.expected) << call.signature;
  }
}

TEST_F(Python, what_cannot_be_called_says_so) {
  EXPECT_NE(trouble(returning("a, b", "1")).find("run_benchmark() needs 'a'"), std::string::npos);
  EXPECT_NE(trouble("async " + returning("", "1") + "run_benchmark = run_benchmark\n").find("is async"),
            std::string::npos);
  EXPECT_NE(trouble("run_benchmark = 3\n").find("solver.py has no function run_benchmark()"), std::string::npos);
  EXPECT_NE(words_of([&] { open(returning("n=1", "n"), "problem_size: {m: 2}"); }).find("takes no 'm'"),
            std::string::npos);
}

TEST_F(Python, a_precision_that_it_cannot_be_told_is_one) {
  const std::string deaf = returning("n=1", "n"), hearing = returning("n=1, precision='fp32'", "n");
  EXPECT_EQ(open(deaf, "precisions: [fp16, fp32]")->precisions(), bit_of(Precision::fp16));
  EXPECT_EQ(open(hearing)->precisions(), package::kPrecisionBits);
  const std::string lies = returning("precision", "{'precision': 'float64', 'result': 1}");
  EXPECT_NE(words_of([&] {
              open(lies)->prepare({Backend::cpu, Precision::fp32, {}, 1});
            }).find("asked for fp32, computes in fp64"),
            std::string::npos);
}

TEST_F(Python, results_are_checked_where_the_module_says_what_is_right) {
  const auto pair = [&](const std::string& source) {
    const package::Checked found = checked(source);
    EXPECT_EQ(found.reason, "");
    return std::pair(found.outputs.at(0).actual, found.outputs.at(0).expected);
  };
  using Numbers = std::vector<double>;
  EXPECT_EQ(pair(returning("", "{'result': [1, 2.5], 'expected': [1, 2], 'latency_ms': 3}")),
            std::pair(Numbers({1, 2.5}), Numbers({1, 2})));
  EXPECT_EQ(pair(returning("", "{'x': 1, 'y': 2, 'expected': {'y': 3}}")), std::pair(Numbers{2}, Numbers{3}));
  // The same seed before each, so that both draw the same inputs.
  EXPECT_EQ(pair("import random\n" + returning("n=2", "[random.random() * n, 1j, True]") +
                 "def reference(n):\n    return [random.random() * n, 1j, True]\n")
                .first.size(),
            4U);
  const auto drawn =
      pair("import random\n" + returning("n=2", "random.random()") + "def reference():\n    return random.random()\n");
  EXPECT_EQ(drawn.first, drawn.second);
  EXPECT_EQ(checked(returning("", "{'a': float('nan')}")).faults.size(), 1U);
  EXPECT_EQ(checked(returning("", "None")).reason, "the executable shows no output");
  EXPECT_EQ(checked(returning("", "list(range(1000000))")).outputs.at(0).actual.size(), 100'000U);
  EXPECT_NE(trouble(returning("", "{'success': False, 'error': 'no luck'}")).find("it failed: no luck"),
            std::string::npos);
}

TEST_F(Python, errors_that_it_finds_itself_are_taken) {
  const package::Checked found =
      checked(returning("", "{'result': 1, 'accuracy': {'rmse': 0.5, 'max_error': float('inf')}}"));
  ASSERT_TRUE(found.reported);
  EXPECT_EQ(found.reported->rmse, 0.5);
  EXPECT_TRUE(std::isinf(found.reported->max_error.value_or(0)));
  EXPECT_FALSE(found.reported->relative_error);
}

TEST_F(Python, a_module_that_dies_or_hangs_is_told) {
  const std::string line = trouble("def run_benchmark():\n    x = 1\n    return x / 0\n");
  EXPECT_NE(line.find("ZeroDivisionError: division by zero (solver.py:3)"), std::string::npos) << line;
  EXPECT_NE(trouble("import sys\nsys.exit(3)\n" + returning("", "1")).find("it called sys.exit(3)"), std::string::npos);
  EXPECT_NE(trouble("import absent_library\n" + returning("", "1")).find("No module named 'absent_library'"),
            std::string::npos);
  EXPECT_NE(trouble("import os\n" + returning("", "os.abort()")).find("killed by signal 6"), std::string::npos);
  EXPECT_NE(trouble("import os\n" + returning("", "os._exit(4)")).find("ended with status 4"), std::string::npos);
  EXPECT_NE(trouble("def run_benchmark():\n    while True: pass\n", 8).find("no answer to 'setup' within 8 s"),
            std::string::npos);
  EXPECT_NE(trouble("def run_benchmark(:\n").find("SyntaxError"), std::string::npos);
}

TEST_F(Python, what_a_module_prints_is_no_answer) {
  EXPECT_EQ(trouble("import os, sys\nprint('{\"ok\":false}')\nos.system('echo hello')\n"
                    "def run_benchmark():\n    print('x' * 1000000)\n    return sys.stdin.read() == ''\n"),
            "");
  // One that looks for the way out finds it, and is refused as any executable.
  const std::string words = trouble(
      "import os\ndef run_benchmark():\n    for fd in range(3, 20):\n        try: os.write(fd, b'garbage\\n')\n"
      "        except OSError: pass\n    return 1\n");
  EXPECT_NE(words.find("garbage"), std::string::npos) << words;
}

// Stands for PyTorch on a machine with a GPU that CUDA_VISIBLE_DEVICES does not hide.
constexpr const char* kTorch =
    "import os\n"
    "class version: hip = None\n"
    "class cuda:\n"
    "    used = 0\n"
    "    def is_available(): return os.environ.get('CUDA_VISIBLE_DEVICES') != ''\n"
    "    def is_initialized(): return cuda.used > 0\n"
    "    def max_memory_allocated(): return cuda.used\n"
    "    def memory_allocated(): return cuda.used\n"
    "    def synchronize(): cuda.synchronised = True\n"
    "    def get_device_name(): return 'a GPU'\n"
    "def manual_seed(seed): pass\n";

TEST_F(Python, a_result_has_the_name_of_where_it_ran) {
  folder_.write("torch/__init__.py", kTorch);
  const std::string takes_what_it_sees =
      "import torch\ndef run_benchmark():\n    if torch.cuda.is_available(): torch.cuda.used = 4096\n    return 1.0\n";
  const std::string config = "backends: [cpu, cuda, hip, pytorch]";
  const auto prepared = [&](const std::string& source, Backend backend) {
    return open(source, config, backend)->prepare({backend, Precision::fp32, {}, 1});
  };
  EXPECT_EQ(open(takes_what_it_sees, config)->backends(),
            bit_of(Backend::cpu) | bit_of(Backend::cuda) | bit_of(Backend::hip) | bit_of(Backend::pytorch));
  EXPECT_NE(prepared(takes_what_it_sees, Backend::cpu)->device_model().find("Python"), std::string::npos);
  const auto on_gpu = prepared(takes_what_it_sees, Backend::cuda);
  EXPECT_EQ(on_gpu->device_model(), "a GPU (as it says)");
  EXPECT_EQ(on_gpu->memory().peak_bytes, 4096U);
  EXPECT_NE(prepared(takes_what_it_sees, Backend::pytorch), nullptr);
  EXPECT_NE(words_of([&] { prepared(takes_what_it_sees, Backend::hip); }).find("asked for hip, runs on cuda"),
            std::string::npos);
  EXPECT_NE(words_of([&] {
              prepared("import torch\n" + returning("", "1"), Backend::cuda);
            }).find("asked for cuda, runs on cpu"),
            std::string::npos);
  EXPECT_NE(words_of([&] {
              prepared("import torch\n" + returning("", "{'backend': 'cpu'}"), Backend::cuda);
            }).find("asked for cuda, runs on cpu"),
            std::string::npos);
}

TEST_F(Python, modules_beside_it_and_of_its_package_are_found) {
  folder_.write("helper.py", "def half(x):\n    return x / 2\n");
  EXPECT_EQ(checked("from helper import half\n" + returning("n=8", "half(n)")).outputs.at(0).actual,
            std::vector<double>{4});
  folder_.write("__init__.py", "");
  EXPECT_EQ(checked("from .helper import half\n" + returning("n=6", "half(n)")).outputs.at(0).actual,
            std::vector<double>{3});
}

}  // namespace
}  // namespace weir::testing
