// Which rank is slowest in each phase of a step, and why.
#include <fmt/format.h>

#include <algorithm>

#include "report/text/analysis_sections.h"
#include "report/text/analysis_words.h"

namespace weir::analysis {
namespace {

constexpr const char* kRankPhaseKeys[] = {"forward", "backward", "optimizer", "other", "communication", "data_loading"};

// Why, as a part of a sentence; empty where the ranks are alike.
std::string slow_phase_words(const Json& phase) {
  const std::string reason = word(phase, "reason");
  const Json& most = at(phase, {"most"});
  std::string by;
  if (most.is_object() && (reason == "longer_kernels" || reason == "more_work")) {
    by = fmt::format(", most of all {}", at(most, {"operator"}).is_string() ? word(most, "operator") : "");
    if (!at(most, {"operator"}).is_string()) by += short_kernel_name(word(most, "name"), 50);
    by += fmt::format(" ({}, {})", word(most, "work"), duration(most, "more_ns"));
  }
  if (reason == "longer_kernels") return fmt::format("commands take {} longer{}", duration(phase, "longer_ns"), by);
  if (reason == "slower_clock")
    return fmt::format("all commands take {:.2f} times as long, {} in all: a slower clock?",
                       number(phase, {"ratio"}).value_or(0), duration(phase, "longer_ns"));
  if (reason == "more_work") return fmt::format("{} of more work{}", duration(phase, "more_work_ns"), by);
  if (reason == "late_host")
    return fmt::format("its host submits later: the device is idle for {} more", duration(phase, "late_host_ns"));
  if (reason == "waiting")
    return word(phase, "phase") == "communication"
               ? fmt::format("it waits for other ranks for {} more", duration(phase, "waiting_ns"))
               : fmt::format("the device is idle for {} more, with the next command submitted",
                             duration(phase, "waiting_ns"));
  return reason == "loading" ? "its program waits for data" : "";
}

}  // namespace

std::string rank_words(const Json& each, const Json& ranks) {
  const auto same = std::count_if(ranks.begin(), ranks.end(),
                                  [&](const Json& other) { return at(other, {"rank"}) == at(each, {"rank"}); });
  return same > 1 ? fmt::format("{} ({})", count(each, "rank"), word(each, "device")) : count(each, "rank");
}

std::string phase_words(const std::string& phase) { return phase == "data_loading" ? "data loading" : phase; }

std::string slow_rank_sentence(const Json& phase, const Json& ranks) {
  const std::string why = slow_phase_words(phase);
  if (why.empty()) return {};
  const double ns = number(phase, {"slowest_ns"}).value_or(0), median_ns = number(phase, {"against_ns"}).value_or(0);
  return fmt::format("{}: rank {} takes {} more than rank {}, the median{}; {}.",
                     sentence(phase_words(word(phase, "phase"))), rank_words(at(phase, {"slowest"}), ranks),
                     format_duration(ns - median_ns), rank_words(at(phase, {"against"}), ranks),
                     median_ns > 0 ? fmt::format(" ({:.0f} %)", 100 * (ns - median_ns) / median_ns) : "", why);
}

ReportSection rank_phases_section(const Json& document, std::size_t most) {
  const Json& found = at(document, {"rank_phases"});
  const bool are_steps = is_true(found, {"are_steps"});
  ReportSection section{are_steps ? "Phases of a step, by rank" : "Phases, by rank"};
  const Json& ranks = at(found, {"ranks"});
  const Json& phases = at(found, {"phases"});
  std::vector<ReportTable::Column> columns = {{"rank", true}};
  std::vector<std::string> keys;
  for (const char* phase : kRankPhaseKeys)
    if (std::any_of(phases.begin(), phases.end(), [&](const Json& each) { return at(each, {"phase"}) == phase; })) {
      columns.push_back({phase == std::string_view("communication") ? "comm." : phase_words(phase)});
      keys.push_back(std::string(phase) + "_ns");
    }
  ReportTable table{std::move(columns)};
  for (const Json& rank : first(ranks, most)) {
    table.rows.push_back({rank_words(rank, ranks)});
    for (const std::string& key : keys) table.rows.back().push_back(duration(rank, key.c_str()));
  }
  if (ranks.size() > table.rows.size()) table.after = fmt::format("and {} more", ranks.size() - table.rows.size());
  section.tables.push_back(std::move(table));
  for (const Json& phase : phases)
    if (const std::string words = slow_rank_sentence(phase, ranks); !words.empty()) section.remark(words);
  return section;
}

}  // namespace weir::analysis
