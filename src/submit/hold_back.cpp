#include "submit/hold_back.h"

namespace weir {

std::vector<std::vector<CommandId>> submit_predecessors(const Step& step, const Placement& placement) {
  constexpr CommandId kNoCommand = UINT32_MAX;
  const std::size_t count = step.commands().size();
  const auto streams = static_cast<std::size_t>(placement.stream_count);
  std::vector<std::vector<CommandId>> before(count);
  std::vector<std::uint32_t> position(count);              // on its stream
  std::vector<std::uint32_t> length(streams, 0);           // of each stream so far
  std::vector<CommandId> last(streams, kNoCommand);        // on each stream so far
  std::vector<std::uint32_t> known(streams * streams, 0);  // [a][b]: how many of b's commands a has waited for
  CommandId last_collective = kNoCommand;
  for (CommandId id = 0; id < count; ++id) {
    const std::size_t own = placement.stream_of[id];
    if (last[own] != kNoCommand) before[id].push_back(last[own]);
    const auto wait_for = [&](CommandId other) {
      const std::size_t theirs = placement.stream_of[other];
      std::uint32_t& waited = known[own * streams + theirs];
      if (theirs == own || waited > position[other]) return;
      waited = position[other] + 1;
      before[id].push_back(other);
    };
    // Later ones first: they may imply the others.
    const auto edges = step.predecessors(id);
    for (std::size_t i = edges.size(); i-- > 0;) wait_for(edges[i]);
    if (step.ranks().count > 1 && step.commands()[id].kind == CommandKind::collective) {
      if (last_collective != kNoCommand) wait_for(last_collective);
      last_collective = id;
    }
    last[own] = id;
    position[id] = length[own]++;
  }
  return before;
}

HoldBack::HoldBack(const Step& step, const Placement& placement, int submitters)
    : nodes_(step.commands().size()), parts_(static_cast<std::size_t>(submitters)) {
  const auto before = submit_predecessors(step, placement);
  std::vector<std::vector<CommandId>> own(nodes_.size()), others(nodes_.size());
  std::vector<std::size_t> counts(parts_.size(), 0);
  for (CommandId id = 0; id < nodes_.size(); ++id) {
    Node& node = nodes_[id];
    node.part = static_cast<std::uint32_t>(placement.stream_of[id] % parts_.size());
    node.pending = node.initial = static_cast<std::uint32_t>(before[id].size()) + 1;
    node.next = Part::kNone;
    ++counts[node.part];
    for (const CommandId other : before[id]) (nodes_[other].part == node.part ? own : others)[other].push_back(id);
  }
  for (CommandId id = 0; id < nodes_.size(); ++id) {
    nodes_[id].first = static_cast<std::uint32_t>(successors_.size());
    nodes_[id].own = static_cast<std::uint32_t>(own[id].size());
    nodes_[id].others = static_cast<std::uint32_t>(others[id].size());
    successors_.insert(successors_.end(), own[id].begin(), own[id].end());
    successors_.insert(successors_.end(), others[id].begin(), others[id].end());
  }
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    parts_[i].all_ = this;
    parts_[i].order_.resize(counts[i]);
  }
}

bool HoldBack::drop(CommandId id) noexcept {
  Node& node = nodes_[id];
  if (parts_.size() == 1) return --node.pending == 0;
  // Pairs with itself: the thread that drops the last reason sees everything that was submitted before the others were
  // dropped.
  return std::atomic_ref(node.pending).fetch_sub(1, std::memory_order_acq_rel) == 1;
}

void HoldBack::release(CommandId id) noexcept {
  if (!drop(id)) return;
  Part& part = parts_[nodes_[id].part];
  std::uint32_t head = part.released_.load(std::memory_order_relaxed);
  do {
    nodes_[id].next = head;
    // Pairs with the acquire in take_released(). The whole stack is taken at once, so there is no ABA problem.
  } while (!part.released_.compare_exchange_weak(head, id, std::memory_order_release, std::memory_order_relaxed));
}

void HoldBack::Part::take_released() noexcept {
  if (released_.load(std::memory_order_relaxed) == kNone) return;
  // Pairs with the release in HoldBack::release().
  std::uint32_t id = released_.exchange(kNone, std::memory_order_acquire);
  while (id != kNone) {
    const std::uint32_t next = all_->nodes_[id].next;
    add(id);
    id = next;
  }
}

void HoldBack::Part::add(CommandId id) noexcept {
  std::size_t scanned = ready_;
  order_[ready_++] = id;
  // Successors in the same part follow in the same batch, so they can be released at once.
  while (scanned != ready_) {
    Node& node = all_->nodes_[order_[scanned++]];
    // Resets it for the next iteration. Nobody drops a reason before that begins, and it begins when all parts are
    // done.
    std::atomic_ref(node.pending).store(node.initial, std::memory_order_relaxed);
    for (std::uint32_t i = 0; i < node.own; ++i) {
      const CommandId next = all_->successors_[node.first + i];
      if (all_->drop(next)) order_[ready_++] = next;
    }
  }
}

std::span<const CommandId> HoldBack::Part::next() noexcept {
  std::size_t end = ready_;
  if (all_->parts_.size() > 1)
    for (end = submitted_; end < ready_; ++end)
      if (all_->nodes_[order_[end]].others != 0) {
        ++end;
        break;
      }
  given_ = end - submitted_;
  return std::span(order_).subspan(submitted_, given_);
}

void HoldBack::Part::submitted() noexcept {
  if (given_ == 0) return;
  submitted_ += given_;
  given_ = 0;
  const Node& node = all_->nodes_[order_[submitted_ - 1]];
  for (std::uint32_t i = 0; i < node.others; ++i) all_->release(all_->successors_[node.first + node.own + i]);
}

}  // namespace weir
