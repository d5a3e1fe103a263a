// Processes that hang, crash, talk nonsense or end early: what they cost and what is told of them. A shell stands in
// for the child; the file that says what to run is its $0.
#include "lab/channels/channel_processes.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <set>

#include "base/error.h"
#include "lab/channels/channel_selection.h"
#include "support/programs.h"

namespace weir {
namespace {

using channel_bench::Benchmark;
using channel_bench::Conditions;
using channel_bench::Group;
using channel_bench::Measurement;

// Runs each benchmark of the file by `body`, with its id in $id.
std::vector<std::string> benchmark_script(const std::string& body) {
  return {"sh", "-c",
          R"sh(good='{"samples":[1,2,3],"latency_ns":{"p50":null,"p99":9},"sent":3,"received":3,
                      "is_checksum_right":true,"failure":null,"facts":{}}'
               good=$(echo "$good" | tr -d '\n')
               for id in $(sed -n 's|^ *"\([a-z]*/[^"]*\)",*$|\1|p' "$0"); do
                 echo "{\"begins\":\"$id\"}"
               )sh" +
              body +
              R"sh(
                 echo "{\"ends\":\"$id\",\"measurement\":$good}"
               done)sh"};
}

const std::atomic<bool> is_interrupted{false};

struct SeenEvents {
  std::map<std::string, std::vector<Measurement>> found;
  std::vector<ChannelProcess> processes;
  std::vector<std::string> order;
  bool is_complete = false;
};

SeenEvents run(const std::string& body, std::vector<std::string> ids, int processes = 2, double limit_s = 20) {
  ChannelPlan plan;
  plan.command = benchmark_script(body);
  plan.ids = std::move(ids);
  plan.processes = processes;
  plan.limit_ns = static_cast<std::int64_t>(limit_s * 1e9);
  SeenEvents seen_events;
  ChannelEvents events;
  events.measured = [&](int, const std::string& id, Measurement found) {
    seen_events.order.push_back(id);
    seen_events.found[id].push_back(std::move(found));
  };
  events.ended = [&](const ChannelProcess& process) { seen_events.processes.push_back(process); };
  seen_events.is_complete = run_processes(plan, events, is_interrupted);
  return seen_events;
}

TEST(ChannelProcesses, TellEverythingInAnOrderOfTheirOwn) {
  std::vector<std::string> ids;
  for (const char* id : {"a/a/a", "a/b/a", "b/a/a", "b/b/b", "c/a/b", "c/c/c", "d/a/a", "d/b/a"}) ids.emplace_back(id);
  const SeenEvents seen_events = run("true", ids, 3);
  EXPECT_TRUE(seen_events.is_complete);
  ASSERT_EQ(seen_events.found.size(), ids.size());
  for (const auto& [id, found] : seen_events.found) {
    ASSERT_EQ(found.size(), 3u) << id;
    EXPECT_EQ(found[0].samples, (std::vector<double>{1, 2, 3}));
    EXPECT_EQ(found[0].p99_ns, 9);
  }
  ASSERT_EQ(seen_events.processes.size(), 3u);
  const auto order = [&](std::size_t process) {
    const auto begin = seen_events.order.begin() + static_cast<std::ptrdiff_t>(process * ids.size());
    return std::vector<std::string>(begin, begin + static_cast<std::ptrdiff_t>(ids.size()));
  };
  EXPECT_NE(order(0), order(1));
  EXPECT_NE(order(1), order(2));
  EXPECT_EQ(seen_events.processes[0].ended, "done");
  EXPECT_EQ(seen_events.processes[0].benchmarks, ids.size());
  EXPECT_EQ(seen_events.processes[1].seed, seed_of_process(1, 1));
}

TEST(ChannelProcesses, OneThatHangsCostsItselfOnly) {
  const SeenEvents seen_events = run("[ $id != a/hangs/x ] || sleep 600", {"a/a/a", "a/hangs/x", "b/b/b"}, 2, 2);
  EXPECT_TRUE(seen_events.is_complete);
  EXPECT_EQ(seen_events.found.at("a/a/a").size(), 2u);
  EXPECT_EQ(seen_events.found.at("b/b/b").size(), 2u);
  ASSERT_EQ(seen_events.found.at("a/hangs/x").size(), 1u) << "once is enough";
  EXPECT_EQ(seen_events.found.at("a/hangs/x")[0].failure, "did not end within 2.00 s");
  EXPECT_TRUE(std::any_of(seen_events.processes.begin(), seen_events.processes.end(),
                          [](const ChannelProcess& process) { return process.ended == "timed_out"; }));
  for (const auto& found : seen_events.found.at("a/a/a")) EXPECT_TRUE(found.failure.empty()) << found.failure;
}

