// Fleets as OpenMetrics and CSV: which metrics a node and a comparison have, what is not known, and hostile documents.
#include <gtest/gtest.h>

#include <algorithm>

#include "base/error.h"
#include "lab/fleet/figures.h"
#include "report/figures/figures.h"
#include "support/openmetrics_check.h"
#include "support/result_documents.h"

namespace weir {
namespace {

using testing::check_openmetrics;
using testing::Exposition;
using testing::fleet_document;
using testing::fleet_probe_document;
using testing::MetricPoint;

Exposition exposed(const Json& document) {
  return check_openmetrics(results_openmetrics(figures_of(document, "f.json")));
}

TEST(FleetFigures, a_node_has_figures_in_base_units) {
  const Exposition read = exposed(fleet_probe_document());
  const std::map<std::string, std::string> first = {
      {"node", "n1"}, {"device", "cuda:0"}, {"serial", "165"}, {"model", "NVIDIA H200"}};
  const auto of = [&](const std::string& metric, const std::string& figure) -> const MetricPoint* {
    auto labels = first;
    labels["figure"] = figure;
    return read.find("weir_fleet_probe_device_" + metric, labels);
  };
  EXPECT_DOUBLE_EQ(of("time_seconds", "launch")->value, 2e-6);
  EXPECT_DOUBLE_EQ(of("time_low_seconds", "launch")->value, 1.9e-6);
  EXPECT_DOUBLE_EQ(of("time_high_seconds", "launch")->value, 2.2e-6);
  EXPECT_EQ(read.units.at("weir_fleet_probe_device_time_seconds"), "seconds");
  EXPECT_DOUBLE_EQ(of("clock_hertz", "clock")->value, 1.98e9);
  EXPECT_EQ(of("reading", "pcie_width")->value, 16);
  ASSERT_NE(of("bytes_per_second", "copy_to_peer"), nullptr);
  EXPECT_EQ(of("bytes_per_second", "copy_to_peer")->labels.at("to"), "cuda:1");
  EXPECT_EQ(read.find("weir_fleet_probe_duration_seconds", {{"node", "n1"}})->value, 2.5);
  EXPECT_EQ(read.find("weir_fleet_probe_devices")->value, 2);
  EXPECT_EQ(read.find("weir_fleet_probe_created_timestamp_seconds")->value, 1769860800);
  EXPECT_NE(read.find("weir_fleet_probe_device_throttled", {{"reason", "power cap"}}), nullptr);
  EXPECT_EQ(read.find("weir_fleet_probe_device_failed", first)->value, 0);
}

TEST(FleetFigures, every_figure_of_the_probe_has_a_metric) {
  for (const fleet::FigureKind& kind : fleet::figure_kinds()) {
    Json probe = fleet_probe_document();
    Json& figure = probe["devices"][1]["figures"][0];
    figure["name"] = kind.name;
    figure["unit"] = kind.unit;
    figure["value"] = 7;
    const auto points = exposed(probe).points;
    EXPECT_TRUE(std::any_of(points.begin(), points.end(),
                            [&](const MetricPoint& point) {
                              return point.labels.contains("figure") && point.labels.at("figure") == kind.name &&
                                     point.labels.at("device") == "cuda:1";
                            }))
        << kind.name << ": the export does not know its unit";
  }
}

TEST(FleetFigures, wrong_outputs_are_failures_and_no_value_is_no_sample) {
  const Exposition read = exposed(fleet_probe_document());
  EXPECT_EQ(read.find("weir_fleet_probe_device_failed", {{"device", "cuda:1"}})->value, 1);
  EXPECT_EQ(read.find("weir_fleet_probe_device_wrong_outputs", {{"device", "cuda:1"}})->value, 1);
  EXPECT_EQ(read.find("weir_fleet_probe_device_wrong_outputs", {{"device", "cuda:0"}})->value, 0);
  EXPECT_EQ(read.find("weir_fleet_probe_device_flop_per_second", {{"device", "cuda:1"}}), nullptr);
  Json nothing = fleet_probe_document();
  nothing["devices"] = Json::array();
  nothing["failure"] = "the driver does not answer";
  const Exposition empty = exposed(nothing);
  EXPECT_EQ(empty.find("weir_fleet_probe_failed", {{"node", "n1"}})->value, 1);
  EXPECT_EQ(empty.find("weir_fleet_probe_devices")->value, 0);
}

TEST(FleetFigures, a_comparison_says_who_is_fit_and_how_far_from_its_peers) {
  const Exposition read = exposed(fleet_document());
  EXPECT_EQ(read.find("weir_fleet_nodes")->value, 2);
  EXPECT_EQ(read.find("weir_fleet_findings", {{"kind", "slow"}})->value, 1);
  EXPECT_EQ(read.find("weir_fleet_findings", {{"kind", "missing"}})->value, 0);
  EXPECT_EQ(read.find("weir_fleet_node_fit", {{"node", "n2"}})->value, 0);
  EXPECT_EQ(read.find("weir_fleet_node_findings", {{"node", "n1"}, {"kind", "link"}})->value, 1);
  EXPECT_EQ(read.find("weir_fleet_device_fit", {{"node", "n1"}, {"device", "cuda:0"}})->value, 1);
  EXPECT_EQ(read.find("weir_fleet_device_fit", {{"node", "n2"}, {"device", "cuda:0"}, {"serial", "7"}})->value, 0);
  EXPECT_EQ(read.find("weir_fleet_device_findings", {{"node", "n2"}, {"device", "cuda:0"}, {"kind", "wrong"}})->value,
            1);
  const auto* const slow =
      read.find("weir_fleet_device_relative_ratio", {{"node", "n1"}, {"device", "cuda:1"}, {"figure", "gemm_bf16"}});
  EXPECT_EQ(slow->value, 0.875);
  EXPECT_EQ(slow->labels.at("goal"), "higher");
  EXPECT_EQ(slow->labels.at("model"), "NVIDIA H200");
  EXPECT_EQ(read.find("weir_fleet_device_relative_ratio", {{"node", "n2"}, {"figure", "gemm_bf16"}}), nullptr);
  EXPECT_EQ(read.find("weir_fleet_device_relative_ratio", {{"figure", "clock"}}), nullptr) << "a state is not judged";
  EXPECT_EQ(read.find("weir_fleet_holders", {{"setting", "driver"}, {"value", "575.2"}})->value, 1);
}

// node_exporter refuses a scrape in which two files have the same sample.
TEST(FleetFigures, a_node_and_a_comparison_share_no_metric) {
  const Exposition node = exposed(fleet_probe_document()), fleet = exposed(fleet_document());
  for (const auto& [name, type] : node.types) {
    if (name == "weir_info") continue;
    EXPECT_FALSE(fleet.types.contains(name)) << name;
  }
}

TEST(FleetFigures, tables_have_a_line_per_device) {
  const auto rows = figures_of(fleet_probe_document(), "f.json");
  const std::string table = results_csv(rows);
  EXPECT_NE(table.find("time_launch_seconds"), std::string::npos) << table;
  EXPECT_NE(table.find("flop_gemm_bf16_per_second"), std::string::npos) << table;
  EXPECT_NE(table.find("bytes_copy_to_peer_cuda:1_per_second"), std::string::npos) << table;
  const std::string samples = samples_csv(rows);
  EXPECT_NE(samples.find("launch_seconds"), std::string::npos) << samples;
  EXPECT_NE(samples.find("gemm_bf16_flop_per_second"), std::string::npos) << samples;
}

TEST(FleetFigures, hostile_documents_take_no_effect) {
  Json probe = fleet_probe_document();
  const std::string name = "a\"} 1\n# EOF\n";
  probe["name"] = name;
  Json& device = probe["devices"][0];
  device["serial"] = Json::array({1});
  device["wrong"] = 7;
  device["throttle"] = Json::array({name, name, 7});
  device["figures"][0]["name"] = name;
  device["figures"][1]["name"] = 7;
  device["figures"][2]["unit"] = "parsec";
  device["figures"][3]["value"] = "fast";
  device["figures"][4]["range"] = Json::array({"a", 1});
  device["figures"].push_back(device["figures"][5]);
  EXPECT_NO_THROW(exposed(probe));
  Json fleet = fleet_document();
  fleet["verdicts"].push_back(fleet["verdicts"][0]);
  fleet["grid"]["rows"][0]["group"] = 1e300;
  fleet["grid"]["rows"][1]["group"] = -1;
  fleet["grid"]["rows"][2]["values"] = Json::array({name, name, name, name, name});
  fleet["groups"][0]["figures"][0]["p50"] = 0;
  fleet["findings"].push_back(7);
  fleet["differences"] = "none";
  const Exposition read = exposed(fleet);
  EXPECT_NE(read.find("weir_fleet_device_fit", {{"node", "n1"}, {"device", "cuda:0"}}), nullptr);
  for (const char* text : {R"({"schema": "weir.fleet_probe/1"})", R"({"schema": "weir.fleet_probe/1", "name": 7})",
                           R"({"schema": "weir.fleet/1", "verdicts": []})",
                           R"({"schema": "weir.fleet/1", "findings": [], "verdicts": 7})"})
    EXPECT_THROW(figures_of(Json::parse(text), "x.json"), Error) << text;
}

}  // namespace
}  // namespace weir
