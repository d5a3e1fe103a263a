#include "device/opencl/commands.h"

#if WEIR_HAVE_OPENCL
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "base/error.h"
#include "device/initial_contents.h"
#include "kernel/gemm.h"
#include "kernel/gemm_tiles.h"
#include "kernel/region.h"

namespace weir {
namespace {

bool is_gemm(const Command& command) {
  return command.kind == CommandKind::kernel && kernel(command.kernel).geometry == nullptr;
}

Geometry geometry_of(const Command& command) {
  return is_gemm(command) ? gemm_geometry(command.shape) : kernel(command.kernel).geometry(command.shape);
}

}  // namespace

OpenclCommands::OpenclCommands(OpenclContext& context, const Step& step, const Placement& placement,
                               const OpenclBuffers& buffers, std::span<const cl_command_queue> queues,
                               const OpenclBlas* blas, OpenclHostCalls* hosts)
    : context_(context),
      api_(context.api()),
      enqueue_kernel_(api_.enqueue_kernel),
      step_(step),
      buffers_(buffers),
      blas_(blas),
      hosts_(hosts),
      records_(step.commands().size()) {
  // Identical commands share a kernel object.
  std::map<std::tuple<KernelId, ElementType, std::array<std::int64_t, kMaxDims>, std::array<float, kMaxScalars>,
                      std::vector<std::pair<BufferId, std::uint64_t>>>,
           CommandId>
      known;
  for (CommandId id = 0; id < step.commands().size(); ++id) {
    const Command& command = step.commands()[id];
    OpenclRecord& record = records_[id];
    record.queue = queues[placement.stream_of[id] % queues.size()];
    switch (command.kind) {
      case CommandKind::collective:
        reject(fmt::format("{}: the step has a collective '{}', and OpenCL has no library for them", context.name(),
                           name_of(command.collective)),
               "Use one rank, or --device cpu.");
      case CommandKind::copy:
        resolve_copy(id, buffers);
        continue;
      case CommandKind::host:
        record.kind = OpenclRecord::Kind::host;
        continue;
      case CommandKind::kernel:
        break;
    }
    if (is_gemm(command) && blas_ != nullptr && command.shape.type == ElementType::f32) {
      resolve_gemm(id, buffers);
      continue;
    }
    std::vector<std::pair<BufferId, std::uint64_t>> operands;
    for (const Access& access : step.accesses(id)) operands.emplace_back(access.buffer, access.offset_bytes);
    const auto [place, is_new] = known.try_emplace(
        {command.kernel, command.shape.type, command.shape.dims, command.shape.scalars, std::move(operands)}, id);
    if (is_new) {
      resolve_kernel(id, buffers);
    } else {
      const OpenclRecord& same = records_[place->second];
      record.kernel = same.kernel;
      record.global = same.global;
      record.local = same.local;
    }
  }
}

OpenclKernelOwner OpenclCommands::make_kernel(CommandId id, const OpenclBuffers& buffers,
                                              const KernelShape& shape) {
  const Kernel& entry = kernel(step_.commands()[id].kernel);
  OpenclKernelOwner made;
  if (is_region(entry)) {
    if (!compilation_) compilation_.emplace();
    const bool is_new = regions_.emplace(shape.dims[2], shape.type).second;
    made = context_.make_region(shape, is_new ? &*compilation_ : nullptr);
  } else {
    made = context_.make_kernel(entry.name, shape.type);
  }
  auto arguments = arguments_of<OpenclArguments>(shape);
  const auto accesses = step_.accesses(id);
  for (cl_uint i = 0; i < kMaxOperands; ++i) {
    cl_mem memory = nullptr;
    if (i < accesses.size()) {
      memory = buffers.memory(accesses[i].buffer);
      arguments.offsets[i] = accesses[i].offset_bytes;
      if (std::string reason; memory == nullptr && context_.sharing(&reason) == OpenclSharing::none)
        reject(fmt::format("{}: kernel '{}' uses host memory, which kernels cannot on this device ({})",
                           context_.name(), entry.name, reason),
               "Use --device cpu or cuda.");
    }
    check_opencl(api_.set_argument(made.get(), i, sizeof memory, memory == nullptr ? nullptr : &memory),
                 fmt::format("{}: setting operand {} of kernel '{}'", context_.name(), i, entry.name));
  }
  check_opencl(api_.set_argument(made.get(), kMaxOperands, sizeof arguments, &arguments),
               fmt::format("{}: setting the arguments of kernel '{}'", context_.name(), entry.name));
  return made;
}

void OpenclCommands::resolve_kernel(CommandId id, const OpenclBuffers& buffers) {
  const Command& command = step_.commands()[id];
  OpenclRecord& record = records_[id];
  kernels_.push_back(make_kernel(id, buffers, command.shape));
  record.kernel = kernels_.back().get();
  const Geometry geometry = geometry_of(command);
  record.local = context_.work_group(record.kernel, geometry.block);
  record.global = record.local * geometry.grid;
}

void OpenclCommands::resolve_gemm(CommandId id, const OpenclBuffers& buffers) {
  const KernelShape& shape = step_.commands()[id].shape;
  const auto accesses = step_.accesses(id);
  const auto offset = [&](std::size_t i) { return accesses[i].offset_bytes / sizeof(float); };
  records_[id].kind = OpenclRecord::Kind::gemm;
  records_[id].gemm = gemms_.size();
  gemms_.push_back({.transposes_a = transposes_a(shape),
                    .transposes_b = transposes_b(shape),
                    .m = static_cast<std::size_t>(shape.dims[0]),
                    .n = static_cast<std::size_t>(shape.dims[1]),
                    .k = static_cast<std::size_t>(shape.dims[2]),
                    .batch = static_cast<std::size_t>(gemm_batch(shape)),
                    .alpha = shape.scalars[0],
                    .beta = shape.scalars[1],
                    .a = buffers.memory(accesses[0].buffer),
                    .b = buffers.memory(accesses[1].buffer),
                    .c = buffers.memory(accesses[2].buffer),
                    .a_offset = offset(0),
                    .b_offset = offset(1),
                    .c_offset = offset(2)});
}

void OpenclCommands::resolve_copy(CommandId id, const OpenclBuffers& buffers) {
  const Access& from = step_.accesses(id)[0];
  const Access& to = step_.accesses(id)[1];
  const bool is_from_host = buffers.host(from.buffer) != nullptr, is_to_host = buffers.host(to.buffer) != nullptr;
  OpenclRecord& record = records_[id];
  using enum OpenclRecord::Kind;
  record.kind = is_from_host == is_to_host ? on_device : is_to_host ? to_host : to_device;
  record.from = buffers.memory(from.buffer);
  record.to = buffers.memory(to.buffer);
  record.from_offset = from.offset_bytes;
  record.to_offset = to.offset_bytes;
  record.bytes = from.size_bytes;
  if (record.kind == to_host) record.host = buffers.host(to.buffer) + to.offset_bytes;
  if (record.kind == to_device) record.host = buffers.host(from.buffer) + from.offset_bytes;
  if (OpenclHostCalls::does(step_, buffers, id)) record.kind = host;
}

int OpenclCommands::launch_other(CommandId id, cl_uint wait_count, const cl_event* waits, cl_event* begin,
                                 cl_event* end) const noexcept {
  const OpenclRecord& r = records_[id];
  switch (r.kind) {
    case OpenclRecord::Kind::kernel:
      break;
    case OpenclRecord::Kind::gemm: {
      // The library accepts no events to wait for.
      int result = wait_count == 0 ? CL_SUCCESS : api_.enqueue_barrier(r.queue, wait_count, waits, nullptr);
      if (result == CL_SUCCESS && begin != nullptr) result = api_.enqueue_marker(r.queue, 0, nullptr, begin);
      return result != CL_SUCCESS ? result : blas_->gemm(gemms_[r.gemm], r.queue, end);
    }
    case OpenclRecord::Kind::to_device:
      return api_.enqueue_write(r.queue, r.to, CL_FALSE, r.to_offset, r.bytes, r.host, wait_count, waits, end);
    case OpenclRecord::Kind::to_host:
      return api_.enqueue_read(r.queue, r.from, CL_FALSE, r.from_offset, r.bytes, r.host, wait_count, waits, end);
    case OpenclRecord::Kind::on_device:
      return api_.enqueue_copy(r.queue, r.from, r.to, r.from_offset, r.to_offset, r.bytes, wait_count, waits, end);
    case OpenclRecord::Kind::host:
      return hosts_->launch(id, r.queue, true, wait_count, waits, begin, end);
  }
  return CL_INVALID_OPERATION;
}

void OpenclCommands::warm_up(cl_command_queue queue) {
  const auto commands = step_.commands();
  std::set<std::tuple<KernelId, ElementType, std::size_t, std::size_t, std::array<std::int64_t, kMaxDims>>> seen;
  CommandId count = 0;
  for (CommandId id = 0; id < commands.size(); ++id) {
    const OpenclRecord& record = records_[id];
    if (commands[id].kind != CommandKind::kernel) continue;
    // A library compiles code for each product size, a driver for each geometry; a region has code of its own.
    const bool is_gemm = record.kind == OpenclRecord::Kind::gemm || is_region(kernel(commands[id].kernel));
    if (seen.emplace(commands[id].kernel, commands[id].shape.type, record.global, record.local,
                     is_gemm ? commands[id].shape.dims : std::array<std::int64_t, kMaxDims>{})
            .second)
      count = id + 1;
  }
  // Also everything before it: an index that is still poison would send a kernel out of its buffers.
  for (CommandId id = 0; id < count; ++id) {
    OpenclRecord& record = records_[id];
    if (record.kind == OpenclRecord::Kind::host) {
      check_opencl(api_.finish(queue), context_.name() + ": warming up");
      hosts_->run(id);
      continue;
    }
    const cl_command_queue own_queue = std::exchange(record.queue, queue);
    const cl_kernel own_kernel = record.kernel;
    OpenclKernelOwner short_kernel;
    const Kernel& entry = kernel(commands[id].kernel);
    if (record.kind == OpenclRecord::Kind::kernel && entry.lasts != Lasts::by_work) {
      KernelShape shape = commands[id].shape;
      shape.dims[0] = 0;  // its duration
      short_kernel = make_kernel(id, buffers_, shape);
      record.kernel = short_kernel.get();
    }
    const int result = launch(id, 0, nullptr, nullptr, nullptr);
    record.queue = own_queue;
    record.kernel = own_kernel;
    if (result != CL_SUCCESS)
      fail(fmt::format("{}: warming {} up failed: {}", context_.name(),
                       commands[id].kind == CommandKind::kernel ? entry.name : "a copy", describe(result)));
  }
  check_opencl(api_.finish(queue), context_.name() + ": warming up");
}

std::string OpenclCommands::describe(int result) const {
  // CLBlast's own numbers begin at -1024 and at -2048; the others are OpenCL's.
  if (blas_ != nullptr && result <= -1024 && result > -2100 && !(result <= -1138 && result >= -1140))
    return fmt::format("CLBlast status {}", result);
  return describe_opencl(result);
}

}  // namespace weir
#endif
