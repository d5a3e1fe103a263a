#include "trace/analyse/efficiency.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "trace/analyse/operator_calls.h"
#include "trace/device_spans.h"
#include "trace/intervals.h"

namespace weir {
namespace {

// Kernels that multiply 32-bit numbers with 19 of their bits: sm80_xmma_gemm_f32f32_tf32f32_f32_nn_n_...,
// cutlass_80_tensorop_s1688gemm_128x256_..., ampere_tf32_...
bool speaks_of_tf32(std::string_view kernel) {
  return kernel.find("tf32") != std::string_view::npos || kernel.find("s1688") != std::string_view::npos;
}

struct Use {
  std::size_t calls = 0, commands = 0;
  double total_ns = 0;
  bool has_tf32 = false;
};

std::string_view text_of(std::span<const std::string> names, std::uint32_t name) {
  return name < names.size() ? std::string_view(names[name]) : std::string_view();
}

void judge(OperatorEfficiency& one, bool is_matrix, const DevicePeaks& peaks) {
  const auto compute = peaks.flop_per_s(one.type, is_matrix);
  std::string missing;
  if (one.flop && *one.flop > 0 && !compute)
    missing = fmt::format("the peak for {} is not known", to_string(one.type));
  else if (!one.bytes || !one.flop)
    missing = one.bytes ? "its flop are not known" : "its bytes are not known";
  else if (!peaks.bytes_per_s)
    missing = "the peak of the device's memory is not known";
  if (!missing.empty()) {
    if (one.reason.empty()) one.reason = std::move(missing);
    return;
  }
  const auto calls = static_cast<double>(one.calls);
  const double computing_ns = *one.flop > 0 ? calls * *one.flop / *compute * 1e9 : 0;
  const double moving_ns = calls * *one.bytes / *peaks.bytes_per_s * 1e9;
  one.bound = computing_ns > moving_ns ? Bound::compute : Bound::memory;
  const double best_ns = std::max(computing_ns, moving_ns);
  one.share = best_ns / one.total_ns;
  one.saved_ns = std::max(0.0, one.total_ns - best_ns);
}

OperatorEfficiency made_of(std::uint32_t name, std::uint32_t shapes, const Use& use, std::span<const std::string> names,
                           const DevicePeaks* peaks) {
  OperatorEfficiency one;
  one.name = name;
  one.shapes = shapes;
  one.calls = use.calls;
  one.commands = use.commands;
  one.total_ns = use.total_ns;
  OperatorCost cost = operator_cost(text_of(names, name), text_of(names, shapes));
  one.flop = cost.flop;
  one.bytes = cost.bytes;
  one.reason = std::move(cost.reason);
  one.type = cost.is_matrix && cost.type == NumberType::f32 && use.has_tf32 ? NumberType::tf32 : cost.type;
  if (use.calls == 0 && (one.flop || one.bytes)) {
    one.reason = "the trace does not say how often it was called";
    return one;
  }
  if (use.total_ns <= 0) {
    if (one.flop || one.bytes) one.reason = "its commands have no length";
    return one;
  }
  const auto rate = [&](const std::optional<double>& amount) {
    return amount ? std::optional(*amount * static_cast<double>(use.calls) / use.total_ns * 1e9) : std::nullopt;
  };
  one.flop_per_s = rate(one.flop);
  one.bytes_per_s = rate(one.bytes);
  if (peaks != nullptr && (one.flop || one.bytes)) judge(one, cost.is_matrix, *peaks);
  return one;
}

}  // namespace

const char* to_string(Bound bound) noexcept { return bound == Bound::compute ? "compute" : "memory"; }

Efficiency efficiency(const Timeline& timeline, std::span<const std::string> names, const TraceDevice& device,
                      const DevicePeaks* measured) {
  Efficiency found;
  if (!timeline.has_operations) {
    found.reason = "operators were not read (--operators reads those of PyTorch's and XLA's traces)";
    return found;
  }
  std::map<std::pair<std::uint32_t, std::uint32_t>, Use> uses;
  const auto key_of = [&](std::uint32_t operation) {
    return std::pair(timeline.operations[operation].name, timeline.operations[operation].shapes);
  };
  for (const Span& span : timeline.spans) {
    // Collectives are bound by links, and have a table of their own.
    if (!is_device_work(span) || span.kind == SpanKind::collective) continue;
    const std::uint32_t operation = operator_of(timeline, span.call);
    if (operation == kNoOperation) continue;
    Use& use = uses[key_of(operation)];
    ++use.commands;
    use.total_ns += static_cast<double>(distance_ns(span.started_ns, span.ended_ns));
    use.has_tf32 |= span.kind == SpanKind::kernel && speaks_of_tf32(text_of(names, span.name));
  }
  if (uses.empty()) {
    found.reason = "no command was submitted within an operator that the source names";
    return found;
  }
  const std::vector<bool> begins = operator_calls(timeline);
  for (std::uint32_t i = 0; i < timeline.calls.size(); ++i)
    if (begins[i])
      if (const auto use = uses.find(key_of(operator_of(timeline, i))); use != uses.end()) ++use->second.calls;

  PeaksFound peaks = device_peaks(device, measured);
  found.peaks = std::move(peaks.peaks);
  found.peaks_reason = std::move(peaks.reason);
  std::map<std::string, UnknownEfficiency> unknown;
  for (const auto& [key, use] : uses) {
    found.all.push_back(made_of(key.first, key.second, use, names, found.peaks ? &*found.peaks : nullptr));
    const OperatorEfficiency& one = found.all.back();
    if (one.share) {
      found.judged_ns += one.total_ns;
      found.saved_ns += *one.saved_ns;
      continue;
    }
    const std::string& reason = one.reason.empty() ? found.peaks_reason : one.reason;
    UnknownEfficiency& sum = unknown.try_emplace(reason, UnknownEfficiency{reason, 0, 0, 0}).first->second;
    ++sum.operators;
    sum.commands += use.commands;
    sum.total_ns += use.total_ns;
  }
  for (auto& [reason, sum] : unknown) found.unknown.push_back(std::move(sum));
  std::stable_sort(found.unknown.begin(), found.unknown.end(),
                   [](const auto& a, const auto& b) { return a.total_ns > b.total_ns; });
  std::stable_sort(found.all.begin(), found.all.end(), [](const OperatorEfficiency& a, const OperatorEfficiency& b) {
    return std::tuple(a.saved_ns.value_or(-1), a.total_ns) > std::tuple(b.saved_ns.value_or(-1), b.total_ns);
  });
  return found;
}

}  // namespace weir
