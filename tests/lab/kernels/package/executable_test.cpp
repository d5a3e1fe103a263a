// Executables of packages: a sample in Python that does it right, and shell scripts that do it wrong.
#include <gtest/gtest.h>

#include "lab/kernels/package/backends.h"
#include "packages.h"

namespace weir::testing {
namespace {

using package::Backend;
using package::Case;

// y = 2 x + 1, with n from the problem; words in argv make it lie.
constexpr const char* kPython = R"~(#!/usr/bin/env python3
import json, random, sys, time
lies = sys.argv[1:]
def answer(**fields):
    print(json.dumps(dict(ok=True, **fields)), flush=True)
state = {}
for line in sys.stdin:
    question = json.loads(line)
    assert question["weir"] == 1
    op = question["op"]
    if op == "describe":
        answer(summary="y = 2 x + 1", backends=["cpu", "cuda"], precisions=["fp64", "fp32"],
               parameters={"n": 16, "grid": [2, 3]},
               resolution_ns=0 if "no_step" in lies else 1e300 if "no_clock" in lies else None)
    elif op == "setup":
        state = question
        generator = random.Random(question["seed"])
        x = [generator.random() for i in range(question["problem"]["n"])]
        print("set up", file=sys.stderr, flush=True)
        if "other_precision" in lies: question["precision"] = "fp64"
        if "no_precision" in lies: question["precision"] = None
        answer(backend="cpu", precision=question["precision"], device="a snake", flop=2 * len(x), items=len(x),
               item_name="elements")
    elif op == "run":
        start = time.perf_counter_ns()
        for i in range(question["count"]):
            y = [2 * value + 1 for value in x]
        elapsed = time.perf_counter_ns() - start
        if "too_long" in lies: elapsed = 10**15
        if "negative" in lies: elapsed = -1
        if "nothing" in lies: elapsed = 0
        if "dies" in lies: print("oh no", file=sys.stderr, flush=True); sys.exit(5)
        if "chatty" in lies: print("run is done")
        answer(elapsed_ns=elapsed)
    elif op == "check":
        y = [2 * value + 1 for value in x]
        if "nan" in lies: y[3] = None
        expected = None if "no_reference" in lies else [2 * value + 1 for value in x]
        if "short" in lies: expected = expected[1:]
        answer(outputs=[dict(name="y", actual=y, expected=expected, whole=False)])
    elif op == "memory" and "memory" in lies:
        answer(peak_bytes=1000, allocated_bytes=500)
    elif op == "teardown":
        answer()
    elif op == "exit":
        break
    else:
        print(json.dumps({"ok": False, "error": "no such operation: " + op}), flush=True)
)~";

class Executable : public ::testing::Test {
 protected:
  void SetUp() override {
    if (std::system("python3 -c '' >/dev/null 2>&1") != 0) GTEST_SKIP() << "python3 is not there";
    folder_.write("kernel.py", kPython, true);
  }
  std::unique_ptr<package::OpenPackage> open(std::vector<std::string> arguments = {}, Backend backend = Backend::cpu) {
    package::Package package = folder_.package("kernel.py");
    package.config.arguments = std::move(arguments);
    return open_package(package, backend, folder_.options());
  }
  // What preparing, running and checking with that lie says.
  std::string trouble(const std::string& lie) {
    return words_of([&] {
      const auto kernel = open({lie})->prepare({Backend::cpu, Precision::fp32, {}, 1});
      kernel->run(2);
      kernel->check();
    });
  }
  PackageFolder folder_;
};

TEST_F(Executable, is_a_kernel_like_any_other) {
  const auto package = open({"memory"});
  EXPECT_EQ(package->summary(), "y = 2 x + 1");
  EXPECT_EQ(package->backends(), 3U);
  EXPECT_EQ(package->precisions(), 3U);
  EXPECT_EQ(package->defaults(), (package::Problem{{"n", {16}}, {"grid", {2, 3}}}));
  const auto kernel = package->prepare({Backend::cpu, Precision::fp32, {{"n", {100}}}, 42});
  EXPECT_EQ(kernel->work().flop, 200);
  EXPECT_EQ(kernel->work().bytes, std::nullopt);
  EXPECT_EQ(kernel->how(), "executable");
  EXPECT_EQ(kernel->device_model(), "a snake (as it says)");
  const package::BatchTime time = kernel->run(50);
  EXPECT_GT(time.device_ns, 0);
  ASSERT_TRUE(time.wall_ns);
  EXPECT_LE(time.device_ns, *time.wall_ns);
  const package::Checked checked = kernel->check();
  ASSERT_EQ(checked.outputs.size(), 1U);
  EXPECT_EQ(checked.outputs[0].actual.size(), 100U);
  EXPECT_EQ(checked.outputs[0].actual, checked.outputs[0].expected);
  EXPECT_TRUE(checked.faults.empty());
  EXPECT_TRUE(checked.reason.empty());
  EXPECT_EQ(kernel->memory().peak_bytes, 1000U);
  EXPECT_EQ(kernel->memory().allocated_bytes, 500U);
  EXPECT_FALSE(kernel->cold_reason().empty());
}

TEST_F(Executable, one_process_serves_case_after_case) {
  const auto package = open();
  std::vector<double> first;
  for (const std::uint64_t seed : {1u, 2u, 1u}) {
    const auto kernel = package->prepare({Backend::cpu, Precision::fp64, {}, seed});
    const auto actual = kernel->check().outputs[0].actual;
    if (seed == 2) {
      EXPECT_NE(actual, first);
    } else if (first.empty()) {
      first = actual;
    } else {
      EXPECT_EQ(actual, first);
    }
  }
}

TEST_F(Executable, a_cuda_kernel_that_runs_on_the_cpu_is_refused) {
  const auto package = open({}, Backend::cuda);
  EXPECT_EQ(words_of([&] { package->prepare({Backend::cuda, Precision::fp32, {}, 1}); }),
            "scale: answer to 'setup': asked for cuda, runs on cpu | ");
}

TEST_F(Executable, a_precision_is_more_than_a_label) {
  EXPECT_NE(trouble("other_precision").find("asked for fp32, computes in fp64"), std::string::npos);
  EXPECT_NE(trouble("no_precision").find("does not say what it computes in"), std::string::npos);
  const auto package = open();
  EXPECT_NE(words_of([&] { package->prepare({Backend::cpu, Precision::bf16, {}, 1}); }).find("has no bf16"),
            std::string::npos);
  EXPECT_NE(words_of([&] { package->prepare({Backend::cpu, Precision::fp32, {{"m", {1}}}, 1}); }).find("parameter 'm'"),
            std::string::npos);
}

TEST_F(Executable, times_that_cannot_be_are_refused) {
  EXPECT_NE(trouble("too_long").find("impossible"), std::string::npos);
  EXPECT_NE(trouble("negative").find("impossible"), std::string::npos);
  for (const char* lie : {"no_step", "no_clock"})
    EXPECT_NE(trouble(lie).find("\"resolution_ns\" is"), std::string::npos) << lie;
  // A clock of 1 us shows nothing of one run, and would of a million.
  const auto kernel = open({"nothing"})->prepare({Backend::cpu, Precision::fp64, {{"n", {1}}}, 1});
  EXPECT_EQ(kernel->run(1).device_ns, 0);
  EXPECT_NE(words_of([&] { kernel->run(1'000'000); }).find("impossible"), std::string::npos);
  EXPECT_EQ(trouble("truth"), "");
}

TEST_F(Executable, its_death_is_told_with_what_it_wrote) {
  const std::string words = trouble("dies");
  EXPECT_NE(words.find("ended with status 5 instead of answering 'run'"), std::string::npos) << words;
  EXPECT_NE(words.find("oh no"), std::string::npos);
}

TEST_F(Executable, words_between_answers_are_shown) {
  const std::string words = trouble("chatty");
  EXPECT_NE(words.find("is not JSON"), std::string::npos) << words;
  EXPECT_NE(words.find("run is done"), std::string::npos) << words;
}

TEST_F(Executable, results_are_looked_at) {
  const auto checked = [&](const std::string& lie) {
    return open({lie})->prepare({Backend::cpu, Precision::fp32, {}, 1})->check();
  };
  EXPECT_EQ(checked("nan").faults, std::vector<std::string>{"output y: 1 of 16 elements are NaN"});
  EXPECT_EQ(checked("no_reference").reason, "the executable has no reference for output y");
  EXPECT_NE(trouble("short").find("has 16 elements, and 15 are expected"), std::string::npos);
  const auto memory = open()->prepare({Backend::cpu, Precision::fp32, {}, 1})->memory();
  EXPECT_FALSE(memory.peak_bytes);
  EXPECT_NE(memory.reason.find("no such operation: memory"), std::string::npos);
}

// Programs that break the form of the conversation.
std::string opening(const std::string& script, double limit_s = 60) {
  const PackageFolder folder;
  folder.write("kernel", "#!/bin/sh\n" + script, true);
  package::OpenOptions options = folder.options();
  options.reply_limit_s = limit_s;
  return words_of([&] { open_package(folder.package("kernel"), Backend::cpu, options); });
}

TEST(ExecutableProtocol, what_is_no_answer_is_refused_in_words) {
  struct Bad {
    const char* script;
    const char* words;
  };
  const Bad bad[] = {
      {"read q; echo hello", "is not JSON"},
      {"read q; echo '[1,2]'", "has no \"ok\""},
      {"read q; echo '{\"ok\":1}'", "has no \"ok\""},
      {"read q; echo", "is not JSON"},
      {"read q; echo '{\"ok\":false,\"error\":\"no GPU here\"}'", "'describe' failed: no GPU here"},
      {"read q; echo '{\"ok\":false}'", "it does not say why"},
      {"read q; echo '{\"ok\":true}'", "has no list \"backends\""},
      {"read q; echo '{\"ok\":true,\"backends\":[\"tpu\"]}'", "\"backends\" has \"tpu\""},
      {"read q; echo '{\"ok\":true,\"backends\":[],\"precisions\":[]}'", "\"backends\" is empty"},
      {"read q; echo '{\"ok\":true,\"backends\":[\"cpu\"],\"precisions\":[\"fp32\"],\"parameters\":{\"n\":\"x\"}}'",
       "parameter \"n\" is \"x\""},
      {"read q; head -c 300 /dev/zero | tr '\\0' '['; echo", "levels deep"},
      {"exit 0", "ended with status 0 instead of answering"},
      {"kill -SEGV $$", "killed by signal 11"},
      {"read q; printf '{\"ok\":'", "after half a line"},
  };
  for (const Bad& one : bad) {
    const std::string words = opening(one.script);
    EXPECT_NE(words.find(one.words), std::string::npos) << one.script << "\n" << words;
  }
  EXPECT_NE(opening("sleep 1000", 0.3).find("no answer to 'describe' within 0.3 s"), std::string::npos);
  EXPECT_EQ(opening("read q; printf '\\033[2Jboo\\n'").find('\033'), std::string::npos);
}

TEST(ExecutableProtocol, a_script_without_its_interpreter_is_said) {
  const PackageFolder folder;
  folder.write("kernel", "#!/no/such/interpreter\n", true);
  const std::string words = words_of([&] { open_package(folder.package("kernel"), Backend::cpu, folder.options()); });
  EXPECT_NE(words.find("cannot start"), std::string::npos);
  EXPECT_NE(words.find("#!"), std::string::npos);
}

}  // namespace
}  // namespace weir::testing
