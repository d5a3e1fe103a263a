#include "amd_log/log_scan.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "amd_log/newline_mask.h"

namespace weir::amd {
namespace {

constexpr std::size_t kMostNames = 2048, kLongestName = 128;

std::uint64_t word(const char* at) {
  std::uint64_t value;
  std::memcpy(&value, at, sizeof value);
  if constexpr (std::endian::native == std::endian::big) value = __builtin_bswap64(value);
  return value;
}

// Eight decimal digits, of which the first `skipped` count as 0. False where the others are no digits.
bool eight_digits(const char* at, std::uint32_t skipped, std::uint64_t& value) {
  std::uint64_t digits = word(at) ^ 0x3030303030303030;
  digits &= ~std::uint64_t{0} << (8 * skipped);
  if (((digits + 0x7676767676767676) | digits) & 0x8080808080808080) return false;
  digits = digits * 10 + (digits >> 8);
  value = (((digits & 0x000000FF000000FF) * 0x000F424000000064) +
           (((digits >> 16) & 0x000000FF000000FF) * 0x0000271000000001)) >>
          32;
  return true;
}

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// What a message may be by its first character; 0: nothing that is looked for.
enum Class : std::uint8_t { none, call, other };

constexpr std::array<std::uint8_t, 256> classes() {
  std::array<std::uint8_t, 256> table{};
  table['h'] = table['_'] = call;
  for (const char c : {'S', 'H', 'C', 'G', 'N', 'n', 'c', 'a', 'r', 'D', 'I'})
    table[static_cast<unsigned char>(c)] = other;
  return table;
}
constexpr std::array<std::uint8_t, 256> kClasses = classes();

// Few lines come here; those that are frequent and not wanted are told apart by the second word of the switch.
bool classify(std::string_view message, LineKind& kind) {
  const auto is = [&](std::string_view start, LineKind of) {
    kind = of;
    return message.starts_with(start);
  };
  switch (message.front()) {
    case 'S':
      return is("SWq=", LineKind::packet) || is("ShaderName :", LineKind::kernel) ||
             is("Selected queue refCount", LineKind::shared);
    case 'H':
      return is("HWq=", LineKind::packet) || is("HSA Async Copy", LineKind::copy) || is("HSA Copy", LineKind::copy) ||
             is("HIP Version:", LineKind::version);
    case 'C':
      return is("Command (", LineKind::command) || is("Created SWq=", LineKind::created) ||
             is("Callback: Queue", LineKind::error);
    case 'G':
      return is("Graph shader name :", LineKind::kernel);
    case 'N':
      return is("Number of allocated hardware queues", LineKind::asked);
    case 'n':
      return is("number of allocated hardware queues", LineKind::asked);
    case 'c':
      return is("created hardware queue", LineKind::created);
    case 'a':
      return is("acquireQueue refCount", LineKind::shared);
    case 'r':
      return is("releaseQueue refCount", LineKind::shared);
    case 'D':
      return is("Deleting hardware queue", LineKind::deleted);
    case 'I':
      // The first is how ROCm 7 writes it.
      return is("Initalizing runtime stack", LineKind::runtime) ||
             is("Initializing runtime stack", LineKind::runtime) || is("Initializing HSA stack", LineKind::runtime);
    default:
      return false;
  }
}

// Calls that tell a stream, change one, or name kernels: the others need not be seen in their order.
bool is_ordered(std::string_view name) {
  for (const std::string_view part : {"Stream", "Launch", "Graph", "Async", "EventRecord"})
    if (name.find(part) != std::string_view::npos) return true;
  return false;
}

}  // namespace

void ScannedBlock::clear() {
  found.clear();
  calls.clear();
  auto kept_found = std::move(found);
  auto kept_calls = std::move(calls);
  *this = {};
  found = std::move(kept_found);
  calls = std::move(kept_calls);
}

LineScanner::LineScanner(bool wants_calls) : wants_calls_(wants_calls), slots_(4 * kMostNames) {}

void LineScanner::scan(std::string_view text, ScannedBlock& out) {
  out.clear();
  block_ = text.data();
  const char* line = text.data();
  const char* const end = line + text.size();
  for (const char* at = line; at < end; at += 64) {
    std::uint64_t mask = newline_mask(at);
    if (end - at < 64) mask &= (std::uint64_t{1} << (end - at)) - 1;
    while (mask != 0) {
      const char* const stop = at + std::countr_zero(mask);
      mask &= mask - 1;
      const auto size = static_cast<std::size_t>(stop - line);
      std::uint64_t time_us;
      if (read_fast(line, size, time_us))
        take_record({line, size, time_us, layout_.us_at + 4, layout_.message_at, layout_.has_process}, out);
      else
        read_slowly(line, size, out);
      ++out.lines;
      line = stop + 1;
    }
  }
  finish(out);
}

bool LineScanner::read_fast(const char* line, std::size_t size, std::uint64_t& time_us) const {
  const Layout& layout = layout_;
  if (size <= layout.message_at || layout.message_at == 0 || size > kLongestLine) return false;
  if (line[0] != ':' || line[2] != ':' || !is_digit(line[1])) return false;
  if (std::memcmp(line + layout.us_at, "us: ", 4) != 0 || line[layout.us_at + 4] != layout.mark) return false;
  if (layout.has_process && std::memcmp(line + layout.message_at - 2, "] ", 2) != 0) return false;
  if (line[layout.digits_at - 1] != ' ') return false;
  const char* const digits = line + layout.digits_at + layout.digits - 8;
  std::uint64_t low, high;
  if (!eight_digits(digits, 0, low) || !eight_digits(digits - 8, 16 - layout.digits, high)) return false;
  time_us = high * 100'000'000 + low;
  return true;
}

void LineScanner::read_slowly(const char* line, std::size_t size, ScannedBlock& out) {
  const auto unread = [&](Unread reason) {
    const auto at = static_cast<std::size_t>(reason);
    if (out.unread[at]++ == 0) out.first_unread[at] = out.lines;
  };
  // A file that was truncated under a writer that goes on at its old place begins with NUL bytes.
  if (size > 0 && line[0] == '\0') {
    unread(Unread::hole);
    while (size > 0 && line[0] == '\0') {
      ++line;
      --size;
    }
  }
  if (size > kLongestLine) {
    unread(Unread::too_long);
    return;
  }
  auto head = parse_head({line, size});
  if (!head) {
    const std::size_t at = find_glued({line, size});
    if (at != std::string_view::npos) head = parse_head({line + at, size - at});
    if (!head) {
      ++out.other_lines;
      return;
    }
    line += at;
    size -= at;
    ++out.glued;
  }
  if (!head->time_us) {
    take_record({line, size, FoundLine::kNoTimeUs, head->message_at, head->message_at, false}, out);
    return;
  }
  const std::uint32_t process_at = std::min(head->us_at + 4, head->message_at);
  if (head->digits >= 9 && head->digits <= 16 && head->digits_at >= 16 && head->message_at >= head->us_at + 5)
    layout_ = {head->us_at, head->digits, head->digits_at, head->message_at, line[process_at], head->pid.has_value()};
  take_record({line, size, *head->time_us, process_at, head->message_at, head->pid.has_value()}, out);
}

void LineScanner::take_record(const Record& record, ScannedBlock& out) {
  ++out.records;
  out.without_pid += record.has_process ? 0 : 1;
  const int level = record.line[1] - '0';
  out.highest_level = std::max(out.highest_level, level);
  FoundLine found{record.time_us,
                  static_cast<std::uint32_t>(record.line - block_),
                  static_cast<std::uint32_t>(record.size),
                  static_cast<std::uint32_t>(out.lines),
                  record.process_at,
                  record.message_at,
                  LineKind::error,
                  static_cast<std::uint8_t>(level)};
  if (record.time_us != FoundLine::kNoTimeUs) {
    if (out.first_us == FoundLine::kNoTimeUs) {
      out.first_us = record.time_us;
    } else if (record.time_us < out.last_us && out.last_us - record.time_us > kRestartUs) {
      out.found.push_back(found);
      out.found.back().kind = LineKind::restart;
    }
    out.last_us = record.time_us;
    out.least_us = std::min(out.least_us, record.time_us);
    out.most_us = std::max(out.most_us, record.time_us);
  }
  if (level <= 2) {
    out.found.push_back(found);
    return;
  }
  const char* message = record.line + record.message_at;
  const char* const end = record.line + record.size;
  // Colours and blanks: "ESC[32m hipSetDevice ( 0 ) ESC[0m".
  while (message < end && (*message == ' ' || *message == '\x1b')) {
    if (*message == ' ') {
      ++message;
      continue;
    }
    while (message < end && *message != 'm') ++message;
    if (message < end) ++message;
  }
  if (message == end) return;
  switch (kClasses[static_cast<unsigned char>(*message)]) {
    case call:
      found.message_at = static_cast<std::uint32_t>(message - record.line);
      take_call(message, static_cast<std::size_t>(end - message), found, out);
      return;
    case other:
      if (!classify({message, static_cast<std::size_t>(end - message)}, found.kind)) return;
      found.message_at = static_cast<std::uint32_t>(message - record.line);
      out.found.push_back(found);
      return;
    default:
      return;
  }
}

// hipMalloc ( 0x7fffea224e88, 4096 )
// hipMalloc: Returned hipSuccess : 0x7f3660900000: duration: 34 us
// __hipPushCallConfiguration ( {32,1,1}, {32,1,1}, 0, stream:0x1952020 )
void LineScanner::take_call(const char* message, std::size_t size, FoundLine& found, ScannedBlock& out) {
  if (std::memcmp(message, "hip", 3) != 0 && std::memcmp(message, "__hip", 5) != 0) return;
  // The name ends at a blank or a colon; words may reach into the margin, never beyond.
  std::size_t length = 0;
  std::uint64_t hash = 0;
  for (;;) {
    const std::uint64_t text = word(message + length);
    const std::uint64_t blank = text ^ 0x2020202020202020, colon = text ^ 0x3a3a3a3a3a3a3a3a;
    const std::uint64_t ends =
        (((blank - 0x0101010101010101) & ~blank) | ((colon - 0x0101010101010101) & ~colon)) & 0x8080808080808080;
    if (ends != 0) {
      const int bytes = std::countr_zero(ends) / 8;
      length += static_cast<std::size_t>(bytes);
      hash = (hash ^ (bytes == 0 ? 0 : text << (64 - 8 * bytes))) * 0x9E3779B97F4A7C15;
      break;
    }
    hash = (hash ^ text) * 0x9E3779B97F4A7C15;
    hash ^= hash >> 29;
    length += 8;
    if (length >= kLongestName || length >= size) return;
  }
  if (length + 2 >= size) return;
  const std::string_view rest{message + length, size - length};
  const bool is_return = rest.starts_with(": Returned ");
  if (!is_return && !rest.starts_with(" (")) return;
  const std::uint32_t index = name_index(message, length, hash ^ hash >> 32);
  if (index == UINT32_MAX) {
    const auto at = static_cast<std::size_t>(Unread::too_many_names);
    if (out.unread[at]++ == 0) out.first_unread[at] = out.lines;
    return;
  }
  Name& name = names_[index];
  if (name.begun == 0 && name.returned == 0) used_.push_back(index);
  if (is_return) {
    ++name.returned;
    const std::string_view status = rest.substr(11);
    if (!status.starts_with("hipSuccess") && !status.starts_with("hipErrorNotReady")) {
      if (name.failed++ == 0) name.first_status = status.substr(0, std::min<std::size_t>(status.find(' '), 64));
    }
  } else {
    ++name.begun;
  }
  if (!wants_calls_ && !name.is_ordered) return;
  found.kind = is_return ? LineKind::returned : LineKind::call;
  out.found.push_back(found);
}

std::uint32_t LineScanner::name_index(const char* text, std::size_t size, std::uint64_t hash) {
  const std::size_t wrap = slots_.size() - 1;
  for (std::size_t slot = hash & wrap;; slot = (slot + 1) & wrap) {
    const std::uint32_t at = slots_[slot];
    if (at == 0) {
      if (names_.size() == kMostNames) return UINT32_MAX;
      Name& name = names_.emplace_back();
      name.text.assign(text, size);
      name.is_ordered = is_ordered(name.text);
      slots_[slot] = static_cast<std::uint32_t>(names_.size());
      return slots_[slot] - 1;
    }
    const std::string& known = names_[at - 1].text;
    if (known.size() == size && std::memcmp(known.data(), text, size) == 0) return at - 1;
  }
}

void LineScanner::finish(ScannedBlock& out) {
  for (const std::uint32_t index : used_) {
    Name& name = names_[index];
    out.calls.push_back({&name.text, name.begun, name.returned, name.failed, std::move(name.first_status)});
    name.begun = name.returned = name.failed = 0;
    name.first_status.clear();
  }
  used_.clear();
}

}  // namespace weir::amd
