#include "lab/try/design.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "base/error.h"
#include "base/secrets.h"
#include "measure/bootstrap.h"

namespace weir::trials {
namespace {

constexpr std::size_t kMaxFactors = 64;

void add_combinations(const std::vector<Factor>& factors, Setting& setting, std::vector<Setting>& settings) {
  if (setting.size() == factors.size()) {
    settings.push_back(setting);
    return;
  }
  for (std::uint32_t value = 0; value < factors[setting.size()].values.size(); ++value) {
    setting.push_back(value);
    add_combinations(factors, setting, settings);
    setting.pop_back();
  }
}

// Each column holds the values of a factor equally often, in random order; the first row is the baseline.
std::vector<Setting> sample(const std::vector<Factor>& factors, std::uint64_t seed) {
  SplitMix random(seed);
  std::vector<Setting> rows(kSampleSettings, Setting(factors.size(), 0));
  for (std::size_t column = 0; column < factors.size(); ++column) {
    const std::size_t values = factors[column].values.size();
    for (std::size_t row = 1; row < rows.size(); ++row) rows[row][column] = static_cast<std::uint32_t>(row % values);
    for (std::size_t left = rows.size() - 1; left > 1; --left)
      std::swap(rows[left][column], rows[1 + random.below(static_cast<std::uint32_t>(left))][column]);
  }
  // Two rows alike would be one setting under two names.
  std::set<Setting> seen;
  std::erase_if(rows, [&](const Setting& row) { return !seen.insert(row).second; });
  return rows;
}

}  // namespace

std::vector<std::string> split_words(const std::string& text) {
  std::vector<std::string> words;
  std::string word;
  bool is_word = false;
  char quote = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quote == '\'') {
      if (c == '\'')
        quote = 0;
      else
        word += c;
      continue;
    }
    if (c == '\\' && i + 1 < text.size()) {
      // Within double quotes a backslash keeps its place before other characters, as in a shell.
      if (quote == '"' && std::string_view("\"\\$`").find(text[i + 1]) == std::string_view::npos) word += c;
      word += text[++i];
      is_word = true;
      continue;
    }
    if (quote == '"' && c == '"') {
      quote = 0;
      continue;
    }
    if (quote == 0 && (c == '\'' || c == '"')) {
      quote = c;
      is_word = true;
      continue;
    }
    if (quote == 0 && (c == ' ' || c == '\t' || c == '\n')) {
      if (is_word) words.push_back(std::exchange(word, {}));
      is_word = false;
      continue;
    }
    if (c == '$' || c == '`' || (quote == 0 && std::string_view("|&;<>()*?").find(c) != std::string_view::npos))
      reject(fmt::format("'{}': no shell is started, so '{}' has no meaning", text, c),
             "Put it in single quotes, put the commands into a script, or write sh -c '...' yourself.");
    word += c;
    is_word = true;
  }
  if (quote != 0) reject(fmt::format("'{}': a quote is not closed", text));
  if (is_word) words.push_back(word);
  if (words.empty()) reject(fmt::format("'{}': not a command", text), "For example: weir try './a --fast' './b'");
  return words;
}

Design design_of(std::vector<Factor> factors, std::uint64_t seed) {
  if (factors.size() > kMaxFactors)
    reject(fmt::format("{} variables: at most {} can be varied at once", factors.size(), kMaxFactors));
  Design design;
  design.factors = std::move(factors);
  for (const Factor& factor : design.factors) {
    if (factor.values.size() > kMaxSettings)
      reject(fmt::format("{} has {} values: at most {} can be tried", factor.name, factor.values.size(), kMaxSettings));
    design.combinations *= static_cast<double>(factor.values.size());
  }
  if (design.combinations <= static_cast<double>(kMaxSettings)) {
    Setting setting;
    add_combinations(design.factors, setting, design.settings);
  } else {
    design.settings = sample(design.factors, seed);
  }
  return design;
}

std::string words_for(const Factor& factor, std::uint32_t value) {
  const std::optional<std::string>& text = factor.values[value];
  return text ? fmt::format("{}={}", factor.name, recorded_value(factor.name, *text))
              : fmt::format("{} unset", factor.name);
}

std::string words_for(const Design& design, const Setting& setting) {
  std::string words;
  for (std::size_t i = 0; i < setting.size(); ++i) {
    if (design.factors[i].values.size() < 2) continue;
    words += fmt::format("{}{}", words.empty() ? "" : " ", words_for(design.factors[i], setting[i]));
  }
  return words.empty() ? "as it is" : words;
}

}  // namespace weir::trials
