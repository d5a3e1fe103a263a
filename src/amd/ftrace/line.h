// Parses one line of the kernel tracer's text: task, CPU, time, and the content by its form. Knows the variants of the
// tracer's grammar, but no driver's functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "amd/ftrace/kfd_span.h"

namespace weir::ftrace {

enum class LineKind : std::uint8_t {
  blank,           // nothing of interest: empty, the header's drawings, marks of interrupts
  header,          // "# tracer: function", "# entries-in-buffer/entries-written: 10/20   #P:8"
  lost,            // "CPU:5 [LOST 123 EVENTS]"
  buffer_started,  // "##### CPU 2 buffer started ####"
  function,        // NAME <-PARENT
  call,            // graph: NAME() {
  leaf,            // graph: NAME();
  close,           // graph: }
  probe,           // PROBE: (NAME+0x0/0x1f0 [amdgpu]) args
  probe_return,    // PROBE: (CALLER+0x2c/0x90 <- NAME) args
  event,           // NAME: text: trace events, and trace_printk texts after the function that printed them
  syscall,         // sys_NAME(fd: 3, cmd: c0604b02, arg: 7ffd)
  syscall_return,  // sys_NAME -> 0x0
  task_switch,     // graph: "5)  python3-123  =>  kworker-77"
  unreadable,
};

// Views point into the line. Fields that a line does not contain keep their defaults.
struct TraceLine {
  LineKind kind = LineKind::unreadable;
  int pid = -1, cpu = -1;
  std::optional<int> tgid;
  bool is_interrupt = false;  // from the flags: this code does not belong to the thread
  bool is_graph = false;      // the event has no indentation, but stands in the graph's columns
  std::int64_t at_ns = kNoTime;
  std::int64_t resolution_ns = 1000;   // of at_ns
  std::string_view name, parent;       // letters, digits and _ only; without offset, module and compiler suffix
  std::uint64_t offset = 0;            // of a probe within NAME
  std::string_view text;               // args, an event's text, a header's line
  int indent = 0;                      // graph: columns before the call
  std::int64_t duration_ns = -1;       // graph
  std::optional<std::int64_t> result;  // graph with funcgraph-retval, syscall_return
  std::uint64_t lost = 0;              // 0: the number was not given
  int next_pid = -1;                   // task_switch: pid is the previous task
  const char* problem = nullptr;       // why the line is unreadable
};

TraceLine parse_line(std::string_view line);

// The same for a line of function_graph's own columns, which has no "[CPU]":
//  5) ! 108.528 us  |  kfd_ioctl [amdgpu]() {
TraceLine parse_graph_line(std::string_view line);
// Parses the text after the columns, which `into` already has. For function_graph and trace-cmd's funcgraph_entry.
void parse_graph_call(std::string_view call, TraceLine& into);
// "! 108.528 us", or only blanks.
bool parse_graph_duration(std::string_view text, TraceLine& into);

// "12345.678901", or with nine digits; false if it is not a time. `resolution_ns` follows from the number of digits.
bool parse_stamp(std::string_view text, std::int64_t& ns, std::int64_t& resolution_ns);
// Parses all of `text`, decimal or 0x...; false beyond 64 bits.
bool parse_whole(std::string_view text, std::uint64_t& value);
// A C symbol at the start, without ".constprop.0" and the like; empty if there is none. `taken` includes such suffixes.
std::string_view symbol_at(std::string_view text, std::size_t* taken = nullptr);
std::string_view trimmed(std::string_view text);

// Finds key=value in "pid=41 gpu_id=0xf7bc | Total=1", also "Process pid = 41," as KFD's events print it. Keys match
// only as whole words.
std::optional<std::uint64_t> value_of(std::string_view text, std::string_view key);

}  // namespace weir::ftrace
