// The pictures of a report against the documents that they are of.
#include <gtest/gtest.h>

#include "report/page/picture_documents.h"
#include "report/text/documents.h"

namespace weir {
namespace {

using namespace weir::testing;

bool has(const Json& strings, const std::string& part) {
  for (const Json& each : strings)
    if (each.get<std::string>().find(part) != std::string::npos) return true;
  return false;
}

const Json* finding_of(const Json& report, const std::string& part) {
  for (const Json& each : report["verdict"]["findings"])
    if (each["text"].get<std::string>().find(part) != std::string::npos) return &each;
  return nullptr;
}

double parts_of(const Json& bar) {
  double sum = 0;
  for (const char* part : {"compute_only_ns", "hidden_ns", "exposed_ns", "idle_ns", "other_ns"}) {
    EXPECT_GE(bar[part].get<double>(), 0) << part;
    sum += bar[part].get<double>();
  }
  return sum;
}

TEST(AnalysisPicture, has_the_hops_of_the_document) {
  const Json document = analysis_document();
  const Json report = page_of(document);
  std::size_t at = 0;
  for (const Json& each : document["devices"][0]["waterfall"]["classes"]) {
    ASSERT_LT(at, report["waterfalls"].size());
    const Json& item = report["waterfalls"][at++];
    EXPECT_EQ(item["kind"], each["kind"]);
    EXPECT_EQ(item["commands"], each["commands"]);
    EXPECT_EQ(item["way_ns"], each["way_ns"]);
    ASSERT_EQ(item["hops"].size(), each["hops"].size());
    for (std::size_t i = 0; i < item["hops"].size(); ++i)
      for (const char* key : {"from", "to", "count", "duration_ns", "share"})
        EXPECT_EQ(item["hops"][i][key], each["hops"][i][key]) << key;
    EXPECT_EQ(item["missing"].size(), each["missing"].size());
  }
  EXPECT_EQ(at, report["waterfalls"].size());
  EXPECT_EQ(at, 3U) << "kernels, collectives and copies of one device";
}

TEST(AnalysisPicture, shows_the_rank_that_idled_most) {
  Json document = analysis_document();
  document["devices"][1]["times"]["idle_ns"] = 1e9;
  const Json report = page_of(document);
  EXPECT_EQ(report["waterfalls"].size(), 3U);
  EXPECT_NE(report["waterfalls"][0]["title"].get<std::string>().find("rank 1, GPU 1"), std::string::npos);
  EXPECT_NE(finding_of(report, "rank 1, GPU 1, which idled most of 2 devices"), nullptr);
  // Devices of one process are all shown.
  for (Json& device : document["devices"]) device["rank"] = 0;
  EXPECT_EQ(page_of(document)["waterfalls"].size(), 6U);
}

TEST(AnalysisPicture, has_the_queues_of_each_stream) {
  const Json report = page_of(analysis_document());
  ASSERT_EQ(report["queue_maps"].size(), 1U);
  const Json& map = report["queue_maps"][0];
  EXPECT_EQ(map["basis"], "timeline");
  EXPECT_EQ(map["queues"], Json::array({"queue 0", "queue 1"}));
  ASSERT_EQ(map["cells"].size(), 2U);
  std::uint64_t commands = 0;
  for (const Json& cell : map["cells"]) {
    EXPECT_EQ(cell["stream"], cell["queue"]) << "stream 7 on queue 0, stream 8 on queue 1";
    commands += cell["commands"].get<std::uint64_t>();
  }
  EXPECT_EQ(commands, 6U);
}

TEST(AnalysisPicture, divides_each_devices_time_into_parts_that_add_up) {
  const Json report = page_of(analysis_document());
  ASSERT_EQ(report["overlaps"].size(), 1U);
  const Json& item = report["overlaps"][0];
  ASSERT_EQ(item["bars"].size(), 2U);
  const Json& bar = item["bars"][0];
  // Two steps of 75 us, 100 us apart: [0, 40) compute, [30, 60) communication, [70, 75) a copy.
  EXPECT_DOUBLE_EQ(bar["span_ns"].get<double>(), 175'000.0 / 2);
  EXPECT_DOUBLE_EQ(bar["compute_only_ns"].get<double>(), 30'000);
  EXPECT_DOUBLE_EQ(bar["hidden_ns"].get<double>(), 10'000);
  EXPECT_DOUBLE_EQ(bar["exposed_ns"].get<double>(), 20'000);
  EXPECT_DOUBLE_EQ(bar["other_ns"].get<double>(), 5'000);
  for (const Json& each : item["bars"]) EXPECT_NEAR(parts_of(each), each["span_ns"].get<double>(), 1e-6);
  EXPECT_NEAR(item["efficiency"].get<double>(), 1.0 / 3, 1e-12);
  double share = 0, exposed = 0;
  for (const Json& cause : item["causes"]) {
    share += cause["share"].get<double>();
    exposed += cause["ns_per_step"].get<double>();
  }
  EXPECT_NEAR(share, 1, 1e-9);
  EXPECT_NEAR(exposed, 20'000, 1e-6);
}

TEST(AnalysisPicture, finds_the_largest_loss_and_says_what_to_do) {
  const Json report = page_of(analysis_document());
  const Json* found = finding_of(report, "ommunication ran");
  ASSERT_NE(found, nullptr) << report["verdict"].dump(1);
  EXPECT_EQ((*found)["tone"], "warning");
  EXPECT_EQ((*found)["anchor"], report["overlaps"][0]["id"]);
  EXPECT_TRUE((*found)["advice"].is_string());
  EXPECT_EQ(report["texts"].size(), 1U) << "the rest is told";
}

TEST(AnalysisPicture, begins_with_where_the_time_went) {
  Timeline timeline = traced_ranks();
  const Json document = analyze_timeline(timeline, {}, {});
  const Json report = page_of(document);
  ASSERT_EQ(report["usages"].size(), 1U);
  const Json& item = report["usages"][0];
  ASSERT_EQ(item["bars"].size(), document["devices"].size());
  double total = 0, shares = 0;
  for (const Json& device : document["devices"]) total += device["top"]["total_ns"].get<double>();
  for (std::size_t i = 0; i < item["bars"].size(); ++i) {
    const Json& bar = item["bars"][i];
    EXPECT_EQ(bar["span_ns"], document["devices"][i]["times"]["span_ns"]);  // the whole span, not one step
    EXPECT_EQ(bar["idle_ns"], document["devices"][i]["times"]["idle_ns"]);
  }
  ASSERT_FALSE(item["top"].empty());
  for (std::size_t i = 0; i < item["top"].size(); ++i) {
    if (i > 0) {
      EXPECT_LE(item["top"][i]["total_ns"], item["top"][i - 1]["total_ns"]);
    }
    EXPECT_NEAR(item["top"][i]["share"].get<double>(), item["top"][i]["total_ns"].get<double>() / total, 1e-9);
    shares += item["top"][i]["share"].get<double>();
  }
  EXPECT_NEAR(shares, 1, 1e-9);
  double work = 0;
  for (const Json& each : item["work"]) work += each["share"].get<double>();
  EXPECT_NEAR(work, 1, 1e-9);
}

// The ranks' gemm is a product in a layer, of which there are two; the copy is a module's own.
Timeline traced_model() {
  Timeline timeline = traced_ranks();
  const auto name = [&](const char* text) {
    timeline.names.push_back(text);
    return static_cast<std::uint32_t>(timeline.names.size() - 1);
  };
  timeline.has_operations = true;
  timeline.modules = {{name("Net_0"), kNoModule}, {name("Layer_0"), 0}, {name("Layer_1"), 0}};
  const std::uint32_t product = name("aten::mm"), shapes = name("f32 [8, 4], f32 [4, 2]");
  timeline.operations = {{product, shapes, 1, Phase::forward},
                         {product, shapes, 2, Phase::backward},
                         {kNoName, kNoName, 0, Phase::unknown}};
  for (const Span& span : timeline.spans) {
    if (span.kind == SpanKind::collective) continue;  // outside of operators
    const bool is_second = span.started_ns > 1'090'000;
    timeline.calls[span.call].operation = span.kind == SpanKind::copy ? 2 : is_second ? 1 : 0;
  }
  return timeline;
}

TEST(AnalysisPicture, speaks_the_words_of_the_model) {
  Timeline timeline = traced_model();
  Json document = analyze_timeline(timeline, {}, {});
  const Json whole = page_of(document);
  ASSERT_EQ(whole["models"].size(), 2U) << "a card for each rank";
  EXPECT_NE(whole["models"][0]["title"], whole["models"][1]["title"]);
  const Json& item = whole["models"][0];
  EXPECT_EQ(item["total_ns"], 150'000) << "two steps of 40 us, 30 us and 5 us";
  const auto sum_of = [&](const char* list, const char* key) {
    double sum = 0;
    for (const Json& each : item[list]) sum += each[key].get<double>();
    return sum;
  };
  EXPECT_EQ(sum_of("phases", "total_ns"), 150'000);
  EXPECT_EQ(sum_of("steps", "total_ns"), 150'000);

  ASSERT_EQ(item["modules"].size(), 2U);
  EXPECT_EQ(item["modules"][0]["name"], "Net_0");
  EXPECT_EQ(item["modules"][0]["own_ns"], 10'000);
  EXPECT_EQ(item["modules"][1]["name"], "Layer x2");
  EXPECT_EQ(item["modules"][1]["parent"], 0);
  EXPECT_EQ(item["modules"][1]["total_ns"], 80'000);
  EXPECT_EQ(item["modules"][1]["backward_ns"], 40'000);
  EXPECT_EQ(item["modules_left_out_ns"], 0);
  EXPECT_EQ(sum_of("modules", "own_ns") + item["without_module"]["total_ns"].get<double>(), 150'000);

  ASSERT_EQ(item["operators"].size(), 2U);
  const Json& product = item["operators"][0];
  EXPECT_EQ(product["name"], "aten::mm");
  EXPECT_EQ(product["shapes"], "f32 [8, 4], f32 [4, 2]");
  EXPECT_EQ(product["total_ns"], 80'000);
  EXPECT_TRUE(item["operators"][1]["name"].is_null());
  EXPECT_EQ(item["operators"][1]["call"], "cudaLaunchKernel");
  EXPECT_EQ(item["outside_ns"], 60'000);
  EXPECT_EQ(sum_of("operators", "total_ns") + item["operators_left_out_ns"].get<double>() + 60'000, 150'000);
  // Whatever is not known has its reason.
  for (const Json& each : item["operators"])
    if (each["share_of_peak"].is_null()) {
      EXPECT_TRUE(each["reason"].is_string() || item["efficiency_reason"].is_string()) << each.dump();
    }
}

// Modules that are too small for a row are counted, with their time.
TEST(AnalysisPicture, adds_up_with_the_modules_that_it_leaves_out) {
  Timeline timeline = traced_model();
  Json document = analyze_timeline(timeline, {}, {});
  for (Json& device : document["devices"]) {
    device["model"]["modules"] =
        Json::parse(R"json({"count": 4, "rest_ns": 7, "without": {"commands": 1, "total_ns": 50000},
      "list": [{"name": "Net_0", "parent": null, "commands": 3, "own_ns": 99000, "total_ns": 99993, "backward_ns": 0},
               {"name": "Tiny_0", "parent": 0, "commands": 2, "own_ns": 400, "total_ns": 500, "backward_ns": 0},
               {"name": "Tinier_0", "parent": 1, "commands": 1, "own_ns": 100, "total_ns": 100, "backward_ns": 0},
               {"name": "Small_0", "parent": 0, "commands": 1, "own_ns": 493, "total_ns": 493, "backward_ns": 0}]})json");
  }
  const Json report = page_of(document);
  const Json& item = report["models"][0];
  ASSERT_EQ(item["modules"].size(), 1U);
  EXPECT_EQ(item["modules_left_out"], 2);
  EXPECT_EQ(item["modules_left_out_ns"], 1000);
  EXPECT_EQ(item["modules"][0]["own_ns"].get<double>() + 1000 + 50'000, 150'000);
}

// Efficiency is beside the operator that it is of, and a reason where there is none.
TEST(AnalysisPicture, puts_efficiency_beside_its_operator) {
  Timeline timeline = traced_model();
  Json document = analyze_timeline(timeline, {}, {});
  for (Json& device : document["devices"])
    device["efficiency"] = Json::parse(R"json({
      "count": 2, "peaks": {"model": "Some GPU", "source": "its data sheet"}, "peaks_reason": null, "saved_ns": 60000,
      "top": [
        {"name": "aten::mm", "shapes": "f32 [8, 4]", "flop_per_s": 1, "bytes_per_s": 1, "bound": "memory",
         "share": 0.1, "saved_ns": 1, "reason": null},
        {"name": "aten::mm", "shapes": "f32 [8, 4], f32 [4, 2]", "flop_per_s": 2e12, "bytes_per_s": 3e11,
         "bound": "compute", "share": 0.25, "saved_ns": 60000, "reason": null}]})json");
  const Json found = page_of(document);
  const Json& item = found["models"][0];
  EXPECT_EQ(item["peaks"], "Some GPU (its data sheet)");
  EXPECT_EQ(item["saved_ns"], 60'000);
  EXPECT_TRUE(item["efficiency_reason"].is_null());
  const Json& product = item["operators"][0];
  EXPECT_EQ(product["flop_per_s"], 2e12);
  EXPECT_EQ(product["bytes_per_s"], 3e11);
  EXPECT_EQ(product["share_of_peak"], 0.25);
  EXPECT_EQ(product["bound"], "compute");
  EXPECT_EQ(product["saved_ns"], 60'000);
  EXPECT_TRUE(product["reason"].is_null());
  EXPECT_TRUE(item["operators"][1]["flop_per_s"].is_null());
  EXPECT_EQ(item["operators"][1]["reason"],
            "the document has no figures of this operator: it communicates, or others could save more");

  for (Json& device : document["devices"]) {
    device["efficiency"] = nullptr;
    device["unavailable"]["efficiency"] = "its model is not in the table";
  }
  const Json without = page_of(document);
  EXPECT_EQ(without["models"][0]["efficiency_reason"], "its model is not in the table");
  EXPECT_EQ(without["models"][0]["operators"][0]["reason"], "its model is not in the table");
  EXPECT_TRUE(page_of(analysis_document())["models"][0]["operators"].empty()) << "nothing was read of operators";
}

TEST(AnalysisPicture, has_phases_by_rank_and_says_why_one_is_slow) {
  Json document = analysis_document();
  document["rank_phases"] = Json::parse(R"json({"are_steps": true,
    "ranks": [{"rank": 0, "device": "GPU 0", "forward_ns": 100, "backward_ns": 200},
              {"rank": 1, "device": "GPU 0", "forward_ns": 102, "backward_ns": 300},
              {"rank": 2, "device": "GPU 0", "backward_ns": -5}],
    "phases": [{"phase": "forward", "slowest": {"rank": 1, "device": "GPU 0"}, "reason": "none"},
               {"phase": "backward", "slowest": {"rank": 1, "device": "GPU 0"},
                "against": {"rank": 0, "device": "GPU 0"}, "slowest_ns": 300, "against_ns": 200,
                "reason": "longer_kernels", "longer_ns": 90, "most": null},
               {"phase": "data_loading", "slowest": 7}]})json");
  const Json report = page_of(document);
  const Json& found = report["usages"][0]["rank_phases"];
  EXPECT_EQ(found["are_steps"], true);
  ASSERT_EQ(found["phases"].size(), 3U);
  EXPECT_TRUE(found["phases"][0]["slowest"].is_null()) << "ranks are alike";
  EXPECT_TRUE(found["phases"][0]["words"].is_null());
  EXPECT_EQ(found["phases"][1]["slowest"], 1);
  EXPECT_EQ(found["phases"][1]["words"],
            "Backward: rank 1 takes 100 ns more than rank 0, the median (50 %); commands take 90.0 ns longer.");
  EXPECT_EQ(found["phases"][2]["phase"], "data loading");
  ASSERT_EQ(found["ranks"].size(), 3U);
  EXPECT_EQ(found["ranks"][1]["label"], "rank 1");
  EXPECT_EQ(found["ranks"][1]["phases_ns"], Json::parse("[102, 300, null]"));
  EXPECT_EQ(found["ranks"][2]["phases_ns"], Json::parse("[null, null, null]"));

  document["rank_phases"] = nullptr;
  EXPECT_TRUE(page_of(document)["usages"][0]["rank_phases"].is_null());
}

TEST(AnalysisPicture, has_the_peaks_of_memory) {
  Json document = analysis_document();
  for (Json& device : document["devices"])
    device["memory"] = Json::parse(R"json({"allocations": 4, "frees": 1, "allocated_bytes": 8192,
      "allocated": {"bytes": 4096, "at_ns": 50, "operator": "aten::mm", "module": "Net_0/Linear_1", "phase": "forward"},
      "reserved": {"bytes": 1e300},
      "steps": {"count": 2, "grows": true, "first_bytes": 1024, "last_bytes": 2048,
                "list": [{"name": "step 1", "peak_bytes": 4096, "end_bytes": 1024}, {"name": null}]}})json");
  const Json report = page_of(document);
  const Json& found = report["models"][0]["memory"];
  EXPECT_EQ(found["allocated"]["bytes"], 4096);
  EXPECT_EQ(found["allocated"]["words"], "aten::mm, in Linear_1, forward");
  EXPECT_TRUE(found["reserved"]["bytes"].is_null());
  EXPECT_TRUE(found["reserved"]["words"].is_null());
  ASSERT_EQ(found["steps"].size(), 2U);
  EXPECT_EQ(found["steps"][0]["end_bytes"], 1024);
  EXPECT_TRUE(found["steps"][1]["peak_bytes"].is_null());
  EXPECT_NE(found["growth"].get<std::string>().find("from 1.00 KiB after the first to 2.00 KiB"), std::string::npos);
}

// Sizes of a kind stand below each other, whichever took longest.
TEST(AnalysisPicture, has_collectives_by_kind_and_size) {
  Json document = analysis_document();
  for (Json& device : document["devices"])
    device["collectives"] = Json::parse(R"json({"count": 7, "total_ns": 900, "classes": [
      {"kind": "all_reduce", "group": "dp", "ranks": 4, "from_bytes": 2048, "count": 3, "total_ns": 600,
       "duration_ns": {"p50": 200, "p99": 300}, "bytes": 6144, "algorithm_bytes_per_s": 1e10, "bus_bytes_per_s": 1.5e10,
       "best_bus_bytes_per_s": 2e10},
      {"kind": "all_gather", "ranks": null, "from_bytes": null, "count": 1, "total_ns": 200},
      {"kind": "all_reduce", "ranks": 4, "from_bytes": 1024, "count": "three", "total_ns": -1, "bus_bytes_per_s": {}},
      7]})json");
  document["devices"][0]["unavailable"]["collectives.bandwidth"] = "one has no size";
  document["devices"][1]["unavailable"]["collectives.bandwidth"] = "one has no size";
  const Json report = page_of(document);
  const Json& item = report["models"][0];
  const Json& found = item["collectives"];
  ASSERT_EQ(found.size(), 4U);
  EXPECT_EQ(found[0]["collective"], "all_gather");
  EXPECT_TRUE(found[0]["from_bytes"].is_null());
  EXPECT_TRUE(found[0]["bus_bytes_per_s"].is_null());
  EXPECT_EQ(found[1]["from_bytes"], 1024);
  EXPECT_EQ(found[1]["total_ns"], 0);
  EXPECT_TRUE(found[1]["bus_bytes_per_s"].is_null());
  EXPECT_EQ(found[2]["from_bytes"], 2048);
  EXPECT_EQ(found[2]["ranks"], 4);
  EXPECT_EQ(found[2]["duration_ns"]["p50"], 200);
  EXPECT_EQ(found[2]["algorithm_bytes_per_s"], 1e10);
  EXPECT_EQ(found[2]["bus_bytes_per_s"], 1.5e10);
  EXPECT_EQ(found[2]["best_bus_bytes_per_s"], 2e10);
  EXPECT_EQ(found[3]["collective"], "unknown");
  EXPECT_EQ(item["bandwidth_reason"], "one has no size");
}

// With one file the finding is the headline; with several, each finding names its file.
TEST(AnalysisPicture, names_the_file_only_where_there_are_several) {
  Timeline timeline = traced_ranks();
  const Json document = analyze_timeline(timeline, {{"one.json", "kineto", 1000}}, {});
  const Json one = page_of(document)["verdict"];
  EXPECT_EQ(one["headline"].get<std::string>().find("one.json"), std::string::npos) << one.dump(1);
  EXPECT_TRUE(
      one["findings"][0]["text"].get<std::string>().starts_with(one["headline"].get<std::string>().substr(0, 20)))
      << one.dump(1);
  page::Page page("two", "", {});
  for (const char* path : {"a", "b"})
    page::section_for("weir.analysis/2")(page, page.add_source(path, "weir.analysis/2", document), document);
  EXPECT_TRUE(std::move(page).document()["verdict"]["headline"].get<std::string>().starts_with("one.json: "));
}

TEST(AnalysisPicture, says_that_nothing_is_there_to_analyse) {
  Timeline none;
  const Json report = page_of(analyze_timeline(none, {}, {}));
  EXPECT_NE(finding_of(report, "has no GPU commands"), nullptr);
  EXPECT_TRUE(report["waterfalls"].empty());
}

// The host begins to wait long after everything has ended.
Timeline seen_later() {
  Timeline timeline = traced_ranks();
  for (Span& span : timeline.spans) span.seen_ns = 400'000'000;
  for (std::uint16_t rank = 0; rank < 2; ++rank)
    timeline.calls.push_back({3, 100u + rank, 0, rank, CallKind::synchronize, 300'000'000, 400'000'000});
  return timeline;
}

// What the host looked at later has no bar and no share; its figures are in a note.
TEST(AnalysisPicture, leaves_out_a_hop_that_nobody_waited_for) {
  Timeline timeline = seen_later();
  Json document = analyze_timeline(timeline, {}, {});
  for (Json& device : document["devices"])
    for (Json& way : device["waterfall"]["classes"]) way["hops"].back()["negative"] = 2;
  const Json report = page_of(document);
  ASSERT_FALSE(report["waterfalls"].empty());
  for (const Json& item : report["waterfalls"]) {
    double shares = 0;
    for (const Json& hop : item["hops"]) {
      EXPECT_NE(hop["to"], "seen");
      shares += hop["share"].get<double>();
    }
    EXPECT_NEAR(shares, 1, 1e-9);
    EXPECT_LT(item["way_ns"].get<double>(), 100'000);
    EXPECT_TRUE(has(item["notes"], "`seen` is not on the way: the host did not wait")) << item["notes"].dump();
    EXPECT_TRUE(has(item["notes"], "-> seen: 2 commands are left out because the clocks disagree"));
  }
}

// weir.analysis/2 as Weir 0.1 wrote it.
TEST(AnalysisPicture, reads_the_names_of_version_0_1) {
  Timeline timeline = seen_later();
  const Json today = analyze_timeline(timeline, {}, {});
  Json old = today;
  for (Json& device : old["devices"]) {
    std::vector<Json*> all = {&device["times"]};
    for (Json& iteration : device["iterations"]["list"]) all.push_back(&iteration["times"]);
    for (Json* const times : all) {
      const double communication = (*times)["communication_ns"].get<double>();
      (*times)["alone_communication_ns"] = (*times)["exposed_communication_ns"];
      (*times)["hidden_communication_ns"] = (*times)["communication_beside_compute_ns"];
      (*times)["exposed_communication_ns"] = communication - (*times)["hidden_communication_ns"].get<double>();
      (*times)["hidden_copy_ns"] = (*times)["copy_beside_compute_ns"];
      times->erase("communication_beside_compute_ns");
      times->erase("copy_beside_compute_ns");
    }
    for (Json& way : device["waterfall"]["classes"]) {
      way.erase("waited_for");
      double sum = 0;
      for (const Json& hop : way["hops"]) sum += hop["duration_ns"]["mean"].get<double>();
      for (Json& hop : way["hops"]) hop["share"] = hop["duration_ns"]["mean"].get<double>() / sum;
      way["way_ns"] = sum;
    }
  }
  const Json before = page_of(today), after = page_of(old);
  const std::string old_words = why_seen_is_left_out(Json::object());
  const std::string words = why_seen_is_left_out(Json{{"waited_for", 0}});
  EXPECT_TRUE(has(after["waterfalls"][0]["notes"], "this document does not say whether the host waited"));
  for (const char* list : {"overlaps", "waterfalls", "verdict", "texts"}) {
    std::string text = after[list].dump();
    for (std::size_t place = text.find(old_words); place != std::string::npos; place = text.find(old_words))
      text.replace(place, old_words.size(), words);
    EXPECT_EQ(Json::parse(text), before[list]) << list;
  }
}

TEST(AnalysisPicture, warns_of_an_idle_device) {
  Timeline timeline = traced_ranks();
  for (const double busy : {0.02, 0.499, 0.85}) {
    for (Span& span : timeline.spans) {
      span.kind = SpanKind::kernel;
      span.started_ns = 1'000'000 * (&span - timeline.spans.data());
      span.ended_ns = span.started_ns + static_cast<std::int64_t>(busy * 1e6);
      span.submitted_ns = span.accepted_ns = -1'000'000;
    }
    const Json verdict = page_of(analyze_timeline(timeline, {}, {}))["verdict"];
    EXPECT_EQ(verdict["tone"], "warning") << verdict.dump();
  }
}

TEST(ProfilePicture, has_the_hops_and_why_one_is_missing) {
  const Json document = profile_document();
  const Json report = page_of(document);
  ASSERT_EQ(report["waterfalls"].size(), 1U);
  const Json& item = report["waterfalls"][0];
  EXPECT_EQ(item["hops"][1]["duration_ns"]["p99"], 23);
  EXPECT_EQ(item["missing"], Json::array({{{"hop", "enqueued"}, {"reason", "no channel"}}}));
  EXPECT_TRUE(has(item["notes"], "1 commands are left out because the clocks disagree, by up to 20.0 ns"));
}

TEST(OverlapPicture, has_a_bar_for_each_rank_and_its_parts_add_up) {
  const Json report = page_of(overlap_ranks_document());
  ASSERT_EQ(report["overlaps"].size(), 1U);
  const Json& item = report["overlaps"][0];
  EXPECT_EQ(item["efficiency"], 0.6);
  EXPECT_EQ(item["step_ns"]["p50"], 1000);
  EXPECT_EQ(item["serial_step_ns"]["p50"], 1200);
  ASSERT_EQ(item["bars"].size(), 2U);
  const Json& bar = item["bars"][0];
  EXPECT_EQ(bar["label"], "rank 0");
  EXPECT_DOUBLE_EQ(bar["compute_only_ns"].get<double>(), 520);
  EXPECT_DOUBLE_EQ(bar["hidden_ns"].get<double>(), 180);
  EXPECT_DOUBLE_EQ(bar["exposed_ns"].get<double>(), 120);
  EXPECT_DOUBLE_EQ(bar["idle_ns"].get<double>(), 100);
  EXPECT_DOUBLE_EQ(bar["other_ns"].get<double>(), 80);
  for (const Json& each : item["bars"]) EXPECT_NEAR(parts_of(each), each["span_ns"].get<double>(), 1e-9);
  EXPECT_TRUE(has(item["notes"], "rank 1: its parts add up to 700 ns, its span is 500 ns")) << item["notes"].dump();
  EXPECT_EQ(item["causes"][0]["advice"], "leave room");
  const Json* found = finding_of(report, "60.0 % of the communication was hidden");
  ASSERT_NE(found, nullptr);
  EXPECT_EQ((*found)["advice"], "Leave room.");
  EXPECT_NE(finding_of(report, "rank 1 keeps the others waiting"), nullptr);
}

TEST(OverlapPicture, warns_where_several_streams_are_slower_than_one) {
  Json document = overlap_ranks_document();
  EXPECT_EQ(finding_of(page_of(document), "overlapping costs more"), nullptr);
  document["step_ns"]["overlapped"] = {{"p50", 1400}, {"p50_interval", {1390, 1410}}};
  EXPECT_NE(finding_of(page_of(document), "overlapping costs more"), nullptr);
  document["step_ns"]["overlapped"] = {{"p50", 1400}, {"p50_interval", {1100, 1900}}};
  EXPECT_EQ(finding_of(page_of(document), "overlapping costs more"), nullptr) << "within the noise";
}

TEST(PreemptPicture, draws_victims_apart_that_differ_in_more_than_block_time) {
  const Json report = page_of(preempt_curves_document());
  ASSERT_EQ(report["preemptions"].size(), 2U);
  const Json& item = report["preemptions"][0];
  EXPECT_EQ(item["tail"], "p99") << "as in documents without tail_quantile";
  EXPECT_EQ(item["is_to_start"], true);
  EXPECT_EQ(item["alone_tail_ns"], 5200) << "to the first block, which every point that did not fail tells";
  ASSERT_EQ(item["curves"].size(), 2U);
  const Json& points = item["curves"][0]["points"];
  ASSERT_EQ(points.size(), 2U);
  EXPECT_EQ(points[0]["kernel_ns"], 40'000) << "4 waves of 10 us, and sorted";
  EXPECT_EQ(points[0]["latency_ns"]["tail"], 15'000);
  EXPECT_EQ(points[1]["kernel_ns"], 4'000'000);
  EXPECT_EQ(points[1]["is_overloaded"], true);
  EXPECT_EQ(item["curves"][1]["reason"], "no /dev/kfd on this machine");
  EXPECT_EQ(item["published"][0]["name"], "XSched Lv1, NVIDIA GV100");
  EXPECT_DOUBLE_EQ(item["published"][0]["points"][0]["kernel_ns"].get<double>(), 100'000);
  EXPECT_DOUBLE_EQ(item["published"][0]["points"][0]["latency_ns"]["tail"].get<double>(), 1'053'200);
  const Json& other = report["preemptions"][1];
  ASSERT_EQ(other["curves"].size(), 1U) << "what was not measured is told once";
  EXPECT_TRUE(other["curves"][0]["points"][0]["kernel_ns"].is_null()) << "a persistent kernel has no waves";
  EXPECT_EQ(other["curves"][0]["points"][0]["failure"], "it hung");
  EXPECT_NE(finding_of(report, "Use priority here."), nullptr);
  EXPECT_NE(finding_of(report, "clocks drifted"), nullptr);
}

TEST(PreemptPicture, counts_to_the_end_where_a_start_is_not_known) {
  Json document = preempt_curves_document();
  document["mechanisms"][0]["points"][0]["to_start_ns"] = nullptr;
  const Json item = page_of(document)["preemptions"][0];
  EXPECT_EQ(item["is_to_start"], false);
  EXPECT_EQ(item["alone_tail_ns"], 6200);
  EXPECT_EQ(item["curves"][0]["points"][0]["latency_ns"]["tail"], 16'000);
  EXPECT_TRUE(has(item["notes"], "to its end"));
}

// A p99 of few requests rests on two of them.
TEST(PreemptPicture, shows_the_lowest_tail_of_the_points_that_did_not_fail) {
  Json document = preempt_curves_document();
  document["alone"]["to_start_ns"]["p90"] = 5100;
  document["published"]["levels"][0]["points"][0]["latency_ns"]["p90"] = 900e3;
  Json& points = document["mechanisms"][0]["points"];
  points[0]["tail_quantile"] = 0.99;
  points[0]["to_start_ns"]["p90"] = 950'000;
  points[1]["tail_quantile"] = 0.9;
  points[1]["to_start_ns"]["p90"] = 13'000;
  points[1]["to_start_ns"]["p90_interval"] = {12'000, 14'000};
  points[2]["tail_quantile"] = 0.5;
  const Json report = page_of(document);
  const Json& item = report["preemptions"][0];
  EXPECT_EQ(item["tail"], "p90");
  EXPECT_EQ(item["alone_tail_ns"], 5100);
  EXPECT_EQ(item["curves"][0]["points"][0]["latency_ns"]["tail"], 13'000);
  EXPECT_EQ(item["curves"][0]["points"][0]["latency_ns"]["tail_interval"], Json({12'000.0, 14'000.0}));
  EXPECT_EQ(item["curves"][0]["points"][1]["latency_ns"]["tail"], 950'000);
  EXPECT_DOUBLE_EQ(item["published"][0]["points"][0]["latency_ns"]["tail"].get<double>(), 900'000);
  EXPECT_EQ(report["preemptions"][1]["tail"], "p99") << "its only point failed";
}

TEST(BenchPicture, has_cases_roofs_and_what_changed) {
  const Json report = page_of(bench_roofs_document());
  ASSERT_EQ(report["benches"].size(), 1U);
  const Json& item = report["benches"][0];
  ASSERT_EQ(item["cases"].size(), 2U) << "a case that crashed stays";
  const Json& fft = item["cases"][0];
  EXPECT_EQ(fft["kernel"], "fft, length=64");
  EXPECT_DOUBLE_EQ(fft["latency_ns"]["p50"].get<double>(), 500'000);
  EXPECT_DOUBLE_EQ(fft["latency_ns"]["p50_interval"][1].get<double>(), 600'000);
  EXPECT_EQ(fft["throughput_unit"], "transforms/s");
  EXPECT_DOUBLE_EQ(fft["flop_per_s"].get<double>(), 4e9);
  EXPECT_EQ(fft["intensity"], 2.0);
  EXPECT_EQ(fft["share_of_roof"], 0.08);
  EXPECT_EQ(fft["error"], 1e-6);
  EXPECT_EQ(fft["change"], Json({{"verdict", "slower"}, {"ratio", 1.5}}));
  const Json& spmv = item["cases"][1];
  EXPECT_EQ(spmv["status"], "crashed");
  EXPECT_EQ(spmv["failure"], "SIGSEGV, it died");
  EXPECT_TRUE(spmv["latency_ns"]["p50"].is_null());
  ASSERT_EQ(item["rooflines"].size(), 2U);
  EXPECT_EQ(item["rooflines"][0]["reason"], "dot products only");
  EXPECT_DOUBLE_EQ(item["rooflines"][1]["flop_per_s"].get<double>(), 80e9);
  EXPECT_DOUBLE_EQ(item["rooflines"][1]["bytes_per_s"].get<double>(), 25e9);
  const Json* found = finding_of(report, "fft/cpu/fp32/length=64 is worse");
  ASSERT_NE(found, nullptr);
  EXPECT_EQ((*found)["tone"], "bad");
  EXPECT_NE(finding_of(report, "spmv/cpu/bf16/ crashed: SIGSEGV, it died."), nullptr);
}

TEST(QueuesPicture, draws_the_map_once_for_each_way_that_found_it) {
  const Json report = page_of(queue_map_document());
  ASSERT_EQ(report["queue_maps"].size(), 3U);
  const Json &probe = report["queue_maps"][0], &runtime = report["queue_maps"][1], &timeline = report["queue_maps"][2];
  EXPECT_EQ(probe["basis"], "probe");
  EXPECT_EQ(probe["mapping"], "fixed: stream i on queue i modulo 2");
  EXPECT_EQ(probe["cells"].size(), 3U);
  EXPECT_EQ(probe["cells"][2], Json({{"stream", 2}, {"queue", 0}, {"commands", nullptr}}));
  EXPECT_EQ(runtime["cells"].size(), 2U) << "a stream without an id has no queue";
  EXPECT_EQ(runtime["streams"].size(), 3U);
  EXPECT_EQ(timeline["queues"], Json::array({"queue 5", "queue 6"}));
  EXPECT_EQ(timeline["cells"][0]["commands"], 6) << "two stays on one queue";
  EXPECT_NE(finding_of(report, "disagree in 1 of 2"), nullptr);
  EXPECT_EQ(report["texts"].size(), 1U);
}

TEST(Pictures, survive_documents_with_any_node_replaced) {
  const std::vector<Json> values = {nullptr, "text", Json::array(), Json::object(),
                                    -1,      1e300,  true,          Json::array({nullptr, "x", -1e300})};
  for (Json document : {analysis_document(), overlap_ranks_document(), preempt_curves_document(),
                        bench_roofs_document(), queue_map_document(), profile_document()}) {
    std::size_t pages = 0;
    each_mutation(document, values, [&] {
      const Json report = page_of(document);
      for (const Json& item : report["overlaps"])
        for (const Json& bar : item["bars"])
          ASSERT_NEAR(parts_of(bar), bar["span_ns"].get<double>(), 1e-6 * bar["span_ns"].get<double>());
      ++pages;
    });
    EXPECT_GT(pages, 100U);
    // Everything at once.
    const Json whole = document;
    for (const Json& value : values)
      for (const auto& [key, field] : whole.items()) {
        if (key == "schema" || key == "experiment") continue;
        document[key] = value;
        page_of(document);
      }
  }
}

}  // namespace
}  // namespace weir
