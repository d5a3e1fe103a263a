// The part of the `analyze` document about what a device worked for: modules, phases, operators by shape, steps.
#include <algorithm>
#include <array>
#include <span>

#include "base/named_values.h"
#include "run/analyze.h"
#include "trace/analyse/breakdown.h"
#include "trace/analyse/model_use.h"

namespace weir {
namespace {

constexpr std::size_t kMaxModules = 1000;  // listed in a document
constexpr std::array kListedPhases = {Phase::forward, Phase::backward, Phase::optimizer, Phase::unknown};

std::uint64_t of(const std::array<std::uint64_t, kPhases>& ns, Phase phase) noexcept {
  return ns[static_cast<std::size_t>(phase)];
}

class ModelDocument {
 public:
  ModelDocument(const ModelUse& found, const std::vector<std::string>& names, std::size_t top)
      : found_(found), names_(names), top_(top) {}

  Json modules() const {
    const std::size_t listed = std::min(found_.modules.size(), kMaxModules);
    std::uint64_t rest_ns = 0;
    for (std::size_t i = listed; i < found_.modules.size(); ++i) rest_ns += found_.modules[i].own.total_ns;
    Json list = Json::array();
    for (std::size_t i = 0; i < listed; ++i) {
      const ModuleUse& module = found_.modules[i];
      list.push_back({{"name", name(module.name)},
                      {"parent", module.parent == kNoModule ? Json() : Json(module.parent)},
                      {"commands", module.all.commands},
                      {"own_ns", module.own.total_ns},
                      {"total_ns", module.all.total_ns},
                      {"share", share(module.all.total_ns)},
                      {"forward_ns", of(module.phase_ns, Phase::forward)},
                      {"backward_ns", of(module.phase_ns, Phase::backward)}});
    }
    return {{"count", found_.modules.size()},
            {"list", std::move(list)},
            {"rest_ns", rest_ns},
            {"without", sum(found_.without_module)}};
  }

  Json phases() const {
    return json_list(kListedPhases, [&](Phase phase) -> Json {
      const WorkSum& work = found_.phases[static_cast<std::size_t>(phase)];
      return {{"phase", to_string(phase)},
              {"commands", work.commands},
              {"total_ns", work.total_ns},
              {"share", share(work.total_ns)}};
    });
  }

  Json shapes() const {
    std::uint64_t rest_ns = 0;
    Json top = Json::array();
    for (const ShapedUse& use : found_.shaped) {
      if (top.size() < top_)
        top.push_back(shaped(use));
      else
        rest_ns += use.work.total_ns;
    }
    return {{"count", found_.shaped.size()},
            {"top", std::move(top)},
            {"rest_ns", rest_ns},
            {"outside", sum(found_.outside)},
            {"without_call", sum(found_.without_call)}};
  }

  // Operators that the host launches more slowly than the device runs them.
  Json launch_limited() const {
    std::vector<const ShapedUse*> slow;
    std::uint64_t launching_ns = 0, total_ns = 0, late_ns = 0;
    for (const ShapedUse& use : found_.shaped) {
      if (use.launching_ns <= use.work.total_ns) continue;
      slow.push_back(&use);
      launching_ns += use.launching_ns;
      total_ns += use.work.total_ns;
      late_ns += use.late_ns;
    }
    std::stable_sort(slow.begin(), slow.end(),
                     [](const ShapedUse* a, const ShapedUse* b) { return a->late_ns > b->late_ns; });
    const std::size_t count = slow.size();
    if (slow.size() > top_) slow.resize(top_);
    return {{"count", count},
            {"total_ns", total_ns},
            {"launching_ns", launching_ns},
            {"late_ns", late_ns},
            {"top", json_list(slow, [&](const ShapedUse* use) { return shaped(*use); })}};
  }

  Json steps() const {
    const std::size_t listed = std::min(found_.steps.size(), kMaxIterations);
    WorkSum rest;
    for (std::size_t i = listed; i < found_.steps.size(); ++i) {
      rest.commands += found_.steps[i].work.commands;
      rest.total_ns += found_.steps[i].work.total_ns;
    }
    return {{"count", found_.steps.size()},
            {"list", json_list(std::span(found_.steps).first(listed),
                               [&](const StepUse& step) -> Json {
                                 return {{"name", name(step.name)},
                                         {"commands", step.work.commands},
                                         {"total_ns", step.work.total_ns},
                                         {"forward_ns", of(step.phase_ns, Phase::forward)},
                                         {"backward_ns", of(step.phase_ns, Phase::backward)},
                                         {"optimizer_ns", of(step.phase_ns, Phase::optimizer)},
                                         {"other_ns", of(step.phase_ns, Phase::unknown)}};
                               })},
            {"rest", sum(rest)},
            {"outside", sum(found_.outside_steps)}};
  }

 private:
  Json name(std::uint32_t number) const { return number < names_.size() ? Json(names_[number]) : Json(); }
  double share(std::uint64_t ns) const {
    return found_.work.total_ns > 0 ? static_cast<double>(ns) / static_cast<double>(found_.work.total_ns) : 0;
  }
  static Json sum(const WorkSum& work) { return WEIR_NAMED(work.commands, work.total_ns); }
  Json shaped(const ShapedUse& use) const {
    return {{"name", name(use.name)},
            {"shapes", name(use.shapes)},
            {"call", name(use.call)},
            {"commands", use.work.commands},
            {"calls", positive_or_null(use.calls)},
            {"total_ns", use.work.total_ns},
            {"share", share(use.work.total_ns)},
            {"launching_ns", use.launching_ns},
            {"late_ns", use.late_ns}};
  }

  const ModelUse& found_;
  const std::vector<std::string>& names_;
  std::size_t top_;
};

}  // namespace

Json model_json(const ModelUse& found, const std::vector<std::string>& names, std::size_t top) {
  const ModelDocument document(found, names, top);
  return {{"commands", found.work.commands},
          {"total_ns", found.work.total_ns},
          {"modules", found.modules.empty() ? Json() : document.modules()},
          {"phases", document.phases()},
          {"shapes", document.shapes()},
          {"launch_limited", document.launch_limited()},
          {"steps", found.steps.empty() ? Json() : document.steps()}};
}

}  // namespace weir
