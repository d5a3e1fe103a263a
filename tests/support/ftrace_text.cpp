#include "support/ftrace_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

namespace weir::testing {
namespace {

constexpr std::int64_t kUs = 1000;

// One call of a function; `result` and `args` are what probes would fetch.
struct Call {
  std::string name, parent;
  std::int64_t from = 0, to = 0;
  int result = 0;
  std::string args;
  std::vector<Call> below;
};

struct Task {
  std::string comm;
  int pid = 0, tgid = 0, cpu = 0;
};

struct Root {
  Task task;
  Call call;
  int owner = 0;  // the process on whose behalf, as events name it
};

struct Line {
  std::int64_t at = 0;
  Task task;
  std::string text;
};

Call& add(Call& above, std::string name, std::int64_t from, std::int64_t to) {
  above.below.push_back({std::move(name), above.name, from, to, 0, "", {}});
  return above.below.back();
}

const SceneProcess& process_of(const Scene& scene, const SceneQueue& queue) {
  return scene.processes[static_cast<std::size_t>(queue.process)];
}

Task task_of(const Scene& scene, std::size_t queue, const TraceStyle& style) {
  const SceneProcess& process = process_of(scene, scene.queues[queue]);
  const int pid = asking_thread(scene, queue);
  return {process.comm, pid, process.host_pid, pid % style.cpus};
}

Root create_root(const Scene& scene, std::size_t index, const TraceStyle& style, int result, std::int64_t from,
                 std::int64_t to) {
  const SceneQueue& queue = scene.queues[index];
  const SceneGpu& gpu = scene.gpus[static_cast<std::size_t>(queue.gpu)];
  Root root{task_of(scene, index, style),
            {"kfd_ioctl", "__x64_sys_ioctl", from, to, result, "cmd=0xc0604b02", {}},
            process_of(scene, queue).host_pid};
  Call& handler = add(root.call, "kfd_ioctl_create_queue", from + kHandlerInset_ns, to - kHandlerInset_ns);
  handler.result = result;
  handler.args = fmt::format("pid={} gpu_id={:#x}", process_of(scene, queue).host_pid, gpu.gpu_id);
  if (result == 0)
    handler.args += fmt::format(" queue_id={} ring_base={:#x} doorbell={:#x} mqd_addr={:#x}", queue.id, queue.ring_base,
                                queue.doorbell, queue.mqd_base);
  Call& pqm = add(handler, "pqm_create_queue", from + 2 * kUs, to - 2 * kUs);
  pqm.result = result;
  if (result != 0) return root;
  Call& create = add(pqm, "create_queue_cpsch", from + 3 * kUs, to - 3 * kUs);
  add(create, "allocate_doorbell", from + 4 * kUs, from + 5 * kUs);
  add(create, queue.is_sdma ? "allocate_sdma_mqd" : "allocate_mqd", from + 6 * kUs, from + 9 * kUs);
  if (queue.is_sdma || gpu.xccs == 1) {
    add(create, queue.is_sdma ? "init_mqd_sdma" : "init_mqd", from + 10 * kUs, from + 12 * kUs);
  } else {
    Call& all = add(create, "init_mqd_v9_4_3", from + 10 * kUs, from + 12 * kUs + gpu.xccs * 2 * kUs);
    for (int xcc = 0; xcc < gpu.xccs; ++xcc)
      add(all, "init_mqd", from + 11 * kUs + xcc * 2 * kUs, from + 12 * kUs + xcc * 2 * kUs);
  }
  Call& execute = add(create, "execute_queues_cpsch", from + 40 * kUs, to - 5 * kUs);
  Call& map = add(execute, "map_queues_cpsch", from + 41 * kUs, to - 6 * kUs);
  Call& sent = add(map, "pm_send_runlist", from + 42 * kUs, to - 7 * kUs);
  add(sent, "pm_create_runlist_ib", from + 43 * kUs, to - 8 * kUs);
  return root;
}

Root destroy_root(const Scene& scene, std::size_t index, const TraceStyle& style) {
  const SceneQueue& queue = scene.queues[index];
  const std::int64_t from = queue.deleted_ns, to = from + kDestroy_ns;
  Root root{task_of(scene, index, style),
            {"kfd_ioctl", "__x64_sys_ioctl", from - kHandlerInset_ns, to + kHandlerInset_ns, 0, "cmd=0xc0084b03", {}},
            process_of(scene, queue).host_pid};
  Call& handler = add(root.call, "kfd_ioctl_destroy_queue", from, to);
  handler.args = fmt::format("pid={} queue_id={}", process_of(scene, queue).host_pid, queue.id);
  Call& pqm = add(handler, "pqm_destroy_queue", from + kUs, to - kUs);
  add(pqm, "destroy_queue_cpsch", from + 2 * kUs, to - 2 * kUs);
  return root;
}

// A worker evicts the process: unmap, wait for the fence, map what is left.
Root preemption_root(const Scene& scene, const ScenePreemption& preemption, int index, const TraceStyle& style) {
  const std::int64_t unmap = preemption.unmap_ns, fence = preemption.fence_ns, mapped = preemption.mapped_ns;
  const int pid = 900 + index % 7;
  Root root{{"kworker/u64:1-ev", pid, pid, pid % style.cpus},
            {"evict_process_worker", "process_one_work", unmap - 4 * kUs, mapped + 4 * kUs, 0, "", {}},
            scene.processes[static_cast<std::size_t>(preemption.process)].host_pid};
  Call& queues = add(root.call, "kfd_process_evict_queues", unmap - 2 * kUs, mapped + 2 * kUs);
  Call& evict = add(queues, "evict_process_queues_cpsch", unmap - 2 * kUs, mapped + 2 * kUs);
  Call& execute = add(evict, "execute_queues_cpsch", unmap - kUs, mapped + kUs);
  Call& off = add(execute, "unmap_queues_cpsch", unmap, fence + kUs);
  add(off, "pm_send_unmap_queue", unmap, unmap + kUs);
  add(off, "pm_send_query_status", unmap + kUs, unmap + 2 * kUs);
  Call& wait = add(off, "amdkfd_fence_wait_timeout", unmap + 2 * kUs, fence);
  // The wait asks in a loop whether the GPU has died.
  const std::int64_t middle = unmap + (fence - unmap) / (2 * kUs) * kUs;
  if (middle > unmap + 2 * kUs && middle + kUs < fence) add(wait, "amdgpu_amdkfd_is_fed", middle, middle + kUs);
  add(off, "pm_release_ib", fence, fence + kUs);
  Call& on = add(execute, "map_queues_cpsch", fence + kUs, mapped);
  add(on, "pm_send_runlist", fence + kUs, mapped);
  return root;
}

std::vector<Root> roots_of(const Scene& scene, const TraceStyle& style) {
  std::vector<Root> roots;
  for (int i = 0; i < style.failed_creates && !scene.queues.empty(); ++i) {
    const std::int64_t from = scene.queues[0].asked_ns - (i + 1) * 1000 * kUs;
    roots.push_back(create_root(scene, 0, style, -12, from, from + 60 * kUs));
  }
  for (std::size_t i = 0; i < scene.queues.size(); ++i) {
    roots.push_back(create_root(scene, i, style, 0, scene.queues[i].ioctl_ns, scene.queues[i].ioctl_end_ns));
    if (scene.queues[i].deleted_ns != 0) roots.push_back(destroy_root(scene, i, style));
  }
  int index = 0;
  for (const ScenePreemption& preemption : scene.preemptions)
    roots.push_back(preemption_root(scene, preemption, index++, style));
  return roots;
}

std::string stamp(std::int64_t ns) { return fmt::format("{:>5}.{:06}", ns / 1'000'000'000, ns % 1'000'000'000 / 1000); }

//          python3-157801  (157800) [005] ..... 175037.104830: BODY
std::string prefix(const Task& task, std::int64_t at, const TraceStyle& style, const char* context = ".") {
  std::string text = fmt::format("{:>16}-{:<7} ", task.comm.substr(0, 15), task.pid);
  if (style.has_tgid) text += task.tgid == 0 ? "(-------) " : fmt::format("({:>7}) ", task.tgid);
  text += fmt::format("[{:03}] ..{}.{} {}: ", task.cpu, context, style.has_new_flags ? "." : "", stamp(at));
  return text;
}

class Writer {
 public:
  Writer(const Scene& scene, TraceForm form, const TraceStyle& style) : scene_(scene), form_(form), style_(style) {}

