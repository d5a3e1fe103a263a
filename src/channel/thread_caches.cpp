#include "channel/thread_caches.h"

#include <mutex>
#include <set>

namespace weir {
namespace {

// Never destroyed, because threads may end after main().
struct Registry {
  std::mutex mutex;
  std::set<std::uint64_t> live;
  std::uint64_t last = 0;
};
Registry& registry() {
  static Registry* const kept = new Registry;
  return *kept;
}

constinit thread_local bool t_has_ended = false;

}  // namespace

ThreadCaches& ThreadCaches::own() {
  static thread_local ThreadCaches caches;
  return caches;
}

bool ThreadCaches::has_ended() noexcept { return t_has_ended; }

std::uint64_t ThreadCaches::open_store() {
  Registry& all = registry();
  const std::lock_guard lock(all.mutex);
  all.live.insert(++all.last);
  return all.last;
}

void ThreadCaches::close_store(std::uint64_t serial) noexcept {
  Registry& all = registry();
  const std::lock_guard lock(all.mutex);
  all.live.erase(serial);
}

SlotCache* ThreadCaches::find(std::uint64_t serial) const noexcept {
  for (const Entry& entry : entries_)
    if (entry.serial == serial) return entry.cache;
  return nullptr;
}

void ThreadCaches::add(const Entry& entry) {
  {
    Registry& all = registry();
    const std::lock_guard lock(all.mutex);
    std::erase_if(entries_, [&](const Entry& old) { return !all.live.contains(old.serial); });
  }
  entries_.push_back(entry);
}

ThreadCaches::~ThreadCaches() {
  t_has_ended = true;
  Registry& all = registry();
  // Held to the end, so that no store can be destroyed in the meantime.
  const std::lock_guard lock(all.mutex);
  for (const Entry& entry : entries_)
    if (all.live.contains(entry.serial)) entry.store->retire(*entry.cache);
}

}  // namespace weir
