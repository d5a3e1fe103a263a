#include "lab/kernels/facts.h"

#include <fmt/format.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <sstream>

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "base/process.h"
#include "device/device.h"
#include "lab/kernels/document.h"
#include "measure/environment.h"

namespace weir::bench {
namespace {

using package::Backend;

constexpr double kGib = 1024.0 * 1024 * 1024;

// model name	: Intel(R) Xeon(R) CPU @ 2.20GHz
std::string cpu_model() {
  std::istringstream file(read_kernel_file("/proc/cpuinfo"));
  for (std::string line; std::getline(file, line);) {
    const std::size_t colon = line.find(": ");
    if (line.starts_with("model name") && colon != std::string::npos) return line.substr(colon + 2);
  }
  return {};
}

Json machine_facts(const std::string& model) {
  utsname system{};
  ::uname(&system);
  const double memory = static_cast<double>(::sysconf(_SC_PHYS_PAGES)) * static_cast<double>(::sysconf(_SC_PAGE_SIZE));
  return {{"architecture", system.machine},
          {"cores", usable_cores().size()},
          {"cpu_model", text_or_null(model)},
          {"memory_bytes", number_or_null(memory > 0 ? std::optional(memory) : std::nullopt)}};
}

Json describe(const DeviceInfo& info, Backend backend) {
  Json precisions = Json::array();
  for (const Precision precision : info.precisions) precisions.push_back(name_of(precision));
  // DeviceInfo never lists fp64, because steps do not use it; these backends always have it.
  if (backend != Backend::opencl) precisions.push_back("fp64");
  return {{"is_present", true},
          {"reason", nullptr},
          {"name", info.name},
          {"model", info.model},
          {"driver", text_or_null(info.driver)},
          {"memory_bytes", or_null(info.memory_bytes.value)},
          {"multiprocessors", or_null(info.multiprocessors.value)},
          {"precisions", precisions}};
}

}  // namespace

Json find_backend_facts(Backend backend, int device) {
  const std::string name(name_of(backend));
  const auto types = device_types();
  const auto type = std::find_if(types.begin(), types.end(), [&](const DeviceType& one) { return one.name == name; });
  if (type == types.end()) return absent_backend("this program was built without it");
  try {
    const DeviceType::Found found = type->find();
    if (found.names.empty()) return absent_backend(found.reason);
    return describe(type->open(backend == Backend::cpu ? "" : std::to_string(device), {})->info(), backend);
  } catch (const Error& error) {
    return absent_backend(error.what());
  }
}

Json find_python() {
  // Nothing is imported: PyTorch alone would take seconds.
  constexpr const char* kScript =
      "import importlib.util, json, sys\n"
      "from importlib import metadata\n"
      "def version(name):\n"
      "    try: return metadata.version(name)\n"
      "    except Exception: return 'unknown' if importlib.util.find_spec(name) else None\n"
      "print(json.dumps({'version': '%d.%d.%d' % sys.version_info[:3], 'program': sys.executable,\n"
      "                  'libraries': {name: version(name) for name in sys.argv[1:]}}))\n";
  const auto printed = printed_by({"python3", "-c", kScript, "numpy", "scipy", "torch", "jax", "cupy", "numba"});
  if (!printed) return nullptr;
  // Warnings may come first.
  const std::size_t begin = printed->rfind("{\"version\"");
  try {
    return begin == std::string::npos ? Json() : parse_json(printed->substr(begin), "python3");
  } catch (const Error&) {
    return nullptr;
  }
}

Json framework_facts(const Json& python, Backend backend) {
  const char* const library = backend == Backend::pytorch ? "torch" : "jax";
  if (python.is_null()) return absent_backend("python3, 3.8 or later, is not here");
  const Json& version = value_at(python, {"libraries", library});
  if (!version.is_string()) return absent_backend(fmt::format("python3 has no {}", library));
  return {{"is_present", true},         {"reason", nullptr},
          {"name", name_of(backend)},   {"model", fmt::format("{} {}", library, version.string())},
          {"driver", nullptr},          {"memory_bytes", nullptr},
          {"multiprocessors", nullptr}, {"precisions", Json::array()}};
}

Json absent_backend(const std::string& reason) { return {{"is_present", false}, {"reason", reason}}; }

Json put_together(const Json& backends, const Json& python) {
  const Json& model = value_at(backends, {"cpu", "model"});
  std::string cpu = cpu_model();
  if (cpu.empty() && model.is_string()) cpu = model.get<std::string>();
  return {{"machine", machine_facts(cpu)}, {"backends", backends}, {"python", python}};
}

std::optional<std::string> absence_of(const Json& facts, Backend backend) {
  const std::string name(name_of(backend));
  if (is_set(facts, {"backends", name.c_str(), "is_present"})) return std::nullopt;
  const Json& reason = value_at(facts, {"backends", name.c_str(), "reason"});
  return fmt::format("{} is not on this machine: {}", name,
                     reason.is_string() ? reason.get<std::string>() : "the reason is not known");
}

package::Facts condition_facts(const Json& facts, Backend backend, Precision precision) {
  package::Facts known = {{"os", std::string("linux")},
                          {"backend", std::string(name_of(backend))},
                          {"precision", std::string(name_of(precision))}};
  for (const Backend one : package::kBackends)
    if (one != Backend::cpu)
      known[fmt::format("{}.is_present", name_of(one))] =
          is_set(facts, {"backends", std::string(name_of(one)).c_str(), "is_present"});
  const std::string name(name_of(backend));
  const bool is_cpu = backend == Backend::cpu;
  const auto put_number = [&](const char* word, std::initializer_list<const char*> path, double unit) {
    if (const auto value = number_at(facts, path)) known[word] = *value / unit;
  };
  const auto put_text = [&](const char* word, std::initializer_list<const char*> path) {
    if (const Json& value = value_at(facts, path); value.is_string()) known[word] = value.get<std::string>();
  };
  put_text("cpu.arch", {"machine", "architecture"});
  put_text("cpu.model", {"machine", "cpu_model"});
  put_number("cpu.cores", {"machine", "cores"}, 1);
  put_number("memory_gib", {"machine", "memory_bytes"}, kGib);
  if (!is_set(facts, {"backends", name.c_str(), "is_present"})) return known;
  put_text("device.model", {"backends", name.c_str(), "model"});
  if (is_cpu) {
    put_number("device.memory_gib", {"machine", "memory_bytes"}, kGib);
    put_number("device.multiprocessors", {"machine", "cores"}, 1);
  } else {
    put_number("device.memory_gib", {"backends", name.c_str(), "memory_bytes"}, kGib);
    put_number("device.multiprocessors", {"backends", name.c_str(), "multiprocessors"}, 1);
  }
  if (is_framework(backend)) return known;  // what device it takes, and what that can do, is not known here
  const Json& precisions = value_at(facts, {"backends", name.c_str(), "precisions"});
  for (const char* one : {"fp64", "fp16", "bf16"}) {
    const bool has = is_cpu || std::find(precisions.begin(), precisions.end(), one) != precisions.end();
    // OpenCL devices are not queried for fp64, so a condition on it is rejected, not guessed.
    if (has || !(backend == Backend::opencl && one == std::string_view("fp64")))
      known[fmt::format("device.has_{}", one)] = has;
  }
  return known;
}

std::optional<std::string> skip_reason(const package::Package& package, Backend backend, Precision precision,
                                       const Json& facts) {
  for (const package::SkipCondition& condition : package.config.skip_conditions) {
    if (condition.backend && *condition.backend != backend) continue;
    if (!condition.check || condition.check->holds(condition_facts(facts, backend, precision)))
      return condition.reason.empty() ? "bench.yaml says so" : condition.reason;
  }
  return std::nullopt;
}

}  // namespace weir::bench
