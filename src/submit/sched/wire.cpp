#include "submit/sched/wire.h"

#include <charconv>
#include <cstring>

#include "base/plain_text.h"

namespace weir::scheduler {
namespace {

constexpr std::uint32_t kMagic = 0x53524957;  // "WIRS"
constexpr std::uint16_t kVersion = 2;

// A request: magic 4, version 2, ask 2, priority 4, length of the name 4, weight 8, deadline 8, p99 8, isolated 4,
// name 64, rest 0.
// A reply: magic 4, version 2, answer 2, seat 4, bytes of the board 4, length of the text 4, 4 unused, text.
// In native byte order: both ends are on the same machine.
struct Place {
  std::size_t priority = 8, name_length = 12, weight = 16, deadline = 24, p99 = 32, isolated = 40, name = 44;
  std::size_t seat = 8, board_bytes = 12, text_length = 16;
};
constexpr Place kAt;
static_assert(kAt.name + kMaxProgramBytes <= kRequestBytes);

template <class T>
void put(std::string& packet, std::size_t at, T value) {
  std::memcpy(packet.data() + at, &value, sizeof value);
}
template <class T>
T get(std::span<const std::byte> packet, std::size_t at) {
  T value;
  std::memcpy(&value, packet.data() + at, sizeof value);
  return value;
}

std::string head(std::size_t bytes, std::uint16_t kind) {
  std::string packet(bytes, '\0');
  put(packet, 0, kMagic);
  put(packet, 4, kVersion);
  put(packet, 6, kind);
  return packet;
}

const char* read_head(std::span<const std::byte> packet, std::size_t least, int kinds, std::uint16_t* kind) {
  if (packet.size() < least) return "it is too short";
  if (get<std::uint32_t>(packet, 0) != kMagic) return "it is not one of weir's";
  if (get<std::uint16_t>(packet, 4) != kVersion) return "it comes from another version of weir";
  *kind = get<std::uint16_t>(packet, 6);
  if (*kind < 1 || *kind > kinds) return "its kind is unknown";
  return nullptr;
}

std::string plain(std::string_view text, std::size_t most) {
  return without_controls(whole_characters(text, most), '?');
}

template <class T>
bool read_number(std::string_view text, T* value) noexcept {
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), *value);
  return status == std::errc{} && end == text.data() + text.size();
}

}  // namespace

bool are_valid(const Terms& terms) noexcept {
  return terms.priority >= kLowestPriority && terms.priority <= kHighestPriority && terms.weight >= kMinWeight &&
         terms.weight <= kMaxWeight &&  // NaN compares false
         terms.deadline_ns >= 0 && terms.deadline_ns <= kLongestDeadlineNs &&
         (terms.p99_ns == 0 || (terms.p99_ns >= kShortestP99Ns && terms.p99_ns <= kLongestP99Ns));
}

std::string write_terms(const Terms& terms) {
  // to_chars, because a program may have set a locale with another decimal separator; the shortest text that reads back
  // the same.
  char number[64];
  const auto text = [&](auto value) { return std::string(number, std::to_chars(number, number + 64, value).ptr); };
  return "priority=" + text(terms.priority) + ";weight=" + text(terms.weight) +
         ";deadline_ns=" + text(terms.deadline_ns) + (terms.p99_ns != 0 ? ";p99_ns=" + text(terms.p99_ns) : "") +
         (terms.is_isolated ? ";isolated=1" : "");
}

// priority=10;weight=1;deadline_ns=0;p99_ns=1000000;isolated=1
// Each at most once, in any order; missing ones have their defaults.
bool read_terms(std::string_view text, Terms* terms) noexcept {
  Terms found;
  unsigned seen = 0;
  while (!text.empty()) {
    const std::string_view part = text.substr(0, text.find(';'));
    text.remove_prefix(std::min(text.size(), part.size() + 1));
    const std::size_t equals = part.find('=');
    if (equals == std::string_view::npos) return false;
    const std::string_view name = part.substr(0, equals), value = part.substr(equals + 1);
    bool is_read = false;
    unsigned which = 0;
    if (name == "priority") {
      is_read = read_number(value, &found.priority);
      which = 1;
    } else if (name == "weight") {
      is_read = read_number(value, &found.weight);
      which = 2;
    } else if (name == "deadline_ns") {
      is_read = read_number(value, &found.deadline_ns);
      which = 4;
    } else if (name == "p99_ns") {
      is_read = read_number(value, &found.p99_ns);
      which = 8;
    } else if (name == "isolated") {
      is_read = value == "0" || value == "1";
      found.is_isolated = value == "1";
      which = 16;
    }
    if (!is_read || (seen & which) != 0) return false;
    seen |= which;
  }
  if (seen == 0 || !are_valid(found)) return false;
  *terms = found;
  return true;
}

