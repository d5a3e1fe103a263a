#include "lab/race/outputs.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "base/error.h"
#include "base/file.h"
#include "base/plain_text.h"
#include "base/text_gate.h"

namespace weir::race {
namespace {

constexpr std::size_t kLongestSearchedLine = 4096;  // std::regex recurses once per character
constexpr std::size_t kLongestLine = 1 << 20;       // longer ones are judged in pieces

// FNV-1a: distinguishes results, does not resist attacks.
class OutputDigest {
 public:
  void add(std::string_view text) {
    for (const char c : text) hash_ = (hash_ ^ static_cast<unsigned char>(c)) * 0x100000001b3U;
  }
  std::uint64_t value() const { return hash_; }
  std::string text() const { return fmt::format("{:016x}", hash_); }

 private:
  std::uint64_t hash_ = 0xcbf29ce484222325U;
};

bool is_word(char c) { return is_letter(c) || is_digit(c); }

// "s", "ms", "it/s", "GB/s": what follows a number that is a time or a rate.
std::size_t unit_length(std::string_view rest) {
  std::size_t begin = 0;
  while (begin < rest.size() && begin < 2 && rest[begin] == ' ') ++begin;
  std::size_t end = begin;
  while (end < rest.size() && end < begin + 16 && (is_letter(rest[end]) || rest[end] == '/')) ++end;
  if (end < rest.size() && is_digit(rest[end])) return 0;
  const std::string_view unit = rest.substr(begin, end - begin);
  if (unit.ends_with("/s") || unit.ends_with("/sec") || unit.ends_with("/second")) return end;
  for (const std::string_view time : {"ns", "us", "ms", "s", "sec", "secs", "second", "seconds", "min", "minutes", "h",
                                      "milliseconds", "microseconds"})
    if (unit == time) return end;
  return 0;
}

// "3.25e-02", "10:31:02"; the length, 0: it does not begin with a number.
std::size_t number_length(std::string_view text) {
  std::size_t end = 0;
  while (end < text.size() && (is_digit(text[end]) || text[end] == '.' || text[end] == ':')) ++end;
  while (end > 0 && (text[end - 1] == '.' || text[end - 1] == ':')) --end;
  if (end == 0 || !is_digit(text[0])) return 0;
  if (end + 2 < text.size() && (text[end] == 'e' || text[end] == 'E')) {
    std::size_t exponent = end + 1;
    if (text[exponent] == '-' || text[exponent] == '+') ++exponent;
    const std::size_t digits = exponent;
    while (exponent < text.size() && is_digit(text[exponent])) ++exponent;
    if (exponent > digits) end = exponent;
  }
  return end;
}

std::optional<double> number_in(const std::string& line, const std::regex& pattern) {
  std::optional<double> found;
  const std::string_view part = std::string_view(line).substr(0, kLongestSearchedLine);
  for (std::cregex_iterator match(part.data(), part.data() + part.size(), pattern), end; match != end; ++match) {
    double value = 0;
    const char *const first = (*match)[1].first, *const last = (*match)[1].second;
    const auto [rest, error] = std::from_chars(first, last, value);
    if (error == std::errc() && rest == last) found = value;
  }
  return found;
}

std::string shown(const std::string& line) {
  return fmt::format("'{}'", for_line(line.size() > 60 ? line.substr(0, 60) + "..." : line));
}

}  // namespace

std::regex pattern_of(const std::string& flag, const std::string& text, int groups) {
  try {
    std::regex pattern(text);
    if (groups < 0 || pattern.mark_count() == static_cast<std::size_t>(groups)) return pattern;
  } catch (const std::regex_error& error) {
    reject(fmt::format("{} '{}': not a regular expression: {}", flag, text, error.what()));
  }
  reject(fmt::format("{} '{}': needs exactly one group", flag, text),
         fmt::format("Put the number in parentheses: {} 'loss: ([-0-9.e]+)'; use (?:...) for other groups.", flag));
}

std::string without_times(std::string_view line) {
  std::string plain;
  for (std::size_t i = 0; i < line.size();) {
    const bool begins = is_digit(line[i]) && (i == 0 || !is_word(line[i - 1]));
    const std::size_t length = begins ? number_length(line.substr(i)) : 0;
    if (length == 0) {
      plain += line[i++];
      continue;
    }
    const std::string_view number = line.substr(i, length);
    const std::size_t unit = unit_length(line.substr(i + length));
    plain += unit > 0 || number.find(':') != std::string_view::npos ? "#" : number;
    plain += line.substr(i + length, unit);
    i += length + unit;
  }
  return plain;
}

void OutputReader::add(std::string_view piece) {
  while (!piece.empty()) {
    const std::size_t end = piece.find('\n');
    line_ += piece.substr(0, end);
    piece.remove_prefix(end == std::string_view::npos ? piece.size() : end + 1);
    if (end != std::string_view::npos || line_.size() >= kLongestLine) take(std::exchange(line_, {}));
  }
}

void OutputReader::take(std::string line) {
  if (!rules_->has_stdout && rules_->numbers.empty()) return;
  const std::string_view part = std::string_view(line).substr(0, kLongestSearchedLine);
  for (const std::regex& ignored : rules_->ignored)
    if (std::regex_search(part.begin(), part.end(), ignored)) return;
  for (const NumberPattern& number : rules_->numbers)
    if (const auto value = number_in(line, number.pattern)) {
      found_.numbers[number.text] = *value;
      return;
    }
  if (!rules_->has_stdout) return;
  const std::string judged = without_times(line);
  OutputDigest digest;
  if (found_.lines.size() == kMostLines) {  // the last one stands for all that follow
    digest.add(fmt::format("{}", found_.lines.back().digest));
    digest.add(judged);
    found_.lines.back() = {digest.value(), true, "the lines after that"};
    return;
  }
  digest.add(judged);
  const bool is_kept = found_.lines.size() < kKeptLines;
  found_.lines.push_back(
      {digest.value(), !judged.empty() && judged == line, is_kept ? line.substr(0, kLongestKeptLine) : std::string()});
}

void OutputReader::finish(Outputs& outputs) {
  if (!line_.empty()) take(std::exchange(line_, {}));
  outputs.lines = std::move(found_.lines);
  outputs.numbers = std::move(found_.numbers);
}

OutputFiles::State OutputFiles::state_of(const std::string& file) {
  struct stat found{};
  if (::stat(file.c_str(), &found) != 0) return {};
  return {found.st_mtim.tv_sec * 1'000'000'000LL + found.st_mtim.tv_nsec, found.st_ino,
          static_cast<std::uint64_t>(found.st_size)};
}

OutputFiles::OutputFiles(const std::vector<std::string>& files) {
  for (const std::string& file : files) before_.emplace_back(file, state_of(file));
}

void OutputFiles::finish(Outputs& outputs) const {
  std::vector<char> piece(1 << 20);
  for (const auto& [file, before] : before_) {
    std::string& value = outputs.values["file " + file];
    const State now = state_of(file);
    if (now == State{} || now == before) {
      value = "not written";
      continue;
    }
    const Descriptor in = open_regular(file);
    if (!in) {
      value = "not readable";
      continue;
    }
    OutputDigest digest;
    while (const std::size_t count = read_some(in.get(), piece.data(), piece.size(), file))
      digest.add({piece.data(), count});
    value = digest.text();
  }
}

void add_checkpoints(std::string_view digests, Outputs& outputs) {
  std::map<std::string, std::pair<OutputDigest, std::size_t>> found;
  while (!digests.empty()) {
    const std::string_view line = digests.substr(0, digests.find('\n'));
    digests.remove_prefix(std::min(line.size() + 1, digests.size()));
    const std::size_t last = line.rfind(' ');
    const std::size_t before = last == std::string_view::npos || last == 0 ? last : line.rfind(' ', last - 1);
    if (last == std::string_view::npos || before == std::string_view::npos || before == 0) continue;
    if (found.size() == 1'000 && !found.contains(std::string(line.substr(0, before)))) continue;
    auto& [digest, count] = found[std::string(line.substr(0, before))];
    digest.add(line.substr(before));
    ++count;
  }
  for (const auto& [name, value] : found)
    outputs.values["checkpoint " + name] = fmt::format("{} ({} times)", value.first.text(), value.second);
}

std::string words_for(const ProcessEnd& end) {
  return end.how == ProcessEnd::How::exited      ? fmt::format("{}", end.value)
         : end.how == ProcessEnd::How::signalled ? fmt::format("killed by signal {}", end.value)
                                                 : "did not end";
}

Reference::Reference(OutputRules rules, std::vector<Outputs> plain) : rules_(std::move(rules)) {
  if (plain.empty()) return;
  right_ = plain.front();
  for (const auto& [name, value] : plain.front().values) {
    bool is_equal = true;
    for (const Outputs& run : plain) {
      const auto found = run.values.find(name);
      is_equal = is_equal && found != run.values.end() && found->second == value;
    }
    (is_equal ? judged_ : varying_).push_back(name);
    if (!is_equal) right_.values.erase(name);
  }
  for (const Outputs& run : plain)
    for (const auto& [name, value] : run.values)
      if (!plain.front().values.contains(name) && std::find(varying_.begin(), varying_.end(), name) == varying_.end())
        varying_.push_back(name);
  for (const NumberPattern& number : rules_.numbers) {
    bool is_equal = right_.numbers.contains(number.text);
    for (const Outputs& run : plain)
      is_equal = is_equal && run.numbers.contains(number.text) &&
                 is_alike(run.numbers.at(number.text), right_.numbers.at(number.text));
    const std::string name = fmt::format("the number that '{}' finds", number.text);
    (is_equal ? judged_ : varying_).push_back(name);
    if (!is_equal) right_.numbers.erase(number.text);
  }
  if (!rules_.has_stdout) return;
  // A line is known by its number, which needs the same number of lines in all runs.
  bool is_same_count = true;
  for (const Outputs& run : plain) is_same_count = is_same_count && run.lines.size() == right_.lines.size();
  is_varying_line_.assign(right_.lines.size(), false);
  std::size_t varying = 0;
  if (is_same_count)
    for (std::size_t i = 0; i < right_.lines.size(); ++i)
      for (const Outputs& run : plain)
        if (!is_varying_line_[i] && run.lines[i].digest != right_.lines[i].digest) {
          is_varying_line_[i] = true;
          ++varying;
        }
  judges_lines_ = is_same_count && (varying < right_.lines.size() || right_.lines.empty());
  if (!is_same_count) {
    varying_.emplace_back("the number of lines of standard output");
  } else if (varying > 0) {
    const std::size_t first = static_cast<std::size_t>(
        std::find(is_varying_line_.begin(), is_varying_line_.end(), true) - is_varying_line_.begin());
    varying_.push_back(fmt::format("{} of {} lines of standard output, such as {}", varying, right_.lines.size(),
                                   shown(right_.lines[first].text)));
  }
  // Where some lines vary, those that are the same but for times are no ground to judge by.
  bool says_something = varying == 0 && !right_.lines.empty();
  for (std::size_t i = 0; i < right_.lines.size(); ++i)
    says_something = says_something || (!is_varying_line_[i] && right_.lines[i].says_something);
  if (judges_lines_ && says_something) judged_.emplace_back("standard output");
}

bool Reference::is_alike(double one, double other) const {
  if (std::isnan(one) || std::isnan(other)) return std::isnan(one) && std::isnan(other);
  return one == other || std::fabs(one - other) <= rules_.tolerance * std::max(std::fabs(one), std::fabs(other));
}

std::optional<std::string> Reference::changed_lines(const Outputs& outputs) const {
  for (std::size_t i = 0; i < std::min(right_.lines.size(), outputs.lines.size()); ++i)
    if (!is_varying_line_[i] && right_.lines[i].digest != outputs.lines[i].digest)
      return fmt::format("line {} of standard output was {}, not {}", i + 1, shown(outputs.lines[i].text),
                         shown(right_.lines[i].text));
  if (outputs.lines.size() != right_.lines.size())
    return fmt::format("standard output had {} lines, not {}", outputs.lines.size(), right_.lines.size());
  return std::nullopt;
}

std::optional<std::string> Reference::change(const Outputs& outputs) const {
  for (const auto& [name, value] : right_.values) {
    const auto found = outputs.values.find(name);
    if (found == outputs.values.end()) return fmt::format("{} was not given", name);
    if (found->second != value) return fmt::format("{} was {}, not {}", name, found->second, value);
  }
  for (const auto& [pattern, value] : right_.numbers) {
    const auto found = outputs.numbers.find(pattern);
    if (found == outputs.numbers.end()) return fmt::format("there was no number that '{}' finds", pattern);
    if (!is_alike(found->second, value))
      return fmt::format("the number that '{}' finds was {:g}, not {:g}", pattern, found->second, value);
  }
  return judges_lines_ ? changed_lines(outputs) : std::nullopt;
}

}  // namespace weir::race
