#include "device/gpu/context.h"

#include <atomic>

namespace weir {
namespace {

std::atomic<std::uint64_t> g_generations{0};  // only a count: nothing is published through it

}  // namespace

constinit thread_local std::uint64_t PrimaryContext::bound_ = 0;

PrimaryContext::PrimaryContext(const GpuApi& api, int index)
    : api_(api),
      index_(index),
      name_(fmt::format("{}:{}", api.backend, index)),
      generation_(g_generations.fetch_add(1, std::memory_order_relaxed) + 1) {
  check(api_, api_.context_retain(&context_, index), "opening " + name_);
}

PrimaryContext::~PrimaryContext() {
  bind();
  service_.reset();
  module_.reset();
  api_.context_release(index_);
  bound_ = 0;
}

int PrimaryContext::bind_slowly() const noexcept {
  const int result = api_.context_set_current(context_);
  if (result == 0) bound_ = generation_;
  return result;
}

GpuStream PrimaryContext::service() {
  if (!service_) service_ = make_stream(api_, 0);
  return service_.get();
}

GpuFunction PrimaryContext::function(const std::string& name) {
  if (const auto known = functions_.find(name); known != functions_.end()) return known->second;
  if (!module_) {
    std::string reason;
    const void* const code = api_.device_code(&reason);
    if (code == nullptr) fail(fmt::format("{}: there is no device code: {}", name_, reason));
    GpuModule module = nullptr;
    if (const int result = api_.module_load(&module, code); result != 0)
      fail(fmt::format("{}: loading the embedded device code failed: {}", name_, api_.describe(result)),
           api_.code_hint);
    module_ = GpuModuleOwner(module, {&api_});
  }
  GpuFunction function = nullptr;
  check(api_, api_.function_get(&function, module_.get(), name.c_str()), "finding the device function " + name);
  if (api_.function_load != nullptr) check(api_, api_.function_load(function), "loading the device function " + name);
  functions_.emplace(name, function);
  return function;
}

}  // namespace weir
