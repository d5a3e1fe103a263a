// Probes of nodes in a history: a GPU keeps its series where it is moved, the newest probe of each node is found, and
// one that became slower is named with the day.
#include "report/history/fleet_nodes.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "report/history/document.h"
#include "report/history/made.h"
#include "report/history/packed_text.h"

namespace weir::history {
namespace {

struct MadeProbe {
  std::string node = "node7", created = "2026-03-01T00:00:00Z", serial = "1652", driver = "570.1";
  double gemm = 700e12, launch = 2000;
};

Json probe_json(const MadeProbe& made) {
  fleet::NodeReport node;
  node.name = made.node;
  node.created = made.created;
  node.command_line = {"weir", "fleet", "probe"};
  node.environment = {{"kernel", "Linux 6.1"}, {"load_average", "0.5"}};
  fleet::NodeDevice device;
  device.name = "cuda:3";
  device.model = "NVIDIA H200";
  device.serial = made.serial;
  device.facts = {{"driver", made.driver}};
  const auto figure = [&](const std::string& name, double value, const std::string& to = "") {
    fleet::Figure one;
    one.name = name;
    one.to = to;
    one.value = value;
    for (int i = -2; i <= 2; ++i) one.samples.push_back(value * (1 + 0.0005 * i));
    device.figures.push_back(one);
  };
  figure("gemm_bf16", made.gemm);
  figure("launch", made.launch);
  figure("copy_to_peer", 300e9, "cuda:1");
  figure("temperature", 60);
  fleet::Figure missing;
  missing.name = "gemm_fp8";
  missing.reason = "the device cannot";
  device.figures.push_back(missing);
  node.devices.push_back(device);
  return fleet::to_json(node);
}

class FleetStores : public testing::EngineTest {
 protected:
  Added add_probe(const MadeProbe& made) {
    static int number = 0;
    const std::vector<std::filesystem::path> paths = {
        write(fmt::format("probe_{}.json", number++), probe_json(made).dump())};
    const Intake intake = read_intake(paths);
    EXPECT_TRUE(intake.refused.empty()) << intake.refused[0];
    Store store(where(), DatabaseAccess::write);
    return store.add(intake, {});
  }
};
WEIR_IN_EVERY_ENGINE(FleetStores);

TEST_P(FleetStores, judged_figures_are_points_of_the_device_and_the_probe_is_kept_whole) {
  const Added added = add_probe({});
  EXPECT_EQ(added.points, 3U) << "neither states nor what was not measured";
  EXPECT_EQ(added.documents, 1U);
  const Added again = add_probe({});
  EXPECT_EQ(again.points + again.documents, 0U);
  EXPECT_EQ(again.known, 3U);
  EXPECT_FALSE(again.entry.has_value());
  Store store(where(), DatabaseAccess::read);
  const std::string machine = store.resolve_machine("1652");
  ASSERT_EQ(store.machines().size(), 1U);
  EXPECT_EQ(store.machines()[0].label, "NVIDIA H200 1652");
  PointFilter filter;
  filter.workload = "fleet/gemm_bf16";
  filter.machine = "1652";
  const auto points = store.points(filter);
  ASSERT_EQ(points.size(), 1U);
  EXPECT_EQ(points[0].machine, machine);
  EXPECT_EQ(points[0].throughput.unit, "flop/s");
  EXPECT_NEAR(*points[0].throughput.median, 700e12, 1);
  EXPECT_FALSE(points[0].latency.median.has_value());
  filter.workload = "fleet/copy_to_peer";
  EXPECT_EQ(store.points(filter).at(0).key.at("to"), "cuda:1");
  filter.workload = "fleet/launch";
  EXPECT_NEAR(*store.points(filter).at(0).latency.median, 2000, 1e-9);
  const auto kept = store.newest_documents("fleet_probe", "");
  ASSERT_EQ(kept.size(), 1U);
  EXPECT_EQ(parse_json(unpack_text(kept[0].packed, 1'000'000).value(), "kept").dump(), probe_json({}).dump())
      << "to the byte";
  const auto nodes = newest_nodes(store);
  ASSERT_EQ(nodes.size(), 1U);
  Json without_samples = probe_json({});
  for (Json& device : without_samples["devices"])
    for (Json& figure : device["figures"]) figure["samples"] = Json::array();
  EXPECT_EQ(fleet::to_json(nodes[0]).dump(), without_samples.dump());
}

TEST_P(FleetStores, a_moved_gpu_keeps_its_series_and_what_changed_is_said) {
  for (int day = 1; day <= 14; ++day) {
    MadeProbe made;
    made.created = fmt::format("2026-03-{:02}T00:00:00Z", day);
    made.node = day < 8 ? "node7" : "node9";
    made.driver = day < 8 ? "570.1" : "580.2";
    made.gemm = (day < 8 ? 700e12 : 665e12) * (1 + 0.001 * (day % 3));
    made.launch = 2000.0 + day % 3;
    add_probe(made);
  }
  Store store(where(), DatabaseAccess::read);
  ASSERT_EQ(store.machines().size(), 1U);
  TrendOptions options;
  options.selection.workload = "fleet/gemm_bf16";
  options.selection.machine = "1652";
  const Json trend = trend_document(store, options);
  ASSERT_EQ(trend["series"].size(), 1U);
  ASSERT_EQ(trend["series"][0]["changes"].size(), 1U);
  EXPECT_EQ(trend["series"][0]["changes"][0]["verdict"], "slower");
  const std::string why = trend["series"][0]["changes"][0]["explanations"].dump();
  EXPECT_NE(why.find("580.2"), std::string::npos) << why;
  EXPECT_NE(why.find("node9"), std::string::npos) << why;
  const auto changes = device_changes(store);
  ASSERT_EQ(changes.size(), 1U);
  EXPECT_EQ(changes[0].sentence, "GPU 1652 (node9 cuda:3): GEMM bf16 slower by 5.0 % since 2026-03-08");
  EXPECT_EQ(changes[0].before_at, "2026-03-07T00:00:00Z");
  EXPECT_TRUE(device_changes(store, "2026-03-09T00:00:00Z").empty());
  const auto nodes = newest_nodes(store);
  ASSERT_EQ(nodes.size(), 2U);
  EXPECT_EQ(nodes[0].created, "2026-03-07T00:00:00Z");
  EXPECT_EQ(nodes[1].created, "2026-03-14T00:00:00Z");
  EXPECT_EQ(newest_nodes(store, "2026-03-08").size(), 1U);
}

TEST_P(FleetStores, a_device_that_recovered_is_not_named_and_one_without_a_serial_number_is) {
  for (int day = 1; day <= 24; ++day) {
    MadeProbe made;
    made.created = fmt::format("2026-03-{:02}T00:00:00Z", day);
    made.serial = "";
    made.gemm = (day > 8 && day < 17 ? 600e12 : 700e12) * (1 + 0.001 * (day % 3));
    made.launch = (day < 13 ? 2000 : 2300) + day % 3;
    add_probe(made);
  }
  Store store(where(), DatabaseAccess::read);
  const auto changes = device_changes(store);
  ASSERT_EQ(changes.size(), 1U);
  EXPECT_EQ(changes[0].sentence, "node7 cuda:3: launch, one thread slower by 15.0 % since 2026-03-13");
}

TEST_P(FleetStores, old_probes_go_with_their_points) {
  for (const char* created : {"2026-03-01T01:00:00Z", "2026-03-01T02:00:00Z", "2026-05-01T00:00:00Z"}) {
    MadeProbe made;
    made.created = created;
    add_probe(made);
  }
  Store store(where(), DatabaseAccess::write);
  EXPECT_EQ(store.prune({"2026-04-01T00:00:00Z", true}).documents, 1U);
  const Pruned pruned = store.prune({"2026-04-01T00:00:00Z", false});
  EXPECT_EQ(pruned.documents, 1U);
  EXPECT_EQ(pruned.points, 3U);
  EXPECT_EQ(newest_nodes(store).size(), 1U);
}

TEST(PackedText, comes_back_as_it_was_and_damage_is_found) {
  std::string text;
  for (int i = 0; i < 20'000; ++i) text += fmt::format("{} ", i % 700);
  const std::string packed = pack_text(text);
  EXPECT_EQ(unpack_text(packed, text.size()), text);
  EXPECT_FALSE(unpack_text(packed, text.size() - 1).has_value());
  EXPECT_EQ(unpack_text(pack_text(""), 10), "");
  EXPECT_FALSE(unpack_text("", 10).has_value());
  EXPECT_FALSE(unpack_text("?xyz", 10).has_value());
  EXPECT_FALSE(unpack_text("zxyz", 10).has_value());
  if (packed[0] == 'z') {
    EXPECT_FALSE(unpack_text(packed.substr(0, packed.size() / 2), text.size()).has_value());
  }
}

}  // namespace
}  // namespace weir::history
