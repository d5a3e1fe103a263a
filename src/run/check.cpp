#include "run/check.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "base/huge_pages.h"
#include "base/named_values.h"
#include "base/relax.h"
#include "base/spare_threads.h"
#include "device/rank/communicator.h"
#include "kernel/difference.h"
#include "run/check_order.h"

namespace weir {
namespace {

// Above this, recomputing costs more than verifying, if the kernel can verify (gemm of 400^3).
constexpr double kVerifyFlop = 128e6;

using Bytes = std::vector<std::byte, HugePageAllocator<std::byte>>;

// Contents of settled buffers and of inputs, kept in host memory from their first use to their last.
class Contents {
 public:
  Contents(const Step& step, Session& session) : step_(step), session_(session), entries_(step.buffers().size()) {}

  void expect(BufferId b) { ++entries_[b].uses; }
  std::shared_ptr<const Bytes> take(BufferId b) {
    Entry& entry = entries_[b];
    const std::lock_guard lock(entry.mutex);
    if (!entry.bytes) entry.bytes = load(b);
    std::shared_ptr<const Bytes> bytes = entry.bytes;
    if (--entry.uses == 0) entry.bytes.reset();
    return bytes;
  }
  std::shared_ptr<const Bytes> load(BufferId b) {
    const Buffer& buffer = step_.buffers()[b];
    auto bytes = std::make_shared<Bytes>(buffer.size_bytes());
    if (!buffer.is_written) {
      initialise(buffer, *bytes);
      return bytes;
    }
    const std::lock_guard lock(session_mutex_);  // only one thread at a time may read a session
    session_.read(b, *bytes);
    return bytes;
  }

 private:
  struct Entry {
    std::mutex mutex;
    std::size_t uses = 0;
    std::shared_ptr<const Bytes> bytes;
  };
  const Step& step_;
  Session& session_;
  std::vector<Entry> entries_;
  std::mutex session_mutex_;
};

// The initial contents of a part of a buffer.
Bytes initial_part(const Buffer& buffer, std::uint64_t offset_bytes, std::uint64_t size_bytes) {
  const bool is_alike = buffer.init == Init::poison || buffer.init == Init::constant;
  Buffer part = buffer;
  if (is_alike) part.count = size_bytes / size_of(buffer.type);
  Bytes bytes(part.size_bytes());
  initialise(part, bytes);
  if (is_alike || bytes.size() == size_bytes) return bytes;
  const auto begin = bytes.begin() + static_cast<std::ptrdiff_t>(offset_bytes);
  return {begin, begin + static_cast<std::ptrdiff_t>(size_bytes)};
}

class Checker {
 public:
  Checker(const Step& step, Session& session, Communicator* communicator)
      : step_(step),
        communicator_(communicator),
        is_chained_(chained_buffers(step)),
        inputs_(collective_inputs(step, is_chained_)),
        tolerance_(check_tolerances(step, is_chained_)),
        contents_(step, session) {}

  CheckReport run() {
    const std::int64_t begin = now_ns();
    const std::vector<std::vector<CommandId>> groups = check_groups(step_, is_chained_, inputs_);
    for (CommandId id = 0; id < step_.commands().size(); ++id)
      for (const Access& access : step_.accesses(id))
        if (!is_chained_[access.buffer]) contents_.expect(access.buffer);
    find_kept_copies();
    for (const Buffer& buffer : step_.buffers()) report_.buffers += buffer.is_written ? 1 : 0;
    check_collectives();

    {
      const std::size_t threads =
          std::min<std::size_t>(step_.commands().size(), std::max(1u, std::thread::hardware_concurrency()));
      const auto body = [&] { work(groups); };
      const auto helpers = start_spare_threads(std::max<std::size_t>(threads, 1) - 1, body);
      body();
    }
    if (error_) std::rethrow_exception(error_);
    if (report_.status != CheckReport::Status::failed) report_.status = CheckReport::Status::passed;
    report_.seconds = static_cast<double>(now_ns() - begin) * 1e-9;
    return report_;
  }

