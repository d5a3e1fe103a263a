// Profiles: what the program carries, what users write, what they get told.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "base/error.h"
#include "device/device.h"
#include "device/sim/profile.h"

namespace weir::sim {
namespace {

std::string refusal(const std::string& text) {
  try {
    load_profile(text, "my.yaml");
  } catch (const Error& error) {
    EXPECT_EQ(error.fault, Fault::input);
    return std::string(error.what()) + " | " + error.hint;
  }
  return "accepted";
}

std::string refusal(const std::string& key, const std::string& value) {
  try {
    SimProfile profile;
    apply(profile, key, value);
  } catch (const Error& error) {
    EXPECT_EQ(error.fault, Fault::input);
    return std::string(error.what()) + " | " + error.hint;
  }
  return "accepted";
}

TEST(SimProfile, the_program_carries_all_of_them) {
  EXPECT_EQ(profile_names(), (std::vector<std::string>{"a100", "h200", "mi300x", "mi300x_2026", "mi308x", "toy"}));
  for (const std::string& name : profile_names()) {
    const SimProfile profile = profile_named(name);
    EXPECT_EQ(profile.name, name);
    EXPECT_NE(open_device("sim:" + name, {}), nullptr);
  }
  EXPECT_EQ(open_device("sim", {})->info().name, "sim:h200");
}

TEST(SimProfile, two_of_them_are_ROCm_before_and_after) {
  const SimProfile before = profile_named("mi300x"), after = profile_named("mi300x_2026");
  EXPECT_EQ(before.mapping, Mapping::least_referenced);
  EXPECT_EQ(before.barrier, 1);
  EXPECT_EQ(before.graph_queues, GraphQueues::shared);
  EXPECT_EQ(after.mapping, Mapping::load_based);
  EXPECT_EQ(after.barrier, 2);
  EXPECT_EQ(after.graph_queues, GraphQueues::own);
  // Nothing else differs.
  SimProfile same = before;
  same.name = after.name;
  same.model = after.model;
  same.mapping = after.mapping;
  same.barrier = after.barrier;
  same.graph_queues = after.graph_queues;
  EXPECT_EQ(to_yaml(same), to_yaml(after));
}

TEST(SimProfile, reads_back_what_it_wrote) {
  for (const std::string& name : profile_names()) {
    SimProfile profile = profile_named(name);
    profile.mapping = Mapping::fixed;
    profile.map = {1, 0, 1};
    profile.scale = 1.0 / 3;
    profile.durations.push_back(
        {{.name = "gemm", .type = ElementType::bf16, .precision = Precision::bf16, .dims = {64, 8, 7, -256}},
         1234.5,
         3,
         2});
    profile.durations.push_back({{.kind = CommandKind::copy, .name = "to_host", .dims = {4096}}, 17});
    profile.durations.push_back({{.kind = CommandKind::host, .name = "gelu", .dims = {99}}, 0.25});
    profile.durations.push_back({{.kind = CommandKind::collective, .name = "all_reduce", .dims = {8}}, 5});
    const std::string text = to_yaml(profile);
    const SimProfile again = load_profile(text, "again");
    EXPECT_EQ(to_yaml(again), text);
    ASSERT_EQ(again.durations.size(), 4u);
    for (std::size_t i = 0; i < 4; ++i) {
      EXPECT_EQ(again.durations[i].of, profile.durations[i].of);
      EXPECT_EQ(again.durations[i].ns, profile.durations[i].ns);
      EXPECT_EQ(again.durations[i].blocks, profile.durations[i].blocks);
      EXPECT_EQ(again.durations[i].blocks_per_multiprocessor, profile.durations[i].blocks_per_multiprocessor);
    }
    SimProfile before = profile, after = again;
    for (const Setting& setting : settings()) {
      const bool is_equal = setting.whole != nullptr ? setting.whole(before) == setting.whole(after)
                                                     : setting.real(before) == setting.real(after);
      EXPECT_TRUE(is_equal) << setting.name;
    }
    EXPECT_EQ(before.map, after.map);
    EXPECT_EQ(before.mapping, after.mapping);
    EXPECT_EQ(before.priorities, after.priorities);
    EXPECT_EQ(before.precisions, after.precisions);
    EXPECT_EQ(before.model, after.model);
  }
}

TEST(SimProfile, every_setting_keeps_to_its_range) {
  for (const Setting& setting : settings()) {
    SimProfile profile;
    const auto text = [&](double value) {
      return setting.whole != nullptr ? std::to_string(static_cast<std::int64_t>(value)) : std::to_string(value);
    };
    apply(profile, setting.name, text(setting.highest));
    EXPECT_NE(refusal(setting.name, text(setting.highest * 1.5 + 1)), "accepted") << setting.name;
    EXPECT_NE(refusal(setting.name, "-1"), "accepted") << setting.name;
    EXPECT_NE(refusal(setting.name, "much"), "accepted") << setting.name;
    EXPECT_NE(refusal(setting.name, "nan"), "accepted") << setting.name;
    EXPECT_NE(refusal(setting.name, ""), "accepted") << setting.name;
    // The default is within the range.
    SimProfile fresh;
    const double value = setting.whole != nullptr ? static_cast<double>(setting.whole(fresh)) : setting.real(fresh);
    EXPECT_TRUE(value >= setting.lowest && value <= setting.highest) << setting.name;
  }
}

TEST(SimProfile, settings_are_changed_by_name) {
  SimProfile profile;
  apply(profile, "queues", "32");
  apply(profile, "mapping", "fixed");
  apply(profile, "map", "0, 31,3");
  apply(profile, "host.launch_ns", "7");
  apply(profile, "rates.bf16", "1e12");
  apply(profile, "precisions", "fp32");
  apply(profile, "priorities", "full");
  EXPECT_EQ(profile.queues, 32);
  EXPECT_EQ(profile.map, (std::vector<std::int64_t>{0, 31, 3}));
  EXPECT_EQ(profile.host.launch_ns, 7);
  EXPECT_EQ(profile.rates.bf16, 1e12);
  EXPECT_EQ(profile.precisions.size(), 1u);
  EXPECT_NO_THROW(check(profile));
  apply(profile, "queues", "31");
  EXPECT_THROW(check(profile), Error);
  EXPECT_EQ(profile.overrides.size(), 8u);
}

TEST(SimProfile, what_is_refused_says_where_and_what_to_do) {
  EXPECT_EQ(refusal("queus", "8"), "sim queus=8: there is no setting 'queus' | Did you mean 'queues'?");
  EXPECT_NE(refusal("queues", "0").find("sim queues=0"), std::string::npos);
  EXPECT_NE(refusal("queues", "0").find("1 to 128"), std::string::npos);
  EXPECT_NE(refusal("mapping", "loadbased").find("Did you mean 'load_based'?"), std::string::npos);
  EXPECT_NE(refusal("durations", "1").find("in a profile"), std::string::npos);
  EXPECT_NE(refusal("queues: 8\nhost:\n  lunch_ns: 4\n").find("my.yaml:3: host.lunch_ns"), std::string::npos);
  EXPECT_NE(refusal("queues: [1]").find("my.yaml:1: queues"), std::string::npos);
  EXPECT_NE(refusal("mapping: fixed").find("needs a map"), std::string::npos);
  EXPECT_NE(refusal("- 1").find("a map of settings"), std::string::npos);
  EXPECT_NE(refusal("durations: [{kernel: gemmm, ns: 1}]").find("Did you mean 'gemm'?"), std::string::npos);
  EXPECT_NE(refusal("durations: [{ns: 1}]").find("Name a kernel"), std::string::npos);
  EXPECT_NE(refusal("durations: [{copy: sideways, bytes: 1, ns: 1}]").find("no direction"), std::string::npos);
  EXPECT_NE(refusal("durations: [{copy: to_host, bytes: 1, ns: -1}]").find("range"), std::string::npos);
  EXPECT_NE(refusal("precisions", "fp8_e4m3").find("simulated devices have no fp8_e4m3"), std::string::npos);
  EXPECT_NE(refusal("precisions", "fp9").find("there is no precision 'fp9'"), std::string::npos);
  EXPECT_NE(refusal("durations: [{kernel: gemm, ns: 1, precision: fp8_e5m2}]").find("simulated devices have no fp8"),
            std::string::npos);
  EXPECT_NE(refusal("name: \"a\\nb\"").find("is no name"), std::string::npos);
}

TEST(SimProfile, a_device_is_named_by_profile_or_file) {
  EXPECT_THROW(open_device("sim:h20", {}), Error);
  EXPECT_THROW(open_device("sim:./nowhere.yaml", {}), Error);
  const auto path = std::filesystem::temp_directory_path() / "weir_sim_profile_test.yaml";
  std::ofstream(path) << "name: mine\nqueues: 3\n";
  DeviceOptions options;
  EXPECT_EQ(open_device("sim:" + path.string(), options)->info().hardware_queues.value, 3);
  options.hardware_queues = 5;
  EXPECT_EQ(open_device("sim:" + path.string(), options)->info().hardware_queues.value, 5);
  options.sim = {{"queues", "6"}};
  const DeviceInfo info = open_device("sim:" + path.string(), options)->info();
  EXPECT_EQ(info.hardware_queues.value, 6);
  EXPECT_EQ(info.name, "sim:mine");
  EXPECT_NE(info.model.find("queues=6"), std::string::npos);
  EXPECT_TRUE(info.is_virtual && info.is_gpu && !info.computes);
  options.sim = {{"no_such", "6"}};
  EXPECT_THROW(open_device("sim", options), Error);
  std::filesystem::remove(path);
}

TEST(SimProfile, every_setting_is_documented) {
  std::ifstream file(std::string(WEIR_SOURCE_DIR) + "/docs/sim.md");
  const std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  for (const Setting& setting : settings())
    EXPECT_NE(text.find("| `" + setting.name + "` |"), std::string::npos) << setting.name;
}

TEST(SimProfile, auto_never_takes_it) { EXPECT_NE(open_device("auto", {})->info().backend, "sim"); }

}  // namespace
}  // namespace weir::sim
