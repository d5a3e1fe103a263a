#include "report/page/page.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>

#include "base/named_values.h"
#include "base/plain_text.h"
#include "base/schemas.h"
#include "report/text/fields.h"
#include "weir_build.h"

namespace weir::page {
namespace {

// Names in hostile files may be megabytes long. Text that nobody reads must not make the page slow.
constexpr std::size_t kLongestText = 4096;
constexpr std::size_t kMaxArguments = 256;
constexpr std::size_t kMaxFacts = 200;
constexpr std::size_t kMaxFindings = 200;
constexpr std::size_t kMaxRefused = 500;
constexpr int kDeepestFact = 4;

constexpr std::array kLists = {"fleets",   "fleet_nodes",   "comparisons", "usages",     "models",
                               "scaling",  "distributions", "queue_maps",  "waterfalls", "timelines",
                               "overlaps", "preemptions",   "benches",     "histories",  "texts"};

const char* tone_name(Tone tone) {
  constexpr std::array kNames = {"good", "neutral", "warning", "bad"};
  return kNames[static_cast<std::size_t>(tone)];
}

std::string bounded(const std::string& text) {
  if (text.size() <= kLongestText) return text;
  return fmt::format("{}... (cut: {} bytes in all)", whole_characters(text, kLongestText), text.size());
}

// Spans and packed values are Weir's own: made by timeline.cpp and fleet.cpp, limited there, and useless if truncated.
void bound(Json& json, bool is_packed = false) {
  if (json.is_string()) {
    auto& text = json.string();
    if (!is_packed && text.size() > kLongestText) text = bounded(text);
  } else if (json.is_object()) {
    for (auto& [name, value] : json.items()) bound(value, name == "spans" || name == "packed");
  } else if (json.is_array()) {
    for (Json& value : json) bound(value);
  }
}

// Facts that do not affect a measurement, or that belong to one run rather than to its machine.
bool is_of_the_run(const std::string& name) {
  return name == "load_average" || name == "compute_units" || name == "compute_units_asked";
}

using Facts = std::vector<std::pair<std::string, std::string>>;

// Scalars by their path, in document order; null and empty values are left out.
void collect_facts(const Json& json, const std::string& path, int depth, Facts& facts) {
  if (facts.size() >= kMaxFacts || json.is_null()) return;
  if (json.is_object()) {
    if (depth >= kDeepestFact) return;
    for (const auto& [name, value] : json.items())
      if (!is_of_the_run(name) && !(depth == 0 && name == "variables"))
        collect_facts(value, path.empty() ? name : path + " " + name, depth + 1, facts);
  } else if (json.is_array()) {
    std::string words;
    for (const Json& value : json)
      if (!value.is_structured() && words.size() < kLongestText)
        words += (words.empty() ? "" : ", ") + fields::text(value, {});
    if (!words.empty()) facts.emplace_back(path, bounded(words));
  } else {
    facts.emplace_back(path, bounded(fields::text(json, {})));
  }
}

Json pairs(const Facts& facts) {
  Json list = Json::array();
  for (const auto& [name, value] : facts) list.push_back({name, value});
  return list;
}

std::string canonical(const Facts& device, const Facts& environment, const Facts& variables) {
  Json json = Json::array({pairs(device), pairs(environment), pairs(variables)});
  return json.dump();
}

// FNV-1a, as 16 digits: an id that stays the same across reports.
std::string digest(std::string_view text) {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return fmt::format("{:016x}", hash);
}

// "memory_bytes" -> "memory bytes", for display.
std::string spaced(std::string name) {
  std::replace(name.begin(), name.end(), '_', ' ');
  return name;
}

// What distinguishes this environment from another one with the same model and name: the first pair that the other
// lacks.
std::string difference(const Json& other, const char* list, const Json& own) {
  std::set<Json> theirs(other[list].begin(), other[list].end());
  for (const Json& pair : own)
    if (!theirs.contains(pair)) {
      const std::string glue = std::string_view(list) == "variables" ? "=" : " ";
      return std::string(whole_characters(pair[0].string() + glue + pair[1].string(), 80));
    }
  return {};
}

std::string label_for(const Json& device, const Json& environment, const std::vector<Json>& others, const Json& own) {
  // Documents about several devices are named after the machine.
  const std::string model =
                        device.is_object() ? fields::text(device, {"model"}) : fields::text(environment, {"cpu_model"}),
                    name = fields::text(device, {"name"});
  std::string base = model != "-" && name != "-" ? fmt::format("{} · {}", model, name)
                     : model != "-"              ? model
                     : name != "-"               ? name
                                                 : std::string("unnamed device");
  base = std::string(whole_characters(base, 200));
  const auto is_taken = [&](const std::string& label) {
    return std::any_of(others.begin(), others.end(), [&](const Json& other) { return other["label"] == label; });
  };
  if (!is_taken(base)) return base;
  const auto first =
      std::find_if(others.begin(), others.end(), [&](const Json& other) { return other["label"] == base; });
  std::string apart;
  for (const char* list : {"variables", "facts"})
    if (apart.empty()) apart = difference(*first, list, own[list]);
  std::string label = apart.empty() ? base : fmt::format("{} · {}", base, apart);
  for (int i = 2; is_taken(label); ++i) label = fmt::format("{} · {} ({})", base, apart, i);
  return label;
}

// The text up to the end of its first sentence, because a headline is one sentence.
std::string first_sentence(const std::string& text) {
  const std::size_t end = text.find(". ");
  return std::string(whole_characters(end == std::string::npos ? text : text.substr(0, end + 1), 300));
}

// "3 files (2 result, 1 sweep)"
std::string looked_at(const std::vector<Json>& sources) {
  if (sources.size() == 1) return std::string(whole_characters(fields::text(sources[0], {"path"}), 120));
  std::map<std::string, std::size_t> counts;
  for (const Json& source : sources) {
    std::string_view kind = source["schema"].string();
    if (kind.starts_with("weir.")) kind = kind.substr(5, kind.find('/') - 5);
    ++counts[std::string(whole_characters(kind, 60))];
  }
  std::string words;
  for (const auto& [kind, count] : counts) words += fmt::format("{}{} {}", words.empty() ? "" : ", ", count, kind);
  return fmt::format("{} files ({})", sources.size(), words);
}

}  // namespace

Page::Page(std::string title, std::string created, std::vector<std::string> command_line)
    : title_(bounded(title)), created_(std::move(created)), command_line_(std::move(command_line)) {}

std::size_t Page::add_source(const std::string& path, const std::string& schema, const Json& document) {
  const Json& results = fields::at(document, {"results"});
  const bool has_own = fields::at(document, {"device"}).is_object() || !results.is_array() || results.empty();
  const Json& first = has_own ? document : results.front();
  const auto found = environment(fields::at(first, {"device"}), fields::at(first, {"environment"}));

  Json source = WEIR_NAMED(path, schema);
  const Json& created = fields::at(document, {"created"});
  source["created"] = created.is_string() ? created : Json(nullptr);
  source["status"] = fields::string(document, {"status"}, "not recorded");
  source["command_line"] = Json::array();
  for (const Json& argument : fields::list(document, {"command_line"}))
    if (argument.is_string() && source["command_line"].size() < kMaxArguments)
      source["command_line"].push_back(argument);
  source["environment"] = found ? Json(*found) : Json(nullptr);
  bound(source);
  sources_.push_back(std::move(source));
  return sources_.size() - 1;
}

void Page::refuse(const std::string& path, const std::string& reason) {
  if (refused_.size() >= kMaxRefused) {
    ++refused_beyond_;
    return;
  }
  refused_.push_back(WEIR_NAMED(bounded(path), bounded(reason)));
}

std::optional<std::size_t> Page::environment(const Json& device, const Json& environment) {
  if (!device.is_object() && !environment.is_object()) return std::nullopt;
  Facts of_device, of_machine, variables;
  if (device.is_object()) collect_facts(device, "", 0, of_device);
  if (environment.is_object()) collect_facts(environment, "", 0, of_machine);
  for (const auto& [name, value] : fields::at(environment, {"variables"}).items())
    if (variables.size() < kMaxFacts) variables.emplace_back(bounded(name), bounded(fields::text(value, {})));
  std::sort(variables.begin(), variables.end());
  const std::string all = canonical(of_device, of_machine, variables);
  const auto [known, is_new] = fingerprints_.try_emplace(all, environments_.size());
  if (!is_new) return known->second;

  Facts facts;
  for (auto& [name, value] : of_device) facts.emplace_back("device " + bounded(spaced(name)), value);
  for (auto& [name, value] : of_machine) facts.emplace_back(bounded(spaced(name)), value);
  Json json = {{"id", digest(all)}, {"label", ""}, {"facts", pairs(facts)}, {"variables", pairs(variables)}};
  json["label"] = label_for(device, environment, environments_, json);
  environments_.push_back(std::move(json));
  return known->second;
}

std::optional<std::size_t> Page::environment_of(std::size_t source) const {
  if (source >= sources_.size()) return std::nullopt;
  const Json& found = sources_[source]["environment"];
  return found.is_number_unsigned() ? std::optional(found.get<std::size_t>()) : std::nullopt;
}

std::string Page::label_of(std::optional<std::size_t> environment) const {
  if (!environment || *environment >= environments_.size()) return "unknown device";
  return environments_[*environment]["label"].get<std::string>();
}

Json Page::item(std::string_view list, const std::string& title, std::size_t source,
                std::optional<std::size_t> environment) {
  Json json = Json::object();
  json["id"] = fmt::format("{}-{}", list, ++numbers_[std::string(list)]);
  json["title"] = title;
  json["environment"] = environment && *environment < environments_.size() ? Json(*environment) : Json(nullptr);
  json["source"] = source < sources_.size() ? Json(source) : Json(nullptr);
  json["notes"] = Json::array();
  return json;
}

std::string Page::add(std::string_view list, Json item) {
  bound(item);
  const std::string id = fields::text(item, {"id"});
  lists_[std::string(list)].push_back(std::move(item));
  return id;
}

std::size_t Page::item_count() const {
  std::size_t count = 0;
  for (const auto& [list, items] : lists_) count += items.size();
  return count;
}

void Page::find(Finding finding) {
  finding.text = bounded(finding.text);
  finding.advice = bounded(finding.advice);
  findings_.push_back(std::move(finding));
}

Json Page::verdict() const {
  std::vector<Finding> sorted = findings_;
  // With one subject (a file, or the files of one job) everything is about that.
  std::set<Json> subjects;
  for (const auto& [list, items] : lists_)
    for (const Json& item : items) subjects.insert(fields::at(item, {"source"}));
  if (subjects.size() > 1)
    for (Finding& each : sorted)
      if (!each.about.empty()) each.text = bounded(each.about + ": " + each.text);
  // Worst first; good news comes before plain information.
  const auto order = [](Tone tone) {
    return tone == Tone::bad ? 0 : tone == Tone::warning ? 1 : tone == Tone::good ? 2 : 3;
  };
  std::stable_sort(sorted.begin(), sorted.end(), [&](const Finding& a, const Finding& b) {
    if (a.leads != b.leads) return a.leads;
    return order(a.tone) != order(b.tone) ? order(a.tone) < order(b.tone) : a.weight > b.weight;
  });
  const std::size_t beyond = sorted.size() > kMaxFindings ? sorted.size() - kMaxFindings : 0;
  sorted.resize(sorted.size() - beyond);

  const Tone tone = sorted.empty() ? Tone::neutral : sorted.front().tone;
  const auto of_tone = static_cast<std::size_t>(
      std::count_if(sorted.begin(), sorted.end(), [&](const Finding& each) { return each.tone == tone; }));
  const std::string over = looked_at(sources_);
  std::string headline;
  if (tone == Tone::bad || tone == Tone::warning || (!sorted.empty() && sorted.front().leads)) {
    headline = first_sentence(sorted.front().text);
    if (of_tone > 1 && !sorted.front().sums_up && (tone == Tone::bad || tone == Tone::warning))
      headline += fmt::format(" And {} more {}{}.", of_tone - 1, tone == Tone::bad ? "problem" : "warning",
                              of_tone == 2 ? "" : "s");
  } else if (tone == Tone::good) {
    headline = subjects.size() == 1 && !sorted.front().about.empty()
                   ? first_sentence(sorted.front().text)
                   : fmt::format("Nothing is wrong in {}, and: {}", over, first_sentence(sorted.front().text));
  } else if (subjects.size() == 1 && !sorted.empty() && !sorted.front().about.empty()) {
    headline = first_sentence(sorted.front().text);
  } else {
    headline = fmt::format("Nothing stands out in {}.", over);
  }
  Json json = {{"tone", tone_name(tone)}, {"headline", headline}, {"findings", Json::array()}};
  for (const Finding& each : sorted)
    json["findings"].push_back(
        WEIR_NAMED(tone_name(each.tone), each.text, text_or_null(each.advice), text_or_null(each.anchor)));
  if (beyond > 0)
    json["findings"].push_back({{"tone", "neutral"},
                                {"text", fmt::format("{} more findings are not listed.", beyond)},
                                {"advice", nullptr},
                                {"anchor", nullptr}});
  return json;
}

Json Page::document() && {
  Json json = Json::object();
  json["schema"] = schemas::report;
  json["title"] = title_;
  json["created"] = created_;
  json["weir"] = {{"version", WEIR_VERSION}, {"commit", WEIR_COMMIT}};
  json["command_line"] = command_line_;
  bound(json["command_line"]);
  json["verdict"] = verdict();
  if (refused_beyond_ > 0)
    refused_.push_back({{"path", fmt::format("{} more", refused_beyond_)}, {"reason", "not listed one by one"}});
  json["sources"] = std::move(sources_);
  json["refused"] = std::move(refused_);
  for (const char* list : kLists) json[list] = std::move(lists_[list]);
  json["environments"] = std::move(environments_);
  return json;
}

}  // namespace weir::page
