#include "cli/manual/completion_words.h"

#include <algorithm>

#include "base/text_gate.h"

namespace weir::cli {
namespace {

// Follows the complete words: which command it is, and what the next word is for.
class Line {
 public:
  explicit Line(const CommandFacts& root) : root_(&root), command_(&root) {}

  void take(const std::string& word) {
    if (is_rest_) {
      ++rest_count_;
    } else if (waiting_ != nullptr && !(waiting_->takes_several && word.starts_with('-') && word.size() > 1)) {
      keep(*waiting_, word);
      if (!waiting_->takes_several) waiting_ = nullptr;
    } else if (word == "--") {
      waiting_ = nullptr;
      is_rest_ = true;
    } else if (word.starts_with('-') && word.size() > 1) {
      take_flag(word);
    } else if (const CommandFacts* const below = command_named(word)) {
      command_ = below;
      given_.clear();
      argument_count_ = 0;
    } else {
      if (const FlagFacts* const argument = next_argument()) keep(*argument, word);
      ++argument_count_;
    }
  }

  Values follow(const std::string& word) {
    if (is_rest_) return begun_with(word, rest());
    typed_.command = command_->path;
    if (waiting_ != nullptr && !(waiting_->takes_several && word.starts_with('-')))
      return begun_with(word, values_for(*waiting_, "", word));
    const auto sign = word.find('=');
    if (word.starts_with("--") && sign != std::string::npos) {
      const FlagFacts* const flag = flag_named(word.substr(0, sign));
      if (flag == nullptr || flag->value.empty()) return {};
      return begun_with(word, values_for(*flag, word.substr(0, sign + 1), word.substr(sign + 1)));
    }
    if (word.starts_with('-')) return begun_with(word, flags());
    Values values;
    if (argument_count_ == 0)
      for (const CommandFacts& each : command_->commands) values.candidates.push_back({each.name(), each.summary});
    if (const FlagFacts* const argument = next_argument()) {
      Values own = argument->value == "program" ? Values{} : values_for(*argument, "", word);
      values.candidates.insert(values.candidates.end(), own.candidates.begin(), own.candidates.end());
      values.paths = own.paths;
      values.has_more = own.has_more;
    }
    // The words after `weir help` are commands, each below the one before.
    if (command_->path == "help") add_helped(values);
    if (values.candidates.empty() && values.paths == PathKind::none) values = flags();
    return begun_with(word, values);
  }

 private:
  void take_flag(const std::string& word) {
    const auto sign = word.find('=');
    const FlagFacts* const flag = flag_named(word.substr(0, sign));
    waiting_ = nullptr;
    if (flag == nullptr) return;
    given_.push_back(flag);
    if (sign != std::string::npos) {
      keep(*flag, word.substr(sign + 1));
    } else if (!flag->value.empty()) {
      waiting_ = flag;
    }
  }

  void keep(const FlagFacts& flag, const std::string& word) {
    if (flag.is_named("--file")) typed_.file = word;
    if (flag.is_named("--workload") || (flag.is_argument() && flag.value == "workload")) typed_.workload = word;
    if (command_->path == "help") helped_.push_back(word);
  }

  const CommandFacts* command_named(const std::string& word) const {
    return argument_count_ > 0 ? nullptr : command_->find(word);
  }

  const FlagFacts* flag_named(const std::string& name) const {
    const auto& flags = command_->flags;
    const auto found = std::find_if(flags.begin(), flags.end(), [&](const auto& each) { return each.is_named(name); });
    return found == flags.end() ? nullptr : &*found;
  }

  const FlagFacts* next_argument() const {
    const auto& arguments = command_->arguments;
    if (argument_count_ < arguments.size()) return &arguments[argument_count_];
    return !arguments.empty() && arguments.back().takes_several ? &arguments.back() : nullptr;
  }

  // Flags that were not given yet, or may be repeated.
  Values flags() const {
    Values values;
    for (const FlagFacts& flag : command_->flags) {
      const bool is_given = std::find(given_.begin(), given_.end(), &flag) != given_.end();
      if (is_given && !flag.is_repeatable) continue;
      for (const std::string& name : flag.names)
        if (name.starts_with("--") || flag.names.size() == 1) values.candidates.push_back({name, flag.help});
    }
    return values;
  }

  // The user's program after "--", and its arguments.
  Values rest() const {
    const bool takes_program = std::any_of(command_->arguments.begin(), command_->arguments.end(),
                                           [](const FlagFacts& each) { return each.value == "program"; });
    Values values;
    if (takes_program) values.paths = rest_count_ == 0 ? PathKind::programs : PathKind::files;
    return values;
  }

  // Prefixes each candidate with what precedes the value: "--device=", or "inline," of a list.
  Values values_for(const FlagFacts& flag, std::string before, const std::string& value) {
    typed_.value = value;
    Values values = values_of(flag, typed_);
    if (const auto comma = value.rfind(','); values.is_list && comma != std::string::npos) {
      const std::string earlier = "," + value.substr(0, comma + 1);
      std::erase_if(values.candidates,
                    [&](const Candidate& each) { return earlier.find("," + each.text + ",") != std::string::npos; });
      before += value.substr(0, comma + 1);
    }
    for (Candidate& candidate : values.candidates) candidate.text.insert(0, before);
    return values;
  }

  void add_helped(Values& values) const {
    const CommandFacts* at = root_;
    for (const std::string& word : helped_) {
      at = at->find(word);
      if (at == nullptr) return;
    }
    if (!helped_.empty()) values = {};
    for (const CommandFacts& each : at->commands) values.candidates.push_back({each.name(), each.summary});
  }

  static Values begun_with(const std::string& word, Values values) {
    std::erase_if(values.candidates, [&](const Candidate& each) { return !each.text.starts_with(word); });
    return values;
  }

  const CommandFacts* root_;
  const CommandFacts* command_;
  const FlagFacts* waiting_ = nullptr;  // the flag that needs a value next
  std::vector<const FlagFacts*> given_;
  std::size_t argument_count_ = 0, rest_count_ = 0;
  bool is_rest_ = false;
  std::vector<std::string> helped_;
  Typed typed_;
};

}  // namespace

Values complete(const CommandFacts& root, std::span<const std::string> words) {
  if (words.empty()) return {};
  Line line(root);
  for (const std::string& word : words.first(words.size() - 1)) line.take(word);
  return line.follow(words.back());
}

std::string completion_lines(const Values& values) {
  std::string lines;
  for (const Candidate& each : values.candidates) {
    // One line each, even if a workload file's description has several.
    lines += for_line(each.text);
    if (!each.help.empty()) lines += "\t" + for_line(each.help);
    lines += "\n";
  }
  constexpr const char* kPaths[] = {"", ":files\n", ":yaml\n", ":folders\n", ":programs\n"};
  lines += kPaths[static_cast<std::size_t>(values.paths)];
  return values.has_more && !values.candidates.empty() ? lines + ":nospace\n" : lines;
}

}  // namespace weir::cli
