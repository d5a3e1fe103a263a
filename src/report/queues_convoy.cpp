#include "report/queues_convoy.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/units.h"
#include "report/wrap.h"

namespace weir {
namespace {

constexpr std::size_t kBarColumns = 23;

// Latencies span decades, so a bar's length is the logarithm: one kernel's own time is its beginning.
std::string bar(double ns, double shortest, double longest) {
  if (ns <= 0 || shortest <= 0 || longest <= shortest) return "#";
  const double part = std::log(ns / shortest) / std::log(longest / shortest);
  return std::string(1 + static_cast<std::size_t>(std::lround(std::clamp(part, 0.0, 1.0) * (kBarColumns - 1))), '#');
}

std::string index_text(const Json& index) {
  if (!index.is_object() || !index["p99"].is_number()) return "unknown";
  std::string text = fmt::format("{:.2f}", index["p99"].get<double>());
  const Json& interval = index["p99_interval"];
  if (interval.is_array() && interval[0].is_number() && interval[1].is_number())
    text += fmt::format("  ({:.2f} to {:.2f})", interval[0].get<double>(), interval[1].get<double>());
  return text;
}

}  // namespace

std::string describe_queues_convoy(const Json& document) {
  const Json& convoy = document["convoy"];
  std::string out = "\n";
  out += wrapped(
             fmt::format("Small kernels ({}, 1 block, {} streams) and large ones ({}, {} {}, two on each of {} "
                         "streams) on {} ({}): submitted to ended.",
                         format_duration(convoy["small"]["ns"].get<double>()), convoy["small"]["streams"].dump(),
                         format_duration(convoy["large"]["ns"].get<double>()), convoy["large"]["blocks"].dump(),
                         convoy["large"]["blocks"] == 1 ? "block" : "blocks", convoy["large"]["streams"].dump(),
                         document["device"]["name"].get<std::string>(), document["device"]["model"].get<std::string>()),
             0) +
         "\n\n";
  double shortest = 0, longest = 0;
  for (const auto& [name, json] : convoy["cases"].items()) {
    if (!json["latency_ns"].is_object()) continue;
    const double p50 = json["latency_ns"]["p50"].get<double>(), p99 = json["latency_ns"]["p99"].get<double>();
    shortest = shortest == 0 ? p50 : std::min(shortest, p50);
    longest = std::max(longest, p99);
  }
  out +=
      fmt::format("{:<8}{:>7}{:>11}{:>11}{:>11}{:>7}  p99, logarithmic\n", "case", "queues", "p50", "p95", "p99", "n");
  for (const auto& [name, json] : convoy["cases"].items()) {
    const Json& latency = json["latency_ns"];
    if (!latency.is_object()) {
      out += fmt::format("{:<8}{:>7}  {}\n", name, json["queues"].dump(),
                         wrapped(json["reason"].is_string() ? json["reason"].get<std::string>() : "-", 17));
      continue;
    }
    out += fmt::format("{:<8}{:>7}{:>11}{:>11}{:>11}{:>7}  {}\n", name, json["queues"].dump(),
                       format_duration(latency["p50"].get<double>()), format_duration(latency["p95"].get<double>()),
                       format_duration(latency["p99"].get<double>()), latency["count"].dump(),
                       bar(latency["p99"].get<double>(), shortest, longest));
  }
  out += fmt::format("\nconvoy index        {}\n", index_text(convoy["convoy_index"]));
  out += "                    p99 beside / p99 alone: what large kernels cost at all\n";
  out += fmt::format("head-of-line index  {}\n", index_text(convoy["head_of_line_index"]));
  out += "                    p99 behind / p99 beside: what sharing a queue adds\n\n";
  out += wrapped(convoy["sentence"].get<std::string>(), 0) + "\n";
  for (const Json& warning : document["warnings"])
    out += wrapped(
               fmt::format("Careful: {}. {}", warning["text"].get<std::string>(), warning["advice"].get<std::string>()),
               0) +
           "\n";
  return out;
}

}  // namespace weir
