// The Chrome export against the rules of the Trace Event Format and of Perfetto, which reads it: what each kind of
// event must have, slices that nest on their track, arrows with both ends, names of tracks.
// https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <random>
#include <set>
#include <string>
#include <tuple>

#include "support/random_timeline.h"
#include "trace/export/chrome_json.h"
#include "trace/export/chrome_tracks.h"
#include "trace/import/import.h"
#include "trace/timeline_builder.h"

namespace weir {
namespace {

namespace fs = std::filesystem;
using Track = std::pair<std::int64_t, std::int64_t>;

// Microseconds with three decimals are nanoseconds.
std::int64_t ns_of(const Json& us) { return std::llround(us.get<double>() * 1000); }

// What breaks the rules, in words; empty where nothing does.
std::vector<std::string> broken_rules(const Json& trace) {
  std::vector<std::string> broken;
  const auto fail = [&](const std::string& what, const Json& event) {
    if (broken.size() < 10) broken.push_back(what + ": " + event.dump());
  };
  if (!trace.is_object() || !trace["traceEvents"].is_array()) return {"no list of events"};
  struct Slice {
    std::int64_t from, to;
    const Json* event;
  };
  std::map<Track, std::vector<Slice>> slices;
  struct Ends {
    std::vector<const Json*> starts, finishes;
  };
  std::map<std::tuple<std::string, std::string, std::uint64_t>, Ends> arrows;
  std::map<Track, int> thread_names;
  std::map<std::int64_t, int> process_names;
  for (const Json& event : trace["traceEvents"]) {
    for (const char* key : {"ph", "name", "cat"})
      if (!event.contains(key) || !event[key].is_string()) fail(std::string("no text ") + key, event);
    for (const char* key : {"pid", "tid"})
      if (!event.contains(key) || !event[key].is_number_integer() || event[key].get<std::int64_t>() < 0 ||
          event[key].get<std::int64_t>() > INT32_MAX)
        fail(std::string("no number of 32 bits: ") + key, event);
    if (!event.contains("ts") || !event["ts"].is_number() || std::abs(event["ts"].get<double>()) * 1000 > 9e15)
      fail("no time that a double can hold", event);
    if (!broken.empty()) return broken;
    const Track track{event["pid"].get<std::int64_t>(), event["tid"].get<std::int64_t>()};
    const auto phase = event["ph"].get<std::string>(), name = event["name"].get<std::string>();
    if (phase == "X") {
      if (!event.contains("dur") || !event["dur"].is_number() || event["dur"].get<double>() < 0)
        fail("a slice without length", event);
      else
        slices[track].push_back({ns_of(event["ts"]), ns_of(event["ts"]) + ns_of(event["dur"]), &event});
    } else if (phase == "M") {
      const bool is_index = name.ends_with("_sort_index");
      const Json& args = event["args"];
      if (!args.is_object() || !args.contains(is_index ? "sort_index" : "name"))
        fail("metadata without content", event);
      if (name == "thread_name") ++thread_names[track];
      if (name == "process_name") ++process_names[track.first];
    } else if (phase == "s" || phase == "f") {
      if (!event.contains("id") || !event["id"].is_number_unsigned()) {
        fail("an arrow without id", event);
        continue;
      }
      if (phase == "f" && event.value("bp", "") != "e") fail("an arrow that ends at the next slice", event);
      Ends& ends = arrows[{event["cat"].get<std::string>(), name, event["id"].get<std::uint64_t>()}];
      (phase == "s" ? ends.starts : ends.finishes).push_back(&event);
    } else {
      fail("an unknown phase", event);
    }
  }
  for (auto& [track, all] : slices) {
    if (thread_names[track] != 1) fail("a track that has not one name", *all[0].event);
    if (process_names[track.first] != 1) fail("a process that has not one name", *all[0].event);
    // As Perfetto does: by time, and in the order of the file where that is equal.
    std::stable_sort(all.begin(), all.end(), [](const Slice& a, const Slice& b) { return a.from < b.from; });
    std::vector<std::int64_t> open;
    for (const Slice& slice : all) {
      while (!open.empty() && open.back() <= slice.from) open.pop_back();
      if (!open.empty() && slice.to > open.back()) fail("a slice that ends after the one around it", *slice.event);
      open.push_back(slice.to);
    }
  }
  const auto is_in_slice = [&](const Json& event) {
    const std::int64_t ns = ns_of(event["ts"]);
    const auto found = slices.find({event["pid"].get<std::int64_t>(), event["tid"].get<std::int64_t>()});
    return found != slices.end() && std::any_of(found->second.begin(), found->second.end(),
                                                [&](const Slice& slice) { return slice.from <= ns && ns <= slice.to; });
  };
  for (const auto& [id, ends] : arrows) {
    if (ends.starts.size() != 1 || ends.finishes.size() != 1) {
      fail("an arrow without two ends", ends.starts.empty() ? *ends.finishes[0] : *ends.starts[0]);
      continue;
    }
    if (ns_of((*ends.starts[0])["ts"]) > ns_of((*ends.finishes[0])["ts"]))
      fail("an arrow back in time", *ends.starts[0]);
    for (const Json* end : {ends.starts[0], ends.finishes[0]})
      if (!is_in_slice(*end)) fail("an arrow that touches no slice", *end);
  }
  return broken;
}

class TraceEventRules : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "weir_rules_XXXXXX").string();
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    folder_ = name;
  }
  void TearDown() override { fs::remove_all(folder_); }
  fs::path file() const { return folder_ / "trace.json"; }
  Json written(const Timeline& timeline, const ChromeExport& options = {}) const {
    write_chrome_json(timeline, options, file(), true);
    return read_json(file());
  }

 private:
  fs::path folder_;
};

