#include "run/check.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <map>
#include <mutex>
#include <numeric>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/error.h"

namespace weir {
namespace {

// From here on recomputing costs more than verifying, where the kernel can verify (gemm of 400^3).
constexpr double kVerifyFlop = 128e6;

using Bytes = std::vector<std::byte>;

// Commands that share no buffer with the rest: they can be checked apart, one after the other or at once, so that
// memory is needed for one such group per thread and not for the whole step.
struct Group {
  std::vector<CommandId> commands;
  std::vector<BufferId> buffers;
  double flop = 0;
};

std::vector<Group> groups_of(const Step& step) {
  std::vector<BufferId> parent(step.buffers().size());
  std::iota(parent.begin(), parent.end(), BufferId{0});
  const auto root = [&](BufferId b) {
    while (parent[b] != b) b = parent[b] = parent[parent[b]];
    return b;
  };
  const auto count = static_cast<CommandId>(step.commands().size());
  for (CommandId id = 0; id < count; ++id)
    for (const Access& access : step.accesses(id)) parent[root(access.buffer)] = root(step.accesses(id)[0].buffer);

  std::map<BufferId, Group> groups;
  for (CommandId id = 0; id < count; ++id) {
    Group& group = groups[root(step.accesses(id)[0].buffer)];
    group.commands.push_back(id);
    if (step.commands()[id].kind == CommandKind::kernel)
      group.flop += kernel(step.commands()[id].kernel).cost(step.commands()[id].shape).flop;
  }
  for (BufferId b = 0; b < parent.size(); ++b)
    if (const auto group = groups.find(root(b)); group != groups.end()) group->second.buffers.push_back(b);
  std::vector<Group> list;
  for (auto& [id, group] : groups) list.push_back(std::move(group));
  return list;
}

// Errors add up along the data: a command's result is as uncertain as its own arithmetic plus its worst input.
std::vector<double> tolerances(const Step& step) {
  std::vector<double> of_command(step.commands().size(), 0.0);
  std::vector<double> of_buffer(step.buffers().size(), 0.0);
  for (CommandId id = 0; id < of_command.size(); ++id) {
    const Command& command = step.commands()[id];
    double inherited = 0;
    for (const CommandId before : step.predecessors(id)) {
      for (const Access& read : step.accesses(id)) {
        for (const Access& write : step.accesses(before)) {
          const bool flows = read.reads && write.writes && read.buffer == write.buffer &&
                             read.offset_bytes < write.offset_bytes + write.size_bytes &&
                             write.offset_bytes < read.offset_bytes + read.size_bytes;
          if (flows) inherited = std::max(inherited, of_command[before]);
        }
      }
    }
    of_command[id] = inherited;
    if (command.kind == CommandKind::kernel) of_command[id] += kernel(command.kernel).tolerance(command.shape);
    for (const Access& access : step.accesses(id))
      if (access.writes) of_buffer[access.buffer] = std::max(of_buffer[access.buffer], of_command[id]);
  }
  return of_buffer;
}

struct Difference {
  double error = 0;  // relative to the larger of |reference| and the buffer's root mean square
  std::uint64_t element = 0;
  double got = 0, expected = 0;
};

Difference compare_elements(const Buffer& buffer, const Bytes& got, const Bytes& expected) {
  Difference worst;
  if (buffer.type == ElementType::i32) {
    const auto* a = reinterpret_cast<const std::int32_t*>(got.data());
    const auto* b = reinterpret_cast<const std::int32_t*>(expected.data());
    for (std::uint64_t i = 0; i < buffer.count; ++i)
      if (a[i] != b[i]) return {HUGE_VAL, i, static_cast<double>(a[i]), static_cast<double>(b[i])};
    return worst;
  }
  with_float_type(buffer.type, [&]<class T>(T*) {
    const T* a = reinterpret_cast<const T*>(got.data());
    const T* b = reinterpret_cast<const T*>(expected.data());
    double squares = 0;
    std::uint64_t finite = 0;
    for (std::uint64_t i = 0; i < buffer.count; ++i) {
      const double value = to_float(b[i]);
      if (!std::isfinite(value)) continue;
      squares += value * value;
      ++finite;
    }
    const double scale = finite == 0 ? 0 : std::sqrt(squares / static_cast<double>(finite));
    for (std::uint64_t i = 0; i < buffer.count; ++i) {
      const double x = to_float(a[i]);
      const double y = to_float(b[i]);
      // Parts that nobody writes keep their poison on both sides.
      if (std::isnan(y) ? std::isnan(x) : x == y) continue;
      const double size = std::max(std::fabs(y), scale);
      double error = size > 0 ? std::fabs(x - y) / size : HUGE_VAL;
      if (std::isnan(error)) error = HUGE_VAL;
      if (error > worst.error) worst = {error, i, x, y};
    }
  });
  return worst;
}

class Checker {
 public:
  Checker(const Step& step, Session& session) : step_(step), session_(session), tolerance_(tolerances(step)) {}

