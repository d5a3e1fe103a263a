// What each form of trace proves about calls: functions name their callers, graphs and return probes show ends, and
// events come in pairs.
#include <algorithm>
#include <functional>

#include "amd/ftrace/spans.h"

namespace weir::ftrace {
namespace {

std::optional<KfdVerb> verb_of_ioctl(std::string_view name) {
  if (name == "create_queue") return KfdVerb::create;
  if (name == "destroy_queue") return KfdVerb::destroy;
  if (name == "update_queue" || name == "set_cu_mask") return KfdVerb::update;
  return std::nullopt;
}

// "fd: 3, cmd: c0604b02, arg: 7ffd1c7c9d80)", with or without 0x: always hexadecimal.
std::uint64_t ioctl_command(std::string_view text) {
  const std::size_t at = text.find("cmd:");
  if (at == text.npos) return 0;
  text = trimmed(text.substr(at + 4));
  text = text.substr(0, text.find_first_of(", )"));
  if (text.starts_with("0x")) text.remove_prefix(2);
  if (text.size() > 16) return 0;
  std::uint64_t command = 0;
  return parse_whole("0x" + std::string(text), command) ? command : 0;
}

}  // namespace

// kfd_ioctl_create_queue <-kfd_ioctl: earlier calls from kfd_ioctl have ended, but kfd_ioctl itself has not.
void SpanBuilder::on_function(Thread& thread, const TraceLine& line, const KfdFunction& function) {
  std::vector<Frame>& frames = thread.frames;
  const std::size_t parent = std::hash<std::string_view>{}(line.parent);
  const auto caller = std::find_if(frames.rbegin(), frames.rend(), [parent](const Frame& frame) {
    return frame.name == parent && (frame.style == Style::function || frame.style == Style::probe);
  });
  if (caller != frames.rend()) {
    const auto count = static_cast<std::size_t>(frames.rend() - caller);
    pop_to(thread, count, line.at_ns);
    touch(thread, count, line.at_ns);
  } else if (is_root(line.parent)) {
    const auto inside = std::find_if(frames.begin(), frames.end(),
                                     [](const Frame& frame) { return frame.style != Style::system_call; });
    const auto count = static_cast<std::size_t>(inside - frames.begin());
    pop_to(thread, count, line.at_ns);
    touch(thread, count, line.at_ns);
    if (function.level < 0) return;
  } else if (function.level >= 0) {
    push_apart(thread, line, line.name, function, Style::function);
    note_part(thread, line, function);
    return;
  } else {
    return;  // below an open function or after it: the filter excluded its caller
  }
  note_part(thread, line, function);
  push(thread, line, line.name, function, Style::function);
}

void SpanBuilder::on_graph_call(Thread& thread, const TraceLine& line, const KfdFunction& function) {
  // Indentation is depth: frames that are not further left have returned, even if the return was not seen.
  const auto ended = std::find_if(thread.frames.begin(), thread.frames.end(), [&](const Frame& frame) {
    return frame.style == Style::graph && frame.indent >= line.indent;
  });
  pop_to(thread, static_cast<std::size_t>(ended - thread.frames.begin()), line.at_ns);
  if (line.at_ns == kNoTime) ++counters_.without_time;
  touch(thread, thread.frames.size(), line.at_ns);
  note_part(thread, line, function);
  if (function.level < 0 && thread.frames.empty()) return;
  push(thread, line, line.name, function, Style::graph);
  if (line.kind == LineKind::leaf) end_exact(thread, thread.frames.size() - 1, line, line.duration_ns);
}

void SpanBuilder::on_graph_close(Thread& thread, const TraceLine& line) {
  const auto opened = std::find_if(thread.frames.begin(), thread.frames.end(), [&](const Frame& frame) {
    return frame.style == Style::graph && frame.indent >= line.indent;
  });
  const auto index = static_cast<std::size_t>(opened - thread.frames.begin());
  const bool is_same = opened != thread.frames.end() && opened->indent == line.indent &&
                       (line.name.empty() || opened->name == std::hash<std::string_view>{}(line.name));
  if (is_same) return end_exact(thread, index, line, line.duration_ns);
  pop_to(thread, index, line.at_ns);
  if (!line.name.empty() && function_of(line.name).verb) ++counters_.unmatched_returns;
}

void SpanBuilder::on_probe(Thread& thread, const TraceLine& line, const KfdFunction& function) {
  if (function.level < 0) return;
  note_part(thread, line, function);
  Frame& frame = push_apart(thread, line, line.name, function, Style::probe);
  Frame* const span = function.verb ? open_span(thread, *function.verb) : nullptr;
  annotate(span ? span->span : frame.span, line.text);
}

void SpanBuilder::on_probe_return(Thread& thread, const TraceLine& line, std::string_view name) {
  const std::size_t hash = std::hash<std::string_view>{}(name);
  std::vector<Frame>& frames = thread.frames;
  const auto found = std::find_if(frames.rbegin(), frames.rend(), [hash](const Frame& frame) {
    return frame.name == hash && (frame.style == Style::probe || frame.style == Style::function);
  });
  if (found == frames.rend()) {
    if (function_of(name).verb) ++counters_.unmatched_returns;
    return;
  }
  if (found->function.verb)
    if (Frame* const span = open_span(thread, *found->function.verb)) annotate(span->span, line.text);
  TraceLine returned = line;
  // ret=0x0 is named by the probe's author; arg1=0x0 appears if the author gave $retval no name.
  for (const std::string_view key : {"ret", "retval", "rc", "result", "arg1"})
    if (!returned.result)
      if (const auto value = value_of(line.text, key)) returned.result = static_cast<std::int64_t>(*value);
  end_exact(thread, static_cast<std::size_t>(frames.rend() - found) - 1, returned, -1);
}

// kfd_evict_process_worker_start: Process pid=41       _end: Process pid=41, StatusMsg=Success
// kfd_map_memory_to_gpu_start: Process pid =41         concerns memory, not queues
// amdgpu_sched_run_job: sched_job=7, timeline=comp_1.0.0, context=1, seqno=2, ring_name=comp_1.0.0, num_ibs=1
void SpanBuilder::on_event(Thread& thread, const TraceLine& line) {
  std::string_view name = line.name;
  KfdCalls& calls = counts_.calls();
  if (name == "kfd_map_memory_to_gpu_start") ++calls.memory_map;
  if (name == "kfd_kgd2kfd_schedule_evict_and_restore_process") ++calls.evict_scheduled;
  if (name == "amdgpu_cs_ioctl") ++calls.cs_ioctl;
  if (name == "amdgpu_sched_run_job" && line.text.find("ring_name=comp") != line.text.npos) ++calls.compute_ring_jobs;
  const bool is_start = name.ends_with("_start"), is_end = name.ends_with("_end");
  if (!is_start && !is_end) return;
  name.remove_suffix(is_start ? 6 : 4);
  if (name != "kfd_evict_process_worker" && name != "kfd_restore_process_worker") return;
  if (is_end) return on_probe_return(thread, line, name);
  const KfdFunction function = function_of(name);
  ++calls.known_verbs;
  push_apart(thread, line, name, function, Style::probe);
  if (Frame* const span = open_span(thread, *function.verb)) annotate(span->span, line.text);
}

void SpanBuilder::on_system_call(Thread& thread, const TraceLine& line) {
  pop_to(thread, 0, line.at_ns);  // a thread that starts a system call is in no other call
  if (line.name != "ioctl") return;
  const std::string_view name = kfd_ioctl_name(ioctl_command(line.text));
  if (name.empty()) return;
  counts_.count_system_call(name);
  push(thread, line, "ioctl", {KfdPart::none, KfdVerb::ioctl, -2}, Style::system_call);
  if (const auto verb = verb_of_ioctl(name)) push(thread, line, name, {KfdPart::none, verb, -1}, Style::system_call);
}

void SpanBuilder::on_system_call_return(Thread& thread, const TraceLine& line) {
  while (!thread.frames.empty() && line.name == "ioctl" && is_in_system_call(thread)) {
    std::size_t last = 0;
    while (last + 1 < thread.frames.size() && thread.frames[last + 1].style == Style::system_call) ++last;
    end_exact(thread, last, line, -1);
  }
}

}  // namespace weir::ftrace
