#include "lab/watch/screen.h"

#include "base/console.h"
#include "base/error.h"
#include "base/stop.h"
#include "weir_build.h"

#if WEIR_HAVE_NCURSES
#include <fmt/format.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <termios.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>

// Last, because it defines short words as macros.
#include <ncurses.h>
#endif

namespace weir::watch {

#if WEIR_HAVE_NCURSES
namespace {

constexpr std::array kCrashes = {SIGSEGV, SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGQUIT};

// State that signal handlers use. Everything is set before they are installed.
std::atomic<int> bell{-1};  // an eventfd: a signal just before poll() must not wait for the next key
std::array<struct sigaction, kCrashes.size()> old_crashes{};
termios saved_terminal{};
bool has_saved_terminal = false;
std::array<char, 256> leave_text{};  // restores the terminal, from terminfo
std::size_t leave_bytes = 0;
SCREEN* screen = nullptr;
bool is_gone = false;  // the terminal

void ring() noexcept {
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto written = ::write(bell.load(std::memory_order_relaxed), &one, sizeof one);
}

// endwin() is not allowed here; tcsetattr() and write() are.
void give_back() noexcept {
  if (screen == nullptr) return;
  if (has_saved_terminal) ::tcsetattr(STDIN_FILENO, TCSANOW, &saved_terminal);
  pollfd out{STDOUT_FILENO, POLLOUT, 0};  // Ctrl-S would make us wait
  if (::poll(&out, 1, 0) == 1 && (out.revents & POLLOUT) != 0) [[maybe_unused]]
    const auto written = ::write(STDOUT_FILENO, leave_text.data(), leave_bytes);
}

void on_crash(int signal) {
  give_back();
  ::signal(signal, SIG_DFL);
  ::raise(signal);
}

void catch_crashes() {
  for (std::size_t i = 0; i < kCrashes.size(); ++i) {
    struct sigaction action{};
    action.sa_handler = on_crash;
    sigemptyset(&action.sa_mask);
    sigaction(kCrashes[i], &action, &old_crashes[i]);
  }
}

void remember_leaving(const char* capability) {
  const char* const text = ::tigetstr(capability);
  if (text == nullptr || text == reinterpret_cast<const char*>(-1)) return;
  const std::size_t bytes = std::strlen(text);
  if (leave_bytes + bytes > leave_text.size()) return;
  std::memcpy(leave_text.data() + leave_bytes, text, bytes);
  leave_bytes += bytes;
}

attr_t attributes_of(Style style) {
  switch (style) {
    case Style::plain:
      return A_NORMAL;
    case Style::bold:
      return A_BOLD;
    case Style::reverse:
      return A_REVERSE;
    case Style::sorted:
      return A_REVERSE | A_BOLD | A_UNDERLINE;
    case Style::dim:
      return A_DIM;
  }
  return A_NORMAL;
}

Key key_of_terminal(int code) {
  switch (code) {
    case KEY_UP:
      return Key::up;
    case KEY_DOWN:
      return Key::down;
    case KEY_PPAGE:
      return Key::page_up;
    case KEY_NPAGE:
      return Key::page_down;
    case KEY_HOME:
      return Key::first;
    case KEY_END:
      return Key::last;
    case KEY_RIGHT:
      return Key::sort_next;
    case KEY_LEFT:
      return Key::sort_previous;
    case KEY_RESIZE:
      return Key::resize;
    default:
      return code < 256 ? key_of(code) : Key::none;
  }
}

sigset_t screen_signals() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGWINCH);
  sigaddset(&set, SIGTSTP);
  return set;
}

}  // namespace

void keep_screen_signals() {
  const sigset_t set = screen_signals();
  ::pthread_sigmask(SIG_BLOCK, &set, nullptr);
}

