#include "lab/kernels/package/conversation.h"

#include <fmt/format.h>

#include "base/clock.h"
#include "base/error.h"
#include "lab/kernels/package/text.h"

namespace weir::package {
namespace {

constexpr std::size_t kShownBytes = 200;  // of a line that is shown to the user
constexpr double kExitLimit_s = 2;

}  // namespace

Conversation::Conversation(std::string name, ProcessOptions options, double reply_limit_s)
    : name_(std::move(name)), reply_limit_s_(reply_limit_s) {
  options.out = ProcessOptions::Output::read;
  options.has_input = true;
  options.core_bytes = 0;
  const std::string program = options.command.at(0);
  try {
    process_ = std::make_unique<Process>(std::move(options));
  } catch (const StartError& error) {
    fail(fmt::format("{}: {}", name_, error.what()),
         fmt::format("A script needs a first line such as #!/usr/bin/env python3 whose program is there, and {} must "
                     "be executable.",
                     program));
  }
}

Conversation::~Conversation() {
  if (is_broken_) return;
  try {
    std::string line;
    process_->ask("{\"weir\":1,\"op\":\"exit\"}\n", kExitLimit_s, kShownBytes, line);
    process_->finish(kExitLimit_s);
  } catch (...) {
    // Its process group is killed in any case.
  }
}

std::string Conversation::error_output() const {
  const std::string words = errors();
  return words.empty() ? "It wrote nothing to stderr." : "On stderr it wrote:\n" + words;
}

void Conversation::refuse(const char* operation, const std::string& what, const std::string& hint) const {
  fail(fmt::format("{}: answer to '{}': {}", name_, operation, what), hint);
}

void Conversation::broken(const char* operation, Process::Answer answer, const std::string& line) {
  is_broken_ = true;  // the next line could be the answer to this question, so nothing more is asked
  const std::string shown = printable(line, kShownBytes);
  switch (answer) {
    case Process::Answer::unexpected:
      fail(fmt::format("{}: wrote to stdout before it was asked '{}': {}", name_, operation, shown),
           "stdout is for answers, one line each; print anything else to stderr.");
    case Process::Answer::too_long:
      fail(fmt::format("{}: answer to '{}' has more than {} MiB: {}", name_, operation, kLongestLine >> 20, shown),
           "Choose a smaller problem for checked runs, or end the line.");
    case Process::Answer::timed_out: {
      fail(fmt::format("{}: no answer to '{}' within {:g} s", name_, operation, reply_limit_s_), error_output());
    }
    case Process::Answer::stopped:
      fail(fmt::format("{}: stopped while it worked on '{}'", name_, operation));
    default:
      break;
  }
  const ProcessEnd end = process_->finish(kExitLimit_s);
  const std::string rest = line.empty() ? "" : fmt::format(" after half a line: {}", shown);
  fail(fmt::format("{}: the executable {} instead of answering '{}'{}", name_,
                   end.how == ProcessEnd::How::timed_out ? "closed its stdout" : end.words(), operation, rest),
       error_output());
}

std::optional<Conversation::Reply> Conversation::try_ask(const char* operation, Json question, std::string& refusal) {
  if (is_broken_) fail(fmt::format("{}: the executable was given up after an earlier fault", name_));
  Json message = {{"weir", 1}, {"op", operation}};
  message.update(question);
  std::string line;
  const std::string text = message.dump() + "\n";
  const std::int64_t start = now_ns();
  const Process::Answer answer = process_->ask(text, reply_limit_s_, kLongestLine, line);
  Reply reply;
  reply.wall_ns = static_cast<double>(now_ns() - start);
  if (answer != Process::Answer::line) broken(operation, answer, line);
  // {"ok":true,"elapsed_ns":1234}
  try {
    reply.fields = parse_json(line, "line");
  } catch (const Error& error) {
    is_broken_ = true;
    fail(fmt::format("{}: answer to '{}' is not JSON ({}): {}", name_, operation, error.what(),
                     printable(line, kShownBytes)),
         "stdout is for answers, one line each; print anything else to stderr.");
  }
  const auto ok = reply.fields.is_object() ? reply.fields.find("ok") : reply.fields.end();
  if (!reply.fields.is_object() || ok == reply.fields.end() || !ok->is_boolean()) {
    is_broken_ = true;
    refuse(operation, fmt::format("has no \"ok\": {}", printable(line, kShownBytes)),
           R"(Answer {"ok":true,...} or {"ok":false,"error":"..."}.)");
  }
  if (ok->get<bool>()) return reply;
  const auto words = reply.fields.find("error");
  refusal =
      words != reply.fields.end() && words->is_string() ? printable(words->string(), 2000) : "it does not say why";
  return std::nullopt;
}

Conversation::Reply Conversation::ask(const char* operation, Json question) {
  std::string refusal;
  if (auto reply = try_ask(operation, std::move(question), refusal)) return std::move(*reply);
  fail(fmt::format("{}: '{}' failed: {}", name_, operation, refusal), errors().empty() ? "" : error_output());
}

}  // namespace weir::package
