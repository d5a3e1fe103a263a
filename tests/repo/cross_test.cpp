// scripts/cross.sh finds by itself what has lines for one architecture, so that no list of it can go stale.
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdio>
#include <filesystem>
#include <string>

#include "repo/tree.h"

namespace weir::repo {
namespace {

struct Listing {
  int code = -1;
  std::string text;  // of both outputs
};

Listing list_sources(const std::filesystem::path& root) {
  Listing listing;
  FILE* const pipe = ::popen(("bash '" + (root / "scripts/cross.sh").string() + "' list 2>&1").c_str(), "r");
  if (pipe == nullptr) return listing;
  for (int letter = std::fgetc(pipe); letter != EOF; letter = std::fgetc(pipe))
    listing.text += static_cast<char>(letter);
  const int status = ::pclose(pipe);
  listing.code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  return listing;
}

TEST(Cross, compiles_every_source_and_header_with_lines_for_one_architecture) {
  const ScratchTree tree;
  tree.write("scripts/cross.sh", joined(read_lines(std::filesystem::path(WEIR_SOURCE_DIR) / "scripts/cross.sh")));
  tree.write("src/base/plain.cpp", "// Mentions asm, and membarrier.\nint plain();\n");
  EXPECT_EQ(list_sources(tree.root()).text, "");

  tree.write("src/base/a_word.cpp", "#if defined(__x86_64__)\n#endif\n");
  tree.write("src/base/barrier.cpp",
             "long barrier() { return syscall(SYS_membarrier, MEMBARRIER_CMD_QUERY, 0, 0); }\n");
  tree.write("src/base/pause.cpp", "void pause() {\n  asm volatile(\"isb\");\n}\n");
  tree.write("src/base/vector.h", "#include <arm_neon.h>\n");
  tree.write("src/base/above.h", "#include \"base/vector.h\"\n");
  tree.write("tests/base/user_test.cpp", "#include \"base/above.h\"\n");
  tree.write("src/base/device.h", "__device__ void stop() { asm(\"trap;\"); }\n");
  const Listing found = list_sources(tree.root());
  EXPECT_EQ(found.code, 0);
  EXPECT_EQ(found.text, "src/base/a_word.cpp\nsrc/base/barrier.cpp\nsrc/base/pause.cpp\ntests/base/user_test.cpp\n");

  tree.write("src/base/lonely.h", "#include <immintrin.h>\n");
  const Listing lonely = list_sources(tree.root());
  EXPECT_EQ(lonely.code, 1);
  EXPECT_NE(lonely.text.find("no source includes src/base/lonely.h"), std::string::npos) << lonely.text;
}

TEST(Cross, finds_ours) {
  const Listing found = list_sources(WEIR_SOURCE_DIR);
  EXPECT_EQ(found.code, 0) << found.text;
  // One of each kind: vector instructions, inline assembly, a header, membarrier.
  for (const char* source : {"src/lab/kernels/ceiling_loops.cpp", "src/lab/kernels/package/host_memory.cpp",
                             "src/trace/import/json_reader.cpp", "src/channel/system.cpp"})
    EXPECT_NE(found.text.find(source), std::string::npos) << source << " is not in\n" << found.text;
}

}  // namespace
}  // namespace weir::repo
