// Text of KFD's debugfs files and of sysfs: whatever it is, it gives a document or our own error, and the document's
// counts agree with each other.
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

#include "base/error.h"
#include "kfd/document.h"

namespace {

// The input's parts are separated by a line "----": the first three are files of debugfs, the others of sysfs.
std::string_view take(std::string_view& rest) {
  const std::size_t at = rest.find("----\n");
  const std::string_view part = rest.substr(0, at);
  rest.remove_prefix(at == std::string_view::npos ? rest.size() : at + 5);
  return part;
}

void save(const std::filesystem::path& path, std::string_view text) {
  std::ofstream(path, std::ios::binary).write(text.data(), static_cast<std::streamsize>(text.size()));
}

// One folder, made once and written again.
std::optional<weir::kfd::SysfsState> sysfs_of(std::string_view rest) {
  static const std::filesystem::path folder = [] {
    const auto path = std::filesystem::temp_directory_path() / ("weir_fuzz_kfd_" + std::to_string(::getpid()));
    std::filesystem::create_directories(path / "class/kfd/kfd/topology/nodes/1");
    std::filesystem::create_directories(path / "class/kfd/kfd/proc/4000/queues/0");
    std::filesystem::create_directories(path / "module/amdgpu/parameters");
    return path;
  }();
  const auto kfd = folder / "class/kfd/kfd";
  for (const char* const name : {"topology/nodes/1/gpu_id", "topology/nodes/1/properties", "proc/4000/queues/0/gpuid",
                                 "proc/4000/queues/0/size", "proc/4000/queues/0/type"})
    save(kfd / name, take(rest));
  save(folder / "module/amdgpu/parameters/hws_max_conc_proc", take(rest));
  return weir::kfd::read_sysfs(folder);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string_view rest(reinterpret_cast<const char*>(data), size);
  weir::kfd::Snapshot snapshot;
  for (int i = 0; i < 3 && !rest.empty(); ++i) {
    try {
      weir::kfd::add_file(snapshot, take(rest), "fuzz");
    } catch (const weir::Error& error) {
      if (error.fault != weir::Fault::input) __builtin_trap();
    }
  }
  if (!rest.empty()) snapshot.sysfs = sysfs_of(rest);
  const weir::Json document = weir::kfd::hqd_document(snapshot);
  std::size_t mqds = 0;
  if (snapshot.mqds) {
    for (const auto& process : snapshot.mqds->processes) mqds += process.queues.size();
  }
  std::size_t slots = 0;
  if (snapshot.hqds) {
    for (const auto& node : snapshot.hqds->nodes) slots += node.slots.size() + node.sdma.size() + node.hiqs.size();
  }
  // Nothing is made up: each queue was in one of the files.
  if (document["queues"].size() + document["hiqs"].size() > mqds + slots) __builtin_trap();
  if (document["queues"].size() < mqds) __builtin_trap();
  weir::to_text(document);
  return 0;
}
