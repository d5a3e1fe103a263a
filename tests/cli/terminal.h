// A program in a pseudo terminal, and what a person would see there: a small terminal in place of the real one. Knows
// the sequences that TERM=xterm asks for; fails on ones that it does not.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

namespace weir::testing {

// A screen that obeys what is written to it.
class TerminalScreen {
 public:
  TerminalScreen(int width, int height) { resize(width, height); }
  void resize(int width, int height);
  void write(const std::string& bytes);

  std::string line(int y) const;
  std::string text() const;
  bool is_alternate() const { return is_alternate_; }  // as full-screen programs leave the shell's lines alone
  bool is_cursor_shown() const { return is_cursor_shown_; }
  const std::vector<std::string>& unknown() const { return unknown_; }

 private:
  void put(char c);
  void control(const std::string& parameters, char final);
  void line_feed();

  int width_ = 0, height_ = 0, x_ = 0, y_ = 0;
  int top_ = 0, bottom_ = 0;  // of the part that scrolls
  std::vector<std::string> lines_;
  std::string pending_;  // the begin of a sequence that has not come whole
  char last_ = ' ';
  bool is_alternate_ = false, is_cursor_shown_ = true;
  std::vector<std::string> unknown_;
};

// Runs the built binary in a pseudo terminal.
class Terminal {
 public:
  Terminal(const std::vector<std::string>& arguments, int width, int height, const char* term = "xterm");
  ~Terminal();  // ends the program where it still runs
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;

  TerminalScreen screen;
  pid_t process() const { return process_; }
  void type(const std::string& keys);
  void resize(int width, int height);  // as a window does: sets the size, then SIGWINCH
  // Reads until the screen has the text, or has it not; false where that takes more than a minute.
  bool await(const std::string& text);
  bool await_gone(const std::string& text);
  void rest();  // reads what comes in a quarter of a second
  // Reads to the end; the exit code, or 128 + signal.
  int end();
  // Everything that came, as it came.
  const std::string& bytes() const { return bytes_; }
  // Whether the terminal echoes and reads whole lines, as a shell left it.
  bool is_cooked() const;

 private:
  bool read_some(int timeout_ms);

  int master_ = -1, slave_ = -1;
  pid_t process_ = -1;
  std::string bytes_;
};

}  // namespace weir::testing