 private:
  // Of large products in chained buffers: recomputing all of them in order would take most of a check's time.
  void find_kept_copies() {
    for (CommandId id = 0; id < step_.commands().size(); ++id) {
      const auto accesses = step_.accesses(id);
      if (!is_verifiable(id) || accesses.back().reads || !is_chained_[accesses.back().buffer]) continue;
      std::vector<KeptCopy> copies = kept_copies(step_, is_chained_, id, accesses.size() - 1);
      for (const KeptCopy& copy : copies) contents_.expect(copy.buffer);
      if (!copies.empty()) kept_copies_[id] = std::move(copies);
    }
  }

  // An operand of a command: its bytes, and the owners that keep them alive.
  struct Place {
    std::byte* at = nullptr;
    std::shared_ptr<const Bytes> held;  // settled: the device's contents; chained: the replay's current state
    Bytes computed;                     // settled output: the reference's result
  };
  // A command with all of its inputs: any thread can judge it at any time.
  struct Judgement {
    CommandId id = 0;
    std::vector<Place> places;
    Bytes exchanged = {};  // a collective's result, if ranks exchanged inputs during the replay
  };
  static constexpr std::size_t kMaxJudgements = 64;  // waiting; each may hold a state of a chained buffer

  // The body of each thread: replays groups and judges the commands that they hand out, until nothing is left.
  void work(const std::vector<std::vector<CommandId>>& groups) {
    for (std::unique_lock lock(work_mutex_);;) {
      if (!judgements_.empty()) {
        Judgement next = std::move(judgements_.front());
        judgements_.pop_front();
        lock.unlock();
        guarded([&] { judge(next); });
        lock.lock();
      } else if (next_group_ < groups.size()) {
        const std::vector<CommandId>& group = groups[next_group_++];
        ++replaying_;
        lock.unlock();
        guarded([&] { replay(group); });
        lock.lock();
        --replaying_;
        work_changed_.notify_all();
      } else if (replaying_ == 0) {
        work_changed_.notify_all();
        return;
      } else {
        work_changed_.wait(lock);
      }
    }
  }

  template <class Work>
  void guarded(Work&& work) noexcept {
    try {
      work();
    } catch (...) {
      const std::lock_guard lock(mutex_);
      error_ = std::current_exception();
    }
  }

  void hand_out(Judgement judgement) {
    {
      const std::lock_guard lock(work_mutex_);
      if (judgements_.size() < kMaxJudgements) {
        judgements_.push_back(std::move(judgement));
        work_changed_.notify_one();
        return;
      }
    }
    judge(judgement);
  }

  // Replays a group in order and updates its chained buffers; commands that only read them are handed out.
  void replay(const std::vector<CommandId>& group) {
    struct State {
      std::shared_ptr<Bytes> bytes;
      bool is_lent = false;  // to a judgement: the next writer then continues with a copy
    };
    std::map<BufferId, State> chained;
    std::map<BufferId, CommandId> loosest;  // the command that allows a chained buffer the largest error
    for (const CommandId id : group) {
      const auto accesses = step_.accesses(id);
      Judgement judgement{id, std::vector<Place>(accesses.size())};
      const auto copies = kept_copies_.find(id);
      const bool is_kept = copies != kept_copies_.end();  // its result is verified, not computed
      bool writes_chained = false;
      for (std::size_t i = 0; i < accesses.size(); ++i) {
        const Access& access = accesses[i];
        if (!is_chained_[access.buffer]) {
          judgement.places[i].held = contents_.take(access.buffer);
          continue;
        }
        State& state = chained[access.buffer];
        if (!state.bytes) {
          state.bytes = std::make_shared<Bytes>(step_.buffers()[access.buffer].size_bytes());
          initialise(step_.buffers()[access.buffer], *state.bytes);
        }
        if (!access.writes) continue;
        writes_chained = !is_kept;
        if (state.is_lent) state = {std::make_shared<Bytes>(*state.bytes), false};
        const auto [known, is_first] = loosest.try_emplace(access.buffer, id);
        if (!is_first && tolerance_[id] > tolerance_[known->second]) known->second = id;
      }
      for (std::size_t i = 0; i < accesses.size(); ++i) {
        Place& place = judgement.places[i];
        if (is_kept && accesses[i].writes) {
          auto bytes = std::make_shared<Bytes>(accesses[i].size_bytes);
          for (const KeptCopy& copy : copies->second)
            std::memcpy(bytes->data() + copy.at_bytes, contents_.take(copy.buffer)->data() + copy.offset_bytes,
                        copy.size_bytes);
          std::copy(bytes->begin(), bytes->end(),
                    chained[accesses[i].buffer].bytes->begin() + static_cast<std::ptrdiff_t>(accesses[i].offset_bytes));
          place.at = bytes->data();
          place.held = std::move(bytes);
          continue;
        }
        if (is_chained_[accesses[i].buffer]) {
          State& state = chained[accesses[i].buffer];
          state.is_lent |= !writes_chained && group.size() > 1;
          place.held = state.bytes;
        }
        // Written to only if this is a state that no other thread reads.
        place.at = const_cast<std::byte*>(place.held->data()) + accesses[i].offset_bytes;
      }
      if (inputs_[id] == CollectiveInput::replayed)
        judgement.exchanged = exchange(id, {judgement.places[0].at, accesses[0].size_bytes});
      if (writes_chained) {
        compute(judgement);
      } else if (group.size() == 1) {
        judge(judgement);
      } else {
        hand_out(std::move(judgement));
      }
    }
    for (const auto& [buffer, expected] : chained) {
      if (!step_.buffers()[buffer].is_written) continue;
      const auto got = contents_.load(buffer);
      note(loosest.at(buffer), buffer, compare_elements(step_.buffers()[buffer].type, *got, *expected.bytes),
           tolerance_[loosest.at(buffer)]);
    }
  }

