// Parses the columns of function_graph. Knows the tracer's grammar, but no driver's functions.
#include <algorithm>

#include "amd/ftrace/line.h"
#include "base/plain_text.h"

namespace weir::ftrace {
namespace {

bool parse_small(std::string_view digits, int& value) {
  std::uint64_t whole = 0;
  if (digits.empty() || digits.size() > 10 || !is_digit(digits[0]) || !parse_whole(digits, whole) || whole > INT32_MAX)
    return false;
  value = static_cast<int>(whole);
  return true;
}

// "python3-123": the PID follows the last '-'.
bool parse_task(std::string_view text, int& pid) {
  text = trimmed(text);
  const std::size_t dash = text.rfind('-');
  return dash != text.npos && parse_small(text.substr(dash + 1), pid);
}

// "0x0", "-22", "0xffffffea": read as the kernel's int.
std::optional<std::int64_t> parse_result(std::string_view text) {
  text = trimmed(text);
  const bool is_negative = text.starts_with('-');
  if (is_negative) text.remove_prefix(1);
  std::uint64_t value = 0;
  if (!parse_whole(text.substr(0, text.find_first_of(" ,")), value)) return std::nullopt;
  return static_cast<std::int64_t>(is_negative ? ~value + 1 : value);
}

// Comments after a call or a closing bracket:
//   /* kfd_ioctl [amdgpu] */           funcgraph-tail
//   /* kfd_ioctl [amdgpu] = -22 */     with funcgraph-retval, since 6.5; /* = 0x0 */ after a leaf
//   /* kfd_ioctl [amdgpu] ret=0x0 */   the same, since 6.14
//   /* <-do_syscall_64 */              funcgraph-retaddr
void parse_comment(std::string_view text, TraceLine& into) {
  const std::size_t open = text.find("/*");
  if (open == text.npos) return;
  text = trimmed(text.substr(open + 2));
  text = trimmed(text.substr(0, text.rfind("*/")));
  if (into.kind == LineKind::close) into.name = symbol_at(text);
  if (const std::size_t at = text.find("ret="); at != text.npos) {
    into.result = parse_result(text.substr(at + 4));
  } else if (const std::size_t equals = text.find("= "); equals != text.npos) {
    into.result = parse_result(text.substr(equals + 2));
  }
}

}  // namespace

// `  0.512 us  `, `! 108.528 us `, `# 1837.709 us`: + over 10 us, ! 100 us, # 1 ms, * 10 ms, @ 100 ms, $ 1 s. The
// kernel prints at most seven digits, so long durations have fewer decimals or none.
bool parse_graph_duration(std::string_view text, TraceLine& into) {
  text = trimmed(text);
  if (text.empty()) return true;
  if (std::string_view("+!#*@$").find(text[0]) != std::string_view::npos) text = trimmed(text.substr(1));
  if (!text.ends_with("us")) return false;
  text = trimmed(text.substr(0, text.size() - 2));
  const std::size_t dot = std::min(text.find('.'), text.size());
  std::string_view fraction = text.substr(std::min(text.size(), dot + 1));
  std::uint64_t whole = 0;
  if (dot == 0 || dot > 12 || fraction.size() > 3 || !is_digit(text[0]) || !parse_whole(text.substr(0, dot), whole))
    return false;
  std::int64_t ns = 0, unit = 1000;
  for (const char c : fraction) {
    if (!is_digit(c)) return false;
    ns = ns * 10 + (c - '0');
    unit /= 10;
  }
  into.duration_ns = static_cast<std::int64_t>(whole) * 1000 + ns * unit;
  return true;
}

void parse_graph_call(std::string_view call, TraceLine& into) {
  std::size_t indent = 0;
  while (indent < call.size() && call[indent] == ' ') ++indent;
  into.indent = static_cast<int>(std::min<std::size_t>(indent, 1 << 20));
  call = trimmed(call);
  if (call.empty()) {
    into.kind = LineKind::blank;
    return;
  }
  if (call[0] == '}') {
    into.kind = LineKind::close;
    parse_comment(call.substr(1), into);
    return;
  }
  if (call.starts_with("/*")) {
    // /* kfd_evict_process_worker_start: Process pid=41 */    an event; texts of trace_printk have no name before them
    std::string_view text = trimmed(call.substr(2));
    if (text.ends_with("*/")) text = trimmed(text.substr(0, text.size() - 2));
    std::size_t taken = 0;
    into.kind = LineKind::event;
    into.name = symbol_at(text, &taken);
    if (!into.name.empty() && text.substr(taken).starts_with(':')) {
      into.text = trimmed(text.substr(taken + 1));
    } else {
      into.name = {};
      into.text = text;
    }
    return;
  }
  std::size_t taken = 0;
  const std::string_view name = symbol_at(call, &taken);
  std::string_view rest = call.substr(taken);
  if (rest.starts_with(" [")) rest = rest.substr(std::min(rest.size(), rest.find(']') + 1));
  if (name.empty() || !rest.starts_with('(')) {
    into.problem = "no call after the columns of function_graph";
    return;
  }
  into.name = name;
  // Arguments (func-args, since 6.15) contain no brackets or braces, because values are numbers.
  const std::size_t close = rest.find(')');
  rest = close == rest.npos ? std::string_view{} : trimmed(rest.substr(close + 1));
  if (rest.starts_with(';')) {
    into.kind = LineKind::leaf;
    parse_comment(rest.substr(1), into);
  } else if (rest.starts_with('{')) {
    into.kind = LineKind::call;
  } else {
    into.name = {};
    into.problem = "no call after the columns of function_graph";
  }
}

TraceLine parse_graph_line(std::string_view text) {
  TraceLine line;
  line.is_graph = true;
  std::string_view rest = trimmed(text);
  if (rest.starts_with("-----")) {  //  ------------------------------------------     around a task switch
    line.kind = LineKind::blank;
    return line;
  }
  // 175037.104830 |   5)   python3-123   |  d..1 | ! 108.528 us  |  kfd_ioctl [amdgpu]() {
  // Any column except the last may be missing, depending on funcgraph-abstime, -cpu, -proc and latency-format.
  const auto column = [&rest]() -> std::string_view { return rest.substr(0, rest.find('|')); };
  if (const std::size_t end = rest.find('|'); end != rest.npos)
    if (parse_stamp(trimmed(column()), line.at_ns, line.resolution_ns)) rest = trimmed(rest.substr(end + 1));
  std::size_t digits = 0;
  while (digits < rest.size() && is_digit(rest[digits])) ++digits;
  if (digits > 0 && digits < rest.size() && rest[digits] == ')') {
    if (!parse_small(rest.substr(0, digits), line.cpu)) {
      line.problem = "a CPU that is not a number";
      return line;
    }
    rest = rest.substr(digits + 1);
  }
  //  5)  python3-123  =>  kworker-77
  if (const std::size_t arrow = rest.find("=>"); arrow != rest.npos && rest.find('|') == rest.npos) {
    if (parse_task(rest.substr(0, arrow), line.pid) && parse_task(rest.substr(arrow + 2), line.next_pid))
      line.kind = LineKind::task_switch;
    else
      line.problem = "a task switch without both tasks";
    return line;
  }
  for (int columns = 0; columns < 3; ++columns) {
    const std::size_t end = rest.find('|');
    if (end == rest.npos) break;
    const std::string_view cell = trimmed(column());
    const std::string_view after = rest.substr(end + 1);
    if (cell.find("==========") != cell.npos) {  //  5)   ==========> |    an interrupt begins; <========== it ends
      line.kind = LineKind::blank;
      return line;
    }
    int pid = -1;
    if (line.pid < 0 && !cell.empty() && !cell.ends_with("us") && parse_task(cell, pid)) {
      line.pid = pid;
    } else if (parse_graph_duration(cell, line)) {
      parse_graph_call(after, line);
      return line;
    } else if (cell.empty() || cell.size() > 8) {
      break;
    }
    rest = after;
  }
  line.problem = "no columns of a kernel trace";
  return line;
}

}  // namespace weir::ftrace
