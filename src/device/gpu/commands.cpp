#include "device/gpu/commands.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <map>
#include <set>
#include <tuple>

#include "device/initial_contents.h"
#include "kernel/fp8.h"
#include "kernel/gemm.h"
#include "kernel/region.h"

namespace weir {
namespace {

int dimension(std::int64_t value) {
  if (value > std::numeric_limits<int>::max())
    reject(fmt::format("a gemm with {} rows, columns or products is too large for BLAS", value));
  return static_cast<int>(value);
}

}  // namespace

GpuCommands::GpuCommands(PrimaryContext& context, const Step& step, const Placement& placement,
                         const GpuBuffers& buffers, std::span<const GpuStream> streams, const StreamBlas& blas,
                         const StreamComms& comms, StagedCollectives* staged, HostThreads* threads)
    : context_(context),
      blas_(blas.blas()),
      collectives_(comms.collectives()),
      staged_(staged),
      records_(step.commands().size()),
      fp8_(context) {
  std::map<std::pair<std::int64_t, ElementType>, GpuFunction> regions;  // by their operations, which fit any size
  for (CommandId id = 0; id < step.commands().size(); ++id) {
    const Command& command = step.commands()[id];
    LaunchRecord& record = records_[id];
    const StreamId stream = placement.stream_of[id];
    record.stream = streams[stream];
    record.other = others_.size();
    if (command.kind == CommandKind::copy) {
      others_.push_back(copy_of(step, id, buffers));
      continue;
    }
    if (command.kind == CommandKind::host) {
      others_.push_back(host_of(step, id, buffers, threads));
      continue;
    }
    if (command.kind == CommandKind::collective) {
      others_.push_back(staged != nullptr ? Other{.kind = Other::Kind::staged, .command = id}
                                          : collective_of(step, id, buffers, comms, stream));
      continue;
    }
    if (is_gemm(command)) {
      others_.push_back(gemm_of(step, id, buffers, blas.handle(stream), record.stream));
      continue;
    }
    const Kernel& entry = kernel(command.kernel);
    const Geometry geometry = entry.geometry(command.shape);
    const std::string_view lean = entry.lean_body == nullptr ? std::string_view() : entry.lean_body(command.shape);
    if (is_region(entry)) {
      if (!compilation_) compilation_.emplace();
      const auto [place, is_new] = regions.try_emplace({command.shape.dims[2], command.shape.type}, nullptr);
      if (is_new) place->second = context.regions().find(command.shape, *compilation_);
      if (place->second == nullptr) {
        others_.push_back(sequence_of(step, id, buffers));
        continue;
      }
      record.function = place->second;
    } else {
      const std::string_view body = lean.empty() ? entry.name : lean;
      record.function = context.function(fmt::format("weir_{}_{}", body, name_of(command.shape.type)));
    }
    record.grid = geometry.grid;
    record.block = geometry.block;
    auto arguments = arguments_of<KernelArguments>(command.shape);
    const auto accesses = step.accesses(id);
    for (std::size_t i = 0; i < accesses.size(); ++i)
      arguments.operands[i] = buffers.address(accesses[i].buffer) + accesses[i].offset_bytes;
    if (lean.empty()) {
      record.arguments = arguments;
    } else {
      record.lean = {{arguments.operands[0], arguments.operands[1]},
                     {arguments.scalars[0], arguments.scalars[1]},
                     static_cast<int>(arguments.dims[0])};
    }
  }
}

GpuCommands::Other GpuCommands::copy_of(const Step& step, CommandId id, const GpuBuffers& buffers) const {
  const Access& from = step.accesses(id)[0];
  const Access& to = step.accesses(id)[1];
  const bool is_from_device = step.buffers()[from.buffer].place == Place::device;
  const bool is_to_device = step.buffers()[to.buffer].place == Place::device;
  Other other;
  other.kind = is_from_device ? (is_to_device ? Other::Kind::on_device : Other::Kind::to_host)
                              : (is_to_device ? Other::Kind::to_device : Other::Kind::any);
  other.from = std::bit_cast<GpuPointer>(buffers.address(from.buffer) + from.offset_bytes);
  other.to = std::bit_cast<GpuPointer>(buffers.address(to.buffer) + to.offset_bytes);
  other.bytes = from.size_bytes;
  return other;
}

GpuCommands::Other GpuCommands::gemm_of(const Step& step, CommandId id, const GpuBuffers& buffers,
                                        GpuBlasHandle handle, GpuStream stream) {
  const KernelShape& shape = step.commands()[id].shape;
  const auto pointer = [&](std::size_t i) {
    const Access& access = step.accesses(id)[i];
    return std::bit_cast<GpuPointer>(buffers.address(access.buffer) + access.offset_bytes);
  };
  Other other;
  other.kind = Other::Kind::gemm;
  other.handle = handle;
  other.gemm = {.type = shape.type,
                .precision = shape.precision,
                .transposes_a = transposes_a(shape),
                .transposes_b = transposes_b(shape),
                .m = dimension(shape.dims[0]),
                .n = dimension(shape.dims[1]),
                .k = dimension(shape.dims[2]),
                .batch = dimension(gemm_batch(shape)),
                .alpha = shape.scalars[0],
                .beta = shape.scalars[1],
                .a = pointer(0),
                .b = pointer(1),
                .c = pointer(2)};
  if (rounds_to_fp8(shape)) {
    other.kind = Other::Kind::fp8;
    other.fp8_product = fp8_.add(other.gemm, stream);
  }
  return other;
}

// The kernels that are built ahead, one after the other, all but the first in place.
GpuCommands::Other GpuCommands::sequence_of(const Step& step, CommandId id, const GpuBuffers& buffers) {
  const auto accesses = step.accesses(id);
  const auto address = [&](std::size_t i) -> void* {
    return buffers.address(accesses[i].buffer) + accesses[i].offset_bytes;
  };
  Other other;
  other.kind = Other::Kind::sequence;
  other.first_kernel = sequences_.size();
  void* from = address(0);
  for (const RegionPart& part : unfused(step.commands()[id].shape)) {
    const Kernel& entry = kernel(kernel_named(part.kernel));
    const Geometry geometry = entry.geometry(part.shape);
    LaunchRecord& record = sequences_.emplace_back();
    record.function = context_.function(fmt::format("weir_{}_{}", part.kernel, name_of(part.shape.type)));
    record.grid = geometry.grid;
    record.block = geometry.block;
    record.arguments = arguments_of<KernelArguments>(part.shape);
    std::size_t next = 0;
    record.arguments.operands[next++] = from;
    if (part.added != 0) record.arguments.operands[next++] = address(static_cast<std::size_t>(part.added));
    record.arguments.operands[next] = from = address(accesses.size() - 1);
    ++other.kernel_count;
  }
  return other;
}

GpuCommands::Other GpuCommands::collective_of(const Step& step, CommandId id, const GpuBuffers& buffers,
                                              const StreamComms& comms, StreamId stream) const {
  const Command& command = step.commands()[id];
  const Access& from = step.accesses(id)[0];
  const Access& to = step.accesses(id)[1];
  Other other;
  other.kind = Other::Kind::collective;
  other.comm = comms.comm(stream, command.group);
  const Ranks own = command.group.within(comms.ranks());
  // The size per rank: that of the smaller side, divided by the ranks if both sides cover all ranks.
  std::uint64_t bytes = std::min(from.size_bytes, to.size_bytes);
  if (command.collective == CollectiveOp::all_to_all) bytes /= static_cast<std::uint64_t>(own.count);
  other.collective = {.op = command.collective,
                      .type = command.shape.type,
                      .ranks = own,
                      .from = buffers.address(from.buffer) + from.offset_bytes,
                      .to = buffers.address(to.buffer) + to.offset_bytes,
                      .count = bytes / size_of(command.shape.type)};
  return other;
}

GpuCommands::Other GpuCommands::host_of(const Step& step, CommandId id, const GpuBuffers& buffers,
                                        HostThreads* threads) {
  const Command& command = step.commands()[id];
  HostCall call;
  call.body = [](GpuHostCall& called) {
    auto& host_call = static_cast<HostCall&>(called);
    host_call.host.run(*host_call.threads);
  };
  call.threads = threads;
  call.host = HostBody(kernel(command.kernel), command.shape);
  const auto accesses = step.accesses(id);
  for (std::size_t i = 0; i < accesses.size(); ++i)
    call.host.call.operands[i] = buffers.address(accesses[i].buffer) + accesses[i].offset_bytes;
  Other other;
  other.kind = Other::Kind::host;
  other.host_call = host_calls_.size();
  host_calls_.push_back(std::move(call));
  return other;
}

int GpuCommands::launch_other(const LaunchRecord& record) const noexcept {
  const GpuApi& api = context_.api();
  const Other& other = others_[record.other];
  switch (other.kind) {
    case Other::Kind::gemm: {
      const int result = blas_->gemm(other.handle, other.gemm);
      return result == 0 ? 0 : result + kBlasOffset;
    }
    case Other::Kind::fp8:
      return fp8_.launch(other.fp8_product, record.stream);
    case Other::Kind::recorded: {
      int result = 0;
      for (std::size_t i = 0; i < other.kernel_count && result == 0; ++i)
        result = api.launch_recorded(recorded_[other.first_kernel + i], record.stream);
      return result;
    }
    case Other::Kind::sequence: {
      int result = 0;
      for (std::size_t i = other.first_kernel; i < other.first_kernel + other.kernel_count && result == 0; ++i) {
        const LaunchRecord& each = sequences_[i];
        void* parameters[] = {const_cast<KernelArguments*>(&each.arguments)};
        result = api.launch(each.function, each.grid, 1, 1, each.block, 1, 1, 0, record.stream, parameters, nullptr);
      }
      return result;
    }
    case Other::Kind::to_device:
      return api.copy_to_device(other.to, std::bit_cast<const void*>(other.from), other.bytes, record.stream);
    case Other::Kind::to_host:
      return api.copy_to_host(std::bit_cast<void*>(other.to), other.from, other.bytes, record.stream);
    case Other::Kind::on_device:
      return api.copy_on_device(other.to, other.from, other.bytes, record.stream);
    case Other::Kind::any:
      return api.copy_any(other.to, other.from, other.bytes, record.stream);
    case Other::Kind::collective: {
      const int result = launch_collective(*collectives_, other.comm, other.collective, record.stream);
      return result == 0 ? 0 : result + kCollectiveOffset;
    }
    case Other::Kind::staged:
      return staged_->launch(other.command, record.stream);
    case Other::Kind::host:
      return api.launch_host(record.stream, const_cast<HostCall*>(&host_calls_[other.host_call]));
  }
  return 0;
}

std::optional<std::uint32_t> GpuCommands::activity_count(CommandId id) const noexcept {
  if (records_[id].function != nullptr) return 1;
  const Other& other = others_[records_[id].other];
  switch (other.kind) {
    case Other::Kind::collective:
      // A single rank copies (NCCL 2.28); with several ranks the library decides.
      return other.collective.ranks.count == 1 ? std::optional(1u) : std::nullopt;
    case Other::Kind::fp8:
      return std::nullopt;
    case Other::Kind::gemm:
      if (other.kernel_count == 0) return std::nullopt;
      [[fallthrough]];
    case Other::Kind::recorded:
    case Other::Kind::sequence:
      return static_cast<std::uint32_t>(other.kernel_count);
    case Other::Kind::host:
      return 0;
    case Other::Kind::staged:
      return 2;  // copy out and copy in
    default:
      return 1;
  }
}

bool GpuCommands::is_copy(CommandId id) const noexcept {
  if (records_[id].function != nullptr) return false;
  const Other& other = others_[records_[id].other];
  switch (other.kind) {
    case Other::Kind::collective:
      return other.collective.ranks.count == 1;
    case Other::Kind::to_device:
    case Other::Kind::to_host:
    case Other::Kind::on_device:
    case Other::Kind::any:
    case Other::Kind::staged:
      return true;
    default:
      return false;
  }
}

std::optional<Footprint> GpuCommands::footprint(CommandId id) const noexcept {
  const GpuApi& api = context_.api();
  if (api.occupancy == nullptr) return std::nullopt;
  const auto of = [&](GpuFunction function, std::uint64_t grid, std::uint64_t threads,
                      unsigned shared_bytes) -> std::optional<Footprint> {
    int blocks = 0;
    if (api.occupancy(&blocks, function, static_cast<int>(threads), shared_bytes) != 0 || blocks <= 0)
      return std::nullopt;
    return Footprint{static_cast<std::uint32_t>(grid), static_cast<std::uint32_t>(blocks)};
  };
  const LaunchRecord& record = records_[id];
  if (record.function != nullptr) return of(record.function, record.grid, record.block, 0);
  const Other& other = others_[record.other];
  if (other.kind != Other::Kind::recorded) return std::nullopt;
  std::optional<Footprint> largest;
  const auto count_of = [](const std::array<unsigned, 3>& size) { return std::uint64_t{size[0]} * size[1] * size[2]; };
  for (std::size_t i = other.first_kernel; i < other.first_kernel + other.kernel_count; ++i) {
    const GpuRecordedKernel& kernel = recorded_[i];
    const auto found = of(kernel.function, count_of(kernel.grid), count_of(kernel.block), kernel.shared_bytes);
    if (!found) return std::nullopt;
    if (!largest || found->blocks > largest->blocks) largest = found;
  }
  return largest;
}

void GpuCommands::note_host_runs(std::size_t kept) {
  for (HostCall& call : host_calls_) call.host.keep_runs(kept);
}

const HostBody* GpuCommands::host_body(CommandId id) const noexcept {
  if (records_[id].function != nullptr) return nullptr;
  const Other& other = others_[records_[id].other];
  return other.kind == Other::Kind::host ? &host_calls_[other.host_call].host : nullptr;
}

void GpuCommands::warm_up() const {
  // A handle's first call is slow for any shape, and a shape's first call loads code: one call of each is enough.
  std::set<GpuBlasHandle> warm_handles;
  std::set<std::tuple<ElementType, Precision, bool, bool, int, int, int, int>> warm_shapes;
  std::set<GpuStream> used;
  std::vector<const LaunchRecord*> products;
  for (const LaunchRecord& record : records_)
    if (record.function == nullptr && others_[record.other].kind == Other::Kind::gemm) products.push_back(&record);
  // Small ones go first, so that a handle's first call is a cheap one.
  const auto size = [&](const LaunchRecord* record) {
    const GpuGemm& gemm = others_[record->other].gemm;
    return static_cast<double>(gemm.m) * gemm.n * gemm.k * gemm.batch;
  };
  std::sort(products.begin(), products.end(), [&](const auto* a, const auto* b) { return size(a) < size(b); });
  for (const LaunchRecord* record : products) {
    const Other& other = others_[record->other];
    const GpuGemm& gemm = other.gemm;
    const bool is_new_shape = warm_shapes
                                  .emplace(gemm.type, gemm.precision, gemm.transposes_a, gemm.transposes_b, gemm.m,
                                           gemm.n, gemm.k, gemm.batch)
                                  .second;
    if (!warm_handles.insert(other.handle).second && !is_new_shape) continue;
    if (const int result = launch_other(*record); result != 0) fail("warming gemm up failed: " + describe(result));
    used.insert(record->stream);
  }
  for (const LaunchRecord& record : records_) {
    if (record.function != nullptr || others_[record.other].kind != Other::Kind::fp8) continue;
    if (const int result = launch_other(record); result != 0) fail("warming gemm up failed: " + describe(result));
    used.insert(record.stream);
  }
  for (GpuStream stream : used) check(context_.api(), context_.api().stream_synchronize(stream), "warming gemm up");
}

void GpuCommands::record_products() {
  const GpuApi& api = context_.api();
  if (api.graph_kernels == nullptr || api.launch_recorded == nullptr || api.capture_begin == nullptr) return;
  for (const LaunchRecord& record : records_) {
    if (record.function != nullptr || others_[record.other].kind != Other::Kind::gemm) continue;
    Other& other = others_[record.other];
    if (api.capture_begin(record.stream, kGpuCaptureRelaxed) != 0) return;
    const int launched = blas_->gemm(other.handle, other.gemm);
    GpuGraph captured = nullptr;
    const int ended = api.capture_end(record.stream, &captured);
    GpuGraphOwner graph(captured, {&api});
    if (launched != 0 || ended != 0) continue;
    std::vector<GpuRecordedKernel> kernels;
    if (api.graph_kernels(captured, &kernels) != 0) {
      // Left to the library; at least the number of its profiler records is known.
      if (api.graph_size == nullptr || api.graph_size(captured, &other.kernel_count) != 0) other.kernel_count = 0;
      continue;
    }
    other.kind = Other::Kind::recorded;
    other.first_kernel = recorded_.size();
    other.kernel_count = kernels.size();
    recorded_.insert(recorded_.end(), kernels.begin(), kernels.end());
    recordings_.push_back(std::move(graph));
  }
}

std::string GpuCommands::describe(int result) const {
  if (result > Fp8Products::kOffset) return fp8_.describe(result - Fp8Products::kOffset);
  if (result > kCollectiveOffset) return collectives_->describe(result - kCollectiveOffset);
  return result > kBlasOffset ? blas_->describe(result - kBlasOffset) : context_.api().describe(result);
}

}  // namespace weir
