// Lines of all forms, one by one, as kernels from 4.x to 6.15 and trace-cmd print them.
#include "amd/ftrace/line.h"

#include <gtest/gtest.h>

#include <string>

namespace weir::ftrace {
namespace {

TEST(FtraceLine, reads_a_function_with_old_and_new_flags) {
  for (const char* flags : {"....", ".....", "d..2.", "...1"}) {
    const std::string text =
        "         python3-157801  [005] " + std::string(flags) + " 175037.104830: kfd_ioctl <-do_syscall_64";
    const TraceLine line = parse_line(text);
    ASSERT_EQ(line.kind, LineKind::function) << text;
    EXPECT_EQ(line.pid, 157801);
    EXPECT_EQ(line.cpu, 5);
    EXPECT_EQ(line.at_ns, 175037'104830'000);
    EXPECT_EQ(line.name, "kfd_ioctl");
    EXPECT_EQ(line.parent, "do_syscall_64");
    EXPECT_FALSE(line.is_interrupt);
    EXPECT_FALSE(line.tgid);
  }
}

TEST(FtraceLine, reads_a_line_without_flags) {
  const TraceLine line = parse_line("bash-1977 [000] 17284.993652: sys_close <-system_call_fastpath");
  EXPECT_EQ(line.kind, LineKind::function);
  EXPECT_EQ(line.at_ns, 17284'993652'000);
}

TEST(FtraceLine, reads_tgid_and_its_absence) {
  const TraceLine with = parse_line("  python3-4021    (   4000) [011] ..... 1.000002: kfd_ioctl <-do_syscall_64");
  EXPECT_EQ(with.tgid, 4000);
  EXPECT_EQ(with.pid, 4021);
  const TraceLine without = parse_line("  python3-4021    (-------) [011] ..... 1.000002: kfd_ioctl <-do_syscall_64");
  EXPECT_EQ(without.kind, LineKind::function);
  EXPECT_FALSE(without.tgid);
}

TEST(FtraceLine, takes_names_of_tasks_with_blanks_dashes_and_brackets) {
  for (const char* comm : {"Web Content", "kworker/u64:1-ev", "a-1 [b] -2", "<...>", "x[003]"}) {
    const TraceLine line = parse_line(std::string(comm) + "-77  [002] .... 5.000001: kfd_ioctl <-do_syscall_64");
    EXPECT_EQ(line.kind, LineKind::function) << comm;
    EXPECT_EQ(line.pid, 77) << comm;
    EXPECT_EQ(line.cpu, 2) << comm;
  }
}

TEST(FtraceLine, tells_interrupts_by_their_flag) {
  EXPECT_TRUE(parse_line("x-1 [000] d.h2. 1.000001: amdgpu_ih_process <-amdgpu_irq_handler").is_interrupt);
  EXPECT_TRUE(parse_line("x-1 [000] ..s1 1.000001: a <-b").is_interrupt);
  EXPECT_FALSE(parse_line("x-1 [000] d..2. 1.000001: a <-b").is_interrupt);
}

TEST(FtraceLine, takes_offsets_modules_arguments_and_compilers_suffixes_off_names) {
  const TraceLine offset =
      parse_line("x-1 [000] .... 1.000001: kfd_ioctl+0x0/0x480 [amdgpu] <-do_syscall_64+0x34/0x40");
  EXPECT_EQ(offset.name, "kfd_ioctl");
  EXPECT_EQ(offset.parent, "do_syscall_64");
  const TraceLine args = parse_line("x-1 [000] .... 1.000001: kfd_ioctl(filep=0xff, cmd=0xc0604b02) <-do_syscall_64");
  EXPECT_EQ(args.name, "kfd_ioctl");
  EXPECT_EQ(args.parent, "do_syscall_64");
  const TraceLine suffix = parse_line("x-1 [000] .... 1.000001: update_queue.constprop.0 <-pqm_update.isra.0");
  EXPECT_EQ(suffix.name, "update_queue");
  EXPECT_EQ(suffix.parent, "pqm_update");
}

TEST(FtraceLine, reads_probes_and_their_returns) {
  const TraceLine entry = parse_line(
      "x-1 [000] .... 1.000001: my_probe: (kfd_ioctl_create_queue+0x0/0x5c0 [amdgpu]) pid=41 ring_base=0x7f00");
  EXPECT_EQ(entry.kind, LineKind::probe);
  EXPECT_EQ(entry.name, "kfd_ioctl_create_queue");
  EXPECT_EQ(value_of(entry.text, "pid"), 41u);
  EXPECT_EQ(value_of(entry.text, "ring_base"), 0x7f00u);
  const TraceLine middle = parse_line("x-1 [000] .... 1.000001: p: (kfd_ioctl+0x1c4/0x5c0 [amdgpu])");
  EXPECT_EQ(middle.offset, 0x1c4u);
  const TraceLine exit =
      parse_line("x-1 [000] .... 1.000001: r: (kfd_ioctl+0x2c/0x90 [amdgpu] <- kfd_ioctl_create_queue) arg1=0x0");
  EXPECT_EQ(exit.kind, LineKind::probe_return);
  EXPECT_EQ(exit.name, "kfd_ioctl_create_queue");
  EXPECT_EQ(value_of(exit.text, "arg1"), 0u);
}

TEST(FtraceLine, reads_events_and_texts) {
  const TraceLine event = parse_line("x-1 [000] .... 1.000001: kfd_map_memory_to_gpu_start: Process pid =41");
  EXPECT_EQ(event.kind, LineKind::event);
  EXPECT_EQ(event.name, "kfd_map_memory_to_gpu_start");
  EXPECT_EQ(value_of(event.text, "pid"), 41u);
  const TraceLine text = parse_line(
      "x-1 [000] .... 1.000001: map_queues_cpsch: [KFD-TRACE] KFD_MAP_QUEUES_CPSCH: pid=4140775 queue_id=924");
  EXPECT_EQ(text.kind, LineKind::event);
  EXPECT_EQ(value_of(text.text, "queue_id"), 924u);
}

TEST(FtraceLine, reads_system_calls) {
  const TraceLine enter = parse_line("x-1 [000] .... 1.000001: sys_ioctl(fd: 3, cmd: c0604b02, arg: 7ffd1c7c9d80)");
  EXPECT_EQ(enter.kind, LineKind::syscall);
  EXPECT_EQ(enter.name, "ioctl");
  const TraceLine exit = parse_line("x-1 [000] .... 1.000001: sys_ioctl -> 0xfffffffffffffff4");
  EXPECT_EQ(exit.kind, LineKind::syscall_return);
  EXPECT_EQ(exit.result, -12);
}

TEST(FtraceLine, reads_what_trace_cmd_prints) {
  const TraceLine function =
      parse_line("  bash-1977  [000] 17284.993652: function:             kfd_ioctl <-- do_syscall_64");
  EXPECT_EQ(function.kind, LineKind::function);
  EXPECT_EQ(function.name, "kfd_ioctl");
  EXPECT_EQ(function.parent, "do_syscall_64");
  const TraceLine call = parse_line("  bash-1977  [000] 1.000002: funcgraph_entry:                   |  kfd_ioctl() {");
  EXPECT_EQ(call.kind, LineKind::call);
  EXPECT_TRUE(call.is_graph);
  const TraceLine leaf = parse_line("  bash-1977  [000] 1.000002: funcgraph_entry:        0.580 us   |    kfd_open();");
  EXPECT_EQ(leaf.kind, LineKind::leaf);
  EXPECT_EQ(leaf.duration_ns, 580);
  EXPECT_GT(leaf.indent, call.indent);
  const TraceLine close = parse_line("  bash-1977  [000] 1.000002: funcgraph_exit:       ! 108.528 us |  }");
  EXPECT_EQ(close.kind, LineKind::close);
  EXPECT_EQ(close.duration_ns, 108528);
  const TraceLine enter =
      parse_line("  bash-1977  [000] 1.000002: sys_enter_ioctl:      fd: 0x3, cmd: 0xc0604b02, arg: 0x7f");
  EXPECT_EQ(enter.kind, LineKind::syscall);
  EXPECT_EQ(enter.name, "ioctl");
  EXPECT_EQ(parse_line("  bash-1977  [000] 1.000002: sys_exit_ioctl:       0x0").result, 0);
  const TraceLine text =
      parse_line("  bash-1977  [000] 1.000002: bprint:               map_queues_cpsch: [KFD-TRACE] X: a=1");
  EXPECT_EQ(text.name, "map_queues_cpsch");
  EXPECT_EQ(text.text, "[KFD-TRACE] X: a=1");
}

TEST(FtraceLine, reads_lost_events_and_started_buffers) {
  const TraceLine lost = parse_line("CPU:5 [LOST 123 EVENTS]");
  EXPECT_EQ(lost.kind, LineKind::lost);
  EXPECT_EQ(lost.lost, 123u);
  EXPECT_EQ(lost.cpu, 5);
  EXPECT_EQ(parse_line("CPU:0 [LOST EVENTS]").kind, LineKind::lost);
  EXPECT_EQ(parse_line("CPU:0 [LOST EVENTS]").lost, 0u);
  EXPECT_EQ(parse_line("CPU:7 [42 EVENTS DROPPED]").lost, 42u);
  EXPECT_EQ(parse_line("##### CPU 2 buffer started ####").kind, LineKind::buffer_started);
  EXPECT_EQ(parse_line("##### CPU 2 buffer started ####").cpu, 2);
}

TEST(FtraceLine, reads_graphs_with_any_columns) {
  struct Case {
    const char* text;
    LineKind kind;
    int cpu, pid;
    std::int64_t at_ns, duration_ns;
    const char* name;
  };
  const Case cases[] = {
      {" 0)               |  kfd_ioctl [amdgpu]() {", LineKind::call, 0, -1, kNoTime, -1, "kfd_ioctl"},
      {" 0)   0.580 us    |    kfd_open();", LineKind::leaf, 0, -1, kNoTime, 580, "kfd_open"},
      {" 11) ! 108.528 us  |  }", LineKind::close, 11, -1, kNoTime, 108528, ""},
      {" 0) # 1837.709 us |          } /* __switch_to */", LineKind::close, 0, -1, kNoTime, 1837709, "__switch_to"},
      {" 3) * 12345.67 us |  }", LineKind::close, 3, -1, kNoTime, 12345670, ""},
      {" 3) @ 123456.7 us |  }", LineKind::close, 3, -1, kNoTime, 123456700, ""},
      {" 3) $ 1234567 us  |  }", LineKind::close, 3, -1, kNoTime, 1234567000, ""},
      {" 3) + 12.000 us   |  a();", LineKind::leaf, 3, -1, kNoTime, 12000, "a"},
      {"175037.104830 |   5)   python3-123   | ! 108.528 us  |  kfd_ioctl [amdgpu]();", LineKind::leaf, 5, 123,
       175037'104830'000, 108528, "kfd_ioctl"},
      {" 5)  Web Content-12  |               |  a.isra.0 [amdgpu]() {", LineKind::call, 5, 12, kNoTime, -1, "a"},
      {" 5)  python3-12   |  d..1 |   0.512 us    |  a();", LineKind::leaf, 5, 12, kNoTime, 512, "a"},
      {" 5)   0.512 us    |  a(x=0x1, y=2); /* ret=0x0 */", LineKind::leaf, 5, -1, kNoTime, 512, "a"},
  };
  for (const Case& one : cases) {
    const TraceLine line = parse_line(one.text);
    EXPECT_EQ(line.kind, one.kind) << one.text;
    EXPECT_EQ(line.cpu, one.cpu) << one.text;
    EXPECT_EQ(line.pid, one.pid) << one.text;
    EXPECT_EQ(line.at_ns, one.at_ns) << one.text;
    EXPECT_EQ(line.duration_ns, one.duration_ns) << one.text;
    EXPECT_EQ(line.name, one.name) << one.text;
  }
}

TEST(FtraceLine, reads_return_values_of_graphs) {
  EXPECT_EQ(parse_line(" 0) 1.000 us | } /* kfd_ioctl [amdgpu] = -22 */").result, -22);
  EXPECT_EQ(parse_line(" 0) 1.000 us | } /* kfd_ioctl [amdgpu] ret=0x0 */").result, 0);
  EXPECT_EQ(parse_line(" 0) 1.000 us | kfd_ioctl [amdgpu](); /* = 0x5 */").result, 5);
  EXPECT_EQ(parse_line(" 0) 1.000 us | kfd_ioctl [amdgpu](); /* <-do_syscall_64 ret=0x7 */").result, 7);
  EXPECT_FALSE(parse_line(" 0) 1.000 us | } /* kfd_ioctl [amdgpu] */").result);
}

TEST(FtraceLine, reads_task_switches_and_comments_of_graphs) {
  const TraceLine task = parse_line(" 5)  python3-123  =>  kworker/u64:1-77");
  EXPECT_EQ(task.kind, LineKind::task_switch);
  EXPECT_EQ(task.pid, 123);
  EXPECT_EQ(task.next_pid, 77);
  EXPECT_EQ(parse_line(" ------------------------------------------").kind, LineKind::blank);
  EXPECT_EQ(parse_line(" 5)   ==========> |").kind, LineKind::blank);
  const TraceLine event = parse_line(" 5)               |  /* kfd_evict_process_worker_start: Process pid=41 */");
  EXPECT_EQ(event.kind, LineKind::event);
  EXPECT_EQ(event.name, "kfd_evict_process_worker_start");
  EXPECT_EQ(event.text, "Process pid=41");
}

TEST(FtraceLine, says_why_a_line_cannot_be_read) {
  for (const char* text :
       {"hello", "x-1 [000] .... 1.000001: 12", "x-1 [000] .... abc: kfd_ioctl <-a", " 5) 12.5 ns | a();",
        " 5)  x  =>  y", "x-99999999999 [000] 1.000001: a <-b", "a | b | c | d | e"}) {
    const TraceLine line = parse_line(text);
    EXPECT_EQ(line.kind, LineKind::unreadable) << text;
    EXPECT_NE(line.problem, nullptr) << text;
  }
}

TEST(FtraceLine, has_no_time_where_the_clock_counts_ticks) {
  const TraceLine line = parse_line("x-1 [000] .... 123456789: kfd_ioctl <-do_syscall_64");
  EXPECT_EQ(line.kind, LineKind::function);
  EXPECT_EQ(line.at_ns, kNoTime);
}

TEST(FtraceLine, reads_stamps_of_nine_digits) {
  const TraceLine line = parse_line("x-1 [000] 12.000000007: function: kfd_ioctl <-- a");
  EXPECT_EQ(line.at_ns, 12'000000007);
  EXPECT_EQ(line.resolution_ns, 1);
}

TEST(FtraceLine, takes_whole_keys_only) {
  EXPECT_EQ(value_of("doorbell_offset_in_process=0x20 doorbell_offset=0x10", "doorbell_offset"), 0x10u);
  EXPECT_EQ(value_of("my_pid=3 pid=4", "pid"), 4u);
  EXPECT_FALSE(value_of("pid=", "pid"));
  EXPECT_FALSE(value_of("pid=99999999999999999999999", "pid"));
  EXPECT_EQ(value_of("a=-5", "a"), static_cast<std::uint64_t>(-5));
}

}  // namespace
}  // namespace weir::ftrace
