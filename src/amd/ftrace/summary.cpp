#include "amd/ftrace/summary.h"

#include <algorithm>

#include "base/named_values.h"

namespace weir::ftrace {
namespace {

Json or_null_below_0(std::int64_t value) { return value < 0 ? Json() : Json(value); }

Json verb_document(KfdVerb verb, const VerbTally& tally) {
  return WEIR_NAMED(verb, tally.calls, tally.succeeded, tally.failed,
                    named("result_unknown", tally.calls - tally.succeeded - tally.failed),
                    named("exact_ns", tally.exact.document()), tally.bounded,
                    named("at_least_ns", tally.at_least.document()), named("at_most_ns", tally.at_most.document()),
                    named("length_unknown", tally.unknown));
}

Json repeats_document(const std::map<int, std::uint64_t>& repeats) {
  Json list = Json::array();
  for (const auto& [calls, creates] : repeats) list.push_back(WEIR_NAMED(calls, creates));
  return list;
}

}  // namespace

void VerbTally::add(const KfdSpan& span) {
  ++calls;
  if (has_failed(span)) {
    ++failed;
    return;
  }
  succeeded += span.result ? 1 : 0;
  if (span.end == EndKind::exact && span.duration_ns >= 0) return exact.add(span.duration_ns);
  const bool has_least = span.end == EndKind::at_least && span.duration_ns >= 0;
  if (has_least) at_least.add(span.duration_ns);
  if (span.longest_ns >= 0) at_most.add(span.longest_ns);
  ++(has_least || span.longest_ns >= 0 ? bounded : unknown);
}

void KfdSummary::on(const KfdSpan& span) {
  verbs_[static_cast<std::size_t>(span.verb)].add(span);
  const Owner owner = span.process ? Owner{true, *span.process} : Owner{false, span.pid};
  if (owners_.contains(owner) || owners_.size() < kOwners)
    owners_[owner][span.verb].add(span);
  else
    others_[span.verb].add(span);
  if (span.verb != KfdVerb::create) return;
  if (first_creates_.size() < kCreates) first_creates_.push_back(span);
  if (has_failed(span)) return;  // a queue that was not created has no MQD
  if (span.doorbell_allocations > 0) ++creates_with_doorbell_;
  const auto add = [](std::map<int, std::uint64_t>& repeats, int calls) {
    if (repeats.contains(calls) || repeats.size() < kRepeats) ++repeats[calls];
  };
  add(allocations_, span.mqd_allocations);
  add(inits_, span.mqd_inits);
}

Json KfdSummary::verbs_document() const {
  Json list = Json::array();
  for (std::size_t i = 0; i < kVerbs; ++i)
    if (verbs_[i].calls > 0) list.push_back(verb_document(static_cast<KfdVerb>(i), verbs_[i]));
  return list;
}

Json KfdSummary::processes_document() const {
  Json list = Json::array();
  const auto add = [&](const Json& process, const Json& thread, const std::map<KfdVerb, VerbTally>& verbs,
                       bool is_rest = false) {
    Json rows = Json::array();
    for (const auto& [verb, tally] : verbs) rows.push_back(verb_document(verb, tally));
    list.push_back({{"process", process}, {"thread", thread}, {"is_rest", is_rest}, {"verbs", std::move(rows)}});
  };
  for (const auto& [owner, verbs] : owners_) {
    const Json id = or_null_below_0(owner.id);
    add(owner.is_process ? id : Json(nullptr), owner.is_process ? Json(nullptr) : id, verbs);
  }
  if (!others_.empty()) add(nullptr, nullptr, others_, true);
  return list;
}

Json KfdSummary::mqds_document(const KfdCalls& calls) const {
  const bool was_traced = calls.mqd_allocate + calls.mqd_init > 0;
  const bool has_rows = was_traced && creates() > 0;
  return {{"allocate_calls", calls.mqd_allocate},
          {"init_calls", calls.mqd_init},
          {"init_all_xccs_calls", calls.mqd_init_all_xccs},
          {"load_calls", calls.mqd_load},
          {"update_calls", calls.mqd_update},
          {"destroy_calls", calls.mqd_destroy},
          {"free_calls", calls.mqd_free},
          {"create_texts", calls.mqd_texts},
          {"allocations_per_create", has_rows ? repeats_document(allocations_) : Json(nullptr)},
          {"inits_per_create", has_rows ? repeats_document(inits_) : Json(nullptr)}};
}

Json KfdSummary::creates_document() const {
  std::vector<KfdSpan> rows = first_creates_;
  std::sort(rows.begin(), rows.end(), [](const KfdSpan& a, const KfdSpan& b) { return a.line < b.line; });
  Json list = Json::array();
  for (const KfdSpan& span : rows) {
    const char* const end = span.end == EndKind::exact      ? "exact"
                            : span.end == EndKind::at_least ? "at_least"
                                                            : "unknown";
    list.push_back(WEIR_NAMED(span.line, span.process, named("thread", or_null_below_0(span.pid)),
                              time_or_null(span.started_ns), end, or_null_below_0(span.duration_ns),
                              or_null_below_0(span.longest_ns), span.result, span.queue_id, span.gpu_id, span.doorbell,
                              span.ring_base, span.ring_bytes, span.mqd_base, span.mqd_allocations, span.mqd_inits));
  }
  return list;
}

}  // namespace weir::ftrace
