#include "amd/ftrace/line.h"

#include <array>

#include "base/plain_text.h"

namespace weir::ftrace {
namespace {

// A table, because every letter of every name is looked up.
constexpr std::array<bool, 256> kIsSymbol = [] {
  std::array<bool, 256> table{};
  for (int c = 0; c < 256; ++c)
    table[static_cast<std::size_t>(c)] =
        (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
  return table;
}();
constexpr bool is_symbol(char c) { return kIsSymbol[static_cast<unsigned char>(c)]; }

std::string_view without_left_blanks(std::string_view text) {
  std::size_t at = 0;
  while (at < text.size() && (text[at] == ' ' || text[at] == '\t')) ++at;
  return text.substr(at);
}

// A plain loop, because find_first_of calls memchr for each letter.
std::size_t blank_or_colon(std::string_view text) {
  std::size_t at = 0;
  while (at < text.size() && text[at] != ' ' && text[at] != ':') ++at;
  return at < text.size() ? at : text.npos;
}

TraceLine unreadable(const char* why) {
  TraceLine line;
  line.problem = why;
  return line;
}

bool parse_int(std::string_view digits, int& value) {
  std::uint64_t whole = 0;
  if (digits.empty() || digits.size() > 10 || !parse_whole(digits, whole) || whole > INT32_MAX) return false;
  value = static_cast<int>(whole);
  return true;
}

// CPU:5 [LOST 123 EVENTS]      from tracefs; without a number if the kernel could not count
// CPU:5 [123 EVENTS DROPPED]   from trace-cmd
TraceLine parse_lost(std::string_view text) {
  TraceLine line;
  line.kind = LineKind::lost;
  const std::size_t open = text.find('[');
  parse_int(trimmed(text.substr(4, open - 4)), line.cpu);
  for (std::size_t at = open + 1; at < text.size(); ++at)
    if (is_digit(text[at])) {
      std::size_t end = at;
      while (end < text.size() && is_digit(text[end])) ++end;
      if (!parse_whole(text.substr(at, end - at), line.lost)) line.lost = 0;
      break;
    }
  return line;
}

// ##### CPU 2 buffer started ####
TraceLine parse_hash(std::string_view text) {
  TraceLine line;
  line.kind = LineKind::header;
  line.text = text;
  constexpr std::string_view kStarted = "##### CPU ";
  if (text.starts_with(kStarted) && text.find("buffer started") != text.npos) {
    line.kind = LineKind::buffer_started;
    const std::string_view rest = text.substr(kStarted.size());
    parse_int(rest.substr(0, rest.find(' ')), line.cpu);
  }
  return line;
}

// COMM-PID precedes "[CPU]", with "(TGID)" or "(-------)" in between if it was recorded. COMM may contain blanks and
// '-', so the PID follows the last '-'.
bool parse_task(std::string_view left, TraceLine& line) {
  left = trimmed(left);
  if (left.ends_with(')')) {
    const std::size_t open = left.rfind('(');
    if (open == left.npos) return false;
    int tgid = 0;
    if (parse_int(trimmed(left.substr(open + 1, left.size() - open - 2)), tgid)) line.tgid = tgid;
    left = trimmed(left.substr(0, open));
  }
  const std::size_t dash = left.rfind('-');
  return dash != left.npos && parse_int(left.substr(dash + 1), line.pid);
}

// "....", "d..2.", "....." or nothing, then the time and ':'. Returns the rest, or null. The third flag is h or H in an
// interrupt, s in a softirq, z or Z in an NMI.
const char* parse_flags_and_time(std::string_view right, TraceLine& line) {
  right = without_left_blanks(right);
  std::size_t end = blank_or_colon(right);
  if (end == right.npos) return nullptr;
  if (right[end] == ' ') {
    const std::string_view flags = right.substr(0, end);
    if (flags.size() > 8) return nullptr;
    line.is_interrupt = flags.size() >= 3 && std::string_view("hHsSzZ").find(flags[2]) != std::string_view::npos;
    right = without_left_blanks(right.substr(end));
    end = blank_or_colon(right);
    if (end == right.npos || right[end] != ':') return nullptr;
  }
  const std::string_view stamp = right.substr(0, end);
  if (!parse_stamp(stamp, line.at_ns, line.resolution_ns)) {
    // The clocks `counter` and `x86-tsc` print plain numbers that are not times.
    std::uint64_t ticks = 0;
    if (!parse_whole(stamp, ticks)) return nullptr;
  }
  return right.data() + end + 1;
}

// After a symbol: "+0x0/0x1f0" (option sym-offset), "(args)", " [amdgpu]".
std::string_view after_symbol(std::string_view text, std::uint64_t* offset) {
  if (text.starts_with('+')) {
    const std::size_t slash = text.find('/');
    std::uint64_t value = 0;
    if (offset && slash != text.npos && parse_whole(text.substr(1, slash - 1), value)) *offset = value;
    text = text.substr(std::min(text.size(), text.find_first_of(" )", 1)));
  }
  if (text.starts_with('(')) text = text.substr(std::min(text.size(), text.find(')') + 1));
  if (text.starts_with(" [")) {
    const std::size_t close = text.find(']');
    if (close != text.npos) text = text.substr(close + 1);
  }
  return text;
}

// (kfd_ioctl_create_queue+0x0/0x5c0 [amdgpu]) pid=41      entry
// (kfd_ioctl+0x2c/0x90 [amdgpu] <- kfd_ioctl_create_queue) ret=0x0
bool parse_probe(std::string_view text, TraceLine& line) {
  std::size_t taken = 0;
  const std::string_view first = symbol_at(text.substr(1), &taken);
  if (first.empty()) return false;
  std::uint64_t offset = 0;
  std::string_view rest = after_symbol(text.substr(1 + taken), &offset);
  if (rest.starts_with(')')) {
    line.kind = LineKind::probe;
    line.name = first;
    line.offset = offset;
    line.text = rest.substr(1);
    return true;
  }
  rest = without_left_blanks(rest);
  if (!rest.starts_with("<-")) return false;
  rest = without_left_blanks(rest.substr(2));
  line.name = symbol_at(rest, &taken);
  rest = after_symbol(rest.substr(taken), nullptr);
  if (line.name.empty() || !rest.starts_with(')')) return false;
  line.kind = LineKind::probe_return;
  line.parent = first;
  line.text = rest.substr(1);
  return true;
}

// trace-cmd's prefix before the bodies of its own events.
bool parse_trace_cmd(std::string_view event, std::string_view text, TraceLine& line) {
  text = without_left_blanks(text);
  if (event == "function") {  // function:             kfd_ioctl <-- do_syscall_64
    std::size_t taken = 0;
    line.name = symbol_at(text, &taken);
    const std::size_t arrow = text.find("<-", taken);
    if (line.name.empty() || arrow == text.npos) return false;
    std::string_view parent = text.substr(arrow + 2);
    if (parent.starts_with('-')) parent.remove_prefix(1);
    line.parent = symbol_at(without_left_blanks(parent));
    line.kind = LineKind::function;
    return true;
  }
  if (event == "funcgraph_entry" || event == "funcgraph_exit") {  // funcgraph_exit:  ! 108.528 us  |  }
    const std::size_t bar = text.find('|');
    if (bar == text.npos || !parse_graph_duration(text.substr(0, bar), line)) return false;
    line.is_graph = true;
    parse_graph_call(text.substr(bar + 1), line);
    return line.kind != LineKind::unreadable;
  }
  return false;
}

void parse_body(std::string_view body, TraceLine& line) {
  body = without_left_blanks(body);
  std::size_t taken = 0;
  const std::string_view name = symbol_at(body, &taken);
  if (name.empty()) {
    line.problem = "nothing follows the time that a tracer writes";
    return;
  }
  std::string_view rest = body.substr(taken);
  if (rest.starts_with(": ") || rest == ":") {
    const std::string_view text = rest.substr(1);
    const std::string_view inner = without_left_blanks(text);
    if (inner.starts_with('(') && parse_probe(inner, line)) return;
    if (parse_trace_cmd(name, text, line)) return;
    // sys_enter_ioctl: fd: 0x00000003, cmd: 0xc0604b02, arg: 0x7ffd     from trace-cmd
    line.kind = name.starts_with("sys_enter_")  ? LineKind::syscall
                : name.starts_with("sys_exit_") ? LineKind::syscall_return
                                                : LineKind::event;
    line.name = name;
    if (line.kind == LineKind::syscall) line.name.remove_prefix(10);
    if (line.kind == LineKind::syscall_return) {
      line.name.remove_prefix(9);
      std::uint64_t value = 0;
      if (parse_whole(trimmed(inner), value)) line.result = static_cast<std::int64_t>(value);
    }
    line.text = inner;
    if ((name == "bprint" || name == "print" || name == "bputs") && !inner.empty()) {
      // bprint:   FUNC: text    from trace-cmd
      std::size_t inner_taken = 0;
      const std::string_view writer = symbol_at(inner, &inner_taken);
      if (!writer.empty() && inner.substr(inner_taken).starts_with(": ")) {
        line.name = writer;
        line.text = inner.substr(inner_taken + 2);
      }
    }
    return;
  }
  if (name.starts_with("sys_")) {
    // sys_ioctl(fd: 3, cmd: c0604b02, arg: 7ffd1c7c9d80)
    // sys_ioctl -> 0x0
    if (rest.starts_with('(') && rest.find("<-") == rest.npos) {
      line.kind = LineKind::syscall;
      line.name = name.substr(4);
      line.text = rest.substr(1);
      return;
    }
    if (rest.starts_with(" -> ")) {
      line.kind = LineKind::syscall_return;
      line.name = name.substr(4);
      std::uint64_t value = 0;
      if (parse_whole(trimmed(rest.substr(4)), value)) line.result = static_cast<std::int64_t>(value);
      return;
    }
  }
  // kfd_ioctl <-do_syscall_64
  // kfd_ioctl+0x0/0x480 [amdgpu] <-do_syscall_64+0x34/0x40     option sym-offset
  // kfd_ioctl(filep=0x..., cmd=0xc0604b02) <-do_syscall_64     option func-args
  const std::size_t arrow = rest.find("<-");
  if (arrow == rest.npos) {
    line.problem = "neither a function, an event nor a probe";
    return;
  }
  line.kind = LineKind::function;
  line.name = name;
  line.parent = symbol_at(without_left_blanks(rest.substr(arrow + 2)));
}

}  // namespace

std::string_view trimmed(std::string_view text) {
  text = without_left_blanks(text);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t' || text.back() == '\r')) text.remove_suffix(1);
  return text;
}

bool parse_whole(std::string_view text, std::uint64_t& value) {
  std::uint64_t base = 10;
  if (text.starts_with("0x") || text.starts_with("0X")) {
    base = 16;
    text.remove_prefix(2);
  }
  if (text.empty()) return false;
  const bool may_overflow = text.size() > (base == 16 ? 16U : 19U);  // otherwise the loop needs no division per digit
  std::uint64_t sum = 0;
  for (const char c : text) {
    std::uint64_t digit = 0;
    if (is_digit(c)) {
      digit = static_cast<std::uint64_t>(c - '0');
    } else if (base == 16 && ((c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F'))) {
      digit = static_cast<std::uint64_t>((c | 0x20) - 'a') + 10;
    } else {
      return false;
    }
    if (may_overflow && sum > (UINT64_MAX - digit) / base) return false;
    sum = sum * base + digit;
  }
  value = sum;
  return true;
}

bool parse_stamp(std::string_view text, std::int64_t& ns, std::int64_t& resolution_ns) {
  const std::size_t dot = text.find('.');
  if (dot == text.npos || dot == 0 || dot > 10) return false;
  const std::string_view fraction = text.substr(dot + 1);
  if (fraction.empty() || fraction.size() > 9) return false;
  std::int64_t seconds = 0, parts = 0, unit = 1'000'000'000;
  for (const char c : text.substr(0, dot)) {
    if (!is_digit(c)) return false;
    seconds = seconds * 10 + (c - '0');
  }
  if (seconds > 9'000'000'000) return false;
  for (const char c : fraction) {
    if (!is_digit(c)) return false;
    parts = parts * 10 + (c - '0');
    unit /= 10;
  }
  ns = seconds * 1'000'000'000 + parts * unit;
  resolution_ns = unit;
  return true;
}

std::string_view symbol_at(std::string_view text, std::size_t* taken) {
  std::size_t end = 0;
  while (end < text.size() && is_symbol(text[end])) ++end;
  if (end == 0 || is_digit(text[0])) {
    if (taken) *taken = 0;
    return {};
  }
  // create_queue_cpsch.isra.0, update_queue.constprop.0, map_queues_cpsch.part.0: copies made by the compiler.
  std::size_t suffix = end;
  while (suffix < text.size() && (is_symbol(text[suffix]) || text[suffix] == '.')) ++suffix;
  if (taken) *taken = suffix;
  return text.substr(0, end);
}

std::optional<std::uint64_t> value_of(std::string_view text, std::string_view key) {
  for (std::size_t at = text.find(key); at != text.npos; at = text.find(key, at + 1)) {
    if (at > 0 && is_symbol(text[at - 1])) continue;
    std::string_view rest = without_left_blanks(text.substr(at + key.size()));
    if (!rest.starts_with('=') && !rest.starts_with(':')) continue;
    rest = without_left_blanks(rest.substr(1));
    std::uint64_t value = 0;
    const bool is_negative = rest.starts_with('-');
    if (is_negative) rest.remove_prefix(1);
    std::size_t end = 0;
    while (end < rest.size() && is_symbol(rest[end])) ++end;
    if (!parse_whole(rest.substr(0, end), value)) continue;
    return is_negative ? ~value + 1 : value;
  }
  return std::nullopt;
}

TraceLine parse_line(std::string_view text) {
  if (!text.empty() && text.back() == '\r') text.remove_suffix(1);
  const std::string_view start = without_left_blanks(text);
  if (start.empty()) return {.kind = LineKind::blank};
  if (start[0] == '#') return parse_hash(start);
  if (start.starts_with("CPU:") && start.find("EVENTS") != start.npos && start.find('[') != start.npos)
    return parse_lost(start);
  // trace-cmd's first lines
  if (start.starts_with("cpus=") || start.starts_with("version = ") || start.ends_with(" is empty"))
    return {.kind = LineKind::blank};
  //          python3-157801  [005] .... 175037.104830: kfd_ioctl <-do_syscall_64
  //      Web Content-4021    (   4000) [011] d..2. 175037.104830: kfd_ioctl <-do_syscall_64
  // Names may contain brackets too: the CPU column is the first bracket whose neighbouring columns all fit.
  int tries = 0;
  for (std::size_t open = text.find('['); open != text.npos && tries < 4; open = text.find('[', open + 1), ++tries) {
    const std::size_t close = text.find(']', open);
    if (close == text.npos) break;
    TraceLine line;
    if (close - open > 8 || !parse_int(text.substr(open + 1, close - open - 1), line.cpu)) continue;
    if (!parse_task(text.substr(0, open), line)) continue;
    const char* body = parse_flags_and_time(text.substr(close + 1), line);
    if (!body) continue;
    parse_body(text.substr(static_cast<std::size_t>(body - text.data())), line);
    return line;
  }
  if (text.find('|') != text.npos || text.find("=>") != text.npos || start.starts_with("-----"))
    return parse_graph_line(text);
  return unreadable("no columns of a kernel trace");
}

}  // namespace weir::ftrace
