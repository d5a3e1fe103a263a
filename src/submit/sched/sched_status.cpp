#include "submit/sched/sched_status.h"

#include <algorithm>
#include <bit>

#include "base/named_values.h"
#include "base/schemas.h"
#include "submit/sched/chooser_reasons.h"

namespace weir::scheduler {
namespace {

constexpr std::string_view kGate = "gate";

// Limits counters, because they come from memory that clients write.
Json counted(std::uint64_t value) { return std::min<std::uint64_t>(value, std::uint64_t{1} << 62); }

Json client_document(const SchedulerSnapshot& snapshot, int seat) {
  const Conductor& conductor = *snapshot.conductor;
  const Client& client = conductor.client(seat);
  const auto index = static_cast<std::size_t>(seat);
  const Occupant& occupant = (*snapshot.occupants)[index];
  const Seat& place = snapshot.board->seats[index];
  constexpr auto kCount = std::memory_order_relaxed;

  // The clients that it waits for at this moment; an idle client waits for nobody.
  Json waits_for = Json::array();
  std::uint64_t ahead = client.is_active ? conductor.yields_to(seat) & conductor.active() : 0;
  for (; ahead != 0; ahead &= ahead - 1) {
    const int other = std::countr_zero(ahead);
    waits_for.push_back(
        {{"seat", other}, {"pid", positive_or_null((*snapshot.occupants)[static_cast<std::size_t>(other)].pid)}});
  }
  const std::uint32_t bound = place.in_flight.load(kCount);
  // A client that is alone passes its gate uncounted.
  const bool is_shared = conductor.clients() > 1;
  Json json =
      WEIR_NAMED(seat, positive_or_null(occupant.pid), occupant.program, client.terms.priority, client.terms.weight);
  json["deadline_ns"] = positive_or_null(client.terms.deadline_ns);
  json["request_bound_ns"] = {{"p99", positive_or_null(client.terms.p99_ns)}};
  json["is_isolated"] = client.terms.is_isolated;
  json["joined_ns_ago"] = std::max<std::int64_t>(0, snapshot.now_ns - occupant.joined_ns);
  json["is_active"] = is_shared ? Json(client.is_active) : Json(nullptr);
  json["active_ns"] = is_shared && client.is_active
                          ? Json(std::max<std::int64_t>(0, snapshot.now_ns - client.arrived_ns))
                          : Json(nullptr);
  json["waits_for"] = std::move(waits_for);
  json["in_flight"] = bound != 0 ? Json(bound) : Json(nullptr);
  json["used_ns"] = client.used_ns;
  json["launches"] = counted(place.launches.load(kCount));
  json["held"] = counted(place.held.load(kCount));
  json["held_ns"] = counted(place.held_ns.load(kCount));
  json["paced_ns"] = counted(place.paced_ns.load(kCount));
  const MechanismUse use = snapshot.enforcer != nullptr ? snapshot.enforcer->use(seat) : MechanismUse{};
  json["mechanism"] = use.is_in_use ? snapshot.mechanism->name : kGate;
  json["mechanism_reason"] = text_or_null(use.reason);
  json["is_suspended"] = use.is_off;
  json["suspensions"] = use.times_off;
  json["suspended_ns"] = use.off_ns;
  json["suspending_ns"] = use.cost_ns;
  const Chooser& chooser = *snapshot.chooser;
  const Choice& choice = chooser.choice(seat);
  json["confine"] = name_of(choice.confine);
  json["part_percent"] = positive_or_null(choice.part_percent);
  json["choice"] = name_of(choice.why);
  json["choice_reason"] = chooser.reason(seat);
  json["parts_tried"] = Json::array();
  for (const PartFit::Tried& one : chooser.tried(seat))
    json["parts_tried"].push_back({{"confine", name_of(one.candidate.confine)},
                                   {"part_percent", one.candidate.percent},
                                   {"launches_per_s", one.commands_per_s},
                                   {"request_ns", {{"mean", one.request_ns}}}});
  json["confinable"] = name_of(static_cast<Confinable>(place.confinable.load(kCount)));
  json["confined"] = counted(place.confined.load(kCount));
  json["command_ns"] = positive_or_null(place.command_ns.load(kCount));
  json["requests"] = counted(place.requests.load(kCount));
  json["request_ns"] = {{"p99", positive_or_null(place.request_p99_ns.load(kCount))}};
  json["bound_state"] = name_of(chooser.bound_state(seat));
  json["bound_reason"] = text_or_null(chooser.bound_reason(seat));
  return json;
}

}  // namespace

Json status_document(const SchedulerSnapshot& snapshot) {
  const Conductor& conductor = *snapshot.conductor;
  Json clients = Json::array();
  for (std::uint64_t left = conductor.seated(); left != 0; left &= left - 1)
    clients.push_back(client_document(snapshot, std::countr_zero(left)));
  return {
      {"schema", schemas::sched_status},
      {"pid", snapshot.pid},
      {"policy", conductor.policy().name},
      {"mechanism", snapshot.mechanism != nullptr ? snapshot.mechanism->name : kGate},
      {"mechanism_reason", text_or_null(snapshot.enforcer != nullptr ? snapshot.enforcer->reason() : std::string())},
      {"mps", snapshot.enforcer != nullptr ? snapshot.enforcer->mps(snapshot.now_ns) : Json(nullptr)},
      {"confines", snapshot.confines},
      {"uptime_ns", snapshot.now_ns - snapshot.begun_ns},
      {"slice_ns", conductor.settings().slice_ns},
      {"ageing_ns", positive_or_null(conductor.settings().ageing_ns)},
      {"in_flight", positive_or_null(snapshot.in_flight)},  // null: chosen for each client
      {"is_shared", conductor.clients() > 1},               // if false, nothing is counted, and is_active is null
      {"most_clients", kMaxClients},
      {"clients", std::move(clients)},
  };
}

}  // namespace weir::scheduler
