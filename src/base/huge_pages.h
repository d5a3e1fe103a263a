// Memory for large buffers that live briefly: in huge pages where the system offers them, and not cleared by us. In
// small pages the system spends longer on handing such memory out than we do on filling it.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <cstdlib>
#include <new>

namespace weir {

template <class T>
struct HugePageAllocator {
  using value_type = T;
  static constexpr std::size_t kPageBytes = std::size_t{2} << 20;

  HugePageAllocator() = default;
  template <class Other>
  HugePageAllocator(const HugePageAllocator<Other>&) noexcept {}

  T* allocate(std::size_t count) {
    const std::size_t bytes = count * sizeof(T);
    if (bytes < kPageBytes) return static_cast<T*>(::operator new(bytes));
    const std::size_t whole = (bytes + kPageBytes - 1) / kPageBytes * kPageBytes;
    void* const memory = std::aligned_alloc(kPageBytes, whole);
    if (memory == nullptr) throw std::bad_alloc();
    ::madvise(memory, whole, MADV_HUGEPAGE);  // without them it is the same memory, only slower
    return static_cast<T*>(memory);
  }
  void deallocate(T* memory, std::size_t count) noexcept {
    if (count * sizeof(T) < kPageBytes) return ::operator delete(memory);
    std::free(memory);
  }
  // Elements without a value stay as they are.
  template <class Element>
  void construct(Element* at) noexcept {
    ::new (static_cast<void*>(at)) Element;
  }
  template <class Element, class... Values>
  void construct(Element* at, Values&&... values) {
    ::new (static_cast<void*>(at)) Element(static_cast<Values&&>(values)...);
  }
  friend bool operator==(const HugePageAllocator&, const HugePageAllocator&) { return true; }
};

}  // namespace weir
