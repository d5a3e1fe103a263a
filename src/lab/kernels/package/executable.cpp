// Kernels in separate programs, in any language. Their answers are checked as far as possible: where they ran, in which
// precision, and that their time fits into the harness's.
#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "base/error.h"
#include "base/options.h"
#include "device/cpu/host.h"
#include "lab/kernels/package/backends.h"
#include "lab/kernels/package/conversation.h"
#include "lab/kernels/package/discovery.h"
#include "lab/kernels/package/text.h"

namespace weir::package {
namespace {

// For programs that do not report their clock: no common clock is coarser, unless chosen so.
constexpr double kAssumedResolution_ns = 1000;
constexpr double kCoarsest_ns = 1e9;
// Far below a cycle of any processor: a program that reports less did not run, or does not count in nanoseconds.
constexpr double kShortestRun_ns = 0.01;
constexpr std::size_t kMaxPrintedParameters = 256, kMaxPrintedValues = 1024, kMaxOutputs = 1024;

struct Description {
  std::string summary;
  std::uint32_t backends = 0, precisions = 0;
  Problem defaults;
  std::optional<double> resolution_ns;
};

std::optional<double> number_in(const Conversation& talk, const char* operation, const Json& fields, const char* key) {
  const auto found = fields.find(key);
  if (found == fields.end() || found->is_null()) return std::nullopt;
  if (!found->is_number() || !std::isfinite(found->get<double>()) || found->get<double>() < 0)
    talk.refuse(operation, fmt::format("\"{}\" is {}", key, printable(found->dump(), 100)),
                "It must be a number that is not negative, or null where it is not known.");
  return found->get<double>();
}

std::string text_in(const Json& fields, const char* key) {
  const auto found = fields.find(key);
  return found != fields.end() && found->is_string() ? printable(found->string(), 500) : "";
}

// ["cpu", "cuda"] as bits.
template <class Parse>
std::uint32_t bits_in(const Conversation& talk, const Json& fields, const char* key, Parse parse) {
  const auto found = fields.find(key);
  if (found == fields.end() || !found->is_array()) talk.refuse("describe", fmt::format("has no list \"{}\"", key));
  std::uint32_t bits = 0;
  for (const Json& word : *found) {
    const auto value = word.is_string() ? parse(word.string()) : std::nullopt;
    if (!value) talk.refuse("describe", fmt::format("\"{}\" has {}", key, printable(word.dump(), 100)));
    bits |= bit_of(*value);
  }
  if (bits == 0) talk.refuse("describe", fmt::format("\"{}\" is empty", key));
  return bits;
}

// 64 or [64, 64, 64].
std::vector<double> values_in(const Conversation& talk, const std::string& name, const Json& json) {
  std::vector<double> values;
  const auto take = [&](const Json& value) {
    if (!value.is_number() || values.size() == kMaxPrintedValues)
      talk.refuse("describe", fmt::format("parameter \"{}\" is {}", printable(name, 100), printable(json.dump(), 100)),
                  "It must be a number or a list of numbers.");
    values.push_back(value.get<double>());
  };
  if (json.is_array()) {
    for (const Json& value : json) take(value);
  } else {
    take(json);
  }
  if (values.empty()) talk.refuse("describe", fmt::format("parameter \"{}\" has no default", printable(name, 100)));
  return values;
}

Description describe(Conversation& talk) {
  const Json fields = talk.ask("describe").fields;
  Description result;
  result.summary = text_in(fields, "summary");
  result.backends = bits_in(talk, fields, "backends", parse_backend);
  result.precisions = bits_in(talk, fields, "precisions", parse_precision);
  result.resolution_ns = number_in(talk, "describe", fields, "resolution_ns");
  if (result.resolution_ns && !(*result.resolution_ns > 0 && *result.resolution_ns <= kCoarsest_ns))
    talk.refuse("describe", fmt::format("\"resolution_ns\" is {:g}", *result.resolution_ns),
                "It is the smallest step of the clock in nanoseconds; leave it out where it is not known.");
  if (const auto parameters = fields.find("parameters"); parameters != fields.end() && !parameters->is_null()) {
    if (!parameters->is_object() || parameters->size() > kMaxPrintedParameters)
      talk.refuse("describe", "\"parameters\" is not an object of defaults");
    for (const auto& [name, value] : parameters->items()) {
      if (!is_name(name.c_str())) talk.refuse("describe", "a parameter has no name of printable characters");
      result.defaults.push_back({name, values_in(talk, name, value)});
    }
  }
  return result;
}

// Null stands for NaN and infinity, which JSON lacks.
std::vector<double> elements_in(const Conversation& talk, const std::string& output, const char* key,
                                const Json& json) {
  const auto found = json.find(key);
  if (found == json.end() || !found->is_array())
    talk.refuse("check", fmt::format("output {} has no list \"{}\"", output, key));
  std::vector<double> values;
  values.reserve(found->size());
  for (const Json& value : *found) {
    if (!value.is_number() && !value.is_null())
      talk.refuse("check", fmt::format("output {}: \"{}\" has {}", output, key, printable(value.dump(), 100)));
    values.push_back(value.is_null() ? std::numeric_limits<double>::quiet_NaN() : value.get<double>());
  }
  return values;
}

class ExecutableKernel final : public ReadyKernel {
 public:
  ExecutableKernel(std::shared_ptr<Conversation> talk, const Case& wanted, const Problem& problem,
                   std::optional<double> resolution_ns, const char* how, const OpenOptions& options)
      : talk_(std::move(talk)), backend_(wanted.backend), resolution_ns_(resolution_ns), how_(how) {
    const std::string precision(name_of(wanted.precision)), backend(name_of(wanted.backend));
    const Json fields = talk_
                            ->ask("setup", {{"backend", backend},
                                            {"precision", precision},
                                            {"problem", json_of(problem)},
                                            {"seed", wanted.seed},
                                            {"threads", options.threads},
                                            {"device_index", options.device}})
                            .fields;
    try {
      require_same(fields, "backend", backend, "runs on");
      require_same(fields, "precision", precision, "computes in");
      device_ = text_in(fields, "device");
      work_.flop = reported(fields, "flop");
      work_.bytes = reported(fields, "bytes");
      work_.items = reported(fields, "items");
      work_.item_name = text_in(fields, "item_name");
    } catch (...) {
      teardown();
      throw;
    }
  }
  ~ExecutableKernel() override { teardown(); }
  ExecutableKernel(const ExecutableKernel&) = delete;
  ExecutableKernel& operator=(const ExecutableKernel&) = delete;

