// How commands are submitted, as flags: --submit, --producers, --submitters, --schedule, --in-flight.
#pragma once

#include <string>
#include <vector>

#include "cli/command.h"
#include "submit/submitter.h"

namespace weir::cli {

// As typed. The counts are part of a mode's name (channel:mpsc:4x2, scheduled:priority:2); the flags put them there.
struct SubmitFlags {
  std::string submit = "inline";
  std::string producers, submitters;
  std::string schedule, in_flight;

  // `takes_several`: a list of modes, for a sweep over them.
  void add_to(CommandSyntax syntax, bool takes_several);
  // The modes with their counts. Rejects counts without a channel, counts given twice, and a schedule for commands that
  // cannot be held back.
  std::vector<SubmitChoice> ways() const;
  // The mode, for commands that take only one.
  SubmitChoice way() const;

 private:
  std::vector<std::string> names() const;
  std::string with_counts(const std::string& way) const;
  std::vector<std::string> scheduled(const std::vector<std::string>& ways) const;
};

}  // namespace weir::cli
