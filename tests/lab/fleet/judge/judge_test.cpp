// Who is named in fleets of which the slow, wrong and narrow devices are known: recall and false names, few peers, many
// slow ones, nodes, switches, groups, links and causes.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "lab/fleet/judge/made_fleet.h"

namespace weir::fleet {
namespace {

// How well the findings match what was planted, over fleets of several seeds.
struct Score {
  std::size_t slow = 0, slow_found = 0, wrong = 0, wrong_found = 0, narrow = 0, narrow_found = 0;
  std::size_t fleets = 0, false_names = 0, most_false_names = 0;
  double recall() const {
    return static_cast<double>(slow_found + wrong_found + narrow_found) / static_cast<double>(slow + wrong + narrow);
  }
};

std::set<std::string> named(const FleetReport& report) {
  std::set<std::string> names;
  for (const Finding& finding : report.findings)
    if (finding.is_unfit && finding.kind != FindingKind::wrong) names.insert(finding.node + " " + finding.device);
  return names;
}

void add_to(Score& score, const MadeFleet& fleet, const std::set<std::string>& names,
            const std::set<std::string>& wrong) {
  std::size_t falsely = 0;
  for (const std::string& name : names) falsely += !fleet.slow.contains(name) && !fleet.narrow.contains(name);
  for (const std::string& name : fleet.slow) score.slow_found += names.contains(name);
  for (const std::string& name : fleet.narrow) score.narrow_found += names.contains(name);
  for (const std::string& name : fleet.wrong) score.wrong_found += wrong.contains(name);
  score.slow += fleet.slow.size();
  score.narrow += fleet.narrow.size();
  score.wrong += fleet.wrong.size();
  score.false_names += falsely;
  score.most_false_names = std::max(score.most_false_names, falsely);
  ++score.fleets;
}

Score score_of(MadeOptions options, std::uint64_t seeds) {
  Score score;
  for (options.seed = 1; options.seed <= seeds; ++options.seed) {
    const MadeFleet fleet = made_fleet(options);
    const FleetReport report = judge(fleet.nodes);
    std::set<std::string> wrong;
    for (const Finding& finding : report.findings)
      if (finding.kind == FindingKind::wrong) wrong.insert(finding.node + " " + finding.device);
    add_to(score, fleet, named(report), wrong);
  }
  return score;
}

// Megatron's rule: beyond one standard deviation and beyond 10 % of the mean, figure by figure.
Score megatron_score_of(MadeOptions options, std::uint64_t seeds) {
  Score score;
  for (options.seed = 1; options.seed <= seeds; ++options.seed) {
    MadeFleet fleet = made_fleet(options);
    std::set<std::string> names;
    for (const char* const figure : {"gemm_fp32", "gemm_bf16", "gemm_fp8", "copy_to_device", "copy_to_host"}) {
      double sum = 0, squares = 0, count = 0;
      for (NodeReport& node : fleet.nodes)
        for (NodeDevice& device : node.devices) {
          const double value = *made_figure(device, figure)->value;
          sum += value, squares += value * value, ++count;
        }
      const double mean = sum / count, deviation = std::sqrt(squares / count - mean * mean);
      for (NodeReport& node : fleet.nodes)
        for (NodeDevice& device : node.devices)
          if (const double value = *made_figure(device, figure)->value; value < mean - deviation && value < 0.9 * mean)
            names.insert(node.name + " " + device.name);
    }
    add_to(score, fleet, names, {});
  }
  return score;
}

void print_score(const char* what, const Score& score) {
  std::printf("%-34s slow %zu of %zu, narrow %zu of %zu, wrong %zu of %zu, false names %zu in %zu fleets\n", what,
              score.slow_found, score.slow, score.narrow_found, score.narrow, score.wrong_found, score.wrong,
              score.false_names, score.fleets);
}

MadeOptions with_faults() {
  MadeOptions options;
  options.slow = 10;
  options.wrong = 3;
  options.narrow = 2;
  return options;
}

void expect_bar(const Score& score) {
  EXPECT_GE(score.recall(), 0.95);
  EXPECT_GE(static_cast<double>(score.slow_found), 0.95 * static_cast<double>(score.slow));
  EXPECT_EQ(score.wrong_found, score.wrong);
  EXPECT_EQ(score.narrow_found, score.narrow);
  EXPECT_LE(score.most_false_names, 1U);
}

// The first finding of a kind about this node; fails the test where there is none.
const Finding& finding_of(const FleetReport& report, FindingKind kind, const std::string& node) {
  for (const Finding& finding : report.findings)
    if (finding.kind == kind && finding.node == node) return finding;
  static const Finding kNone;
  ADD_FAILURE() << "no finding of kind " << name_of(kind) << " about " << node;
  return kNone;
}

std::size_t count_of(const FleetReport& report, FindingKind kind) {
  return static_cast<std::size_t>(std::count_if(report.findings.begin(), report.findings.end(),
                                                [&](const Finding& finding) { return finding.kind == kind; }));
}

bool is_in(const std::string& part, const std::string& text) { return text.find(part) != std::string::npos; }

MadeFleet small_fleet(std::size_t nodes, std::uint64_t seed = 1) {
  MadeOptions options;
  options.nodes = nodes;
  options.seed = seed;
  return made_fleet(options);
}

TEST(JudgeFleet, names_the_slow_the_wrong_and_the_narrow_among_8000) {
  const Score score = score_of(with_faults(), 5);
  print_score("weir", score);
  expect_bar(score);
}

TEST(JudgeFleet, meets_the_bar_where_devices_of_a_node_are_alike) {
  MadeOptions options = with_faults();
  options.of_node = options.shared = 0.4;
  const Score score = score_of(options, 4);
  print_score("alike within nodes", score);
  expect_bar(score);
}

TEST(JudgeFleet, meets_the_bar_where_samples_have_heavy_tails) {
  MadeOptions options = with_faults();
  options.sample_degrees = 3;
  const Score score = score_of(options, 4);
  print_score("samples with tails of t(3)", score);
  expect_bar(score);
}

// 10 % is more than a slow device loses here; the rule sees half a link only.
TEST(JudgeFleet, finds_more_than_the_rule_of_megatron) {
  const Score rule = megatron_score_of(with_faults(), 2);
  print_score("Megatron's rule", rule);
  EXPECT_LT(rule.slow_found, rule.slow / 10);
  EXPECT_EQ(rule.narrow_found, rule.narrow);
}

// Recall against effect, as docs/fleet.md has it: what is natural from device to device decides.
TEST(JudgeFleet, finds_more_the_larger_the_effect_and_the_smaller_the_natural_spread) {
  std::printf("%-9s %12s %12s %12s %12s\n", "effect", "0.8 %", "1.2 %", "2 %, apart", "2 %, common");
  std::vector<double> recalls;
  for (const double effect : {0.04, 0.05, 0.06, 0.08, 0.10}) {
    std::printf("%6.0f %% ", 100 * effect);
    for (const auto& [between, shared] : {std::pair{0.008, 0.5}, {0.012, 0.5}, {0.02, 0.0}, {0.02, 1.0}}) {
      MadeOptions options;
      options.slow = 40;
      options.effect = effect;
      options.between = between;
      options.shared = shared;
      options.within = std::sqrt(std::max(0.0, 4e-4 - between * between));
      const Score score = score_of(options, 1);
      EXPECT_LE(score.false_names, 1U);
      recalls.push_back(score.recall());
      std::printf(" %10.0f %%", 100 * score.recall());
    }
    std::printf("\n");
  }
  EXPECT_GE(recalls[4], 0.95);   // 5 %, of which 0.8 % is natural from device to device
  EXPECT_GE(recalls[14], 0.95);  // 8 %, where figures are apart by 2 %, each by itself
  EXPECT_LT(recalls[7], 0.1);    // nobody can tell 5 % from what is 2.5 standard deviations of all figures together
}

TEST(JudgeFleet, names_nobody_in_healthy_fleets) {
  std::size_t false_names = 0;
  for (const std::size_t nodes : {1U, 2U, 4U, 8U, 40U})
    for (std::uint64_t seed = 1; seed <= 40; ++seed) {
      MadeOptions options;
      options.nodes = nodes;
      options.seed = seed;
      options.of_node = 0.2;
      options.between = 0.015;
      false_names += named(judge(made_fleet(options).nodes)).size();
    }
  EXPECT_LE(false_names, 6U) << "of 200 fleets, at a significance of 1 %";
  EXPECT_LE(score_of(MadeOptions{}, 3).false_names, 1U);
}

TEST(JudgeFleet, needs_more_evidence_where_there_are_few_peers) {
  for (const auto& [nodes, factor, is_named] :
       {std::tuple{1, 0.85, true}, {1, 0.97, false}, {40, 0.93, true}, {40, 0.98, false}}) {
    MadeFleet fleet = small_fleet(static_cast<std::size_t>(nodes), 3);
    make_slower(fleet.nodes[0].devices[2], kGemms, factor);
    EXPECT_EQ(named(judge(fleet.nodes)).contains("node0 cuda:2"), is_named) << nodes << " nodes, " << factor;
  }
  MadeOptions two;
  two.nodes = 1;
  two.devices = 2;
  MadeFleet pair = made_fleet(two);
  make_slower(pair.nodes[0].devices[1], kGemms, 0.95);
  EXPECT_TRUE(named(judge(pair.nodes)).empty()) << "one peer alone does not say what is natural";
  make_slower(pair.nodes[0].devices[1], kGemms, 0.7);
  EXPECT_EQ(named(judge(pair.nodes)), std::set<std::string>{"node0 cuda:1"});
}

TEST(JudgeFleet, is_not_masked_by_a_fifth_that_is_slow) {
  MadeOptions options;
  options.nodes = 200;
  options.slow = 320;
  options.effect = 0.08;
  const Score score = score_of(options, 2);
  EXPECT_GE(score.recall(), 0.95);
  EXPECT_LE(score.most_false_names, 16U) << "1 % of those that are named";
}

TEST(JudgeFleet, says_a_clock_and_a_narrow_link_where_they_explain_the_figure) {
  MadeFleet fleet = small_fleet(32);
  make_slower(fleet.nodes[7].devices[3], kGemms, 0.9);
  made_figure(fleet.nodes[7].devices[3], "clock")->value = 1410;
  fleet.nodes[7].devices[3].throttle = {"power cap"};
  make_slower(fleet.nodes[9].devices[1], kGemms, 0.9);
  made_figure(fleet.nodes[9].devices[1], "pcie_width")->value = 8;
  const FleetReport report = judge(fleet.nodes);
  const Finding& slow = finding_of(report, FindingKind::slow, "node7");
  EXPECT_EQ(slow.device, "cuda:3");
  EXPECT_TRUE(is_in("clock 1,410 MHz where they have 1,755", slow.cause)) << slow.sentence;
  EXPECT_TRUE(is_in("throttled: power cap", slow.cause)) << slow.sentence;
  EXPECT_TRUE(is_in("node7 cuda:3 (165000451): GEMM ", slow.sentence)) << slow.sentence;
  EXPECT_TRUE(is_in("% below its 255 peers", slow.sentence)) << slow.sentence;
  EXPECT_NEAR(*slow.effect, -0.1, 0.05);
  EXPECT_EQ(finding_of(report, FindingKind::slow, "node9").cause, "") << "a narrow link does not slow arithmetic";
}

TEST(JudgeFleet, does_not_hide_devices_that_few_others_are_set_like) {
  MadeFleet fleet = small_fleet(40);
  for (NodeDevice& device : fleet.nodes[5].devices) device.facts["ecc"] = "off";
  fleet.nodes[6].devices[0].facts["driver"] = "570.1";
  make_slower(fleet.nodes[6].devices[0], kGemms, 0.85);
  const FleetReport report = judge(fleet.nodes);
  ASSERT_EQ(report.groups.size(), 1U);
  EXPECT_TRUE(
      is_in("driver 570.1 where 319 of 319 have 580.65.06", finding_of(report, FindingKind::slow, "node6").cause));
  EXPECT_FALSE(finding_of(report, FindingKind::different, "node6").is_unfit);
  for (const NodeVerdict& verdict : report.verdicts) EXPECT_EQ(verdict.is_fit, verdict.name != "node6");
}

// 4 % between two versions is one sentence; devices are compared with those of their own version.
TEST(JudgeFleet, says_a_difference_of_versions_once) {
  MadeFleet fleet = small_fleet(200);
  for (std::size_t node = 0; node < 50; ++node)
    for (NodeDevice& device : fleet.nodes[node * 4].devices) {
      device.facts["driver"] = "570.1";
      make_slower(device, kGemms, 0.96);
    }
  make_slower(fleet.nodes[8].devices[0], kGemms, 0.9);
  const FleetReport report = judge(fleet.nodes);
  ASSERT_EQ(report.groups.size(), 2U);
  EXPECT_EQ(report.groups[0].devices + report.groups[1].devices, 1600U);
  EXPECT_EQ(named(report), std::set<std::string>{"node8 cuda:0"});
  const Finding& difference = finding_of(report, FindingKind::different, "");
  EXPECT_FALSE(difference.is_unfit);
  EXPECT_NEAR(*difference.effect, -0.04, 0.01);
  EXPECT_TRUE(is_in("400 devices with driver 570.1", difference.sentence)) << difference.sentence;
  ASSERT_EQ(report.differences.size(), 1U);
  EXPECT_EQ(report.differences[0].values.size(), 2U);
}

TEST(JudgeFleet, says_a_slow_host_once) {
  MadeFleet fleet = small_fleet(60);
  for (NodeDevice& device : fleet.nodes[11].devices) make_slower(device, kLaunches, 0.8);
  fleet.nodes[11].facts["governor"] = "powersave";
  const FleetReport report = judge(fleet.nodes);
  EXPECT_EQ(named(report), std::set<std::string>{"node11 "});
  const Finding& host = finding_of(report, FindingKind::slow, "node11");
  EXPECT_TRUE(is_in("governor powersave where 472 of 472 have performance", host.cause)) << host.sentence;
  EXPECT_TRUE(is_in("8 of its 8 devices", host.sentence)) << host.sentence;
  EXPECT_GT(*host.effect, 0.15);
}

TEST(JudgeFleet, says_a_slow_switch_once) {
  MadeFleet fleet = small_fleet(160);
  for (std::size_t node = 32; node < 48; ++node)
    for (NodeDevice& device : fleet.nodes[node].devices) make_slower(device, {"all_reduce"}, 0.8);
  const FleetReport report = judge(fleet.nodes);
  ASSERT_EQ(count_of(report, FindingKind::slow), 1U) << report.findings[0].sentence;
  EXPECT_EQ(report.findings[0].place, "switch leaf2");
  std::size_t unfit = 0;
  for (const NodeVerdict& verdict : report.verdicts) unfit += !verdict.is_fit;
  EXPECT_EQ(unfit, 16U);
}

// The others of the switch are a little slow: not enough for a finding of their own.
TEST(JudgeFleet, says_that_the_neighbours_are_slower_too) {
  MadeFleet fleet = small_fleet(160);
  for (std::size_t node = 32; node < 48; ++node)
    for (NodeDevice& device : fleet.nodes[node].devices) make_slower(device, {"copy_to_host"}, 0.975);
  make_slower(fleet.nodes[40].devices[2], {"copy_to_host"}, 0.85);
  make_slower(fleet.nodes[90].devices[0], {"copy_to_host"}, 0.85);
  for (std::size_t device = 1; device < 4; ++device)
    made_figure(fleet.nodes[90].devices[device], "other_processes")->value = 1;
  make_slower(fleet.nodes[120].devices[0], {"copy_to_host"}, 0.85);
  const FleetReport report = judge(fleet.nodes);
  const std::string near = finding_of(report, FindingKind::slow, "node40").cause;
  EXPECT_TRUE(is_in("its neighbours on switch leaf2 are 2", near)) << near;
  EXPECT_EQ(finding_of(report, FindingKind::slow, "node90").cause, "3 other processes on its neighbours in the node");
  EXPECT_EQ(finding_of(report, FindingKind::slow, "node120").cause, "");
}

void add_links(MadeFleet& fleet, std::uint64_t seed) {
  MadeDraws draws(seed);
  const std::size_t nodes = fleet.nodes.size();
  for (std::size_t apart = 1; apart <= 4; ++apart)
    for (std::size_t node = 0; node < nodes; ++node)
      fleet.nodes[node].links.push_back(
          {fleet.nodes[(node + apart) % nodes].name, {4e10 * std::exp(0.02 * draws.normal())}, ""});
}

TEST(JudgeFleet, tells_a_slow_link_from_a_slow_node) {
  MadeFleet fleet = small_fleet(64);
  add_links(fleet, 5);
  EXPECT_TRUE(named(judge(fleet.nodes)).empty());
  fleet.nodes[3].links[1].bytes_per_s[0] *= 0.6;  // to node5
  for (NodeReport& node : fleet.nodes)
    for (NodeLink& link : node.links)
      if (node.name == "node20" || link.to == "node20") link.bytes_per_s[0] *= 0.7;
  const FleetReport report = judge(fleet.nodes);
  ASSERT_EQ(count_of(report, FindingKind::link), 1U);
  const Finding& link = finding_of(report, FindingKind::link, "node3");
  EXPECT_EQ(link.to, "node5");
  EXPECT_FALSE(link.is_unfit);
  EXPECT_NEAR(*link.effect, -0.4, 0.05);
  EXPECT_EQ(named(report), std::set<std::string>{"node20 "});
}

TEST(JudgeFleet, reports_wrong_outputs_first_then_faults_and_what_is_missing) {
  MadeFleet fleet = small_fleet(10);
  fleet.nodes[1].devices[0].wrong = {"copy: byte 7 differs", "GEMM fp8: a value is NaN"};
  made_figure(fleet.nodes[2].devices[0], "ecc_uncorrected")->value = 2;
  made_figure(fleet.nodes[3].devices[0], "pcie_replays")->value = 5000;
  fleet.nodes[4].devices.pop_back();
  fleet.nodes[5].failure = "no driver answers";
  fleet.nodes[6].devices[1].failure = "it did not answer for 20 s";
  const FleetReport report = judge(fleet.nodes);
  EXPECT_EQ(report.findings[0].kind, FindingKind::wrong);
  EXPECT_TRUE(is_in("computes wrongly: copy: byte 7 differs, and 1 more", report.findings[0].sentence));
  EXPECT_TRUE(finding_of(report, FindingKind::fault, "node2").is_unfit);
  EXPECT_FALSE(finding_of(report, FindingKind::fault, "node3").is_unfit);
  EXPECT_TRUE(is_in("7 devices where", finding_of(report, FindingKind::missing, "node4").sentence));
  EXPECT_TRUE(is_in("no driver answers", finding_of(report, FindingKind::missing, "node5").sentence));
  EXPECT_EQ(finding_of(report, FindingKind::missing, "node6").device, "cuda:1");
  for (const NodeVerdict& verdict : report.verdicts) EXPECT_EQ(verdict.is_fit, verdict.reason.empty());
  EXPECT_EQ(std::count_if(report.verdicts.begin(), report.verdicts.end(), [](const auto& v) { return v.is_fit; }), 5);
}

// On an H200 a limit of 500 W slows nothing that a probe of seconds measures.
TEST(JudgeFleet, names_a_lowered_limit_that_slows_nothing_yet) {
  MadeFleet fleet = small_fleet(11);
  for (NodeReport& node : fleet.nodes) node.devices.resize(1);
  made_figure(fleet.nodes[4].devices[0], "power_limit")->value = 500;
  const FleetReport report = judge(fleet.nodes);
  const Finding& finding = finding_of(report, FindingKind::fault, "node4");
  EXPECT_TRUE(finding.is_unfit);
  EXPECT_TRUE(is_in("power limit 500 W where nearly all of its 10 peers have 700", finding.sentence))
      << finding.sentence;
  EXPECT_EQ(report.verdicts.size() - 1,
            static_cast<std::size_t>(std::count_if(report.verdicts.begin(), report.verdicts.end(),
                                                   [](const auto& verdict) { return verdict.is_fit; })));
  // Half of them: nobody knows which is right.
  for (std::size_t node = 0; node < 5; ++node) made_figure(fleet.nodes[node].devices[0], "power_limit")->value = 500;
  for (const Finding& each : judge(fleet.nodes).findings) EXPECT_NE(each.kind, FindingKind::fault) << each.sentence;
}

TEST(JudgeFleet, compares_one_node_with_peers_that_are_not_judged) {
  MadeFleet peers = small_fleet(40, 2), fleet = small_fleet(1, 3);
  fleet.nodes[0].name = "new";
  for (NodeDevice& device : fleet.nodes[0].devices) make_slower(device, {"memory"}, 0.9);
  make_slower(peers.nodes[4].devices[0], kGemms, 0.5);
  const FleetReport report = judge(fleet.nodes, peers.nodes);
  EXPECT_EQ(report.nodes, 1U);
  EXPECT_EQ(named(report), std::set<std::string>{"new "});
  ASSERT_EQ(report.verdicts.size(), 1U);
  EXPECT_TRUE(is_in("memory bandwidth", report.verdicts[0].reason)) << report.verdicts[0].reason;
}

// A device whose figure scatters more than its peers' proves less by it.
TEST(JudgeFleet, believes_a_noisy_figure_less) {
  MadeFleet fleet = small_fleet(40);
  Figure* const figure = made_figure(fleet.nodes[0].devices[0], "memory");
  *figure->value *= 0.88;
  EXPECT_FALSE(named(judge(fleet.nodes)).empty());
  figure->range = Interval{*figure->value * 0.8, *figure->value * 1.25};
  EXPECT_TRUE(named(judge(fleet.nodes)).empty());
}

TEST(JudgeFleet, survives_what_documents_may_hold) {
  NodeReport odd;
  odd.name = "odd\x1b[2J";
  odd.devices.resize(3);
  for (NodeDevice& device : odd.devices)
    for (const double value : {-1.0, 0.0, 1e308, 5e-324, std::nan("")}) {
      device.figures.push_back({"launch", "", value, Interval{1, 0}, {}, ""});
      device.figures.push_back({"no such figure", "", value, std::nullopt, {}, ""});
    }
  odd.links.push_back({"odd\x1b[2J", {1}, ""});
  odd.links.push_back({"nobody", {}, "none"});
  odd.devices[0].wrong = {"\x1b[31m"};
  const std::vector<NodeReport> nodes{odd, odd, NodeReport{}};
  const FleetReport report = judge(nodes);
  for (const Finding& finding : report.findings) EXPECT_EQ(finding.sentence.find('\x1b'), std::string::npos);
  EXPECT_TRUE(fleet_document(report, nodes, {}).is_object());
  EXPECT_TRUE(judge({}).verdicts.empty());
}

}  // namespace
}  // namespace weir::fleet
