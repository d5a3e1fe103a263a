#include "report/page/span_names.h"

#include <algorithm>

#include "base/named_values.h"
#include "base/plain_text.h"

namespace weir::page {
namespace {

constexpr std::size_t kLongestName = 400;
// A hostile trace may give every command a different name.
constexpr std::size_t kMaxNames = 65'536, kMaxBytes = 8U << 20;

}  // namespace

const char* to_string(DrawnKind kind) noexcept {
  constexpr const char* kNames[kDrawnKinds] = {"kernel", "collective", "copy", "memset", "host", "step", "operator"};
  return kNames[static_cast<std::size_t>(kind)];
}

SpanNames::SpanNames(const Timeline& timeline)
    : timeline_(timeline),
      uses_((timeline.names.size() + 1) * kDrawnKinds, 0),
      numbers_((timeline.names.size() + 1) * kDrawnKinds, 0) {}

std::uint32_t SpanNames::add(std::string text, DrawnKind kind) {
  if (text.size() > kLongestName) text = std::string(whole_characters(text, kLongestName)) + "...";
  bytes_ += text.size();
  table_.push_back(WEIR_NAMED(std::move(text), to_string(kind)));
  return static_cast<std::uint32_t>(table_.size() - 1);
}

void SpanNames::number() {
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < uses_.size(); ++i)
    if (uses_[i] > 0) order.push_back(i);
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return uses_[a] > uses_[b]; });
  // Names without room are replaced by their kind.
  std::vector<std::uint32_t> rest(kDrawnKinds, UINT32_MAX);
  for (const std::size_t slot : order) {
    const std::size_t name = slot / kDrawnKinds;
    const auto kind = static_cast<DrawnKind>(slot % kDrawnKinds);
    const bool has_room = table_.size() < kMaxNames && bytes_ < kMaxBytes;
    if (has_room && name < timeline_.names.size()) {
      numbers_[slot] = add(timeline_.names[name], kind);
      continue;
    }
    std::uint32_t& shared = rest[static_cast<std::size_t>(kind)];
    if (shared == UINT32_MAX) shared = add(std::string("unnamed ") + to_string(kind), kind);
    numbers_[slot] = shared;
    if (name < timeline_.names.size()) ++left_out_;
  }
}

}  // namespace weir::page
