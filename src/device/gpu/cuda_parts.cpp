// Parts of an NVIDIA GPU: green contexts, looked up by symbol at run time. Knows nothing of what runs in them.
#include "device/gpu/libraries.h"
#include "weir_build.h"

#if WEIR_HAVE_CUDA
#include <cuda.h>

#if CUDA_VERSION >= 12050
#include <fmt/format.h>

#include <algorithm>

namespace weir {
namespace {

struct PartsLibrary : VendorLibrary {
  explicit PartsLibrary(const VendorLibrary& driver) : VendorLibrary(driver) {}
  decltype(&cuDeviceGet) device_get = need("cuDeviceGet");
  decltype(&cuDeviceGetDevResource) resource = need("cuDeviceGetDevResource");
  decltype(&cuDevSmResourceSplitByCount) split = need("cuDevSmResourceSplitByCount");
  decltype(&cuDevResourceGenerateDesc) describe = need("cuDevResourceGenerateDesc");
  decltype(&cuGreenCtxCreate) create = need("cuGreenCtxCreate");
  decltype(&cuGreenCtxDestroy) destroy = need("cuGreenCtxDestroy");
  decltype(&cuGreenCtxStreamCreate) stream = need("cuGreenCtxStreamCreate");
};

const PartsLibrary* g_parts = nullptr;  // written once, while the library is opened

constexpr unsigned kMaxParts = 256;  // per device; even the largest have fewer multiprocessors

CUgreenCtx green(GpuPart part) { return reinterpret_cast<CUgreenCtx>(part); }

// A division of a device: equal `groups`, and the rest.
struct Split {
  CUdevice device = 0;
  std::vector<CUdevResource> groups;
  CUdevResource rest{};
  bool has_rest = false;
  int units() const { return groups.empty() ? 0 : static_cast<int>(groups[0].sm.smCount); }
};

int split(int index, int wanted, unsigned count, Split* split) {
  CUresult result = g_parts->device_get(&split->device, index);
  CUdevResource all{};
  if (result == CUDA_SUCCESS) result = g_parts->resource(split->device, &all, CU_DEV_RESOURCE_TYPE_SM);
  if (result != CUDA_SUCCESS) return result;
  // The whole device need not be split, and may not be a multiple of a group (132 multiprocessors on an H200).
  if (static_cast<unsigned>(wanted) == all.sm.smCount) {
    split->groups.assign(1, all);
    return 0;
  }
  unsigned groups = std::min(count, kMaxParts);
  split->groups.resize(groups);
  result = g_parts->split(split->groups.data(), &groups, &all, &split->rest, 0, static_cast<unsigned>(wanted));
  // The rounded-up size exceeds the device: no part, but not a failure either.
  if (result == CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION) groups = 0;
  if (result != CUDA_SUCCESS && groups != 0) return result;
  split->groups.resize(std::min<std::size_t>(groups, split->groups.size()));
  split->has_rest = groups != 0 && split->rest.type == CU_DEV_RESOURCE_TYPE_SM && split->rest.sm.smCount > 0;
  return 0;
}

int make_part(CUdevice device, CUdevResource& resource, GpuPart* part) {
  CUdevResourceDesc description = nullptr;
  CUgreenCtx context = nullptr;
  CUresult result = g_parts->describe(&description, &resource, 1);
  if (result == CUDA_SUCCESS) result = g_parts->create(&context, description, device, CU_GREEN_CTX_DEFAULT_STREAM);
  *part = reinterpret_cast<GpuPart>(context);
  return result;
}

int part_destroy(GpuPart part) { return g_parts->destroy(green(part)); }

int part_units(int index, int wanted, int* units) {
  Split parts;
  const int result = split(index, wanted, 1, &parts);
  *units = parts.units();
  return result;
}

int divide(int index, int wanted, int count, bool makes_rest, GpuDivision* division) {
  Split parts;
  int result = split(index, wanted, static_cast<unsigned>(count), &parts);
  if (result != 0) return result;
  division->units = parts.units();
  for (CUdevResource& group : parts.groups) {
    GpuPart part = nullptr;
    if (result = make_part(parts.device, group, &part); result != 0) break;
    division->parts.push_back(part);
  }
  if (result == 0 && makes_rest && parts.has_rest) {
    result = make_part(parts.device, parts.rest, &division->rest);
    division->rest_units = static_cast<int>(parts.rest.sm.smCount);
  }
  if (result == 0) return 0;
  for (GpuPart part : division->parts) part_destroy(part);
  *division = {};
  return result;
}

// Kernels of modules that the primary context has loaded can be launched into such streams as into any other: a green
// context is that context with fewer multiprocessors.
int part_stream(GpuStream* stream, GpuPart part, unsigned flags, int priority) {
  return g_parts->stream(reinterpret_cast<CUstream*>(stream), green(part), flags, priority);
}

}  // namespace

void bind_parts(const VendorLibrary& driver, GpuApi& api) {
  g_parts = new PartsLibrary(driver);
  if (const std::string& missing = g_parts->missing(); !missing.empty()) {
    api.parts_reason = fmt::format("the driver lacks {}: drivers since CUDA 12.5 have green contexts", missing);
    return;
  }
  api.part_units = part_units;
  api.divide = divide;
  api.part_destroy = part_destroy;
  api.part_stream = part_stream;
}

}  // namespace weir

#else

namespace weir {

void bind_parts(const VendorLibrary&, GpuApi& api) {
  api.parts_reason = "left out of this build: CUDA's headers are older than 12.5, which has green contexts";
}

}  // namespace weir

#endif
#endif
