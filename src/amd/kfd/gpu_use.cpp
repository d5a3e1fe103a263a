#include "amd/kfd/gpu_use.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <system_error>

namespace weir::kfd {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kLargestUseFile = 64U << 10;
constexpr std::size_t kMostDescriptors = 65'536;

std::optional<std::uint64_t> leading_number(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(" \t");
  if (begin == std::string_view::npos) return std::nullopt;
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data() + begin, text.data() + text.size(), value);
  return error == std::errc() ? std::optional(value) : std::nullopt;
}

UseValue value_in(const fs::path& path, double factor) {
  const ReadText read = read_text(path, kLargestUseFile);
  if (!read.text) return {std::nullopt, fmt::format("{}: {}", path.string(), std::strerror(read.error))};
  const auto number = leading_number(*read.text);
  if (!number) return {std::nullopt, fmt::format("{}: not a number", path.string())};
  return {static_cast<double>(*number) * factor, ""};
}

// hwmon/hwmon5/power1_average, in microwatts; newer GPUs have power1_input instead.
UseValue power_in(const fs::path& device) {
  std::error_code status;
  UseValue found{std::nullopt, fmt::format("{}: has no sensor of power", (device / "hwmon").string())};
  for (fs::directory_iterator at(device / "hwmon", status), end; !status && at != end; at.increment(status))
    for (const char* name : {"power1_average", "power1_input"})
      if (const UseValue value = value_in(at->path() / name, 1e-6); value.value) return value;
  return found;
}

}  // namespace

GpuUse read_gpu_use(const fs::path& sysfs, const SysfsNode& node) {
  GpuUse use;
  use.gpu_id = node.gpu_id;
  if (!node.render_minor) {
    const UseValue none{std::nullopt, "the topology names no render node of it (drm_render_minor)"};
    use.busy = use.memory_used_bytes = use.memory_bytes = use.power_w = none;
    return use;
  }
  const fs::path device = sysfs / "class/drm" / fmt::format("renderD{}", *node.render_minor) / "device";
  use.busy = value_in(device / "gpu_busy_percent", 0.01);
  use.memory_used_bytes = value_in(device / "mem_info_vram_used", 1);
  use.memory_bytes = value_in(device / "mem_info_vram_total", 1);
  use.power_w = power_in(device);
  return use;
}

// drm-driver:	amdgpu
// drm-pdev:	0000:05:00.0
// drm-client-id:	42
// drm-memory-vram:	131072 KiB
// drm-engine-compute:	123456789 ns
void add_fdinfo(std::string_view text, std::vector<std::string>& clients, DrmUses& uses) {
  std::string driver, pdev, client;
  DrmUse use;
  Lines lines(text);
  std::string_view line;
  while (lines.next(line)) {
    const std::size_t colon = line.find(':');
    if (colon == std::string_view::npos || !line.starts_with("drm-")) continue;
    const std::string_view key = line.substr(0, colon);
    std::string_view rest = line.substr(colon + 1);
    rest.remove_prefix(std::min(rest.find_first_not_of(" \t"), rest.size()));
    if (key == "drm-driver") driver = rest;
    if (key == "drm-pdev") pdev = rest;
    if (key == "drm-client-id") client = rest;
    // Capacities are numbers of engines, and cycles another unit.
    if (key.starts_with("drm-engine-") && !key.starts_with("drm-engine-capacity-") && rest.ends_with(" ns"))
      use.engine_ns[std::string(key.substr(11))] = leading_number(rest).value_or(0);
    if (key == "drm-memory-vram")
      use.memory_bytes = leading_number(rest).value_or(0) * (rest.ends_with("KiB")   ? 1024
                                                             : rest.ends_with("MiB") ? 1024 * 1024
                                                                                     : 1);
  }
  if (driver != "amdgpu" || pdev.empty()) return;
  const std::string name = pdev + "/" + client;
  if (std::find(clients.begin(), clients.end(), name) != clients.end()) return;
  clients.push_back(name);
  DrmUse& sum = uses[pdev];
  sum.memory_bytes += use.memory_bytes;
  for (const auto& [engine, ns] : use.engine_ns) sum.engine_ns[engine] += ns;
}

std::optional<DrmUses> read_drm_use(const fs::path& proc, int pid) {
  std::error_code status;
  fs::directory_iterator at(proc / std::to_string(pid) / "fdinfo", status);
  if (status) return std::nullopt;
  DrmUses uses;
  std::vector<std::string> clients;
  std::size_t count = 0;
  for (; !status && at != fs::directory_iterator() && count < kMostDescriptors; at.increment(status), ++count)
    if (const ReadText read = read_text(at->path(), kLargestUseFile); read.text) add_fdinfo(*read.text, clients, uses);
  return uses;
}

std::string pci_name(const SysfsNode& node) {
  if (!node.pci_place) return "";
  return fmt::format("{:04x}:{:02x}:{:02x}.{}", node.pci_domain.value_or(0), *node.pci_place >> 8 & 0xff,
                     *node.pci_place >> 3 & 0x1f, *node.pci_place & 7);
}

}  // namespace weir::kfd
