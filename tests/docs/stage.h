// A scratch folder that has what a user's clone has, and tries command lines in it. Knows the shell and the program;
// reads no pages.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "cli/program.h"
#include "docs/page.h"

namespace weir::testing {

enum class Tried { ran, refused, checked, failed };

class Stage {
 public:
  Stage();
  ~Stage();
  Stage(const Stage&) = delete;
  Stage& operator=(const Stage&) = delete;

  // `why` gets all that a failed line said. `here`: cuda where it must be there, so that its refusal is a failure.
  Tried tries(const CommandLine& command, const std::string& here, std::string& why);
  // Ends what runs in the background; false where one of it ended badly before.
  bool ends(std::string& why);

 private:
  struct Background {
    pid_t process;
    CommandLine command;
    std::string out, err;
  };

  std::vector<std::string> words_of(const std::string& text, int seconds) const;
  Tried tries_to_run(const CommandLine& command, const std::string& here, std::string& why);
  Tried starts(const CommandLine& command, const std::string& text);
  bool ends(const Background& job, std::string& why) const;
  // Of the output that the page shows: messages whole, of the rest what stands before the numbers.
  bool prints_what_is_shown(const CommandLine& command, const Outcome& outcome, std::string& why) const;

  Folder root_;
  std::filesystem::path clone_;
  std::vector<Background> background_;
};

// A copy of the kernel packages whose problems are 64 times smaller where they are large: a page takes seconds.
void write_small_packages(const std::filesystem::path& from, const std::filesystem::path& to);

// weir queues map [--streams 40] [-o FILE]: the program has that command, and that command those flags.
bool has_flags(const std::string& synopsis, std::string& why);
// A line of a build is not run, but what it names must exist.
bool can_build(const std::string& text, std::string& why);

}  // namespace weir::testing
