// What keeps one recorded process from going on, as far as the process itself shows. Knows no other ranks.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "run/recorded_hang.h"
#include "run/recorded_hang_stacks.h"
#include "run/recorded_hang_streams.h"

namespace weir {

class ProcessHang {
 public:
  // `process` must outlive this.
  ProcessHang(const HangedProcess& process, std::int64_t now_ns, std::int64_t timeout_ns);

  const HangedProcess& process() const noexcept { return process_; }
  const RecordedStreams& streams() const noexcept { return streams_; }
  const std::vector<RecordedStack>& stacks() const noexcept { return stacks_; }
  HangCause cause() const noexcept { return cause_; }
  std::int64_t since_ns() const noexcept { return since_ns_; }
  std::string name() const;
  bool has_ended_normally() const noexcept;

  // What everything else waits for, if the cause is a stream's. A chain per unfinished stream, by its place.
  struct Unfinished {
    std::uint32_t stream = record::kNone;
    bool is_stuck = false;  // for the timeout, and it is certain that it has not ended
    bool is_certain = false;
    StreamChain chain;
  };
  const std::vector<Unfinished>& unfinished() const noexcept { return unfinished_; }
  const StreamChain* root() const noexcept { return root_; }

  struct Collective {
    std::uint32_t stream = record::kNone;
    std::uint64_t ordinal = 0;  // of its stream's collectives, from 1; 0: not known
    std::string kernel;
  };
  // The one that it is in, where that is the cause.
  Collective collective() const;
  // Of a stream, or of all (kNone).
  std::uint64_t collectives_submitted(std::uint32_t stream) const;
  std::uint64_t collectives_ended(std::uint32_t stream) const;
  std::vector<std::uint32_t> streams_with_collectives() const;

  // One sentence without its full stop: what keeps it from going on, and since when. Its subject is the process's name,
  // or `it`.
  std::string sentence(bool is_named) const;
  // "thread 4711 (python3) has been in cuStreamSynchronize for 61.0 s, for stream 13", for all threads in a call.
  std::vector<std::string> calls() const;
  // What limits the diagnosis.
  std::vector<std::string> remarks() const;

 private:
  void examine();
  void examine_streams();
  void choose_root();
  bool is_waited_for(std::uint32_t stream) const;  // by a thread
  bool is_explained(const record::Thread& thread) const;
  bool is_in_call(const record::Thread& thread) const noexcept;
  std::int64_t last_activity_ns() const;
  std::string call_text(const record::Thread& thread) const;
  std::string of(const std::string& part, bool is_named) const;
  std::string for_long(std::int64_t since_ns) const;
  std::string stream_sentence(bool is_named) const;
  std::string host_sentence(bool is_named) const;
  std::string child_sentence(bool is_named) const;
  std::string ended_sentence(bool is_named) const;
  std::string function_name(std::uint32_t function) const;

  const HangedProcess& process_;
  const Recording& recording_;
  std::int64_t now_ns_, timeout_ns_;
  RecordedStreams streams_;
  std::vector<RecordedStack> stacks_;
  std::vector<Unfinished> unfinished_;
  const StreamChain* root_ = nullptr;
  const record::Thread* thread_ = nullptr;  // in the call that does not return
  AwaitedProcess awaited_ = AwaitedProcess::none;
  std::size_t waiters_ = 0;  // streams that wait for the root
  bool is_silent_ = false;   // the library in it does not run
  HangCause cause_ = HangCause::none;
  std::int64_t since_ns_ = 0;
};

}  // namespace weir
