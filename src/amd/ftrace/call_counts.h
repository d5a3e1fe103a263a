// Counts KFD's calls by what they are evidence of. Bounded, whatever names a file holds. Knows no times and no threads.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>

#include "amd/ftrace/kfd_functions.h"
#include "amd/ftrace/read.h"

namespace weir::ftrace {

class CallCounts {
 public:
  // `is_in_system_call`: the ioctl was counted when its system call began.
  void count(std::string_view name, KfdPart part, bool is_in_system_call);
  // A system call with KFD's number: "create_queue".
  void count_system_call(std::string_view ioctl);
  KfdCalls& calls() { return calls_; }
  // With names, most frequent first.
  KfdCalls finish();

 private:
  using Names = std::unordered_map<std::string, std::uint64_t>;
  static void count_name(Names& names, std::string_view name);

  KfdCalls calls_;
  Names ioctls_, kcq_names_, unknown_kfd_;
};

}  // namespace weir::ftrace
