// Exchanges questions and answers with a package's executable, in lines of JSON (docs/bench_protocol.md). Checks the
// form of messages and refuses malformed ones; executable.cpp knows what they mean.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "base/json.h"
#include "base/process.h"

namespace weir::package {

class Conversation {
 public:
  // `name` is the package's name in messages.
  Conversation(std::string name, ProcessOptions options, double reply_limit_s);
  ~Conversation();
  Conversation(const Conversation&) = delete;
  Conversation& operator=(const Conversation&) = delete;

  struct Reply {
    Json fields;
    double wall_ns = 0;  // from before the question to after the answer
  };
  // Sends {"op": operation, ...} and returns an answer with "ok": true. Fails with the program's own message, or with
  // what is wrong with the answer and the line itself.
  Reply ask(const char* operation, Json question = Json::object());
  // The same, but accepts {"ok": false}: returns nothing and puts its message into `refusal`.
  std::optional<Reply> try_ask(const char* operation, Json question, std::string& refusal);

  const std::string& name() const { return name_; }
  std::string errors() const { return process_->output().text(); }
  // For any error in an answer: "scale: answer to 'setup': no number \"flop\"".
  [[noreturn]] void refuse(const char* operation, const std::string& what, const std::string& hint = {}) const;

  static constexpr std::size_t kLongestLine = std::size_t{64} << 20;

 private:
  [[noreturn]] void broken(const char* operation, Process::Answer answer, const std::string& line);
  std::string error_output() const;

  std::string name_;
  double reply_limit_s_;
  std::unique_ptr<Process> process_;
  bool is_broken_ = false;
};

}  // namespace weir::package