  std::string write() {
    if (form_ == TraceForm::trace_printk) {
      for (std::size_t i = 0; i < scene_.queues.size(); ++i) write_texts(i);
    } else {
      for (const Root& root : roots_of(scene_, style_)) {
        if (form_ == TraceForm::events) {
          write_events(root);
        } else {
          write_call(root.task, root.call, 0);
        }
        if (style_.has_noise && form_ == TraceForm::function) write_noise(root);
      }
    }
    std::stable_sort(lines_.begin(), lines_.end(), [](const Line& a, const Line& b) { return a.at < b.at; });
    return put_together();
  }

 private:
  void line(const Task& task, std::int64_t at, std::string body) {
    const bool is_graph = form_ == TraceForm::function_graph;
    lines_.push_back({at, task, is_graph ? std::move(body) : prefix(task, at, style_) + body});
  }

  void write_call(const Task& task, const Call& call, int depth) {
    if (form_ == TraceForm::function) {
      line(task, call.from,
           style_.has_offsets ? fmt::format("{}+0x0/0x480 [amdgpu] <-{}+0x34/0x90", call.name, call.parent)
                              : fmt::format("{} <-{}", call.name, call.parent));
    } else if (form_ == TraceForm::kprobes) {
      line(task, call.from,
           fmt::format("p_{}: ({}+0x0/0x480 [amdgpu]) {}", call.name, call.name,
                       call.name.starts_with("kfd_ioctl") ? "" : call.args));
    } else if (call.below.empty()) {
      line(task, call.from,
           graph_columns(task, call.from, call.to - call.from) +
               fmt::format("{:>{}}{} [amdgpu]();{}", "", 2 * depth, call.name, comment("", call)));
    } else {
      line(task, call.from,
           graph_columns(task, call.from, -1) + fmt::format("{:>{}}{} [amdgpu]() {{", "", 2 * depth, call.name));
    }
    for (const Call& below : call.below) write_call(task, below, depth + 1);
    if (form_ == TraceForm::kprobes) {
      line(task, call.to,
           fmt::format("r_{}: ({}+0x2c/0x90 [amdgpu] <- {}) ret={:#x}{}{}", call.name, call.parent, call.name,
                       static_cast<std::uint32_t>(call.result), call.args.empty() ? "" : " ", call.args));
    } else if (form_ == TraceForm::function_graph && !call.below.empty()) {
      line(task, call.to,
           graph_columns(task, call.to, call.to - call.from) +
               fmt::format("{:>{}}}}{}", "", 2 * depth, comment(call.name + " [amdgpu]", call)));
    }
  }

