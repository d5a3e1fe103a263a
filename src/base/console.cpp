#include "base/console.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <mutex>
#include <new>
#include <string>

#include "base/text_gate.h"

namespace weir {
namespace {

// In static memory: printing must work when there is no other.
constinit std::array<char, 1 << 14> buffer{};
constinit std::size_t used = 0;
constinit int first_error = 0;
constinit bool has_runner = false;  // written once, before there are threads
constinit std::mutex turn;          // guards the three above

constexpr std::array kIgnored = {SIGPIPE, SIGXFSZ};
constinit std::array<void (*)(int), kIgnored.size()> earlier_handlers{};
constinit bool is_open = false;

// Unlike write_all(), waits for a stream that another process made non-blocking (terminals and pipes are shared).
// Returns an errno, or 0.
int write_whole(int file, std::string_view text) noexcept {
  while (!text.empty()) {
    const ssize_t written = ::write(file, text.data(), text.size());
    if (written >= 0) {
      text.remove_prefix(static_cast<std::size_t>(written));
      continue;
    }
    if (errno == EAGAIN || errno == EWOULDBLOCK) {
      pollfd ready{file, POLLOUT, 0};
      ::poll(&ready, 1, -1);
    } else if (errno != EINTR) {
      return errno;
    }
  }
  return 0;
}

void write_buffer() noexcept {
  if (first_error == 0) first_error = write_whole(STDOUT_FILENO, {buffer.data(), used});
  used = 0;
}

void pass_gate(std::string_view text, std::string (*gate)(std::string_view), bool is_json,
               void (*write)(std::string_view) noexcept) noexcept {
  try {
    const std::string shown = gate(text);
    write(has_runner ? without_commands(shown, is_json) : shown);
  } catch (const std::exception&) {  // std::bad_alloc: the gate that needs no memory shows ASCII only
    std::array<char, 256> part{};
    while (!text.empty()) {
      const std::size_t length = std::min(part.size(), text.size());
      std::transform(text.begin(), text.begin() + length, part.begin(),
                     [](char c) { return (c >= ' ' && c < 0x7f) || c == '\n' || c == '\t' ? c : '?'; });
      write({part.data(), length});
      text.remove_prefix(length);
    }
  }
}

bool is_terminal() noexcept {
  static const bool kIsTerminal = ::isatty(STDOUT_FILENO) == 1;
  return kIsTerminal;
}

}  // namespace

void open_console() noexcept {
  // In this order open() gives each its own number, because those below are taken.
  for (const int file : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    if (::fcntl(file, F_GETFD) < 0 && errno == EBADF)
      ::open("/dev/null", (file == STDIN_FILENO ? O_WRONLY : O_RDONLY) | O_CLOEXEC);
  for (std::size_t i = 0; i < kIgnored.size(); ++i) earlier_handlers[i] = std::signal(kIgnored[i], SIG_IGN);
  is_open = true;
}

void restore_signals() noexcept {
  for (std::size_t i = 0; is_open && i < kIgnored.size(); ++i) std::signal(kIgnored[i], earlier_handlers[i]);
}

void expect_runner(bool is_there) noexcept { has_runner = is_there; }

void write_out(std::string_view text) noexcept { pass_gate(text, for_terminal, false, write_raw_out); }

void write_json(std::string_view text) noexcept { pass_gate(text, for_json, true, write_raw_out); }

void write_raw_out(std::string_view text) noexcept {
  const std::lock_guard lock(turn);
  if (used + text.size() > buffer.size()) write_buffer();
  if (text.size() > buffer.size()) {
    if (first_error == 0) first_error = write_whole(STDOUT_FILENO, text);
    return;
  }
  std::memcpy(buffer.data() + used, text.data(), text.size());
  used += text.size();
  if (is_terminal()) write_buffer();
}

bool flush_out() noexcept {
  const std::lock_guard lock(turn);
  write_buffer();
  return first_error == 0;
}

int out_error() noexcept {
  const std::lock_guard lock(turn);
  return first_error;
}

void write_err(std::string_view text) noexcept { pass_gate(text, for_terminal, false, write_raw_err); }

void write_raw_err(std::string_view text) noexcept {
  flush_out();
  write_whole(STDERR_FILENO, text);
}

void vprint_err(std::string_view format, fmt::format_args values) noexcept {
  try {
    fmt::memory_buffer text;
    fmt::vformat_to(fmt::appender(text), fmt::string_view(format.data(), format.size()), values);
    write_err({text.data(), text.size()});
  } catch (const std::exception&) {  // std::bad_alloc: formats are checked by the compiler
    write_err(format);
  }
}

int finish_console(int code) noexcept {
  if (flush_out()) return code;
  const int error = out_error();
  if (error == EPIPE) return code != 0 ? code : 128 + SIGPIPE;
  print_err("weir: cannot write to standard output: {}\n", std::strerror(error));
  return code != 0 ? code : 1;
}

}  // namespace weir
