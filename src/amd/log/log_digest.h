// Interprets the lines of a log in order: which call a thread is in, on which stream, and which kernel it names next.
// Reports events to a sink. Takes lines that were already found; knows no file, and keeps no history of queues.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "amd/log/log_reader.h"
#include "amd/log/log_scan.h"
#include "amd/log/log_sink.h"

namespace weir::amd {

class LogDigest {
 public:
  explicit LogDigest(LogSink& sink);
  // Blocks must be added in file order.
  void digest(std::string_view text, const ScannedBlock& block);
  // Reports calls that are still open, and properties of the whole file.
  LogReading finish();

  const LogReading& reading() const { return reading_; }
  void unread(const std::string& reason, std::uint64_t count, std::uint64_t first_line);

 private:
  struct OpenCall {
    std::string name;
    LogMoment begun;
    std::uint64_t stream = 0;
  };
  // State of one thread. Lines without a thread (level 3) share one state, in which only their order connects them.
  struct Thread {
    std::optional<int> pid;
    std::uint64_t tid = 0;
    std::vector<OpenCall> calls;       // innermost last
    std::uint64_t command_stream = 0;  // from the last "to queue:"
    LogMoment asked;
    std::uint64_t acquired = 0;   // the queue acquired since the innermost call began
    std::optional<int> priority;  // of the stream being created
    std::string kernel;           // named, but its packet has not appeared yet
    LogMoment kernel_at;
    std::uint64_t kernel_stream = 0;
    bool has_kernel = false;
    std::uint64_t stream() const;
  };
  struct Line {
    std::string_view message;  // trimmed
    LogMoment at;
    Thread* thread = nullptr;
  };

  LogSink& sink_;
  bool wants_calls_, wants_details_;
  // Beginnings of packet lines that were already parsed, because a log repeats a few of them.
  struct PacketStart {
    std::string text;
    Packet packet;
  };
  std::vector<PacketStart> packet_starts_;
  std::size_t last_start_ = 0;
  LogReading reading_;
  std::map<std::string, UnreadLines> unread_;
  std::map<std::pair<int, std::uint64_t>, Thread> threads_;  // pid -1: none
  // Threads by the text that names them, because most lines belong to the same few.
  struct Recent {
    std::string text;
    Thread* thread = nullptr;
  };
  std::array<Recent, 16> recent_;
  std::uint64_t lines_before_ = 0;
  std::uint64_t last_us_ = FoundLine::kNoTimeUs;

  Thread& thread_of(std::string_view text);
  void restart(std::uint64_t line);
  void forget_threads();
  void take_line(std::string_view text, const FoundLine& found);
  void take_packet(const Line& line);
  const Packet* packet_start(std::string_view& text);
  void take_command(const Line& line);
  void take_kernel(const Line& line);
  void take_created(const Line& line);
  void take_shared(const Line& line);
  void take_copy(const Line& line);
  void take_call(const Line& line);
  void take_return(const Line& line);
  void take_error(const Line& line, int level);
  void finish_kernel(Thread& thread);
  void not_understood(const Line& line, std::string_view what);
};

}  // namespace weir::amd
