#include "lab/kernels/package/package.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"

namespace weir::package {
namespace {

constexpr std::size_t kMaxProblems = 10'000;

template <class Word, std::size_t kCount>
std::optional<Word> find_word(const Word (&words)[kCount], std::string_view name) {
  for (const Word word : words)
    if (name_of(word) == name) return word;
  return std::nullopt;
}

// Integers as people write them: 1048576, not 1.048576e+06. Others as the shortest text that gives the same double.
std::string text_of(double value) {
  if (std::fabs(value) < 1e15 && value == std::trunc(value)) return fmt::format("{:.0f}", value == 0 ? 0.0 : value);
  return fmt::format("{}", value);
}

}  // namespace

std::optional<Backend> parse_backend(std::string_view word) {
  return find_word(kBackends, word == "rocm" ? "hip" : word == "torch" ? "pytorch" : word);
}
std::optional<Precision> parse_precision(std::string_view word) {
  return find_word(kPrecisions, word == "fp8" ? "fp8_e4m3" : word);
}

std::string_view name_of(Form form) {
  constexpr std::string_view kNames[] = {"host_source", "cuda_source", "hip_source", "opencl_source",
                                         "library",     "executable",  "python"};
  return kNames[static_cast<int>(form)];
}

std::string text_of(const Problem& problem) {
  std::string text;
  for (const Setting& setting : problem) {
    if (!text.empty()) text += ',';
    text += setting.name;
    char separator = '=';
    for (const double value : setting.values) {
      text += separator;
      text += text_of(value);
      separator = 'x';
    }
  }
  return text;
}

const Part* Package::find(Form form) const {
  const auto found = std::find_if(parts.begin(), parts.end(), [form](const Part& part) { return part.form == form; });
  return found == parts.end() ? nullptr : &*found;
}

std::string Package::module_name() const {
  const Part* const module = find(Form::python);
  return module == nullptr ? "" : module->file.filename().string();
}

std::vector<Backend> Package::backends() const {
  std::vector<Backend> found;
  if (find(Form::library) != nullptr || find(Form::executable) != nullptr || find(Form::python) != nullptr) {
    const bool is_python = find(Form::python) != nullptr, may_be_framework = find(Form::library) == nullptr;
    for (const Backend backend : kBackends) {
      const bool is_listed =
          std::find(config.backends.begin(), config.backends.end(), backend) != config.backends.end();
      const bool can_serve = is_python ? backend == Backend::cpu || backend == usual_backend ||
                                             (can_use_gpu && (backend == Backend::cuda || backend == Backend::hip))
                                       : !is_framework(backend);
      if (can_serve || (is_listed && may_be_framework && !(is_python && backend == Backend::opencl)))
        found.push_back(backend);
    }
    return found;
  }
  for (const Backend backend : kBackends)
    if (find(source_of(backend)) != nullptr) found.push_back(backend);
  return found;
}

Tolerance Config::tolerance_of(Precision precision) const {
  Tolerance result = tolerances;
  const auto own = precision_tolerances.find(precision);
  if (own == precision_tolerances.end()) return result;
  if (own->second.rmse) result.rmse = own->second.rmse;
  if (own->second.relative_error) result.relative_error = own->second.relative_error;
  return result;
}

std::string Case::key(std::string_view package) const {
  std::string key = fmt::format("{}/{}/{}", package, name_of(backend), name_of(precision));
  if (!problem.empty()) key += "/" + text_of(problem);
  return key;
}

std::vector<Problem> problems_of(const std::vector<Sweep>& sweeps) {
  std::size_t count = 1;
  for (const Sweep& sweep : sweeps) {
    // Both factors are below 2^32 here: a larger product is refused before it is multiplied again.
    count *= std::min(sweep.values.size(), kMaxProblems + 1);
    if (count > kMaxProblems)
      reject(fmt::format("problem_size: more than {} combinations", kMaxProblems),
             "Sweep fewer parameters, or fewer values of each.");
  }
  std::vector<Problem> problems;
  problems.reserve(count);
  for (std::size_t index = 0; index < count; ++index) {
    Problem& problem = problems.emplace_back(sweeps.size());
    std::size_t rest = index;
    for (std::size_t i = sweeps.size(); i-- > 0;) {
      const auto& values = sweeps[i].values;
      problem[i] = {sweeps[i].name, values[rest % values.size()]};
      rest /= values.size();
    }
  }
  return problems;
}

}  // namespace weir::package
