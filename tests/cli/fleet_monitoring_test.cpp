// config/fleet/alerts.yaml and dashboard.json: they parse, ask only for metrics and figures that `weir export` writes,
// and the alerts fire where they should (by promtool, where that is installed).
#include <gtest/gtest.h>
#include <yaml-cpp/yaml.h>

#include <filesystem>
#include <fstream>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/process.h"
#include "lab/fleet/figures.h"
#include "report/figures/figures.h"
#include "support/openmetrics_check.h"
#include "support/programs.h"
#include "support/result_documents.h"
#include "support/text.h"

namespace weir::testing {
namespace {

namespace fs = std::filesystem;

const fs::path kFleetConfig = fs::path(WEIR_SOURCE_DIR) / "config/fleet";

// What `weir export` writes of nodes and comparisons: metric -> labels.
std::map<std::string, std::set<std::string>> exported_metrics() {
  std::map<std::string, std::set<std::string>> metrics;
  for (const Json& document : {fleet_probe_document(), fleet_document()})
    for (const MetricPoint& point : check_openmetrics(results_openmetrics(figures_of(document, "f.json"))).points)
      for (auto& labels = metrics[point.name]; const auto& [label, value] : point.labels) labels.insert(label);
  return metrics;
}

// Metrics that nobody exports, labels that they do not have, and figures that nobody measures.
std::vector<std::string> unknown_in(const std::string& expression) {
  static const auto known = exported_metrics();
  static const std::regex metric(R"(\b(weir_\w+)(?:\{([^}]*)\})?)"), matcher(R"((\w+)\s*=~?\s*"([^"]*)\")"),
      word(R"([^|]+)");
  std::vector<std::string> found;
  for (std::sregex_iterator at(expression.begin(), expression.end(), metric), end; at != end; ++at) {
    const std::string name = (*at)[1], matchers = (*at)[2];
    if (!known.contains(name)) {
      found.push_back(name);
      continue;
    }
    for (std::sregex_iterator one(matchers.begin(), matchers.end(), matcher); one != end; ++one) {
      const std::string label = (*one)[1], values = (*one)[2];
      if (!known.at(name).contains(label)) found.push_back(name + " has no label " + label);
      if (label != "figure" || values == "$figure") continue;
      for (std::sregex_iterator value(values.begin(), values.end(), word); value != end; ++value)
        if (fleet::find_figure(value->str()) == nullptr) found.push_back("figure " + value->str());
    }
  }
  return found;
}

std::vector<std::string> alert_expressions() {
  std::vector<std::string> expressions;
  for (const auto& group : YAML::LoadFile(kFleetConfig / "alerts.yaml")["groups"])
    for (const auto& rule : group["rules"]) expressions.push_back(rule["expr"].as<std::string>());
  return expressions;
}

Json dashboard() { return Json::parse(content(kFleetConfig / "dashboard.json")); }

std::vector<std::string> dashboard_expressions() {
  std::vector<std::string> expressions;
  const Json page = dashboard();
  for (const Json& panel : page["panels"])
    for (const Json& target : panel["targets"]) expressions.push_back(target["expr"].get<std::string>());
  return expressions;
}

TEST(FleetMonitoring, unknown_metrics_are_found) {
  EXPECT_EQ(unknown_in("sum(weir_fleet_device_fit) + weir_fleet_gone > 0"),
            std::vector<std::string>{"weir_fleet_gone"});
  EXPECT_EQ(unknown_in(R"(weir_fleet_probe_device_reading{figure=~"pcie_width|wings"})"),
            std::vector<std::string>{"figure wings"});
  EXPECT_EQ(unknown_in(R"(weir_fleet_node_fit{device="x"})"),
            std::vector<std::string>{"weir_fleet_node_fit has no label device"});
}

TEST(FleetMonitoring, alerts_ask_for_what_is_exported) {
  ASSERT_GE(alert_expressions().size(), 5U);
  for (const std::string& expression : alert_expressions()) {
    EXPECT_NE(expression.find("weir_fleet_"), std::string::npos) << expression;
    for (const std::string& each : unknown_in(expression)) ADD_FAILURE() << each << " in " << expression;
  }
}

TEST(FleetMonitoring, the_dashboard_asks_for_what_is_exported) {
  const Json page = dashboard();
  std::set<std::string> variables;
  for (const Json& variable : page["templating"]["list"]) {
    variables.insert(variable["name"].get<std::string>());
    if (variable["type"] != "query") continue;
    for (const std::string& each : unknown_in(variable["definition"].get<std::string>())) ADD_FAILURE() << each;
    EXPECT_EQ(variable["definition"], variable["query"]["query"]);
  }
  ASSERT_GE(dashboard_expressions().size(), 5U);
  static const std::regex variable(R"(\$\{?(\w+)\}?)");
  for (const std::string& expression : dashboard_expressions()) {
    for (const std::string& each : unknown_in(expression)) ADD_FAILURE() << each << " in " << expression;
    for (std::sregex_iterator at(expression.begin(), expression.end(), variable), end; at != end; ++at)
      EXPECT_TRUE(variables.contains((*at)[1])) << at->str() << " in " << expression;
  }
}

TEST(FleetMonitoring, the_dashboards_panels_have_places_of_their_own) {
  std::set<int> ids;
  std::set<std::pair<int, int>> taken;
  const Json page = dashboard();
  for (const Json& panel : page["panels"]) {
    EXPECT_TRUE(ids.insert(panel["id"].get<int>()).second) << panel["title"];
    const Json& place = panel["gridPos"];
    EXPECT_LE(place["x"].get<int>() + place["w"].get<int>(), 24) << panel["title"] << ": a row has 24 columns";
    for (int x = 0; x < place["w"].get<int>(); ++x)
      for (int y = 0; y < place["h"].get<int>(); ++y)
        EXPECT_TRUE(taken.emplace(place["x"].get<int>() + x, place["y"].get<int>() + y).second)
            << panel["title"] << " lies upon another panel";
    std::set<std::string> queries;
    for (const Json& target : panel["targets"])
      EXPECT_TRUE(queries.insert(target["refId"].get<std::string>()).second) << panel["title"];
    const Json overrides = panel["fieldConfig"].value("overrides", Json::array());
    for (const Json& each : overrides) {
      if (each["matcher"]["id"] == "byFrameRefID") {
        EXPECT_TRUE(queries.contains(each["matcher"]["options"].get<std::string>())) << panel["title"];
      }
    }
  }
}

TEST(FleetMonitoring, alerts_fire_where_they_should_and_nowhere_else) {
  if (!printed_by({"promtool", "--version"})) GTEST_SKIP() << "there is no promtool (Debian: prometheus)";
  const Folder folder;
  fs::copy_file(kFleetConfig / "alerts.yaml", folder / "alerts.yaml");
  fs::copy_file(fs::path(WEIR_SOURCE_DIR) / "tests/data/fleet_alerts_test.yaml", folder / "test.yaml");
  const Outcome alerts = run_program({"promtool", "test", "rules", "test.yaml"}, folder.path());
  EXPECT_EQ(alerts.code, 0) << alerts.out << alerts.err;
  // The test's file has every alert.
  const std::string tests = content(folder / "test.yaml");
  for (const auto& rule : YAML::LoadFile(folder / "alerts.yaml")["groups"][0]["rules"]) {
    const auto name = rule["alert"].as<std::string>();
    EXPECT_NE(tests.find("\"" + name + "\""), std::string::npos) << name << " is not tested";
  }
  // The dashboard's queries as rules, which promtool parses.
  YAML::Node rules;
  for (std::string expression : dashboard_expressions()) {
    expression = std::regex_replace(expression, std::regex(R"(\$\w+)"), "x");
    YAML::Node rule;
    rule["record"] = "query";
    rule["labels"]["number"] = std::to_string(rules["groups"][0]["rules"].size());
    rule["expr"] = expression;
    rules["groups"][0]["name"] = "dashboard";
    rules["groups"][0]["rules"].push_back(rule);
  }
  std::ofstream(folder / "dashboard.yaml") << rules;
  const Outcome queries = run_program({"promtool", "check", "rules", "dashboard.yaml"}, folder.path());
  EXPECT_EQ(queries.code, 0) << queries.out << queries.err;
}

}  // namespace
}  // namespace weir::testing
