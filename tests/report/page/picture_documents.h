// Small documents with everything that the report draws of them, and what tests do to them.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/json.h"
#include "measure/timeline.h"
#include "report/page/page.h"
#include "run/analyze.h"

namespace weir::testing {

// Two ranks, each with two streams on two queues; a collective half behind a gemm, a copy, host calls, steps.
inline Timeline traced_ranks() {
  Timeline timeline;
  timeline.source = "test";
  timeline.names = {"gemm",           "ncclDevKernel_AllReduce", "Memcpy HtoD", "cudaLaunchKernel",
                    "ProfilerStep#1", "ProfilerStep#2"};
  timeline.queues = {{0, 0, "queue 0"}, {1, 0, "queue 1"}, {10, 1, "queue 0"}, {11, 1, "queue 1"}};
  for (std::uint16_t rank = 0; rank < 2; ++rank) {
    timeline.processes.push_back({rank, "rank", 0});
    timeline.devices.push_back({rank, rank, "GPU " + std::to_string(rank)});
    timeline.streams.push_back({rank, 7, "stream 7"});
    timeline.streams.push_back({rank, 8, "stream 8"});
    for (int step = 0; step < 2; ++step) {
      const std::int64_t at = 1'000'000 + step * 100'000 + rank * 10;
      const auto add = [&](SpanKind kind, std::uint32_t name, std::uint16_t stream, std::int64_t from,
                           std::int64_t to) {
        Span span;
        span.kind = kind;
        span.name = name;
        span.stream = static_cast<std::uint16_t>(2 * rank + stream);
        span.queue = 10 * rank + stream;
        span.call = static_cast<std::uint32_t>(timeline.calls.size());
        span.submitted_ns = at + from - 3'000;
        span.accepted_ns = at + from - 1'000;
        span.started_ns = at + from;
        span.ended_ns = at + to;
        span.seen_ns = at + to + 500;
        timeline.spans.push_back(span);
        timeline.calls.push_back({name, static_cast<std::uint32_t>(100 + rank), 0, rank, CallKind::launch,
                                  span.submitted_ns, span.accepted_ns});
        timeline.calls.back().name = 3;
      };
      add(SpanKind::kernel, 0, 0, 0, 40'000);
      add(SpanKind::collective, 1, 1, 30'000, 60'000);
      add(SpanKind::copy, 2, 0, 70'000, 75'000);
      timeline.ranges.push_back({static_cast<std::uint32_t>(4 + step), rank, at - 4'000, at + 90'000});
    }
  }
  for (std::uint32_t i = 0; i < timeline.spans.size(); ++i)
    if (timeline.spans[i].kind == SpanKind::collective)
      timeline.collectives.push_back({i, CollectiveKind::all_reduce, 2, kNoName, 1024});
  return timeline;
}

inline Json analysis_document() {
  Timeline timeline = traced_ranks();
  AnalyzeOptions options;
  options.command_line = {"weir", "analyze", "trace.json"};
  return analyze_timeline(timeline, {{"trace.json", "kineto", 1000}}, options);
}

inline Json overlap_ranks_document() {
  return Json::parse(R"json({
    "schema": "weir.overlap/2", "created": "2026-01-31T12:00:00Z", "name": "default", "status": "complete",
    "failure": null, "ranks": {"count": 2, "library": "mpi", "collectives": "shared memory"}, "scale": "small",
    "device": {"name": "cpu", "model": "A CPU"}, "parameters": {"dim": 128}, "commands_per_step": 12,
    "step_ns": {"overlapped": {"p50": 1000, "p50_interval": [990, 1010]}, "serial": {"p50": 1200, "p50_interval": [1190, 1210]}},
    "overlap": {"span_ns": 1000, "busy_ns": 900, "idle_ns": 100, "compute_ns": 700, "communication_ns": 300,
                "copy_ns": 50, "exposed_ns": 120, "hidden_ns": 180, "efficiency": 0.6, "serial_efficiency": 0.0,
                "best_efficiency": 1.0, "inflation": 1.1, "collectives": {"all_reduce": 300}},
    "causes": [{"cause": "no_room", "ns_per_step": 120, "share": 1.0, "stretches": 3, "queues": [2],
                "meaning": "a command was ready", "advice": "leave room",
                "worst": [{"rank": 0, "iteration": 2, "from_ns": 5, "ns": 40, "collective": "all_reduce",
                           "blocked": "gemm", "blocker": null, "queue": 2}]}],
    "skew": {"skew_ns": {"p50": 1, "p95": 2, "max": 3}, "clock_error_ns": 4},
    "stragglers": [{"rank": 1, "reason": "it is last in most"}],
    "per_rank": [
      {"rank": 0, "host": "a", "device": "cpu", "inflation": 1.1, "memory": {"allocated_bytes": 4096},
       "overlapped": {"span_ns": 1000, "busy_ns": 900, "idle_ns": 100, "compute_ns": 700, "communication_ns": 300,
                      "copy_ns": 50, "exposed_ns": 120, "hidden_ns": 180, "efficiency": 0.6}},
      {"rank": 1, "host": "a", "device": "cpu", "inflation": 1.0, "memory": {"allocated_bytes": 4096},
       "overlapped": {"span_ns": 500, "busy_ns": 500, "idle_ns": 0, "compute_ns": 600, "communication_ns": 100,
                      "copy_ns": 0, "exposed_ns": 100, "hidden_ns": 0, "efficiency": 0.0}}],
    "losses": [1.0, 0.5], "memory_bytes": 4096, "check": {"status": "passed"}, "notes": ["a note"]})json");
}

inline Json preempt_curves_document() {
  return Json::parse(R"json({
    "schema": "weir.preempt/2", "created": "2026-01-31T12:00:00Z", "status": "complete", "failures": [],
    "verdict": "Use priority here", "warnings": ["clocks drifted"],
    "device": {"name": "sim:h200", "model": "NVIDIA H200"},
    "plan": {"victims": [{"kind": "waves", "waves": 4, "block_ns": 10000}, {"kind": "waves", "waves": 4, "block_ns": 1000000},
                         {"kind": "persistent", "waves": null, "block_ns": 100000}]},
    "alone": {"to_start_ns": {"p50": 5000, "p99": 5200}, "to_end_ns": {"p50": 6000, "p99": 6200}},
    "mechanisms": [
      {"name": "priority", "level": null, "is_offered": true, "reason": null, "verdict": "priority helps", "points": [
        {"victim": {"kind": "waves", "waves": 4, "block_ns": 1000000}, "failure": null, "is_overloaded": true,
         "to_start_ns": {"p50": 900000, "p99": 1000000, "p99_interval": [990000, 1100000]},
         "to_end_ns": {"p50": 910000, "p99": 1010000}, "victim_loss": 0.01},
        {"victim": {"kind": "waves", "waves": 4, "block_ns": 10000}, "failure": null, "is_overloaded": false,
         "to_start_ns": {"p50": 10000, "p99": 15000, "p99_interval": null},
         "to_end_ns": {"p50": 11000, "p99": 16000}, "victim_loss": -0.001},
        {"victim": {"kind": "persistent", "waves": null, "block_ns": 100000}, "failure": "it hung", "is_overloaded": false,
         "to_start_ns": null, "to_end_ns": null, "victim_loss": null}]},
      {"name": "kfd_suspend", "level": "Lv3", "is_offered": false, "reason": "no /dev/kfd on this machine",
       "verdict": "kfd_suspend cannot be had here", "points": []}],
    "published": {"source": "XSched (OSDI 2025), evaluation data", "url": "https://github.com/XpuOS/xsched",
                  "device": "NVIDIA GV100", "licence": "Apache-2.0",
                  "levels": [{"level": "Lv1", "points": [{"kernel_ns": 100000, "latency_ns": {"p50": 795900, "p99": 1053200}}]}]}
  })json");
}

