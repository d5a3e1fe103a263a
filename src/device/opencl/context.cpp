#include "device/opencl/context.h"

#if WEIR_HAVE_OPENCL
#include <fmt/format.h>

#include <bit>
#include <cmath>

#include "base/cache_folder.h"
#include "base/clock.h"
#include "base/error.h"
#include "device/code_cache.h"
#include "device/compiler_log.h"
#include "device/opencl/sharing.h"
#include "kernel/opencl_source.h"
#include "kernel/region_source.h"

namespace weir {
namespace {

// From cl_ext.h of 2017 and later; the numbers are the extension's.
constexpr cl_queue_properties kQueuePriority = 0x1096;
constexpr cl_queue_properties kPriorityHigh = 1, kPriorityMedium = 2, kPriorityLow = 4;

// Ticks per second of the counter that kernels on a CPU read; 0 if the machine has no known one.
std::uint64_t cpu_ticks_per_second() {
#if defined(__aarch64__)
  std::uint64_t frequency = 0;
  asm volatile("mrs %0, cntfrq_el0" : "=r"(frequency));
  return frequency;
#elif defined(__x86_64__)
  // Rounded, because it becomes part of the source, by which drivers cache compiled kernels on disk.
  static const std::uint64_t kFrequency = [] {
    const std::int64_t began_ns = now_ns();
    const std::uint64_t began = __builtin_ia32_rdtsc();
    while (now_ns() - began_ns < 20'000'000) {
    }
    const std::uint64_t ticks = __builtin_ia32_rdtsc() - began;
    const double per_second = static_cast<double>(ticks) * 1e9 / static_cast<double>(now_ns() - began_ns);
    return static_cast<std::uint64_t>(std::llround(per_second / 1e6)) * 1'000'000;
  }();
  return kFrequency;
#else
  return 0;
#endif
}

}  // namespace

bool OpenclFacts::offers(std::string_view extension) const {
  return extensions.find(fmt::format(" {} ", extension)) != std::string::npos;
}

OpenclContext::OpenclContext(const OpenclApi& api, cl_platform_id platform, cl_device_id device, OpenclFacts facts)
    : api_(api), platform_(platform), device_(device), facts_(std::move(facts)) {
  const cl_context_properties properties[] = {CL_CONTEXT_PLATFORM, reinterpret_cast<cl_context_properties>(platform),
                                              0};
  cl_int result = CL_SUCCESS;
  context_ = OpenclContextOwner(api.create_context(properties, 1, &device, nullptr, nullptr, &result), {&api});
  check_opencl(result, "making a context");
}

OpenclQueueOwner OpenclContext::make_queue(cl_command_queue_properties properties, int priority) const {
  cl_int result = CL_SUCCESS;
  cl_command_queue queue = nullptr;
  if (facts_.version >= 20 && api_.create_queue != nullptr) {
    std::vector<cl_queue_properties> list = {CL_QUEUE_PROPERTIES, properties};
    if (facts_.offers("cl_khr_priority_hints")) {
      list.push_back(kQueuePriority);
      list.push_back(priority > 0 ? kPriorityHigh : priority < 0 ? kPriorityLow : kPriorityMedium);
    }
    list.push_back(0);
    queue = api_.create_queue(context_.get(), device_, list.data(), &result);
  } else if (api_.create_queue_1 != nullptr) {
    queue = api_.create_queue_1(context_.get(), device_, properties, &result);
  } else {
    fail(name_ + ": the loader has no function that makes a queue for OpenCL 1");
  }
  check_opencl(result, name_ + ": creating a queue");
  return OpenclQueueOwner(queue, {&api_});
}

OpenclMemoryOwner OpenclContext::make_buffer(cl_mem_flags flags, std::size_t bytes, void* host) const {
  cl_int result = CL_SUCCESS;
  OpenclMemoryOwner memory(api_.create_buffer(context_.get(), flags, bytes, host, &result), {&api_});
  check_opencl(result, fmt::format("{}: allocating {} bytes", name_, bytes));
  return memory;
}

OpenclProgramOwner OpenclContext::try_build(const std::string& source, const std::string& options, cl_int* result,
                                            std::string* log) const {
  const char* text = source.c_str();
  const std::size_t length = source.size();
  OpenclProgramOwner program(api_.create_program(context_.get(), 1, &text, &length, result), {&api_});
  if (*result != CL_SUCCESS) return {};
  *result = api_.build_program(program.get(), 1, &device_, options.c_str(), nullptr, nullptr);
  if (*result == CL_SUCCESS) return program;
  std::size_t size = 0;
  if (api_.build_info(program.get(), device_, CL_PROGRAM_BUILD_LOG, 0, nullptr, &size) == CL_SUCCESS) {
    log->resize(size);
    api_.build_info(program.get(), device_, CL_PROGRAM_BUILD_LOG, size, log->data(), nullptr);
  }
  return {};
}

OpenclProgramOwner OpenclContext::build(const std::string& source, const std::string& options,
                                        std::string_view what) const {
  constexpr int kLines = 6;
  cl_int result = CL_SUCCESS;
  std::string log;
  OpenclProgramOwner program = try_build(source, options, &result, &log);
  if (program) return program;
  fail(fmt::format("{}: the driver cannot compile {}: {}{}", name_, what, describe_opencl(result),
                   first_log_lines(log, kLines)),
       "Update the OpenCL driver, or use another --device.");
}

std::string OpenclContext::build_options(ElementType type) const {
  const char* const kind = type == ElementType::f16    ? "-DWEIR_F16"
                           : type == ElementType::bf16 ? "-DWEIR_BF16"
                           : type == ElementType::i32  ? "-DWEIR_I32"
                                                       : "-DWEIR_F32";
  std::string options = fmt::format("-cl-std=CL1.2 {}", kind);
  if (facts_.is_cpu && cpu_ticks_per_second() != 0)
    options += fmt::format(" -DWEIR_TICKS_PER_SECOND={}ul", cpu_ticks_per_second());
  return options;
}

OpenclKernelOwner OpenclContext::make_kernel(std::string_view kernel, ElementType type) {
  const std::lock_guard lock(mutex_);
  OpenclProgramOwner& program = programs_[{std::string(kernel), type}];
  if (!program) {
    const std::string_view body = opencl_source(kernel);
    if (body.empty()) fail(fmt::format("{}: kernel '{}' has no OpenCL body", name_, kernel));
    program = build(std::string(opencl_source("prelude")) + std::string(body), build_options(type),
                    fmt::format("kernel '{}' for {}", kernel, name_of(type)));
  }
  cl_int result = CL_SUCCESS;
  OpenclKernelOwner made(api_.create_kernel(program.get(), fmt::format("weir_{}", kernel).c_str(), &result), {&api_});
  check_opencl(result, fmt::format("{}: looking kernel '{}' up", name_, kernel));
  return made;
}

// Null if the driver does not take it.
OpenclProgramOwner OpenclContext::program_of_binary(const std::string& binary, const std::string& options) const {
  if (api_.create_program_binary == nullptr) return {};
  const auto* bytes = reinterpret_cast<const unsigned char*>(binary.data());
  const std::size_t size = binary.size();
  cl_int status = CL_SUCCESS, result = CL_SUCCESS;
  OpenclProgramOwner program(api_.create_program_binary(context_.get(), 1, &device_, &size, &bytes, &status, &result),
                             {&api_});
  if (result != CL_SUCCESS || status != CL_SUCCESS) return {};
  if (api_.build_program(program.get(), 1, &device_, options.c_str(), nullptr, nullptr) != CL_SUCCESS) return {};
  return program;
}

// Empty if the driver does not give it.
std::string OpenclContext::binary_of(cl_program program) const {
  std::size_t size = 0;
  if (api_.program_info == nullptr ||
      api_.program_info(program, CL_PROGRAM_BINARY_SIZES, sizeof size, &size, nullptr) != CL_SUCCESS || size == 0)
    return {};
  std::string binary(size, '\0');
  auto* bytes = reinterpret_cast<unsigned char*>(binary.data());
  return api_.program_info(program, CL_PROGRAM_BINARIES, sizeof bytes, static_cast<void*>(&bytes), nullptr) ==
                 CL_SUCCESS
             ? binary
             : std::string();
}

OpenclKernelOwner OpenclContext::make_region(const KernelShape& shape, Compilation* done) {
  const std::int64_t began_ns = now_ns();
  const std::lock_guard lock(mutex_);
  OpenclProgramOwner& program = programs_[{fmt::format("region {:x}", shape.dims[2]), shape.type}];
  std::size_t Compilation::* found = &Compilation::from_memory;
  cl_int result = CL_SUCCESS;
  OpenclKernelOwner made;
  if (!program) {
    const std::string source = std::string(opencl_source("prelude")) + region_source(shape, RegionLanguage::opencl);
    const std::string options = build_options(shape.type);
    ContentHash hash;
    hash.add("opencl").add(facts_.platform).add(facts_.platform_version).add(facts_.driver_version);
    const std::string key = hash.add(facts_.model).add(options).add(source).text();
    found = &Compilation::from_disk;
    if (const auto kept = kept_code(key)) {
      program = program_of_binary(*kept, options);
      // Some drivers take a binary that has no such kernel for them.
      if (program) made = OpenclKernelOwner(api_.create_kernel(program.get(), kRegionEntry, &result), {&api_});
    }
    if (!made) {
      found = &Compilation::compiled;
      program.reset();
      program = build(source, options, "a region");
      if (const std::string binary = binary_of(program.get()); !binary.empty()) keep_code(key, binary);
    }
  }
  if (!made) made = OpenclKernelOwner(api_.create_kernel(program.get(), kRegionEntry, &result), {&api_});
  check_opencl(result, fmt::format("{}: looking the kernel of a region up", name_));
  if (done != nullptr) {
    ++done->regions;
    ++(done->*found);
    done->compiler = facts_.platform + " " + facts_.driver_version;
    done->compile_ns = done->compile_ns.value_or(0) + (now_ns() - began_ns);
  }
  return made;
}

std::size_t OpenclContext::work_group(cl_kernel kernel, unsigned wanted) const {
  std::size_t most = wanted;
  check_opencl(api_.work_group_info(kernel, device_, CL_KERNEL_WORK_GROUP_SIZE, sizeof most, &most, nullptr),
               name_ + ": asking for a kernel's work-group size");
  return most >= wanted ? wanted : std::bit_floor(most);
}

const Capability& OpenclContext::kernel_clock() {
  {
    const std::lock_guard lock(mutex_);
    if (kernel_clock_) return *kernel_clock_;
  }
  Capability found;
  try {
    make_kernel("spin", ElementType::f32);
  } catch (const Error& error) {
    found = lacking(fmt::format("kernels know no clock on this device ({})", error.what()));
  }
  const std::lock_guard lock(mutex_);
  if (!kernel_clock_) kernel_clock_ = std::move(found);
  return *kernel_clock_;
}

OpenclSharing OpenclContext::sharing(std::string* reason) {
  const std::lock_guard lock(mutex_);
  if (!sharing_) {
    std::string why;
    OpenclSharing found = OpenclSharing::none;
    try {
      const OpenclProgramOwner program = build(std::string(kSharingTrial), "-cl-std=CL1.2", "the trial of host memory");
      found = try_sharing(*this, program.get(), &why);
    } catch (const Error& error) {
      why = error.what();
    }
    sharing_.emplace(found, std::move(why));
  }
  if (reason != nullptr) *reason = sharing_->second;
  return sharing_->first;
}

}  // namespace weir
#endif
