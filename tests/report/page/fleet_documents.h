// Small documents of fleets and nodes with everything that the report draws of them.
#pragma once

#include <string>

#include "base/json.h"

namespace weir::testing {

// Four devices on two nodes: b 1 is slow, a 1 computes wrongly and has no bandwidth.
inline Json fleet_map_document() {
  return Json::parse(R"json({
    "schema": "weir.fleet/1", "created": "2026-01-31T12:00:00Z", "command_line": ["weir", "fleet", "report"],
    "significance": 0.01, "threshold": 0.03, "nodes": 3, "devices": 4,
    "groups": [{"model": "NVIDIA H200", "settings": null, "devices": 4, "figures": [
      {"name": "memory", "unit": "B/s", "count": 3, "p50": 4.0e12, "min": 3.6e12, "max": 4.1e12, "spread": 0.01}]}],
    "findings": [
      {"kind": "wrong", "node": "a", "device": "cuda:1", "serial": "S2", "figure": null, "to": null, "value": null,
       "typical": null, "effect": null, "p": null, "peers": 3, "cause": null, "sentence": "a cuda:1: GEMM is wrong",
       "is_unfit": true},
      {"kind": "slow", "node": "b", "device": "cuda:1", "serial": "S4", "figure": "memory", "to": null, "value": 3.6e12,
       "typical": 4.0e12, "effect": -0.1, "p": 1e-6, "peers": 3, "cause": "clock", "sentence": "b cuda:1: memory 10 % below",
       "is_unfit": true},
      {"kind": "missing", "node": "c", "device": null, "serial": null, "figure": null, "to": null, "value": null,
       "typical": null, "effect": null, "p": null, "peers": 0, "cause": null, "sentence": "c: no driver", "is_unfit": true},
      {"kind": "different", "node": "b", "device": null, "serial": null, "figure": null, "to": null, "value": null,
       "typical": null, "effect": null, "p": null, "peers": 2, "cause": null, "sentence": "b: governor powersave",
       "is_unfit": false}],
    "differences": [{"name": "governor", "is_of_device": false, "values": [
      {"value": "performance", "count": 2, "first": ["a", "c"]}, {"value": "powersave", "count": 1, "first": ["b"]}]}],
    "verdicts": [{"name": "a", "is_fit": false, "reason": "wrong"}, {"name": "b", "is_fit": false, "reason": "slow"},
                 {"name": "c", "is_fit": false, "reason": null}],
    "grid": {
      "figures": [{"name": "memory", "unit": "B/s", "words": "memory bandwidth", "goal": "higher"},
                  {"name": "temperature", "unit": "C", "words": "temperature under load", "goal": "none"},
                  {"name": "pcie_width", "unit": "lanes", "words": "PCIe width", "goal": "none"},
                  {"name": "gemm_fp8", "unit": "flop/s", "words": "GEMM fp8", "goal": "higher"}],
      "rows": [
        {"node": "a", "device": "cuda:0", "serial": "S1", "group": 0, "is_fit": true, "values": [4.0e12, 60, 16, null]},
        {"node": "a", "device": "cuda:1", "serial": "S2", "group": 0, "is_fit": false, "values": [null, 61, 16, null]},
        {"node": "b", "device": "cuda:0", "serial": null, "group": 0, "is_fit": true, "values": [4.1e12, 62, 16, null]},
        {"node": "b", "device": "cuda:1", "serial": "S4", "group": 0, "is_fit": false, "values": [3.6e12, 63, 16, null]}]},
    "notes": ["c: nothing is known of its devices"]})json");
}

inline Json probed_node_document() {
  return Json::parse(R"json({
    "schema": "weir.fleet_probe/1", "created": "2026-01-31T12:00:00Z", "command_line": ["weir", "fleet", "probe"],
    "environment": {"system": "Linux", "variables": {}}, "name": "a", "facts": {"governor": "performance"},
    "place": {"rack": "r1"}, "duration_ns": 4e10, "failure": null, "links": [],
    "devices": [
      {"name": "cuda:0", "model": "NVIDIA H200", "serial": "S1", "bus": "0000:01:00.0", "facts": {"driver": "580"},
       "throttle": ["power cap"], "wrong": [], "failure": null, "figures": [
        {"name": "memory", "to": null, "unit": "B/s", "value": 4.0e12, "range": [3.9e12, 4.1e12], "samples": [4.0e12], "reason": null},
        {"name": "copy_to_peer", "to": "cuda:1", "unit": "B/s", "value": 3e11, "range": null, "samples": [], "reason": null},
        {"name": "copy_to_peer", "to": "cuda:2", "unit": "B/s", "value": 2e11, "range": null, "samples": [], "reason": null},
        {"name": "of_tomorrow", "to": null, "unit": "K", "value": 4, "range": null, "samples": [], "reason": null}]},
      {"name": "cuda:1", "model": "NVIDIA H200", "serial": null, "bus": null, "facts": {}, "throttle": [],
       "wrong": ["GEMM bf16 gives 3 where 4 is right"], "failure": "it fell off the bus", "figures": [
        {"name": "memory", "to": null, "unit": "B/s", "value": null, "range": null, "samples": [], "reason": "it fell off the bus"}]}]})json");
}

}  // namespace weir::testing
