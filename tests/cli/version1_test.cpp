// Documents of version 1, as an earlier Weir wrote them, are read as documents of version 2.
#include <gtest/gtest.h>

#include <set>

#include "base/json.h"
#include "base/schemas.h"
#include "cli/program.h"
#include "support/programs.h"
#include "support/text.h"

namespace weir::testing {
namespace {

namespace fs = std::filesystem;

const fs::path kFolder = WEIR_SOURCE_DIR "/tests/data/version1";

TEST(Version1, FitsTheSchemaOfVersion2WhenItIsRead) {
  const Folder folder;
  std::set<std::string> kinds;
  for (const auto& entry : fs::directory_iterator(kFolder)) {
    const std::string name = entry.path().filename();
    EXPECT_TRUE(has(read_file(entry.path()), "/1\"")) << name;
    const Json document = read_json(entry.path());
    const std::string schema = document["schema"].string();
    ASSERT_EQ(schemas::version_of(schema), "2") << name;
    put_file(folder / name, to_text(document));
    std::string file = schema + ".json";
    file.replace(file.rfind('/'), 1, ".");
    expect_valid_as(folder / name, file);
    kinds.insert(schema);
  }
  EXPECT_EQ(kinds.size(), 16u);
}

TEST(Version1, IsShownComparedAndExported) {
  const Folder folder;
  for (const auto& entry : fs::directory_iterator(kFolder)) {
    const Outcome outcome = weir({"report", entry.path(), "-o", folder / "page.json", "--force"});
    EXPECT_EQ(outcome.code, 0) << entry.path() << outcome.out << outcome.err;
    EXPECT_TRUE(read_json(folder / "page.json")["refused"].empty()) << entry.path();
  }
  for (const char* name : {"result_processes.json", "overlap.json", "bench.json", "channel.json", "amd_log.json"}) {
    const Outcome outcome = weir({"compare", kFolder / name, kFolder / name});
    EXPECT_EQ(outcome.code, 0) << name << outcome.out << outcome.err;
  }
  const Outcome table =
      weir({"export", kFolder / "result_processes.json", kFolder / "preempt.json", "--format", "csv"});
  EXPECT_EQ(table.code, 0) << table.err;
  for (const char* column : {"commands_per_second", "to_end_p50_seconds"})
    EXPECT_TRUE(has(table.out, column)) << table.out;
}

}  // namespace
}  // namespace weir::testing
