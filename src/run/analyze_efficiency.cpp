// The part of the `analyze` document that holds operators against the peaks of their device, and peaks that `weir
// bench` measured.
#include <fmt/format.h>

#include <algorithm>
#include <span>

#include "base/error.h"
#include "base/named_values.h"
#include "run/analyze.h"
#include "trace/analyse/efficiency.h"

namespace weir {
namespace {

Json peaks_json(const std::optional<DevicePeaks>& peaks) {
  if (!peaks) return Json();
  Json matrix = Json::object();
  for (std::size_t i = 0; i < kNumberTypes; ++i)
    if (const auto& rate = peaks->matrix_flop_per_s[i]) matrix[to_string(static_cast<NumberType>(i))] = *rate;
  Json json = WEIR_NAMED(peaks->model, peaks->source, peaks->bytes_per_s);
  json["matrix_flop_per_s"] = std::move(matrix);
  json["vector_flop_per_s"] = {{"f64", number_or_null(peaks->vector_f64_flop_per_s)},
                               {"f32", number_or_null(peaks->vector_f32_flop_per_s)}};
  return json;
}

// As in the documents of `weir bench`: names of precisions, and the types of this program that they stand for.
struct BenchPrecision {
  const char* name;
  NumberType type;
};
constexpr BenchPrecision kBenchPrecisions[] = {{"fp64", NumberType::f64},  {"fp32", NumberType::f32},
                                               {"tf32", NumberType::tf32}, {"fp16", NumberType::f16},
                                               {"bf16", NumberType::bf16}, {"fp8_e4m3", NumberType::f8}};

std::optional<double> rate_in(const Json& json, const char* key) {
  const auto found = json.find(key);
  if (found == json.end() || !found->is_object()) return std::nullopt;
  const auto value = found->find("value");
  if (value == found->end() || !value->is_number() || !(value->get<double>() > 0)) return std::nullopt;
  return value->get<double>();
}

}  // namespace

DevicePeaks peaks_measured(const Json& summary, const std::string& file) {
  const auto ceilings = summary.is_object() ? summary.find("ceilings") : summary.end();
  if (ceilings == summary.end() || !ceilings->is_object())
    reject(fmt::format("{}: has no measured ceilings", file), "`weir bench --device cuda` writes them: summary.json.");
  for (const char* backend : {"cuda", "hip"}) {
    const auto measured = ceilings->find(backend);
    if (measured == ceilings->end() || !measured->is_object()) continue;
    DevicePeaks peaks;
    peaks.model = "measured";
    peaks.source = fmt::format("measured by weir bench, {}", file);
    peaks.bytes_per_s = rate_in(*measured, "bytes_per_s");
    bool has_any = peaks.bytes_per_s.has_value();
    const auto compute = measured->find("flop_per_s");
    for (const BenchPrecision& precision : kBenchPrecisions) {
      if (compute == measured->end() || !compute->is_object()) break;
      const auto rate = rate_in(*compute, precision.name);
      peaks.matrix_flop_per_s[static_cast<std::size_t>(precision.type)] = rate;
      has_any |= rate.has_value();
      if (precision.type == NumberType::f32) peaks.vector_f32_flop_per_s = rate;
      if (precision.type == NumberType::f64) peaks.vector_f64_flop_per_s = rate;
    }
    if (has_any) return peaks;
  }
  reject(fmt::format("{}: has no measured ceilings of a GPU", file),
         "`weir bench` on a GPU writes them: summary.json.");
}

Json efficiency_json(const Timeline& part, const Timeline& whole, const TraceDevice& device,
                     const AnalyzeOptions& options, std::string& reason) {
  const Efficiency found = efficiency(part, whole.names, device, options.peaks ? &*options.peaks : nullptr);
  reason = found.reason;
  if (!reason.empty()) return Json();
  const auto name = [&](std::uint32_t name) { return name < whole.names.size() ? Json(whole.names[name]) : Json(); };
  Json json = {{"count", found.all.size()},
               {"peaks", peaks_json(found.peaks)},
               {"peaks_reason", text_or_null(found.peaks_reason)}};
  json.update(WEIR_NAMED(found.judged_ns, found.saved_ns));
  json["unknown"] = json_list(found.unknown, [](const UnknownEfficiency& sum) {
    return WEIR_NAMED(sum.reason, sum.operators, sum.commands, sum.total_ns);
  });
  const std::span<const OperatorEfficiency> top = std::span(found.all).first(std::min(options.top, found.all.size()));
  json["top"] = json_list(top, [&](const OperatorEfficiency& one) {
    const Json type = one.flop ? Json(to_string(one.type)) : Json();
    const Json bound = one.bound ? Json(to_string(*one.bound)) : Json();
    return WEIR_NAMED(name(one.name), name(one.shapes), positive_or_null(one.calls), one.commands, one.total_ns,
                      one.flop, one.bytes, type, one.flop_per_s, one.bytes_per_s, bound, one.share, one.saved_ns,
                      text_or_null(one.reason));
  });
  return json;
}

}  // namespace weir
