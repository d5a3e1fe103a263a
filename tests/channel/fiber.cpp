#include "channel/fiber.h"

#include <cstdint>
#include <cstring>

#if defined(__SANITIZE_ADDRESS__)
#define WEIR_FIBER_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define WEIR_FIBER_ASAN 1
#endif
#endif
#if defined(WEIR_FIBER_ASAN)
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif

// void weir_fiber_switch(void** save, void* load): keeps what a function call must keep on the stack that is left, and
// takes it from the other. swapcontext(3) would call the kernel twice, for signal masks.
extern "C" void weir_fiber_switch(void** save, void* load);

#if defined(__aarch64__)
asm(R"(
.text
.globl weir_fiber_switch
.type weir_fiber_switch, %function
weir_fiber_switch:
  sub sp, sp, #160
  stp x19, x20, [sp, #0]
  stp x21, x22, [sp, #16]
  stp x23, x24, [sp, #32]
  stp x25, x26, [sp, #48]
  stp x27, x28, [sp, #64]
  stp x29, x30, [sp, #80]
  stp d8, d9, [sp, #96]
  stp d10, d11, [sp, #112]
  stp d12, d13, [sp, #128]
  stp d14, d15, [sp, #144]
  mov x9, sp
  str x9, [x0]
  mov sp, x1
  ldp x19, x20, [sp, #0]
  ldp x21, x22, [sp, #16]
  ldp x23, x24, [sp, #32]
  ldp x25, x26, [sp, #48]
  ldp x27, x28, [sp, #64]
  ldp x29, x30, [sp, #80]
  ldp d8, d9, [sp, #96]
  ldp d10, d11, [sp, #112]
  ldp d12, d13, [sp, #128]
  ldp d14, d15, [sp, #144]
  add sp, sp, #160
  ret
.size weir_fiber_switch, .-weir_fiber_switch
)");
#elif defined(__x86_64__)
asm(R"(
.text
.globl weir_fiber_switch
.type weir_fiber_switch, @function
weir_fiber_switch:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
.size weir_fiber_switch, .-weir_fiber_switch
)");
#else
#error "fiber.cpp: write weir_fiber_switch for this processor"
#endif

namespace weir::explored {
namespace {

Fiber* entered = nullptr;

}  // namespace

Fiber::Fiber() : stack_(new std::byte[kStackBytes]) {}
Fiber::~Fiber() = default;

void Fiber::start(void (*body)(void*), void* argument) {
  body_ = body;
  argument_ = argument;
  fake_inside_ = nullptr;
#if defined(WEIR_FIBER_ASAN)
  __asan_unpoison_memory_region(stack_.get(), kStackBytes);  // frames that were left behind
#endif
  std::memset(stack_.get() + kStackBytes - 2 * kCleanBytes, 0, 2 * kCleanBytes);
  auto top = reinterpret_cast<std::uintptr_t>(stack_.get() + kStackBytes) & ~std::uintptr_t{63};
  const auto entry = reinterpret_cast<std::uintptr_t>(&Fiber::main);
#if defined(__aarch64__)
  constexpr std::size_t kSaved = 160, kReturn = 88;  // x30
#else
  constexpr std::size_t kSaved = 64, kReturn = 48;  // and a word, so that the stack is aligned as behind a call
#endif
  auto* saved = reinterpret_cast<std::byte*>(top - kSaved);
  std::memset(saved, 0, kSaved);
  std::memcpy(saved + kReturn, &entry, sizeof entry);
  inside_ = saved;
}

std::span<const std::byte> Fiber::memory() const {
  const auto* first = static_cast<const std::byte*>(inside_);
  return {first, static_cast<std::size_t>(stack_.get() + kStackBytes - first)};
}

void Fiber::enter() {
  entered = this;
  // What former calls left below would show through the gaps of frames to come, and make equal states look different.
  std::byte* below = static_cast<std::byte*>(inside_) - kCleanBytes;
#if defined(WEIR_FIBER_ASAN)
  __asan_unpoison_memory_region(below, kCleanBytes);
#endif
  std::memset(below, 0, kCleanBytes);
#if defined(WEIR_FIBER_ASAN)
  __sanitizer_start_switch_fiber(&fake_outside_, stack_.get(), kStackBytes);
#endif
  weir_fiber_switch(&outside_, inside_);
#if defined(WEIR_FIBER_ASAN)
  __sanitizer_finish_switch_fiber(fake_outside_, nullptr, nullptr);
#endif
}

void Fiber::leave() {
#if defined(WEIR_FIBER_ASAN)
  __sanitizer_start_switch_fiber(&fake_inside_, outer_stack_, outer_bytes_);
#endif
  weir_fiber_switch(&inside_, outside_);
#if defined(WEIR_FIBER_ASAN)
  __sanitizer_finish_switch_fiber(fake_inside_, &outer_stack_, &outer_bytes_);
#endif
}

void Fiber::main() {
  Fiber& self = *entered;
#if defined(WEIR_FIBER_ASAN)
  __sanitizer_finish_switch_fiber(nullptr, &self.outer_stack_, &self.outer_bytes_);
#endif
  self.body_(self.argument_);
  __builtin_trap();
}

}  // namespace weir::explored