std::string write_request(const Request& request) {
  std::string packet = head(kRequestBytes, static_cast<std::uint16_t>(request.ask));
  const std::string name = plain(request.program, kMaxProgramBytes);
  put(packet, kAt.priority, static_cast<std::int32_t>(request.terms.priority));
  put(packet, kAt.name_length, static_cast<std::uint32_t>(name.size()));
  put(packet, kAt.weight, request.terms.weight);
  put(packet, kAt.deadline, request.terms.deadline_ns);
  put(packet, kAt.p99, request.terms.p99_ns);
  put(packet, kAt.isolated, static_cast<std::uint32_t>(request.terms.is_isolated));
  name.copy(packet.data() + kAt.name, kMaxProgramBytes);
  return packet;
}

const char* read_request(std::span<const std::byte> packet, Request* request) {
  std::uint16_t kind = 0;
  if (const char* wrong = read_head(packet, kRequestBytes, 3, &kind)) return wrong;
  if (packet.size() != kRequestBytes) return "it is too long";
  Terms terms;
  terms.priority = get<std::int32_t>(packet, kAt.priority);
  terms.weight = get<double>(packet, kAt.weight);
  terms.deadline_ns = get<std::int64_t>(packet, kAt.deadline);
  terms.p99_ns = get<std::int64_t>(packet, kAt.p99);
  terms.is_isolated = get<std::uint32_t>(packet, kAt.isolated) != 0;
  if (!are_valid(terms)) return "its priority, weight, deadline or bound is out of range";
  const auto length = get<std::uint32_t>(packet, kAt.name_length);
  if (length > kMaxProgramBytes) return "its program's name is too long";
  request->ask = static_cast<Ask>(kind);
  request->terms = terms;
  request->program = plain({reinterpret_cast<const char*>(packet.data()) + kAt.name, length}, kMaxProgramBytes);
  return nullptr;
}

std::string write_reply(const Reply& reply) {
  const std::string_view text = whole_characters(reply.text, kMaxReplyBytes - kReplyHeadBytes);
  std::string packet = head(kReplyHeadBytes, static_cast<std::uint16_t>(reply.answer));
  put(packet, kAt.seat, reply.seat);
  put(packet, kAt.board_bytes, reply.board_bytes);
  put(packet, kAt.text_length, static_cast<std::uint32_t>(text.size()));
  return packet.append(text);
}

const char* read_reply(std::span<const std::byte> packet, Reply* reply) {
  std::uint16_t kind = 0;
  if (const char* wrong = read_head(packet, kReplyHeadBytes, 4, &kind)) return wrong;
  if (packet.size() > kMaxReplyBytes) return "it is too long";
  if (get<std::uint32_t>(packet, kAt.text_length) != packet.size() - kReplyHeadBytes) return "its text is cut short";
  const auto seat = get<std::uint32_t>(packet, kAt.seat);
  if (seat >= kMaxClients) return "there is no such seat";
  const auto answer = static_cast<Answer>(kind);
  const std::string_view text(reinterpret_cast<const char*>(packet.data()) + kReplyHeadBytes,
                              packet.size() - kReplyHeadBytes);
  reply->answer = answer;
  reply->seat = seat;
  reply->board_bytes = get<std::uint32_t>(packet, kAt.board_bytes);
  // A document has its own parser; a reason is shown to people as it is.
  reply->text = answer == Answer::status ? std::string(text) : plain(text, 256);
  return nullptr;
}

}  // namespace weir::scheduler
