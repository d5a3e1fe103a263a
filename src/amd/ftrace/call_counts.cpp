// Counts KFD's calls by the evidence they give. Knows no times and no threads.
#include <algorithm>
#include <iterator>

#include "amd/ftrace/spans.h"

namespace weir::ftrace {
namespace {

constexpr std::size_t kNames = 1024;      // distinct names
constexpr std::size_t kLongestName = 64;  // name, in bytes

// Indexed by KfdPart; null for parts that are not counted.
constexpr std::uint64_t KfdCalls::* kCounters[] = {nullptr,
                                                   &KfdCalls::kfd_ioctl,
                                                   nullptr,
                                                   &KfdCalls::create_handler,
                                                   &KfdCalls::pqm_create,
                                                   &KfdCalls::create_scheduler,
                                                   nullptr,
                                                   &KfdCalls::runlist_map,
                                                   &KfdCalls::runlist_sent,
                                                   nullptr,
                                                   &KfdCalls::unmap_sent,
                                                   &KfdCalls::fence_wait,
                                                   &KfdCalls::mqd_allocate,
                                                   &KfdCalls::mqd_init,
                                                   &KfdCalls::mqd_init_all_xccs,
                                                   &KfdCalls::mqd_load,
                                                   &KfdCalls::mqd_update,
                                                   &KfdCalls::mqd_destroy,
                                                   &KfdCalls::mqd_free,
                                                   &KfdCalls::doorbell_allocate,
                                                   &KfdCalls::doorbell_mmap,
                                                   &KfdCalls::kernel_doorbell_write,
                                                   &KfdCalls::kcq,
                                                   &KfdCalls::mes_add,
                                                   &KfdCalls::mes_remove,
                                                   &KfdCalls::process_end,
                                                   &KfdCalls::cs_ioctl,
                                                   &KfdCalls::unknown_kfd_calls,
                                                   &KfdCalls::amdgpu_beyond_kfd};
static_assert(std::size(kCounters) == static_cast<std::size_t>(KfdPart::other_amdgpu) + 1);

std::vector<NameCount> most_frequent(const std::unordered_map<std::string, std::uint64_t>& names, std::size_t limit) {
  std::vector<NameCount> list;
  for (const auto& [name, count] : names) list.push_back({name, count});
  std::sort(list.begin(), list.end(), [](const NameCount& a, const NameCount& b) {
    return a.count != b.count ? a.count > b.count : a.name < b.name;
  });
  if (list.size() > limit) list.resize(limit);
  return list;
}

}  // namespace

void CallCounts::count_name(Names& names, std::string_view name) {
  const std::string key(name.substr(0, kLongestName));
  if (const auto found = names.find(key); found != names.end()) {
    ++found->second;
  } else if (names.size() < kNames) {
    names.emplace(key, 1);
  }
}

void CallCounts::count_system_call(std::string_view ioctl) {
  ++calls_.kfd_ioctl;
  count_name(ioctls_, ioctl);
}

void CallCounts::count(std::string_view name, KfdPart part, bool is_in_system_call) {
  constexpr std::string_view kHandler = "kfd_ioctl_";
  if (!is_in_system_call && name.starts_with(kHandler)) count_name(ioctls_, name.substr(kHandler.size()));
  if (part == KfdPart::kcq) count_name(kcq_names_, name);
  if (part == KfdPart::other_kfd) count_name(unknown_kfd_, name);
  const auto counter = kCounters[static_cast<std::size_t>(part)];
  if (counter != nullptr && !(part == KfdPart::kfd_ioctl && is_in_system_call)) ++(calls_.*counter);
}

KfdCalls CallCounts::finish() {
  calls_.ioctls = most_frequent(ioctls_, 40);
  calls_.kcq_names = most_frequent(kcq_names_, 8);
  calls_.unknown_kfd = most_frequent(unknown_kfd_, 8);
  return calls_;
}

}  // namespace weir::ftrace