TEST(ChannelProcesses, OneThatCrashesIsNamedWithItsSignal) {
  const SeenEvents seen_events = run("[ $id != a/crashes/x ] || kill -SEGV $$", {"a/a/a", "a/crashes/x", "b/b/b"}, 2);
  EXPECT_TRUE(seen_events.is_complete);
  EXPECT_EQ(seen_events.found.at("a/a/a").size(), 2u);
  ASSERT_EQ(seen_events.found.at("a/crashes/x").size(), 1u);
  EXPECT_EQ(seen_events.found.at("a/crashes/x")[0].failure, "crashed: signal 11 (Segmentation fault)");
}

TEST(ChannelProcesses, OneThatExitsIsQuoted) {
  const SeenEvents seen_events =
      run("[ $id != a/exits/x ] || { echo 'weir: no such thing' >&2; exit 1; }", {"a/a/a", "a/exits/x"}, 1);
  EXPECT_EQ(seen_events.found.at("a/exits/x")[0].failure, "its process ended with status 1: no such thing");
  EXPECT_EQ(seen_events.found.at("a/a/a").size(), 1u);
}

TEST(ChannelProcesses, NonsenseIsNotHeard) {
  const SeenEvents seen_events =
      run("echo hello; echo '[1]'; echo '{\"ends\":7}'; echo '{\"ends\":\"z/z/z\"}'; echo '{'", {"a/a/a"}, 1);
  EXPECT_TRUE(seen_events.is_complete);
  EXPECT_EQ(seen_events.found.at("a/a/a")[0].samples.size(), 3u);
  EXPECT_EQ(seen_events.found.size(), 1u);
  const SeenEvents broken = run("good='{\"samples\":[0]}'", {"a/a/a"}, 1);
  EXPECT_NE(broken.found.at("a/a/a")[0].failure.find("not a positive number"), std::string::npos);
  EXPECT_TRUE(broken.found.at("a/a/a")[0].samples.empty());
}

TEST(ChannelProcesses, OneThatCannotBeginFailsTheRun) {
  ChannelPlan plan;
  plan.command = {"sh", "-c", "echo 'weir: no memory' >&2; exit 1"};
  plan.ids = {"a/a/a"};
  plan.limit_ns = 20'000'000'000;
  ChannelEvents events;
  events.measured = [](int, const std::string&, Measurement) {};
  try {
    run_processes(plan, events, is_interrupted);
    ADD_FAILURE() << "went on";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("no memory"), std::string::npos) << error.what();
  }
}

TEST(ChannelProcesses, OrdersDependOnTheSeedAlone) {
  const std::vector<std::string> ids = {"a/a/a", "a/b/a", "b/a/a", "b/b/b", "c/a/b", "c/c/c", "d/a/a", "d/b/a"};
  EXPECT_EQ(run("true", ids, 2).order, run("true", ids, 2).order);
}

Benchmark benchmark(const char* group, const char* name, const char* contestant, bool is_ours) {
  Benchmark made;
  made.group = group;
  made.name = name;
  made.contestant = contestant;
  made.is_ours = is_ours;
  return made;
}

const std::vector<Group> kGroups = {
    {"ping_pong", "floor", "",
     [](const Conditions&) {
       return std::vector{benchmark("ping_pong", "flag", "floor", false),
                          benchmark("ping_pong", "one_line", "floor", false)};
     }},
    {"round_trip", "there and back", "Round-Trip Latency",
     [](const Conditions&) {
       return std::vector{
           benchmark("round_trip", "one_line", "spsc", true), benchmark("round_trip", "one_line", "mpmc", true),
           benchmark("round_trip", "one_line", "mutex_deque", true),
           benchmark("round_trip", "one_line", "boost_spsc", false), benchmark("round_trip", "other", "mpmc", true)};
     }},
};

