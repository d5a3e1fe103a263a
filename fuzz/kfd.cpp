// Text of KFD's debugfs files and of sysfs: whatever it is, it gives queues or our own error, and each
// queue was in one of the files.
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "amd/kfd/document.h"
#include "base/error.h"

namespace {

// The input's parts are separated by a line "----": the first three are files of debugfs, the others of sysfs.
std::string_view take(std::string_view& rest) {
  const std::size_t at = rest.find("----\n");
  const std::string_view part = rest.substr(0, at);
  rest.remove_prefix(at == std::string_view::npos ? rest.size() : at + 5);
  return part;
}

// In memory: files would make it a hundred times slower.
std::optional<weir::kfd::SysfsState> sysfs_of(std::string_view rest) {
  weir::kfd::SysfsState state;
  for (int node = 1; node < 3; ++node) {
    const std::string_view gpu_id = take(rest), name = take(rest), properties = take(rest);
    if (auto parsed = weir::kfd::parse_node(node, gpu_id, name, properties)) state.nodes.push_back(*std::move(parsed));
  }
  state.parameters.emplace_back("hws_max_conc_proc", take(rest));
  weir::kfd::SysfsProcess process;
  process.pid = 4000;
  for (std::uint32_t id = 0; !rest.empty(); ++id) {
    const std::string_view gpu_id = take(rest), size = take(rest), type = take(rest);
    if (const auto queue = weir::kfd::parse_queue(id, gpu_id, size, type)) process.queues.push_back(*queue);
  }
  state.processes.push_back(std::move(process));
  return state;
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
  const std::vector<weir::kfd::Queue> queues = weir::kfd::queues_of(snapshot);
  weir::kfd::verdict_of(snapshot, queues, weir::kfd::occupancy_of(snapshot, queues));
  std::size_t mqds = 0;
  if (snapshot.mqds) {
    for (const auto& process : snapshot.mqds->processes) mqds += process.queues.size();
  }
  std::size_t slots = 0;
  if (snapshot.hqds) {
    for (const auto& node : snapshot.hqds->nodes) slots += node.slots.size() + node.sdma.size() + node.hiqs.size();
  }
  // Nothing is made up: each queue was in one of the files.
  if (queues.size() > mqds + slots || queues.size() < mqds) __builtin_trap();
  // Most of the time would go into JSON: one input in eight has its document made, by its last byte so that a finding
  // comes again.
  if (size > 0 && data[size - 1] % 8 == 1) weir::to_text(weir::kfd::hqd_document(snapshot));
  return 0;
}
