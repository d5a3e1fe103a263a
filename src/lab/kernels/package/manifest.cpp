// kernel_manifest.json: the packages that were found, their dependencies, and why parts of them do not run. Reads no
// file.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "base/named_values.h"
#include "base/schemas.h"
#include "lab/kernels/package/discovery.h"

namespace weir::package {
namespace {

template <class Word>
Json names_of(const std::vector<Word>& words) {
  return json_list(words, [](const Word word) { return name_of(word); });
}

Json sweeps_of(const std::vector<Sweep>& sweeps) {
  Json all = Json::object();
  for (const Sweep& sweep : sweeps) {
    Json values = Json::array();
    for (const std::vector<double>& value : sweep.values) values.push_back(plain_numbers(value));
    all[sweep.name] = std::move(values);
  }
  return all;
}

Json limits_of(const Tolerance& limits) { return WEIR_NAMED(limits.rmse, limits.relative_error); }

Json config_of(const Config& config) {
  Json tolerances = limits_of(config.tolerances);
  for (const auto& [precision, limits] : config.precision_tolerances)
    tolerances[std::string(name_of(precision))] = limits_of(limits);
  Json skips = Json::array();
  for (const SkipCondition& skip : config.skip_conditions)
    skips.push_back({{"backend", skip.backend ? Json(name_of(*skip.backend)) : Json()},
                     {"reason", skip.reason},
                     {"check", skip.check ? Json(skip.check->text()) : Json()}});
  constexpr const char* kCompilers[] = {"auto", "runtime", "ahead"};
  Json json = WEIR_NAMED(sweeps_of(config.problem_size));
  json["precisions"] = config.precisions.empty() ? Json() : names_of(config.precisions);
  json["backends"] = config.backends.empty() ? Json() : names_of(config.backends);
  json["tolerances"] = std::move(tolerances);
  json["skip_conditions"] = std::move(skips);
  json.update(WEIR_NAMED(config.iterations, config.warmup, config.seed, config.time_limit_s, config.dependencies,
                         config.compile_flags));
  json["compiler"] = kCompilers[static_cast<int>(config.compiler)];
  json["arguments"] = config.arguments;
  json["function_name"] = text_or_null(config.function_name);
  return json;
}

// Backends that both the parts and bench.yaml support.
std::vector<Backend> offered(const Package& package) {
  std::vector<Backend> backends = package.backends();
  const auto& wanted = package.config.backends;
  if (!wanted.empty())
    std::erase_if(backends,
                  [&](Backend each) { return std::find(wanted.begin(), wanted.end(), each) == wanted.end(); });
  return backends;
}

// Why the package, or a backend that its bench.yaml names, cannot run on any machine.
std::vector<Skipped> skipped_by_files(const Package& package) {
  std::vector<Skipped> skipped;
  if (!package.trouble.empty()) skipped.push_back({package.name, "", "", "", package.trouble, package.hint});
  const std::vector<Backend> served = package.backends();
  for (const Backend backend : package.config.backends)
    if (std::find(served.begin(), served.end(), backend) == served.end())
      skipped.push_back({package.name, std::string(name_of(backend)), "", "",
                         fmt::format("bench.yaml names {}, and no file of the package serves it", name_of(backend)),
                         fmt::format("Add {}, or take it out of backends.", source_file_of(backend))});
  return skipped;
}

Json entry_of(const Skipped& skipped) {
  return WEIR_NAMED(text_or_null(skipped.backend), text_or_null(skipped.precision), text_or_null(skipped.problem),
                    skipped.reason, text_or_null(skipped.hint));
}

Json package_document(const Package& package, std::vector<const Skipped*> given) {
  Json parts = Json::array(), dependencies = Json::array(), skipped = Json::array();
  for (const Part& part : package.parts)
    parts.push_back({{"form", name_of(part.form)}, {"file", part.file.filename().string()}});
  for (const Dependency& each : package.dependencies) dependencies.push_back(WEIR_NAMED(each.name, each.needed_by));
  for (const Skipped& own : skipped_by_files(package)) {
    const auto is_same = [&](const Skipped* each) { return each->backend == own.backend && each->precision.empty(); };
    if (std::none_of(given.begin(), given.end(), is_same)) skipped.push_back(entry_of(own));
  }
  for (const Skipped* const each : given) skipped.push_back(entry_of(*each));
  return {{"name", package.name},
          {"path", path_from_here(package.folder).string()},
          {"backend", names_of(offered(package))},
          {"parts", std::move(parts)},
          {"dependencies", std::move(dependencies)},
          {"has_config", package.has_config},
          // If the package cannot be used, its config has no effect.
          {"config", package.trouble.empty() ? config_of(package.config) : Json()},
          {"skipped", std::move(skipped)}};
}

}  // namespace

Json plain_number(double value) {
  if (std::fabs(value) < 0x1p53 && std::floor(value) == value) return static_cast<std::int64_t>(value);
  return value;
}

Json plain_numbers(const std::vector<double>& values) {
  if (values.size() == 1) return plain_number(values[0]);
  return json_list(values, plain_number);
}

Json json_of(const Problem& problem) {
  Json json = Json::object();
  for (const Setting& setting : problem) json[setting.name] = plain_numbers(setting.values);
  return json;
}

Json manifest_document(const Discovery& discovery, std::span<const Skipped> skipped) {
  std::map<std::string_view, std::vector<const Skipped*>> by_package;
  for (const Skipped& each : skipped) by_package[each.package].push_back(&each);
  Json kernels = Json::array();
  for (const Package& package : discovery.packages)
    kernels.push_back(package_document(package, by_package[package.name]));
  return {{"schema", schemas::kernel_manifest}, {"kernels", std::move(kernels)}, {"notes", discovery.notes}};
}

}  // namespace weir::package
