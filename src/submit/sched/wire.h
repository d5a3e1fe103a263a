// Messages between a client and the daemon, as bytes, and a client's terms as text. Everything that arrives is checked
// here before use. Knows no socket; throws only for lack of memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "submit/sched/policy.h"

namespace weir::scheduler {

// Set by `weir sched run` in the program's environment.
inline constexpr const char* kSocketVariable = "WEIR_SCHED_SOCKET";
inline constexpr const char* kTermsVariable =
    "WEIR_SCHED_TERMS";  // "priority=10;weight=1;deadline_ns=0;p99_ns=1000000;isolated=1"

std::string write_terms(const Terms& terms);
// False if the text is invalid; `terms` is then unchanged.
bool read_terms(std::string_view text, Terms* terms) noexcept;
// Whether they are within the limits of policy.h; check() rejects others with a message.
bool are_valid(const Terms& terms) noexcept;

enum class Ask : std::uint16_t { join = 1, status = 2, stop = 3 };
enum class Answer : std::uint16_t { seat = 1, refused = 2, status = 3, stopping = 4 };

inline constexpr std::size_t kRequestBytes = 128;
inline constexpr std::size_t kMaxProgramBytes = 64;
inline constexpr std::size_t kReplyHeadBytes = 24;
inline constexpr std::size_t kMaxReplyBytes = 128 * 1024;

// From a client: one packet of kRequestBytes.
struct Request {
  Ask ask = Ask::join;
  Terms terms;
  std::string program;  // without control characters, at most kMaxProgramBytes
};

// From the daemon: one packet. `seat` comes with two descriptors: the board, and an eventfd to ring with.
struct Reply {
  Answer answer = Answer::refused;
  std::uint32_t seat = 0;
  std::uint32_t board_bytes = 0;
  std::string text;  // why it refused, or the status document
};

// What is wrong with a packet; null if nothing is, and only then the result is written.
const char* read_request(std::span<const std::byte> packet, Request* request);
const char* read_reply(std::span<const std::byte> packet, Reply* reply);
std::string write_request(const Request& request);
std::string write_reply(const Reply& reply);

}  // namespace weir::scheduler
