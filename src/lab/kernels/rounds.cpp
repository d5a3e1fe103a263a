#include "lab/kernels/rounds.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <set>

#include "base/error.h"
#include "base/private_folder.h"
#include "base/units.h"
#include "lab/kernels/document.h"
#include "lab/kernels/facts.h"
#include "run/children.h"
#include "run/line_process.h"
#include "run/rounds.h"

namespace weir::bench {
namespace {

namespace fs = std::filesystem;

constexpr double kFactsLimitS = 60, kCeilingsLimitS = 120;
constexpr double kBuildLimitS = 150;  // the child stops compilers earlier
constexpr std::size_t kMaxOutput = 2000;

std::vector<std::string> child_command() { return {own_binary().string(), "bench", "--child"}; }

std::int64_t ns_of(double seconds) { return static_cast<std::int64_t>(seconds * 1e9); }

std::vector<double> read_samples(const fs::path& file) {
  const std::string bytes = start_of_file(file, kLargestDocument);
  std::vector<double> samples;
  for (std::size_t at = 0; at + sizeof(double) <= bytes.size(); at += sizeof(double)) {
    double sample = 0;
    std::memcpy(&sample, bytes.data() + at, sizeof sample);
    if (std::isfinite(sample) && sample > 0) samples.push_back(sample);
  }
  return samples;
}

// One unit in one round, in as many processes as necessary.
class UnitRun {
 public:
  UnitRun(const BenchPlan& plan, const BenchUnit& unit, const BenchSettings& settings, int round,
          const BenchEvents& events, BenchResults& results, std::set<std::string>& given_up,
          const std::atomic<bool>& stop)
      : unit_(unit),
        package_(plan.package_of(unit)),
        settings_(settings),
        round_(round),
        events_(events),
        results_(results),
        given_up_(given_up),
        stop_(stop),
        samples_(folder_.path() / "samples"),
        limit_s_(settings.options.time_limit_of(package_)) {}

  // Returns false where it was interrupted.
  bool run() {
    if (given_up_.contains(own_key())) return true;
    for (;;) {
      const std::size_t before = done_.size();
      running_.clear();
      has_failed_ = false;
      LineProcess child(child_command(), request(), ns_of(limit_s_));
      const LineProcess::End end = child.follow(stop_, [&](const Json& line) { take_line(line, child); });
      if (end.how == LineProcess::How::interrupted) {
        leave_rest("skipped", "the run was interrupted before it was measured");
        return false;
      }
      if (end.how == LineProcess::How::done && running_.empty() && has_cases_) {
        if (has_failed_) continue;  // it left the remaining cases to a new process, if there are any
        return true;
      }
      if (!given_up_.contains(own_key())) give_up(end, child);
      // Only a case can be skipped. If the process ended before its first case, the next one would too.
      if (given_up_.contains(own_key()) || done_.size() == before) {
        leave_rest("failed", "its package could not be opened again after another case had crashed");
        return true;
      }
    }
  }

 private:
  std::string own_key() const { return fmt::format("{}/{}", package_.name, name_of(unit_.backend)); }

  Json request() const {
    const BenchOptions& options = settings_.options;
    const std::string backend(name_of(unit_.backend));
    const auto ceilings = settings_.ceilings.find(backend);
    Json precisions = Json::array();
    for (const Precision precision : options.precisions) precisions.push_back(name_of(precision));
    Json done = done_;
    for (const std::string& key : given_up_) done.push_back(key);
    return {{"task", "measure"},
            {"folder", fs::absolute(package_.folder).string()},
            {"module", package_.module_name()},
            {"name", package_.name},
            {"backend", backend},
            {"precisions", precisions},
            {"seed", options.seed_of(package_)},
            {"iterations", options.iterations_of(package_, round_)},
            {"warmup", options.warmup_of(package_)},
            {"stop", static_cast<int>(options.stop)},
            {"budget_s", options.budget_s / options.rounds_of(package_)},
            {"is_cold", options.is_cold},
            // Takes a second or more per case; one round is enough.
            {"measures_energy", round_ == 0},
            {"threads", options.threads},
            {"device", options.device},
            {"compiler", settings_.compiler},
            {"cache", settings_.cache.string()},
            {"include", settings_.include.string()},
            {"samples", samples_.string()},
            {"facts", settings_.facts},
            {"ceilings", ceilings == settings_.ceilings.end() ? Json() : ceilings->second},
            {"done", done}};
  }

  void take_line(const Json& line, LineProcess& child) {
    const std::string event = text_of(line, "event");
    child.limit(ns_of(event == "building" ? std::max(limit_s_, kBuildLimitS) : limit_s_));
    if (event == "cases") {
      has_cases_ = true;
      take_cases(value_at(line, {"entries"}));
    } else if (event == "begins") {
      running_ = text_of(line, "key");
      if (events_.began) events_.began(running_, done_.size(), blank_.size());
    } else if (event == "ends") {
      running_.clear();
      const Json& entry = value_at(line, {"entry"});
      done_.push_back(text_of(entry, "key"));
      has_failed_ = text_of(entry, "status") == "failed";
      if (has_failed_) given_up_.insert(done_.back());
      add(entry);
    } else if (event == "refused") {
      Json entry = entry_of(package_, unit_.backend);
      put_failure(entry, "failed", text_of(line, "what"), text_of(line, "hint"), "", "");
      given_up_.insert(own_key());
      add(std::move(entry));
    }
  }

