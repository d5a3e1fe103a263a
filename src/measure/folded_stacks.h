// Counts the stacks of a sampling profiler: the output of `perf script` becomes "thread;outer;inner count" lines. Knows
// that text; starts no program.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace weir {

struct FoldedStack {
  std::string frames;  // "thread;outer;inner"
  std::uint64_t count = 0;
};

// Bounded: deeper frames, longer names and further stacks are omitted and counted.
class FoldedStacks {
 public:
  static constexpr std::size_t kDeepest = 256;        // frames per stack; the innermost are kept
  static constexpr std::size_t kLongestName = 300;    // bytes per frame
  static constexpr std::size_t kMaxBytes = 16 << 20;  // of all stacks

  // Takes any part of the text; lines may be split anywhere.
  void add(std::string_view text);
  // The end of the text: the rest is the last line and the last sample.
  void end();

  std::uint64_t samples() const noexcept { return samples_; }
  std::uint64_t left_out() const noexcept { return left_out_; }            // samples that did not fit
  std::uint64_t unknown_lines() const noexcept { return unknown_lines_; }  // lines that were neither head nor frame
  std::vector<FoldedStack> stacks() const;                                 // sorted by name

 private:
  void line(std::string_view text);
  void fold();

  std::string rest_;
  std::string thread_;
  std::vector<std::string> frames_;  // innermost first, perf's order
  bool is_in_sample_ = false;
  bool is_cut_ = false;  // the line in rest_ is too long
  std::size_t outer_left_out_ = 0;
  std::map<std::string, std::uint64_t> counts_;
  std::size_t bytes_ = 0;
  std::uint64_t samples_ = 0, left_out_ = 0, unknown_lines_ = 0;
};

// One line each.
std::string folded_text(const std::vector<FoldedStack>& stacks);

}  // namespace weir