  CheckReport run() {
    const std::int64_t begin = now_ns();
    std::vector<Group> groups = groups_of(step_);
    std::atomic<std::size_t> next{0};  // only hands out work: groups are complete before the threads start
    const auto work = [&] {
      for (std::size_t i = next.fetch_add(1, std::memory_order_relaxed); i < groups.size();
           i = next.fetch_add(1, std::memory_order_relaxed))
        check(groups[i]);
    };
    {
      const std::size_t threads =
          std::min<std::size_t>(groups.size(), std::max(1u, std::thread::hardware_concurrency()));
      std::vector<std::jthread> helpers;
      for (std::size_t i = 1; i < threads; ++i) helpers.emplace_back(work);
      work();
    }
    if (error_) std::rethrow_exception(error_);
    if (report_.status != CheckReport::Status::failed) report_.status = CheckReport::Status::passed;
    report_.seconds = static_cast<double>(now_ns() - begin) * 1e-9;
    return report_;
  }

 private:
  void check(const Group& group) noexcept {
    try {
      check_group(group);
    } catch (...) {
      const std::lock_guard lock(mutex_);
      error_ = std::current_exception();
    }
  }

  void check_group(const Group& group) {
    std::map<BufferId, Bytes> expected;
    for (const BufferId b : group.buffers) {
      expected[b].resize(step_.buffers()[b].size_bytes());
      initialise(step_.buffers()[b], expected[b]);
    }
    std::vector<bool> is_verified(step_.buffers().size(), false);
    for (const CommandId id : group.commands) {
      const Command& command = step_.commands()[id];
      const auto accesses = step_.accesses(id);
      if (command.kind == CommandKind::copy) {
        const std::byte* from = expected[accesses[0].buffer].data() + accesses[0].offset_bytes;
        std::copy_n(from, accesses[0].size_bytes, expected[accesses[1].buffer].data() + accesses[1].offset_bytes);
        continue;
      }
      KernelCall call{command.shape, {}};
      for (std::size_t i = 0; i < accesses.size(); ++i)
        call.operands[i] = expected[accesses[i].buffer].data() + accesses[i].offset_bytes;
      const Kernel& body = kernel(command.kernel);
      if (body.verify != nullptr && body.cost(command.shape).flop > kVerifyFlop && is_final(id)) {
        const BufferId out = accesses.back().buffer;
        expected[out] = read(out);  // from here on the device's own result: verified instead of compared
        call.operands[accesses.size() - 1] = expected[out].data() + accesses.back().offset_bytes;
        const Verification verified = body.verify(call);
        is_verified[out] = true;
        note(out, {verified.error, verified.element, 0, 0}, std::max(verified.tolerance, tolerance_[out]), true);
      } else {
        body.reference(call);
      }
    }
    for (const BufferId b : group.buffers) {
      if (!step_.buffers()[b].is_written || is_verified[b]) continue;
      note(b, compare_elements(step_.buffers()[b], read(b), expected[b]), tolerance_[b], false);
    }
  }

  // True when a command alone makes its last operand's buffer, all of it, and nobody reads it afterwards.
  bool is_final(CommandId id) const {
    const Access& out = step_.accesses(id).back();
    if (out.size_bytes != step_.buffers()[out.buffer].size_bytes()) return false;
    for (CommandId other = 0; other < step_.commands().size(); ++other)
      for (const Access& access : step_.accesses(other))
        if (other != id && access.buffer == out.buffer) return false;
    return true;
  }

  Bytes read(BufferId b) {
    Bytes bytes(step_.buffers()[b].size_bytes());
    const std::lock_guard lock(mutex_);  // a session is read by one thread at a time
    session_.read(b, bytes);
    return bytes;
  }

  void note(BufferId b, const Difference& difference, double tolerance, bool is_verified) {
    const std::lock_guard lock(mutex_);
    ++report_.buffers;
    report_.worst_error = std::max(report_.worst_error, difference.error);
    const double share = tolerance > 0 ? difference.error / tolerance : (difference.error > 0 ? HUGE_VAL : 0);
    report_.worst_share = std::max(report_.worst_share, share);
    if (share <= 1 || report_.status == CheckReport::Status::failed) return;
    report_.status = CheckReport::Status::failed;
    const std::string what = is_verified ? fmt::format("near element {}", difference.element)
                                         : fmt::format("element {} is {:.9g}, expected {:.9g}", difference.element,
                                                       difference.got, difference.expected);
    report_.reason = fmt::format("buffer {} is wrong: {} (relative error {:.3g}, at most {:.3g} allowed)", b, what,
                                 difference.error, tolerance);
  }

  const Step& step_;
  Session& session_;
  const std::vector<double> tolerance_;
  std::mutex mutex_;
  std::exception_ptr error_;
  CheckReport report_;
};

}  // namespace

Json CheckReport::to_json() const {
  Json json = Json::object();
  constexpr const char* kNames[] = {"passed", "failed", "skipped"};
  json["status"] = kNames[static_cast<int>(status)];
  json["reason"] = reason.empty() ? Json(nullptr) : Json(reason);
  json["buffers"] = buffers;
  json["worst_relative_error"] = status == Status::skipped ? Json(nullptr) : number_or_null(worst_error);
  json["worst_share_of_tolerance"] = status == Status::skipped ? Json(nullptr) : number_or_null(worst_share);
  json["seconds"] = seconds;
  return json;
}

CheckReport check_outputs(const Step& step, Session& session) { return Checker(step, session).run(); }

}  // namespace weir
