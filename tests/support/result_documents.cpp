#include "support/result_documents.h"

namespace weir::testing {

Json result_document() {
  return Json::parse(R"json({
    "schema": "weir.result/2", "status": "complete", "failure": null, "hint": null, "created": "2026-01-31T12:00:00Z",
    "weir": {"version": "1.2.3", "commit": "abc"},
    "workload": {"name": "moe", "unit": "GFLOP/s"}, "parameters": {"experts": 4, "order": "mixed"},
    "precision": "fp32", "scale": "tiny", "streams": 8, "submit": "inline", "placement": "natural",
    "sync_mode": "per_iteration", "device": {"name": "sim:h200", "model": "NVIDIA H200 (simulated)"},
    "samples": {"latency_ns": [1000000, 2000000, 4000000], "interval_ns": [1000010, 2000020, 4000040],
                "device_ns": null, "submit_ns": [100, 200]},
    "metrics": {
      "latency_ns": {"count": 3, "mean": 2333333.3, "p50": 2000000.0, "p95": 3800000, "p99": 3960000, "min": 1000000,
                     "max": 4000000, "std": 10.5, "mean_interval": null, "p50_interval": [1900000, 2100000],
                     "p95_interval": null, "p99_interval": [null, null]},
      "device_ns": null, "throughput": {"value": 50, "unit": "GFLOP/s", "interval": [49, 51]},
      "commands_per_s": 4000, "host_ns_per_command": 4000, "floor_ns_per_command": null,
      "memory": {"allocated_bytes": 4096, "reserved_bytes": null, "peak_bytes": null}, "energy": null},
    "ranks": null, "check": {"status": "passed"}, "warnings": [], "unavailable": {}
})json");
}

Json bench_document() {
  return Json::parse(R"json({
    "schema": "weir.bench/2", "created": "2026-01-31T12:00:00Z", "status": "complete", "regressions": null,
    "counts": {"ok": 1, "crashed": 1},
    "cases": [
      {"kernel_name": "softmax", "backend": "cpu", "precision": "fp32", "problem_size": {"rows": 8, "shape": [2, 3]},
       "key": "softmax/cpu/fp32/rows=8", "device": {"name": "cpu", "model": "A CPU"}, "status": "ok", "error": null,
       "timing": {"latency_ns": {"p50": 1.25e6, "p90": 1.5e6, "p99": 2e6, "mean": 1.3e6, "std": 0.1e6, "p50_interval": [1.2e6, 1.3e6]},
                  "iterations": 3, "samples_ns": [1.2e6, 1.25e6, 1.5e6]},
       "memory": {"peak_bytes": 5.5e6}, "energy": {"energy_j": null}, "accuracy": {"rmse": 0.001}, "roofline": null},
      {"kernel_name": "fft", "backend": "cpu", "precision": "fp32", "problem_size": {}, "key": "fft/cpu/fp32/",
       "device": null, "status": "crashed", "error": {"what": "signal 11"}, "timing": null}]})json");
}

Json overlap_document() {
  return Json::parse(R"json({
    "schema": "weir.overlap/2", "created": "2026-01-31T12:00:00Z", "name": "default", "status": "complete",
    "failure": null, "config": {"parallel.mode": "fsdp", "training.precision": "fp32"}, "scale": "small",
    "streams": 4, "placement": "natural", "ranks": {"count": 2}, "device": {"name": "cpu"}, "parameters": {"dim": 128},
    "step_ns": {"overlapped": {"p50": 70000000, "samples_ns": [69000000, 71000000]}, "serial": {"p50": 80000000}},
    "overlap": {"exposed_ns": 100000, "hidden_ns": 300000, "efficiency": 0.75,
                "samples": {"exposed_ns": [90000, 110000, 100000], "efficiency": [0.7, 0.8]}},
    "causes": [{"cause": "no_room", "ns_per_step": 50000}]})json");
}

Json preempt_document() {
  return Json::parse(R"json({
    "schema": "weir.preempt/2", "created": "2026-01-31T12:00:00Z", "status": "complete", "device": {"name": "sim:h200"},
    "mechanisms": [{"name": "priority", "points": [
      {"victim": {"kind": "waves", "waves": 4, "block_ns": 10000}, "failure": null, "requests": 1000,
       "to_start_ns": {"p50": 10000, "p99": 15000, "p99_interval": [14000, 16000]}, "victim_loss": 0.01}]}]})json");
}

