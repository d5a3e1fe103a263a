#include "cli/old_spellings.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <optional>

#include "base/options.h"

namespace weir::cli {
namespace {

constexpr OldSpelling kOldSpellings[] = {
    {"", "run-priority", "run"},
    {"", "overlap compare", "compare"},
    {"", "amd compare", "compare --queues"},
    {"", "analyze --compare", "compare"},
    {"run", "--output-dir", "--output"},
    {"compare", "--baseline", "BASELINE"},
    {"compare", "--test", "TEST..."},
    {"watch", "--workload", "WORKLOAD"},
    // Documents and forms for people.
    {"", "--report json", "--json"},
    {"", "--report", "--format"},
    {"compare", "--format json", "--json"},
    {"conformance", "--json PATH", "--output PATH"},
    {"report", "--json PATH", "--output PATH"},
    {"analyze", "--format weir_capture|nsys|rpd|rocprof_json|kineto|rocprof_csv|cupti_text", "--input-format"},
    {"profile", "--format", "--trace-format"},
    // Counts, and flags that only show.
    {"bench", "--output-dir", "--output"},
    {"bench", "--iters", "--iterations"},
    {"bench", "--rounds", "--processes"},
    {"bench", "--backends", "--device"},
    {"bench", "--compare-to", "--baseline"},
    {"preempt", "--requests", "--iterations"},
    {"preempt", "--blocks", "--waves"},
    {"queues fairness", "--repetitions", "--iterations"},
    {"queues switch", "--repetitions", "--iterations"},
    {"queues sweep", "--repeats", "--processes"},
    {"overlap", "--keys", "--list"},
    // Times, sizes and percentages have a unit.
    {"queues convoy", "--large-us N", "--large-time Nus"},
    {"queues convoy", "--small-us N", "--small-time Nus"},
    {"queues switch", "--kernel-us N", "--kernel-time Nus"},
    {"", "--budget N", "--budget Ns"},
    {"", "--hang-timeout N", "--hang-timeout Ns"},
    {"", "--time-limit N", "--time-limit Ns"},
    {"channel", "--limit N", "--limit Ns"},
    {"try", "--timeout N", "--timeout Ns"},
    {"watch", "--interval N", "--interval Ns"},
    {"amd capture", "--interval N", "--interval Ns"},
    {"amd capture", "--log-size N", "--log-size NM"},
    {"amd capture", "--buffer N", "--buffer NM"},
    {"profile", "--capture-limit N", "--capture-limit NM"},
    {"analyze", "--memory N", "--memory NG"},
    {"", "--threshold F", "--threshold P%"},
    {"bench", "--latency-threshold F", "--latency-threshold P%"},
    {"", "--until F", "--until P%"},
    {"try", "--rate F", "--rate P%"},
    {"queues map", "--confidence F", "--confidence P%"},
};

std::vector<std::string> split(std::string_view text, char at) {
  std::vector<std::string> parts;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(at, begin), text.size());
    parts.emplace_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

bool is_flag(std::string_view word) { return word.size() > 1 && word[0] == '-'; }

bool has_file(const std::string& path) {
  std::error_code ignored;
  return std::filesystem::exists(path, ignored);
}

class Rewriting {
 public:
  Rewriting(const CommandFacts& root, std::vector<std::string> words)
      : command_(&root),
        words_(std::move(words)),
        end_(static_cast<std::size_t>(std::find(words_.begin(), words_.end(), "--") - words_.begin())) {}

  NewSpelling result() {
    rename_command();
    while (at_ < end_) {
      const CommandFacts* const below = command_->find(words_[at_]);
      if (below == nullptr) break;
      command_ = below;
      found_.words.push_back(words_[at_++]);
    }
    first_argument_ = found_.words.size();
    while (at_ < end_) take();
    found_.words.insert(found_.words.end(), words_.begin() + static_cast<std::ptrdiff_t>(at_), words_.end());
    return std::move(found_);
  }

 private:
  void advise(const std::string& was, const std::string& is) {
    std::string line = fmt::format("{} is now {}", was, is);
    if (std::find(found_.advice.begin(), found_.advice.end(), line) == found_.advice.end())
      found_.advice.push_back(std::move(line));
  }

  void rename_command() {
    for (const OldSpelling& row : kOldSpellings) {
      if (row.was.starts_with('-')) continue;
      std::vector<std::string> was = split(row.was, ' ');
      std::string flag;
      if (was.back().starts_with('-')) {
        flag = was.back();
        was.pop_back();
      }
      if (was.size() > end_ || !std::equal(was.begin(), was.end(), words_.begin())) continue;
      if (!flag.empty()) {
        const auto end = words_.begin() + static_cast<std::ptrdiff_t>(end_);
        const auto found = std::find(words_.begin(), end, flag);
        if (found == end) continue;
        words_.erase(found);
        --end_;
      }
      const std::vector<std::string> is = split(row.is, ' ');
      words_.erase(words_.begin(), words_.begin() + static_cast<std::ptrdiff_t>(was.size()));
      words_.insert(words_.begin(), is.begin(), is.end());
      end_ = end_ - was.size() + is.size();
      advise(fmt::format("weir {}", row.was), fmt::format("weir {}", row.is));
      return;
    }
  }

