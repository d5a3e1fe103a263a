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

struct Mark {
  enum { need, exit, syntax, build } kind;
  std::string value;
  std::string only;  // lines that have this in them; empty: all
  bool is_used = false;
};

// What stands in hidden comments above a block, until a block takes it.
struct Above {
  std::vector<Mark> marks;
  std::string file;
  int line = 0;  // of the last comment; 0: none
  std::vector<CommandLine> setup;
};

void apply(const Mark& mark, CommandLine& command) {
  switch (mark.kind) {
    case Mark::need:
      command.need = mark.value;
      break;
    case Mark::build:
      command.trial = Trial::build;
      break;
    case Mark::syntax:
      command.trial = Trial::syntax;
      command.because = mark.value;
      break;
    case Mark::exit: {
      command.exit_codes.clear();
      std::istringstream words(mark.value);
      for (std::string word; words >> word;)
        if (word != "or") command.exit_codes.insert(std::stoi(word));
    }
  }
}

class Reader {
 public:
  explicit Reader(const std::string& markdown) : text_(markdown) {}

  Page read() {
    while (next()) {
      const std::string bare = trimmed(line_);
      if (bare.starts_with("```")) {
        block(bare.substr(3));
      } else if (bare.starts_with("<!-- test:") || bare.starts_with("<!-- setup:")) {
        comment(bare);
      } else if (bare.starts_with("<!-- file:") && bare.ends_with("-->")) {
        above_.line = number_;
        above_.file = trimmed(bare.substr(10, bare.size() - 13));
      } else if (!bare.empty()) {
        // Marks belong to the block right below them.
        if (above_.line != 0) note_problem(above_.line, "no block of commands follows this mark");
        above_ = {};
      }
    }
    if (above_.line != 0) note_problem(above_.line, "no block of commands follows this mark");
    page_.commands.insert(page_.commands.begin(), files_.begin(), files_.end());
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

  // <!-- test: needs cuda -->
  // <!-- setup: weir profile moe -o trace.json
  // gzip -k trace.json -->
  void comment(std::string bare) {
    const bool is_setup = bare.starts_with("<!-- setup:");
    above_.line = number_;
    std::string body = bare.substr(bare.find(':') + 1);
    for (;;) {
      const std::size_t end = body.find("-->");
      const std::string content = trimmed(body.substr(0, end));
      if (is_setup && !content.empty()) {
        CommandLine command;
        command.line = number_;
        command.text = content;
        command.is_setup = true;
        above_.setup.push_back(command);
      } else if (!is_setup) {
        mark(content);
      }
      if (end != std::string::npos) return;
      if (!next()) return note_problem(above_.line, "a comment without an end");
      body = line_;
    }
  }

  void mark(const std::string& text) {
    static const std::regex kForm(R"((needs|exit|build|syntax, because) ?([^"]*?)(?: in "([^"]+)\")?)");
    static const std::regex kNeed("cuda|hip|opencl|root"), kCodes("[0-9]{1,3}( or [0-9]{1,3})*");
    std::smatch match;
    const bool has_form = std::regex_match(text, match, kForm);
    const std::string kind = match[1], value = match[2], only = match[3];
    if (has_form && kind == "needs" && std::regex_match(value, kNeed)) {
      above_.marks.push_back({Mark::need, value, only});
    } else if (has_form && kind == "exit" && std::regex_match(value, kCodes)) {
      above_.marks.push_back({Mark::exit, value, only});
    } else if (has_form && kind == "build" && value.empty()) {
      above_.marks.push_back({Mark::build, value, only});
    } else if (has_form && kind.starts_with("syntax") && !value.empty()) {
      above_.marks.push_back({Mark::syntax, value, only});
    } else {
      note_problem(number_, "'" + text + "' says nothing to the test; tests/docs/page.h has the words");
    }
  }

  void block(const std::string& language) {
    static const std::set<std::string> kCommands = {"sh", "bash", "console", "synopsis"};
    static const std::regex kLooksLikeOne(R"(^\s*(\$ .*|(build/release/)?weir [a-z].*|make [a-z].*|cmake .*))");
    const int begin = number_;
    const std::string name = trimmed(language);
    if (name.empty()) note_problem(begin, "a block without a language: sh, console, text, yaml, ...");
    const bool has_commands = kCommands.contains(name);
    CommandLine file;
    if (has_commands) {
      for (CommandLine& command : above_.setup) page_.commands.push_back(command);
    } else if (!above_.file.empty()) {
      file.line = begin;
      file.is_setup = true;
      file.text = "cat > " + above_.file + " << 'END OF FILE'\n";
    } else if (above_.line != 0) {
      note_problem(above_.line, "no block of commands follows this mark");
    }
    CommandLine pending;
    bool is_closed = false;
    while (next()) {
      const std::string bare = trimmed(line_);
      if (bare == "```") {
        is_closed = true;
        break;
      }
      if (!file.text.empty()) {
        file.text += line_ + "\n";
        continue;
      }
      if (!has_commands) {
        if (std::regex_match(line_, kLooksLikeOne))
          note_problem(number_, "a command line that nothing tests: '" + bare + "'; is the block sh or console?");
        continue;
      }
      command_line(name, bare, pending);
    }
    if (!is_closed) note_problem(begin, "a block without an end");
    if (!file.text.empty()) {
      file.text += "END OF FILE";
      files_.push_back(file);
    }
    if (!pending.text.empty()) note_problem(pending.line, "a command that ends in a backslash");
    for (const Mark& mark : above_.marks) {
      if (has_commands && !mark.is_used)
        note_problem(begin, "no line has '" + mark.only + "', which a mark above names");
    }
    above_ = {};
  }

  void command_line(const std::string& language, std::string bare, CommandLine& pending) {
    const bool is_continued = !pending.text.empty();
    if (language == "console" && !is_continued) {
      if (!bare.starts_with("$ ")) {
        if (!page_.commands.empty() && !page_.commands.back().is_setup) {
          page_.commands.back().output.push_back(line_);
        } else {
          note_problem(number_, "output without a command: a console block begins with \"$ \"");
        }
        return;
      }
      bare = bare.substr(2);
    }
    if (!is_continued) {
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
    for (Mark& mark : above_.marks) {
      if (pending.text.find(mark.only) == std::string::npos) continue;
      mark.is_used = true;
      apply(mark, pending);
    }
    page_.commands.push_back(pending);
    pending = {};
  }

  std::istringstream text_;
  std::string line_;
  int number_ = 0;
  Above above_;
  Page page_;
  std::vector<CommandLine> files_;  // a page may show how a file is used before it shows the file
};

}  // namespace

Page read_page(const std::string& markdown) { return Reader(markdown).read(); }

}  // namespace weir::testing
