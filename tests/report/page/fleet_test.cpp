// The pictures of fleets and of nodes against the documents that they are of.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <optional>

#include "report/page/decoded_lane.h"
#include "report/page/fleet_documents.h"
#include "report/page/picture_documents.h"

namespace weir {
namespace {

using namespace weir::testing;

std::vector<std::optional<float>> floats_of(const Json& packed) {
  const std::vector<std::uint8_t> bytes = from_base64(packed.get<std::string>());
  EXPECT_EQ(bytes.size() % 4, 0U);
  std::vector<std::optional<float>> values;
  for (std::size_t at = 0; at + 4 <= bytes.size(); at += 4) {
    std::uint32_t bits = 0;
    for (std::size_t i = 4; i-- > 0;) bits = bits << 8 | bytes[at + i];
    const auto value = std::bit_cast<float>(bits);
    values.push_back(std::isnan(value) ? std::nullopt : std::optional(value));
  }
  return values;
}

const Json* found_finding(const Json& report, const std::string& part) {
  for (const Json& each : report["verdict"]["findings"])
    if (each["text"].get<std::string>().find(part) != std::string::npos) return &each;
  return nullptr;
}

TEST(FleetPicture, has_every_value_in_the_row_of_its_device) {
  const Json document = fleet_map_document();
  const Json report = page_of(document);
  ASSERT_EQ(report["fleets"].size(), 1U);
  const Json& item = report["fleets"][0];
  const Json& rows = document["grid"]["rows"];
  ASSERT_EQ(item["rows"]["nodes"].size(), rows.size());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    EXPECT_EQ(item["node_names"][item["rows"]["nodes"][i].get<std::size_t>()], rows[i]["node"]);
    EXPECT_EQ(item["device_names"][item["rows"]["devices"][i].get<std::size_t>()], rows[i]["device"]);
    EXPECT_EQ(item["rows"]["serials"][i], rows[i]["serial"]);
  }
  EXPECT_EQ(item["rows"]["unfit"], Json::array({1, 3}));
  ASSERT_EQ(item["figures"].size(), 2U);
  for (std::size_t figure = 0; figure < 2; ++figure) {
    const auto values = floats_of(item["figures"][figure]["packed"]);
    ASSERT_EQ(values.size(), rows.size());
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const Json& value = rows[i]["values"][figure];
      ASSERT_EQ(values[i].has_value(), value.is_number()) << i;
      if (values[i]) {
        EXPECT_EQ(*values[i], value.get<float>());
      }
    }
  }
}

TEST(FleetPicture, lists_what_all_share_and_what_none_has_apart_from_the_map) {
  const Json item = page_of(fleet_map_document())["fleets"][0];
  ASSERT_EQ(item["constants"].size(), 2U);
  EXPECT_EQ(item["constants"][0]["words"], "PCIe width");
  EXPECT_EQ(item["constants"][0]["value"], 16);
  EXPECT_EQ(item["constants"][0]["count"], 4);
  EXPECT_EQ(item["constants"][1]["words"], "GEMM fp8");
  EXPECT_TRUE(item["constants"][1]["value"].is_null());
}

TEST(FleetPicture, keeps_a_judged_figure_on_the_map_although_all_devices_agree) {
  Json document = fleet_map_document();
  for (Json& row : document["grid"]["rows"]) row["values"][0] = 4e12;
  const Json item = page_of(document)["fleets"][0];
  EXPECT_EQ(item["figures"][0]["name"], "memory");
}

TEST(FleetPicture, says_first_how_many_nodes_are_unfit_and_why) {
  const Json report = page_of(fleet_map_document());
  const Json& verdict = report["verdict"];
  EXPECT_EQ(verdict["tone"], "bad");
  EXPECT_EQ(verdict["headline"],
            "3 of 3 nodes are unfit: 1 device computes something wrong, 1 device is slow, 1 was not examined.");
  ASSERT_EQ(verdict["findings"].size(), 5U);
  EXPECT_EQ(verdict["findings"][1]["text"], "a cuda:1: GEMM is wrong.");
  EXPECT_EQ(verdict["findings"][4]["tone"], "warning") << "a setting alone makes nobody unfit";
  for (const Json& each : verdict["findings"]) EXPECT_EQ(each["anchor"], report["fleets"][0]["id"]);
}