  const Work& work() const override { return work_; }
  std::string how() const override { return how_; }
  std::string device_name() const override { return std::string(name_of(backend_)); }
  std::string device_model() const override {
    if (!device_.empty()) return device_ + " (as it says)";
    return backend_ == Backend::cpu ? cpu::host_model({}) : "not reported";
  }
  std::string clock() const override {
    return resolution_ns_ ? "the executable's own" : "the executable's own, taken to resolve 1 us";
  }
  double resolution_ns() const override { return resolution_ns_.value_or(kAssumedResolution_ns); }

  BatchTime run(std::uint64_t count) override {
    const auto [fields, wall_ns] = talk_->ask("run", {{"count", count}});
    const auto found = fields.find("elapsed_ns");
    if (found == fields.end() || !found->is_number()) talk_->refuse("run", "has no number \"elapsed_ns\"");
    const double elapsed_ns = found->get<double>();
    if (!(elapsed_ns >= 0) || elapsed_ns > wall_ns)
      talk_->refuse(
          "run",
          fmt::format("{} runs took {:.0f} ns by its clock, and {:.0f} ns from question to answer: impossible", count,
                      elapsed_ns, wall_ns),
          "elapsed_ns is the time of all runs of this question together, in nanoseconds.");
    // One step of a coarse clock may be missing.
    if (elapsed_ns + resolution_ns() < kShortestRun_ns * static_cast<double>(count))
      talk_->refuse("run", fmt::format("{} runs took {:g} ns by its clock: impossible", count, elapsed_ns),
                    "elapsed_ns is the time of all runs of this question together, in nanoseconds.");
    return {elapsed_ns, 0, wall_ns};
  }
  BatchTime run_cold() override { fail(fmt::format("{}: no cold runs: {}", talk_->name(), cold_reason())); }
  std::string cold_reason() const override { return "only the executable could empty its caches"; }

