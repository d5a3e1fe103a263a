#include "cli/terminal.h"

#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>
#include <utmp.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <stdexcept>

#include "cli/program.h"

namespace weir::testing {
namespace {

constexpr auto kPatience = std::chrono::minutes(1);

std::vector<int> numbers_of(const std::string& parameters) {
  std::vector<int> numbers;
  std::string digits;
  for (const char c : parameters + ";") {
    if (c >= '0' && c <= '9') digits += c;
    if (c != ';') continue;
    numbers.push_back(digits.empty() ? 0 : std::stoi(digits));
    digits.clear();
  }
  return numbers;
}

}  // namespace

void TerminalScreen::resize(int width, int height) {
  width_ = width;
  height_ = height;
  lines_.resize(static_cast<std::size_t>(height));
  for (std::string& line : lines_) line.resize(static_cast<std::size_t>(width), ' ');
  x_ = std::min(x_, width - 1);
  y_ = std::min(y_, height - 1);
  top_ = 0;
  bottom_ = height - 1;
}

void TerminalScreen::line_feed() {
  if (y_ != bottom_) {
    y_ = std::min(y_ + 1, height_ - 1);
    return;
  }
  lines_.erase(lines_.begin() + top_);
  lines_.insert(lines_.begin() + bottom_, std::string(static_cast<std::size_t>(width_), ' '));
}

void TerminalScreen::put(char c) {
  if (x_ >= width_) {  // the line was full: the next character begins another
    x_ = 0;
    line_feed();
  }
  lines_[static_cast<std::size_t>(y_)][static_cast<std::size_t>(x_++)] = c;
  last_ = c;
}

// ESC [ parameters final
void TerminalScreen::control(const std::string& parameters, char final) {
  const std::vector<int> numbers = numbers_of(parameters);
  const int count = std::max(1, numbers[0]);
  std::string& line = lines_[static_cast<std::size_t>(y_)];
  const auto at = static_cast<std::size_t>(std::min(x_, width_ - 1));
  const auto blank = [&](std::size_t from, std::size_t to) {
    std::fill(line.begin() + static_cast<std::ptrdiff_t>(from),
              line.begin() + static_cast<std::ptrdiff_t>(std::min(to, line.size())), ' ');
  };
  if (parameters.starts_with("?") && (final == 'h' || final == 'l')) {
    if (numbers[0] == 1049) is_alternate_ = final == 'h';
    if (numbers[0] == 25) is_cursor_shown_ = final == 'h';
    return;
  }
  switch (final) {
    case 'H':
      y_ = std::clamp(count - 1, 0, height_ - 1);
      x_ = std::clamp(numbers.size() > 1 ? std::max(1, numbers[1]) - 1 : 0, 0, width_ - 1);
      return;
    case 'A':
      y_ = std::max(0, y_ - count);
      return;
    case 'B':
      y_ = std::min(height_ - 1, y_ + count);
      return;
    case 'C':
      x_ = std::min(width_ - 1, x_ + count);
      return;
    case 'D':
      x_ = std::max(0, x_ - count);
      return;
    case 'G':
      x_ = std::clamp(count - 1, 0, width_ - 1);
      return;
    case 'd':
      y_ = std::clamp(count - 1, 0, height_ - 1);
      return;
    case 'K':
      if (numbers[0] == 0) blank(at, line.size());
      if (numbers[0] == 1) blank(0, at + 1);
      if (numbers[0] == 2) blank(0, line.size());
      return;
    case 'J':
      if (numbers[0] == 0) blank(at, line.size());
      for (int y = numbers[0] == 0 ? y_ + 1 : 0; y < height_; ++y)
        lines_[static_cast<std::size_t>(y)].assign(static_cast<std::size_t>(width_), ' ');
      return;
    case 'X':
      blank(at, at + static_cast<std::size_t>(count));
      return;
    case 'P':
      line.erase(at, static_cast<std::size_t>(count));
      line.resize(static_cast<std::size_t>(width_), ' ');
      return;
    case '@':
      line.insert(at, static_cast<std::size_t>(count), ' ');
      line.resize(static_cast<std::size_t>(width_));
      return;
    case 'b':
      for (int i = 0; i < count; ++i) put(last_);
      return;
    case 'L':
    case 'M':
    case 'S':
    case 'T': {
      const int from = final == 'L' || final == 'M' ? y_ : top_;
      const std::string empty(static_cast<std::size_t>(width_), ' ');
      for (int i = 0; i < count; ++i) {
        const bool goes_down = final == 'L' || final == 'T';
        lines_.erase(lines_.begin() + (goes_down ? bottom_ : from));
        lines_.insert(lines_.begin() + (goes_down ? from : bottom_), empty);
      }
      return;
    }
    case 'r':
      top_ = std::clamp(count - 1, 0, height_ - 1);
      bottom_ = numbers.size() > 1 && numbers[1] > 0 ? std::min(numbers[1], height_) - 1 : height_ - 1;
      x_ = y_ = 0;
      return;
    case 'm':
    case 'h':
    case 'l':
    case 't':  // the title's stack
      return;
    default:
      unknown_.push_back(parameters + final);
  }
}

void TerminalScreen::write(const std::string& bytes) {
  const std::string all = pending_ + bytes;
  pending_.clear();
  for (std::size_t i = 0; i < all.size(); ++i) {
    const char c = all[i];
    if (c == '\x1b') {
      std::size_t end = i + 1;
      if (end < all.size() && all[end] == '[') {
        for (++end; end < all.size() && (all[end] < '@' || all[end] > '~');) ++end;
      } else if (end < all.size() && (all[end] == '(' || all[end] == ')')) {
        ++end;  // ESC ( B: a character set
      }
      if (end >= all.size()) {
        pending_ = all.substr(i);
        return;
      }
      if (all[i + 1] == '[') {
        control(all.substr(i + 2, end - i - 2), all[end]);
      } else if (all[i + 1] == 'M') {
        y_ = std::max(0, y_ - 1);
      } else if (std::string("()=>78").find(all[i + 1]) == std::string::npos) {
        unknown_.push_back(std::string("ESC ") + all[i + 1]);
      }
      i = end;
    } else if (c == '\r') {
      x_ = 0;
    } else if (c == '\n') {
      line_feed();
    } else if (c == '\b') {
      x_ = std::max(0, std::min(x_, width_ - 1) - 1);
    } else if (c == '\t') {
      x_ = std::min(width_ - 1, (x_ / 8 + 1) * 8);
    } else if (static_cast<unsigned char>(c) >= 0x20 && static_cast<unsigned char>(c) < 0x7f) {
      put(c);
    } else if (c != '\x0f' && c != '\x0e' && c != '\x07') {
      unknown_.push_back("byte " + std::to_string(static_cast<unsigned char>(c)));
    }
  }
}

std::string TerminalScreen::line(int y) const {
  std::string line = lines_.at(static_cast<std::size_t>(y));
  line.erase(line.find_last_not_of(' ') + 1);
  return line;
}

std::string TerminalScreen::text() const {
  std::string text;
  for (int y = 0; y < height_; ++y) text += line(y) + "\n";
  return text;
}

Terminal::Terminal(const std::vector<std::string>& arguments, int width, int height, const char* term)
    : screen(width, height) {
  const winsize size = {static_cast<unsigned short>(height), static_cast<unsigned short>(width), 0, 0};
  if (::openpty(&master_, &slave_, nullptr, nullptr, &size) != 0) throw std::runtime_error("openpty failed");
  std::vector<std::string> words = {WEIR_BINARY};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  process_ = ::fork();
  if (process_ < 0) throw std::runtime_error("fork failed");
  if (process_ == 0) {
    ::close(master_);
    ::setenv("TERM", term, 1);
    ::unsetenv("COLUMNS");
    ::unsetenv("LINES");
    if (::login_tty(slave_) != 0) ::_exit(126);
    ::execv(pointers[0], pointers.data());
    ::_exit(127);
  }
}

Terminal::~Terminal() {
  if (process_ > 0) {
    ::kill(process_, SIGKILL);
    wait_for(process_);
  }
  ::close(slave_);
  ::close(master_);
}

void Terminal::type(const std::string& keys) {
  if (::write(master_, keys.data(), keys.size()) != static_cast<ssize_t>(keys.size()))
    throw std::runtime_error("cannot type");
}

void Terminal::resize(int width, int height) {
  const winsize size = {static_cast<unsigned short>(height), static_cast<unsigned short>(width), 0, 0};
  screen.resize(width, height);
  // The kernel sends SIGWINCH to the terminal's foreground processes by itself.
  if (::ioctl(master_, TIOCSWINSZ, &size) != 0) throw std::runtime_error("TIOCSWINSZ failed");
}

bool Terminal::read_some(int timeout_ms) {
  pollfd wait = {master_, POLLIN, 0};
  if (::poll(&wait, 1, timeout_ms) <= 0 || (wait.revents & POLLIN) == 0) return false;
  char buffer[4096];
  const ssize_t count = ::read(master_, buffer, sizeof buffer);
  if (count <= 0) return false;
  const std::string bytes(buffer, static_cast<std::size_t>(count));
  bytes_ += bytes;
  screen.write(bytes);
  return true;
}

bool Terminal::await(const std::string& text) {
  const auto end = std::chrono::steady_clock::now() + kPatience;
  while (screen.text().find(text) == std::string::npos) {
    read_some(100);
    if (std::chrono::steady_clock::now() > end) return false;
  }
  return true;
}

bool Terminal::await_gone(const std::string& text) {
  const auto end = std::chrono::steady_clock::now() + kPatience;
  while (screen.text().find(text) != std::string::npos) {
    read_some(100);
    if (std::chrono::steady_clock::now() > end) return false;
  }
  return true;
}

void Terminal::rest() {
  const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(250);
  while (std::chrono::steady_clock::now() < end) read_some(50);
}

int Terminal::end() {
  int status = 0;
  const auto end = std::chrono::steady_clock::now() + kPatience;
  while (::waitpid(process_, &status, WNOHANG) == 0) {
    read_some(50);
    if (std::chrono::steady_clock::now() > end) return -1;
  }
  process_ = -1;
  while (read_some(0)) {
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

bool Terminal::is_cooked() const {
  termios state{};
  return ::tcgetattr(slave_, &state) == 0 && (state.c_lflag & ECHO) != 0 && (state.c_lflag & ICANON) != 0;
}

}  // namespace weir::testing
