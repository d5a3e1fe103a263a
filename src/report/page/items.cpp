#include "report/page/items.h"

#include <fmt/format.h>

#include <algorithm>
#include <new>
#include <stdexcept>

#include "base/named_values.h"
#include "base/units.h"
#include "report/page/list.h"
#include "report/page/values.h"
#include "report/text/documents.h"

namespace weir::page {
namespace {

constexpr std::size_t kMaxClasses = 16, kMaxHops = 32;

Json hop_item(const Json& hop) {
  Json duration_ns = Json::object();
  for (const char* figure : {"mean", "p50", "p95", "p99"})
    duration_ns[figure] = values::duration(hop, {"duration_ns", figure});
  return {{"from", values::word(hop, {"from"}, "?")},
          {"to", values::word(hop, {"to"}, "?")},
          {"count", values::count(hop, {"count"})},
          {"duration_ns", std::move(duration_ns)},
          {"share", number_or_null(values::amount(hop, {"share"}, 1))}};
}

// {"enqueued": "why"} in an analysis, [{"stage": "enqueued", "reason": "why"}] in a profile.
Json missing_items(const Json& missing) {
  Json items = Json::array();
  if (missing.is_object()) {
    for (const auto& [stage, reason] : missing.items())
      if (reason.is_string() && items.size() < kMaxHops) items.push_back({{"hop", stage}, {"reason", reason}});
  } else if (missing.is_array()) {
    for (const Json& each : missing)
      if (items.size() < kMaxHops && values::at(each, {"stage"}).is_string())
        items.push_back({{"hop", values::word(each, {"stage"})}, {"reason", values::word(each, {"reason"})}});
  }
  return items;
}

// The longest hop, up to the command's end where that is known: the host may look much later.
std::string dominating_words(const Json& each) {
  for (const char* key : {"words_to_end", "dominating_to_end_words", "words", "dominating_words"})
    if (const std::string words = values::word(each, {key}); !words.empty()) return words;
  return {};
}

constexpr double kTolerance = 1e-3;  // of the span, for parts that are means of rounded numbers

// Beyond these a picture of cells is unreadable, and a hostile file could ask for millions of them.
constexpr std::size_t kMaxItemStreams = 1024, kMaxQueues = 256, kMaxCells = 65'536;

std::string label_of(const Json& json) { return json.is_string() ? json.get<std::string>() : json.dump(); }

}  // namespace

std::string add_waterfalls(Page& page, std::size_t source, const std::string& where, const Json& classes) {
  std::string first;
  std::size_t added = 0;
  if (!classes.is_array()) return first;
  for (const Json& each : classes) {
    const Json& hops = values::list(each, {"hops"});
    if (hops.empty() || ++added > kMaxClasses) continue;
    const std::string kind = values::word(each, {"kind"}, "command");
    Json item =
        page.item("waterfalls", fmt::format("{}: the way of a {}", where, kind), source, page.environment_of(source));
    item["kind"] = kind;
    item["commands"] = values::count(each, {"commands"});
    item["way_ns"] = values::duration(each, {"way_ns"});
    item["hops"] = Json::array();
    for (const Json& hop : hops) {
      if (item["hops"].size() == kMaxHops) break;
      if (const auto negative = values::count(hop, {"negative"}); negative > 0)
        item["notes"].push_back(
            fmt::format("{} -> {}: {} commands are left out because the clocks disagree, by up to {}.",
                        values::word(hop, {"from"}, "?"), values::word(hop, {"to"}, "?"), negative,
                        format_duration(std::abs(values::finite(hop, {"worst_negative_ns"}).value_or(0)))));
      if (values::word(hop, {"to"}) == "seen" && !values::amount(hop, {"share"}, 1)) {
        item["notes"].push_back(fmt::format("From {} to seen: p50 {}, p99 {}. {}.", values::word(hop, {"from"}, "?"),
                                            fields::duration(hop, {"duration_ns", "p50"}),
                                            fields::duration(hop, {"duration_ns", "p99"}), why_seen_is_left_out(each)));
        continue;
      }
      item["hops"].push_back(hop_item(hop));
    }
    item["missing"] = missing_items(values::at(each, {"missing"}));
    if (const std::string words = dominating_words(each); !words.empty())
      item["notes"].push_back(values::sentence(words));
    const std::string id = page.add("waterfalls", std::move(item));
    if (first.empty()) first = id;
  }
  return first;
}

bool make_bar(const Json& times, OverlapBar& bar, std::vector<std::string>& notes) {
  const auto span = values::amount(times, {"span_ns"});
  if (!span || *span <= 0) return false;
  const auto part = [&](const char* key) { return values::amount(times, {key}); };
  bar.span_ns = *span;
  const double communication = part("communication_ns").value_or(0), compute = part("compute_ns").value_or(0);
  const auto exposed = part("exposed_communication_ns");
  bar.exposed_ns = exposed ? *exposed : part("exposed_ns").value_or(0);
  bar.hidden_ns = std::max(0.0, communication - bar.exposed_ns);
  // Communication that overlapped compute. Where the document does not separate it from communication hidden by copies,
  // all hidden communication is used, so that "compute only" is a lower bound.
  const double beside = part("communication_beside_compute_ns").value_or(bar.hidden_ns);
  bar.compute_only_ns = std::max(0.0, compute - beside);
  bar.idle_ns = part("idle_ns").value_or(std::max(0.0, *span - part("busy_ns").value_or(*span)));
  const double sum = bar.compute_only_ns + bar.hidden_ns + bar.exposed_ns + bar.idle_ns;
  bar.other_ns = std::max(0.0, *span - sum);
  if (sum > *span) {
    if (sum > *span * (1 + kTolerance))
      notes.push_back(fmt::format("{}: its parts add up to {}, its span is {}; they are drawn in proportion.",
                                  bar.label, format_duration(sum), format_duration(*span)));
    for (double* each : {&bar.compute_only_ns, &bar.hidden_ns, &bar.exposed_ns, &bar.idle_ns}) *each *= *span / sum;
  }
  return true;
}

Json to_json(const OverlapBar& bar) {
  return WEIR_NAMED(bar.label, bar.span_ns, bar.compute_only_ns, bar.hidden_ns, bar.exposed_ns, bar.idle_ns,
                    bar.other_ns);
}

std::size_t QueueGrid::index_of(const std::string& label, std::vector<std::string>& all, Numbers& numbers) {
  const auto [at, is_new] = numbers.try_emplace(label, all.size());
  if (is_new) all.push_back(label);
  return at->second;
}

void QueueGrid::set(std::size_t stream, std::size_t queue, std::optional<std::uint64_t> commands) {
  cells_.try_emplace({stream, queue}, commands);
}

std::string QueueGrid::add_to(Page& page, std::size_t source, const std::string& title, const std::string& basis,
                              const std::string& mapping, std::vector<std::string> notes) const {
  if (is_empty()) return {};
  const auto first = [](const std::vector<std::string>& all, std::size_t most) {
    return std::vector<std::string>(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(std::min(all.size(), most)));
  };
  Json item = page.item("queue_maps", title, source, page.environment_of(source));
  item.update(WEIR_NAMED(basis, mapping));
  item["queues"] = first(queues_, kMaxQueues);
  item["streams"] = first(streams_, kMaxItemStreams);
  item["cells"] = Json::array();
  std::size_t left_out = 0;
  for (const auto& [place, commands] : cells_) {
    if (place.first >= kMaxItemStreams || place.second >= kMaxQueues || item["cells"].size() == kMaxCells) {
      ++left_out;
      continue;
    }
    item["cells"].push_back({{"stream", place.first}, {"queue", place.second}, {"commands", or_null(commands)}});
  }
  if (left_out > 0)
    notes.push_back(fmt::format("{} streams on {} queues are more than can be drawn: {} cells are left out.",
                                streams_.size(), queues_.size(), left_out));
  item["notes"] = std::move(notes);
  return page.add("queue_maps", std::move(item));
}

std::string add_queue_map(Page& page, std::size_t source, const std::string& where, const Json& map, QueueGrid grid) {
  // For streams that moved, the document has commands per queue; for the others only the queue's total, which is the
  // stream's where it has the queue to itself.
  for (const Json& queue : values::list(map, {"queues"})) grid.queue(label_of(values::at(queue, {"queue"})));
  for (const Json& stream : values::list(map, {"moving"}))
    for (const Json& queue : values::list(stream, {"queues"}))
      grid.set(grid.stream(label_of(values::at(stream, {"stream"}))),
               grid.queue(label_of(values::at(queue, {"queue"}))), values::count(queue, {"commands"}));
  for (const Json& queue : values::list(map, {"queues"})) {
    const Json& streams = values::list(queue, {"streams"});
    for (const Json& stream : streams)
      grid.set(grid.stream(label_of(stream)), grid.queue(label_of(values::at(queue, {"queue"}))),
               streams.size() == 1 ? std::optional(values::count(queue, {"commands"})) : std::nullopt);
  }
  const Json& is_fixed = values::at(map, {"is_fixed"});
  const auto changes = values::count(map, {"change_count"});
  const std::string mapping = !is_fixed.is_boolean() ? "whether streams keep their queues is not known"
                              : is_fixed.get<bool>() ? "fixed: every stream kept its queue"
                                                     : fmt::format("dynamic: streams changed queues {} times", changes);
  std::vector<std::string> notes;
  if (const auto shared = values::count(map, {"shared_queues"}); shared > 0)
    notes.push_back(fmt::format("{} queue{} shared, by {} streams: commands of one wait behind those of another.",
                                shared, shared == 1 ? " is" : "s are", values::count(map, {"sharing_streams"})));
  return grid.add_to(page, source, where + ": streams on hardware queues", "timeline", mapping, std::move(notes));
}

void add_text(Page& page, std::size_t source, const Json& document, const std::string& title) {
  std::string why;
  try {
    section_list::text(page, source, document);
    return;
  } catch (const JsonError& error) {
    why = error.what();
  } catch (const std::length_error&) {
    why = "a number is absurd";
  } catch (const std::bad_alloc&) {
    why = "a number is absurd";
  }
  page.find({Tone::warning, 0,
             fmt::format("{}: its text cannot be printed: the document does not match its schema ({}).", title, why),
             "Write it again with the `weir` that reads it.", ""});
}

}  // namespace weir::page
