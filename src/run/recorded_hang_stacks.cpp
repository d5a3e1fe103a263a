#include "run/recorded_hang_stacks.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/plain_text.h"

namespace weir {
namespace {

constexpr std::size_t kMaxStackText = 1 << 20, kMaxStackThreads = 1024;
constexpr std::size_t kShownFrames = 12, kFrameColumns = 160;

// A line of Python's faulthandler: `  File "/app/train.py", line 41 in load`.
struct PythonFrame {
  std::string_view file, line, function;
};

bool parse_python_frame(std::string_view text, PythonFrame& frame) {
  constexpr std::string_view kFile = "File \"", kLine = "\", line ", kIn = " in ";
  text = trimmed(text);
  if (!text.starts_with(kFile)) return false;
  text.remove_prefix(kFile.size());
  const std::size_t line = text.find(kLine);
  if (line == std::string_view::npos) return false;
  const std::size_t in = text.find(kIn, line);
  if (in == std::string_view::npos) return false;
  frame.file = text.substr(0, line);
  frame.line = text.substr(line + kLine.size(), in - line - kLine.size());
  frame.function = text.substr(in + kIn.size());
  return true;
}

bool is_of_package(std::string_view file) {
  return file.find("site-packages/") != std::string_view::npos || file.find("dist-packages/") != std::string_view::npos;
}

// "/usr/lib/python3.11/threading.py", "<frozen runpy>"
bool is_of_interpreter(std::string_view file) {
  if (file.starts_with("<frozen")) return true;
  return !is_of_package(file) && file.find("/lib/python3") != std::string_view::npos;
}

std::string python_place(const PythonFrame& frame) {
  std::string_view file = frame.file;
  if (const std::size_t package = file.find("-packages/"); package != std::string_view::npos) {
    file.remove_prefix(package + std::string_view("-packages/").size());
  } else if (const std::size_t slash = file.rfind('/'); slash != std::string_view::npos) {
    file.remove_prefix(slash + 1);
  }
  if (frame.function == "<module>") return fmt::format("{}:{}", file, frame.line);
  return fmt::format("{} ({}:{})", frame.function, file, frame.line);
}

std::string own_python_frame(const RecordedStack& stack) {
  std::string place;
  for (const std::string& line : stack.frames) {
    PythonFrame frame;
    if (!parse_python_frame(line, frame) || is_of_interpreter(frame.file)) continue;
    const bool is_package = is_of_package(frame.file);
    if (place.empty() && !is_package) return python_place(frame);
    if (place.empty()) {
      place = python_place(frame);
    } else if (!is_package) {
      return place + ", called by " + python_place(frame);
    }
  }
  return place;
}

// "  void load<int>(int) [libdata.so]", "  [train]", "  ?"
std::string own_native_frame(const RecordedStack& stack) {
  static constexpr std::array<std::string_view, 10> kSystem = {"libc.so",    "libc-",     "libpthread", "ld-linux",
                                                               "linux-vdso", "libpython", "python",     "libstdc++",
                                                               "libweir_",   "libcupti"};
  std::string unnamed;
  for (const std::string& line : stack.frames) {
    const std::string_view frame = trimmed(line);
    const std::size_t open = frame.rfind('[');
    if (open == std::string_view::npos || !frame.ends_with(']')) continue;
    const std::string_view library = frame.substr(open + 1, frame.size() - open - 2);
    if (std::any_of(kSystem.begin(), kSystem.end(), [&](std::string_view name) { return library.starts_with(name); }))
      continue;
    if (open > 0) return std::string(trimmed(frame.substr(0, open))) + " of " + std::string(library);
    if (unnamed.empty()) unnamed = "code of " + std::string(library);
  }
  return unnamed;
}

bool is_title(std::string_view line) { return !line.empty() && line.front() != ' ' && line.ends_with(':'); }

}  // namespace

std::vector<RecordedStack> recorded_stacks(std::string_view text) {
  std::vector<RecordedStack> stacks;
  const std::string plain = without_controls(text.substr(0, kMaxStackText), '?', "\n");
  for (std::size_t at = 0; at < plain.size();) {
    const std::size_t end = std::min(plain.find('\n', at), plain.size());
    const std::string_view line = std::string_view(plain).substr(at, end - at);
    at = end + 1;
    const bool is_python = line.ends_with("(most recent call first):");
    if (is_python && is_title(line)) {
      // "Thread 0x00007f12 (most recent call first):", "Current thread 0x00007f12 [name] (most recent call first):"
      const std::size_t number = line.find("0x");
      const std::string_view rest =
          number == std::string_view::npos ? std::string_view() : line.substr(number, line.rfind(" (") - number);
      stacks.push_back({.title = fmt::format("Python thread {}", rest), .frames = {}, .is_python = true});
    } else if (line.starts_with("thread ") && is_title(line)) {
      const std::string_view number = line.substr(7, std::min(line.find(' ', 7), line.size()) - 7);
      stacks.push_back({.title = std::string(line.substr(0, line.size() - 1)),
                        .frames = {},
                        .thread = parse_as<std::uint64_t>(number).value_or(0)});
    } else if (!stacks.empty() && line.starts_with("  ")) {
      stacks.back().frames.emplace_back(whole_characters(line, kFrameColumns));
    }
    if (stacks.size() > kMaxStackThreads) break;
  }
  return stacks;
}

const RecordedStack* main_stack(const std::vector<RecordedStack>& stacks, std::uint64_t pid) {
  const RecordedStack* last_python = nullptr;
  for (const RecordedStack& stack : stacks) {
    if (!stack.is_python) continue;
    last_python = &stack;
    // Only the main thread runs a module's own code; Python lists it last, if not by that.
    for (const std::string& frame : stack.frames)
      if (frame.ends_with(" in <module>")) return &stack;
  }
  if (last_python != nullptr) return last_python;
  for (const RecordedStack& stack : stacks)
    if (stack.thread == pid && pid != 0) return &stack;
  return nullptr;
}

std::string innermost_own_frame(const RecordedStack& stack) {
  return stack.is_python ? own_python_frame(stack) : own_native_frame(stack);
}

AwaitedProcess awaited_process(const RecordedStack& stack) {
  // The innermost frames that are of the interpreter's own modules say whether it waits.
  bool waits = false, is_loader = false, is_innermost = true;
  for (const std::string& line : stack.frames) {
    PythonFrame frame;
    if (!parse_python_frame(line, frame)) continue;
    const auto is_in = [&](std::string_view file) { return frame.file.ends_with(file); };
    if (is_in("torch/utils/data/dataloader.py")) is_loader = true;
    if (is_innermost && !is_of_interpreter(frame.file)) {
      is_innermost = false;
      // Reading what a worker sent goes through torch/multiprocessing.
      if (frame.file.find("torch/multiprocessing/") != std::string_view::npos) is_innermost = true;
    }
    const bool is_queue = is_in("/queue.py") && frame.function == "get";
    if (is_innermost && (is_in("multiprocessing/queues.py") || is_in("multiprocessing/connection.py") ||
                         is_in("multiprocessing/pool.py") || is_queue))
      waits = true;
  }
  // queue.py alone is a queue of threads; the loader's thread that pins memory fills it from the workers.
  if (!waits) return AwaitedProcess::none;
  if (is_loader) return AwaitedProcess::data_loader;
  const bool is_of_processes = std::any_of(stack.frames.begin(), stack.frames.end(), [](const std::string& line) {
    return line.find("multiprocessing/") != std::string::npos;
  });
  return is_of_processes ? AwaitedProcess::any : AwaitedProcess::none;
}

std::string stacks_text(const std::vector<RecordedStack>& stacks, std::uint64_t pid, std::size_t max_lines) {
  std::vector<const RecordedStack*> order;
  for (const RecordedStack& stack : stacks) order.push_back(&stack);
  const RecordedStack* const main = main_stack(stacks, pid);
  const auto weight = [&](const RecordedStack* stack) {
    return stack == main ? 0 : stack->is_python ? 1 : stack->thread == pid ? 2 : 3;
  };
  std::stable_sort(order.begin(), order.end(), [&](const auto* a, const auto* b) { return weight(a) < weight(b); });
  std::vector<std::string> lines;
  std::vector<bool> is_shown(order.size(), false);
  std::size_t left_out = 0;
  for (std::size_t i = 0; i < order.size(); ++i) {
    if (is_shown[i]) continue;
    const RecordedStack& stack = *order[i];
    std::size_t alike = 0;
    for (std::size_t j = i + 1; j < order.size(); ++j)
      if (order[j]->is_python == stack.is_python && order[j]->frames == stack.frames) {
        is_shown[j] = true;
        ++alike;
      }
    const std::size_t shown = std::min(stack.frames.size(), kShownFrames);
    if (lines.size() + shown + 2 > max_lines) {
      left_out += alike + 1;
      continue;
    }
    lines.push_back("    " + stack.title + (stack.is_python && &stack == main ? ", the main thread" : "") +
                    (alike == 0 ? "" : fmt::format(", and {} more alike", alike)) + ":");
    for (std::size_t frame = 0; frame < shown; ++frame) lines.push_back("    " + stack.frames[frame]);
    if (shown < stack.frames.size()) lines.push_back(fmt::format("      and {} more", stack.frames.size() - shown));
  }
  if (left_out > 0) lines.push_back(fmt::format("    and {} more thread{}", left_out, left_out == 1 ? "" : "s"));
  std::string text;
  for (const std::string& line : lines) text += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
  return text;
}

}  // namespace weir
