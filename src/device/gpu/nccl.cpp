// NCCL, and RCCL with the same entry points, as the table's collectives.
#include <fmt/format.h>

#include <vector>

#include "device/gpu/cuda_toolkit.h"
#include "device/gpu/libraries.h"

namespace weir {
namespace {

// Declared in the table, because nccl.h may not be installed. The ABI is unchanged since NCCL 2.7 (send and recv),
// bfloat16 since 2.10.
constexpr int kOldestNccl = 21000;

// 22803 is NCCL 2.28.3
std::string nccl_version(const char* name, int version) {
  return fmt::format("{} {}.{}.{}", name, version / 10000, version / 100 % 100, version % 100);
}

// Each of the two libraries is opened once.
template <bool is_nccl>
struct NcclLibrary : VendorLibrary {
  static constexpr const char* kName = is_nccl ? "NCCL" : "RCCL";
  NcclLibrary()
      : VendorLibrary(is_nccl ? toolkit_places(std::vector<std::string>{"libnccl.so.2"})
                              : library_places({"", "/opt/rocm/lib/"}, {"librccl.so.1"})) {}
  int (*get_version)(int*) = need("ncclGetVersion");
  const char* (*error_string)(int) = need("ncclGetErrorString");
};

template <bool is_nccl>
std::string fill_collectives(GpuCollectives& table) {
  static NcclLibrary<is_nccl> library;
  table.get_unique_id = library.need("ncclGetUniqueId");
  table.comm_init_rank = library.need("ncclCommInitRank");
  table.comm_destroy = library.need("ncclCommDestroy");
  table.comm_abort = library.need("ncclCommAbort");
  table.all_gather = library.need("ncclAllGather");
  table.reduce_scatter = library.need("ncclReduceScatter");
  table.all_reduce = library.need("ncclAllReduce");
  table.send = library.need("ncclSend");
  table.recv = library.need("ncclRecv");
  table.group_start = library.need("ncclGroupStart");
  table.group_end = library.need("ncclGroupEnd");
  table.describe = [](int result) {
    return fmt::format("{} error {} ({})", library.kName, result, library.error_string(result));
  };
  if (std::string reason = library.shortfall(library.kName); !reason.empty()) return reason;
  int version = 0;
  if (library.get_version(&version) != 0 || version < kOldestNccl)
    return fmt::format("{} is too old", nccl_version(library.kName, version));
  table.version = nccl_version(library.kName, version);
  return "";
}

}  // namespace

const GpuCollectives* open_nccl(std::string* reason) {
  static const Opened<GpuCollectives> kOpened(fill_collectives<true>);
  return kOpened.get(reason);
}
const GpuCollectives* open_rccl(std::string* reason) {
  static const Opened<GpuCollectives> kOpened(fill_collectives<false>);
  return kOpened.get(reason);
}

}  // namespace weir
