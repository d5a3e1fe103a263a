// weir.bench/2: leaderboard and roofline of kernel packages, and what changed since a baseline.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "base/named_values.h"
#include "base/units.h"
#include "report/page/list.h"
#include "report/page/values.h"

namespace weir::page {
namespace {

constexpr std::size_t kMaxCases = 5'000, kMaxBenchNotes = 40, kMaxFound = 50;

using Changes = std::map<std::string, const Json*, std::less<>>;  // by the case's key

Changes changes_of(const Json& document) {
  Changes changes;
  for (const Json& entry : values::list(document, {"regressions", "cases"}))
    if (const Json& key = values::at(entry, {"key"}); key.is_string()) changes.emplace(key.string(), &entry);
  return changes;
}

// "fft/cpu/fp32/length=1024,batch=64" -> "fft, length=1024,batch=64": kernel and problem.
std::string entry_name(const Json& entry) {
  const std::string kernel = values::word(entry, {"kernel_name"}, "?"), key = values::word(entry, {"key"});
  const std::string before =
      fmt::format("{}/{}/{}/", kernel, fields::text(entry, {"backend"}), fields::text(entry, {"precision"}));
  return key.starts_with(before) && key.size() > before.size() ? kernel + ", " + key.substr(before.size()) : kernel;
}

std::string failure_of(const Json& entry) {
  std::string why = values::word(entry, {"error", "what"});
  if (const std::string signal = values::word(entry, {"error", "signal"}); !signal.empty())
    why = why.empty() ? signal : signal + ", " + why;
  return why;
}

Json rate(const Json& json, values::Keys keys) { return number_or_null(values::amount(json, keys, 1e24)); }

Json case_item(const Json& entry, const Changes& changes) {
  const auto items = values::amount(entry, {"timing", "items_per_s"});
  const auto runs = values::amount(entry, {"timing", "runs_per_s"});
  Json unit = nullptr;
  if (items)
    unit = values::word(entry, {"timing", "item_name"}, "items") + "/s";
  else if (runs)
    unit = "runs/s";
  const std::string why = failure_of(entry);
  Json error = values::number(entry, {"accuracy", "relative_error"});
  if (error.is_null()) error = values::number(entry, {"accuracy", "max_error"});
  Json change = nullptr;
  if (const auto found = changes.find(values::word(entry, {"key"})); found != changes.end())
    change = {{"verdict", values::word(*found->second, {"verdict"}, "?")},
              {"ratio", number_or_null(values::amount(*found->second, {"ratio"}))}};
  return {{"kernel", entry_name(entry)},
          {"backend", values::word(entry, {"backend"}, "-")},
          {"precision", values::word(entry, {"precision"}, "-")},
          {"status", values::word(entry, {"status"}, "not recorded")},
          {"failure", text_or_null(why)},
          {"latency_ns",
           {{"p50", values::duration(entry, {"timing", "latency_ns", "p50"})},
            {"p50_interval", values::interval(entry, {"timing", "latency_ns", "p50_interval"})}}},
          {"throughput", number_or_null(items ? items : runs)},
          {"throughput_unit", unit},
          {"flop_per_s", rate(entry, {"roofline", "flop_per_s"})},
          {"intensity", number_or_null(values::amount(entry, {"roofline", "intensity"}))},
          {"share_of_roof", number_or_null(values::amount(entry, {"roofline", "of_ceiling"}, 1e6))},
          {"energy_j", values::duration(entry, {"energy", "energy_j"})},
          {"error", std::move(error)},
          {"change", std::move(change)}};
}

// The peak performance of each backend, for every precision that was measured or used.
Json rooflines(const Json& document) {
  std::map<std::pair<std::string, std::string>, Json> found;
  const auto add = [&](const std::string& backend, const std::string& precision, Json compute, Json bandwidth,
                       const std::string& reason) {
    if (found.size() >= 256) return;
    const bool is_known = !compute.is_null() || !bandwidth.is_null();
    Json& roof = found[{backend, precision}];
    if (roof.is_object() && (!roof["flop_per_s"].is_null() || !is_known)) return;
    roof = WEIR_NAMED(backend, precision, named("flop_per_s", std::move(compute)),
                      named("bytes_per_s", std::move(bandwidth)), text_or_null(reason));
  };
  for (const auto& [backend, ceilings] : values::object(document, {"ceilings"}).items())
    for (const auto& [precision, ceiling] : values::object(ceilings, {"flop_per_s"}).items()) {
      Json compute = rate(ceiling, {"value"});
      const std::string reason = compute.is_null() ? values::word(ceiling, {"how"}, "not measured") : "";
      add(backend, precision, std::move(compute), rate(ceilings, {"bytes_per_s", "value"}), reason);
    }
  for (const Json& entry : values::list(document, {"cases"})) {
    const std::string backend = values::word(entry, {"backend"}), precision = values::word(entry, {"precision"});
    if (backend.empty() || precision.empty()) continue;
    Json compute = rate(entry, {"roofline", "ceiling_flop_per_s"});
    const std::string reason =
        compute.is_null() ? values::word(entry, {"roofline", "reason"}, "no ceiling was measured") : "";
    add(backend, precision, std::move(compute), rate(entry, {"roofline", "ceiling_bytes_per_s"}), reason);
  }
  Json list = Json::array();
  for (auto& [key, roof] : found) list.push_back(std::move(roof));
  return list;
}

void find_changes(Page& page, const std::string& title, const Json& document, const std::string& anchor) {
  const Json& regressions = values::at(document, {"regressions"});
  std::size_t listed = 0;
  for (const Json& entry : values::list(regressions, {"cases"})) {
    const bool is_faster = values::word(entry, {"verdict"}) == "faster";
    if ((!values::is_true(entry, {"is_regression"}) && !is_faster) || ++listed > kMaxFound) continue;
    const auto ratio = values::amount(entry, {"ratio"}, 1e6);
    page.find({is_faster ? Tone::good : Tone::bad, ratio ? std::abs(*ratio - 1) : 1,
               fmt::format("{} is {}{}: {}.", values::word(entry, {"key"}, "a case"),
                           is_faster ? "faster" : "worse than its baseline",
                           ratio ? fmt::format(", {} of its time", format_ratio(*ratio)) : "",
                           values::word(entry, {"reason"}, "no reason given")),
               "", anchor, title});
  }
  const std::string whole = values::word(regressions, {"verdict"});
  if (whole == "ambiguous" || whole == "cannot_say")  // the name in version 0.1
    page.find({Tone::warning, 0, "No regression was found, but not every case could be judged.",
               "Take more rounds on both sides (--processes).", anchor, title});
  if (whole == "same") page.find({Tone::good, 0, "Nothing regressed.", "", anchor, title});
}

void find_failures(Page& page, const std::string& title, const Json& document, const std::string& anchor) {
  std::size_t listed = 0;
  for (const Json& entry : values::list(document, {"cases"})) {
    const std::string status = values::word(entry, {"status"});
    if (status == "ok" || status == "skipped" || status.empty() || ++listed > kMaxFound) continue;
    page.find({Tone::bad, 0.5,
               fmt::format("{} {}: {}", values::word(entry, {"key"}, "a case"),
                           status == "timed_out" ? "timed out" : status, values::sentence(failure_of(entry))),
               values::word(entry, {"error", "hint"}), anchor, title});
  }
}

// What `weir bench` itself found, below a line that says what ran.
void find_standouts(Page& page, const std::string& title, const Json& document, const std::string& anchor) {
  const Json& cases = values::list(document, {"cases"});
  std::set<std::string> kernels;
  std::size_t ran = 0, right = 0;
  for (const Json& entry : cases) {
    const std::string status = values::word(entry, {"status"});
    if (status == "skipped") continue;
    kernels.insert(values::word(entry, {"kernel_name"}, "?"));
    ++ran;
    right += status == "ok" ? 1 : 0;
  }
  const auto plural = [](std::size_t count, const char* word) {
    return fmt::format("{} {}{}", count, word, count == 1 ? "" : "s");
  };
  page.find({Tone::neutral, 2,
             fmt::format("{} of {} ran{}.", plural(ran, "case"), plural(kernels.size(), "kernel"),
                         ran == 0       ? ""
                         : right == ran ? ", and every result is right"
                                        : fmt::format(", and {} of {} results are right", right, ran)),
             "", anchor, title});
  std::size_t listed = 0;
  for (const char* list : {"recommendations", "findings"})
    for (const Json& line : values::list(document, {list}))
      if (line.is_string() && ++listed <= kMaxFound)
        page.find({Tone::neutral, list[0] == 'r' ? 1.0 : 0.0, line.get<std::string>(), "", "", title});
}

}  // namespace

void section_list::bench(Page& page, std::size_t source, const Json& document) {
  const Json& cases = values::list(document, {"cases"});
  const std::string title = "bench";
  Json item = page.item("benches", fmt::format("{} case{}", cases.size(), cases.size() == 1 ? "" : "s"), source,
                        page.environment_of(source));
  const Changes changes = changes_of(document);
  item["cases"] = Json::array();
  for (const Json& entry : cases)
    if (item["cases"].size() < kMaxCases) item["cases"].push_back(case_item(entry, changes));
  item["rooflines"] = rooflines(document);
  Json& notes = item["notes"];
  const auto note = [&](const std::string& text) {
    if (notes.size() < kMaxBenchNotes) notes.push_back(text);
  };
  if (cases.size() > kMaxCases) note(fmt::format("The first {} of {} cases are shown.", kMaxCases, cases.size()));
  if (values::word(document, {"status"}) == "interrupted") note("Interrupted: these are the results so far.");
  if (values::is_true(document, {"options", "is_cold"})) note("Caches were emptied before every run (--cold).");
  if (const std::string baseline = values::word(document, {"regressions", "baseline"}); !baseline.empty())
    note("Compared with " + baseline + ".");
  for (const Json& line : values::list(document, {"regressions", "notes"}))
    if (line.is_string()) note(line.get<std::string>());
  const std::string id = page.add("benches", std::move(item));
  find_changes(page, title, document, id);
  find_failures(page, title, document, id);
  find_standouts(page, title, document, id);
}

}  // namespace weir::page
