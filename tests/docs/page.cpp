#include "docs/page.h"

#include <fmt/format.h>

#include <regex>
#include <set>
#include <sstream>

namespace weir::testing {
namespace {

std::string trimmed(const std::string& text) {
  const std::size_t begin = text.find_first_not_of(" \t");
  if (begin == std::string::npos) return "";
  return text.substr(begin, text.find_last_not_of(" \t") - begin + 1);
}

// weir compare a.json b.json --strict   # exit 3 if slower, 4 if unclear
std::set<int> exit_codes_of(const std::string& remark) {
  static const std::regex kExit(R"(\bexit ([0-9]{1,3})( if [^,]*(?:, ([0-9]{1,3}) if .*)?)?)");
  std::smatch match;
  if (!std::regex_search(remark, match, kExit)) return {0};
  std::set<int> codes = {std::stoi(match[1])};
  if (match[2].matched) codes.insert(0);
  if (match[3].matched) codes.insert(std::stoi(match[3]));
  return codes;
}

std::string need_of(const std::string& text, const std::string& remark) {
  static const std::regex kDevice(R"(--device(?: |=)(?:[a-z0-9:,]*,)?(cuda|hip|opencl))");
  std::smatch match;
  if (remark.find("needs an NVIDIA GPU") != std::string::npos) return "cuda";
  if (remark.find("needs an AMD GPU") != std::string::npos) return "hip";
  if (std::regex_search(text, match, kDevice)) return match[1];
  return text.starts_with("sudo ") ? "root" : "";
}

class Reader {
 public:
  explicit Reader(const std::string& markdown) : text_(markdown) {}

  Page read() {
    while (next()) {
      const std::string bare = trimmed(line_);
      if (bare.starts_with("```")) block(trimmed(bare.substr(3)));
      if (bare.find("<!--") != std::string::npos)
        note_problem(number_, "a comment: what readers do not see is not run");
    }
    for (CommandLine& command : page_.commands) {
      const bool is_refused = !command.output.empty() && command.output.front().starts_with("weir: ");
      if (is_refused && command.need.empty() && command.exit_codes.contains(0)) command.exit_codes = {1, 2};
    }
    return std::move(page_);
  }

 private:
  bool next() {
    if (!std::getline(text_, line_)) return false;
    if (!line_.empty() && line_.back() == '\r') line_.pop_back();
    ++number_;
    return true;
  }
  void note_problem(int line, const std::string& what) { page_.problems.push_back(fmt::format("{}: {}", line, what)); }

  void block(const std::string& language) {
    static const std::set<std::string> kCommands = {"sh", "bash", "console", "synopsis"};
    static const std::regex kLooksLikeOne(R"(^\s*(\$ .*|(build/release/)?weir [a-z].*|make [a-z].*|cmake .*))");
    const int begin = number_;
    if (language.empty()) note_problem(begin, "a block without a language: sh, console, text, yaml, ...");
    const bool has_commands = kCommands.contains(language);
    CommandLine pending;
    bool is_closed = false, has_prompt = false;
    while (next()) {
      const std::string bare = trimmed(line_);
      if (bare == "```") {
        is_closed = true;
        break;
      }
      if (!has_commands) {
        if (std::regex_match(line_, kLooksLikeOne))
          note_problem(number_, "a command line that nothing tests: '" + bare + "'; is the block sh or console?");
      } else if (language != "console" || !pending.text.empty()) {
        command_line(language, bare, pending);
      } else if (bare.starts_with("$ ")) {
        has_prompt = true;
        command_line(language, bare.substr(2), pending);
      } else if (has_prompt) {
        page_.commands.back().output.push_back(line_);
      } else {
        note_problem(number_, "output without a command: a console block begins with \"$ \"");
      }
    }
    if (!is_closed) note_problem(begin, "a block without an end");
    if (!pending.text.empty()) note_problem(pending.line, "a command that ends in a backslash");
  }

  void command_line(const std::string& language, std::string bare, CommandLine& pending) {
    if (pending.text.empty()) {
      if (bare.empty() || bare.front() == '#') return;
      pending.line = number_;
    }
    // cat > mine.yaml << 'EOF'
    static const std::regex kHere(R"(.*<<\s*'?([A-Z]+)'?\s*$)");
    std::smatch here;
    if (std::regex_match(bare, here, kHere)) {
      const std::string word = here[1];
      while (next() && line_ != word) bare += "\n" + line_;
      bare += "\n" + word;
    }
    const bool goes_on = bare.ends_with("\\");
    if (goes_on) bare = trimmed(bare.substr(0, bare.size() - 1)) + " ";
    pending.text += bare;
    if (goes_on) return;
    static const std::regex kBuild("(make|cmake|ctest|cpack) .*");
    if (language == "synopsis") pending.trial = Trial::synopsis;
    if (std::regex_match(pending.text, kBuild)) pending.trial = Trial::build;
    const std::string first = pending.text.substr(0, pending.text.find('\n'));
    const std::size_t sign = first.find(" # ");
    const std::string remark = sign == std::string::npos ? "" : first.substr(sign);
    pending.need = need_of(first, remark);
    pending.exit_codes = exit_codes_of(remark);
    page_.commands.push_back(pending);
    pending = {};
  }

  std::istringstream text_;
  std::string line_;
  int number_ = 0;
  Page page_;
};

}  // namespace

Page read_page(const std::string& markdown) { return Reader(markdown).read(); }

}  // namespace weir::testing
