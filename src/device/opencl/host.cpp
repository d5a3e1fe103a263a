#include "device/opencl/host.h"

#if WEIR_HAVE_OPENCL
#include <fmt/format.h>

#include <cstring>
#include <system_error>

#include "base/error.h"

namespace weir {
namespace {

void copy_bytes(const KernelCall& call, std::uint32_t) {
  std::memmove(call.operands[1], call.operands[0], static_cast<std::size_t>(call.shape.dims[0]));
}

}  // namespace

bool OpenclHostCalls::does(const Step& step, const OpenclBuffers& buffers, CommandId id) {
  const CommandKind kind = step.commands()[id].kind;
  if (kind != CommandKind::copy) return kind == CommandKind::host;
  const BufferId from = step.accesses(id)[0].buffer, to = step.accesses(id)[1].buffer;
  return buffers.host(from) != nullptr && buffers.host(to) != nullptr && buffers.memory(from) == nullptr;
}

OpenclHostCalls::OpenclHostCalls(const OpenclContext& context, const Step& step, const OpenclBuffers& buffers,
                                 std::size_t max_in_flight)
    : api_(context.api()),
      context_(context.get()),
      threads_(HostThreads::default_count()),
      call_of_(step.commands().size(), 0) {
  for (CommandId id = 0; id < step.commands().size(); ++id) {
    const Command& command = step.commands()[id];
    if (!does(step, buffers, id)) continue;
    call_of_[id] = static_cast<std::uint32_t>(calls_.size());
    Call& call = calls_.emplace_back();
    const auto accesses = step.accesses(id);
    if (command.kind == CommandKind::copy) {
      call.host.run_block = copy_bytes;
      call.host.call.shape.dims[0] = static_cast<std::int64_t>(accesses[0].size_bytes);
    } else {
      call.host = HostBody(kernel(command.kernel), command.shape);
    }
    for (std::size_t i = 0; i < accesses.size(); ++i)
      call.host.call.operands[i] = buffers.host(accesses[i].buffer) + accesses[i].offset_bytes;
  }
  for (Call& call : calls_) {
    call.slots = std::vector<Slot>(max_in_flight);
    for (Slot& slot : call.slots) slot.owner = this, slot.call = &call;
  }
  reached_.resize(calls_.size() * max_in_flight);
  try {
    thread_ = std::jthread([this] { work(); });
  } catch (const std::system_error& error) {
    fail(fmt::format("cannot start a thread for host functions: {}", error.what()),
         "Raise the limits on processes and address space (ulimit -u, ulimit -v).");
  }
}

OpenclHostCalls::~OpenclHostCalls() {
  {
    const std::lock_guard lock(mutex_);
    is_stopping_ = true;
  }
  changed_.notify_all();
}

int OpenclHostCalls::launch(CommandId id, cl_command_queue queue, bool is_in_order, cl_uint wait_count,
                            const cl_event* waits, cl_event* begin, cl_event* end) noexcept {
  Call& call = calls_[call_of_[id]];
  Slot& slot = call.slots[call.launched++ % call.slots.size()];
  cl_int result = CL_SUCCESS;
  cl_event gate = api_.create_user_event(context_, &result);
  if (result != CL_SUCCESS) return result;
  // A marker with a wait list waits for that list; drivers disagree whether it also waits for earlier commands of the
  // queue. So on an in-order queue, a barrier takes the list, and the marker waits for everything.
  if (is_in_order && wait_count > 0) {
    result = api_.enqueue_barrier(queue, wait_count, waits, nullptr);
    wait_count = 0;
  }
  cl_event marker = nullptr;
  if (result == CL_SUCCESS) result = api_.enqueue_marker(queue, wait_count, wait_count == 0 ? nullptr : waits, &marker);
  if (result != CL_SUCCESS) {
    api_.release_event(gate);
    return result;
  }
  slot.gate.store(gate, std::memory_order_release);  // pairs with the exchange in open()
  api_.retain_event(gate);                           // open() releases one
  result = api_.set_event_callback(marker, CL_COMPLETE, on_reached, &slot);
  if (result != CL_SUCCESS) open(slot, result);
  const cl_int barrier_result = is_in_order ? api_.enqueue_barrier(queue, 1, &gate, end) : CL_SUCCESS;
  if (!is_in_order && end != nullptr) {
    *end = gate;
  } else {
    api_.release_event(gate);
  }
  if (begin != nullptr) {
    *begin = marker;
  } else {
    api_.release_event(marker);
  }
  return result != CL_SUCCESS ? result : barrier_result;
}

void CL_CALLBACK OpenclHostCalls::on_reached(cl_event, cl_int status, void* data) {
  Slot& slot = *static_cast<Slot*>(data);
  OpenclHostCalls& self = *slot.owner;
  slot.status = status;
  {
    const std::lock_guard lock(self.mutex_);
    self.reached_[(self.first_ + self.count_++) % self.reached_.size()] = &slot;
    // Under the lock: a thread that sees the last function end may destroy this object.
    self.changed_.notify_one();
  }
}

void OpenclHostCalls::open(Slot& slot, cl_int status) noexcept {
  const cl_event gate = slot.gate.exchange(nullptr, std::memory_order_acq_rel);  // pairs with launch(), and with itself
  if (gate == nullptr) return;
  api_.set_user_event(gate, status);
  api_.release_event(gate);
}

void OpenclHostCalls::work() noexcept {
  for (;;) {
    Slot* slot = nullptr;
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return is_stopping_ || count_ > 0; });
      if (count_ == 0) return;
      slot = reached_[first_];
      first_ = (first_ + 1) % reached_.size();
      --count_;
    }
    if (slot->status == CL_COMPLETE) slot->call->host.run(threads_);
    open(*slot, slot->status);
  }
}

void OpenclHostCalls::abandon() noexcept {
  for (Call& call : calls_)
    for (Slot& slot : call.slots) open(slot, CL_OUT_OF_RESOURCES);
}

void OpenclHostCalls::note_runs(std::size_t kept) {
  for (Call& call : calls_) call.host.keep_runs(kept);
}

}  // namespace weir
#endif