  std::string comment(const std::string& name, const Call& call) const {
    if (style_.has_retval) return fmt::format(" /* {}{}= {} */", name, name.empty() ? "" : " ", call.result);
    return style_.has_tail && !name.empty() ? fmt::format(" /* {} */", name) : "";
  }

  // 175037.104830 |   5)   python3-123     | ! 108.528 us  |  CALL
  std::string graph_columns(const Task& task, std::int64_t at, std::int64_t ns) const {
    std::string text = style_.has_abstime ? stamp(at) + " |  " : "";
    text += fmt::format(" {}) ", task.cpu);
    if (style_.has_proc) text += fmt::format(" {:>12} | ", fmt::format("{}-{}", task.comm, task.pid));
    if (ns < 0) return text + "              |  ";
    const char flag = ns > 1'000'000'000 ? '$'
                      : ns > 100'000'000 ? '@'
                      : ns > 10'000'000  ? '*'
                      : ns > 1'000'000   ? '#'
                      : ns > 100'000     ? '!'
                      : ns > 10'000      ? '+'
                                         : ' ';
    return text + fmt::format("{} {:>7} us  |  ", flag, fmt::format("{}.{:03}", ns / 1000, ns % 1000));
  }

  void write_events(const Root& root) {
    const Call& call = root.call;
    if (call.name == "kfd_ioctl") {
      line(root.task, call.from, fmt::format("sys_ioctl(fd: 3, cmd: {}, arg: 7ffd1c7c9d80)", call.args.substr(6)));
      line(root.task, call.to,
           fmt::format("sys_ioctl -> {:#x}", static_cast<std::uint64_t>(std::int64_t{call.result})));
      return;
    }
    line(root.task, call.from, fmt::format("kfd_evict_process_worker_start: Process pid={}", root.owner));
    line(root.task, call.to,
         fmt::format("kfd_evict_process_worker_end: Process pid={}, StatusMsg=Success", root.owner));
  }

