#include "lab/kernels/plan.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/error.h"
#include "lab/kernels/document.h"
#include "lab/kernels/facts.h"
#include "lab/kernels/package/dependency.h"

namespace weir::bench {
namespace {

using package::Backend;
using package::Package;

bool has(const auto& list, auto word) { return std::find(list.begin(), list.end(), word) != list.end(); }

// Precisions that are known without opening the kernel.
std::vector<Precision> known_precisions(const Package& package, const BenchOptions& options) {
  return options.precisions.empty() ? package.config.precisions : options.precisions;
}

// A library or an executable may support any backend, but only those in bench.yaml are promised.
bool is_promised(const Package& package, Backend backend) {
  using package::Form;
  return has(package.config.backends, backend) ||
         (package.find(Form::library) == nullptr && package.find(Form::executable) == nullptr);
}

class Planner {
 public:
  Planner(const BenchOptions& options, const Json& facts, const SearchPaths& search)
      : options_(options), facts_(facts), search_(search) {}

  void add(const Package& package) {
    if (!options_.takes(package)) return leave_out(package, "", "left out by --filter", "");
    plan_.packages.push_back(package);
    if (!package.trouble.empty()) {
      Json entry = entry_of(package);
      put_failure(entry, "failed", package.trouble, package.hint, "", "");
      plan_.settled.push_back(std::move(entry));
      return leave_out(package, "", package.trouble, package.hint);
    }
    package::Config needed = package.config;
    if (package.find(package::Form::python) != nullptr) needed.dependencies.emplace_back("python3");
    missing_ = package::missing_dependencies(needed, search_.programs, search_.libraries);
    for (const Backend backend : package::kBackends) add(package, backend);
  }
  BenchPlan take() { return std::move(plan_); }

 private:
  void add(const Package& package, Backend backend) {
    const std::string name(name_of(backend));
    const bool is_asked = has(options_.backends, backend), is_provided = has(package.backends(), backend);
    const bool is_listed = has(package.config.backends, backend);
    // A Python module could run in several ways; where nobody chooses, the usual one is enough.
    if (package.find(package::Form::python) != nullptr && options_.backends.empty() &&
        package.config.backends.empty() && backend != package.usual_backend)
      return;
    if (!options_.backends.empty() && !is_asked) {
      if (is_listed || (is_provided && package.config.backends.empty()))
        leave_out(package, name, "left out by --device", "");
      return;
    }
    if (!is_provided) {
      if (is_asked || is_listed)
        skip(package, backend, fmt::format("the package has nothing for {}", name),
             is_listed ? "Its bench.yaml lists the backend: add its source, or take it off the list." : "");
      return;
    }
    if (!package.config.backends.empty() && !is_listed) {
      if (is_asked) skip(package, backend, fmt::format("its bench.yaml does not list {}", name), "");
      return;
    }
    if (const auto absence = absence_of(facts_, backend)) {
      if (is_asked || is_promised(package, backend)) skip(package, backend, *absence, "");
      return;
    }
    if (!missing_.empty())
      return skip(package, backend, fmt::format("it needs {}, which is not here", fmt::join(missing_, ", ")),
                  "Install what is missing, or correct dependencies in its bench.yaml.");
    try {
      if (const auto reason = reason_for_all(package, backend)) return skip(package, backend, *reason, "");
    } catch (const Error& error) {
      Json entry = entry_of(package, backend);
      put_failure(entry, "failed", error.what(), error.hint, "", "");
      plan_.settled.push_back(std::move(entry));
      return;
    }
    plan_.units.push_back({plan_.packages.size() - 1, backend});
  }

  // Where bench.yaml skips every precision, the package need not be opened, and perhaps cannot be.
  std::optional<std::string> reason_for_all(const Package& package, Backend backend) const {
    std::vector<Precision> precisions = known_precisions(package, options_);
    if (precisions.empty()) precisions.assign(std::begin(package::kPrecisions), std::end(package::kPrecisions));
    std::optional<std::string> first;
    for (const Precision precision : precisions) {
      const auto reason = skip_reason(package, backend, precision, facts_);
      if (!reason) return std::nullopt;
      if (!first) first = reason;
    }
    return first;
  }

  void skip(const Package& package, Backend backend, const std::string& reason, const std::string& hint) {
    std::vector<Json> entries;
    const std::vector<Precision> precisions = known_precisions(package, options_);
    if (precisions.empty()) entries.push_back(entry_of(package, backend));
    for (const package::Problem& problem : package::problems_of(package.config.problem_size))
      for (const Precision precision : precisions)
        entries.push_back(entry_of(package, {backend, precision, problem, options_.seed_of(package)}));
    for (Json& entry : entries) {
      put_failure(entry, "skipped", reason, hint, "", "");
      plan_.settled.push_back(std::move(entry));
    }
    leave_out(package, std::string(name_of(backend)), reason, hint);
  }

  void leave_out(const Package& package, const std::string& backend, const std::string& reason,
                 const std::string& hint) {
    plan_.skipped.push_back({package.name, backend, "", "", reason, hint});
  }

  const BenchOptions& options_;
  const Json& facts_;
  const SearchPaths& search_;
  std::vector<std::string> missing_;  // dependencies missing for the package being added
  BenchPlan plan_;
};

}  // namespace

BenchPlan plan_bench(const package::Discovery& discovery, const BenchOptions& options, const Json& facts,
                     const SearchPaths& search) {
  Planner planner(options, facts, search);
  for (const Package& package : discovery.packages) planner.add(package);
  return planner.take();
}

Json plan_document(const BenchPlan& plan, const BenchOptions& options) {
  Json units = Json::array(), skipped = Json::array();
  for (const BenchUnit& unit : plan.units) {
    const Package& package = plan.package_of(unit);
    Json precisions = Json::array(), problems = Json::array();
    for (const Precision precision : known_precisions(package, options)) precisions.push_back(name_of(precision));
    for (const package::Problem& problem : package::problems_of(package.config.problem_size))
      problems.push_back(package::text_of(problem));
    units.push_back({{"package", package.name},
                     {"backend", name_of(unit.backend)},
                     {"precisions", precisions},
                     {"problems", problems},
                     {"iterations", options.iterations_of(package)},
                     {"rounds", options.rounds_of(package)},
                     {"folder", package.folder.string()}});
  }
  for (const package::Skipped& one : plan.skipped)
    skipped.push_back({{"package", one.package}, {"backend", one.backend}, {"reason", one.reason}});
  return {{"schema", "weir.bench_plan/1"}, {"units", units}, {"settled", plan.settled}, {"skipped", skipped}};
}

}  // namespace weir::bench