Json fleet_probe_document() {
  return Json::parse(R"json({
    "schema": "weir.fleet_probe/1", "created": "2026-01-31T12:00:00Z", "command_line": [], "environment": {},
    "name": "n1", "facts": {"weir": "1.2.3"}, "place": {}, "duration_ns": 2.5e9, "failure": null, "links": [],
    "devices": [
      {"name": "cuda:0", "model": "NVIDIA H200", "serial": "165", "bus": "0000:01:00.0", "facts": {"driver": "580.1"},
       "throttle": ["power cap"], "wrong": [], "failure": null, "figures": [
        {"name": "launch", "to": null, "unit": "ns", "value": 2000, "range": [1900, 2200], "samples": [1990, 2000, 2100],
         "reason": null},
        {"name": "copy_to_peer", "to": "cuda:1", "unit": "B/s", "value": 4e11, "range": [3e11, 5e11],
         "samples": [4e11], "reason": null},
        {"name": "gemm_bf16", "to": null, "unit": "flop/s", "value": 8e14, "range": [7e14, 9e14], "samples": [8e14],
         "reason": null},
        {"name": "clock", "to": null, "unit": "MHz", "value": 1980, "range": null, "samples": [], "reason": null},
        {"name": "power", "to": null, "unit": "W", "value": 690, "range": null, "samples": [], "reason": null},
        {"name": "temperature", "to": null, "unit": "C", "value": 61, "range": null, "samples": [], "reason": null},
        {"name": "pcie_width", "to": null, "unit": "lanes", "value": 16, "range": null, "samples": [], "reason": null},
        {"name": "retired_pages", "to": null, "unit": "count", "value": 0, "range": null, "samples": [],
         "reason": null}]},
      {"name": "cuda:1", "model": "NVIDIA H200", "serial": null, "bus": null, "facts": {}, "throttle": [],
       "wrong": ["gemm_bf16: 3 of 4096 values differ"], "failure": null, "figures": [
        {"name": "gemm_fp8", "to": null, "unit": "flop/s", "value": null, "range": null, "samples": [],
         "reason": "the device has no fp8"}]}]})json");
}

Json fleet_document() {
  return Json::parse(R"json({
    "schema": "weir.fleet/1", "created": "2026-01-31T12:00:00Z", "command_line": [], "significance": 0.01,
    "threshold": 0.03, "nodes": 2, "devices": 3,
    "groups": [{"model": "NVIDIA H200", "settings": null, "devices": 3, "figures": [
      {"name": "launch", "unit": "ns", "count": 3, "p50": 2000, "min": 1900, "max": 2500, "spread": 0.02},
      {"name": "gemm_bf16", "unit": "flop/s", "count": 3, "p50": 8e14, "min": 7e14, "max": 8e14, "spread": 0.01},
      {"name": "clock", "unit": "MHz", "count": 3, "p50": 1980, "min": 1980, "max": 1980, "spread": 0}]}],
    "findings": [
      {"kind": "wrong", "node": "n2", "device": "cuda:0", "serial": "7", "figure": null, "to": null, "value": null,
       "typical": null, "effect": null, "p": null, "peers": 2, "cause": null, "sentence": "n2 cuda:0: wrong",
       "is_unfit": true},
      {"kind": "slow", "node": "n1", "device": "cuda:1", "serial": null, "figure": "gemm_bf16", "to": null,
       "value": 7e14, "typical": 8e14, "effect": -0.125, "p": 1e-6, "peers": 2, "cause": "clock",
       "sentence": "n1 cuda:1: GEMM bf16 12.5 % below its 2 peers", "is_unfit": true},
      {"kind": "link", "node": "n1", "device": null, "serial": null, "figure": null, "to": "n2", "value": 1,
       "typical": 2, "effect": -0.5, "p": 1e-6, "peers": 2, "cause": null, "sentence": "n1-n2 is slow",
       "is_unfit": false}],
    "differences": [{"name": "driver", "is_of_device": true, "values": [
      {"value": "580.1", "count": 2, "first": ["n1"]}, {"value": "575.2", "count": 1, "first": ["n2"]}]}],
    "verdicts": [{"name": "n1", "is_fit": false, "reason": "slow"}, {"name": "n2", "is_fit": false, "reason": "wrong"}],
    "grid": {
      "figures": [{"name": "launch", "unit": "ns", "words": "launch", "goal": "lower"},
                  {"name": "gemm_bf16", "unit": "flop/s", "words": "GEMM bf16", "goal": "higher"},
                  {"name": "clock", "unit": "MHz", "words": "clock", "goal": "none"}],
      "rows": [
        {"node": "n1", "device": "cuda:0", "serial": "165", "group": 0, "is_fit": true, "values": [2000, 8e14, 1980]},
        {"node": "n1", "device": "cuda:1", "serial": null, "group": 0, "is_fit": false, "values": [1900, 7e14, 1980]},
        {"node": "n2", "device": "cuda:0", "serial": "7", "group": 0, "is_fit": false, "values": [2500, null, 1980]}]},
    "notes": []})json");
}

}  // namespace weir::testing
