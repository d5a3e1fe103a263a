// The child's side of `weir bench`. Declared in rounds.h, with what it is asked for and what it reports.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <exception>

#include "base/descriptor.h"
#include "base/error.h"
#include "base/file.h"
#include "lab/kernels/document.h"
#include "lab/kernels/facts.h"
#include "lab/kernels/package/build.h"
#include "lab/kernels/package/discovery.h"
#include "lab/kernels/package/host_part.h"
#include "lab/kernels/package/ready_kernel.h"
#include "lab/kernels/rounds.h"
#include "run/line_process.h"

namespace weir::bench {
namespace {

namespace fs = std::filesystem;
using package::Backend;

constexpr rlim_t kLargestFile = rlim_t{1} << 30;  // what a kernel that prints endlessly may write

void lower_limit(decltype(RLIMIT_CORE) what, rlim_t most) {
  rlimit limit{};
  if (::getrlimit(what, &limit) != 0) return;
  limit.rlim_max = std::min(limit.rlim_max, most);
  limit.rlim_cur = std::min(limit.rlim_cur, limit.rlim_max);
  ::setrlimit(what, &limit);
}

// A faulty package must not affect more than its own process.
void confine() {
  lower_limit(RLIMIT_CORE, 0);
  lower_limit(RLIMIT_FSIZE, kLargestFile);
  // If memory runs out, this process should be killed and no other. Address space is not limited: GPU drivers reserve
  // far more than they use.
  if (const Descriptor file = open_kernel_file("/proc/self/oom_score_adj", O_WRONLY)) write_all(file.get(), "1000");
}

// Samples of the running case, as doubles in a file that the parent reads.
class SampleFile {
 public:
  explicit SampleFile(const std::string& name) : file_(create_file(name)) {}
  void restart() {
    if (::ftruncate(file_.get(), 0) != 0 || ::lseek(file_.get(), 0, SEEK_SET) != 0) fail("cannot keep samples");
  }
  void add(double sample_ns) {
    // A lost sample matters only if this process crashes.
    [[maybe_unused]] const ssize_t written = ::write(file_.get(), &sample_ns, sizeof(sample_ns));
  }

