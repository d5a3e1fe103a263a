// GPUs, processes and their queues as sysfs shows them. Knows class/kfd/kfd and module/amdgpu/parameters.
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <system_error>

#include "amd/kfd/snapshot.h"

namespace weir::kfd {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMaxEntries = 100'000;  // per folder
constexpr std::size_t kMaxProblems = 20;
constexpr std::size_t kLargestFile = std::size_t{1} << 20;

template <class Number>
std::optional<Number> number(std::string_view text) {
  // queues/<id>/size has no newline at its end, other files have one.
  while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.remove_suffix(1);
  Number value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || text.empty()) return std::nullopt;
  return value;
}

// num_xcc 4
void read_properties(std::string_view text, SysfsNode& node) {
  Lines lines(text);
  std::string_view line;
  while (lines.next(line)) {
    const std::size_t blank = line.find(' ');
    if (blank == std::string_view::npos) continue;
    const std::string_view key = line.substr(0, blank), rest = line.substr(blank + 1);
    const auto set = [&](std::string_view name, std::optional<int>& field) {
      if (key == name) field = number<int>(rest);
    };
    if (key == "gfx_target_version") node.gfx_target_version = number<std::uint32_t>(rest);
    if (key == "location_id") node.pci_place = number<std::uint32_t>(rest);
    if (key == "domain") node.pci_domain = number<std::uint32_t>(rest);
    set("drm_render_minor", node.render_minor);
    set("num_xcc", node.xccs);
    set("num_cp_queues", node.cp_queues);
    set("num_sdma_engines", node.sdma_engines);
    set("num_sdma_xgmi_engines", node.sdma_xgmi_engines);
    set("num_sdma_queues_per_engine", node.sdma_queues_per_engine);
    set("simd_count", node.simds);
    set("max_waves_per_simd", node.max_waves_per_simd);
  }
}

class SysfsReader {
 public:
  explicit SysfsReader(SysfsState& state) : state_(state) {}

  void read_nodes(const fs::path& folder) {
    for (const auto& [name, path] : entries(folder)) {
      const auto index = number<int>(name);
      if (!index) continue;
      const auto gpu_id = text_of(path / "gpu_id");
      if (!gpu_id) continue;  // a GPU outside this cgroup: EPERM
      const auto title = text_of(path / "name"), properties = text_of(path / "properties");
      auto node = parse_node(*index, *gpu_id, title.value_or(""), properties.value_or(""));
      if (node)
        state_.nodes.push_back(*std::move(node));
      else
        problem(fmt::format("{}: not a number", (path / "gpu_id").string()));
    }
    std::sort(state_.nodes.begin(), state_.nodes.end(),
              [](const SysfsNode& a, const SysfsNode& b) { return a.node < b.node; });
  }

  void read_processes(const fs::path& folder) {
    for (const auto& [name, path] : entries(folder)) {
      const auto pid = number<int>(name);
      if (!pid) continue;
      SysfsProcess process;
      process.pid = *pid;
      for (const auto& [file, at] : entries(path)) {
        // vram_63420, stats_63420/evicted_ms, stats_63420/cu_occupancy: the GPU's id is decimal here.
        if (const auto gpu = id_after(file, "vram_")) {
          if (const auto bytes = value<std::uint64_t>(at)) process.vram_bytes.emplace_back(*gpu, *bytes);
        } else if (const auto stats = id_after(file, "stats_")) {
          if (const auto ms = value<std::uint64_t>(at / "evicted_ms", false))
            process.evicted_ms.emplace_back(*stats, *ms);
          if (const auto cus = value<std::uint64_t>(at / "cu_occupancy", false))
            process.cu_occupancy.emplace_back(*stats, *cus);
        }
      }
      for (auto* const list : {&process.vram_bytes, &process.evicted_ms, &process.cu_occupancy})
        std::sort(list->begin(), list->end());
      read_queues(path / "queues", process);
      state_.processes.push_back(std::move(process));
    }
    std::sort(state_.processes.begin(), state_.processes.end(),
              [](const SysfsProcess& a, const SysfsProcess& b) { return a.pid < b.pid; });
  }