inline Json bench_roofs_document() {
  return Json::parse(R"json({
    "schema": "weir.bench/2", "created": "2026-01-31T12:00:00Z", "status": "complete",
    "environment": {"system": "Linux", "variables": {}}, "options": {"is_cold": false},
    "ceilings": {"cpu": {"device": "cpu", "bytes_per_s": {"value": 25e9, "how": "triad"},
                         "flop_per_s": {"fp32": {"value": 80e9, "how": "fma"}, "bf16": {"value": null, "how": "dot products only"}}}},
    "counts": {"ok": 1, "crashed": 1}, "findings": ["fft is slow"], "recommendations": ["vectorise fft"], "skipped": [],
    "regressions": {"baseline": "before.json", "verdict": "regressed", "counts": {"slower": 1}, "notes": ["one round"],
                    "cases": [{"key": "fft/cpu/fp32/length=64", "verdict": "slower", "is_regression": true,
                               "ratio": 1.5, "interval": [1.4, 1.6], "reason": "40.0 % slower at least"}]},
    "cases": [
      {"kernel_name": "fft", "backend": "cpu", "precision": "fp32", "problem_size": {"length": 64},
       "key": "fft/cpu/fp32/length=64", "device": {"name": "cpu", "model": "A CPU"}, "status": "ok", "error": null,
       "timing": {"latency_ns": {"p50": 500000, "p50_interval": [400000, 600000]}, "runs_per_s": 2000, "items_per_s": 128000,
                  "item_name": "transforms"},
       "energy": {"energy_j": 0.25}, "accuracy": {"relative_error": 1e-6, "max_error": 1e-5},
       "roofline": {"intensity": 2.0, "flop_per_s": 4e9, "of_ceiling": 0.08, "ceiling_flop_per_s": 80e9, "ceiling_bytes_per_s": 25e9}},
      {"kernel_name": "spmv", "backend": "cpu", "precision": "bf16", "problem_size": {}, "key": "spmv/cpu/bf16/",
       "device": null, "status": "crashed", "error": {"what": "it died", "hint": "look at it", "signal": "SIGSEGV", "output": null},
       "timing": null, "energy": null, "accuracy": null, "roofline": null}]})json");
}

