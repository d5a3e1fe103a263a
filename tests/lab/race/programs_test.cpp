// The programs with known races of bench/race are what their headers say, in virtual time (virtual_time.py): right when
// nobody disturbs them, wrong after a delay before the first command of their edge, and right again with --fixed.
// Programs that need more of PyTorch than the stand-in has, and those in CUDA, are for a machine with a GPU (trial.sh).
#include "support/programs.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "base/process.h"
#include "support/text.h"

namespace weir::testing {
namespace {

namespace fs = std::filesystem;

constexpr const char* kRacePrograms = WEIR_SOURCE_DIR "/bench/race";

std::vector<std::string> programs_in_virtual_time() {
  std::vector<std::string> names;
  for (const char* folder : {"programs", "clean"}) {
    for (const fs::directory_entry& entry : fs::directory_iterator(fs::path(kRacePrograms) / folder)) {
      const std::string text = entry.path().extension() == ".py" ? content(entry.path()) : "";
      if (text.find("\nrun(") != std::string::npos && text.find("torch.manual_seed") == std::string::npos)
        names.push_back(folder + ("/" + entry.path().stem().string()));
    }
  }
  std::sort(names.begin(), names.end());
  return names;
}

// The end and what it says.
std::pair<ProcessEnd, std::string> in_virtual_time(const fs::path& program) {
  ProcessOptions options;
  options.command = {"python3", WEIR_SOURCE_DIR "/tests/lab/race/virtual_time.py", program.string()};
  options.variables = {{"PYTHONDONTWRITEBYTECODE", "1"}};
  options.absent = {"WEIR_RACE_FOLDER"};
  Process process(options);
  const ProcessEnd end = process.finish(600);
  return {end, process.output().text()};
}

class RacePrograms : public ::testing::Test {
 protected:
  void SetUp() override {
    if (std::system("python3 -c '' >/dev/null 2>&1") != 0) GTEST_SKIP() << "python3 does not run";
  }
};

class EveryRaceProgram : public RacePrograms, public ::testing::WithParamInterface<std::string> {};

TEST_P(EveryRaceProgram, is_what_its_header_says) {
  const auto [end, said] = in_virtual_time(fs::path(kRacePrograms) / (GetParam() + ".py"));
  EXPECT_TRUE(end.is_success()) << end.words(600) << "\n" << said;
}

INSTANTIATE_TEST_SUITE_P(All, EveryRaceProgram, ::testing::ValuesIn(programs_in_virtual_time()), [](const auto& info) {
  std::string name = info.param;
  std::replace(name.begin(), name.end(), '/', '_');
  return name;
});

// Where a program of bench/race is changed, the changes are noticed.
TEST_F(RacePrograms, that_are_not_are_noticed) {
  EXPECT_GE(programs_in_virtual_time().size(), 13U);
  const std::string right = content(fs::path(kRacePrograms) / "programs/copy_not_awaited.py");
  const auto changed = [&](const std::string& from, const std::string& to) {
    std::string text = right;
    EXPECT_NE(text.find(from), std::string::npos) << from;
    text.replace(text.find(from), from.size(), to);
    const Folder folder;
    const fs::path programs = folder.path() / "bench/race/programs";
    fs::create_directories(programs);
    fs::create_directories(folder.path() / "python");
    fs::copy_file(fs::path(kRacePrograms) / "programs/racing.py", programs / "racing.py");
    std::ofstream(folder.path() / "python/weir.py") << "def checkpoint(name, value):\n    pass\n";
    std::ofstream(programs / "changed.py") << text;
    return in_virtual_time(programs / "changed.py").second;
  };
  EXPECT_NE(changed("\"\"\"", "\"\"\"").find("changed.py: as its header says"), std::string::npos);
  const auto complains = [&](const char* from, const char* to, const char* words) {
    const std::string said = changed(from, to);
    EXPECT_NE(said.find(words), std::string::npos) << said;
  };
  complains("    work()", "    pass", "it is wrong when nobody disturbs it");
  complains("if FIXED:", "if False:", "the corrected program changes with a delay before command");
  complains("if FIXED:", "if True:", "no delay before copy changes it");
  complains("# edge: copy@side", "# edge: neg_kernel@side", "no delay before neg_kernel changes it");
}

}  // namespace
}  // namespace weir::testing
