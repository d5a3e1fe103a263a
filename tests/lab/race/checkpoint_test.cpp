// python/weir.py and include/weir/checkpoint.h as programs use them, with a stand-in for the library in the process,
// which writes down what it is given. Knows nothing of what the library does with it.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <fstream>

#include "base/process.h"
#include "support/programs.h"
#include "support/text.h"

namespace weir::testing {
namespace {

// NAME BYTES STREAM: the memory in hex
constexpr const char* kCheckpointStandIn = R"(
#include <stdio.h>
#include <stdlib.h>
void weir_checkpoint(const char* name, const void* memory, size_t bytes, void* stream) {
  const unsigned char* at = memory;
  FILE* calls = fopen(getenv("WEIR_TEST_CALLS"), "a");
  if (calls == NULL) abort();
  fprintf(calls, "%s %zu %zu:", name, bytes, (size_t)stream);
  for (size_t i = 0; i < bytes; ++i) fprintf(calls, "%02x", at[i]);
  fprintf(calls, "\n");
  fclose(calls);
}
)";

// The part of PyTorch that weir.py uses; memory of its "device" can be read here.
constexpr const char* kTorchStandIn = R"(
import array, contextlib, sys, types

class Tensor:
    device = "cuda:1"
    def __init__(self, values, is_cuda=False, is_contiguous=True):
        self.values, self.is_cuda, self.is_whole = array.array("f", values), is_cuda, is_contiguous
    def detach(self):
        return self
    def contiguous(self):
        return self if self.is_whole else Tensor(self.values[::2], self.is_cuda)
    def data_ptr(self):
        return self.values.buffer_info()[0]
    def numel(self):
        return len(self.values)
    def element_size(self):
        return 4

entered = []

@contextlib.contextmanager
def device(name):
    entered.append(name)
    yield

torch = types.ModuleType("torch")
torch.cuda = types.SimpleNamespace(
    device=device, current_stream=lambda: types.SimpleNamespace(cuda_stream=119 if entered else 0))
sys.modules["torch"] = torch
)";

class Checkpoint : public ::testing::Test {
 protected:
  void SetUp() override {
    for (const char* tool : {"python3 -c ''", "cc --version"}) {
      if (std::system(fmt::format("{} >/dev/null 2>&1", tool).c_str()) != 0) GTEST_SKIP() << tool << " does not run";
    }
    write("library.c", kCheckpointStandIn);
    run({"cc", "-shared", "-fPIC", "-o", folder_ / "libweir_cupti.so", folder_ / "library.c"});
  }
  void write(const std::string& name, const std::string& text) { std::ofstream(folder_ / name) << text; }
  void run(const std::vector<std::string>& command, const Variables& variables = {}) {
    ProcessOptions options;
    options.command = command;
    options.variables = variables;
    options.absent = {"LD_PRELOAD", "WEIR_RACE_FOLDER"};
    Process process(options);
    const ProcessEnd end = process.finish(300);
    EXPECT_TRUE(end.is_success()) << end.words(300) << "\n" << process.output().text();
  }
  void run_python(const std::string& source, Variables variables = {}) {
    write("program.py", std::string(kTorchStandIn) + "import weir\n" + source);
    variables.emplace_back("PYTHONPATH", WEIR_SOURCE_DIR "/python");
    variables.emplace_back("PYTHONDONTWRITEBYTECODE", "1");
    run({"python3", folder_ / "program.py"}, variables);
  }
  Variables watched(bool is_preloaded = true) const {
    Variables variables = {{"WEIR_RACE_FOLDER", folder_.path().string()}, {"WEIR_TEST_CALLS", folder_ / "calls"}};
    if (is_preloaded) variables.emplace_back("LD_PRELOAD", folder_ / "libweir_cupti.so");
    return variables;
  }
  std::string calls() const { return std::filesystem::exists(folder_ / "calls") ? content(folder_ / "calls") : ""; }

  Folder folder_;
};

