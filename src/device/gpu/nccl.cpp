#include "device/gpu/nccl.h"

#include <fmt/format.h>

#include <vector>

#include "device/gpu/cuda_toolkit.h"
#include "device/vendor_library.h"

namespace weir {
namespace {

// Declared in the table: a machine that compiles this need not have nccl.h. The ABI is the same since NCCL 2.7 (send
// and recv), bfloat16 since 2.10.
constexpr int kOldestVersion = 21000;

// 22803 is NCCL 2.28.3
std::string format_version(const char* name, int version) {
  return fmt::format("{} {}.{}.{}", name, version / 10000, version / 100 % 100, version % 100);
}

struct Nccl {
  static constexpr const char* kName = "NCCL";
  static std::vector<std::string> places() { return toolkit_places(std::vector<std::string>{"libnccl.so.2"}); }
};
struct Rccl {
  static constexpr const char* kName = "RCCL";
  static std::vector<std::string> places() { return {"librccl.so.1", "/opt/rocm/lib/librccl.so.1"}; }
};

template <class Vendor>
struct Opened {
  Opened() {
    VendorLibrary library(Vendor::places());
    if (!library.is_open()) {
      reason = fmt::format("{} was not found: {}", Vendor::kName, library.error());
      return;
    }
    int (*get_version)(int*) = nullptr;
    library.need(get_version, "ncclGetVersion");
    library.need(error_string, "ncclGetErrorString");
    library.need(table.get_unique_id, "ncclGetUniqueId");
    library.need(table.comm_init_rank, "ncclCommInitRank");
    library.need(table.comm_destroy, "ncclCommDestroy");
    library.need(table.comm_abort, "ncclCommAbort");
    library.need(table.all_gather, "ncclAllGather");
    library.need(table.reduce_scatter, "ncclReduceScatter");
    library.need(table.all_reduce, "ncclAllReduce");
    library.need(table.send, "ncclSend");
    library.need(table.recv, "ncclRecv");
    library.need(table.group_start, "ncclGroupStart");
    library.need(table.group_end, "ncclGroupEnd");
    if (!library.missing().empty()) {
      reason = fmt::format("{} lacks {}", Vendor::kName, library.missing());
      return;
    }
    int version = 0;
    if (get_version(&version) != 0 || version < kOldestVersion) {
      reason = fmt::format("{} is too old", format_version(Vendor::kName, version));
      return;
    }
    table.describe = [](int result) {
      return fmt::format("{} error {} ({})", Vendor::kName, result, error_string(result));
    };
    table.version = format_version(Vendor::kName, version);
    is_complete = true;
  }
  static inline const char* (*error_string)(int) = nullptr;  // written once, by the constructor
  GpuCollectives table{};
  std::string reason;
  bool is_complete = false;
};

template <class Vendor>
const GpuCollectives* open_collectives(std::string* reason) {
  static const Opened<Vendor> opened;
  if (opened.is_complete) return &opened.table;
  if (reason != nullptr) *reason = opened.reason;
  return nullptr;
}

}  // namespace

const GpuCollectives* open_nccl(std::string* reason) { return open_collectives<Nccl>(reason); }
const GpuCollectives* open_rccl(std::string* reason) { return open_collectives<Rccl>(reason); }

}  // namespace weir
