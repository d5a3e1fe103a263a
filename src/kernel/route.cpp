// Groups assignments of tokens by expert: a stable counting sort. An invalid expert id is skipped (slot -1).
#include <fmt/format.h>

#include <numeric>

#include "base/error.h"
#include "kernel/body.h"

namespace weir::catalogue {
namespace {

constexpr std::int64_t kMaxExperts = 256;

// One block: where an assignment goes depends on all others.
void run_block(const KernelCall& call, std::uint32_t) {
  const auto [assignments, experts, picks, unused] = call.shape.dims;
  const auto* const ids = operand<const std::int32_t>(call, 0);
  auto* const offsets = operand<std::int32_t>(call, 1);
  auto* const slots = operand<std::int32_t>(call, 2);
  std::fill(offsets, offsets + experts + 1, 0);
  for (std::int64_t a = 0; a < assignments; ++a) {
    const bool is_valid = 0 <= ids[a] && ids[a] < experts;
    slots[a] = is_valid ? offsets[ids[a] + 1]++ : -1;
  }
  std::partial_sum(offsets, offsets + experts + 1, offsets);
  for (std::int64_t a = 0; a < assignments; ++a)
    if (slots[a] >= 0)
      operand<std::int32_t>(call, 3)[offsets[ids[a]] + slots[a]] = static_cast<std::int32_t>(a / picks);
}

void reference(const KernelCall& call) {
  const auto [assignments, experts, picks, unused] = call.shape.dims;
  const auto* const ids = operand<const std::int32_t>(call, 0);
  std::vector<std::int32_t> order;
  for (std::int32_t a = 0; a < assignments; ++a) {
    operand<std::int32_t>(call, 2)[a] = -1;
    if (0 <= ids[a] && ids[a] < experts) order.push_back(a);
  }
  std::stable_sort(order.begin(), order.end(), [ids](std::int32_t a, std::int32_t b) { return ids[a] < ids[b]; });
  for (std::int32_t e = 0; e <= experts; ++e) {
    const auto begin = std::partition_point(order.begin(), order.end(), [=](std::int32_t a) { return ids[a] < e; });
    operand<std::int32_t>(call, 1)[e] = static_cast<std::int32_t>(begin - order.begin());
  }
  for (std::size_t at = 0; at < order.size(); ++at) {
    const std::int32_t a = order[at];
    operand<std::int32_t>(call, 3)[at] = static_cast<std::int32_t>(a / picks);
    operand<std::int32_t>(call, 2)[a] = static_cast<std::int32_t>(at) - operand<std::int32_t>(call, 1)[ids[a]];
  }
}

Extents extents(const KernelShape& shape) {
  const auto [assignments, experts, picks, unused] = shape.dims;
  if (experts < 1 || experts > kMaxExperts)
    reject(fmt::format("route to {} experts", experts), fmt::format("There may be 1 to {}.", kMaxExperts));
  return {assignments, experts + 1, assignments, assignments};
}

}  // namespace

Kernel route() {
  return {.name = "route",
          .summary = "groups assignments of tokens by expert",
          .operands = [](const KernelShape&) -> std::string_view { return "rwww"; },
          .extents = extents,
          .cost =
              [](const KernelShape& shape) {
                return Cost{0, 12 * shape.dim(0) + 4 * static_cast<double>(shape.dims[1] + 1)};
              },
          .blocks = [](const KernelShape&) { return 1u; },
          .run_block = run_block,
          .reference = reference,
          .geometry = [](const KernelShape&) { return Geometry{1, 1024}; },
          .types = "iiii"};
}

}  // namespace weir::catalogue
