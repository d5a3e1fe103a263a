// `weir probe priority` with a stand-in for PyTorch, whose device runs blocks in virtual time and keeps to priorities
// or does not; through python3 as a user's own.
#include <gtest/gtest.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>

#include "base/json.h"
#include "cli/program.h"
#include "support/text.h"

namespace weir::testing {
namespace {

// A device that runs one block at a time. The host's clock is the device's: time passes where the host waits or
// launches, so answers are the same on a busy machine. FAKE_PRIORITY=kept|ignored|one.
constexpr const char* kTorch = R"py(
import heapq, os, random, sys, time, types
__version__ = "2.6.0+fake"
version = types.SimpleNamespace(hip=None if os.environ.get("FAKE_RUNTIME") == "cuda" else "6.2.0", cuda="12.4")
kept = os.environ["FAKE_PRIORITY"] == "kept"
noise = random.Random(os.getpid())
BLOCK_NS, LAUNCH_NS = 50_000, 4_000
print("a library that prints to standard output")

class Device:
    now, waiting, order = 0, [], 0
    def run(self, until=None, ended=None):
        """Runs blocks until that time, or until that kernel has ended."""
        while True:
            if ended is not None and ended.left == 0: return
            if until is not None and self.now >= until: return
            if not self.waiting:
                if until is not None: self.now = until
                return
            kernel = min(self.waiting, key=lambda k: (k.priority if kept else 0, k.order))
            self.now += int(BLOCK_NS * noise.uniform(0.95, 1.05))
            kernel.left -= 1
            if kernel.left == 0: self.waiting.remove(kernel)
device = Device()

class Kernel:
    def __init__(self, stream, blocks):
        self.priority, self.left = stream.priority, blocks
        device.order += 1
        self.order = device.order
        device.waiting.append(self)
        device.run(until=device.now + LAUNCH_NS)
        stream.last = self

time.perf_counter_ns = lambda: device.now
time.sleep = lambda seconds: device.run(until=device.now + int(seconds * 1e9))

class Stream:
    def __init__(self, priority=0): self.priority, self.last = priority, None
    @staticmethod
    def priority_range(): return (0, 0) if os.environ["FAKE_PRIORITY"] == "one" else (0, -1)
    def synchronize(self):
        if self.last: device.run(ended=self.last)
class Event:
    last = None
    def record(self, stream): self.last = stream.last
    def query(self): return self.last is None or self.last.left == 0
    def synchronize(self):
        if self.last: device.run(ended=self.last)
current = [Stream()]
class use:
    def __init__(self, stream): self.stream = stream
    def __enter__(self): current.append(self.stream)
    def __exit__(self, *_): current.pop()
def synchronize():
    while device.waiting: device.run(ended=device.waiting[-1])
def get_device_name(): return "Fake GPU"
cuda = types.SimpleNamespace(is_available=lambda: os.environ.get("FAKE_GPU") != "none", Stream=Stream, Event=Event,
                             stream=use, synchronize=synchronize, get_device_name=get_device_name)

class Tensor:
    def __init__(self, *shape): self.shape = shape
    def add_(self, _): Kernel(current[-1], 1)
def ones(*shape, device): return Tensor(*shape)
def ones_like(other): return Tensor(*other.shape)
empty_like = ones_like
def mm(left, right, out): Kernel(current[-1], max(1, left.shape[0] // 32))
)py";

class ProbePriority : public ::testing::Test {
 protected:
  void SetUp() override {
    if (run_program({"python3", "-c", ""}).code != 0) GTEST_SKIP() << "python3 is not there";
    put_file(folder_.path() / "torch.py", kTorch);
  }
  // weir probe priority MORE, with a device of that kind.
  Outcome probe(const std::string& kind, const std::vector<std::string>& more,
                const std::vector<std::string>& variables = {}) {
    std::vector<std::string> command = {"env", "PYTHONPATH=" + folder_.path().string(), "FAKE_PRIORITY=" + kind};
    command.insert(command.end(), variables.begin(), variables.end());
    command.insert(command.end(), {WEIR_BINARY, "probe", "priority"});
    command.insert(command.end(), more.begin(), more.end());
    return run_program(command, folder_.path());
  }
  Json document(const std::string& kind, std::vector<std::string> more, int code,
                const std::vector<std::string>& variables = {}) {
    more.insert(more.begin(), "--json");
    const Outcome outcome = probe(kind, more, variables);
    EXPECT_EQ(outcome.code, code) << outcome.out << outcome.err;
    put_file(folder_.path() / "document.json", outcome.out);
    expect_valid_as(folder_ / "document.json", "weir.probe_priority.1.json");
    return parse_json(outcome.out, "document");
  }
  const Folder folder_;
};

TEST_F(ProbePriority, helps_where_the_device_keeps_to_it) {
  const Outcome outcome = probe("kept", {"--iterations", "20", "--", "python3", "train.py"});
  ASSERT_EQ(outcome.code, 0) << outcome.out << outcome.err;
  EXPECT_TRUE(has(outcome.out, "Priority helps")) << outcome.out;
  EXPECT_TRUE(has(outcome.out, "Fake GPU") && has(outcome.out, "2.6.0+fake (hip 6.2.0)")) << outcome.out;
  EXPECT_TRUE(has(outcome.out, "passes long kernels that run")) << outcome.out;
  expect_narrow(outcome.out);
}

TEST_F(ProbePriority, has_a_document_with_every_time) {
  const Json all = document("kept", {"--iterations", "20", "--", "python3"}, 0, {"FAKE_RUNTIME=cuda"});
  EXPECT_EQ(all["answer"], "helps");
  EXPECT_EQ(all["judged_by"], "processes");
  EXPECT_EQ(all["runtime"]["name"], "cuda");
  EXPECT_EQ(all["runtime"]["greatest_priority"], -1);
  EXPECT_GT(all["speedup"].get<double>(), 2);
  EXPECT_LE(all["interval"][0].get<double>(), all["speedup"].get<double>());
  EXPECT_GE(all["interval"][1].get<double>(), all["speedup"].get<double>());
  ASSERT_EQ(all["processes"].size(), 5U);
  for (const Json& one : all["processes"])
    EXPECT_EQ(one["high_ns"].size() + one["equal_ns"].size() + one["idle"].get<std::size_t>(), 40U);
}

TEST_F(ProbePriority, does_nothing_where_the_device_ignores_it) {
  const Json all = document("ignored", {"--iterations", "20", "--", "python3"}, 0);
  EXPECT_EQ(all["answer"], "nothing") << all["reason"].dump();
  EXPECT_TRUE(all["passes_running"].is_null());
  const Outcome outcome = probe("ignored", {"--iterations", "20", "--", "python3"});
  EXPECT_TRUE(has(outcome.out, "Priority does nothing here") && has(outcome.out, "weir sched")) << outcome.out;
}

// The two ways of a user whose GPU is where weir is not.
TEST_F(ProbePriority, prints_a_script_whose_lines_it_judges) {
  const Outcome script = probe("kept", {"--snippet"});
  ASSERT_EQ(script.code, 0) << script.err;
  put_file(folder_.path() / "probe.py", script.out);
  std::string lines;
  for (int i = 0; i < 5; ++i) {
    const Outcome ran = run_program(
        {"env", "PYTHONPATH=" + folder_.path().string(), "FAKE_PRIORITY=kept", "python3", "probe.py"}, folder_.path());
    ASSERT_EQ(ran.code, 0) << ran.err;
    lines += ran.out;
  }
  put_file(folder_.path() / "samples.txt", lines);
  const Json all = document("kept", {"--samples", folder_ / "samples.txt"}, 0);
  EXPECT_EQ(all["answer"], "helps");
  EXPECT_EQ(all["processes"].size(), 5U);
  put_file(folder_.path() / "one.txt", lines_of(lines)[1] + "\n");
  const Json one = document("kept", {"--samples", folder_ / "one.txt"}, 0);
  EXPECT_EQ(one["judged_by"], "samples");
  EXPECT_EQ(one["answer"], "helps");
}

TEST_F(ProbePriority, says_why_it_cannot_measure) {
  const auto reason = [&](const std::string& kind, const std::vector<std::string>& variables = {}) {
    return document(kind, {"--", "python3"}, 1, variables)["reason"].get<std::string>();
  };
  EXPECT_TRUE(has(reason("one"), "one priority only (0)"));
  EXPECT_TRUE(has(reason("kept", {"FAKE_GPU=none"}), "torch finds no GPU"));
  put_file(folder_.path() / "torch.py", "raise ImportError('no such library')\n");
  EXPECT_TRUE(has(reason("kept"), "cannot import torch: no such library"));
  put_file(folder_.path() / "torch.py", "import os\nos.abort()\n");
  EXPECT_TRUE(has(reason("kept"), "SIGABRT") || has(reason("kept"), "signal 6"));
  put_file(folder_.path() / "torch.py", "import sys\nsys.exit(0)\n");
  EXPECT_TRUE(has(reason("kept"), "without a line"));
}

TEST_F(ProbePriority, starts_python_as_the_user_does) {
  const Json all = document(
      "kept", {"--processes", "1", "--", "env", "FAKE_RUNTIME=cuda", "python3", "-X", "utf8", "-u", "a.py"}, 0);
  EXPECT_EQ(all["runtime"]["name"], "cuda");
}

TEST_F(ProbePriority, finds_the_python_among_the_words) {
  for (const std::vector<std::string>& words :
       std::vector<std::vector<std::string>>{{"env", "-u", "python311", "python3", "train.py"},
                                             {"python3", "-um", "package"},
                                             {"python3", "-Wignore", "-cimport sys"},
                                             {"python3", "-uX", "utf8", "-c", "1"}}) {
    std::vector<std::string> all = {"--processes", "1", "--iterations", "10", "--"};
    all.insert(all.end(), words.begin(), words.end());
    document("kept", all, 0);
  }
}

TEST_F(ProbePriority, does_not_wait_for_one_that_hangs_at_exit_or_never_ceases) {
  put_file(folder_.path() / "torch.py",
           "import atexit, time\natexit.register(time.sleep, 600)\n" + std::string(kTorch));
  document("kept", {"--processes", "1", "--iterations", "10", "--", "python3"}, 0);
  const auto reason = [&] {
    return document("kept", {"--timeout", "500ms", "--", "python3"}, 1)["reason"].get<std::string>();
  };
  put_file(folder_.path() / "torch.py", "import time\nwhile True:\n  print('busy', flush=True)\n  time.sleep(0.01)\n");
  EXPECT_TRUE(has(reason(), "did not end within")) << reason();
  put_file(folder_.path() / "torch.py", "import os, time\nos.ftruncate(2, 300 << 20)\ntime.sleep(600)\n");
  EXPECT_TRUE(has(document("kept", {"--", "python3"}, 1)["reason"].get<std::string>(), "to stderr"));
}

TEST_F(ProbePriority, rejects_what_it_cannot_do) {
  for (const std::vector<std::string>& words :
       std::vector<std::vector<std::string>>{{},
                                             {"--", "./train.sh"},
                                             {"train.py"},
                                             {"--snippet", "--", "python3"},
                                             {"--samples", "missing.txt"},
                                             {"--processes", "0", "--", "python3"},
                                             {"--iterations", "3", "--", "python3"},
                                             {"--timeout", "never", "--", "python3"},
                                             {"--threshold", "much", "--", "python3"},
                                             {"--", "/nowhere/python3"}}) {
    const Outcome outcome = probe("kept", words);
    EXPECT_EQ(outcome.code, 2) << outcome.out << outcome.err;
  }
  EXPECT_TRUE(has(probe("kept", {"--", "./train.sh"}).err, "weir preempt --mechanisms none,priority"));
  put_file(folder_.path() / "wrong.txt", "{\"probe\": \"priority\", \"version\": 1, \"least_priority\": []}\n");
  EXPECT_EQ(probe("kept", {"--samples", "wrong.txt"}).code, 2);
}

TEST_F(ProbePriority, ends_its_python_when_it_is_interrupted) {
  put_file(folder_.path() / "torch.py",
           "import os, time\nopen(os.environ['MARK'], 'w').write(str(os.getpid()))\ntime.sleep(600)\n");
  const std::string mark = folder_ / "mark";
  const pid_t weir = start_program({"env", "PYTHONPATH=" + folder_.path().string(), "MARK=" + mark, WEIR_BINARY,
                                    "probe", "priority", "--", "python3"},
                                   folder_.path(), folder_ / "out", folder_ / "err");
  while (content(mark).empty() && !has_ended(weir)) usleep(10'000);
  ASSERT_FALSE(content(mark).empty()) << content(folder_ / "err");
  ::kill(weir, SIGINT);
  EXPECT_EQ(wait_for(weir), 130);
  EXPECT_NE(::kill(std::stoi(content(mark)), 0), 0) << "its Python lives on";
  // One that is silent for too long is ended, too.
  const Outcome slow = run_program({"env", "PYTHONPATH=" + folder_.path().string(), "MARK=" + mark, WEIR_BINARY,
                                    "probe", "priority", "--timeout", "200ms", "--", "python3"},
                                   folder_.path());
  EXPECT_EQ(slow.code, 1) << slow.err;
  EXPECT_TRUE(has(slow.out, "did not end within")) << slow.out;
}

}  // namespace
}  // namespace weir::testing
