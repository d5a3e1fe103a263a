// Messages between the scheduler's daemon and its clients, both ways, and terms as text: whatever comes is refused with
// a reason, or is something that reads back as itself and is within all limits.
#include <cstddef>
#include <cstdint>
#include <string>

#include "submit/sched/wire.h"

namespace {

using namespace weir::scheduler;

bool has_controls(const std::string& text) {
  for (const char c : text) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) return true;
  }
  return false;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::span<const std::byte> packet(reinterpret_cast<const std::byte*>(data), size);
  Request request, again;
  if (read_request(packet, &request) == nullptr) {
    if (!are_valid(request.terms) || request.program.size() > kMaxProgramBytes || has_controls(request.program))
      __builtin_trap();
    const std::string written = write_request(request);
    if (read_request(std::as_bytes(std::span(written)), &again) != nullptr || again.program != request.program ||
        again.ask != request.ask || again.terms.weight != request.terms.weight ||
        again.terms.p99_ns != request.terms.p99_ns || again.terms.is_isolated != request.terms.is_isolated)
      __builtin_trap();
  }
  Reply reply, answer;
  if (read_reply(packet, &reply) == nullptr) {
    if (reply.seat >= kMaxClients || reply.text.size() > kMaxReplyBytes) __builtin_trap();
    if (reply.answer != Answer::status && has_controls(reply.text)) __builtin_trap();
    const std::string written = write_reply(reply);
    if (read_reply(std::as_bytes(std::span(written)), &answer) != nullptr || answer.text != reply.text)
      __builtin_trap();
  }
  Terms terms, same;
  if (read_terms({reinterpret_cast<const char*>(data), size}, &terms)) {
    if (!are_valid(terms) || !read_terms(write_terms(terms), &same)) __builtin_trap();
    if (same.priority != terms.priority || same.weight != terms.weight || same.deadline_ns != terms.deadline_ns ||
        same.p99_ns != terms.p99_ns || same.is_isolated != terms.is_isolated)
      __builtin_trap();
  }
  return 0;
}