  Checked check() override;
  KernelMemory memory() override {
    std::string refusal;
    const auto reply = talk_->try_ask("memory", Json::object(), refusal);
    if (!reply) return {std::nullopt, std::nullopt, "the executable does not report it: " + refusal};
    const auto bytes = [&](const char* key) -> std::optional<std::uint64_t> {
      const auto value = number_in(*talk_, "memory", reply->fields, key);
      if (!value || *value > 0x1p60) return std::nullopt;
      return static_cast<std::uint64_t>(*value);
    };
    KernelMemory memory{bytes("allocated_bytes"), bytes("peak_bytes"), ""};
    if (!memory.peak_bytes || !memory.allocated_bytes) memory.reason = "the executable does not report all of it";
    return memory;
  }
  Telemetry telemetry() override { return backend_ == Backend::cpu ? cpu::host_telemetry({}) : Telemetry{}; }
  std::optional<std::uint64_t> launches_per_run() const override { return std::nullopt; }

 private:
  // A program that lacks what was asked for must say so, instead of running something else under its name.
  void require_same(const Json& fields, const char* key, const std::string& asked, const char* verb) const {
    const std::string answered = text_in(fields, key);
    if (answered.empty())
      talk_->refuse("setup", fmt::format("does not say what it {} (\"{}\")", verb, key),
                    "Answer with the one that is really used.");
    if (answered != asked) talk_->refuse("setup", fmt::format("asked for {}, {} {}", asked, verb, answered));
  }
  std::optional<double> reported(const Json& fields, const char* key) const {
    const auto value = number_in(*talk_, "setup", fields, key);
    return value && *value > 0 ? value : std::nullopt;
  }
  void teardown() noexcept {
    try {
      std::string refusal;
      talk_->try_ask("teardown", Json::object(), refusal);
    } catch (...) {
      // The conversation is then broken, and the next case reports it.
    }
  }

  std::shared_ptr<Conversation> talk_;
  Backend backend_;
  std::optional<double> resolution_ns_;
  const char* how_;
  Work work_;
  std::string device_;
};

Checked ExecutableKernel::check() {
  const Json fields = talk_->ask("check").fields;
  const auto outputs = fields.find("outputs");
  if (outputs == fields.end() || !outputs->is_array() || outputs->size() > kMaxOutputs)
    talk_->refuse("check", "has no list \"outputs\"");
  Checked checked;
  for (const Json& json : *outputs) {
    CheckedOutput output;
    if (json.is_object()) output.name = text_in(json, "name");
    if (!is_name(output.name.c_str())) talk_->refuse("check", "an output has no name of printable characters");
    output.actual = elements_in(*talk_, output.name, "actual", json);
    const auto expected = json.find("expected");
    if (expected != json.end() && !expected->is_null()) {
      output.expected = elements_in(*talk_, output.name, "expected", json);
      if (output.expected.size() != output.actual.size())
        talk_->refuse("check", fmt::format("output {} has {} elements, and {} are expected", output.name,
                                           output.actual.size(), output.expected.size()));
    } else {
      checked.reason = fmt::format("the executable has no reference for output {}", output.name);
    }
    const auto whole = json.find("whole");
    output.is_whole = whole != json.end() && whole->is_boolean() && whole->get<bool>();
    std::size_t not_numbers = 0;
    for (const double value : output.actual) not_numbers += std::isnan(value) ? 1 : 0;
    if (not_numbers > 0)
      checked.faults.push_back(
          fmt::format("output {}: {} of {} elements are NaN", output.name, not_numbers, output.actual.size()));
    if (output.actual.empty()) checked.faults.push_back(fmt::format("output {}: has no elements", output.name));
    checked.outputs.push_back(std::move(output));
  }
  if (checked.outputs.empty()) checked.reason = "the executable shows no output";
  const auto errors = fields.find("errors");
  if (errors == fields.end() || errors->is_null()) return checked;
  if (!errors->is_object()) talk_->refuse("check", "\"errors\" is not an object");
  checked.reported.emplace();
  for (const auto& [key, error] :
       {std::pair("rmse", &ReportedErrors::rmse), std::pair("max_error", &ReportedErrors::max_error),
        std::pair("relative_error", &ReportedErrors::relative_error)}) {
    // Null stands for NaN and infinity here too.
    const auto value = errors->find(key);
    if (value == errors->end()) continue;
    (*checked.reported).*error =
        value->is_null() ? std::numeric_limits<double>::infinity() : number_in(*talk_, "check", *errors, key);
  }
  return checked;
}

class ExecutablePackage final : public OpenPackage {
 public:
  ExecutablePackage(std::shared_ptr<Conversation> talk, Description description, const char* how,
                    const OpenOptions& options)
      : talk_(std::move(talk)), description_(std::move(description)), how_(how), options_(options) {}

