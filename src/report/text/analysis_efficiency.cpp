// How close operators came to the peaks of their device.
#include <fmt/format.h>

#include "report/text/analysis_sections.h"
#include "report/text/analysis_words.h"
#include "trace/analyse/operator_inputs.h"

namespace weir::analysis {
namespace {

// "aten::mm", "bf16 [8, 64], bf16 [64, 32]" -> "mm bf16 8x64, 64x32"
std::string operator_words(const Json& each) {
  std::string name = word(each, "name");
  if (name.starts_with("aten::")) name.erase(0, 6);
  const auto inputs = at(each, {"shapes"}).is_string() ? operator_inputs(word(each, "shapes")) : std::nullopt;
  if (!inputs) return name;
  std::optional<NumberType> last;
  for (const TensorShape& tensor : inputs->tensors) {
    if (tensor.dims.empty()) continue;
    name += last ? ", " : " ";
    if (last != tensor.type) name += fmt::format("{} ", to_string(tensor.type));
    last = tensor.type;
    name += fmt::format("{}", fmt::join(tensor.dims, "x"));
  }
  return name;
}

std::string rate(const Json& each, const char* key, double unit) {
  const auto value = number(each, {key});
  if (!value) return "-";
  return fmt::format("{:.{}f}", *value / unit, *value / unit < 10 ? 2 : 0);
}

std::string peaks_words(const Json& peaks) {
  std::string words;
  if (const auto memory = number(peaks, {"bytes_per_s"})) words = fmt::format("{:.0f} GB/s", *memory / 1e9);
  for (const char* type : {"f8", "bf16", "f16", "tf32", "f32"})
    if (const auto peak = number(peaks, {"matrix_flop_per_s", type}))
      words += fmt::format("{}{} {:.0f} TFLOP/s", words.empty() ? "" : ", ", type, *peak / 1e12);
  return words;
}

}  // namespace

ReportSection efficiency_section(const Json& device, std::size_t most) {
  ReportSection section{"Efficiency of operators, by shape"};
  const Json& found = at(device, {"efficiency"});
  const Json& peaks = at(found, {"peaks"});
  if (peaks.is_object()) {
    section.fact("peaks", "{}: {}", word(peaks, "model"), peaks_words(peaks));
    section.fact("source", word(peaks, "source"));
    if (number(found, {"judged_ns"}).value_or(0) > 0)
      section.fact("judged", "{} of operators' commands; at the peaks they would take {} less",
                   duration(found, "judged_ns"), duration(found, "saved_ns"));
  }
  ReportTable table{
      {{"operator", true}, {"calls"}, {"sum"}, {"TFLOP/s"}, {"GB/s"}, {"of peak"}, {"bound", true}, {"to save"}}};
  for (const Json& each : at(found, {"top"})) {
    if (table.rows.size() == most) break;
    if (!at(each, {"flop_per_s"}).is_number() && !at(each, {"bytes_per_s"}).is_number()) continue;
    table.rows.push_back({operator_words(each), count(each, "calls"), duration(each, "total_ns"),
                          rate(each, "flop_per_s", 1e12), rate(each, "bytes_per_s", 1e9),
                          percent(number(each, {"share"})), at(each, {"bound"}).is_string() ? word(each, "bound") : "-",
                          duration(each, "saved_ns")});
  }
  section.add_unless_empty(std::move(table));
  if (!peaks.is_object()) section.remark("No shares of a peak: {}.", fields::text(found, {"peaks_reason"}));
  for (const Json& sum : first(at(found, {"unknown"}), 5))
    if (at(sum, {"reason"}) != at(found, {"peaks_reason"}))
      section.remark("Not judged: {} ({}), {}.", counted(sum, "operators", "operator"), duration(sum, "total_ns"),
                     fields::text(sum, {"reason"}));
  return section;
}

}  // namespace weir::analysis
