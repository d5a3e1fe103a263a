#include "run/analyze_exchange.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <numeric>
#include <string_view>
#include <utility>

#include "base/error.h"

namespace weir {
namespace {

// A number and a length, then as many bytes.
void put_text(std::string& to, std::uint64_t number, const std::string& text) {
  const std::uint64_t head[2] = {number, text.size()};
  to.append(reinterpret_cast<const char*>(head), sizeof(head));
  to += text;
}

// Takes one off; false at the end.
bool take_text(std::string_view& from, std::uint64_t& number, std::string_view& text) {
  if (from.empty()) return false;
  std::uint64_t head[2] = {};
  if (from.size() < sizeof(head)) fail("a message between ranks is cut off");
  std::memcpy(head, from.data(), sizeof(head));
  from.remove_prefix(sizeof(head));
  if (head[1] > from.size()) fail("a message between ranks is cut off");
  number = head[0];
  text = from.substr(0, head[1]);
  from.remove_prefix(head[1]);
  return true;
}

}  // namespace

TraceExchange::TraceExchange(Communicator& ranks, std::vector<std::size_t> numbers, std::size_t total)
    : ranks_(ranks), numbers_(std::move(numbers)), total_(total) {}

std::vector<std::string> TraceExchange::gather(const std::vector<std::string>& own) {
  std::string message;
  for (std::size_t i = 0; i < own.size(); ++i) put_text(message, numbers_[i], own[i]);
  const std::vector<std::string> messages = ranks_.gather(message);
  if (!is_first()) return {};
  std::vector<std::string> all(total_);
  std::vector<bool> is_known(total_, false);
  held_.assign(messages.size(), {});
  for (std::size_t rank = 0; rank < messages.size(); ++rank) {
    std::string_view left = messages[rank], text;
    for (std::uint64_t number = 0; take_text(left, number, text);) {
      if (number >= total_ || is_known[number])
        fail(fmt::format("rank {} sent trace {} of {}, which it does not hold alone", rank, number, total_));
      is_known[number] = true;
      all[number] = text;
      held_[rank].push_back(number);
    }
  }
  for (std::size_t number = 0; number < total_; ++number)
    if (!is_known[number]) fail(fmt::format("no rank holds trace {} of {}", number, total_));
  return all;
}

std::vector<std::string> TraceExchange::scatter(const std::vector<std::string>& all) {
  std::vector<std::string> messages;
  for (const std::vector<std::size_t>& numbers : held_) {
    std::string& message = messages.emplace_back();
    for (const std::size_t number : numbers) put_text(message, number, all[number]);
  }
  const std::string message = ranks_.scatter(messages);
  std::vector<std::string> own;
  std::string_view left = message, text;
  for (std::uint64_t number = 0; take_text(left, number, text);) {
    if (own.size() >= numbers_.size() || numbers_[own.size()] != number)
      fail(fmt::format("this rank was sent trace {}, which it does not hold", number));
    own.emplace_back(text);
  }
  if (own.size() != numbers_.size()) fail("this rank was not sent an answer for each of its traces");
  return own;
}

// The largest first, each to the rank that has least so far.
std::vector<std::size_t> captures_of_rank(std::span<const std::uint64_t> sizes, const Ranks& ranks) {
  std::vector<std::size_t> order(sizes.size()), own;
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return sizes[a] > sizes[b]; });
  std::vector<std::uint64_t> loads(static_cast<std::size_t>(ranks.count), 0);
  for (const std::size_t capture : order) {
    const auto least = std::min_element(loads.begin(), loads.end());
    *least += sizes[capture] + 1;  // an empty one is work too
    if (least - loads.begin() == ranks.rank) own.push_back(capture);
  }
  std::sort(own.begin(), own.end());
  return own;
}

}  // namespace weir