std::string joined(const std::vector<std::string>& lines) { return fmt::format("{}", fmt::join(lines, "\n")); }

// Everything awkward: streams whose commands overlap, ranges across calls, calls that begin at once, late clocks, huge
// ids.
Timeline awkward(std::uint64_t seed) {
  test::RandomTimeline random(seed);
  Timeline t = random.timeline(40, 60);
  t.names = {"gemm", "a \"quoted\" name", "copy", "ProfilerStep#1"};
  const int processes = random.one_in(2) ? 1 : 2;
  for (int i = 0; i < processes; ++i) {
    t.processes.push_back({i, "job"});
    t.devices.push_back({static_cast<std::uint16_t>(i), i, fmt::format("GPU {}", i)});
  }
  for (std::uint16_t i = 0; i < 4; ++i)
    t.streams.push_back({static_cast<std::uint16_t>(i % processes), i == 3 ? 0x7F00'1234'5678U : i * 7U, "stream"});
  if (!random.one_in(8))
    t.queues = {{0, 0, "queue 0"},
                {1, 0, "queue 1"},
                {2, 0, "queue 2"},
                {kCopyQueues, 0, "copy engine 0"},
                {kCopyQueues + 1, 0, "copy engine 1"}};
  for (std::int64_t i = random.below(30); i > 0; --i) {
    const std::int64_t from = random.below(test::kHorizon);
    t.calls.push_back({static_cast<std::uint32_t>(random.below(4)), static_cast<std::uint32_t>(random.below(2) + 11),
                       static_cast<std::uint64_t>(i), static_cast<std::uint16_t>(random.below(processes)),
                       static_cast<CallKind>(random.below(6)), random.one_in(9) ? kNoTime : from,
                       random.one_in(9) ? kNoTime : from + random.below(40)});
  }
  std::stable_sort(t.calls.begin(), t.calls.end(), [](const HostCall& a, const HostCall& b) {
    return std::tuple(a.process, a.thread, a.started_ns) < std::tuple(b.process, b.thread, b.started_ns);
  });
  for (Span& span : t.spans) {
    if (t.calls.empty() || random.one_in(3)) continue;
    const auto call = static_cast<std::uint32_t>(random.below(static_cast<std::int64_t>(t.calls.size())));
    if (t.calls[call].process == t.devices[t.streams[span.stream].device].process) span.call = call;
  }
  for (std::int64_t i = random.below(6); i > 0; --i) {
    const std::int64_t from = random.below(test::kHorizon);
    t.ranges.push_back({3, static_cast<std::uint16_t>(random.below(processes)), from, from + random.below(100)});
  }
  const auto count = static_cast<std::int64_t>(t.spans.size());
  for (std::int64_t i = 0; i < count / 4; ++i)
    t.dependencies.push_back(
        {static_cast<std::uint32_t>(random.below(count)), static_cast<std::uint32_t>(random.below(count))});
  t.has_dependencies = true;
  return t;
}

