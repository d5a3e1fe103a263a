#include "device/gpu/context.h"

#include <atomic>

#include "device/gpu/device_source.h"

namespace weir {
namespace {

std::atomic<std::uint64_t> g_generations{0};  // only a count: nothing is published through it

}  // namespace

constinit thread_local std::uint64_t PrimaryContext::bound_ = 0;

PrimaryContext::PrimaryContext(const GpuApi& api, int index)
    : api_(api),
      index_(index),
      name_(fmt::format("{}:{}", api.backend, index)),
      generation_(g_generations.fetch_add(1, std::memory_order_relaxed) + 1),
      regions_(api, index) {
  check(api_, api_.context_retain(&context_, index), "opening " + name_);
}

PrimaryContext::~PrimaryContext() {
  bind();
  service_.reset();
  regions_.clear();
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

// The embedded code where it fits this GPU, otherwise compiled from the embedded source.
void PrimaryContext::load_code() {
  std::string reason;
  GpuModule module = nullptr;
  if (const void* const code = api_.device_code(&reason); code != nullptr) {
    const int result = api_.module_load(&module, code);
    if (result == 0) {
      module_ = GpuModuleOwner(module, {&api_});
      return;
    }
    reason = fmt::format("loading the embedded device code failed: {}", api_.describe(result));
  }
  std::string compiler_reason;
  const GpuCompiler* const compiler = api_.compiler(&compiler_reason);
  if (compiler == nullptr)
    fail(fmt::format("{}: {}, and it cannot be compiled here: {}", name_, reason, compiler_reason), api_.code_hint);
  GpuFacts facts;
  check(api_, api_.facts(index_, &facts), "asking " + name_ + " what it is");
  const std::string code = compile_device_code(*compiler, facts.architecture, facts.model);
  if (const int result = api_.module_load(&module, code.data()); result != 0)
    fail(fmt::format("{}: {}; loading what {} compiled failed too: {}", name_, reason, compiler->version,
                     api_.describe(result)),
         api_.code_hint);
  module_ = GpuModuleOwner(module, {&api_});
}

GpuFunction PrimaryContext::function(const std::string& name) {
  if (const auto known = functions_.find(name); known != functions_.end()) return known->second;
  if (!module_) load_code();
  GpuFunction function = nullptr;
  check(api_, api_.function_get(&function, module_.get(), name.c_str()), "finding the device function " + name);
  if (api_.function_load != nullptr) check(api_, api_.function_load(function), "loading the device function " + name);
  functions_.emplace(name, function);
  return function;
}

}  // namespace weir