std::vector<std::string> chosen(const ChannelWords& words) {
  std::vector<std::string> ids;
  for (const Benchmark& one : choose_benchmarks(kGroups, words, {})) ids.push_back(one.id());
  return ids;
}

TEST(ChannelSelection, FloorsAndCompetitorsStayBesideAChannel) {
  EXPECT_EQ(chosen({}).size(), 7u);
  EXPECT_EQ(chosen({{"ping_pong"}, {}, false}).size(), 2u);
  EXPECT_EQ(chosen({{"round_trip"}, {}, false}).front(), "ping_pong/one_line/floor");
  EXPECT_EQ(chosen({{"round_trip"}, {"spsc"}, false}),
            (std::vector<std::string>{"ping_pong/one_line/floor", "round_trip/one_line/spsc",
                                      "round_trip/one_line/mutex_deque", "round_trip/one_line/boost_spsc"}));
  EXPECT_EQ(chosen({{"round_trip"}, {"spsc"}, true}), std::vector<std::string>{"round_trip/one_line/spsc"});
  EXPECT_THROW(chosen({{"round_trp"}, {}, false}), Error);
  EXPECT_THROW(chosen({{"round_trip/on"}, {}, false}), Error) << "not a whole name";
  EXPECT_THROW(chosen({{}, {}, false, {"round_trip/on"}}), Error);
  EXPECT_THROW(chosen({{}, {"spcs"}, false}), Error);
}

TEST(ChannelSelection, NamesSingleBenchmarksAndLeavesOthersOut) {
  EXPECT_EQ(chosen({{"round_trip/other"}, {}, false}), std::vector<std::string>{"round_trip/other/mpmc"});
  EXPECT_EQ(chosen({{"round_trip/one_line/spsc"}, {}, false}),
            (std::vector<std::string>{"ping_pong/one_line/floor", "round_trip/one_line/spsc",
                                      "round_trip/one_line/mutex_deque", "round_trip/one_line/boost_spsc"}));
  EXPECT_EQ(chosen({{"round_trip/one_line/spsc", "ping_pong/flag"}, {}, true}),
            (std::vector<std::string>{"ping_pong/flag/floor", "round_trip/one_line/spsc"}));
  EXPECT_EQ(chosen({{}, {}, false, {"round_trip"}}),
            (std::vector<std::string>{"ping_pong/flag/floor", "ping_pong/one_line/floor"}));
  EXPECT_EQ(chosen({{"round_trip"}, {}, false, {"ping_pong", "round_trip/one_line/boost_spsc", "round_trip/other"}}),
            (std::vector<std::string>{"round_trip/one_line/spsc", "round_trip/one_line/mpmc",
                                      "round_trip/one_line/mutex_deque"}));
  EXPECT_THROW(chosen({{"round_trip"}, {}, false, {"round_trip"}}), Error) << "nothing is left";
}

TEST(ChannelSelection, CoresAreOrderedByTheirPlace) {
  // cpu 0 and 1 are threads of one core, 2 and 3 of another, 4 is on another package.
  const testing::Folder root;
  const auto place = [&](int cpu, int package, int core) {
    const std::filesystem::path folder =
        root.path() / ("sys/devices/system/cpu/cpu" + std::to_string(cpu)) / "topology";
    std::filesystem::create_directories(folder);
    std::ofstream(folder / "physical_package_id") << package << "\n";
    std::ofstream(folder / "core_id") << core << "\n";
  };
  place(0, 0, 0);
  place(1, 0, 0);
  place(2, 0, 1);
  place(3, 0, 1);
  place(4, 1, 0);
  const std::vector<int> usable = {0, 1, 2, 3, 4};
  EXPECT_EQ(cores_named("auto", usable, root.path()), (std::vector<int>{0, 2, 4, 1, 3}));
  EXPECT_EQ(cores_named("auto", {7, 9}, root.path()), (std::vector<int>{7, 9})) << "without a topology";
  EXPECT_EQ(cores_named("none", usable, root.path()), std::vector<int>{});
  EXPECT_EQ(cores_named("3,1", usable, root.path()), (std::vector<int>{3, 1}));
  for (const char* bad : {"5", "x", "1,1", "0-3", "-1", ""})
    EXPECT_THROW(cores_named(bad, usable, root.path()), Error) << bad;
}

}  // namespace
}  // namespace weir