 private:
  Descriptor file_;
};

template <class Word>
Word word_of(const Json& json, std::optional<Word> (*parse)(std::string_view), const std::string& file) {
  const std::optional<Word> word = json.is_string() ? parse(json.get<std::string>()) : std::nullopt;
  if (!word) reject(fmt::format("--child {}: not a request of weir bench", file));
  return *word;
}

struct Job {
  package::Package package;
  Backend backend = Backend::cpu;
  std::vector<Precision> asked;  // empty: bench.yaml's, or the kernel's
  std::uint64_t seed = 0;
  package::OpenOptions open;
  MethodOptions method;
  std::optional<Ceilings> ceilings;
  Json facts;
  std::vector<std::string> done;  // keys of cases to leave out
};

package::Package package_at(const fs::path& folder, const std::string& module, const std::string& name) {
  const fs::path roots[] = {folder};
  package::Discovery found = package::discover(roots);
  for (package::Package& package : found.packages) {
    std::error_code ignored;
    if (!fs::equivalent(package.folder, folder, ignored) || package.module_name() != module) continue;
    package.name = name;  // the name that the whole run uses
    return std::move(package);
  }
  fail(fmt::format("{}: the package is gone", folder.string()), "Was it moved while weir bench ran?");
}

Job job_of(const Json& request, const std::string& file) {
  Job job;
  job.package =
      package_at(request.at("folder").get<std::string>(), request.at("module").string(), request.at("name").string());
  if (!job.package.trouble.empty()) reject(job.package.trouble, job.package.hint);
  job.backend = word_of(request.at("backend"), package::parse_backend, file);
  for (const Json& name : request.at("precisions")) job.asked.push_back(word_of(name, package::parse_precision, file));
  request.at("seed").get_to(job.seed);
  job.open.cache = request.at("cache").get<std::string>();
  job.open.include = request.at("include").get<std::string>();
  request.at("compiler").get_to(job.open.compiler);
  request.at("device").get_to(job.open.device);
  request.at("threads").get_to(job.open.threads);
  request.at("iterations").get_to(job.method.iterations);
  request.at("warmup").get_to(job.method.warmup);
  job.method.stop = static_cast<Stop>(request.at("stop").get<int>());
  request.at("budget_s").get_to(job.method.budget_s);
  request.at("is_cold").get_to(job.method.is_cold);
  request.at("measures_energy").get_to(job.method.measures_energy);
  if (!request.at("ceilings").is_null()) job.ceilings = ceilings_from(request.at("ceilings"));
  job.facts = request.at("facts");
  request.at("done").get_to(job.done);
  return job;
}

// Builds what open_package() will use, and keeps it: as a separate step, so that a slow compiler is not mistaken for a
// library that hangs when it is opened.
void build_before(const Job& job) {
  const package::Part* const source = job.package.find(source_of(job.backend));
  if (source == nullptr || source->form == package::Form::python) return;
  const bool is_ahead = job.package.config.compiler == package::Compiler::ahead;
  if (is_ahead && (job.backend == Backend::cuda || job.backend == Backend::hip)) {
    package::build_ahead(job.package, *source, job.open);
  } else {
    const package::Part* const host = job.package.find(package::Form::host_source);
    package::build_host_part(job.package, host != nullptr ? *host : *source, job.open);
  }
}

// The backends that a library declares, before it is used for any; 0 where the package has none or has sources for it.
std::uint32_t library_backends(const Job& job) {
  const package::Part* const library = job.package.find(package::Form::library);
  if (library == nullptr || job.package.find(source_of(job.backend)) != nullptr) return 0;
  return package::HostPart(library->file, job.package.name).table().backends;
}

// All parameters of the kernel, with values from bench.yaml where it has them. Unknown ones are kept, to be rejected
// later.
package::Problem whole_problem(package::Problem defaults, const package::Problem& given) {
  for (const package::Setting& setting : given) {
    const auto found = std::find_if(defaults.begin(), defaults.end(),
                                    [&](const package::Setting& one) { return one.name == setting.name; });
    if (found == defaults.end()) {
      defaults.push_back(setting);
    } else {
      found->values = setting.values;
    }
  }
  return defaults;
}

std::string names_of(std::uint32_t bits, const auto& all) {
  std::string names;
  for (const auto one : all)
    if ((bits & bit_of(one)) != 0) names += fmt::format("{}{}", names.empty() ? "" : ", ", name_of(one));
  return names.empty() ? "nothing" : names;
}

// Why a case must not be run; empty where it may.
std::string reason_to_skip(const Job& job, std::uint32_t offered, Precision precision) {
  const auto& listed = job.package.config.precisions;
  if (!listed.empty() && std::find(listed.begin(), listed.end(), precision) == listed.end())
    return fmt::format("bench.yaml does not list {}", name_of(precision));
  if ((offered & bit_of(precision)) == 0)
    return fmt::format("the kernel does not have {}: it has {}", name_of(precision),
                       names_of(offered, package::kPrecisions));
  return skip_reason(job.package, job.backend, precision, job.facts).value_or("");
}

// grid: [128, 64, 32] is one value where the kernel has a grid of three numbers, and a sweep elsewhere.
std::vector<package::Sweep> sweeps_for(const package::Problem& defaults, std::vector<package::Sweep> sweeps) {
  for (package::Sweep& sweep : sweeps)
    for (const package::Setting& setting : defaults) {
      if (setting.name != sweep.name || setting.values.size() < 2 || setting.values.size() != sweep.values.size())
        continue;
      if (sweep.values[0].size() != 1) continue;
      std::vector<double> one;
      for (const std::vector<double>& value : sweep.values) one.push_back(value[0]);
      sweep.values = {std::move(one)};
    }
  return sweeps;
}

struct PlannedCase {
  package::Case wanted;
  Json entry;
  bool is_skipped = false;
};

std::vector<PlannedCase> plan_cases(const Job& job, package::OpenPackage& open) {
  std::vector<Precision> precisions = job.asked.empty() ? job.package.config.precisions : job.asked;
  // A Python function takes any precision that it is given, so it is measured in one where nobody chooses.
  const bool has_usual =
      job.package.find(package::Form::python) != nullptr && (open.precisions() & bit_of(Precision::fp32)) != 0;
  if (precisions.empty() && has_usual) precisions = {Precision::fp32};
  if (precisions.empty())
    for (const Precision one : package::kPrecisions)
      if ((open.precisions() & bit_of(one)) != 0) precisions.push_back(one);
  std::vector<PlannedCase> cases;
  for (const package::Problem& given :
       package::problems_of(sweeps_for(open.defaults(), job.package.config.problem_size))) {
    const package::Problem problem = whole_problem(open.defaults(), given);
    for (const Precision precision : precisions) {
      PlannedCase one;
      one.wanted = {job.backend, precision, problem, job.seed};
      one.entry = entry_of(job.package, one.wanted);
      const std::string reason = reason_to_skip(job, open.precisions(), precision);
      one.is_skipped = !reason.empty();
      if (one.is_skipped) put_failure(one.entry, "skipped", reason, "", "", "");
      cases.push_back(std::move(one));
    }
  }
  return cases;
}

Json measure_case(const Job& job, package::OpenPackage& open, PlannedCase planned, const Surroundings& surroundings) {
  try {
    const std::unique_ptr<package::ReadyKernel> kernel = open.prepare(planned.wanted);
    MethodOptions method = job.method;
    method.tolerance = job.package.config.tolerance_of(planned.wanted.precision);
    const MeasuredKernel found =
        measure(*kernel, planned.wanted.precision, method, job.ceilings ? &*job.ceilings : nullptr, surroundings);
    put_measurement(planned.entry, found, *kernel);
    planned.entry["threads"] = job.backend == Backend::cpu ? Json(job.open.threads) : Json();
  } catch (const Error& error) {
    put_failure(planned.entry, "failed", error.what(), error.hint, "", "");
  } catch (const std::bad_alloc&) {
    put_failure(planned.entry, "failed", "out of host memory", "Use a smaller problem_size.", "", "");
  } catch (const std::exception& error) {
    put_failure(planned.entry, "failed", error.what(), "", "", "");
  }
  return std::move(planned.entry);
}

void report_not_served(const Job& job, std::uint32_t served, const ToParent& parent) {
  Json entry = entry_of(job.package, job.backend);
  put_failure(entry, "skipped",
              fmt::format("the kernel does not serve {}: it serves {}", name_of(job.backend),
                          names_of(served, package::kBackends)),
              "", "", "");
  parent.send({{"event", "cases"}, {"entries", Json::array({entry})}});
}

void measure_package(const Json& request, const std::string& file, const ToParent& parent) {
  Job job = job_of(request, file);
  SampleFile samples(request.at("samples").string());
  job.method.on_sample = [&](double sample_ns) { samples.add(sample_ns); };
  parent.send({{"event", "building"}});
  build_before(job);
  parent.send({{"event", "opening"}});
  const std::uint32_t served = library_backends(job);
  if (served != 0 && (served & bit_of(job.backend)) == 0) return report_not_served(job, served, parent);
  const std::unique_ptr<package::OpenPackage> open = package::open_package(job.package, job.backend, job.open);
  if ((open->backends() & bit_of(job.backend)) == 0) return report_not_served(job, open->backends(), parent);
  std::vector<PlannedCase> cases = plan_cases(job, *open);
  Json entries = Json::array();
  for (const PlannedCase& one : cases) entries.push_back(one.entry);
  parent.send({{"event", "cases"}, {"entries", entries}});
  const Surroundings surroundings = host_surroundings();
  surroundings.yardstick_ns();  // allocates its memory now, so that it is not attributed to a kernel
  for (PlannedCase& one : cases) {
    const std::string key = one.entry["key"].string();
    if (one.is_skipped || std::find(job.done.begin(), job.done.end(), key) != job.done.end()) continue;
    samples.restart();
    parent.send({{"event", "begins"}, {"key", key}});
    Json entry = measure_case(job, *open, std::move(one), surroundings);
    const bool has_failed = entry["status"] == "failed";
    parent.send({{"event", "ends"}, {"entry", std::move(entry)}});
    // After an invalid address a GPU refuses all further work of this process, and a kernel may leave any state behind,
    // so the remaining cases go to a new process.
    if (has_failed) return;
  }
}

void answer(const Json& request, const std::string& file, const ToParent& parent) {
  const std::string& task = request.at("task").string();
  if (task == "facts") {
    parent.send({{"event", "result"},
                 {"value", find_backend_facts(word_of(request.at("backend"), package::parse_backend, file),
                                              request.at("device").get<int>())}});
  } else if (task == "ceilings") {
    const Ceilings found = measure_ceilings(word_of(request.at("backend"), package::parse_backend, file),
                                            request.at("device").get<int>(), request.at("threads").get<int>());
    parent.send({{"event", "result"}, {"value", ceilings_document(found)}});
  } else if (task == "measure") {
    measure_package(request, file, parent);
  } else {
    reject(fmt::format("--child {}: not a request of weir bench", file));
  }
}

}  // namespace

void run_bench_child(const std::string& file) {
  const Json request = read_json(file);
  if (!request.is_object() || !request.contains("task"))
    reject(fmt::format("--child {}: not a request of weir bench", file));
  confine();
  const ToParent parent;
  try {
    answer(request, file, parent);
  } catch (const Error& error) {
    parent.send({{"event", "refused"}, {"what", error.what()}, {"hint", error.hint}});
  } catch (const JsonError& error) {
    reject(fmt::format("--child {}: not a request of weir bench: {}", file, error.what()));
  }
}

}  // namespace weir::bench
