#include "device/gpu_nccl.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <vector>

#include "device/gpu_library.h"

namespace weir {
namespace {

// Declared in the table: a machine that compiles this need not have nccl.h. The ABI is the same since NCCL 2.7 (send
// and recv), bfloat16 since 2.10.
constexpr int kOldestVersion = 21000;

const char* (*g_error_string)(int) = nullptr;  // written once, by Opened's constructor

std::string describe(int result) {
  return fmt::format("NCCL error {} ({})", result, g_error_string == nullptr ? "no text" : g_error_string(result));
}

// 22803 is NCCL 2.28.3
std::string format_version(int version) {
  return fmt::format("NCCL {}.{}.{}", version / 10000, version / 100 % 100, version % 100);
}

// The loader's own search first, then where toolkits are usually installed: /usr/local/cuda-13.0/lib64,
// /usr/local/cuda/targets/sbsa-linux/lib
std::vector<std::string> places() {
  constexpr const char* kName = "libnccl.so.2";
  std::vector<std::string> names = {kName};
  const auto add_below = [&](const std::filesystem::path& folder, std::string_view prefix, std::string_view inner) {
    std::vector<std::string> found;
    std::error_code error;
    for (const auto& entry : std::filesystem::directory_iterator(folder, error))
      if (entry.path().filename().string().starts_with(prefix))
        found.push_back((entry.path() / inner / kName).string());
    std::sort(found.begin(), found.end());
    names.insert(names.end(), found.begin(), found.end());
  };
  std::error_code error;
  for (const auto& toolkit : std::filesystem::directory_iterator("/usr/local", error)) {
    if (!toolkit.path().filename().string().starts_with("cuda")) continue;
    add_below(toolkit.path(), "lib", "");
    add_below(toolkit.path() / "targets", "", "lib");
  }
  return names;
}

struct Opened {
  Opened() {
    VendorLibrary library(places());
    if (!library.is_open()) {
      reason = "NCCL was not found: " + library.error();
      return;
    }
    int (*get_version)(int*) = nullptr;
    library.need(get_version, "ncclGetVersion");
    library.need(g_error_string, "ncclGetErrorString");
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
      reason = "NCCL lacks " + library.missing();
      return;
    }
    int version = 0;
    if (get_version(&version) != 0 || version < kOldestVersion) {
      reason = fmt::format("NCCL is too old: {}", format_version(version));
      return;
    }
    table.describe = describe;
    table.version = format_version(version);
    is_complete = true;
  }
  GpuCollectives table{};
  std::string reason;
  bool is_complete = false;
};

}  // namespace

const GpuCollectives* open_nccl(std::string* reason) {
  static const Opened opened;
  if (opened.is_complete) return &opened.table;
  if (reason != nullptr) *reason = opened.reason;
  return nullptr;
}

}  // namespace weir
