// weir.analysis/2: what `weir analyze` found in a trace.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/named_values.h"
#include "base/units.h"
#include "report/page/items.h"
#include "report/page/list.h"
#include "report/page/model.h"
#include "report/page/values.h"
#include "report/text/analysis_sections.h"
#include "report/text/documents.h"
#include "report/text/renewed.h"

namespace weir::page {
namespace {

constexpr std::size_t kMaxPicturedDevices = 64;  // that get their own pictures
constexpr std::size_t kMaxBars = 1024;
constexpr std::size_t kMaxNames = 15;
constexpr std::size_t kMaxWork = 32;
constexpr std::size_t kMaxPhases = 16;
constexpr std::size_t kMaxModelledRanks = 8;

// "rank 3, GPU 0: Tesla V100"; of several devices only what they do not share: "rank 3, GPU 0".
std::string device_label(const Json& document, const Json& device) {
  const std::string label = values::word(device, {"label"}, "device " + fields::text(device, {"id"}));
  const Json& devices = values::list(document, {"devices"});
  const auto model = [](const std::string& text) {
    const std::size_t colon = text.find(": ");
    return colon == std::string::npos ? std::string() : text.substr(colon);
  };
  const bool is_shared = devices.size() > 1 && std::all_of(devices.begin(), devices.end(), [&](const Json& other) {
                           return model(values::word(other, {"label"})) == model(label);
                         });
  return fmt::format("rank {}, {}", fields::text(device, {"rank"}),
                     is_shared ? label.substr(0, label.size() - model(label).size()) : label);
}

std::string device_words(const std::string& name, const Json& document, const Json& device) {
  return fmt::format("{}: {}", name,
                     values::list(document, {"devices"}).size() > 1
                         ? device_label(document, device)
                         : values::word(device, {"label"}, "device " + fields::text(device, {"id"})));
}

struct CauseSum {
  std::string cause, meaning, advice;
  double ns = 0;
};

// Bars of all devices that communicate, per step: totals divided by the number of steps.
std::string add_overlap(Page& page, std::size_t source, const std::string& name, const Json& document) {
  Json bars = Json::array();
  std::vector<std::string> notes;
  std::vector<CauseSum> causes;
  double communication = 0, exposed = 0, explained = 0;
  std::size_t devices = 0;
  bool has_steps = true;
  for (const Json& device : values::list(document, {"devices"})) {
    const auto own = values::amount(device, {"times", "communication_ns"});
    if (!own || *own <= 0 || bars.size() == kMaxBars) continue;
    const auto steps = static_cast<double>(values::count(device, {"iterations", "count"}));
    has_steps = has_steps && steps > 0;
    const double share = steps > 0 ? 1 / steps : 1;
    OverlapBar bar;
    bar.label = device_label(document, device);
    if (!make_bar(values::at(device, {"times"}), bar, notes)) continue;
    for (double* part :
         {&bar.span_ns, &bar.compute_only_ns, &bar.hidden_ns, &bar.exposed_ns, &bar.idle_ns, &bar.other_ns})
      *part *= share;
    bars.push_back(to_json(bar));
    ++devices;
    communication += *own;
    exposed += values::amount(device, {"times", "exposed_communication_ns"}).value_or(0);
    for (const Json& each : values::list(device, {"exposed_causes", "causes"})) {
      const double ns = values::amount(each, {"total_ns"}).value_or(0) * share;
      const std::string cause = values::word(each, {"cause"}, "unknown");
      auto at = std::find_if(causes.begin(), causes.end(), [&](const CauseSum& one) { return one.cause == cause; });
      if (at == causes.end()) {
        if (causes.size() == 32) continue;
        causes.push_back({cause, values::word(each, {"meaning"}), values::word(each, {"advice"}), 0});
        at = std::prev(causes.end());
      }
      at->ns += ns;
      explained += ns;
    }
  }
  if (bars.empty()) return {};
  std::stable_sort(causes.begin(), causes.end(), [](const CauseSum& a, const CauseSum& b) { return a.ns > b.ns; });
  Json item = page.item("overlaps", name + ": communication", source, page.environment_of(source));
  item["step_ns"] = {{"p50", nullptr}};
  item["serial_step_ns"] = {{"p50", nullptr}};
  item["efficiency"] = communication > 0 ? Json(std::max(0.0, 1 - exposed / communication)) : Json(nullptr);
  item["best_efficiency"] = nullptr;
  item["inflation"] = nullptr;
  item["bars"] = std::move(bars);
  item["causes"] = Json::array();
  for (const CauseSum& each : causes)
    item["causes"].push_back(WEIR_NAMED(each.cause, named("ns_per_step", each.ns / static_cast<double>(devices)),
                                        named("share", explained > 0 ? each.ns / explained : 0), each.meaning,
                                        each.advice));
  notes.push_back(has_steps ? "Times are of one step: the whole trace divided by its steps; causes are the mean of the "
                              "devices that communicate."
                            : "The trace marks no steps: times are of all of it; causes are the mean of the devices "
                              "that communicate.");
  item["notes"] = std::move(notes);
  return page.add("overlaps", std::move(item));
}

struct NameSum {
  std::string kind;
  double count = 0, ns = 0;
};

struct WorkSum {
  double count = 0, ns = 0, busy_ns = 0;
};

// Of all devices: {"work": "matrix", "count": 3000, "total_ns": ..., "share": of their busy time}, most first.
Json work_of(const Json& document) {
  std::map<std::string, WorkSum> sums;
  double busy_ns = 0;
  for (const Json& device : values::list(document, {"devices"}))
    for (const Json& each : values::list(device, {"work"})) {
      WorkSum& sum = sums[values::word(each, {"work"}, "unrecognised")];
      const double own_ns = values::amount(each, {"busy_ns"}).value_or(0);
      sum.count += values::amount(each, {"commands"}).value_or(0);
      sum.ns += values::amount(each, {"total_ns"}).value_or(0);
      sum.busy_ns += own_ns;
      busy_ns += own_ns;
    }
  std::vector<std::pair<std::string, WorkSum>> most(sums.begin(), sums.end());
  std::stable_sort(most.begin(), most.end(),
                   [](const auto& a, const auto& b) { return a.second.busy_ns > b.second.busy_ns; });
  if (most.size() > kMaxWork) most.resize(kMaxWork);
  return json_list(most, [&](const auto& each) {
    const auto& [work, sum] = each;
    return WEIR_NAMED(named("work", work), sum.count, named("total_ns", sum.ns),
                      named("share", busy_ns > 0 ? sum.busy_ns / busy_ns : 0));
  });
}

// How long each rank took for each phase, and a sentence about the slowest; null for one rank.
Json rank_phases_of(const Json& document) {
  const Json& found = values::at(document, {"rank_phases"});
  const Json& ranks = values::list(found, {"ranks"});
  if (ranks.empty()) return nullptr;
  Json phases = Json::array();
  std::vector<std::string> keys;
  for (const Json& each : values::list(found, {"phases"})) {
    if (phases.size() == kMaxPhases) break;
    const std::string phase = values::word(each, {"phase"}, "unknown");
    const auto place = std::find_if(ranks.begin(), ranks.end(), [&](const Json& rank) {
      const Json& slowest = values::at(each, {"slowest"});
      return values::at(rank, {"rank"}) == values::at(slowest, {"rank"}) &&
             values::at(rank, {"device"}) == values::at(slowest, {"device"});
    });
    const std::string words = analysis::slow_rank_sentence(each, ranks);
    phases.push_back({{"phase", analysis::phase_words(phase)},
                      {"slowest", place == ranks.end() || words.empty() ? Json() : Json(place - ranks.begin())},
                      {"words", text_or_null(words)}});
    keys.push_back(phase + "_ns");
  }
  Json rows = Json::array();
  for (const Json& rank : ranks) {
    if (rows.size() == kMaxBars) break;
    Json times = Json::array();
    for (const std::string& key : keys) times.push_back(values::duration(rank, {key.c_str()}));
    rows.push_back({{"label", "rank " + analysis::rank_words(rank, ranks)}, {"phases_ns", std::move(times)}});
  }
  return {
      {"are_steps", fields::is_true(found, {"are_steps"})}, {"phases", std::move(phases)}, {"ranks", std::move(rows)}};
}

// Where the time of each device went, and the commands that took most of it on all of them.
std::string add_usage(Page& page, std::size_t source, const std::string& name, const Json& document) {
  Json bars = Json::array();
  std::vector<std::string> notes;
  std::map<std::string, NameSum> names;
  double all_ns = 0, all_count = 0, all_names = 0;
  for (const Json& device : values::list(document, {"devices"})) {
    OverlapBar bar;
    bar.label = device_label(document, device);
    if (bars.size() < kMaxBars && make_bar(values::at(device, {"times"}), bar, notes)) bars.push_back(to_json(bar));
    all_ns += values::amount(device, {"top", "total_ns"}).value_or(0);
    all_count += values::amount(device, {"top", "commands"}).value_or(0);
    all_names = std::max(all_names, values::amount(device, {"top", "kernels"}).value_or(0));
    for (const Json& each : values::list(device, {"top", "top"})) {
      NameSum& sum = names[values::word(each, {"name"}, "without a name")];
      sum.kind = values::word(each, {"kind"}, "kernel");
      sum.count += values::amount(each, {"count"}).value_or(0);
      sum.ns += values::amount(each, {"total_ns"}).value_or(0);
    }
  }
  if (bars.empty()) return {};
  std::vector<std::pair<std::string, NameSum>> top(names.begin(), names.end());
  std::stable_sort(top.begin(), top.end(), [](const auto& a, const auto& b) { return a.second.ns > b.second.ns; });
  if (top.size() > kMaxNames) top.resize(kMaxNames);
  Json item = page.item("usages", name, source, page.environment_of(source));
  item["bars"] = std::move(bars);
  item["top"] = Json::array();
  for (const auto& [text, sum] : top) {
    all_ns = std::max(all_ns, sum.ns);  // a document may contradict itself
    item["top"].push_back(WEIR_NAMED(named("name", text), sum.kind, sum.count, named("total_ns", sum.ns),
                                     named("share", all_ns > 0 ? sum.ns / all_ns : 0)));
  }
  item["work"] = work_of(document);
  item["rank_phases"] = rank_phases_of(document);
  item["names"] = std::max(all_names, static_cast<double>(top.size()));
  item["commands"] = all_count;
  if (const Json& window = values::at(document, {"window"}); window.is_object())
    notes.push_back(fmt::format(
        "Of the trace from {} to {}: {}.", format_duration(values::amount(window, {"begin_ns"}).value_or(0)),
        format_duration(values::amount(window, {"end_ns"}).value_or(0)),
        values::word(window, {"reason"}) == "start-up" ? "what is before is the program's start-up"
                                                       : "the part that was asked for"));
  item["notes"] = std::move(notes);
  return page.add("usages", std::move(item));
}

// The devices that get pictures of their own. Of a job of several ranks the one that idled most stands for all: twenty
// pictures of the same program hide the one that matters.
std::vector<const Json*> pictured_devices(const Json& document) {
  std::vector<const Json*> devices;
  std::set<std::string> ranks;
  for (const Json& device : values::list(document, {"devices"})) {
    if (devices.size() < kMaxPicturedDevices) devices.push_back(&device);
    ranks.insert(fields::text(device, {"rank"}));
  }
  if (ranks.size() < 2) return devices;
  const auto idle = [](const Json* device) { return values::amount(*device, {"times", "idle_ns"}).value_or(0); };
  return {*std::max_element(devices.begin(), devices.end(),
                            [&](const Json* a, const Json* b) { return idle(a) < idle(b); })};
}

// Those whose model is shown: of several ranks the first ones, too, after the one that is pictured.
std::vector<const Json*> modelled_devices(const Json& document, const std::vector<const Json*>& pictured) {
  std::vector<const Json*> devices = pictured;
  if (pictured.size() > 1) return devices;
  for (const Json& device : values::list(document, {"devices"}))
    if (devices.size() < kMaxModelledRanks && &device != pictured[0]) devices.push_back(&device);
  return devices;
}

// Ids of the items that findings link to.
struct Anchors {
  std::string timeline, waterfall, queue_map, overlap;
  std::string of(const std::string& text) const {
    const auto has = [&](const char* word) { return text.find(word) != std::string::npos; };
    if (!overlap.empty() && (has("ommunication") || has("collectives"))) return overlap;
    if (!queue_map.empty() && has("hardware queue")) return queue_map;
    return !timeline.empty() ? timeline : waterfall;
  }
};

void find_standouts(Page& page, const std::string& name, const Json& document, const Anchors& anchors) {
  if (values::list(document, {"devices"}).empty()) {
    page.find({Tone::warning, 0, "The trace has no GPU commands, so there is nothing to analyse.",
               "Was the GPU traced (PyTorch: ProfilerActivity.CUDA)?", anchors.timeline, name});
    return;
  }
  for (const Standout& each : standouts(document)) {
    const bool is_nothing_found = each.text.starts_with("Nothing:");
    page.find({is_nothing_found  ? Tone::good
               : each.is_warning ? Tone::warning
                                 : Tone::neutral,
               each.share, is_nothing_found ? "Nothing stands out" + each.text.substr(7) : each.text, each.advice,
               anchors.of(each.text), name});
  }
}

}  // namespace

void add_analysis(Page& page, std::size_t source, const std::string& name, const Json& document,
                  const std::string& timeline, CountedQueues counted) {
  Anchors anchors;
  anchors.timeline = timeline;
  add_usage(page, source, name, document);
  const std::vector<const Json*> pictured = pictured_devices(document);
  const std::vector<const Json*> modelled = modelled_devices(document, pictured);
  for (const Json* const device : modelled) add_model(page, source, device_words(name, document, *device), *device);
  for (const Json* const each : pictured) {
    const Json& device = *each;
    const std::string where = device_words(name, document, device);
    const std::string way = add_waterfalls(page, source, where, values::at(device, {"waterfall", "classes"}));
    if (anchors.waterfall.empty()) anchors.waterfall = way;
    const auto key = std::pair(static_cast<std::int64_t>(values::count(device, {"rank"})),
                               static_cast<std::int64_t>(values::count(device, {"id"})));
    const std::string map =
        add_queue_map(page, source, where, values::at(device, {"queue_map"}), std::move(counted[key]));
    if (anchors.queue_map.empty()) anchors.queue_map = map;
  }
  anchors.overlap = add_overlap(page, source, name, document);
  find_standouts(page, name, document, anchors);
  if (const std::size_t count = values::list(document, {"devices"}).size(); pictured.size() < count)
    page.find({Tone::neutral, 0,
               pictured.size() == 1
                   ? fmt::format("The way of commands is shown for {}, which idled most of {} devices.",
                                 device_words("", document, *pictured[0]).substr(2), count)
                   : fmt::format("Waterfalls and queue maps of the first {} devices are shown.", pictured.size()),
               "", anchors.waterfall, name});
  if (const std::size_t count = values::list(document, {"devices"}).size(); modelled.size() < count)
    page.find({Tone::neutral, 0,
               fmt::format("What devices worked for is shown for {} of {} devices.", modelled.size(), count), "",
               anchors.timeline, name});
  add_text(page, source, document, name);
}

void section_list::analysis(Page& page, std::size_t source, const Json& written) {
  const Json document = renewed_analysis(written);
  const Json& files = values::list(document, {"files"});
  const std::string name = files.empty() ? "analysis" : values::word(files.front(), {"name"}, "analysis");
  add_analysis(page, source, name, document, "", {});
}

}  // namespace weir::page
