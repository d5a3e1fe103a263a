#include "amd/compare/case_document.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>

#include "amd/compare/case_verdict.h"
#include "amd/compare/kernel_class.h"
#include "base/named_values.h"
#include "base/schemas.h"
#include "base/units.h"
#include "measure/result.h"

namespace weir::amd {
namespace {

constexpr std::size_t kMaxKernels = 50;
constexpr std::size_t kMaxQueues = 1000;

Json queue_json(const CaseQueue& queue) {
  constexpr const char* kPriorities[] = {"low", "normal", "high"};
  Json json = WEIR_NAMED(queue.label, named("kind", queue.kind == CaseQueue::Kind::compute ? "compute" : "copy"),
                         queue.seen_in, queue.pid);
  json["priority"] = queue.priority && *queue.priority >= 0 && *queue.priority <= 2 ? Json(kPriorities[*queue.priority])
                                                                                    : Json(nullptr);
  json.update(WEIR_NAMED(queue.ring_packets, queue.launches, queue.barriers, queue.streams));
  return json;
}

Json side_json(const CaseSide& side) {
  Json json = WEIR_NAMED(side.name, side.source, side.basis, side.pids, side.has_unknown_process);
  Json& queues = json["queues"];
  const bool are_known = side.queues_reason.empty();
  queues["compute"] = are_known ? Json(side.count(CaseQueue::Kind::compute)) : Json(nullptr);
  queues["compute_reason"] = text_or_null(side.queues_reason);
  queues["copy"] = side.copy_queues_reason.empty() ? Json(side.count(CaseQueue::Kind::copy)) : Json(nullptr);
  queues["copy_reason"] = text_or_null(side.copy_queues_reason);
  queues["list"] = Json::array();
  for (const CaseQueue& queue : side.queues)
    if (queues["list"].size() < kMaxQueues) queues["list"].push_back(queue_json(queue));
  json.update(WEIR_NAMED(side.launches, side.unnamed_launches, side.barriers, text_or_null(side.barriers_reason),
                         side.copies, side.copied_bytes, text_or_null(side.copies_reason), side.copy_engines,
                         side.launch_time, side.pause_time, number_or_null(side.observed_ns),
                         number_or_null(side.stretch_ns), side.notes));
  if (is_short(side) && !side.of(CaseQuantity::launch_rate).values.empty())
    json["notes"].push_back(fmt::format(
        "observed for {}: rates are of that time; intervals hold no change that is slower (warm-up, clocks).",
        format_duration(side.observed_ns)));
  return json;
}

Json top_json(const CaseSide& side, const std::set<std::string_view>& others) {
  Json list = Json::array();
  for (const CaseKernel& kernel : side.kernels) {
    if (list.size() == kMaxKernels) break;
    list.push_back(
        WEIR_NAMED(kernel.name, kernel.count, kernel.total_ns, named("is_common", others.contains(kernel.name))));
  }
  return list;
}

// By class, those of either side: how many kernels, launches, and how long they ran where that is known.
Json classes_json(const CaseSide& a, const CaseSide& b) {
  struct Sum {
    std::uint64_t kernels = 0, launches = 0;
    std::optional<double> total_ns;
  };
  const auto sums_of = [](const CaseSide& side) {
    std::array<Sum, kKernelClasses> sums;
    for (const CaseKernel& kernel : side.kernels) {
      Sum& sum = sums[static_cast<std::size_t>(class_of(kernel.name))];
      ++sum.kernels;
      sum.launches += kernel.count;
      if (kernel.total_ns) sum.total_ns = sum.total_ns.value_or(0) + *kernel.total_ns;
    }
    return sums;
  };
  const auto of_a = sums_of(a), of_b = sums_of(b);
  const auto json_of = [](const Sum& sum) { return WEIR_NAMED(sum.kernels, sum.launches, sum.total_ns); };
  Json list = Json::array();
  for (std::size_t i = 0; i < kKernelClasses; ++i) {
    if (of_a[i].kernels + of_b[i].kernels == 0) continue;
    Json row;
    row["class"] = name_of(static_cast<KernelClass>(i));
    row["a"] = json_of(of_a[i]);
    row["b"] = json_of(of_b[i]);
    list.push_back(std::move(row));
  }
  return list;
}

Json kernels_json(const CaseSide& a, const CaseSide& b) {
  std::set<std::string_view> first, second;
  for (const CaseKernel& kernel : a.kernels) first.insert(kernel.name);
  for (const CaseKernel& kernel : b.kernels) second.insert(kernel.name);
  const auto common = std::count_if(first.begin(), first.end(), [&](auto name) { return second.contains(name); });
  const bool are_known = a.kernels_reason.empty() && b.kernels_reason.empty();
  Json json;
  json["a"] = a.kernels_reason.empty() ? Json(first.size()) : Json(nullptr);
  json["b"] = b.kernels_reason.empty() ? Json(second.size()) : Json(nullptr);
  json["common"] = are_known ? Json(common) : Json(nullptr);
  json["reason"] = text_or_null(both_reasons(a.kernels_reason, b.kernels_reason));
  json["classes"] = classes_json(a, b);
  json["top_a"] = top_json(a, second);
  json["top_b"] = top_json(b, first);
  return json;
}

Json compared_json(const Compared& row) {
  const auto side = [](const ComparedSide& of) {
    return WEIR_NAMED(of.samples, of.value, interval_or_null(of.interval));
  };
  return WEIR_NAMED(named("quantity", row.name), row.unit, row.statistic, side(row.a), side(row.b), row.ratio,
                    named("p", row.adjusted_p), row.claim, text_or_null(row.reason));
}

Json relation_json(const QueueRelation& relation) {
  Json json;
  json["relation"] = name_of(relation.kind);
  json["reason"] = relation.reason;
  const bool is_relation_known = relation.kind != QueueRelation::Kind::unknown;
  json["shared"] = is_relation_known ? Json(relation.shared) : Json(nullptr);
  json.update(WEIR_NAMED(relation.only_a, relation.only_b, relation.equal_addresses, relation.common_slots));
  return json;
}

Json verdict_json(const PreemptionVerdict& verdict) {
  Json json = WEIR_NAMED(named("is_rule", true), text_or_null(verdict.strategy), verdict.because, verdict.premise,
                         verdict.is_premise_assumed);
  json["strategies"] = Json::array();
  for (const StrategyVerdict& each : verdict.strategies) {
    Json numbers = Json::array();
    for (const RuleNumber& number : each.numbers)
      numbers.push_back(WEIR_NAMED(number.what, number.unit, number.value, interval_or_null(number.interval),
                                   text_or_null(number.bound), text_or_null(number.reason)));
    json["strategies"].push_back(WEIR_NAMED(each.strategy, each.fit, each.because, each.rule, numbers));
  }
  return json;
}

}  // namespace

Json case_comparison(const CaseSide& a, const CaseSide& b) {
  const std::vector<Compared> compared = compare_quantities(a, b);
  const QueueRelation relation = relate_queues(a, b);
  Json json;
  json["schema"] = schemas::amd_compare;
  json["confidence"] = 0.95;
  json["largest_p"] = kLargestP;
  json.update(WEIR_NAMED(side_json(a), side_json(b)));
  json["queues"] = relation_json(relation);
  json["kernels"] = kernels_json(a, b);
  json["quantities"] = json_list(compared, compared_json);
  json["expected"] = Json::array();
  for (const Expectation& row : check_expectations(a, b))
    json["expected"].push_back(WEIR_NAMED(row.side, row.expected, row.observed, row.outcome, text_or_null(row.reason)));
  json["verdict"] = verdict_json(judge_preemption(a, b, compared, relation));
  return json;
}

}  // namespace weir::amd
