// weir info: devices found, why others are not, versions, queue settings, and what was left out of the build.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/console.h"
#include "base/error.h"
#include "base/schemas.h"
#include "base/units.h"
#include "cli/flag_values.h"
#include "cli/list.h"
#include "cli/process.h"
#include "cli/ranks.h"
#include "cli/run_flags.h"
#include "device/gpu/activity.h"
#include "device/gpu/cuda.h"
#include "measure/environment.h"
#include "report/history/engine.h"
#include "weir_build.h"

namespace weir::cli {
namespace {

// Environment variables that determine how many hardware queues a runtime uses; each is read once, at its start.
constexpr const char* kQueueSettings[] = {"CUDA_DEVICE_MAX_CONNECTIONS", "CUDA_VISIBLE_DEVICES",
                                          "GPU_MAX_HW_QUEUES",           "HIP_VISIBLE_DEVICES",
                                          "ROCR_VISIBLE_DEVICES",        "DEBUG_HIP_IGNORE_STREAM_PRIORITY"};

std::string fact(const auto& known) {
  if (known.value) return fmt::format("{}", *known.value);
  return fmt::format("unknown ({})", known.reason);
}

std::string priorities_of(const DeviceInfo& info) {
  if (!info.priorities) return fmt::format("no priorities: {}", info.priorities.reason);
  return fmt::format("priorities {} to {}{}", info.lowest_priority, info.highest_priority,
                     info.priorities.reason.empty() ? "" : fmt::format(" ({})", info.priorities.reason));
}

// What the device cannot do, each with the reason.
void print_lacks(const DeviceInfo& info) {
  const std::pair<const char*, const Capability*> capabilities[] = {{"graphs", &info.graphs},
                                                                    {"host functions", &info.host_functions},
                                                                    {"host memory in kernels", &info.host_memory},
                                                                    {"clock in kernels", &info.kernel_clock}};
  for (const auto& [name, capability] : capabilities)
    if (!*capability) print_out("             no {}: {}\n", name, capability->reason);
}

void print_device(const std::string& name) {
  try {
    const auto device = open_device(name, device_options("", {}));
    const DeviceInfo info = device->info();
    print_out("  {:<10} {}\n", info.name, info.model);
    if (info.backend == "null") return;
    std::vector<std::string_view> precisions;
    for (const Precision precision : info.precisions) precisions.push_back(name_of(precision));
    print_out("             hardware queues {}\n", fact(info.hardware_queues));
    print_out("             {} multiprocessors, {} copy engines, {}\n", fact(info.multiprocessors),
              fact(info.copy_engines), fmt::join(precisions, " "));
    print_out("             {}\n", priorities_of(info));
    print_lacks(info);
    if (info.memory_bytes.value) print_out("             memory {}\n", format_bytes(*info.memory_bytes.value));
    if (!info.driver.empty()) print_out("             driver {}\n", info.driver);
  } catch (const Error& error) {
    print_out("  {:<10} found, but cannot be opened: {}\n", name, in_terms_of_flags(error));
  }
}

// Timelines of CUDA devices come from CUPTI's records; it is queried only where there is a driver.
std::string describe_activity() {
  if (!WEIR_HAVE_CUPTI) return fmt::format("left out: {}", WEIR_CUPTI_REASON);
  const GpuApi* const api = cuda_api(nullptr);
  if (api == nullptr) return "yes";
  std::string reason;
  const GpuActivity* const activity = api->activity(&reason);
  return activity != nullptr ? fmt::format("yes, {}", activity->version) : fmt::format("not here: {}", reason);
}

// The same facts for programs.
Json info_json() {
  Json devices = Json::array(), missing = Json::array(), settings = Json::object();
  for (const DeviceType& type : device_types()) {
    const DeviceType::Found found = type.find();
    const auto miss = [&](const std::string& name, const std::string& reason) {
      missing.push_back({{"device", name}, {"reason", reason}});
    };
    for (const std::string& name : found.names) {
      try {
        devices.push_back(to_json(open_device(name, device_options("", {}))->info()));
      } catch (const Error& error) {
        miss(name, in_terms_of_flags(error));
      }
    }
    if (found.names.empty()) miss(type.name, found.reason);
    for (const std::string& note : found.notes) miss(type.name, note);
  }
  for (const char* name : kQueueSettings) {
    const auto value = environment_variable(name);
    settings[name] = value ? Json(*value) : Json(nullptr);
  }
  return {{"schema", schemas::info},
          {"weir",
           {{"version", WEIR_VERSION},
            {"commit", WEIR_COMMIT},
            {"build_type", WEIR_BUILD_TYPE},
            {"compiler", WEIR_COMPILER}}},
          {"devices", std::move(devices)},
          {"missing", std::move(missing)},
          {"queue_settings", std::move(settings)},
          {"mpi", describe_mpi()},
          {"environment", run_context().environment}};
}

struct InfoFlags {
  bool is_json = false;

