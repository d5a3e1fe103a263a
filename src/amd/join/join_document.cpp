#include "amd/join/join_document.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/named_values.h"
#include "base/schemas.h"

namespace weir::amd {
namespace {

Json address_or_null(const std::optional<std::uint64_t>& address) {
  return address ? Json(address_text(*address)) : Json(nullptr);
}
Json gpu_or_null(const std::optional<std::uint32_t>& id) {
  return id ? Json(fmt::format("{:#06x}", *id)) : Json(nullptr);
}

Json range_json(const std::optional<DurationRange>& range) {
  if (!range) return nullptr;
  return {{"least_ns", range->least_ns},
          {"most_ns", range->most_ns == INT64_MAX ? Json(nullptr) : Json(range->most_ns)},
          {"is_distinguishable", range->is_distinguishable}};
}

Json process_json(const JoinedProcess& process) {
  return {{"log_pid", or_null(process.log_pid)},
          {"host_pid", or_null(process.host_pid)},
          {"name", text_or_null(process.name)},
          {"rests_on", process.basis == ProcessBasis::none ? Json(nullptr) : Json(name_of(process.basis))},
          {"rings_in_common", process.basis == ProcessBasis::rings ? Json(process.rings) : Json(nullptr)},
          {"reason", process.host_pid ? Json(nullptr) : text_or_null(process.reason)}};
}

Json clock_json(const JoinInput& input, const ClockOffset& clock) {
  const bool is_known = clock.is_known();
  const auto range_json = [](const OffsetRange& range) { return WEIR_NAMED(range.low_ns, range.high_ns); };
  return {{"trace_clock", text_or_null(input.trace_clock)},
          {"offset_ns", is_known ? Json(clock.middle_ns()) : Json(nullptr)},
          {"error_ns", is_known ? Json(clock.half_width_ns()) : Json(nullptr)},
          {"stamp_error_ns", kStampErrorNs},
          {"rests_on", is_known ? Json(name_of(clock.basis)) : Json(nullptr)},
          {"brackets", clock.brackets},
          {"left_out", clock.left_out},
          {"unused", clock.unused},
          {"alternatives", json_list(clock.alternatives, range_json)},
          {"reason", is_known ? Json(nullptr) : text_or_null(clock.reason)},
          {"warning", text_or_null(clock.warning)}};
}

Json runtime_json(const JoinedQueue& queue) {
  if (queue.runtime == nullptr) return nullptr;
  const QueueSummary& runtime = *queue.runtime;
  Json streams = json_list(queue.streams, [](const JoinedStream& stream) {
    return WEIR_NAMED(address_text(stream.handle), stream.priority, time_or_null(stream.since_ns), stream.is_default);
  });
  return WEIR_NAMED(address_text(runtime.hwq),
                    named("swq", runtime.swq == 0 ? Json(nullptr) : Json(address_text(runtime.swq))),
                    named("rocr_id", runtime.id), runtime.priority, named("ring_packets", runtime.packets),
                    runtime.is_cooperative, time_or_null(runtime.asked_ns), time_or_null(runtime.created_ns),
                    time_or_null(runtime.deleted_ns), std::move(streams), runtime.streams_now, runtime.streams_most,
                    runtime.dispatches, runtime.barriers, named("most_backlog_at_submit", runtime.backlog.max()));
}

Json kfd_json(const JoinedQueue& queue) {
  const ftrace::KfdSpan* const create = queue.create;
  if (create == nullptr && !queue.kfd_id()) return nullptr;
  return {{"queue_id", or_null(queue.kfd_id())},
          {"create_started_ns", create == nullptr ? Json(nullptr) : time_or_null(create->started_ns)},
          {"create_ended_ns", create == nullptr ? Json(nullptr) : time_or_null(create->ended_ns)},
          {"is_end_exact", create == nullptr ? Json(nullptr) : Json(create->end == ftrace::EndKind::exact)},
          {"destroy_started_ns", queue.destroy == nullptr ? Json(nullptr) : Json(queue.destroy->started_ns)},
          {"line", create == nullptr ? Json(nullptr) : Json(create->line)}};
}

Json sighting_json(const JoinInput& input, const Sighting& sighting) {
  const kfd::Queue& queue = *sighting.queue;
  Json slots =
      json_list(queue.slots, [](const kfd::Slot& slot) { return WEIR_NAMED(slot.xcc, slot.pipe, slot.queue); });
  return WEIR_NAMED(named("snapshot", input.snapshots[sighting.snapshot].when),
                    time_or_null(input.snapshots[sighting.snapshot].taken_ns),
                    named("is_active", queue.is_mapping_known ? Json(queue.is_active) : Json()), std::move(slots),
                    queue.vmid, queue.pipe_priority, queue.queue_priority, queue.backlog_packets, queue.was_preempted,
                    queue.save_ticks, queue.restore_ticks);
}

// Constant values are printed once, the others as a series over the snapshots.
Json hardware_json(const JoinInput& input, const JoinedQueue& queue) {
  if (queue.sightings.empty()) return nullptr;
  Json hardware = {{"kind", nullptr},
                   {"ring_base", nullptr},
                   {"ring_bytes", nullptr},
                   {"doorbell", nullptr},
                   {"mqd_bases", Json::array()}};
  Json series = Json::array();
  std::optional<std::uint64_t> most_backlog;
  for (const Sighting& sighting : queue.sightings) {
    const kfd::Queue& seen = *sighting.queue;
    if (hardware["kind"].is_null() && seen.kind != kfd::QueueKind::unknown) hardware["kind"] = name_of(seen.kind);
    if (hardware["ring_base"].is_null() && seen.ring_base != 0) hardware["ring_base"] = address_text(seen.ring_base);
    if (hardware["ring_bytes"].is_null() && seen.ring_bytes != 0) hardware["ring_bytes"] = seen.ring_bytes;
    if (hardware["doorbell"].is_null() && seen.doorbell) hardware["doorbell"] = address_text(*seen.doorbell);
    if (hardware["mqd_bases"].empty())
      for (const std::uint64_t base : seen.mqd_bases) hardware["mqd_bases"].push_back(address_text(base));
    if (seen.backlog_packets) most_backlog = std::max(most_backlog.value_or(0), *seen.backlog_packets);
    series.push_back(sighting_json(input, sighting));
  }
  hardware["most_backlog_packets"] = or_null(most_backlog);
  hardware["series"] = std::move(series);
  return hardware;
}

Json queue_json(const JoinInput& input, const Join& join, const JoinedQueue& queue) {
  Json evidence = Json::array();
  for (const Evidence& each : queue.evidence) {
    Json by = json_list(each.keys, [](MatchKey key) { return name_of(key); });
    const Json snapshot = each.snapshot ? Json(input.snapshots[*each.snapshot].when) : Json(nullptr);
    evidence.push_back(WEIR_NAMED(each.from, each.to, std::move(by), snapshot, each.is_process_known));
  }
  Json missing =
      json_list(queue.absences, [](const Absence& absence) { return WEIR_NAMED(absence.part, absence.reason); });
  return {{"role", name_of(queue.role)},
          {"log_pid", queue.process ? or_null(join.processes[*queue.process].log_pid) : Json(nullptr)},
          {"host_pid", or_null(queue.host_pid)},
          {"gpu_id", gpu_or_null(queue.gpu_id())},
          {"ring_base", address_or_null(queue.ring())},
          {"runtime", runtime_json(queue)},
          {"kfd", kfd_json(queue)},
          {"hardware", hardware_json(input, queue)},
          {"evidence", std::move(evidence)},
          {"missing", std::move(missing)},
          {"creation", WEIR_NAMED(range_json(queue.hops.asked_to_entered), range_json(queue.hops.entered_to_left),
                                  range_json(queue.hops.left_to_created), range_json(queue.hops.asked_to_created),
                                  text_or_null(queue.hops.reason))}};
}

Json part_json(const JoinPart& part) {
  return WEIR_NAMED(part.name, part.files, part.is_read, text_or_null(part.reason), text_or_null(part.hint),
                    part.facts);
}

}  // namespace

std::string_view name_of(ProcessBasis basis) {
  constexpr std::string_view kNames[] = {"nothing", "manifest", "only process of the manifest", "given",
                                         "rings in common"};
  return kNames[static_cast<std::size_t>(basis)];
}

std::string_view name_of(OffsetBasis basis) {
  constexpr std::string_view kNames[] = {"nothing", "same clock", "brackets", "brackets paired by order"};
  return kNames[static_cast<std::size_t>(basis)];
}

std::string_view name_of(QueueRole role) {
  constexpr std::string_view kNames[] = {"runtime", "internal", "unlogged", "other process", "unknown process"};
  return kNames[static_cast<std::size_t>(role)];
}

std::string_view name_of(MatchKey key) {
  constexpr std::string_view kNames[] = {"ring", "queue id", "mqd", "doorbell", "time"};
  return kNames[static_cast<std::size_t>(key)];
}

std::string_view name_of(MatchSide side) {
  constexpr std::string_view kNames[] = {"log", "trace", "snapshot"};
  return kNames[static_cast<std::size_t>(side)];
}

std::string address_text(std::uint64_t address) { return fmt::format("{:#x}", address); }

Json join_document(const JoinInput& input, const Join& join, const JoinAbout& about) {
  Json document = WEIR_NAMED(named("schema", schemas::amd_join), text_or_null(about.folder), about.command);
  document["parts"] = json_list(about.parts, part_json);
  document["processes"] = json_list(join.processes, process_json);
  document["clock"] = clock_json(input, join.clock);
  document["snapshots"] = json_list(input.snapshots, [](const JoinSnapshot& snapshot) {
    return WEIR_NAMED(snapshot.when, time_or_null(snapshot.taken_ns), named("queues", snapshot.queues.size()));
  });
  document["queues"] = json_list(join.queues, [&](const JoinedQueue& queue) { return queue_json(input, join, queue); });
  document.update(WEIR_NAMED(join.failed_creates, join.unplaced_creates, join.unplaced_sightings));
  document["verdicts"] = join_verdicts(input, join);
  document["notes"] = join.notes;
  document["timeline"] = nullptr;
  return document;
}

}  // namespace weir::amd
