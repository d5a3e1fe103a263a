#include "amd/compare/roadmap.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <set>

#include "amd/compare/case_document.h"
#include "amd/compare/case_verdict.h"
#include "amd/compare/kernel_class.h"
#include "amd/kfd/snapshot.h"
#include "base/error.h"
#include "base/named_values.h"
#include "base/schemas.h"
#include "base/units.h"
#include "measure/statistics.h"
#include "trace/import/byte_source.h"

namespace weir::amd {
namespace {

namespace fs = std::filesystem;

const CapturePart* part_of(const RoadmapCase& from, std::string_view name) {
  if (!from.manifest) return nullptr;
  for (const CapturePart& part : from.manifest->parts)
    if (part.name == name) return &part;
  return nullptr;
}
bool has_files(const CapturePart* part) { return part != nullptr && !part->files.empty(); }

std::string why_missing(const RoadmapCase& from, std::string_view name) {
  if (!from.manifest) return "not a folder of `weir amd capture`";
  const CapturePart* const part = part_of(from, name);
  return part == nullptr || part->reason.empty() ? fmt::format("the capture has no {}", name) : part->reason;
}

void load_trace(const fs::path& folder, RoadmapCase& to) {
  const CapturePart* const part = part_of(to, "ftrace");
  if (!has_files(part)) {
    to.trace_reason = why_missing(to, "ftrace");
    return;
  }
  try {
    to.trace = std::make_unique<RoadmapTrace>();
    const auto source = open_bytes(folder / part->files[0]);
    to.trace->counters = ftrace::read_ftrace(*source, to.trace->summary, {part->files[0], {}});
  } catch (const Error& error) {
    to.trace.reset();
    to.trace_reason = error.what();
  }
}

void load_snapshots(const fs::path& folder, RoadmapCase& to) {
  for (const CaptureSnapshot& snapshot : to.manifest->snapshots) {
    if (!snapshot.when.starts_with("during")) continue;
    const kfd::Snapshot loaded = kfd::load_snapshot(folder / snapshot.folder);
    if (!loaded.hqds) continue;
    ++to.hqd_snapshots;
    std::size_t active = 0;
    for (const kfd::Queue& queue : kfd::queues_of(loaded)) {
      if (queue.kind == kfd::QueueKind::hiq) continue;
      active += queue.is_active ? 1 : 0;
      if (queue.backlog_packets) to.snapshot_backlog.push_back(static_cast<double>(*queue.backlog_packets));
    }
    to.active_queues = std::max(to.active_queues, active);
  }
  if (to.hqd_snapshots == 0) to.hqds_reason = why_missing(to, "hqds");
}

RoadmapTarget target_of(std::string_view side, std::string_view name, std::string_view limit, std::string_view unit) {
  RoadmapTarget target;
  target.side = side;
  target.name = name;
  target.limit = limit;
  target.unit = unit;
  return target;
}

std::string no_creates(const RoadmapCase& from) {
  return from.trace->counters.has_losses()
             ? "no creation of a queue is in the kernel trace, and part of it was lost"
             : "no creation of a queue is in the kernel trace: there was none, or the filter left it out";
}

// Exact durations decide; without any, bounds can do so on one side each.
RoadmapTarget judge_creation(std::string_view side, const RoadmapCase& from) {
  RoadmapTarget target = target_of(side, "queue_creation", "< 1 ms in KFD", "ns");
  if (!from.trace) {
    target.because = from.trace_reason;
    return target;
  }
  const ftrace::VerbTally& creates = from.trace->summary.of(ftrace::KfdVerb::create);
  const auto take = [&](const ftrace::Tally& tally) {
    target.p50 = tally.quantile(0.5);
    target.p99 = tally.quantile(0.99);
    target.largest = static_cast<double>(tally.largest());
  };
  if (from.trace->summary.creates() == 0) {
    target.because = no_creates(from);
  } else if (creates.exact.count() > 0) {
    take(creates.exact);
    target.outcome = *target.p99 < kMostCreateNs ? TargetOutcome::met : TargetOutcome::missed;
    target.because =
        fmt::format("{} creations in the kernel trace; KFD's part, the runtime takes longer", creates.exact.count());
  } else if (creates.at_most.count() > 0 && creates.at_most.quantile(0.99) < kMostCreateNs) {
    take(creates.at_most);
    target.outcome = TargetOutcome::met;
    target.because = "at most: returns were not traced, later calls bound the times";
  } else if (creates.at_least.count() > 0 && creates.at_least.quantile(0.5) >= kMostCreateNs) {
    take(creates.at_least);
    target.outcome = TargetOutcome::missed;
    target.because = "at least: returns were not traced, calls within the creation bound the times";
  } else {
    target.because = "only entries were traced: use `weir amd capture --graph`";
  }
  return target;
}

// [{"calls": 1, "creates": 5}, ...]
RoadmapTarget judge_mqds(std::string_view side, const RoadmapCase& from) {
  RoadmapTarget target = target_of(side, "mqd_operations", "1-2 per queue", "calls");
  if (!from.trace) {
    target.because = from.trace_reason;
    return target;
  }
  if (from.trace->summary.creates() == 0) {
    target.because = no_creates(from);
    return target;
  }
  const Json mqds = from.trace->summary.mqds_document(from.trace->counters.calls);
  std::vector<double> calls, inits;
  const auto take = [](const Json& rows, std::vector<double>& to) {
    if (!rows.is_array()) return;
    for (const Json& row : rows)
      to.insert(to.end(),
                static_cast<std::size_t>(std::min<std::uint64_t>(row["creates"].get<std::uint64_t>(), 100'000)),
                row["calls"].get<double>());
  };
  take(mqds["allocations_per_create"], calls);
  take(mqds["inits_per_create"], inits);
  if (calls.empty() || *std::max_element(calls.begin(), calls.end()) == 0) {
    target.because = "no allocate_mqd was seen below a creation: the filter may have left it out";
    return target;
  }
  target.p50 = quantile(calls, 0.5);
  target.p99 = quantile(calls, 0.99);
  target.largest = *std::max_element(calls.begin(), calls.end());
  target.outcome = *target.largest <= kMostMqdCalls ? TargetOutcome::met : TargetOutcome::missed;
  target.because = "allocations of an MQD within a creation";
  if (!inits.empty() && *std::max_element(inits.begin(), inits.end()) > 1)
    target.because += fmt::format("; it is initialised up to {:.0f}x, once for each XCC of a partitioned chip",
                                  *std::max_element(inits.begin(), inits.end()));
  return target;
}

// The same rules as the answer of `weir amd ftrace`: what a filter left out is no evidence.
RoadmapTarget judge_kernel_queue(std::string_view side, const RoadmapCase& from) {
  RoadmapTarget target = target_of(side, "kernel_queue", "0 jobs", "calls");
  if (!from.trace) {
    target.because = from.trace_reason;
    return target;
  }
  const ftrace::KfdCalls& calls = from.trace->counters.calls;
  if (const std::uint64_t used = calls.kcq + calls.compute_ring_jobs; used > 0) {
    target.largest = static_cast<double>(used);
    target.outcome = TargetOutcome::missed;
    target.because =
        fmt::format("{} calls of kernel compute queues, {} jobs on compute rings; the trace is of all programs",
                    calls.kcq, calls.compute_ring_jobs);
  } else if (from.trace->counters.has_losses()) {
    target.because = "none of its functions was seen, but events were lost";
  } else if (calls.amdgpu_beyond_kfd == 0) {
    target.because = "no function of amdgpu outside KFD is in the trace: the filter may have left kernel queues out";
  } else {
    target.largest = 0;
    target.outcome = TargetOutcome::met;
    target.because = fmt::format("none among {} calls of amdgpu outside KFD", calls.amdgpu_beyond_kfd);
  }
  return target;
}

RoadmapTarget judge_backlog(std::string_view side, const RoadmapCase& from) {
  RoadmapTarget target = target_of(side, "backlog", "< 100", "packets");
  std::vector<double> values;
  if (from.side && !from.side->of(CaseQuantity::backlog).values.empty()) {
    values = from.side->of(CaseQuantity::backlog).values;
    const bool is_timeline = from.side->source == CaseSource::timeline;
    if (is_timeline) target.unit = "launches";
    target.because = fmt::format("{} samples of {}", values.size(),
                                 is_timeline ? "launches that were handed over and had not started"
                                             : "packets that were not read yet when one was written");
  } else if (!from.snapshot_backlog.empty()) {
    values = from.snapshot_backlog;
    target.because = fmt::format("{} queues in {} snapshots", values.size(), from.hqd_snapshots);
  } else {
    target.because = !from.side ? from.side_reason
                     : from.side->of(CaseQuantity::backlog).reason.empty()
                         ? "neither log nor snapshots show it"
                         : from.side->of(CaseQuantity::backlog).reason;
    return target;
  }
  target.p50 = quantile(values, 0.5);
  target.p99 = quantile(values, 0.99);
  target.largest = *std::max_element(values.begin(), values.end());
  target.outcome = *target.p99 < kBacklogLimit ? TargetOutcome::met : TargetOutcome::missed;
  return target;
}

// Kernels of the classes that the roadmap expects of a case.
RoadmapTarget judge_classes(std::string_view side, const RoadmapCase& from, std::string_view limit,
                            std::initializer_list<KernelClass> wanted) {
  RoadmapTarget target = target_of(side, "kernel_classes", limit, "kernels");
  if (!from.side || from.side->kernels.empty()) {
    target.because = !from.side                          ? from.side_reason
                     : from.side->kernels_reason.empty() ? "no kernel is named"
                                                         : from.side->kernels_reason;
    return target;
  }
  std::array<std::uint64_t, kKernelClasses> launches{};
  for (const CaseKernel& kernel : from.side->kernels)
    launches[static_cast<std::size_t>(class_of(kernel.name))] += kernel.count;
  std::vector<std::string> seen, missing;
  for (const KernelClass each : wanted)
    (launches[static_cast<std::size_t>(each)] > 0 ? seen : missing).emplace_back(name_of(each));
  target.outcome = missing.empty() ? TargetOutcome::met : TargetOutcome::missed;
  target.because = fmt::format("seen by name: {}{}{}", seen.empty() ? "none" : fmt::format("{}", fmt::join(seen, ", ")),
                               missing.empty() ? "" : "; not seen: ", fmt::join(missing, ", "));
  return target;
}

RoadmapTarget judge_rate(const RoadmapCase& a, const RoadmapCase& b) {
  RoadmapTarget target = target_of("a", "launch_rate", "more than B", "1/s");
  if (!a.side || !b.side) {
    target.because = both_reasons(a.side_reason, b.side_reason);
    return target;
  }
  for (const Compared& row : compare_quantities(*a.side, *b.side)) {
    if (row.quantity != CaseQuantity::launch_rate) continue;
    target.p50 = row.a.value;
    target.outcome = row.claim == Claim::a_more   ? TargetOutcome::met
                     : row.claim == Claim::b_more ? TargetOutcome::missed
                                                  : TargetOutcome::cannot_say;
    target.because =
        row.reason.empty() && row.a.value && row.b.value
            ? fmt::format("{}/s against {}/s: {}", format_quantity(*row.a.value), format_quantity(*row.b.value),
                          row.claim == Claim::ambiguous ? "the intervals overlap" : "the intervals are apart")
            : row.reason;
  }
  return target;
}

}  // namespace

std::string_view name_of(TargetOutcome outcome) {
  constexpr std::string_view kNames[] = {"met", "missed", "cannot_say"};
  return kNames[static_cast<std::size_t>(outcome)];
}

RoadmapCase load_roadmap_case(const fs::path& path, const CaseLoadOptions& options) {
  RoadmapCase loaded;
  loaded.name = path.string();
  std::error_code status;
  if (!fs::is_directory(path, status)) {
    loaded.side = load_case(path, options);
    loaded.trace_reason = loaded.hqds_reason = why_missing(loaded, "");
    return loaded;
  }
  loaded.manifest = load_manifest(path);
  load_trace(path, loaded);
  load_snapshots(path, loaded);
  try {
    const bool has_profile = !has_files(part_of(loaded, "log")) && fs::is_regular_file(path / kProfileFile, status);
    loaded.side = load_case(has_profile ? path / kProfileFile : path, options);
  } catch (const Error& error) {
    loaded.side_reason = error.what();
  }
  return loaded;
}

std::vector<RoadmapTarget> judge_targets(const RoadmapCase& a, const RoadmapCase& b) {
  std::vector<RoadmapTarget> targets;
  for (const auto& [side, from] : {std::pair<std::string_view, const RoadmapCase*>("a", &a), {"b", &b}}) {
    targets.push_back(judge_creation(side, *from));
    targets.push_back(judge_mqds(side, *from));
    targets.push_back(judge_kernel_queue(side, *from));
    targets.push_back(judge_backlog(side, *from));
  }
  using enum KernelClass;
  targets.push_back(
      judge_classes("a", a, "convolution, pooling, normalisation", {convolution, pooling, normalisation}));
  targets.push_back(judge_classes("b", b, "matmul, softmax", {matmul, softmax}));
  targets.push_back(judge_rate(a, b));
  return targets;
}

Json roadmap_document(const RoadmapCase& a, const RoadmapCase& b) {
  Json json;
  json["schema"] = schemas::amd_roadmap;
  json["a"] = a.name;
  json["b"] = b.name;
  json["targets"] = Json::array();
  for (const RoadmapTarget& target : judge_targets(a, b)) {
    Json measured = WEIR_NAMED(target.p50, target.p99, named("max", target.largest));
    json["targets"].push_back(WEIR_NAMED(target.side, target.name, target.limit, target.unit, std::move(measured),
                                         target.outcome, target.because));
  }
  json["checklist"] = Json::array();
  for (const RoadmapCheck& check : tick_checklist(a, b))
    json["checklist"].push_back(WEIR_NAMED(check.phase, check.item, check.state, check.because));
  const bool has_both = a.side && b.side;
  json["comparison"] = has_both ? case_comparison(*a.side, *b.side) : Json(nullptr);
  json["comparison_reason"] = text_or_null(has_both ? "" : both_reasons(a.side_reason, b.side_reason));
  return json;
}

}  // namespace weir::amd
