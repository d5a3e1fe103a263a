#include "amd/ftrace/kfd_functions.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <unordered_map>

namespace weir::ftrace {
namespace {

using enum KfdPart;

struct Row {
  std::string_view name;
  KfdFunction function;
};

// create  = kfd_ioctl -> kfd_ioctl_create_queue -> pqm_create_queue -> create_queue_cpsch -> allocate_doorbell,
//           allocate_mqd, init_mqd[_v9_4_3], execute_queues_cpsch -> unmap_queues_cpsch(pm_send_unmap_queue,
//           pm_send_query_status, amdkfd_fence_wait_timeout) -> map_queues_cpsch(pm_send_runlist ->
//           pm_create_runlist_ib)
// update  = kfd_ioctl_update_queue -> pqm_update_queue_properties -> update_queue
// destroy = kfd_ioctl_destroy_queue -> pqm_destroy_queue -> destroy_queue_cpsch
// suspend = kfd_ioctl_set_debug_trap -> suspend_queues -> execute_queues_cpsch
// evict   = evict_process_worker -> kfd_process_evict_queues -> evict_process_queues_cpsch
constexpr std::array kRows = {
    Row{"kfd_ioctl", {kfd_ioctl, KfdVerb::ioctl, 0}},
    Row{"kfd_ioctl_create_queue", {create_handler, KfdVerb::create, 10}},
    Row{"pqm_create_queue", {pqm_create, KfdVerb::create, 20}},
    Row{"create_queue_cpsch", {create_scheduler, KfdVerb::create, 30}},
    Row{"create_queue_nocpsch", {create_scheduler, KfdVerb::create, 30}},
    Row{"kfd_ioctl_update_queue", {ioctl_handler, KfdVerb::update, 10}},
    Row{"kfd_ioctl_set_cu_mask", {ioctl_handler, KfdVerb::update, 10}},
    Row{"pqm_update_queue_properties", {none, KfdVerb::update, 20}},
    Row{"pqm_update_mqd", {none, KfdVerb::update, 20}},
    Row{"update_queue", {none, KfdVerb::update, 30}},
    Row{"kfd_ioctl_destroy_queue", {ioctl_handler, KfdVerb::destroy, 10}},
    Row{"pqm_destroy_queue", {none, KfdVerb::destroy, 20}},
    Row{"destroy_queue_cpsch", {none, KfdVerb::destroy, 30}},
    Row{"destroy_queue_nocpsch", {none, KfdVerb::destroy, 30}},
    Row{"evict_process_worker", {none, KfdVerb::evict, 10}},
    Row{"kfd_evict_process_worker", {none, KfdVerb::evict, 12}},  // the pair of events within it
    Row{"kgd2kfd_quiesce_mm", {none, KfdVerb::evict, 14}},
    Row{"kfd_process_evict_queues", {none, KfdVerb::evict, 20}},
    Row{"evict_process_queues_cpsch", {none, KfdVerb::evict, 30}},
    Row{"evict_process_queues_nocpsch", {none, KfdVerb::evict, 30}},
    Row{"restore_process_worker", {none, KfdVerb::restore, 10}},
    Row{"kfd_restore_process_worker", {none, KfdVerb::restore, 12}},
    Row{"kgd2kfd_resume_mm", {none, KfdVerb::restore, 14}},
    Row{"kfd_process_restore_queues", {none, KfdVerb::restore, 20}},
    Row{"restore_process_queues_cpsch", {none, KfdVerb::restore, 30}},
    Row{"restore_process_queues_nocpsch", {none, KfdVerb::restore, 30}},
    Row{"suspend_queues", {none, KfdVerb::suspend, 30}},
    Row{"resume_queues", {none, KfdVerb::resume, 30}},
    Row{"execute_queues_cpsch", {execute, {}, 40}},
    Row{"unmap_queues_cpsch", {unmap, KfdVerb::unmap, 50}},
    Row{"map_queues_cpsch", {runlist_map, KfdVerb::map, 50}},
    Row{"add_queue_mes", {mes_add, KfdVerb::map, 50}},
    Row{"remove_queue_mes", {mes_remove, KfdVerb::unmap, 50}},
    Row{"pm_send_unmap_queue", {unmap_sent, {}, 60}},
    Row{"pm_send_query_status", {none, {}, 60}},
    Row{"pm_send_runlist", {runlist_sent, {}, 60}},
    Row{"pm_create_runlist_ib", {none, {}, 70}},
    Row{"amdkfd_fence_wait_timeout", {fence_wait, {}, 60}},
    Row{"allocate_doorbell", {doorbell_allocate, {}, 60}},
    Row{"kfd_alloc_process_doorbells", {none, {}, -1}},
    Row{"kfd_doorbell_mmap", {doorbell_mmap, {}, -1}},
    Row{"write_kernel_doorbell", {kernel_doorbell_write, {}, 90}},
    Row{"write_kernel_doorbell64", {kernel_doorbell_write, {}, 90}},
    Row{"process_termination_cpsch", {process_end, {}, 30}},
    Row{"process_termination_nocpsch", {process_end, {}, 30}},
    Row{"amdgpu_cs_ioctl", {cs_ioctl, {}, -1}},
    Row{"kfd_open", {none, {}, -1}},
    Row{"kfd_release", {none, {}, -1}},
    Row{"kfd_mmap", {none, {}, -1}},
};

// allocate_mqd, allocate_sdma_mqd, allocate_hiq_mqd; init_mqd, init_mqd_sdma, init_mqd_v9_4_3 (one init_mqd per XCC)
// ...
KfdPart mqd_part(std::string_view name) {
  if (name.starts_with("allocate_") && name.ends_with("mqd")) return mqd_allocate;
  if (name == "init_mqd_v9_4_3" || name == "init_mqd_hiq_v9_4_3") return mqd_init_all_xccs;
  if (name.starts_with("init_mqd")) return mqd_init;
  if (name.starts_with("load_mqd") || name.starts_with("hiq_load_mqd")) return mqd_load;
  if (name.starts_with("update_mqd")) return mqd_update;
  if (name.starts_with("destroy_mqd") || name.starts_with("destroy_hiq_mqd") || name == "kfd_destroy_mqd_cp")
    return mqd_destroy;
  if (name.starts_with("free_mqd") || name == "kfd_free_mqd_cp" || name == "kfd_hiq_free_mqd") return mqd_free;
  return none;
}

bool has(std::string_view name, std::string_view part) { return name.find(part) != name.npos; }

bool is_kfd_name(std::string_view name) {
  return has(name, "kfd") || name.starts_with("pqm_") || name.starts_with("pm_send_") || name.ends_with("_cpsch") ||
         name.ends_with("_nocpsch") || has(name, "_queue_mes") || has(name, "_queues_mes");
}

bool is_amdgpu_name(std::string_view name) {
  return name.starts_with("amdgpu_") || name.starts_with("gfx_v") || name.starts_with("gmc_v") ||
         name.starts_with("sdma_v") || name.starts_with("smu_v") || name.starts_with("soc1") ||
         name.starts_with("vega") || name.starts_with("gfxhub_") || name.starts_with("nbio_v") ||
         name.starts_with("mes_v");
}

}  // namespace

KfdFunction function_of(std::string_view name) {
  static const auto* const kByName = [] {
    auto* const map = new std::unordered_map<std::string_view, KfdFunction>;
    for (const Row& row : kRows) map->emplace(row.name, row.function);
    return map;
  }();
  // The table comes first; other names are classified by their prefixes and parts.
  if (const auto found = kByName->find(name); found != kByName->end()) return found->second;
  if (has(name, "mqd")) {
    const KfdPart part = mqd_part(name);
    // init_mqd calls update_mqd at its end, and the functions for partitioned chips call the plain ones.
    if (part != none) return {part, {}, part == mqd_init ? 80 : part == mqd_update ? 85 : 60};
  }
  if (has(name, "kcq") || (name.starts_with("gfx_v") && name.ends_with("_compute"))) return {kcq, {}, -1};
  if (name.starts_with("kfd_ioctl_")) return {ioctl_handler, {}, 10};
  if (name.starts_with("amdgpu_amdkfd_")) return {};  // the driver's side of KFD: does not prove a wide filter
  if (is_kfd_name(name)) return {other_kfd, {}, -1};
  return {is_amdgpu_name(name) ? other_amdgpu : none, {}, -1};
}

KfdFunction KnownFunctions::of(std::string_view name) {
  if (name.size() < 8 || name.size() > kLongest) return function_of(name);
  // The first and last eight letters and the length make a good hash for a driver's names; the name itself is compared.
  std::uint64_t first = 0, last = 0;
  std::memcpy(&first, name.data(), 8);
  std::memcpy(&last, name.data() + name.size() - 8, 8);
  const std::uint64_t mixed = ((first * 0x9e3779b97f4a7c15) ^ last) * 0xd6e8feb86659fd93 + name.size();
  Slot& slot = slots_[(mixed >> 40) % kSlots];
  if (slot.size != name.size() || std::memcmp(slot.name.data(), name.data(), name.size()) != 0) {
    slot.function = function_of(name);
    slot.size = static_cast<std::uint8_t>(name.size());
    std::memcpy(slot.name.data(), name.data(), name.size());
  }
  return slot.function;
}

bool is_root(std::string_view caller) {
  static constexpr std::array<std::string_view, 16> kRoots = {
      "do_syscall_64",    "__x64_sys_ioctl", "__arm64_sys_ioctl", "__se_sys_ioctl",
      "__do_sys_ioctl",   "ksys_ioctl",      "do_vfs_ioctl",      "vfs_ioctl",
      "invoke_syscall",   "el0_svc",         "x64_sys_call",      "entry_SYSCALL_64_after_hwframe",
      "process_one_work", "worker_thread",   "kthread",           "ret_from_fork",
  };
  return std::find(kRoots.begin(), kRoots.end(), caller) != kRoots.end();
}

std::string_view kfd_ioctl_name(std::uint64_t command) {
  constexpr std::uint64_t kLetter = 'K';
  // Console ioctls use the same letter, but no direction.
  if (command > UINT32_MAX || ((command >> 8) & 0xff) != kLetter || (command >> 30) == 0) return {};
  static constexpr std::array<std::string_view, 0x27> kNames = {"",
                                                                "get_version",
                                                                "create_queue",
                                                                "destroy_queue",
                                                                "set_memory_policy",
                                                                "get_clock_counters",
                                                                "get_process_apertures",
                                                                "update_queue",
                                                                "create_event",
                                                                "destroy_event",
                                                                "set_event",
                                                                "reset_event",
                                                                "wait_events",
                                                                "dbg_register",
                                                                "dbg_unregister",
                                                                "dbg_address_watch",
                                                                "dbg_wave_control",
                                                                "set_scratch_backing_va",
                                                                "get_tile_config",
                                                                "set_trap_handler",
                                                                "get_process_apertures_new",
                                                                "acquire_vm",
                                                                "alloc_memory_of_gpu",
                                                                "free_memory_of_gpu",
                                                                "map_memory_to_gpu",
                                                                "unmap_memory_from_gpu",
                                                                "set_cu_mask",
                                                                "get_queue_wave_state",
                                                                "get_dmabuf_info",
                                                                "import_dmabuf",
                                                                "alloc_queue_gws",
                                                                "smi_events",
                                                                "svm",
                                                                "set_xnack_mode",
                                                                "criu",
                                                                "get_available_memory",
                                                                "export_dmabuf",
                                                                "runtime_enable",
                                                                "set_debug_trap"};
  const std::size_t number = command & 0xff;
  return number > 0 && number < kNames.size() ? kNames[number] : "unknown";
}

std::string_view name_of(KfdVerb verb) {
  static constexpr std::array<std::string_view, kVerbs> kNames = {
      "ioctl", "create", "update", "destroy", "map", "unmap", "evict", "restore", "suspend", "resume", "preempt"};
  return kNames[static_cast<std::size_t>(verb)];
}

bool has_failed(const KfdSpan& span) {
  if (!span.result) return false;
  const bool counts = span.verb == KfdVerb::suspend || span.verb == KfdVerb::resume || span.verb == KfdVerb::ioctl;
  return counts ? *span.result < 0 : *span.result != 0;
}

}  // namespace weir::ftrace