  void take_cases(const Json& entries) {
    for (const Json& entry : entries) {
      const std::string key = text_of(entry, "key");
      if (!blank_.emplace(key, entry).second) continue;  // reported by an earlier process of this round
      if (text_of(entry, "status") == "skipped" && !results_.has(unit_.package, key)) add(entry);
    }
  }

  // Records the failure of the running case, or of the whole unit if none was running.
  void give_up(const LineProcess::End& end, const LineProcess& child) {
    const auto found = blank_.find(running_);
    Json entry = found == blank_.end() ? entry_of(package_, unit_.backend) : found->second;
    const bool is_late = end.how == LineProcess::How::timed_out;
    std::string hint, what = end.words.empty() ? "its process ended before the case did" : end.words;
    if (is_late) hint = "Look for an endless loop; or allow more: --time-limit, or time_limit in bench.yaml.";
    if (end.signal == "SIGKILL") hint = "Was it killed, or is the machine out of memory (dmesg)?";
    if (found == blank_.end()) what = "while it was opened: " + what;
    put_failure(entry, is_late ? "timed_out" : "crashed", what, hint, end.signal, child.output(kMaxOutput));
    if (found != blank_.end())
      if (const std::vector<double> samples = read_samples(samples_); !samples.empty())
        entry["timing"] = timing_block(samples);
    const std::string key = text_of(entry, "key");
    done_.push_back(key);
    given_up_.insert(key);
    add(std::move(entry));
  }

  // Every case appears in the results: unreached ones are added, unless an earlier round has them.
  void leave_rest(const char* status, const char* why) {
    for (auto& [key, entry] : blank_) {
      if (results_.has(unit_.package, key)) continue;
      put_failure(entry, status, why, "", "", "");
      add(std::move(entry));
    }
  }

  void add(Json entry) {
    if (events_.measured) events_.measured(entry, round_);
    results_.add(unit_.package, std::move(entry));
  }

