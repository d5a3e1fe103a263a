#include "device/gpu/region_code.h"

#include "base/cache_folder.h"
#include "base/clock.h"
#include "base/error.h"
#include "device/code_cache.h"
#include "device/gpu/compiler.h"
#include "kernel/public_headers.h"
#include "kernel/region_source.h"

namespace weir {

RegionCode::Loaded RegionCode::load(const std::string& code, const char* name) const {
  GpuModule module = nullptr;
  check(api_, api_.module_load(&module, code.data()), "loading compiled code");
  Loaded loaded;
  loaded.module = GpuModuleOwner(module, {&api_});
  check(api_, api_.function_get(&loaded.function, module, name), fmt::format("finding the function {}", name));
  if (api_.function_load != nullptr)
    check(api_, api_.function_load(loaded.function), fmt::format("loading the function {}", name));
  return loaded;
}

GpuFunction RegionCode::find_or_throw(GpuSource source, const char* name, Compilation& done) {
  std::string reason;
  const GpuCompiler* const compiler = api_.compiler == nullptr ? nullptr : api_.compiler(&reason);
  if (compiler == nullptr)
    fail(reason.empty() ? "this device has no compiler" : reason,
         "Install NVRTC or hipRTC, which come with the vendor's toolkit.");
  done.compiler = compiler->version;
  GpuFacts facts;
  check(api_, api_.facts(index_, &facts), "asking the device what it is");

  ContentHash hash;
  hash.add(api_.backend).add(compiler->version).add(facts.architecture).add(facts.model).add(name).add(source.text);
  for (const std::string& option : source.options) hash.add(option);
  for (const EmbeddedSource& header : public_headers()) {
    if (header.name != "kernel.h" && header.name != "device.h") continue;
    source.headers.emplace_back(fmt::format("weir/{}", header.name), header.text);
    hash.add(header.name).add(header.text);
  }
  const std::string key = hash.text();
  if (const auto known = modules_.find(key); known != modules_.end()) {
    ++done.from_memory;
    return known->second.function;
  }
  const auto keep = [&](Loaded loaded) { return modules_.emplace(key, std::move(loaded)).first->second.function; };
  if (const auto kept = kept_code(key)) {
    try {
      const GpuFunction function = keep(load(*kept, name));
      ++done.from_disk;
      return function;
    } catch (const Error&) {
      // Compiled again, and replaced.
    }
  }
  const std::string code = compiler->compile(source, facts.architecture);
  const GpuFunction function = keep(load(code, name));
  keep_code(key, code);
  ++done.compiled;
  return function;
}

GpuFunction RegionCode::function(GpuSource source, const char* name, Compilation& done) {
  const std::int64_t began_ns = now_ns();
  ++done.regions;
  GpuFunction found = nullptr;
  try {
    found = find_or_throw(std::move(source), name, done);
  } catch (const Error& error) {
    ++done.uncompiled;
    done.reason = error.what();
    done.hint = error.hint;
  }
  done.compile_ns = done.compile_ns.value_or(0) + (now_ns() - began_ns);
  return found;
}

GpuFunction RegionCode::find(const KernelShape& shape, Compilation& done) {
  const Precision stored = shape.type == ElementType::f16    ? Precision::fp16
                           : shape.type == ElementType::bf16 ? Precision::bf16
                                                             : Precision::fp32;
  return function({.name = "region.cu",
                   .text = region_source(shape, RegionLanguage::cuda),
                   .options = {fmt::format("-DWEIR_PRECISION={}", bit_of(stored))}},
                  kRegionEntry, done);
}

}  // namespace weir
