#include "submit/inject/nvtx_ranges.h"

#include <array>
#include <atomic>
#include <cstring>
#include <string_view>

#include "submit/inject/of_thread.h"

#if __has_include(<nvtx3/nvToolsExt.h>)
#define NVTX_NO_IMPL
#include <nvtx3/nvToolsExt.h>
#endif

namespace weir::inject {
namespace {

std::atomic<Recorder*> g_recorder{nullptr};

#if __has_include(<nvtx3/nvToolsExt.h>)

struct Open {
  std::int64_t started_ns;
  std::uint32_t name;
};
// The ranges that this thread has begun. Deeper ones are counted only.
struct Stack {
  std::array<Open, 64> ranges;
  std::size_t depth = 0;
};

// PyTorch writes "aten::add, seq = 17": every range would have a name of its own.
std::string_view without_number(std::string_view name) noexcept {
  for (const std::string_view mark : {", seq = ", ", op_id = "})
    if (const std::size_t at = name.find(mark); at != std::string_view::npos) name = name.substr(0, at);
  return name.substr(0, 256);
}

int push(const char* name) noexcept {
  Recorder* const recorder = g_recorder.load(std::memory_order_acquire);
  Stack* const mine = OfThread<Stack>::get();
  if (mine == nullptr) return NVTX_NO_PUSH_POP_TRACKING;
  Stack& stack = *mine;
  const std::size_t at = stack.depth++;
  if (at < stack.ranges.size())
    stack.ranges[at] = {recorder == nullptr ? 0 : monotonic_ns(), recorder == nullptr || name == nullptr
                                                                      ? record::kNoText
                                                                      : recorder->text(without_number(name))};
  return static_cast<int>(at);
}

int pop() noexcept {
  Stack* const mine = OfThread<Stack>::get();
  if (mine == nullptr || mine->depth == 0) return NVTX_NO_PUSH_POP_TRACKING;
  Stack& stack = *mine;
  const std::size_t at = --stack.depth;
  Recorder* const recorder = g_recorder.load(std::memory_order_acquire);
  if (recorder == nullptr || at >= stack.ranges.size() || stack.ranges[at].started_ns == 0) return static_cast<int>(at);
  const std::uint32_t thread = recorder->thread();
  if (thread == record::kNone) return static_cast<int>(at);
  record::Entry entry{};
  entry.started_ns = stack.ranges[at].started_ns;
  entry.ended_ns = monotonic_ns();
  entry.stream = entry.context = record::kNone;
  entry.name = stack.ranges[at].name;
  entry.kind = static_cast<std::uint8_t>(record::Kind::range);
  recorder->append(thread, entry);
  return static_cast<int>(at);
}

// Registered strings are their own handles.
const char* text_of(const nvtxEventAttributes_t* attributes) noexcept {
  if (attributes == nullptr) return nullptr;
  if (attributes->messageType == NVTX_MESSAGE_TYPE_ASCII) return attributes->message.ascii;
  if (attributes->messageType == NVTX_MESSAGE_TYPE_REGISTERED)
    return reinterpret_cast<const char*>(attributes->message.registered);
  return nullptr;
}

int NVTX_API push_plain(const char* name) { return push(name); }
int NVTX_API push_wide(const wchar_t*) { return push(nullptr); }
int NVTX_API push_with(const nvtxEventAttributes_t* attributes) { return push(text_of(attributes)); }
int NVTX_API pop_plain() { return pop(); }
int NVTX_API push_in_domain(nvtxDomainHandle_t, const nvtxEventAttributes_t* attributes) {
  return push(text_of(attributes));
}
int NVTX_API pop_in_domain(nvtxDomainHandle_t) { return pop(); }
nvtxStringHandle_t NVTX_API register_string(nvtxDomainHandle_t, const char* text) {
  return reinterpret_cast<nvtxStringHandle_t>(text == nullptr ? nullptr
                                                              : ::strdup(text));  // lives as long as the program
}
nvtxStringHandle_t NVTX_API register_wide_string(nvtxDomainHandle_t, const wchar_t*) { return nullptr; }

template <class Function>
void set(NvtxFunctionTable table, unsigned size, unsigned id, Function* function) noexcept {
  if (id < size && table[id] != nullptr) *table[id] = reinterpret_cast<NvtxFunctionPointer>(function);
}

#endif

}  // namespace

void record_ranges(Recorder* recorder) noexcept { g_recorder.store(recorder, std::memory_order_release); }

}  // namespace weir::inject

#if __has_include(<nvtx3/nvToolsExt.h>)

// Called by the copy of NVTX that each library of the program brings, before its first range.
extern "C" __attribute__((visibility("default"))) int InitializeInjectionNvtx2(NvtxGetExportTableFunc_t export_table) {
  using namespace weir::inject;
  if (export_table == nullptr) return 0;
  const auto* const callbacks = static_cast<const NvtxExportTableCallbacks*>(export_table(NVTX_ETID_CALLBACKS));
  if (callbacks == nullptr || callbacks->struct_size < sizeof(NvtxExportTableCallbacks)) return 0;
  NvtxFunctionTable table = nullptr;
  unsigned size = 0;
  if (callbacks->GetModuleFunctionTable(NVTX_CB_MODULE_CORE, &table, &size) == 0) return 0;
  set(table, size, NVTX_CBID_CORE_RangePushA, push_plain);
  set(table, size, NVTX_CBID_CORE_RangePushW, push_wide);
  set(table, size, NVTX_CBID_CORE_RangePushEx, push_with);
  set(table, size, NVTX_CBID_CORE_RangePop, pop_plain);
  if (callbacks->GetModuleFunctionTable(NVTX_CB_MODULE_CORE2, &table, &size) == 0) return 1;
  set(table, size, NVTX_CBID_CORE2_DomainRangePushEx, push_in_domain);
  set(table, size, NVTX_CBID_CORE2_DomainRangePop, pop_in_domain);
  set(table, size, NVTX_CBID_CORE2_DomainRegisterStringA, register_string);
  set(table, size, NVTX_CBID_CORE2_DomainRegisterStringW, register_wide_string);
  return 1;
}

#endif