TEST_F(Checkpoint, python_gives_name_memory_and_stream) {
  run_python(R"(
assert weir.is_watched()
weir.checkpoint("host", Tensor([1.0, -2.0]))
weir.checkpoint("device", Tensor([0.5], is_cuda=True))
weir.checkpoint("strided", Tensor([1.0, 9.0, 2.0, 9.0], is_contiguous=False))
weir.checkpoint("empty", Tensor([]))
assert entered == ["cuda:1"], entered
)",
             watched());
  EXPECT_EQ(calls(), "host 8 0:0000803f000000c0\ndevice 4 119:0000003f\nstrided 8 0:0000803f00000040\nempty 0 0:\n");
}

TEST_F(Checkpoint, python_takes_numbers_text_bytes_and_arrays) {
  run_python(R"(
class Array:
    def __init__(self, values, strides=None):
        self.values = array.array("H", values)
        self.__array_interface__ = {"data": (self.values.buffer_info()[0], False), "typestr": "<u2", "strides": strides,
                                    "shape": (len(values) // 2, 2) if strides is None else (len(values),), "version": 3}
    def copy(self, order):
        assert order == "C"
        return Array(self.values[::-1])
weir.checkpoint("a", 258)
weir.checkpoint("b", True)
weir.checkpoint("c", 1.0)
weir.checkpoint("d", "\u00e9")
weir.checkpoint("e", b"\x00\x01")
weir.checkpoint("f", array.array("B", [7, 8]))
weir.checkpoint("g", b"")
weir.checkpoint("h", Array([1, 2, 3, 4]))
weir.checkpoint("i", Array([1, 2, 3, 4], strides=(-2,)))
try:
    weir.checkpoint("j", object())
    raise SystemExit("an object was taken")
except TypeError as error:
    assert "'j'" in str(error) and "object" in str(error), error
)",
             watched());
  EXPECT_EQ(calls(),
            "a 3 0:323538\nb 1 0:31\nc 8 0:000000000000f03f\nd 2 0:c3a9\ne 2 0:0001\nf 2 0:0708\ng 0 0:\n"
            "h 8 0:0100020003000400\ni 8 0:0400030002000100\n");
}

TEST_F(Checkpoint, python_finds_a_library_that_comes_late_and_is_not_global) {
  run_python(R"(
import ctypes, os
weir.checkpoint("before", 1)
assert not weir.is_watched()
held = ctypes.CDLL(os.path.join(os.environ["WEIR_RACE_FOLDER"], "libweir_cupti.so"), mode=os.RTLD_LOCAL | os.RTLD_NOW)
weir.checkpoint("after", 2)
)",
             watched(false));
  EXPECT_EQ(calls(), "after 1 0:32\n");
}

TEST_F(Checkpoint, python_does_nothing_by_itself) {
  const std::string program = "assert not weir.is_watched()\nweir.checkpoint('a', 1)\nweir.checkpoint('b', object())\n";
  run_python(program);
  run_python(program, watched(false));
  EXPECT_EQ(calls(), "");
}

TEST_F(Checkpoint, c_and_cpp_programs_find_the_library) {
  const std::string program =
      "#include \"weir/checkpoint.h\"\n"
      "int main(void) {\n"
      "  const unsigned char bytes[2] = {1, 255};\n"
      "  weir_mark_checkpoint(\"first\", bytes, sizeof(bytes), NULL);\n"
      "  weir_mark_checkpoint(\"second\", bytes, 1, (void*)(size_t)7);\n"
      "  return 0;\n"
      "}\n";
  for (const std::string& language : {std::string("c"), std::string("cpp")}) {
    write("program." + language, program);
    const bool is_c = language == "c";
    run({is_c ? "cc" : "c++", is_c ? "-std=c99" : "-std=c++11", "-Wall", "-Wextra", "-pedantic", "-Werror", "-I",
         WEIR_SOURCE_DIR "/include", "-o", folder_ / "program", folder_ / ("program." + language), "-ldl"});
    std::filesystem::remove(folder_ / "calls");
    run({folder_ / "program"});
    run({folder_ / "program"}, watched(false));
    EXPECT_EQ(calls(), "") << language;
    run({folder_ / "program"}, watched());
    EXPECT_EQ(calls(), "first 2 0:01ff\nsecond 1 7:01\n") << language;
  }
}

}  // namespace
}  // namespace weir::testing
