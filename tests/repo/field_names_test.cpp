// The names of fields in documents say what they hold (docs/export.md, "Names in JSON"): finds names in docs/schema
// that break the rule, and says how they are spelled.
#include <gtest/gtest.h>

#include <array>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include "base/json.h"
#include "repo/tree.h"

namespace weir::repo {
namespace {

// What a user writes is not renamed.
constexpr std::array kInputs{"bench.yaml.json", "weir.kernel_manifest.1.json"};

struct Exception {
  const char *schema, *path, *reason;
};
constexpr std::array kExceptions{
    Exception{"weir.result.2.json", "ranks.per_rank.throughput", "has the unit of metrics.throughput"},
    Exception{"weir.report.2.json", "scaling.curves.points.throughput", "has the unit of its item"},
    Exception{"weir.report.2.json", "benches.cases.throughput", "throughput_unit is beside it"}};

bool matches(const std::string& name, const char* pattern) { return std::regex_search(name, std::regex(pattern)); }

// How the field should be spelled; empty where nothing is wrong. `enclosing` are the fields around it.
std::string right_spelling(const std::string& name, const std::vector<std::string>& enclosing, bool is_number,
                           bool has_unit) {
  if (matches(name, "(^|_)medians?(_|$)")) return "p50";
  if (matches(name, "_p[0-9]+(_|$)") || matches(name, "^(p[0-9]+|mean|min|max|std)_(ns|us|ms|s|bytes|mb|watts)$"))
    return "QUANTITY_ns: {p50, ...}";
  if (matches(name, "^p[0-9]+$") && !has_unit) {
    bool is_below_quantity = false;
    for (const std::string& each : enclosing)
      is_below_quantity = is_below_quantity || matches(each, "_(ns|bytes|per_s|packets|blocks|mhz|index)$");
    if (!is_below_quantity) return "QUANTITY_ns: {p50, ...}, or p50 and a unit";
  }
  if (!is_number) return {};
  if (matches(name, "per_sec(ond)?s?$") || matches(name, "(flops|gbs|bandwidth|throughput)$")) return "..._per_s";
  if (matches(name, "(^|_)(duration|latency|elapsed|timeout)$")) return "..._ns";
  if (matches(name, "(^|_)(us|ms|s|secs?|seconds?|minutes)$") && !name.ends_with("_per_s")) return "..._ns";
  if (matches(name, "(^|_)[kmgt]i?b$")) return "..._bytes";
  return {};
}

class Names {
 public:
  Names(std::string file, const Json& schema) : file_(std::move(file)), root_(schema) {}

  std::vector<std::string> findings() {
    walk(root_, {}, false);
    return {found_.begin(), found_.end()};
  }

 private:
  // "#/definitions/interval"
  const Json& target(const Json& node) const {
    const Json& reference = member(node, "$ref");
    return reference.is_string() ? root_["definitions"][reference.string().substr(reference.string().rfind('/') + 1)]
                                 : node;
  }

  // A number, a list of numbers, or one of them among several forms.
  bool is_number(const Json& schema) const {
    const Json& node = target(schema);
    const Json& type = member(node, "type");
    for (const Json& each : type.is_array() ? type : Json::array({type}))
      if (each == "number" || each == "integer") return true;
    for (const char* choice : {"oneOf", "anyOf", "allOf"})
      for (const Json& each : member(node, choice))
        if (is_number(each)) return true;
    return member(node, "items").is_object() && is_number(node["items"]);
  }

  void walk(const Json& schema, const std::vector<std::string>& enclosing, bool has_unit) {
    const Json& reference = member(schema, "$ref");
    if (reference.is_string() && !open_.insert(reference.string()).second) return;
    const Json& node = target(schema);
    const Json& properties = member(node, "properties");
    const bool is_in_unit = has_unit || member(properties, "unit").is_object();
    for (const auto& [name, value] : properties.items()) {
      std::vector<std::string> path = enclosing;
      path.push_back(name);
      check(path, enclosing, is_number(value), is_in_unit);
      walk(value, path, is_in_unit);
    }
    for (const char* part : {"items", "additionalProperties", "then", "else"})
      if (member(node, part).is_object()) walk(node[part], enclosing, is_in_unit);
    for (const char* choice : {"oneOf", "anyOf", "allOf"})
      for (const Json& each : member(node, choice)) walk(each, enclosing, is_in_unit);
    if (reference.is_string()) open_.erase(reference.string());
  }