  const BenchUnit& unit_;
  const package::Package& package_;
  const BenchSettings& settings_;
  const int round_;
  const BenchEvents& events_;
  BenchResults& results_;
  std::set<std::string>& given_up_;
  const std::atomic<bool>& stop_;
  const PrivateFolder folder_;
  const fs::path samples_;
  const double limit_s_;
  bool has_cases_ = false;
  bool has_failed_ = false;  // the last case that ended
  std::string running_;
  std::vector<std::string> done_;
  std::map<std::string, Json> blank_;  // entries without results yet, by key
};

// Adds units that had reported nothing when the run was interrupted.
void leave_units(const BenchPlan& plan, BenchResults& results) {
  for (const BenchUnit& unit : plan.units) {
    const package::Package& package = plan.package_of(unit);
    Json entry = entry_of(package, unit.backend);
    const std::vector<Json> there = results.entries(unit.package);
    if (std::any_of(there.begin(), there.end(), [&](const Json& one) { return one["backend"] == entry["backend"]; }))
      continue;
    put_failure(entry, "skipped", "the run was interrupted before it was measured", "", "", "");
    results.add(unit.package, std::move(entry));
  }
}

// The answer of a child that examines this machine: {"task": "facts" | "ceilings", ...}. Throws with the child's
// message; null where it was interrupted.
Json ask_child(const Json& request, double limit_s, const std::atomic<bool>& stop) {
  LineProcess child(child_command(), request, ns_of(limit_s));
  Json found;
  std::string refusal;
  const LineProcess::End end = child.follow(stop, [&](const Json& line) {
    if (text_of(line, "event") == "result") found = value_at(line, {"value"});
    if (text_of(line, "event") == "refused") refusal = text_of(line, "what");
  });
  if (end.how == LineProcess::How::interrupted) return nullptr;
  if (!refusal.empty()) fail(refusal);
  if (found.is_null())
    fail(fmt::format("a child process ({}) {}", text_of(request, "task"),
                     end.words.empty() ? "reported nothing" : end.words));
  return found;
}

}  // namespace

std::optional<Json> find_facts(const BenchOptions& options, const package::Discovery& discovery,
                               const std::atomic<bool>& stop) {
  const bool has_python =
      std::any_of(discovery.packages.begin(), discovery.packages.end(), [](const package::Package& package) {
        const auto& listed = package.config.backends;
        return package.find(package::Form::python) != nullptr ||
               std::any_of(listed.begin(), listed.end(), package::is_framework);
      });
  const Json python = has_python ? find_python() : Json();
  Json backends = Json::object();
  for (const package::Backend backend : package::kBackends) {
    const std::string name(name_of(backend));
    if (is_framework(backend)) {
      if (has_python) backends[name] = framework_facts(python, backend);
      continue;
    }
    try {
      backends[name] =
          ask_child({{"task", "facts"}, {"backend", name}, {"device", options.device}}, kFactsLimitS, stop);
      if (backends[name].is_null()) return std::nullopt;
    } catch (const Error& error) {
      backends[name] = absent_backend(fmt::format("looking for it failed: {}", error.what()));
    }
  }
  return put_together(backends, python);
}

void find_ceilings(const BenchPlan& plan, BenchSettings& settings, const std::atomic<bool>& stop,
                   const std::function<void(const std::string& backend)>& began) {
  for (const BenchUnit& unit : plan.units) {
    const std::string backend(name_of(unit.backend));
    // What device a framework takes is its own choice.
    if (settings.ceilings.contains(backend) || is_framework(unit.backend)) continue;
    began(backend);
    try {
      Json found = ask_child({{"task", "ceilings"},
                              {"backend", backend},
                              {"device", settings.options.device},
                              {"threads", settings.options.threads}},
                             kCeilingsLimitS, stop);
      if (found.is_null()) return;
      settings.ceilings[backend] = std::move(found);
    } catch (const Error&) {
      settings.ceilings[backend] = nullptr;  // a roofline is optional: entries report that there is none
    }
  }
}

BenchResults::BenchResults(const BenchPlan& plan) : packages_(plan.packages.size()) {
  for (const Json& entry : plan.settled) {
    const auto found = std::find_if(plan.packages.begin(), plan.packages.end(), [&](const package::Package& package) {
      return package.name == text_of(entry, "kernel_name");
    });
    add(static_cast<std::size_t>(found - plan.packages.begin()), entry);
  }
  for (const std::vector<Kept>& kept : packages_) settled_.push_back(kept.size());
}

void BenchResults::add(std::size_t package, Json entry) {
  const std::string key = text_of(entry, "key");
  for (Kept& kept : packages_.at(package)) {
    if (kept.key != key) continue;
    kept.rounds.push_back(std::move(entry));
    return;
  }
  packages_.at(package).push_back({key, {std::move(entry)}});
}

bool BenchResults::has(std::size_t package, const std::string& key) const {
  const auto& kept = packages_.at(package);
  return std::any_of(kept.begin(), kept.end(), [&](const Kept& one) { return one.key == key; });
}

std::vector<Json> BenchResults::entries(std::size_t package) const {
  std::vector<Json> merged;
  for (const Kept& kept : packages_.at(package)) merged.push_back(merge_rounds(kept.rounds));
  // Backends arrive in random order.
  const auto place = [](const Json& entry) {
    const auto found = std::find_if(std::begin(package::kBackends), std::end(package::kBackends),
                                    [&](package::Backend backend) { return entry["backend"] == name_of(backend); });
    return found - std::begin(package::kBackends);
  };
  std::stable_sort(merged.begin() + static_cast<std::ptrdiff_t>(settled_.at(package)), merged.end(),
                   [&](const Json& one, const Json& other) { return place(one) < place(other); });
  return merged;
}

std::vector<Json> BenchResults::entries() const {
  std::vector<Json> all;
  for (std::size_t package = 0; package < packages_.size(); ++package)
    for (Json& entry : entries(package)) all.push_back(std::move(entry));
  return all;
}

bool run_units(const BenchPlan& plan, const BenchSettings& settings, const BenchEvents& events, BenchResults& results,
               const std::atomic<bool>& stop) {
  int rounds = 0;
  std::size_t total = 0, done = 0;
  for (const BenchUnit& unit : plan.units) {
    rounds = std::max(rounds, settings.options.rounds_of(plan.package_of(unit)));
    total += static_cast<std::size_t>(settings.options.rounds_of(plan.package_of(unit)));
  }
  std::set<std::string> given_up;  // crashed, hung or failed: not tried again
  RoundsControl control;
  control.wants = [&](std::size_t side, std::size_t round) {
    return static_cast<int>(round) < settings.options.rounds_of(plan.package_of(plan.units[side]));
  };
  control.run = [&](std::size_t side, std::size_t round) {
    const BenchUnit& unit = plan.units[side];
    BenchEvents mine = events;
    mine.began = [&](const std::string& what, std::size_t, std::size_t) {
      if (events.began) events.began(fmt::format("round {}, {}", round + 1, what), done, total);
    };
    mine.began(fmt::format("{}/{}", plan.package_of(unit).name, name_of(unit.backend)), 0, 0);
    const bool is_complete =
        UnitRun(plan, unit, settings, static_cast<int>(round), mine, results, given_up, stop).run();
    ++done;
    if (events.saved && is_complete) events.saved(unit.package);
    return is_complete;
  };
  const RoundsPlan order{.sides = plan.units.size(), .max_rounds = static_cast<std::size_t>(rounds)};
  if (run_rounds(order, control, stop).end != RoundsEnd::interrupted) return true;
  leave_units(plan, results);
  return false;
}

}  // namespace weir::bench
