#include "amd/ftrace/call_counts.h"

#include <algorithm>

namespace weir::ftrace {
namespace {

constexpr std::size_t kNames = 1024;  // told apart
constexpr std::size_t kLongest = 64;  // of a name

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
  const std::string key(name.substr(0, kLongest));
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
  switch (part) {
    case KfdPart::none:
    case KfdPart::ioctl_handler:
    case KfdPart::execute:
    case KfdPart::unmap:
      break;
    case KfdPart::kfd_ioctl:
      calls_.kfd_ioctl += is_in_system_call ? 0 : 1;
      break;
    case KfdPart::create_handler:
      ++calls_.create_handler;
      break;
    case KfdPart::pqm_create:
      ++calls_.pqm_create;
      break;
    case KfdPart::create_scheduler:
      ++calls_.create_scheduler;
      break;
    case KfdPart::runlist_map:
      ++calls_.runlist_map;
      break;
    case KfdPart::runlist_sent:
      ++calls_.runlist_sent;
      break;
    case KfdPart::unmap_sent:
      ++calls_.unmap_sent;
      break;
    case KfdPart::fence_wait:
      ++calls_.fence_wait;
      break;
    case KfdPart::mqd_allocate:
      ++calls_.mqd_allocate;
      break;
    case KfdPart::mqd_init:
      ++calls_.mqd_init;
      break;
    case KfdPart::mqd_init_all_xccs:
      ++calls_.mqd_init_all_xccs;
      break;
    case KfdPart::mqd_load:
      ++calls_.mqd_load;
      break;
    case KfdPart::mqd_update:
      ++calls_.mqd_update;
      break;
    case KfdPart::mqd_destroy:
      ++calls_.mqd_destroy;
      break;
    case KfdPart::mqd_free:
      ++calls_.mqd_free;
      break;
    case KfdPart::doorbell_allocate:
      ++calls_.doorbell_allocate;
      break;
    case KfdPart::doorbell_mmap:
      ++calls_.doorbell_mmap;
      break;
    case KfdPart::kernel_doorbell_write:
      ++calls_.kernel_doorbell_write;
      break;
    case KfdPart::kcq:
      ++calls_.kcq;
      count_name(kcq_names_, name);
      break;
    case KfdPart::mes_add:
      ++calls_.mes_add;
      break;
    case KfdPart::mes_remove:
      ++calls_.mes_remove;
      break;
    case KfdPart::process_end:
      ++calls_.process_end;
      break;
    case KfdPart::cs_ioctl:
      ++calls_.cs_ioctl;
      break;
    case KfdPart::other_kfd:
      ++calls_.unknown_kfd_calls;
      count_name(unknown_kfd_, name);
      break;
    case KfdPart::other_amdgpu:
      ++calls_.amdgpu_beyond_kfd;
      break;
  }
}

KfdCalls CallCounts::finish() {
  calls_.ioctls = most_frequent(ioctls_, 40);
  calls_.kcq_names = most_frequent(kcq_names_, 8);
  calls_.unknown_kfd = most_frequent(unknown_kfd_, 8);
  return calls_;
}

}  // namespace weir::ftrace