  void read_parameters(const fs::path& folder) {
    for (const char* const name : {"mes", "num_kcq", "sched_policy", "cwsr_enable", "hws_max_conc_proc",
                                   "max_num_of_queues_per_device", "queue_preemption_timeout_ms", "halt_if_hws_hang"}) {
      const auto text = read_text(folder / name, kLargestFile).text;  // the set of files depends on the version
      if (text) state_.parameters.emplace_back(name, text->substr(0, text->find('\n')).substr(0, 64));
    }
  }

 private:
  void read_queues(const fs::path& folder, SysfsProcess& process) {
    for (const auto& [name, path] : entries(folder)) {
      const auto id = number<std::uint32_t>(name);
      if (!id) continue;
      const auto gpu_id = text_of(path / "gpuid"), size = text_of(path / "size"), type = text_of(path / "type");
      if (!gpu_id || !size || !type) continue;  // it disappeared while it was read
      if (const auto queue = parse_queue(*id, *gpu_id, *size, *type))
        process.queues.push_back(*queue);
      else
        problem(fmt::format("{}: gpuid, size or type is not a number", path.string()));
    }
    std::sort(process.queues.begin(), process.queues.end(),
              [](const SysfsQueue& a, const SysfsQueue& b) { return a.id < b.id; });
  }

  std::vector<std::pair<std::string, fs::path>> entries(const fs::path& folder) {
    std::vector<std::pair<std::string, fs::path>> found;
    std::error_code error;
    for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
      if (found.size() == kMaxEntries) {
        problem(fmt::format("{}: more than {} entries", folder.string(), kMaxEntries));
        break;
      }
      found.emplace_back(at->path().filename().string(), at->path());
    }
    return found;
  }

  std::optional<std::string> text_of(const fs::path& path, bool is_expected = true) {
    ReadText read = read_text(path, kLargestFile);
    if (!read.text && is_expected && read.error != ENOENT)
      problem(fmt::format("{}: {}", path.string(), std::strerror(read.error)));
    return std::move(read.text);
  }

  template <class Number>
  std::optional<Number> value(const fs::path& path, bool is_expected = true) {
    const auto text = text_of(path, is_expected);
    if (!text) return std::nullopt;
    const auto result = number<Number>(*text);
    if (!result) problem(fmt::format("{}: not a number", path.string()));
    return result;
  }

  static std::optional<std::uint32_t> id_after(std::string_view name, std::string_view prefix) {
    if (!name.starts_with(prefix)) return std::nullopt;
    return number<std::uint32_t>(name.substr(prefix.size()));
  }

  void problem(std::string text) {
    if (state_.problems.size() < kMaxProblems) state_.problems.push_back(std::move(text));
  }

  SysfsState& state_;
};

}  // namespace

std::optional<SysfsNode> parse_node(int node, std::string_view gpu_id, std::string_view name,
                                    std::string_view properties) {
  const auto id = number<std::uint32_t>(gpu_id);
  if (!id) return std::nullopt;
  SysfsNode result;
  result.node = node;
  result.gpu_id = *id;
  result.name = name.substr(0, name.find('\n')).substr(0, 64);
  read_properties(properties, result);
  return result;
}

std::optional<SysfsQueue> parse_queue(std::uint32_t id, std::string_view gpu_id, std::string_view size,
                                      std::string_view type) {
  const auto gpu = number<std::uint32_t>(gpu_id);
  const auto bytes = number<std::uint64_t>(size);
  const auto kind = number<unsigned>(type);
  if (!gpu || !bytes || !kind) return std::nullopt;
  return SysfsQueue{id, *gpu, *bytes, *kind <= 5 ? static_cast<SysfsQueueType>(*kind) : SysfsQueueType::unknown};
}

std::optional<std::string> SysfsState::parameter(std::string_view name) const {
  for (const auto& [key, value] : parameters) {
    if (key == name) return value;
  }
  return std::nullopt;
}

std::optional<SysfsState> read_sysfs(const fs::path& root) {
  const fs::path kfd = root / "class/kfd/kfd";
  std::error_code error;
  if (!fs::is_directory(kfd, error)) return std::nullopt;
  SysfsState state;
  SysfsReader reader(state);
  reader.read_nodes(kfd / "topology/nodes");
  reader.read_processes(kfd / "proc");
  reader.read_parameters(root / "module/amdgpu/parameters");
  return state;
}

}  // namespace weir::kfd
