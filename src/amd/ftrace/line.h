// One line of the kernel tracer's text, taken apart: who, where, when, and what of which form. Knows the tracer's
// grammar in its variants; no function of any driver.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "amd/ftrace/kfd_span.h"

namespace weir::ftrace {

enum class LineKind : std::uint8_t {
  blank,           // nothing to say: empty, the header's drawings, marks of interrupts
  header,          // "# tracer: function", "# entries-in-buffer/entries-written: 10/20   #P:8"
  lost,            // "CPU:5 [LOST 123 EVENTS]"
  buffer_started,  // "##### CPU 2 buffer started ####"
  function,        // NAME <-PARENT
  call,            // graph: NAME() {
  leaf,            // graph: NAME();
  close,           // graph: }
  probe,           // PROBE: (NAME+0x0/0x1f0 [amdgpu]) args
  probe_return,    // PROBE: (CALLER+0x2c/0x90 <- NAME) args
  event,           // NAME: text: trace events, and texts of trace_printk after the function that wrote them
  syscall,         // sys_NAME(fd: 3, cmd: c0604b02, arg: 7ffd)
  syscall_return,  // sys_NAME -> 0x0
  task_switch,     // graph: "5)  python3-123  =>  kworker-77"
  unreadable,
};

// Views are of the line. What a line does not say keeps its first value.
struct TraceLine {
  LineKind kind = LineKind::unreadable;
  int pid = -1, cpu = -1;
  std::optional<int> tgid;
  bool is_interrupt = false;  // by the flags: what ran is not the thread's own
  bool is_graph = false;      // an event within a graph has no indentation to go by, but is told by the graph's columns
  std::int64_t at_ns = kNoTime;
  std::int64_t resolution_ns = 1000;   // of at_ns
  std::string_view name, parent;       // letters, digits and _ only; without offset, module and compiler's suffix
  std::uint64_t offset = 0;            // of a probe within NAME
  std::string_view text;               // args, an event's text, a header's line
  int indent = 0;                      // graph: columns before the call
  std::int64_t duration_ns = -1;       // graph
  std::optional<std::int64_t> result;  // graph with funcgraph-retval, syscall_return
  std::uint64_t lost = 0;              // 0: not told how many
  int next_pid = -1;                   // task_switch: pid is the one before
  const char* problem = nullptr;       // of an unreadable line
};

TraceLine parse_line(std::string_view line);

// The same for a line of function_graph's own columns, which has no "[CPU]":
//  5) ! 108.528 us  |  kfd_ioctl [amdgpu]() {
TraceLine parse_graph_line(std::string_view line);
// What stands behind the columns; `into` has them. For function_graph and for trace-cmd's funcgraph_entry lines.
void parse_graph_call(std::string_view call, TraceLine& into);
// "! 108.528 us", or nothing but blanks.
bool parse_graph_duration(std::string_view text, TraceLine& into);

// "12345.678901" or with nine digits; false where it is no time. `resolution_ns` follows the digits.
bool parse_stamp(std::string_view text, std::int64_t& ns, std::int64_t& resolution_ns);
// All of `text`, decimal or 0x...; false beyond 64 bits.
bool parse_whole(std::string_view text, std::uint64_t& value);
// A C symbol at the start, without ".constprop.0" and the like; empty where there is none. `taken` counts with them.
std::string_view symbol_at(std::string_view text, std::size_t* taken = nullptr);
std::string_view trimmed(std::string_view text);

// key=value in "pid=41 gpu_id=0xf7bc | Total=1", also "Process pid = 41," as KFD's events write it. Keys are whole
// words.
std::optional<std::uint64_t> value_of(std::string_view text, std::string_view key);

}  // namespace weir::ftrace
