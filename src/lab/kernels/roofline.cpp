#include "lab/kernels/roofline.h"

#include <fmt/format.h>

#include <vector>

#include "base/error.h"
#include "base/named_values.h"

namespace weir::bench {
namespace {

// A little more than the ceiling is noise of the two measurements; beyond that the ceiling does not apply.
constexpr double kStillAtCeiling = 1.05;

Json ceiling_json(const Ceiling& ceiling) { return WEIR_NAMED(ceiling.value, ceiling.how); }

Ceiling ceiling_from(const Json& json) {
  Ceiling ceiling;
  if (!json.is_object()) return ceiling;
  if (const auto value = json.find("value"); value != json.end() && value->is_number() && value->get<double>() > 0)
    ceiling.value = value->get<double>();
  if (const auto how = json.find("how"); how != json.end() && how->is_string()) ceiling.how = how->get<std::string>();
  return ceiling;
}

std::optional<double> rate(const std::optional<double>& amount, double seconds) {
  if (!amount || !(seconds > 0)) return std::nullopt;
  return *amount / seconds;
}

std::optional<double> share(const std::optional<double>& value, const std::optional<double>& of) {
  if (!value || !of || !(*of > 0)) return std::nullopt;
  return *value / *of;
}

}  // namespace

Json ceilings_document(const Ceilings& ceilings) {
  Json compute = Json::object();
  for (const auto& [precision, ceiling] : ceilings.compute)
    compute[std::string(name_of(precision))] = ceiling_json(ceiling);
  return WEIR_NAMED(ceilings.device, named("bytes_per_s", ceiling_json(ceilings.bandwidth)),
                    named("flop_per_s", compute));
}

Ceilings ceilings_from(const Json& document) {
  Ceilings ceilings;
  if (!document.is_object()) reject("ceilings are an object with device, bytes_per_s and flop_per_s");
  if (const auto device = document.find("device"); device != document.end() && device->is_string())
    ceilings.device = device->get<std::string>();
  if (const auto found = document.find("bytes_per_s"); found != document.end())
    ceilings.bandwidth = ceiling_from(*found);
  const auto compute = document.find("flop_per_s");
  if (compute != document.end() && compute->is_object())
    for (const Precision precision : package::kPrecisions)
      if (const auto found = compute->find(std::string(name_of(precision))); found != compute->end())
        ceilings.compute[precision] = ceiling_from(*found);
  return ceilings;
}

Json roofline(const package::Work& work, Precision precision, double seconds, const Ceilings* ceilings) {
  const std::optional<double> bandwidth = rate(work.bytes, seconds), compute = rate(work.flop, seconds);
  Ceiling memory_ceiling, compute_ceiling;
  if (ceilings != nullptr) {
    memory_ceiling = ceilings->bandwidth;
    const auto found = ceilings->compute.find(precision);
    if (found != ceilings->compute.end()) compute_ceiling = found->second;
  }
  const std::optional<double> of_memory = share(bandwidth, memory_ceiling.value);
  const std::optional<double> of_compute = share(compute, compute_ceiling.value);

  std::vector<std::string> reasons;
  if (!work.flop) reasons.push_back("the kernel does not report its flop");
  if (!work.bytes) reasons.push_back("the kernel does not report its bytes");
  if (!(seconds > 0)) reasons.push_back("there is no time");
  if (ceilings == nullptr) reasons.push_back("no ceilings were measured");
  if (ceilings != nullptr && work.bytes && !memory_ceiling.value)
    reasons.push_back("no bandwidth ceiling: " + memory_ceiling.how);
  if (ceilings != nullptr && work.flop && !compute_ceiling.value)
    reasons.push_back(fmt::format("no {} ceiling: {}", name_of(precision), compute_ceiling.how));

  // Bound by the ceiling that leaves less room at this intensity. That needs both ceilings: with only one, the fraction
  // of it is given and nothing is claimed about the other. A kernel that is faster than a ceiling is not bound by it.
  Json bound = nullptr;
  const bool do_ceilings_apply = of_memory.value_or(0) <= kStillAtCeiling && of_compute.value_or(0) <= kStillAtCeiling;
  if (of_memory && of_compute && do_ceilings_apply) bound = *of_memory >= *of_compute ? "memory" : "compute";
  std::optional<double> of_ceiling = of_memory;
  if (of_compute && (!of_memory || *of_compute > *of_memory)) of_ceiling = of_compute;
  const char* const of = !of_ceiling ? nullptr : of_ceiling == of_memory ? "bandwidth" : "compute";
  const bool is_beyond = of_ceiling && *of_ceiling > 1;
  if (is_beyond && of_ceiling == of_memory)
    reasons.push_back(fmt::format(
        "at {:.0f} % of the bandwidth of memory: the data stays in caches, or the reported bytes are too high",
        100 * *of_ceiling));
  else if (is_beyond)
    reasons.push_back(fmt::format(
        "at {:.0f} % of the measured compute ceiling: what measured it is slower, or the reported flop are too high",
        100 * *of_ceiling));
  if (!do_ceilings_apply) reasons.push_back("so this ceiling does not bound the kernel, and what does is not known");

  std::optional<double> intensity;
  if (work.flop && work.bytes && *work.bytes > 0) intensity = *work.flop / *work.bytes;
  Json json = WEIR_NAMED(
      work.flop, work.bytes, intensity, bound, of_ceiling, named("of", of == nullptr ? Json(nullptr) : Json(of)),
      is_beyond, named("bytes_per_s", bandwidth), named("flop_per_s", compute),
      named("ceiling_bytes_per_s", memory_ceiling.value), named("ceiling_flop_per_s", compute_ceiling.value));
  json["reason"] = reasons.empty() ? Json(nullptr) : Json(fmt::format("{}", fmt::join(reasons, "; ")));
  return json;
}

}  // namespace weir::bench