  void add_to(CommandSyntax syntax) { syntax.add("--json", is_json, "everything, for programs"); }
};

int execute_info(const InfoFlags& flags) {
  if (flags.is_json) {
    write_json(to_text(info_json()));
    return 0;
  }
  print_out("weir {} ({}), {}, {}\n\nDevices\n", WEIR_VERSION, WEIR_COMMIT, WEIR_BUILD_TYPE, WEIR_COMPILER);
  for (const DeviceType& type : device_types()) {
    const DeviceType::Found found = type.find();
    for (const std::string& name : found.names) print_device(name);
    if (found.names.empty()) print_out("  {:<10} not here: {}\n", type.name, found.reason);
    for (const std::string& note : found.notes) print_out("  {:<10} {}\n", type.name, note);
  }
  print_out("\nHardware-queue settings\n");
  for (const char* name : kQueueSettings)
    print_out("  {:<34}{}\n", name, environment_variable(name).value_or("(not set)"));
  print_out("\nBuild\n");
  print_out("  CUDA device code   {}\n", WEIR_HAVE_CUDA ? fmt::format("yes, nvcc {}", WEIR_NVCC_VERSION)
                                                        : fmt::format("left out: {}", WEIR_CUDA_REASON));
  print_out("  CUPTI              {}\n", describe_activity());
  print_out("  HIP device code    {}\n", WEIR_HAVE_HIP
                                             ? fmt::format("yes, hipcc {}: {}", WEIR_HIPCC_VERSION, WEIR_HIP_BUILT)
                                             : fmt::format("left out: {}", WEIR_HIP_REASON));
  print_out("  OpenCL             {}\n", WEIR_HAVE_OPENCL ? "yes" : fmt::format("left out: {}", WEIR_OPENCL_REASON));
  print_out("  .gz traces         {}\n", WEIR_HAVE_ZLIB ? "yes" : "left out: zlib was not found when this was built");
  print_out("  .zst, .xz, .zip    {}\n",
            WEIR_HAVE_LIBARCHIVE ? "yes" : "left out: libarchive was not found when this was built");
  print_out("  SQLite traces      {}\n",
            WEIR_HAVE_SQLITE ? "yes" : "left out: SQLite was not found when this was built");
  const std::string no_postgres = history::postgres_shortfall();
  print_out("  PostgreSQL         {}\n",
            no_postgres.empty() ? "yes, by libpq.so.5" : "not here: " + no_postgres + "; libpq5 is the package");
  print_out("  ncurses            {}\n",
            WEIR_HAVE_NCURSES ? "yes" : "left out: not found when this was built, so `weir watch` has no live view");
  print_out("  hwloc              {}\n", WEIR_HAVE_HWLOC ? "yes" : "left out: not found when this was built");
  print_out("  MPI                {}\n", describe_mpi());
  // What `weir channel` measures next to Weir's own channels.
  constexpr const char* kNoQueue = "left out: not found when this was built";
  print_out("  Boost.Lockfree     {}\n", WEIR_HAVE_BOOST_LOCKFREE ? "yes" : kNoQueue);
  print_out("  ConcurrentQueue    {}\n", WEIR_HAVE_CONCURRENTQUEUE ? "yes" : kNoQueue);
  print_out("  ReaderWriterQueue  {}\n", WEIR_HAVE_READERWRITERQUEUE ? "yes" : kNoQueue);
  print_out("  atomic_queue       {}\n", WEIR_HAVE_ATOMIC_QUEUE ? "yes" : kNoQueue);
  const Json environment = run_context().environment;
  print_out("\nMachine\n");
  for (const char* key : {"system", "kernel", "architecture", "cpus", "governor"}) {
    const Json& value = environment[key];
    print_out("  {:<19}{}\n", key,
              value.is_string() ? value.get<std::string>()
              : value.is_null() ? "unknown"
                                : value.dump());
  }
  return 0;
}

}  // namespace

CliCommand info() { return command("info", "show devices, versions and settings", execute_info); }

}  // namespace weir::cli