TEST_F(TraceEventRules, hold_for_whatever_a_timeline_has) {
  for (std::uint64_t seed = 1; seed <= 400; ++seed) {
    const Timeline timeline = awkward(seed);
    ChromeExport options;
    if (timeline.processes.size() > 1) options.process.reset();
    const auto broken = broken_rules(written(timeline, options));
    ASSERT_TRUE(broken.empty()) << "seed " << seed << "\n" << joined(broken);
  }
}

TEST_F(TraceEventRules, overlapping_commands_come_back_on_their_stream) {
  Timeline t;
  t.names = {"first", "second", "third"};
  t.processes = {{0, "job"}};
  t.devices = {{0, 0, "GPU 0"}};
  t.streams = {{0, 7, "stream 7"}};
  t.spans = {test::command(SpanKind::kernel, 0, 1000, 3000), test::command(SpanKind::kernel, 0, 2000, 4000),
             test::command(SpanKind::kernel, 0, 4000, 5000)};
  for (std::uint32_t i = 0; i < 3; ++i) t.spans[i].name = i;
  const Json trace = written(t);
  EXPECT_TRUE(broken_rules(trace).empty()) << joined(broken_rules(trace));
  const Timeline read = std::move(import_traces({file()}, {}).front()).timeline;
  ASSERT_EQ(read.spans.size(), 3u);
  ASSERT_EQ(read.streams.size(), 1u);
  EXPECT_EQ(read.streams[0].id, 7u);
  EXPECT_EQ(read.spans[1].started_ns, 2000);
}

// The checker itself finds what it is for.
TEST_F(TraceEventRules, are_checked) {
  const Json whole = written(awkward(3));
  ASSERT_TRUE(broken_rules(whole).empty());
  const auto without = [&](auto&& change) {
    Json trace = whole;
    for (Json& event : trace["traceEvents"])
      if (change(event)) return !broken_rules(trace).empty();
    ADD_FAILURE() << "nothing to change";
    return false;
  };
  const auto is = [](const Json& event, const char* phase) { return event["ph"] == phase; };
  EXPECT_TRUE(without([&](Json& event) { return is(event, "X") && event.erase("dur") > 0; }));
  EXPECT_TRUE(without([&](Json& event) { return is(event, "X") && event.erase("ts") > 0; }));
  EXPECT_TRUE(without([&](Json& event) { return is(event, "f") && event.erase("bp") > 0; }));
  EXPECT_TRUE(without([&](Json& event) {
    if (!is(event, "s")) return false;
    event["id"] = 123456;
    return true;
  }));
  EXPECT_TRUE(without([&](Json& event) {
    if (!is(event, "M") || event["name"] != "thread_name") return false;
    event["name"] = "thread_sort_index";
    event["args"] = {{"sort_index", 1}};
    return true;
  }));
  Json trace = whole;
  trace["traceEvents"].push_back(Json::parse(R"({"ph":"X","cat":"c","name":"n","pid":7777,"tid":1,"ts":1,"dur":2})"));
  EXPECT_FALSE(broken_rules(trace).empty()) << "no names";
  trace = whole;
  Json slice = *std::find_if(whole["traceEvents"].begin(), whole["traceEvents"].end(), [](const Json& event) {
    return event["ph"] == "X" && event["dur"].get<double>() > 0.002;
  });
  slice["ts"] = slice["ts"].get<double>() + 0.001;
  trace["traceEvents"].push_back(slice);
  EXPECT_FALSE(broken_rules(trace).empty()) << "overlap";
}

TEST(NestingLanes, put_slices_aside_only_where_they_overlap) {
  EXPECT_EQ(nesting_lanes({{1, 1, 0, 10}, {1, 1, 2, 5}, {1, 1, 5, 10}, {1, 1, 10, 12}, {1, 1, 12, 12}}),
            (std::vector<std::uint32_t>{0, 0, 0, 0, 0}));
  EXPECT_EQ(nesting_lanes({{1, 1, 0, 10}, {1, 1, 5, 15}, {1, 1, 8, 12}, {1, 2, 5, 15}, {1, 1, 12, 20}}),
            (std::vector<std::uint32_t>{0, 1, 1, 0, 0}));
  EXPECT_EQ(nesting_lanes({{1, 1, 0, 5}, {1, 1, 0, 10}}), (std::vector<std::uint32_t>{0, 1}))
      << "the shorter one first";
  std::vector<TrackSlice> many;
  for (std::int64_t i = 0; i < 200; ++i) many.push_back({1, 1, i, 1000 + i});
  EXPECT_EQ(nesting_lanes(many).back(), kMostLanes - 1);
}

}  // namespace
}  // namespace weir