  void judge(Judgement& judgement) {
    if (!verify(judgement.id, judgement.places)) compute(judgement);
  }

  // Runs the reference; settled outputs are compared with the device's contents, chained ones update the replay.
  void compute(Judgement& judgement) {
    const Command& command = step_.commands()[judgement.id];
    const auto accesses = step_.accesses(judgement.id);
    std::vector<Place>& places = judgement.places;
    const auto is_compared = [&](std::size_t i) { return accesses[i].writes && !is_chained_[accesses[i].buffer]; };
    for (std::size_t i = 0; i < accesses.size(); ++i) {
      if (!is_compared(i)) continue;
      places[i].computed =
          initial_part(step_.buffers()[accesses[i].buffer], accesses[i].offset_bytes, accesses[i].size_bytes);
      places[i].at = places[i].computed.data();
    }
    double natural = 0;
    if (command.kind == CommandKind::copy) {
      std::memmove(places[1].at, places[0].at, accesses[0].size_bytes);
    } else if (command.kind == CommandKind::collective) {
      const Bytes& result = inputs_[judgement.id] == CollectiveInput::replayed ? judgement.exchanged
                                                                               : collective_results_.at(judgement.id);
      std::memcpy(places[1].at, result.data(), result.size());
    } else {
      const Kernel& body = kernel(command.kernel);
      const KernelCall call = call_of(command, places);
      if (body.scale != nullptr) natural = body.scale(call);
      if (!std::isfinite(natural)) natural = 0;
      body.reference(call);
    }
    for (std::size_t i = 0; i < accesses.size(); ++i)
      if (is_compared(i)) compare(judgement.id, i, *places[i].held, places[i].computed, natural);
  }

  static KernelCall call_of(const Command& command, const std::vector<Place>& places) {
    KernelCall call{command.shape, {}};
    for (std::size_t i = 0; i < places.size(); ++i) call.operands[i] = places[i].at;
    return call;
  }

  bool is_verifiable(CommandId id) const {
    const Command& command = step_.commands()[id];
    if (command.kind != CommandKind::kernel) return false;
    const Kernel& body = kernel(command.kernel);
    return body.verify != nullptr && body.cost(command.shape).flop > kVerifyFlop;
  }

  // Checks the device's result without recomputing it, if that is cheaper and the kernel supports it.
  bool verify(CommandId id, const std::vector<Place>& places) {
    if (!is_verifiable(id)) return false;
    const Command& command = step_.commands()[id];
    const Verification verified = kernel(command.kernel).verify(call_of(command, places));
    note(id, step_.accesses(id).back().buffer, {verified.error, verified.element, 0, 0},
         std::max(verified.tolerance, tolerance_[id]), true);
    return true;
  }

  void compare(CommandId id, std::size_t operand, const Bytes& device, const Bytes& computed, double natural = 0) {
    const Access& access = step_.accesses(id)[operand];
    const std::span got(device.data() + access.offset_bytes, access.size_bytes);
    Difference difference = compare_elements(step_.buffers()[access.buffer].type, got, computed, natural);
    difference.element += access.offset_bytes / size_of(step_.buffers()[access.buffer].type);
    note(id, access.buffer, difference, tolerance_[id]);
  }

