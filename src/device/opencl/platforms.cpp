#include "device/opencl/platforms.h"

#if WEIR_HAVE_OPENCL
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstring>

#include "base/error.h"

namespace weir {
namespace {

// Numbers of cl_ext.h, which older headers lack.
constexpr cl_device_info kCommandBufferCapabilities = 0x12A9, kCommandBufferQueueProperties = 0x12AA;
constexpr const char* kCommandBuffers = "cl_khr_command_buffer";

template <class Get>
std::string text_of(Get get, std::string_view what) {
  std::size_t size = 0;
  check_opencl(get(0, nullptr, &size), what);
  std::string text(size, '\0');
  check_opencl(get(size, text.data(), nullptr), what);
  text.resize(std::strlen(text.c_str()));
  while (!text.empty() && text.back() == ' ') text.pop_back();
  return text;
}

std::string platform_text(const OpenclApi& api, cl_platform_id platform, cl_platform_info which) {
  return text_of([&](std::size_t size, void* to,
                     std::size_t* needed) { return api.platform_info(platform, which, size, to, needed); },
                 "asking what the platform is");
}

std::string device_text(const OpenclApi& api, cl_device_id device, cl_device_info which) {
  return text_of(
      [&](std::size_t size, void* to, std::size_t* needed) { return api.device_info(device, which, size, to, needed); },
      "asking what the device is");
}

template <class T>
T device_fact(const OpenclApi& api, cl_device_id device, cl_device_info which) {
  T value{};
  check_opencl(api.device_info(device, which, sizeof value, &value, nullptr), "asking what the device is");
  return value;
}

// For properties that devices of older versions may not know.
template <class T>
T optional_fact(const OpenclApi& api, cl_device_id device, cl_device_info which) {
  T value{};
  return api.device_info(device, which, sizeof value, &value, nullptr) == CL_SUCCESS ? value : T{};
}

// "OpenCL 3.0 PoCL HSTR: pthread": 30
int version_in(const std::string& text) {
  int major = 1, minor = 2;
  return std::sscanf(text.c_str(), "OpenCL %d.%d", &major, &minor) == 2 ? 10 * major + minor : 12;
}

cl_uint extension_version(const OpenclApi& api, cl_device_id device, const char* extension) {
  std::size_t size = 0;
  if (api.device_info(device, CL_DEVICE_EXTENSIONS_WITH_VERSION, 0, nullptr, &size) != CL_SUCCESS) return 0;
  std::vector<cl_name_version> all(size / sizeof(cl_name_version));
  if (api.device_info(device, CL_DEVICE_EXTENSIONS_WITH_VERSION, size, all.data(), nullptr) != CL_SUCCESS) return 0;
  for (const cl_name_version& each : all)
    if (std::strncmp(each.name, extension, sizeof each.name) == 0) return each.version;
  return 0;
}

OpenclFacts facts_of(const OpenclApi& api, cl_platform_id platform, cl_device_id device) {
  OpenclFacts facts;
  facts.model = device_text(api, device, CL_DEVICE_NAME);
  facts.platform = platform_text(api, platform, CL_PLATFORM_NAME);
  facts.platform_version = platform_text(api, platform, CL_PLATFORM_VERSION);
  facts.driver_version = device_text(api, device, CL_DRIVER_VERSION);
  const auto type = device_fact<cl_device_type>(api, device, CL_DEVICE_TYPE);
  facts.is_gpu = (type & CL_DEVICE_TYPE_GPU) != 0;
  facts.is_cpu = (type & CL_DEVICE_TYPE_CPU) != 0;
  facts.version = version_in(device_text(api, device, CL_DEVICE_VERSION));
  facts.compute_units = static_cast<int>(device_fact<cl_uint>(api, device, CL_DEVICE_MAX_COMPUTE_UNITS));
  facts.memory_bytes = device_fact<cl_ulong>(api, device, CL_DEVICE_GLOBAL_MEM_SIZE);
  facts.largest_buffer_bytes = device_fact<cl_ulong>(api, device, CL_DEVICE_MAX_MEM_ALLOC_SIZE);
  facts.extensions = " " + device_text(api, device, CL_DEVICE_EXTENSIONS) + " ";
  if (facts.version >= 20)
    facts.svm = optional_fact<cl_device_svm_capabilities>(api, device, CL_DEVICE_SVM_CAPABILITIES);
  if (facts.offers(kCommandBuffers)) {
    facts.command_buffer_version = extension_version(api, device, kCommandBuffers);
    facts.command_buffer_capabilities = optional_fact<cl_bitfield>(api, device, kCommandBufferCapabilities);
    facts.command_buffer_queue_properties = optional_fact<cl_bitfield>(api, device, kCommandBufferQueueProperties);
  }
  return facts;
}

}  // namespace

OpenclDevices find_opencl_devices(const OpenclApi& api) {
  OpenclDevices found;
  cl_uint count = 0;
  if (const cl_int result = api.get_platforms(0, nullptr, &count); result != CL_SUCCESS || count == 0) {
    found.reason = result == CL_SUCCESS || result == -1001
                       ? "no platform: the loader is there, but no driver is registered with it"
                       : "no platform: " + describe_opencl(result);
    return found;
  }
  std::vector<cl_platform_id> platforms(count);
  api.get_platforms(count, platforms.data(), nullptr);
  for (std::size_t i = 0; i < platforms.size(); ++i) {
    std::string name = fmt::format("OpenCL platform {}", i);
    std::vector<cl_device_id> devices;
    try {
      name = fmt::format("OpenCL platform '{}'", platform_text(api, platforms[i], CL_PLATFORM_NAME));
      cl_uint device_count = 0;
      const cl_int result = api.get_devices(platforms[i], CL_DEVICE_TYPE_ALL, 0, nullptr, &device_count);
      if (result == CL_DEVICE_NOT_FOUND || (result == CL_SUCCESS && device_count == 0)) {
        found.notes.push_back(name + " has no device");
        continue;
      }
      check_opencl(result, "listing its devices");
      devices.resize(device_count);
      check_opencl(api.get_devices(platforms[i], CL_DEVICE_TYPE_ALL, device_count, devices.data(), nullptr),
                   "listing its devices");
    } catch (const Error& error) {
      found.notes.push_back(fmt::format("{} is left out: {}", name, error.what()));
      continue;
    }
    for (cl_device_id device : devices) {
      try {
        found.devices.push_back(
            std::make_shared<OpenclContext>(api, platforms[i], device, facts_of(api, platforms[i], device)));
      } catch (const Error& error) {
        found.notes.push_back(fmt::format("a device of {} is left out: {}", name, error.what()));
      }
    }
  }
  std::stable_sort(found.devices.begin(), found.devices.end(), [](const auto& a, const auto& b) {
    return std::pair(!a->facts().is_gpu, a->facts().is_cpu) < std::pair(!b->facts().is_gpu, b->facts().is_cpu);
  });
  for (std::size_t i = 0; i < found.devices.size(); ++i) found.devices[i]->set_index(i);
  if (found.devices.empty()) {
    found.reason = "no device";
    for (const std::string& note : found.notes) found.reason += "; " + note;
  }
  return found;
}

const OpenclDevices& opencl_devices() {
  // Never destroyed: drivers have exit handlers of their own, and a context must not outlive them.
  static const OpenclDevices* const kDevices = [] {
    auto* const devices = new OpenclDevices;
    const OpenclApi* const api = opencl_api(&devices->reason);
    if (api != nullptr) *devices = find_opencl_devices(*api);
    return devices;
  }();
  return *kDevices;
}

}  // namespace weir
#endif
