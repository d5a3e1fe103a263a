// weir.queues/2, convoy: small kernels alone, beside and behind large ones.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/units.h"
#include "report/text/documents.h"
#include "report/text/fields.h"

namespace weir {
namespace {

using namespace fields;

constexpr std::size_t kBarColumns = 23;

// Latencies span decades, so bars are logarithmic, starting at a single kernel's own time.
std::string bar(double ns, double shortest, double longest) {
  if (ns <= 0 || shortest <= 0 || longest <= shortest) return "#";
  const double part = std::log(ns / shortest) / std::log(longest / shortest);
  return std::string(1 + static_cast<std::size_t>(std::lround(std::clamp(part, 0.0, 1.0) * (kBarColumns - 1))), '#');
}

std::string index_text(const Json& index) {
  if (!index.is_object() || !at(index, {"p99"}).is_number()) return "unknown";
  std::string text = fmt::format("{:.2f}", at(index, {"p99"}).get<double>());
  if (const auto ends = interval(index, {"p99_interval"}))
    text += fmt::format("  ({:.2f} to {:.2f})", ends->first, ends->second);
  return text;
}

}  // namespace

std::string describe_queues_convoy(const Json& document) {
  const Json& convoy = at(document, {"convoy"});
  std::string out = "\n";
  out += wrapped(
             fmt::format(
                 "Small kernels ({}, 1 block, {} streams) and large ones ({}, {} {}, two on each of {} "
                 "streams) on {} ({}): submitted to ended.",
                 format_duration(at(convoy, {"small", "ns"}).get<double>()), fields::text(convoy, {"small", "streams"}),
                 format_duration(at(convoy, {"large", "ns"}).get<double>()), fields::text(convoy, {"large", "blocks"}),
                 at(convoy, {"large", "blocks"}) == 1 ? "block" : "blocks", fields::text(convoy, {"large", "streams"}),
                 fields::text(document, {"device", "name"}), fields::text(document, {"device", "model"})),
             0) +
         "\n\n";
  double shortest = 0, longest = 0;
  for (const auto& [name, json] : fields::members(at(convoy, {"cases"}))) {
    if (!at(json, {"latency_ns"}).is_object()) continue;
    const double p50 = at(json, {"latency_ns", "p50"}).get<double>(),
                 p99 = at(json, {"latency_ns", "p99"}).get<double>();
    shortest = shortest == 0 ? p50 : std::min(shortest, p50);
    longest = std::max(longest, p99);
  }
  out +=
      fmt::format("{:<8}{:>7}{:>11}{:>11}{:>11}{:>7}  p99, logarithmic\n", "case", "queues", "p50", "p95", "p99", "n");
  for (const auto& [name, json] : fields::members(at(convoy, {"cases"}))) {
    const Json& latency = at(json, {"latency_ns"});
    if (!latency.is_object()) {
      out += fmt::format("{:<8}{:>7}  {}\n", name, fields::text(json, {"queues"}),
                         wrapped(at(json, {"reason"}).is_string() ? fields::text(json, {"reason"}) : "-", 17));
      continue;
    }
    out += fmt::format("{:<8}{:>7}{:>11}{:>11}{:>11}{:>7}  {}\n", name, fields::text(json, {"queues"}),
                       format_duration(at(latency, {"p50"}).get<double>()),
                       format_duration(at(latency, {"p95"}).get<double>()),
                       format_duration(at(latency, {"p99"}).get<double>()), fields::text(latency, {"count"}),
                       bar(at(latency, {"p99"}).get<double>(), shortest, longest));
  }
  out += fmt::format("\nconvoy index        {}\n", index_text(at(convoy, {"convoy_index"})));
  out += "                    p99 beside / p99 alone: what large kernels cost at all\n";
  out += fmt::format("head-of-line index  {}\n", index_text(at(convoy, {"head_of_line_index"})));
  out += "                    p99 behind / p99 beside: what sharing a queue adds\n\n";
  out += wrapped(fields::text(convoy, {"sentence"}), 0) + "\n";
  for (const Json& warning : at(document, {"warnings"}))
    out +=
        wrapped(fmt::format("Careful: {}. {}", fields::text(warning, {"text"}), fields::text(warning, {"advice"})), 0) +
        "\n";
  return out;
}

}  // namespace weir