Screen::Screen(const std::optional<std::string>& terminal) {
  is_gone = false;
  has_saved_terminal = ::tcgetattr(STDIN_FILENO, &saved_terminal) == 0;
  const int made = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (made < 0) fail(fmt::format("cannot make an eventfd: {}", std::strerror(errno)));
  bell.store(made, std::memory_order_relaxed);
  on_interrupt(ring);
  catch_interrupts();
  flush_out();
  // newterm() and not initscr(), which ends the program where it does not know the terminal.
  screen = ::newterm(nullptr, stdout, stdin);
  if (screen == nullptr) {
    on_interrupt(nullptr);
    ::close(bell.exchange(-1));
    reject(fmt::format("the terminal is not known: TERM={}", terminal ? printable(*terminal) : "(not set)"),
           "Set TERM (say TERM=xterm), or use --once.");
  }
  leave_bytes = 0;
  for (const char* capability : {"sgr0", "cnorm", "rmkx", "rmcup"}) remember_leaving(capability);
  call_when_cut(give_back);
  catch_crashes();
  ::cbreak();
  ::noecho();
  ::nonl();
  ::keypad(stdscr, TRUE);
  ::nodelay(stdscr, TRUE);
  ::set_escdelay(25);
  ::curs_set(0);
  const sigset_t set = screen_signals();
  ::pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
}

Screen::~Screen() {
  ::endwin();
  for (std::size_t i = 0; i < kCrashes.size(); ++i) sigaction(kCrashes[i], &old_crashes[i], nullptr);
  on_interrupt(nullptr);
  ::delscreen(screen);
  screen = nullptr;
  ::close(bell.exchange(-1));
}

int Screen::width() const { return getmaxx(stdscr); }
int Screen::height() const { return getmaxy(stdscr); }

void Screen::draw(const Grid& grid) {
  ::erase();
  std::string run;
  for (int y = 0; y < std::min(grid.height(), height()); ++y) {
    for (int x = 0; x < std::min(grid.width(), width());) {
      const Style style = grid.at(x, y).style;
      const int from = x;
      run.clear();
      for (; x < std::min(grid.width(), width()) && grid.at(x, y).style == style; ++x) run += grid.at(x, y).text;
      ::attrset(static_cast<int>(attributes_of(style)));
      mvaddnstr(y, from, run.c_str(), static_cast<int>(run.size()));
    }
  }
  ::attrset(A_NORMAL);
  ::refresh();
}

void Screen::redraw() { ::clearok(curscr, TRUE); }

std::vector<Key> Screen::await(int wake) {
  std::array<pollfd, 3> waits = {{{STDIN_FILENO, POLLIN, 0}, {wake, POLLIN, 0}, {bell.load(), POLLIN, 0}}};
  // SIGWINCH interrupts it. One that arrives just before is noticed a moment later.
  ::poll(waits.data(), waits.size(), 200);
  if ((waits[0].revents & (POLLHUP | POLLERR | POLLNVAL)) != 0) is_gone = true;
  std::uint64_t count = 0;
  if ((waits[1].revents & POLLIN) != 0) [[maybe_unused]]
    const auto taken = ::read(wake, &count, sizeof count);
  std::vector<Key> keys;
  constexpr std::size_t kMaxKeys = 256;  // a flood of keys must not delay drawing
  while (keys.size() < kMaxKeys && !is_gone) {
    const int code = ::getch();
    if (code == ERR) break;
    keys.push_back(key_of_terminal(code));
  }
  return keys;
}

bool Screen::is_ended() const { return is_gone || signal() != 0; }
int Screen::signal() const { return first_interrupt(); }

#else

void keep_screen_signals() {}
Screen::Screen(const std::optional<std::string>&) {
  reject("this program was built without ncurses, so there is no live view",
         "Install libncurses-dev and build again; --once, --json and --openmetrics work without it.");
}
Screen::~Screen() = default;
int Screen::width() const { return 0; }
int Screen::height() const { return 0; }
void Screen::draw(const Grid&) {}
void Screen::redraw() {}
std::vector<Key> Screen::await(int) { return {}; }
bool Screen::is_ended() const { return true; }
int Screen::signal() const { return 0; }

#endif

}  // namespace weir::watch