  std::uint32_t backends() const override { return description_.backends; }
  std::uint32_t precisions() const override { return description_.precisions; }
  const std::string& summary() const override { return description_.summary; }
  Problem defaults() const override { return description_.defaults; }
  std::unique_ptr<ReadyKernel> prepare(const Case& wanted) override {
    if ((description_.precisions & bit_of(wanted.precision)) == 0)
      reject(fmt::format("{}: the kernel has no {}", talk_->name(), name_of(wanted.precision)));
    return std::make_unique<ExecutableKernel>(talk_, wanted,
                                              complete_problem(talk_->name(), description_.defaults, wanted.problem),
                                              description_.resolution_ns, how_, options_);
  }

 private:
  std::shared_ptr<Conversation> talk_;
  Description description_;
  const char* how_;
  OpenOptions options_;
};

std::unique_ptr<OpenPackage> open_program(const Package& package, ProcessOptions process, const char* how,
                                          const OpenOptions& options) {
  process.folder = package.folder;
  process.file_bytes = std::uint64_t{16} << 30;
  process.is_stopped = options.is_stopped;
  auto talk = std::make_shared<Conversation>(package.name, std::move(process), options.reply_limit_s);
  Description description = describe(*talk);
  return std::make_unique<ExecutablePackage>(std::move(talk), std::move(description), how, options);
}

}  // namespace

std::unique_ptr<OpenPackage> open_executable(const Package& package, const OpenOptions& options) {
  const Part* const part = package.find(Form::executable);
  if (part == nullptr) reject(fmt::format("{}: has no executable", package.name));
  ProcessOptions process;
  process.command = {std::filesystem::absolute(part->file).string()};
  process.command.insert(process.command.end(), package.config.arguments.begin(), package.config.arguments.end());
  return open_program(package, std::move(process), "executable", options);
}

std::unique_ptr<OpenPackage> open_python(const Package& package, Backend backend, const OpenOptions& options) {
  const Config& config = package.config;
  const Problem first = problems_of(config.problem_size).front();
  const Json task = {{"file", std::filesystem::absolute(package.find(Form::python)->file).string()},
                     {"function", config.function_name.empty() ? kUsualFunction : config.function_name},
                     {"problem", json_of(first)},
                     {"precision", config.precisions.empty() ? Json() : Json(name_of(config.precisions.front()))}};
  ProcessOptions process;
  process.command = {"python3", "-c", std::string(python_adapter()), task.dump()};
  const std::string threads = std::to_string(options.threads);
  process.variables = {{"PYTHONDONTWRITEBYTECODE", "1"},
                       {"OMP_NUM_THREADS", threads},
                       {"OPENBLAS_NUM_THREADS", threads},
                       {"MKL_NUM_THREADS", threads}};
  // Modules often take a GPU where they see one. So that a result of the CPU is one, they see none.
  if (backend == Backend::cpu)
    for (const char* const name : {"CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES"})
      process.variables.emplace_back(name, "");
  if (backend == Backend::cpu) process.variables.emplace_back("JAX_PLATFORMS", "cpu");
  return open_program(package, std::move(process), "python", options);
}

}  // namespace weir::package
