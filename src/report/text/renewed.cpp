#include "report/text/renewed.h"

#include <utility>

#include "report/text/documents.h"
#include "report/text/fields.h"

namespace weir {
namespace {

Json* member(Json& json, const char* key) {
  if (!json.is_object()) return nullptr;
  const auto at = json.find(key);
  return at == json.end() ? nullptr : &*at;
}

template <class Visit>
void each_of(Json* list, Visit visit) {
  if (list == nullptr || !list->is_array()) return;
  for (Json& each : *list) visit(each);
}

void renew_times(Json* times) {
  if (times == nullptr) return;
  const auto communication = fields::number(*times, {"communication_ns"});
  const auto alone = fields::number(*times, {"alone_communication_ns"});
  if (!communication || !alone) return;
  (*times)["communication_beside_compute_ns"] = fields::at(*times, {"hidden_communication_ns"});
  (*times)["copy_beside_compute_ns"] = fields::at(*times, {"hidden_copy_ns"});
  (*times)["exposed_communication_ns"] = *alone;
  (*times)["hidden_communication_ns"] = *communication - *alone;
  times->erase("alone_communication_ns");
  times->erase("hidden_copy_ns");
}

// Whether the host waited for its commands is not in the document, so no way leads to `seen`.
void renew_way(Json& way) {
  Json* const hops = member(way, "hops");
  if (hops == nullptr || !hops->is_array() || way.contains("waited_for")) return;
  const auto is_seen = [](const Json& hop) { return fields::at(hop, {"to"}) == "seen"; };
  double sum = 0;
  for (const Json& hop : *hops)
    if (!is_seen(hop)) sum += fields::number(hop, {"duration_ns", "mean"}).value_or(0);
  for (Json& hop : *hops) {
    if (!hop.is_object()) continue;
    const auto mean = fields::number(hop, {"duration_ns", "mean"});
    hop["share"] = is_seen(hop) || !mean ? Json() : Json(sum > 0 ? *mean / sum : 0);
  }
  way["way_ns"] = sum;
}

}  // namespace

const char* why_seen_is_left_out(const Json& way) {
  return way.contains("waited_for")
             ? "`seen` is not on the way: the host did not wait for most of these commands, it looked later"
             : "`seen` is not on the way: this document does not say whether the host waited";
}

Json renewed_analysis(Json document) {
  each_of(member(document, "devices"), [](Json& device) {
    renew_times(member(device, "times"));
    if (Json* const iterations = member(device, "iterations"))
      each_of(member(*iterations, "list"), [](Json& one) { renew_times(member(one, "times")); });
    if (Json* const waterfall = member(device, "waterfall")) each_of(member(*waterfall, "classes"), renew_way);
  });
  return document;
}

Json renewed_profile(Json document) {
  each_of(member(document, "devices"), [](Json& device) { each_of(member(device, "waterfall"), renew_way); });
  return document;
}

}  // namespace weir
