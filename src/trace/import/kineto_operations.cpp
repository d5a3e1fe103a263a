#include "trace/import/kineto_operations.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <string>
#include <string_view>
#include <tuple>

#include "trace/import/json_text.h"

namespace weir {
namespace {

constexpr std::string_view kModule = "nn.Module: ";
constexpr std::string_view kBackward = "autograd::engine::evaluate_function";

bool has_part(std::string_view text, std::string_view part) noexcept {
  return text.find(part) != std::string_view::npos;
}

// Packages of PyTorch and below it, and of Python itself, whose lines say nothing of the program. In order.
constexpr auto kForeign = std::to_array<std::string_view>({"PIL",
                                                           "_pytest",
                                                           "abc",
                                                           "aiter",
                                                           "argparse",
                                                           "ast",
                                                           "asyncio",
                                                           "bdb",
                                                           "bisect",
                                                           "codecs",
                                                           "codeop",
                                                           "collections",
                                                           "concurrent",
                                                           "contextlib",
                                                           "contextvars",
                                                           "copy",
                                                           "copyreg",
                                                           "csv",
                                                           "ctypes",
                                                           "cuda",
                                                           "cupy",
                                                           "dataclasses",
                                                           "datetime",
                                                           "decimal",
                                                           "dis",
                                                           "einops",
                                                           "encodings",
                                                           "enum",
                                                           "fractions",
                                                           "functools",
                                                           "functorch",
                                                           "genericpath",
                                                           "glob",
                                                           "gzip",
                                                           "hashlib",
                                                           "heapq",
                                                           "importlib",
                                                           "inspect",
                                                           "io",
                                                           "jaxtyping",
                                                           "json",
                                                           "linecache",
                                                           "logging",
                                                           "multiprocessing",
                                                           "numbers",
                                                           "numpy",
                                                           "opcode",
                                                           "operator",
                                                           "opt_einsum",
                                                           "os",
                                                           "pandas",
                                                           "pathlib",
                                                           "pdb",
                                                           "pickle",
                                                           "platform",
                                                           "posixpath",
                                                           "pprint",
                                                           "profile",
                                                           "pydantic",
                                                           "queue",
                                                           "random",
                                                           "re",
                                                           "reprlib",
                                                           "runpy",
                                                           "scipy",
                                                           "selectors",
                                                           "shutil",
                                                           "signal",
                                                           "socket",
                                                           "sre_compile",
                                                           "sre_parse",
                                                           "stat",
                                                           "statistics",
                                                           "string",
                                                           "struct",
                                                           "subprocess",
                                                           "sympy",
                                                           "tempfile",
                                                           "textwrap",
                                                           "threading",
                                                           "timeit",
                                                           "tokenize",
                                                           "torch",
                                                           "torchaudio",
                                                           "torchvision",
                                                           "tqdm",
                                                           "traceback",
                                                           "triton",
                                                           "types",
                                                           "typing",
                                                           "typing_extensions",
                                                           "unittest",
                                                           "uuid",
                                                           "warnings",
                                                           "weakref",
                                                           "zipfile"});

// "train.py(45): step", "/home/me/train.py(45): step", "transformers/trainer.py(2520): train"
bool is_own_line(std::string_view name) {
  const std::size_t file_end = name.find(".py(");
  if (file_end == std::string_view::npos || name.front() == '<') return false;
  std::string_view file = name.substr(0, file_end);
  for (const std::string_view packages : {"site-packages/", "dist-packages/"})
    if (const std::size_t at = file.rfind(packages); at != std::string_view::npos)
      file.remove_prefix(at + packages.size());
  if (has_part(file, "/lib/python3")) return false;
  const std::string_view package = file.substr(0, file.find('/'));
  return !std::binary_search(kForeign.begin(), kForeign.end(), package);
}

// "torch/optim/adamw.py(243): step", "apex/optimizers/fused_adam.py(90): step"
bool is_optimizer_frame(std::string_view name) noexcept {
  return has_part(name, ".py(") && (has_part(name, "/optim/") || has_part(name, "/optimizers/"));
}

// Of ranges that the program or PyTorch names: "Optimizer.step#AdamW.step", "DistributedDataParallel.forward",
// "## backward ##".
Phase phase_of(std::string_view name) {
  if (name.starts_with("Optimizer.")) return Phase::optimizer;
  if (name.ends_with("Parallel.forward")) return Phase::forward;
  constexpr std::size_t kLongestWord = 40;
  if (name.size() > kLongestWord) return Phase::unknown;
  const std::string letters = plain(name);
  if (letters == "forward" || letters == "fwd" || letters == "forwardpass") return Phase::forward;
  if (letters == "backward" || letters == "bwd" || letters == "backwardpass") return Phase::backward;
  return letters == "optimizer" || letters == "optimizerstep" || letters == "optim" ? Phase::optimizer : Phase::unknown;
}

}  // namespace

bool is_telling_frame(std::string_view name) {
  return name.starts_with(kModule) || is_optimizer_frame(name) || is_own_line(name);
}

void KinetoOperations::add(const KinetoEvent& event, std::uint16_t process, std::uint32_t thread) {
  if (!event.has_name) return;
  const std::string_view name = event.name;
  Frame frame;
  frame.process = process;
  frame.thread = thread;
  frame.started_ns = event.started_ns;
  frame.ended_ns = event.started_ns + event.duration_ns;
  if (event.category == KinetoCategory::operation) {
    frame.name = to_.name(name);
    if (const std::string shapes = shapes_of(event.inputs); !shapes.empty()) frame.shapes = to_.name(shapes);
    const auto& number = event.arguments.sequence_number;
    if (number && *number < UINT64_MAX) frame.sequence = *number + 1;
    frame.forward_thread =
        static_cast<std::uint32_t>(std::clamp<std::int64_t>(event.arguments.forward_thread, 0, INT32_MAX));
    const bool is_backward = name.starts_with(kBackward) || (frame.sequence > 0 && frame.forward_thread > 0);
    frame.phase = is_backward ? Phase::backward : frame.sequence > 0 ? Phase::forward : phase_of(name);
  } else if (event.category == KinetoCategory::annotation) {
    frame.kind = Kind::phase;
    frame.phase = phase_of(name);
    if (frame.phase == Phase::unknown) return;
  } else if (event.category == KinetoCategory::python) {
    if (name.starts_with(kModule)) {
      frame.kind = Kind::module;
      frame.name = to_.name(name.substr(kModule.size()));
      frame.phase = Phase::forward;
    } else if (is_optimizer_frame(name)) {
      frame.kind = Kind::phase;
      frame.phase = Phase::optimizer;
    } else if (is_own_line(name)) {
      frame.kind = Kind::line;
      frame.name = to_.name(name);
    } else {
      return;
    }
  } else {
    return;
  }
  to_.charge(sizeof(Frame) + sizeof(std::uint32_t));
  frames_.push_back(frame);
}

// A thread that only runs backward passes: PyTorch's own, which works beside the program's.
bool KinetoOperations::is_backward_thread(Frames frames) const {
  bool has_backward = false;
  std::int64_t until_ns = INT64_MIN;  // of the backward operators so far, in which a forward pass may be repeated
  for (const std::uint32_t place : frames) {
    const Frame& frame = frames_[place];
    if (frame.started_ns < until_ns) continue;
    if (frame.phase == Phase::backward) {
      has_backward = true;
      until_ns = frame.ended_ns;
    } else if (frame.phase != Phase::unknown) {
      return false;
    }
  }
  return has_backward;
}

// Those that run backward passes last: modules in them have the parents that the forward pass shows.
std::vector<KinetoOperations::Frames> KinetoOperations::threads() {
  order_.resize(frames_.size());
  std::iota(order_.begin(), order_.end(), 0U);
  std::sort(order_.begin(), order_.end(), [&](std::uint32_t i, std::uint32_t j) {
    const Frame &a = frames_[i], &b = frames_[j];
    return std::tie(a.process, a.thread, a.started_ns, b.ended_ns, i) <
           std::tie(b.process, b.thread, b.started_ns, a.ended_ns, j);
  });
  std::vector<Frames> found;
  for (std::size_t from = 0; from < order_.size();) {
    const Frame& first = frames_[order_[from]];
    std::size_t to = from;
    while (to < order_.size() && frames_[order_[to]].process == first.process &&
           frames_[order_[to]].thread == first.thread)
      ++to;
    found.push_back(Frames(order_).subspan(from, to - from));
    from = to;
  }
  std::stable_partition(found.begin(), found.end(), [&](Frames frames) { return !is_backward_thread(frames); });
  return found;
}

std::uint32_t KinetoOperations::module_of(std::uint32_t name, std::uint32_t parent) {
  const auto known = modules_.find(name);
  return known != modules_.end() ? known->second : modules_[name] = to_.module_in(parent, name);
}

void KinetoOperations::apply(const Frame& frame, State& state) {
  Operation& operation = state.operation;
  // What a module does in a backward pass (its forward pass once more, or hooks) belongs to that.
  if (frame.phase != Phase::unknown && (frame.phase != Phase::forward || operation.phase == Phase::unknown))
    operation.phase = frame.phase;
  switch (frame.kind) {
    case Kind::operation:
      operation.name = frame.name;
      operation.shapes = frame.shapes;
      if (frame.phase == Phase::backward && frame.sequence > 0)
        if (const Forward* const forward = forward_of(frame); forward != nullptr && forward->module != kNoModule)
          operation.module = forward->module;
      break;
    case Kind::module:
      operation.module = module_of(frame.name, operation.module);
      break;
    case Kind::line:
      state.line = frame.name;
      break;
    case Kind::phase:
      break;
  }
}

void KinetoOperations::describe(HostCall& call, const State& state) {
  if (state.operation != Operation{}) call.operation = to_.operation(state.operation);
  call.line = state.line;
  if (state.innermost == kNoOperation) return;
  call.is_first_of_operation = !has_calls_[state.innermost];
  has_calls_[state.innermost] = true;
}

// Calls visit(frame, state) for each frame of a thread, and describes its calls.
template <class Visit>
void KinetoOperations::walk(Frames frames, Calls calls, Visit&& visit) {
  State base;
  if (is_backward_thread(frames)) base.operation.phase = Phase::backward;
  std::vector<std::pair<std::int64_t, State>> around;  // ends
  auto call = calls.begin();
  const auto describe_next = [&] {
    while (!around.empty() && around.back().first < (*call)->started_ns) around.pop_back();
    if (!around.empty()) describe(**call, around.back().second);
    ++call;
  };
  for (const std::uint32_t place : frames) {
    const Frame& frame = frames_[place];
    while (call != calls.end() && (*call)->started_ns < frame.started_ns) describe_next();
    while (!around.empty() && around.back().first <= frame.started_ns) around.pop_back();
    State state = around.empty() ? base : around.back().second;
    apply(frame, state);
    if (frame.kind == Kind::operation) state.innermost = place;
    visit(frame, state);
    around.emplace_back(frame.ended_ns, state);
  }
  while (call != calls.end()) describe_next();
}

template <class Use>
void KinetoOperations::each_forward(const Frame& frame, Use&& use) const {
  const auto before = [](const Forward& a, const std::pair<std::uint16_t, std::uint64_t>& key) {
    return std::tie(a.process, a.sequence) < std::tie(key.first, key.second);
  };
  for (auto at = std::lower_bound(forwards_.begin(), forwards_.end(), std::pair(frame.process, frame.sequence), before);
       at != forwards_.end() && at->process == frame.process && at->sequence == frame.sequence &&
       at->started_ns < frame.started_ns;
       ++at)
    use(*at);
}

// The last one before it: operators that add nothing to the graph have the number of the next one that does.
const KinetoOperations::Forward* KinetoOperations::forward_of(const Frame& frame) const {
  const auto thread = thread_of_.find({frame.process, frame.forward_thread});
  if (thread == thread_of_.end()) return nullptr;
  const Forward* last = nullptr;
  each_forward(frame, [&](const Forward& forward) {
    if (forward.thread == thread->second) last = &forward;
  });
  return last;
}

void KinetoOperations::find_forwards(const std::vector<Frames>& threads) {
  if (std::none_of(frames_.begin(), frames_.end(), [](const Frame& frame) { return frame.kind == Kind::module; }))
    return;
  std::vector<Forward> found;
  for (const Frames frames : threads)
    walk(frames, {}, [&](const Frame& frame, const State& state) {
      if (frame.kind != Kind::operation || frame.sequence == 0 || frame.phase != Phase::forward) return;
      to_.charge(sizeof(Forward) * 2);
      found.push_back({frame.process, frame.thread, frame.sequence, frame.started_ns, state.operation.module});
    });
  std::sort(found.begin(), found.end(), [](const Forward& a, const Forward& b) {
    return std::tie(a.process, a.sequence, a.started_ns, a.thread) <
           std::tie(b.process, b.sequence, b.started_ns, b.thread);
  });
  forwards_ = std::move(found);
  std::map<std::pair<std::uint16_t, std::uint32_t>, std::map<std::uint32_t, std::size_t>> votes;
  for (const Frame& frame : frames_)
    if (frame.kind == Kind::operation && frame.phase == Phase::backward && frame.sequence > 0)
      each_forward(frame,
                   [&](const Forward& forward) { ++votes[{frame.process, frame.forward_thread}][forward.thread]; });
  for (const auto& [key, threads_of_key] : votes)
    thread_of_[key] = std::max_element(threads_of_key.begin(), threads_of_key.end(), [](const auto& a, const auto& b) {
                        return a.second < b.second;
                      })->first;
}

void KinetoOperations::describe_all(const std::vector<Frames>& threads, std::span<HostCall> all) {
  has_calls_.assign(frames_.size(), false);
  std::vector<HostCall*> calls;
  for (HostCall& call : all)
    if (call.started_ns != kNoTime) calls.push_back(&call);
  const auto place_of = [](const HostCall* call) { return std::tie(call->process, call->thread); };
  std::stable_sort(calls.begin(), calls.end(), [](const HostCall* a, const HostCall* b) {
    return std::tie(a->process, a->thread, a->started_ns) < std::tie(b->process, b->thread, b->started_ns);
  });
  for (const Frames frames : threads) {
    HostCall wanted;
    wanted.process = frames_[frames.front()].process;
    wanted.thread = frames_[frames.front()].thread;
    const auto own = std::equal_range(calls.begin(), calls.end(), &wanted,
                                      [&](const HostCall* a, const HostCall* b) { return place_of(a) < place_of(b); });
    walk(frames, Calls(own.first, own.second), [](const Frame&, const State&) {});
  }
}

void KinetoOperations::finish(std::span<HostCall> others) {
  const std::vector<Frames> sorted = threads();
  find_forwards(sorted);
  describe_all(sorted, to_.file_calls());
  if (!others.empty()) describe_all(sorted, others);
  frames_ = {};
  order_ = {};
  has_calls_ = {};
  forwards_ = {};
}

}  // namespace weir
