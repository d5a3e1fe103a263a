// What each thread of somebody else's program remembers. Not thread_local itself, because the thread-local memory of
// preloaded libraries is taken out of the stack of every thread, in every child of the program: only a pointer is.
#pragma once

#include <pthread.h>

#include <new>

namespace weir::inject {

// Made when a thread first asks, deleted when it ends. One for each type and program.
template <class T>
class OfThread {
 public:
  // Null where there is no room for it.
  static T* get() noexcept {
    if (t_mine == nullptr) [[unlikely]]
      make();
    return t_mine;
  }

 private:
  static void make() noexcept {
    ::pthread_once(&g_once, [] {
      g_has_key = ::pthread_key_create(&g_key, [](void* mine) {
                    t_mine = nullptr;
                    delete static_cast<T*>(mine);
                  }) == 0;
    });
    if (!g_has_key) return;
    T* const made = new (std::nothrow) T;
    if (made != nullptr && ::pthread_setspecific(g_key, made) == 0)
      t_mine = made;
    else
      delete made;
  }

  static constinit inline thread_local T* t_mine = nullptr;
  static inline pthread_once_t g_once = PTHREAD_ONCE_INIT;
  static inline pthread_key_t g_key{};
  static inline bool g_has_key = false;
};

}  // namespace weir::inject
