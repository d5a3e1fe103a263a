// docs/method.md says what each number means: every metric that a result may hold is in it.
#include <gtest/gtest.h>

#include "base/json.h"
#include "docs/pages.h"

namespace weir::testing {
namespace {

// memory.peak_bytes, queue_switch.controlled.hops, ... Summaries and gaps stand for themselves.
void collect(const Json& schema, const std::string& path, std::vector<std::string>& paths) {
  for (const char* choice : {"oneOf", "anyOf"}) {
    if (!schema.contains(choice)) continue;
    for (const Json& one : schema[choice])
      if (one.contains("properties")) return collect(one, path, paths);
  }
  if (!schema.contains("properties")) {
    paths.push_back(path);
    return;
  }
  for (const auto& [name, value] : schema["properties"].items())
    collect(value, path.empty() ? name : path + "." + name, paths);
}

TEST(DocsMethod, explains_every_metric_of_a_result) {
  const Json schema = parse_json(page_text("docs/schema/weir.result.2.json"), "weir.result.2.json");
  std::vector<std::string> paths;
  collect(schema["properties"]["metrics"], "", paths);
  ASSERT_GT(paths.size(), 30u);
  const std::string text = page_text("docs/method.md");
  for (const std::string& path : paths)
    EXPECT_NE(text.find("`" + path + "`"), std::string::npos) << path << " is not in docs/method.md";
}

}  // namespace
}  // namespace weir::testing