  // In the order of the step on all ranks: each needs the others' data.
  void check_collectives() {
    for (CommandId id = 0; id < step_.commands().size(); ++id) {
      const Command& command = step_.commands()[id];
      if (command.kind != CommandKind::collective) continue;
      if (communicator_ == nullptr) fail("a step with collectives cannot be checked without the other ranks");
      if (inputs_[id] == CollectiveInput::replayed) continue;
      const Access& from = step_.accesses(id)[0];
      const Access& to = step_.accesses(id)[1];
      const bool is_replayed = is_chained_[to.buffer];
      Bytes expected = exchange(id, input_of(from, inputs_[id], is_replayed));
      if (is_replayed) {
        collective_results_[id] = std::move(expected);
        continue;
      }
      compare(id, 1, *contents_.take(to.buffer), expected);
    }
  }

  // The input of a collective; valid until the next call.
  std::span<const std::byte> input_of(const Access& from, CollectiveInput source, bool is_replayed) {
    if (!is_chained_[from.buffer]) {
      if (is_replayed) contents_.expect(from.buffer);  // the replay will take it again
      input_ = {contents_.take(from.buffer), from.buffer, source};
    } else if (input_.bytes == nullptr || input_.buffer != from.buffer || input_.source != source) {
      // Consecutive pieces of one buffer share it.
      const Buffer& buffer = step_.buffers()[from.buffer];
      input_ = {source == CollectiveInput::device
                    ? contents_.load(from.buffer)
                    : std::make_shared<const Bytes>(initial_part(buffer, 0, buffer.size_bytes())),
                from.buffer, source};
    }
    return std::span(*input_.bytes).subspan(from.offset_bytes, from.size_bytes);
  }

  // The expected result of a collective on this rank, given its own input: all ranks call this for the same one.
  Bytes exchange(CommandId id, std::span<const std::byte> own) {
    const Access& to = step_.accesses(id)[1];
    const Command& command = step_.commands()[id];
    return collective_reference(command, gathered(command.group, own), own.size(), to.size_bytes,
                                command.group.within(step_.ranks()));
  }

  Bytes gathered(const RankGroup& group, std::span<const std::byte> own) {
    Bytes all(own.size() * static_cast<std::size_t>(group.within(step_.ranks()).count));
    // As integer words, because only the bits matter.
    const ElementType type = own.size() % 4 == 0 ? ElementType::i32 : ElementType::f16;
    const Communicator::Request request = communicator_->start(0, {CollectiveOp::all_gather, group}, type, own.data(),
                                                               all.data(), own.size() / size_of(type));
    while (!communicator_->test(request)) yield_core();
    return all;
  }

  static Bytes collective_reference(const Command& command, const Bytes& all, std::uint64_t in_bytes,
                                    std::uint64_t out_bytes, Ranks ranks) {
    const auto rank = static_cast<std::size_t>(ranks.rank), count = static_cast<std::size_t>(ranks.count);
    Bytes out(out_bytes);
    const auto part = [&](std::size_t of, std::size_t offset) { return all.data() + of * in_bytes + offset; };
    switch (command.collective) {
      case CollectiveOp::all_gather:
        return all;
      case CollectiveOp::all_to_all:
        for (std::size_t s = 0; s < count; ++s)
          std::memcpy(out.data() + s * (out_bytes / count), part(s, rank * (in_bytes / count)), out_bytes / count);
        return out;
      case CollectiveOp::shift:
        std::memcpy(out.data(), part((rank + count - 1) % count, 0), out_bytes);
        return out;
      case CollectiveOp::reduce_scatter:
      case CollectiveOp::all_reduce:
        break;
    }
    const std::size_t offset = command.collective == CollectiveOp::reduce_scatter ? rank * out_bytes : 0;
    if (command.shape.type == ElementType::i32) {
      for (std::size_t i = 0; i < out_bytes / 4; ++i) {
        std::uint32_t sum = 0;
        for (std::size_t s = 0; s < count; ++s) sum += reinterpret_cast<const std::uint32_t*>(part(s, offset))[i];
        reinterpret_cast<std::uint32_t*>(out.data())[i] = sum;
      }
      return out;
    }
    with_float_type(command.shape.type, [&]<class T>(T*) {
      for (std::size_t i = 0; i < out_bytes / sizeof(T); ++i) {
        double sum = 0;
        for (std::size_t s = 0; s < count; ++s) sum += to_float(reinterpret_cast<const T*>(part(s, offset))[i]);
        reinterpret_cast<T*>(out.data())[i] = from_float<T>(static_cast<float>(sum));
      }
    });
    return out;
  }

