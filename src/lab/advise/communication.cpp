#include "lab/advise/communication.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "lab/advise/collectives_apart.h"

namespace weir::advise {
namespace {

constexpr std::uint64_t kLarge = 1 << 20;
constexpr std::size_t kFewestSizes = 4;  // collectives, for a line through their times

class Communication {
 public:
  Communication(const ReplayModel& model, const Timeline& timeline)
      : model_(model), are_waits_known_(timeline.has_dependencies) {
    std::map<std::uint32_t, const CollectiveFacts*> by_span;
    for (const CollectiveFacts& facts : timeline.collectives) by_span[facts.span] = &facts;
    is_fsdp_ = std::any_of(timeline.names.begin(), timeline.names.end(), [](const std::string& name) {
      return name.find("FSDP") != std::string::npos || name.find("fsdp") != std::string::npos ||
             name.find("FullySharded") != std::string::npos;
    });
    facts_.resize(model.commands.size());
    for (std::size_t i = 0; i < model.commands.size(); ++i) {
      all_ns_ += model.commands[i].work_ns;
      if (const auto at = by_span.find(model.commands[i].span); at != by_span.end()) facts_[i] = at->second;
    }
  }

  void ask(std::vector<WhatIf>& found) const {
    add(overlap(), found);
    add(prefetch(), found);
    add(larger_buckets(), found);
    add(best_bandwidth(), found);
  }

 private:
  static void add(WhatIf one, std::vector<WhatIf>& found) {
    if (one.share > kLeastShare) found.push_back(std::move(one));
  }
  bool is_of(std::size_t command, CollectiveKind kind) const {
    return facts_[command] != nullptr && facts_[command]->kind == kind;
  }
  bool is_large(std::size_t command) const {
    return facts_[command] != nullptr && facts_[command]->bytes >= kLarge && model_.commands[command].work_ns > 0;
  }

  // Each collective as early as its stream and its events let it begin, and waited for only where an event says so.
  WhatIf overlap() const {
    WhatIf one;
    one.kind = "overlap";
    one.title = "communication overlapped as far as dependencies allow";
    one.setting =
        "run collectives on a stream of their own and wait for each where its result is needed (async_op=True, wait())";
    one.effort = Effort::code;
    std::vector<bool> is_collective;
    double ns = 0;
    for (std::size_t i = 0; i < facts_.size(); ++i) {
      is_collective.push_back(facts_[i] != nullptr);
      if (is_collective.back()) ns += model_.commands[i].work_ns;
    }
    one.share = all_ns_ > 0 ? ns / all_ns_ : 0;
    const CollectivesApart apart = collectives_apart(model_, is_collective);
    one.change.instead = apart.model;
    if (!are_waits_known_)
      one.reason = "the trace does not record which stream waited for which";
    else if (apart.model == nullptr)
      one.reason =
          "collectives share streams with kernels and no event waits for any, so who reads their results is unknown";
    else if (apart.kept > 0)
      one.title += fmt::format(" ({} of {}: who reads the others is unknown)", apart.moved, apart.moved + apart.kept);
    return one;
  }

  // FSDP's all-gathers fetch parameters, which no kernel of this step computes: what they wait for on other streams is
  // only the moment at which the program asked for them. Those of other programs may fetch what kernels have computed.
  WhatIf prefetch() const {
    WhatIf one;
    one.kind = "prefetch";
    one.title = "all-gathers that wait for no kernel";
    one.setting =
        "prefetch parameters (FSDP: forward_prefetch, backward_prefetch; FSDP2: set_modules_to_forward_prefetch)";
    one.effort = Effort::line;
    one.change.waits_for_nobody.assign(model_.commands.size(), 0);
    double ns = 0;
    for (std::size_t i = 0; is_fsdp_ && i < model_.commands.size(); ++i) {
      if (!is_of(i, CollectiveKind::all_gather) || model_.commands[i].edges == 0) continue;
      one.change.waits_for_nobody[i] = 1;
      ns += model_.commands[i].work_ns;
    }
    one.share = all_ns_ > 0 ? ns / all_ns_ : 0;
    return one;
  }