inline Json queue_map_document() {
  return Json::parse(R"json({
    "schema": "weir.queues/2", "experiment": "map", "created": "2026-01-31T12:00:00Z",
    "device": {"name": "sim:h200", "model": "NVIDIA H200"}, "warnings": [], "unavailable": {"map.probe.queue_of_stream": "why"},
    "map": {"streams": 3,
      "probe": {"policy": "round_robin", "mapping": "fixed: stream i on queue i modulo 2", "is_static": true, "queues": 2,
                "is_lower_bound": false, "reason": "", "record_blocks": false, "streams": 3, "queue_of_stream": [0, 1, 0],
                "saturation": [{"held": 1, "stuck": 1, "marked": 2}], "confidence": 0.99, "repetitions": 3, "trials": 5,
                "elapsed_ns": 100, "baseline": {"marks": 10, "late": 0, "latency_ns": {"p50": 100}, "window_ns": 1000}},
      "timeline": {"step": "the lab's own", "source": "virtual", "pairs": 3, "pairs_apart": 2, "queues": 2, "is_fixed": true,
                   "intervals": [{"stream": 0, "queue": 5, "commands": 4}, {"stream": 1, "queue": 6, "commands": 3},
                                 {"stream": 0, "queue": 5, "commands": 2}]},
      "runtime": {"source": "ids", "queues": 2, "queue_of_stream": [0, 1, null], "agreeing_marks": 5, "marks": 5},
      "agreement": {"agree": ["both count 2"], "disagree": ["one mark differs"]}}})json");
}

inline Json profile_document() {
  return Json::parse(R"json({
    "schema": "weir.profile/2", "workload": "moe", "program": null, "device": {"name": "sim:h200", "model": "H200"},
    "devices": [{"device": "GPU 0", "id": 0, "commands": 4, "kinds": {"kernel": 4}, "streams": 2, "queues": 2,
                 "waterfall": [{"kind": "kernel", "commands": 4, "way_ns": 30, "dominating_words": "accepted -> started",
                   "hops": [{"from": "submitted", "to": "accepted", "count": 4, "negative": 1, "worst_negative_ns": -20,
                             "duration_ns": {"mean": 10, "p50": 9, "p95": 12, "p99": 13}, "share": 0.333},
                            {"from": "accepted", "to": "started", "count": 4, "duration_ns": {"mean": 20, "p50": 19, "p95": 22, "p99": 23}, "share": 0.667}],
                   "missing": [{"stage": "enqueued", "reason": "no channel"}]}], "waterfall_reason": null}],
    "files": [{"path": "trace.json", "bytes": 10}], "warnings": [], "notes": [], "unavailable": {}, "format": "kineto"
  })json");
}

// The page that a section makes of one document.
inline Json page_of(const Json& document) {
  page::Page page("test", "2026-01-31T12:00:00Z", {"weir", "report"});
  const Json& schema = document.is_object() && document.contains("schema") ? document["schema"] : Json();
  const std::string name = schema.is_string() ? schema.get<std::string>() : "";
  const std::size_t source = page.add_source("test.json", name, document);
  if (page::Section* const section = page::section_for(name)) section(page, source, document);
  return std::move(page).document();
}

// Calls `use` with the document, every node in turn replaced by every value; of lists the first
// element only: the others are like it.
inline void each_mutation(Json& document, const std::vector<Json>& values, const std::function<void()>& use) {
  const std::function<void(Json&)> visit = [&](Json& node) {
    Json kept = node;
    for (const Json& value : values) {
      node = value;
      use();
    }
    node = std::move(kept);
    std::size_t seen = 0;
    if (node.is_structured())
      for (Json& child : node) {
        if (node.is_array() && ++seen > 1) break;
        visit(child);
      }
  };
  for (Json& child : document) visit(child);
}

}  // namespace weir::testing