TEST(FleetPicture, says_that_all_are_fit) {
  Json document = fleet_map_document();
  document["findings"] = Json::array();
  for (Json& verdict : document["verdicts"]) verdict["is_fit"] = true;
  const Json report = page_of(document);
  EXPECT_EQ(report["verdict"]["tone"], "good");
  EXPECT_EQ(report["verdict"]["headline"], "All 3 nodes are fit.");
}

TEST(FleetPicture, names_differences_in_the_headline_where_there_is_nothing_else) {
  Json document = fleet_map_document();
  const Json different = document["findings"][3];
  document["findings"] = Json::array({different, different});
  document["findings"][1]["node"] = "";
  document["findings"][1]["sentence"] = "driver 575 on 2 of 3 nodes";
  for (Json& verdict : document["verdicts"]) verdict["is_fit"] = true;
  const Json report = page_of(document);
  EXPECT_EQ(report["verdict"]["tone"], "warning");
  EXPECT_EQ(report["verdict"]["headline"], "All 3 nodes are fit: 2 settings or versions differ.");
}

TEST(FleetPicture, counts_a_device_with_two_findings_once) {
  Json document = fleet_map_document();
  document["findings"].push_back(document["findings"][1]);
  EXPECT_NE(page_of(document)["verdict"]["headline"].get<std::string>().find("1 device is slow"), std::string::npos);
}

TEST(FleetPicture, counts_a_slow_place_apart_from_slow_devices) {
  Json document = fleet_map_document();
  Json place = document["findings"][1];
  place["node"] = "";
  place["device"] = nullptr;
  place["place"] = "switch leaf3";
  place["sentence"] = "all nodes at switch leaf3 are slow";
  document["findings"].push_back(place);
  const Json report = page_of(document);
  EXPECT_NE(report["verdict"]["headline"].get<std::string>().find("1 device is slow, 1 place is slow as a whole"),
            std::string::npos);
  const Json& finding = report["fleets"][0]["findings"][4];
  EXPECT_EQ(finding["kind"], "place");
  EXPECT_EQ(finding["place"], "switch leaf3");
  EXPECT_TRUE(finding["row"].is_null());
}

TEST(FleetPicture, names_few_of_each_kind_in_the_verdict_and_all_in_the_section) {
  Json document = fleet_map_document();
  const Json slow = document["findings"][1];
  for (int i = 0; i < 9; ++i) document["findings"].push_back(slow);
  const Json report = page_of(document);
  EXPECT_EQ(report["fleets"][0]["findings"].size(), 13U);
  EXPECT_EQ(report["fleets"][0]["findings_left_out"], 0);
  std::size_t named = 0;
  for (const Json& each : report["verdict"]["findings"])
    named += each["text"].get<std::string>().find("memory 10 % below") != std::string::npos ? 1 : 0;
  EXPECT_EQ(named, 4U);
  EXPECT_NE(found_finding(report, "6 more findings of the kind \"slow\""), nullptr);
}

TEST(FleetPicture, links_findings_to_their_devices) {
  const Json item = page_of(fleet_map_document())["fleets"][0];
  EXPECT_EQ(item["findings"][0]["row"], 1);
  EXPECT_EQ(item["findings"][1]["row"], 3);
  EXPECT_TRUE(item["findings"][2]["row"].is_null()) << "of a node that has no devices";
}