  void write_texts(std::size_t index) {
    const SceneQueue& queue = scene_.queues[index];
    const Task task = task_of(scene_, index, style_);
    const int pid = process_of(scene_, queue).host_pid;
    const std::uint32_t gpu = scene_.gpus[static_cast<std::size_t>(queue.gpu)].gpu_id;
    const std::int64_t from = queue.ioctl_ns + kHandlerInset_ns, to = queue.ioctl_end_ns - kHandlerInset_ns;
    const int type = queue.is_sdma ? 1 : 2;
    line(task, from,
         fmt::format("kfd_ioctl_create_queue: [KFD-TRACE] CREATE_QUEUE: pid={} gpu_id={:#x} queue_type={}", pid, gpu,
                     type));
    line(task, from + kUs,
         fmt::format("kfd_ioctl_create_queue: [KFD-TRACE] CREATE_QUEUE_BEFORE_PQM: pid={} gpu_id={:#x} queue_type={}",
                     pid, gpu, type));
    line(task, from + 11 * kUs,
         fmt::format(
             "create_queue_cpsch: [KFD-TRACE] CREATE_QUEUE_CPSCH: pid={} queue_id={} doorbell_offset={:#x} "
             "doorbell_offset_in_process={:#x} mqd_addr={:#x} pasid=32788 is_active=1 enable_mes=0 doorbell_id=0",
             pid, queue.id, queue.doorbell, queue.doorbell * 4, queue.mqd_base));
    line(
        task, to,
        fmt::format("kfd_ioctl_create_queue: [KFD-TRACE] CREATE_QUEUE_SUCCESS: pid={} queue_id={} gpu_id={:#x} "
                    "queue_type={} doorbell_offset_in_process={:#x} doorbell_offset=0xc000000000000000 process_index=0 "
                    "base_queue_id=0",
                    pid, queue.id, gpu, type, queue.doorbell * 4));
    if (queue.deleted_ns != 0)
      line(task, queue.deleted_ns,
           fmt::format("kfd_ioctl_destroy_queue: [KFD-TRACE] DESTROY_QUEUE: pid={} queue_id={}", pid, queue.id));
  }

  // Within each call: another thread's functions, and an interrupt in the thread itself.
  void write_noise(const Root& root) {
    const std::int64_t middle = root.call.from + (root.call.to - root.call.from) / 2000 * kUs;
    line({"<idle>", 0, 0, root.task.cpu}, middle, "amdgpu_irq_handler <-__handle_irq_event_percpu");
    line({"Web Content", 77, 70, root.task.cpu}, middle, "amdgpu_drm_ioctl <-__x64_sys_ioctl");
    lines_.push_back(
        {middle, root.task, prefix(root.task, middle, style_, "h") + "amdgpu_ih_process <-amdgpu_irq_handler"});
  }

  std::string put_together() const {
    std::string text;
    if (style_.has_header) {
      const std::uint64_t held = lines_.size();
      text += fmt::format("# tracer: {}\n#\n", form_ == TraceForm::function         ? "function"
                                               : form_ == TraceForm::function_graph ? "function_graph"
                                                                                    : "nop");
      text += form_ == TraceForm::function_graph
                  ? "# CPU  DURATION                  FUNCTION CALLS\n# |     |   |                     |   |   |   |\n"
                  : fmt::format(
                        "# entries-in-buffer/entries-written: {}/{}   #P:{}\n#\n"
                        "#           TASK-PID     CPU#  |||||  TIMESTAMP  FUNCTION\n"
                        "#              | |         |   |||||     |         |\n",
                        held, held + style_.overwritten, style_.cpus);
    }
    std::map<int, Task> running;
    int since = 0;
    for (const Line& one : lines_) {
      if (style_.lost_every > 0 && ++since % style_.lost_every == 0)
        text += style_.lost_each == 0 ? fmt::format("CPU:{} [LOST EVENTS]\n", one.task.cpu)
                                      : fmt::format("CPU:{} [LOST {} EVENTS]\n", one.task.cpu, style_.lost_each);
      if (form_ == TraceForm::function_graph) {
        const auto before = running.find(one.task.cpu);
        if (before != running.end() && before->second.pid != one.task.pid)
          text += fmt::format(
              " ------------------------------------------\n {}) {:>12}  =>  {}\n"
              " ------------------------------------------\n\n",
              one.task.cpu, fmt::format("{}-{}", before->second.comm, before->second.pid),
              fmt::format("{}-{}", one.task.comm, one.task.pid));
        running[one.task.cpu] = one.task;
      }
      text += one.text + "\n";
    }
    return text;
  }

  const Scene& scene_;
  TraceForm form_;
  const TraceStyle& style_;
  std::vector<Line> lines_;
};

}  // namespace

int asking_thread(const Scene& scene, std::size_t queue) {
  return process_of(scene, scene.queues[queue]).host_pid + static_cast<int>(queue % 2) * 100'000;
}

std::string ftrace_text(const Scene& scene, TraceForm form, const TraceStyle& style) {
  return Writer(scene, form, style).write();
}

}  // namespace weir::testing
