#include "measure/folded_stacks.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/plain_text.h"
#include "base/text_gate.h"

namespace weir {
namespace {

constexpr std::size_t kLongestLine = 64 * 1024;  // template names are long, but never this long
constexpr std::string_view kBlank = " \t";

bool is_digits(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

// 9848 or 9848/9850
bool is_thread_number(std::string_view text) {
  const std::size_t slash = text.find('/');
  if (slash == std::string_view::npos) return is_digits(text);
  return is_digits(text.substr(0, slash)) && is_digits(text.substr(slash + 1));
}

// 47993.736070:
bool is_moment(std::string_view text) {
  if (!text.ends_with(':')) return false;
  text.remove_suffix(1);
  const std::size_t dot = text.find('.');
  return dot != std::string_view::npos && is_digits(text.substr(0, dot)) && is_digits(text.substr(dot + 1));
}

std::string frame_name(std::string_view text) { return for_frame(whole_characters(text, FoldedStacks::kLongestName)); }

// "weir  9848 " or "weir worker 3  9848/9850 [001] 47993.736070:    1003009 cpu-clock:pppH: ": the name may contain
// blanks and numbers; the thread's number is the last one, or the one before the CPU and the time.
bool read_head(std::string_view text, std::string& thread) {
  std::size_t best = std::string_view::npos;
  std::size_t from = 0;
  while (from < text.size()) {
    const std::size_t begin = text.find_first_not_of(kBlank, from);
    if (begin == std::string_view::npos) break;
    const std::size_t end = std::min(text.find_first_of(kBlank, begin), text.size());
    const std::string_view word = text.substr(begin, end - begin);
    if (begin > 0 && is_moment(word)) break;
    if (begin > 0 && is_thread_number(word)) best = begin;
    from = end;
  }
  if (best == std::string_view::npos) return false;
  const std::string_view name = trimmed(text.substr(0, best));
  // ":19647": perf does not know the thread's name, and its number differs in every run.
  const bool has_name = !name.empty() && !(name[0] == ':' && is_digits(name.substr(1)));
  thread = has_name ? frame_name(name) : "[thread]";
  return true;
}

// "	           36e14 __sin+0x84 (/usr/lib/libm.so.6)", "	  7f00 f(int, char) (/tmp/a (deleted))",
// "	ffffffff81000000 [unknown] ([kernel.kallsyms])"
bool read_frame(std::string_view text, std::string& name) {
  text = trimmed(text);
  const std::size_t blank = text.find_first_of(kBlank);
  if (blank == std::string_view::npos) return false;
  const std::string_view address = text.substr(0, blank);
  if (!std::all_of(address.begin(), address.end(),
                   [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F'); }))
    return false;
  text = trimmed(text.substr(blank));
  std::string_view object;
  if (text.ends_with(')')) {
    std::string_view searched = text;
    constexpr std::string_view kDeleted = " (deleted))";
    if (searched.ends_with(kDeleted)) searched.remove_suffix(kDeleted.size());
    const std::size_t open = searched.rfind('(');
    if (open != std::string_view::npos && (open == 0 || searched[open - 1] == ' ')) {
      object = searched.substr(open + 1);
      if (object.ends_with(')')) object.remove_suffix(1);
      text = trimmed(text.substr(0, open));
    }
  }
  const std::size_t offset = text.rfind("+0x");
  if (offset != std::string_view::npos && offset > 0 &&
      text.find_first_not_of("0123456789abcdef", offset + 3) == std::string_view::npos)
    text = text.substr(0, offset);
  if (text.empty() || text == "[unknown]") {
    // Without a name, only its location is known.
    if (const std::size_t slash = object.rfind('/'); slash != std::string_view::npos) object.remove_prefix(slash + 1);
    if (object.starts_with('[')) object.remove_prefix(1);
    if (object.ends_with(']')) object.remove_suffix(1);
    name = object.empty() ? "[unknown]" : fmt::format("[{}]", frame_name(object));
    return true;
  }
  name = frame_name(text);
  return true;
}

}  // namespace

void FoldedStacks::add(std::string_view text) {
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    const std::string_view part = text.substr(0, end);
    if (rest_.size() + part.size() > kLongestLine) is_cut_ = true;
    if (!is_cut_) rest_.append(part);
    if (end == std::string_view::npos) return;
    text.remove_prefix(end + 1);
    line(rest_);
    rest_.clear();
    is_cut_ = false;
  }
}

void FoldedStacks::end() {
  if (!rest_.empty()) line(rest_);
  rest_.clear();
  fold();
}

void FoldedStacks::line(std::string_view text) {
  if (is_cut_) {
    ++unknown_lines_;
    return;
  }
  if (text.ends_with('\r')) text.remove_suffix(1);
  if (trimmed(text).empty()) return fold();
  const bool is_frame = kBlank.find(text.front()) != std::string_view::npos;
  if (!is_frame || !is_in_sample_) {
    fold();
    // Thread names may begin with blanks, because perf pads them.
    if (read_head(is_frame ? trimmed(text) : text, thread_))
      is_in_sample_ = true;
    else
      ++unknown_lines_;
    return;
  }
  std::string name;
  if (!read_frame(text, name)) {
    ++unknown_lines_;
  } else if (frames_.size() < kDeepest) {
    frames_.push_back(std::move(name));
  } else {
    ++outer_left_out_;
  }
}

void FoldedStacks::fold() {
  if (!is_in_sample_) return;
  is_in_sample_ = false;
  ++samples_;
  std::string frames = thread_;
  if (outer_left_out_ > 0) frames += ";[deeper]";
  if (frames_.empty()) frames += ";[no stack]";
  for (auto frame = frames_.rbegin(); frame != frames_.rend(); ++frame) frames += ";" + *frame;
  frames_.clear();
  outer_left_out_ = 0;
  const auto found = counts_.find(frames);
  if (found != counts_.end()) {
    ++found->second;
  } else if (bytes_ + frames.size() > kMaxBytes) {
    ++left_out_;
  } else {
    bytes_ += frames.size();
    counts_.emplace(std::move(frames), 1);
  }
}

std::vector<FoldedStack> FoldedStacks::stacks() const {
  std::vector<FoldedStack> stacks;
  stacks.reserve(counts_.size());
  for (const auto& [frames, count] : counts_) stacks.push_back({frames, count});
  return stacks;
}

std::string folded_text(const std::vector<FoldedStack>& stacks) {
  std::string text;
  for (const FoldedStack& stack : stacks) text += fmt::format("{} {}\n", stack.frames, stack.count);
  return text;
}

}  // namespace weir
