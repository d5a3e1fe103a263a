#include "report/page/samples.h"

#include <fmt/format.h>
#include <stdlib.h>

#include <fstream>

#include "report/page/gather.h"
#include "report/page/results.h"

namespace weir::testing {

namespace fs = std::filesystem;

Json result_document(const ResultShape& shape) {
  Json samples = Json::array(), intervals = Json::array();
  for (std::size_t i = 0; i < shape.count; ++i) {
    const double sample = shape.latency_ns + static_cast<double>(i * 7 % shape.count);  // in no order: no trend
    samples.push_back(sample);
    intervals.push_back(sample + 5);
  }
  const double p50 = shape.latency_ns + static_cast<double>(shape.count - 1) / 2;
  const Json summary = {
      {"count", shape.count}, {"p50", p50}, {"p95", p50 + 8}, {"p99", p50 + 9}, {"p50_interval", {p50 - 2, p50 + 2}}};
  Json json = {{"schema", "weir.result/2"}, {"status", "complete"}, {"failure", nullptr}, {"hint", nullptr}};
  json["created"] = "2026-01-02T03:04:05Z";
  json["weir"] = {{"version", "0.1.0"}, {"commit", "abc"}};
  json["command_line"] = {"weir", "run", shape.workload};
  json["workload"] = {{"name", shape.workload}, {"unit", "GFLOP/s"}, {"scaling", "grows"}};
  json["parameters"] = {{"size", 64}, {"order", "alternating"}};
  json["precision"] = "fp32";
  json["streams"] = shape.streams;
  json["submit"] = shape.submit;
  json["placement"] = "natural";
  json["sync_mode"] = "per_iteration";
  json["device"] = {{"name", shape.device}, {"backend", "sim"}, {"model", shape.model}, {"driver", nullptr}};
  json["environment"] = {{"system", "Debian"}, {"cpus", 2}, {"load_average", fmt::to_string(shape.streams)}};
  json["environment"]["variables"] = {{"CUDA_HOME", "/usr/local/cuda"}};
  json["work_per_iteration"] = 10;
  json["commands_per_iteration"] = 10;
  json["samples"] = {{"latency_ns", samples}, {"interval_ns", intervals}};
  json["metrics"] = {{"latency_ns", summary},
                     {"throughput", {{"value", shape.throughput}, {"unit", "GFLOP/s"}, {"interval", {99, 101}}}},
                     {"host_ns_per_command", 10},
                     {"floor_ns_per_command", 1.5},
                     {"fairness", 0.99},
                     {"concurrency", {{"mean", 3.5}, {"max", 4}}},
                     {"convoy", nullptr}};
  json["check"] = {{"status", "passed"}, {"reason", nullptr}};
  json["warnings"] = Json::array();
  json["unavailable"] = Json::object();
  return json;
}

Json failed_document(const ResultShape& shape, const std::string& why) {
  Json json = result_document(shape);
  json["status"] = "failed";
  json["failure"] = why;
  json["hint"] = "Try again.";
  return json;
}

Json sweep_document(const std::vector<Json>& results) {
  Json json = {{"schema", "weir.sweep/1"}, {"status", "complete"}, {"created", "2026-01-02T03:04:05Z"}};
  json["command_line"] = {"weir", "sweep", "tiny"};
  json["workload"] = "tiny";
  json["settings"] = {{"device", "sim:h200"}};
  json["floor"] = Json::array();
  json["results"] = results;
  json["scaling"] = Json::object();
  return json;
}

Json comparison_document(const std::string& verdict, double ratio) {
  const Json metric = {{"unit", "ns"},
                       {"verdict", verdict},
                       {"reason", nullptr},
                       {"ratio", ratio},
                       {"p", 0.001},
                       {"adjusted_p", 0.002},
                       {"tail_ratio", 1.0},
                       {"baseline", {{"count", 30}, {"p50", 1000}}},
                       {"test", {{"count", 30}, {"p50", 1000 * ratio}}},
                       {"interval", {ratio - 0.01, ratio + 0.01}}};
  const Json pair = {{"label", "tiny, 4 streams, inline"},
                     {"verdict", verdict},
                     {"failure", nullptr},
                     {"metrics", {{"latency", metric}}},
                     {"notes", Json::array()}};
  Json json = {{"schema", "weir.comparison/2"}, {"baseline", "old.json"}, {"threshold", 0.05}};
  json["verdicts"] = {{verdict, 1}};
  json["tests"] = Json::array();
  json["tests"].push_back({{"file", "new.json"},
                           {"pairs", Json::array({pair})},
                           {"baseline_only", Json::array({{{"label", "tiny, 8 streams"}, {"origin", "old.json"}}})},
                           {"test_only", Json::array()},
                           {"notes", Json::array({"weir.version differs"})}});
  return json;
}

Json report_on(const std::vector<fs::path>& paths) {
  page::Page page("A report", "2026-01-02T03:04:05Z", {"weir", "report"});
  const std::vector<page::Measured> measured = page::gather(page, paths, {}).measured;
  page::add_results(page, measured);
  return std::move(page).document();
}

PageFolder::PageFolder() {
  std::string name = (fs::temp_directory_path() / "weir_page_XXXXXX").string();
  path_ = ::mkdtemp(name.data());
}

PageFolder::~PageFolder() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

fs::path PageFolder::put(const std::string& name, const std::string& text) const {
  const fs::path path = path_ / name;
  fs::create_directories(path.parent_path());
  std::ofstream(path, std::ios::binary) << text;
  return path;
}

fs::path PageFolder::put(const std::string& name, const Json& document) const { return put(name, document.dump()); }

}  // namespace weir::testing
