#include <gtest/gtest.h>

#include "lab/queues/fairness_probe.h"
#include "lab/queues/queues_switch.h"
#include "measure/statistics.h"
#include "report/text/documents.h"

namespace weir {
namespace {

TEST(FairnessReport, NamesTheStarvedAndWhy) {
  FairnessProbe probe;
  const std::vector<double> service = {100, 0, 100, 300};
  probe.streams = shares_of(service);
  probe.jain = {jain_index(service), "by experiment"};
  Json document = {
      {"experiment", "fairness"}, {"device", {{"name", "cpu"}, {"model", "m"}}}, {"fairness", to_json(probe)}};
  EXPECT_EQ(document["fairness"]["starved"], Json::array({1}));
  EXPECT_NE(describe_fairness(document).find("starved            streams 1\n"), std::string::npos);
  document["fairness"]["jain"] = nullptr;
  document["unavailable"]["fairness.jain"] = "no moments";
  EXPECT_NE(describe_fairness(document).find("not known: no moments"), std::string::npos);
}

Json document_with(int queues, double hop_ns, double lost_ns) {
  Json row = {{"streams", 32},
              {"hops_ns", {{"value", {{"p50", hop_ns}, {"p90", 2 * hop_ns}, {"count", 10}}}, {"reason", nullptr}}},
              {"serialisation", {{"value", {{"lost_ns_per_kernel", lost_ns}}}, {"reason", nullptr}}}};
  Json setting = {{"hardware_queues", queues}, {"parallel_ns", 500'000}, {"rows", Json::array({row})}};
  return {{"experiment", "switch"},
          {"warnings", Json::array()},
          {"unavailable", {{"switch.best", "one only"}}},
          {"switch", {{"settings", Json::array({setting})}}}};
}

TEST(SwitchMerge, SortsSettingsAndSaysWhereTheyCross) {
  const std::vector<Json> documents = {document_with(32, 5'400, 0), document_with(1, 1'800, 375'000),
                                       document_with(8, 3'600, 45'000)};
  const Json merged = merge_switch(documents, 10'000, {});
  ASSERT_EQ(merged["switch"]["settings"].size(), 3u);
  EXPECT_EQ(merged["switch"]["settings"][0]["hardware_queues"], 1);
  EXPECT_FALSE(merged["unavailable"].contains("switch.best"));
  const Json& best = merged["switch"]["best"][0];
  EXPECT_EQ(best["streams"], 32);
  EXPECT_EQ(best["hardware_queues"], 8);
  EXPECT_DOUBLE_EQ(best["ns_per_command"].get<double>(), 4'500);
  EXPECT_EQ(best["ranges"].size(), 3u);
  const std::string text = describe_switch(merged);
  EXPECT_NE(text.find("8 queues cost least (4.50 us per command)"), std::string::npos) << text;
  const std::vector<Json> other = {{{"experiment", "limits"}}};
  EXPECT_ANY_THROW(merge_switch(other, 1, {}));
}

TEST(SwitchReport, AMissingTableHasTheReasonOfTheMostStreamsInAnyOrder) {
  Json document = document_with(8, 3'600, 45'000);
  Json& rows = document["switch"]["settings"][0]["rows"];
  rows[0]["within_queue_ns"] = rows[0]["timeline"] = {{"value", nullptr}, {"reason", "no queues"}};
  rows.push_back(rows[0]);
  rows[1]["streams"] = 1;
  rows[1]["within_queue_ns"]["reason"] = rows[1]["timeline"]["reason"] = "only one stream";
  const std::string text = describe_switch(document);
  EXPECT_NE(text.find("p50/p90 in us: none, no queues\n"), std::string::npos) << text;
  EXPECT_EQ(text.find("only one stream"), std::string::npos) << text;
}

}  // namespace
}  // namespace weir
