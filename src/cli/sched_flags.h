// The flags that the commands of `weir sched` share: where the daemon listens, and how terms and times are typed.
#pragma once

#include <filesystem>
#include <string>

#include "cli/command.h"
#include "submit/sched/policy.h"

namespace weir::cli {

struct SocketFlag {
  std::string socket;

  void add_to(CommandSyntax syntax);
  // The flag's value; else the daemon that this process runs under, else this user's. Always absolute.
  std::filesystem::path path() const;
};

// As typed. Numbers are kept as text, so that messages can show the flag and the word.
struct TermsFlags {
  std::string priority = "normal", weight = "1", deadline, p99;
  bool is_isolated = false;

  void add_to(CommandSyntax syntax);
  // Rejects bad values, naming the flag.
  scheduler::Terms terms() const;
};

}  // namespace weir::cli
