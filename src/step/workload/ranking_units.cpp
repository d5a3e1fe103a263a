#include "step/workload/ranking_units.h"

#include <algorithm>

namespace weir {
namespace {

constexpr auto kStateType = ElementType::f32;
// Elements that one block sums, and the maximum number of blocks: a few per multiprocessor of a large GPU.
constexpr std::int64_t kSquaresPerPart = 16384, kMaxParts = 512;

std::int64_t divide_up(std::int64_t amount, std::int64_t by) { return (amount + by - 1) / by; }

}  // namespace

RankingUnits::RankingUnits(Layers& layers, const std::vector<RoleLanes>& lanes, const Options& options,
                           const std::vector<Unit>& units)
    : layers_(layers), step_(layers.step()), lanes_(lanes), options_(options) {
  const std::int64_t ranks = step_.ranks().count;
  group_ = options_.is_sharded && options_.shard_group > 0 ? options_.shard_group : ranks;
  copies_ = ranks / group_;
  if (copies_ > 1) {
    shard_ranks_ = {1, static_cast<int>(group_)};
    copy_ranks_ = {static_cast<int>(group_), static_cast<int>(copies_)};
  }
  std::int64_t begin = 0;
  for (const Unit& given : units) {
    Sharded unit;
    unit.count = given.count;
    unit.scale = given.scale;
    cut(unit);
    // The rank's part of each piece. Padding comes after everything else and moves no element.
    const Slice slice{elements(step_.ranks().rank % group_ * unit.own), elements(unit.own), elements(unit.piece)};
    unit.master = step_.slice(kStateType, elements(unit.shard), options_.is_sharded ? slice : Slice{}, unit.scale);
    unit.parts = std::min(kMaxParts, divide_up(unit.shard, kSquaresPerPart));
    unit.first_part = parts_;
    parts_ += unit.parts;
    units_.push_back(unit);
  }
  for (std::size_t u = units_.size(); u-- > 0;) {
    units_[u].begin = begin;
    begin += units_[u].flat;
  }
  // Backward gathers again what forward released, except the last unit, whose backward follows at once, and the first,
  // whose gradients do not depend on its parameters.
  const std::int64_t rounds = has_slots() ? options_.accumulation : 1;
  for (std::int64_t round = 0; round < rounds; ++round) {
    for (std::size_t u = 0; u < units_.size(); ++u) turns_.push_back(u);
    for (std::size_t u = units_.size() - 1; has_slots() && u-- > 1;) turns_.push_back(u);
  }
}

// Cuts a unit into equal pieces of at most a bucket, each a multiple of the number of ranks that share it.
void RankingUnits::cut(Sharded& unit) const {
  if (!options_.is_sharded) {
    unit.flat = unit.piece = unit.shard = unit.own = unit.count;
    return;
  }
  const auto element = static_cast<std::int64_t>(size_of(layers_.type()));
  const std::int64_t most =
      options_.bucket_bytes == 0 ? unit.count : std::max(group_, options_.bucket_bytes / element / group_ * group_);
  unit.pieces = std::max(divide_up(unit.count, most), options_.fewest_pieces);
  unit.own = divide_up(unit.count, unit.pieces * group_);
  unit.piece = unit.own * group_;
  unit.flat = unit.piece * unit.pieces;
  unit.shard = unit.own * unit.pieces;
}

void RankingUnits::allocate() {
  const ElementType type = layers_.type();
  std::int64_t all = 0;
  float least = units_[0].scale;
  for (const Sharded& unit : units_) {
    largest_ = std::max(largest_, unit.flat);
    least = std::min(least, unit.scale);
    all += unit.flat;
  }
  // Buffers that collectives write start with numbers instead of poison, so that the computation without collectives
  // does the same work. The check compares every byte with what the collectives should have written.
  for (Sharded& unit : units_) {
    unit.low = step_.same_as(unit.master, type);
    unit.mean = step_.constant(kStateType, elements(unit.shard), 0);
    unit.square = step_.constant(kStateType, elements(unit.shard), 0);
    if (!options_.is_sharded) continue;
    if (!has_slots()) unit.gathered = step_.uniform(type, elements(unit.flat), unit.scale);
    // The padding of a unit has no gradient.
    if (!shares_gradients()) unit.gradient = step_.constant(type, elements(unit.flat), 0);
    unit.reduced = step_.constant(type, elements(unit.shard), 0);
    if (copies_ > 1) unit.summed = step_.constant(type, elements(unit.shard), 0);
  }
  const auto count = [](std::int64_t wanted, std::size_t useful) { return std::min(elements(wanted), useful); };
  if (has_slots())
    for (std::size_t i = 0; i < count(options_.prefetch + 1, turns_.size()); ++i)
      slots_.push_back(step_.uniform(type, elements(largest_), least));
  if (shares_gradients())
    for (std::size_t i = 0; i < count(options_.gradient_slots, units_.size()); ++i)
      gradient_slots_.push_back(step_.output(type, elements(largest_)));
  if (!options_.is_sharded) {
    all_gradients_ = step_.output(type, elements(all));
    all_reduced_ = step_.constant(type, elements(all), 0);
  }
  squares_ = options_.clip > 0 ? step_.output(kStateType, elements(parts_)) : step_.constant(kStateType, 1, 0);
  state_ = step_.constant(kStateType, 3, 0);  // steps done, factor, rate
}

void RankingUnits::gather(std::size_t turn) {
  const Sharded& unit = units_[turns_[turn]];
  const Operand to = gathered(turn);
  for (std::int64_t f = 0; f < unit.pieces; ++f)
    step_.collective(CollectiveOp::all_gather, next(kAllGather), {unit.low, elements(f * unit.own), elements(unit.own)},
                     {to.buffer, to.offset + elements(f * unit.piece), elements(unit.piece)}, shard_ranks_);
}

Operand RankingUnits::gathered(std::size_t turn) const {
  const Sharded& unit = units_[turns_[turn]];
  if (!has_slots()) return {unit.gathered};
  // At the end of the slot, where a larger unit has the parameters that it uses last: nothing of the next unit arrives
  // before those were read. Aligned for any type.
  const std::int64_t offset = (largest_ - unit.flat) / 128 * 128;
  return {slots_[turn % slots_.size()], elements(offset), elements(unit.flat)};
}

void RankingUnits::gather_through(std::size_t turn) {
  for (; gathers_ <= turn && gathers_ < turns_.size(); ++gathers_) gather(gathers_);
}

Operand RankingUnits::use(std::size_t index) {
  if (!options_.is_sharded) return {units_[index].low};
  const std::size_t turn = has_slots() ? turn_++ : index;
  gather_through(turn + static_cast<std::size_t>(options_.prefetch));
  return gathered(turn);
}

BufferId RankingUnits::gradient_buffer(std::size_t unit) const {
  return shares_gradients() ? gradient_slots_[(units_.size() - 1 - unit) % gradient_slots_.size()]
                            : units_[unit].gradient;
}

Operand RankingUnits::gradient(std::size_t index, std::int64_t micro_batch) {
  const Sharded& unit = units_[index];
  if (!options_.is_sharded) return {all_gradients_, elements(unit.begin), elements(unit.count)};
  const BufferId buffer = gradient_buffer(index);
  // The slot held another unit's gradient before.
  if (const std::int64_t padding = unit.flat - unit.count; shares_gradients() && padding > 0 && micro_batch == 0)
    step_.launch("fill", lanes_[kCompute][0], {.type = layers_.type(), .dims = {padding}},
                 {{buffer, elements(unit.count), elements(padding)}});
  return {buffer, 0, elements(unit.count)};
}

void RankingUnits::reduce(std::size_t index) {
  const Sharded& unit = units_[index];
  if (!options_.is_sharded) {
    all_reduce_until(unit.begin + unit.flat);
    return;
  }
  for (std::int64_t f = 0; f < unit.pieces; ++f) {
    const Lane lane = next(kReduceScatter);
    const Operand own{unit.reduced, elements(f * unit.own), elements(unit.own)};
    step_.collective(CollectiveOp::reduce_scatter, lane,
                     {gradient_buffer(index), elements(f * unit.piece), elements(unit.piece)}, own, shard_ranks_);
    // Each copy has the gradients of its own ranks' samples.
    if (copies_ > 1)
      step_.collective(CollectiveOp::all_reduce, lane, own, {unit.summed, own.offset, own.count}, copy_ranks_);
  }
  sum_squares(index);
}

// Reduces complete buckets of the elements below `complete`; at the end, all remaining elements.
void RankingUnits::all_reduce_until(std::int64_t complete) {
  const std::int64_t all = units_[0].begin + units_[0].flat;
  const auto element = static_cast<std::int64_t>(size_of(layers_.type()));
  const auto pieces = static_cast<std::int64_t>(units_.size()) * options_.fewest_pieces;
  const std::int64_t wanted = options_.bucket_bytes == 0 ? (complete - reduced_until_) / options_.fewest_pieces
                                                         : std::min(options_.bucket_bytes / element,
                                                                    options_.fewest_pieces > 1 ? all / pieces : all);
  const std::int64_t bucket = std::max<std::int64_t>(1, wanted);
  while (reduced_until_ < complete) {
    const std::int64_t count = std::min(bucket, all - reduced_until_);
    if (reduced_until_ + count > complete) break;
    const std::uint64_t offset = elements(reduced_until_);
    step_.collective(CollectiveOp::all_reduce, next(kReduceScatter), {all_gradients_, offset, elements(count)},
                     {all_reduced_, offset, elements(count)});
    reduced_until_ += count;
  }
  for (; squared_ < units_.size(); ++squared_) {
    const std::size_t unit = units_.size() - 1 - squared_;
    if (units_[unit].begin + units_[unit].flat > reduced_until_) break;
    sum_squares(unit);
  }
}

Operand RankingUnits::reduced(const Sharded& unit) const {
  if (!options_.is_sharded) return {all_reduced_, elements(unit.begin), elements(unit.flat)};
  return {copies_ > 1 ? unit.summed : unit.reduced};
}

void RankingUnits::sum_squares(std::size_t index) {
  const Sharded& unit = units_[index];
  if (options_.clip > 0)
    step_.launch("square_sum", next(kAux), {.type = layers_.type(), .dims = {unit.shard, unit.parts}},
                 {reduced(unit), {squares_, elements(unit.first_part), elements(unit.parts)}});
}

void RankingUnits::step() {
  BufferId squares = squares_;
  if (options_.clip > 0 && options_.is_sharded) {
    squares = step_.constant(kStateType, elements(parts_), 0);
    step_.collective(CollectiveOp::all_reduce, next(kAux), {squares_}, {squares}, shard_ranks_);
  }
  step_.launch(
      "clip", next(kAux),
      {.type = kStateType,
       .dims = {options_.clip > 0 ? parts_ : 1, options_.schedule, options_.warmup_steps, options_.total_steps},
       .scalars = {options_.clip, options_.rate, options_.least_rate}},
      {{squares}, {state_}});
  for (const Sharded& unit : units_)
    for (std::int64_t f = 0; f < options_.fewest_pieces; ++f) {
      const Part part = part_of(unit.shard, options_.fewest_pieces, f);
      const auto piece = [&](Operand whole) {
        return Operand{whole.buffer, whole.offset + elements(part.begin), elements(part.count)};
      };
      step_.launch("adamw", next(kAux),
                   {.type = layers_.type(),
                    .dims = {part.count},
                    .scalars = {options_.beta1, options_.beta2, options_.epsilon, options_.decay}},
                   {piece(reduced(unit)),
                    piece({unit.master}),
                    piece({unit.mean}),
                    piece({unit.square}),
                    {state_},
                    piece({unit.low})});
    }
}

}  // namespace weir