  std::string describe(CommandId id) const {
    const Command& command = step_.commands()[id];
    if (command.kind == CommandKind::copy) return "copy";
    const bool is_collective = command.kind == CommandKind::collective;
    return std::string(is_collective ? name_of(command.collective) : kernel(command.kernel).name);
  }

  void note(CommandId id, BufferId b, const Difference& difference, double tolerance, bool is_verified = false) {
    const std::lock_guard lock(mutex_);
    ++report_.outputs;
    report_.worst_error = std::max(report_.worst_error, difference.error);
    const double share = tolerance > 0 ? difference.error / tolerance : (difference.error > 0 ? HUGE_VAL : 0);
    report_.worst_share = std::max(report_.worst_share, share);
    // The earliest wrong command is the most informative: later ones may have inherited the error.
    if (share <= 1 || (report_.status == CheckReport::Status::failed && id >= first_wrong_)) return;
    report_.status = CheckReport::Status::failed;
    first_wrong_ = id;
    const std::string what = is_verified ? fmt::format("near element {}", difference.element)
                                         : fmt::format("element {} is {:.9g}, expected {:.9g}", difference.element,
                                                       difference.got, difference.expected);
    report_.reason =
        fmt::format("command {} ({}), buffer {} is wrong: {} (relative error {:.3g}, at most {:.3g} allowed)", id,
                    describe(id), b, what, difference.error, tolerance);
  }

  const Step& step_;
  Communicator* const communicator_;
  const std::vector<bool> is_chained_;
  const std::vector<CollectiveInput> inputs_;  // by command; only for collectives
  const std::vector<double> tolerance_;        // by command
  Contents contents_;
  std::map<CommandId, std::vector<KeptCopy>> kept_copies_;  // of commands whose chained output is verified
  struct Input {
    std::shared_ptr<const Bytes> bytes;
    BufferId buffer = 0;
    CollectiveInput source = CollectiveInput::device;
  };
  Input input_;                                    // of the current collective
  std::map<CommandId, Bytes> collective_results_;  // of collectives in the replay; complete before it starts
  std::mutex work_mutex_;                          // protects the next four
  std::condition_variable work_changed_;
  std::deque<Judgement> judgements_;
  std::size_t next_group_ = 0;
  int replaying_ = 0;
  std::mutex mutex_;  // protects the rest
  std::exception_ptr error_;
  CheckReport report_;
  CommandId first_wrong_ = 0;
};

}  // namespace

Json CheckReport::to_json() const {
  Json json = Json::object();
  constexpr const char* kNames[] = {"passed", "failed", "skipped"};
  json["status"] = kNames[static_cast<int>(status)];
  json.update(WEIR_NAMED(text_or_null(reason), buffers, outputs));
  json["worst_relative_error"] = status == Status::skipped ? Json(nullptr) : number_or_null(worst_error);
  json["worst_share_of_tolerance"] = status == Status::skipped ? Json(nullptr) : number_or_null(worst_share);
  json["duration_ns"] = seconds * 1e9;
  return json;
}

CheckReport check_outputs(const Step& step, Session& session, Communicator* communicator) {
  for (const Command& command : step.commands()) {
    const bool is_kernel = command.kind == CommandKind::kernel || command.kind == CommandKind::host;
    if (is_kernel && kernel(command.kernel).reference == nullptr)
      fail(fmt::format("'{}' measures and computes nothing that could be checked", kernel(command.kernel).name),
           "Use --no-check.");
  }
  return Checker(step, session, communicator).run();
}

CheckReport check_run(const Step& step, Session& session, Submitter& submitter, Communicator* communicator,
                      SessionWatch& watch) {
  if (!step.is_repeatable()) {
    session.reset();
    const SessionWatch::Inside inside(&watch);
    session.begin_iteration();
    submitter.submit_step();
    session.finish();
  }
  return check_outputs(step, session, communicator);
}

}  // namespace weir