  void check(const std::vector<std::string>& path, const std::vector<std::string>& enclosing, bool is_number,
             bool has_unit) {
    std::string where;
    for (const std::string& each : path) where += (where.empty() ? "" : ".") + each;
    for (const Exception& exception : kExceptions)
      if (file_ == exception.schema && where == exception.path) return;
    if (const std::string right = right_spelling(path.back(), enclosing, is_number, has_unit); !right.empty())
      found_.insert(file_ + ": " + where + ": spell it " + right);
  }

  std::string file_;
  const Json& root_;
  std::set<std::string> open_, found_;
};

std::vector<std::string> odd_names(const std::string& file, const Json& schema) {
  return Names(file, schema).findings();
}

TEST(FieldNames, finds_what_is_planted) {
  const Json schema = parse_json(R"json({
    "definitions": {"summary": {"type": "object", "properties": {"p50": {"type": "number"}, "p50_ns": {"type": "number"}}},
                    "self": {"properties": {"inner": {"$ref": "#/definitions/self"}, "wall_s": {"type": "number"}}}},
    "properties": {
      "latency_ns": {"$ref": "#/definitions/summary"}, "latency": {"oneOf": [{"$ref": "#/definitions/summary"}]},
      "seconds": {"type": ["number", "null"]}, "second": {"type": "string"}, "duration": {"type": "integer"},
      "runs_per_s": {"type": "number"}, "runs_per_second": {"type": "number"}, "bandwidth": {"type": "number"},
      "samples_ms": {"type": "array", "items": {"type": "number"}}, "peak_mb": {"type": "number"},
      "side": {"properties": {"unit": {"type": "string"}, "median": {"type": "number"}, "p50": {"type": "number"}}},
      "step_p50_ns": {"type": "number"}, "self": {"$ref": "#/definitions/self"}}})json",
                                 "planted");
  const std::vector<std::string> expected = {"x.json: bandwidth: spell it ..._per_s",
                                             "x.json: duration: spell it ..._ns",
                                             "x.json: latency.p50: spell it QUANTITY_ns: {p50, ...}, or p50 and a unit",
                                             "x.json: latency.p50_ns: spell it QUANTITY_ns: {p50, ...}",
                                             "x.json: latency_ns.p50_ns: spell it QUANTITY_ns: {p50, ...}",
                                             "x.json: peak_mb: spell it ..._bytes",
                                             "x.json: runs_per_second: spell it ..._per_s",
                                             "x.json: samples_ms: spell it ..._ns",
                                             "x.json: seconds: spell it ..._ns",
                                             "x.json: self.wall_s: spell it ..._ns",
                                             "x.json: side.median: spell it p50",
                                             "x.json: step_p50_ns: spell it QUANTITY_ns: {p50, ...}"};
  EXPECT_EQ(odd_names("x.json", schema), expected) << joined(odd_names("x.json", schema));
}

TEST(FieldNames, say_what_they_hold_in_every_schema) {
  std::size_t read = 0;
  for (const auto& file : files_below(std::filesystem::path(WEIR_SOURCE_DIR) / "docs/schema", {".json"})) {
    const std::string name = file.filename();
    if (std::find(kInputs.begin(), kInputs.end(), name) != kInputs.end()) continue;
    const auto findings = odd_names(name, parse_json(joined(read_lines(file)), name));
    EXPECT_TRUE(findings.empty()) << joined(findings);
    ++read;
  }
  EXPECT_GT(read, 25u);
}

}  // namespace
}  // namespace weir::repo