TEST(FleetPicture, keeps_named_devices_where_there_are_too_many) {
  Json document = fleet_map_document();
  Json& rows = document["grid"]["rows"];
  const Json plain = rows[0];
  const Json named = rows[3];
  rows = Json::array();
  constexpr int kRows = 33'000;
  for (int i = 0; i < kRows; ++i) {
    Json row = plain;
    row["node"] = "n" + std::to_string(i / 8);
    row["device"] = "cuda:" + std::to_string(i % 8);
    rows.push_back(std::move(row));
  }
  rows.push_back(named);
  const Json item = page_of(document)["fleets"][0];
  const std::size_t shown = item["rows"]["nodes"].size();
  EXPECT_LT(shown, 33'000U);
  ASSERT_TRUE(item["findings"][1]["row"].is_number());
  EXPECT_EQ(item["findings"][1]["row"], shown - 1);
  EXPECT_EQ(floats_of(item["figures"][0]["packed"]).size(), shown);
  bool says_so = false;
  for (const Json& note : item["notes"])
    says_so = says_so || note.get<std::string>().find("of 33001 devices") != std::string::npos;
  EXPECT_TRUE(says_so) << item["notes"].dump();
}

TEST(FleetPicture, lists_a_device_once_and_not_more_devices_of_a_node_than_the_map_has_room_for) {
  Json document = fleet_map_document();
  Json& rows = document["grid"]["rows"];
  rows.push_back(rows[0]);
  for (int i = 2; i < 200; ++i) {
    Json row = rows[0];
    row["device"] = "cuda:" + std::to_string(i);
    rows.push_back(std::move(row));
  }
  const Json item = page_of(document)["fleets"][0];
  EXPECT_EQ(item["device_names"].size(), 64U);
  EXPECT_EQ(item["rows"]["nodes"].size(), 66U);
}

TEST(NodePicture, has_a_row_for_each_figure_with_the_values_of_all_devices) {
  const Json report = page_of(probed_node_document());
  ASSERT_EQ(report["fleet_nodes"].size(), 1U);
  const Json& item = report["fleet_nodes"][0];
  ASSERT_EQ(item["devices"].size(), 2U);
  ASSERT_EQ(item["figures"].size(), 3U);
  const Json& memory = item["figures"][0];
  EXPECT_EQ(memory["words"], "memory bandwidth");
  EXPECT_EQ(memory["goal"], "higher");
  ASSERT_EQ(memory["values"].size(), 2U);
  EXPECT_EQ(memory["values"][0]["range"], Json::array({3.9e12, 4.1e12}));
  EXPECT_TRUE(memory["values"][1]["value"].is_null());
  EXPECT_EQ(memory["values"][1]["reason"], "it fell off the bus");
  EXPECT_EQ(item["figures"][1]["values"].size(), 2U) << "a copy to each of the others";
  EXPECT_EQ(item["figures"][2]["words"], "of_tomorrow") << "of a later version: shown under its name";
  EXPECT_EQ(item["figures"][2]["unit"], "K");
  EXPECT_EQ(item["figures"][2]["goal"], "none");
}

TEST(NodePicture, says_what_is_wrong_with_a_device) {
  const Json report = page_of(probed_node_document());
  EXPECT_EQ(report["verdict"]["tone"], "bad");
  const Json* wrong = found_finding(report, "cuda:1 computes wrongly: GEMM bf16 gives 3 where 4 is right.");
  ASSERT_NE(wrong, nullptr) << report["verdict"].dump(1);
  EXPECT_EQ((*wrong)["tone"], "bad");
  EXPECT_NE(found_finding(report, "cuda:1 could not be examined: it fell off the bus."), nullptr);
  EXPECT_NE(found_finding(report, "cuda:0 lowered its clock under load: power cap."), nullptr);
}

// Whatever a document has, the page that it makes has lists that belong together.
TEST(FleetPicture, survives_any_value_anywhere) {
  const std::vector<Json> values = {
      nullptr, "x\x1b[31m", -1, 1e308, Json::array(), Json::object(), Json::array({Json::object(), nullptr, "x", -1}),
      true};
  for (Json document : {fleet_map_document(), probed_node_document()}) {
    std::size_t pages = 0;
    each_mutation(document, values, [&] {
      const Json report = page_of(document);
      ++pages;
      for (const Json& item : report["fleets"]) {
        const std::size_t rows = item["rows"]["nodes"].size();
        for (const char* column : {"devices", "groups", "serials"}) ASSERT_EQ(item["rows"][column].size(), rows);
        for (const Json& node : item["rows"]["nodes"]) ASSERT_LT(node, item["node_names"].size());
        for (const Json& device : item["rows"]["devices"]) ASSERT_LT(device, item["device_names"].size());
        for (const Json& row : item["rows"]["unfit"]) ASSERT_LT(row, rows);
        for (const Json& figure : item["figures"]) ASSERT_EQ(floats_of(figure["packed"]).size(), rows);
        for (const Json& finding : item["findings"]) {
          ASSERT_TRUE(finding["row"].is_null() || finding["row"] < rows);
        }
      }
      for (const Json& item : report["fleet_nodes"])
        for (const Json& figure : item["figures"])
          for (const Json& value : figure["values"]) ASSERT_LT(value["device"], item["devices"].size());
    });
    EXPECT_GT(pages, 100U);
  }
}

}  // namespace
}  // namespace weir