  bool is_for(const OldSpelling& row) const {
    return row.command.empty() || command_->path == row.command ||
           command_->path.starts_with(std::string(row.command) + " ");
  }

  const FlagFacts* flag_named(std::string_view name) const {
    const auto found = std::find_if(command_->flags.begin(), command_->flags.end(),
                                    [&](const FlagFacts& flag) { return flag.is_named(name); });
    return found == command_->flags.end() ? nullptr : &*found;
  }

  // The value in its new spelling; none where the row is not for this value.
  std::optional<std::string> respelled(std::string_view pattern, std::string_view is,
                                       const std::optional<std::string>& value) const {
    if (!value) return std::nullopt;
    if (pattern == "N" || pattern == "F") {
      const auto number = parse_number(*value);
      // 5 is 5 % to one reader and 500 % to the next: the flag itself rejects it.
      if (!number || (pattern == "F" && *number >= 1)) return std::nullopt;
      return pattern == "N" ? *value + std::string(is.substr(1)) : fmt::format("{:g}%", *number * 100);
    }
    if (pattern == "PATH") {
      const bool is_input = !command_->arguments.empty() && has_file(*value);
      return is_flag(*value) || is_input ? std::nullopt : value;
    }
    const std::vector<std::string> choices = split(pattern, '|');
    return std::find(choices.begin(), choices.end(), *value) != choices.end() ? value : std::nullopt;
  }

  void take() {
    const std::string word = words_[at_++];
    if (!is_flag(word)) {
      found_.words.push_back(word);
      return;
    }
    const std::size_t sign = word.find('=');
    std::string name = word.substr(0, sign);
    std::optional<std::string> value;
    if (sign != std::string::npos) {
      value = word.substr(sign + 1);
    } else if (at_ < end_) {
      value = words_[at_];
    }
    for (const OldSpelling& row : kOldSpellings) {
      const std::size_t blank = std::min(row.was.find(' '), row.was.size());
      if (!row.was.starts_with('-') || row.was.substr(0, blank) != name || !is_for(row)) continue;
      if (blank == row.was.size()) {
        if (!row.is.starts_with('-')) return take_argument(name, row.is, value, sign != std::string::npos);
        advise(name, std::string(row.is));
        name = row.is;
        break;
      }
      const std::size_t gap = std::min(row.is.find(' '), row.is.size());
      const std::string_view form = row.is.substr(std::min(gap + 1, row.is.size()));
      const auto changed = respelled(row.was.substr(blank + 1), form, value);
      if (!changed) continue;
      const std::string before = fmt::format("{} {}", name, *value);
      name = row.is.substr(0, gap);
      const FlagFacts* const flag = flag_named(name);
      const bool takes_value = flag != nullptr && !flag->value.empty();
      advise(before, takes_value ? fmt::format("{} {}", name, *changed) : name);
      found_.words.push_back(name);
      if (takes_value) found_.words.push_back(*changed);
      if (sign == std::string::npos) ++at_;
      return;
    }
    found_.words.push_back(sign == std::string::npos ? name : name + word.substr(sign));
    const FlagFacts* const flag = flag_named(name);
    // A value is not looked at, whatever it looks like.
    if (flag != nullptr && !flag->value.empty() && sign == std::string::npos && at_ < end_)
      found_.words.push_back(words_[at_++]);
  }

  void take_argument(const std::string& name, std::string_view is, const std::optional<std::string>& value,
                     bool is_attached) {
    advise(name, fmt::format("the argument {} of weir {}", is, command_->path));
    if (!value) return;
    if (!is_attached) ++at_;
    const auto end = found_.words.end();
    found_.words.insert(is.ends_with("...") ? end : found_.words.begin() + static_cast<std::ptrdiff_t>(first_argument_),
                        *value);
  }

  const CommandFacts* command_;
  std::vector<std::string> words_;
  std::size_t end_;  // of the words that are weir's
  std::size_t at_ = 0, first_argument_ = 0;
  NewSpelling found_;
};

}  // namespace

std::span<const OldSpelling> old_spellings() { return kOldSpellings; }

NewSpelling in_new_spelling(const CommandFacts& root, std::vector<std::string> words) {
  return Rewriting(root, std::move(words)).result();
}

}  // namespace weir::cli
