// Documents with anything anywhere: a report is made or the file refused; nothing is thrown further or runs forever.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "report/page/gather.h"
#include "report/page/html.h"
#include "report/page/results.h"
#include "report/page/samples.h"

namespace weir::page {
namespace {

using testing::PageFolder;
using testing::report_on;
using testing::result_document;
using testing::sweep_document;

// Which element or member to follow at each level, from the document down.
using Place = std::vector<std::ptrdiff_t>;

// Every value of the document, by its place; what lies below an array's third element is like what lies above.
void places_of(const Json& json, const Place& here, std::vector<Place>& into) {
  into.push_back(here);
  if (!json.is_structured()) return;
  const std::size_t count = json.is_array() ? std::min<std::size_t>(json.size(), 2) : json.size();
  for (std::size_t i = 0; i < count; ++i) {
    Place below = here;
    below.push_back(static_cast<std::ptrdiff_t>(i));
    places_of(json.begin()[below.back()], below, into);
  }
}

Json replacement(int which) {
  switch (which) {
    case 0:
      return nullptr;
    case 1:
      return "NaN</script>\x1b[31m";
    case 2:
      return Json::array();
    case 3:
      return Json::array({Json::object(), nullptr, "x", -1});
    case 4:
      return Json::object();
    case 5:
      return -1;
    case 6:
      return 1e308;
    default:
      return true;
  }
}

constexpr int kReplacements = 8;

// What makes the page of it must be whole, whatever the document was.
void expect_sound(const Json& report) {
  const std::string json = script_json(report);
  EXPECT_EQ(json.find_first_of("<>&"), std::string::npos);
  EXPECT_EQ(report["schema"], "weir.report/2");
  for (const Json& item : report["scaling"])
    for (const Json& curve : item["curves"])
      for (const Json& point : curve["points"]) {
        EXPECT_TRUE(point["throughput"].is_null() || point["throughput"].get<double>() >= 0);
        EXPECT_GE(point["streams"].get<int>(), 1);
      }
}

void mutate(const Json& document, int stride = 1) {
  PageFolder folder;
  std::vector<Place> places;
  places_of(document, {}, places);
  for (const Place& place : places)
    for (int which = stride - 1; which < kReplacements; which += stride) {
      Json mutated = document;
      Json* value = &mutated;
      std::string path;
      for (const std::ptrdiff_t index : place) {
        path += "/" + (value->is_object() ? (value->begin() + index).key() : std::to_string(index));
        value = &value->begin()[index];
      }
      *value = replacement(which);
      SCOPED_TRACE(path + " <- " + replacement(which).dump());
      ASSERT_NO_THROW(expect_sound(report_on({folder.put("m.json", mutated)})));
    }
}

TEST(HostileReport, survives_any_value_anywhere_in_a_result) {
  testing::ResultShape shape;
  shape.count = 3;
  Json document = result_document(shape);
  document["warnings"] = {{{"code", "noisy"}, {"message", "it is"}, {"advice", "wait"}}};
  document["metrics"]["convoy"] = {{"role", "small"}, {"index", 5}, {"mixed_ns", {{"p99", 5}}}};
  mutate(document);
}

TEST(HostileReport, survives_any_value_anywhere_in_a_sweep_or_a_comparison) {
  testing::ResultShape shape;
  shape.count = 2;
  mutate(sweep_document({result_document(shape)}));
  mutate(testing::comparison_document("slower", 1.5));
}

// Documents of other commands, as they wrote them, in documents/.
TEST(HostileReport, survives_any_value_anywhere_in_documents_told_as_text) {
  std::size_t seen = 0;
  for (const auto& entry : std::filesystem::directory_iterator(WEIR_SOURCE_DIR "/tests/report/page/documents")) {
    if (entry.path().extension() != ".json") continue;
    SCOPED_TRACE(entry.path().filename().string());
    const Json document = read_json(entry.path());
    const Json report = report_on({entry.path()});
    EXPECT_TRUE(report["refused"].empty()) << report["refused"].dump();
    EXPECT_FALSE(report["texts"].empty());
    mutate(document, 2);
    ++seen;
  }
  EXPECT_GT(seen, 0u);
}

TEST(HostileReport, cuts_names_of_ten_megabytes) {
  PageFolder folder;
  const std::string huge(10 << 20, '<');
  Json document = result_document();
  document["workload"]["name"] = huge;
  document["parameters"][huge] = huge;
  document["device"]["model"] = huge;
  document["environment"]["variables"][huge] = huge;
  document["command_line"] = {huge, huge};
  document["failure"] = huge;
  document["status"] = "failed";
  document["warnings"] = {{{"code", huge}, {"message", huge}, {"advice", huge}}};
  const Json report = report_on({folder.put("h.json", document)});
  EXPECT_EQ(report["scaling"].size(), 1u);
  EXPECT_LT(script_json(report).size(), 500'000u);
}

TEST(HostileReport, takes_its_time_in_proportion_to_the_file) {
  PageFolder folder;
  std::vector<Json> results;
  Json one = result_document();
  one["samples"] = {{"latency_ns", {1}}, {"interval_ns", {1}}};
  for (int i = 0; i < 12'000; ++i) results.push_back(one);  // all the same point, and more of them than are taken
  const Json report = report_on({folder.put("s.json", sweep_document(results))});
  EXPECT_EQ(report["scaling"][0]["curves"].size(), 10'000u);
  EXPECT_FALSE(report["refused"].empty());
}

// --- the three descriptions of the document

std::string text_of(const char* path) {
  std::ifstream file(std::string(WEIR_SOURCE_DIR) + path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

// "export interface Name extends Item {" ... "}": names of the fields that stand two blanks deep.
std::vector<std::string> fields_of(const std::string& source, const std::string& name) {
  std::vector<std::string> fields;
  std::istringstream lines(source);
  bool is_inside = false;
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("export interface " + name + " ")) {
      is_inside = true;
      if (line.find("extends Item") != std::string::npos) fields = fields_of(source, "Item");
    } else if (is_inside && line == "}") {
      break;
    } else if (is_inside && line.starts_with("  ") && !line.starts_with("   ")) {
      const std::size_t end = line.find_first_of("?:");
      if (end != std::string::npos && line.find('}') != 2) fields.push_back(line.substr(2, end - 2));
    }
  }
  return fields;
}

std::vector<std::string> names_of(const Json& properties) {
  std::vector<std::string> names;
  for (const auto& [name, value] : properties.items()) names.push_back(name);
  return names;
}

TEST(ReportSchema, is_what_the_page_reads) {
  const std::string source = text_of("/web/src/document.ts");
  const Json schema = read_json(WEIR_SOURCE_DIR "/docs/schema/weir.report.2.json");
  ASSERT_FALSE(source.empty());
  std::vector<std::string> top = fields_of(source, "ReportDocument");
  EXPECT_EQ(top, names_of(schema["properties"]));
  std::size_t compared = 0;
  for (const auto& [name, definition] : schema["definitions"].items()) {
    if (!definition.contains("properties")) continue;
    EXPECT_EQ(fields_of(source, name), names_of(definition["properties"])) << name;
    ++compared;
  }
  EXPECT_GT(compared, 30u);
  // And the program writes all of it.
  PageFolder folder;
  std::vector<std::string> written = names_of(report_on({folder.put("r.json", result_document())}));
  std::sort(written.begin(), written.end());
  std::sort(top.begin(), top.end());
  EXPECT_EQ(written, top);
}

}  // namespace
}  // namespace weir::page