  struct Line {
    double latency_ns = 0, ns_per_byte = 0;
  };
  // Least squares through the times of collectives of one kind, by size.
  std::optional<Line> line_of(CollectiveKind kind) const {
    double count = 0, x = 0, y = 0, xx = 0, xy = 0;
    for (std::size_t i = 0; i < facts_.size(); ++i) {
      if (!is_of(i, kind) || facts_[i]->bytes == 0 || model_.commands[i].work_ns <= 0) continue;
      const auto bytes = static_cast<double>(facts_[i]->bytes);
      count += 1;
      x += bytes;
      y += model_.commands[i].work_ns;
      xx += bytes * bytes;
      xy += bytes * model_.commands[i].work_ns;
    }
    const double scatter = count * xx - x * x;
    if (count < kFewestSizes || scatter <= 1e-9 * count * xx) return std::nullopt;  // all of one size
    Line line;
    line.ns_per_byte = (count * xy - x * y) / scatter;
    line.latency_ns = (y - line.ns_per_byte * x) / count;
    if (line.ns_per_byte <= 0 || line.latency_ns <= 0) return std::nullopt;
    return line;
  }

  // Gradients are not needed before the optimizer, so two neighbours can be one collective, which begins when the
  // second one would have.
  WhatIf larger_buckets() const {
    WhatIf one;
    one.kind = "buckets";
    one.title = "buckets of gradients twice as large";
    one.setting = "larger buckets (DDP: bucket_cap_mb; FSDP: wrap larger modules)";
    one.effort = Effort::line;
    one.change.work.assign(model_.commands.size(), 1);
    double saved = 0;
    for (const CollectiveKind kind : {CollectiveKind::all_reduce, CollectiveKind::reduce_scatter}) {
      const std::optional<Line> line = line_of(kind);
      if (!line) continue;
      std::map<std::pair<std::uint16_t, std::uint32_t>, std::size_t>
          first_of;  // by stream and step: waits for its second
      for (std::size_t i = 0; i < facts_.size(); ++i) {
        if (!is_of(i, kind) || facts_[i]->bytes == 0 || model_.commands[i].work_ns <= 0) continue;
        const std::uint32_t step = model_.step_of.empty() ? 0 : model_.step_of[i];
        const auto [at, is_first] = first_of.try_emplace({model_.commands[i].stream, step}, i);
        if (is_first) continue;
        const double before = model_.commands[at->second].work_ns, second = model_.commands[i].work_ns;
        const double both = std::max(std::max(before, second), before + second - line->latency_ns);
        one.change.work[at->second] = 0;
        one.change.work[i] = both / second;
        saved += before + second - both;
        first_of.erase(at);
      }
    }
    one.share = all_ns_ > 0 ? saved / all_ns_ : 0;
    return one;
  }

  // Each large collective at the best bandwidth that its kind reached in this trace.
  WhatIf best_bandwidth() const {
    std::map<CollectiveKind, double> best;  // bytes per nanosecond
    const auto rate_of = [&](std::size_t i) {
      return static_cast<double>(facts_[i]->bytes) / model_.commands[i].work_ns;
    };
    for (std::size_t i = 0; i < facts_.size(); ++i)
      if (is_large(i)) best[facts_[i]->kind] = std::max(best[facts_[i]->kind], rate_of(i));
    WhatIf one;
    one.kind = "communication";
    one.title = "large collectives at their best bandwidth";
    one.change.work.assign(model_.commands.size(), 1);
    double saved = 0;
    for (std::size_t i = 0; i < facts_.size(); ++i) {
      if (!is_large(i)) continue;
      one.change.work[i] = rate_of(i) / best[facts_[i]->kind];
      saved += model_.commands[i].work_ns * (1 - one.change.work[i]);
    }
    one.share = all_ns_ > 0 ? saved / all_ns_ : 0;
    return one;
  }

  const ReplayModel& model_;
  std::vector<const CollectiveFacts*> facts_;  // by command
  double all_ns_ = 0;
  bool is_fsdp_ = false, are_waits_known_;
};

}  // namespace

void ask_about_communication(const ReplayModel& model, const Timeline& timeline, std::vector<WhatIf>& found) {
  if (!timeline.collectives.empty()) Communication(model, timeline).ask(found);
}

}  // namespace weir::advise
