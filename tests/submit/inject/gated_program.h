// A program of somebody else under the scheduler, as tests see it: a daemon, a client that comes first, and the program
// as a child.
#pragma once

#include <gtest/gtest.h>
#include <sys/wait.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>

#include "submit/sched/daemon.h"

namespace weir::testing {

struct Ended {
  int status = -1;
  std::string output;
  bool has(const std::string& line) const { return ("\n" + output).find("\n" + line + "\n") != std::string::npos; }
  // "most 2" -> 2
  long number(const std::string& name) const {
    const std::size_t at = ("\n" + output).find("\n" + name + " ");
    return at == std::string::npos ? -1 : std::atol(output.c_str() + at + name.size() + 1);
  }
};

class GatedProgramTest : public ::testing::Test {
 protected:
  // Without ageing, so that what is held stays held until the test says otherwise.
  void start_daemon(std::uint32_t in_flight = 2) {
    scheduler::ServerOptions options = folder_.options();
    options.settings.ageing_ns = 0;
    options.in_flight = in_flight;
    options.mechanism = mechanism_;
    options.recent_ns = scheduler::kNever;  // the first client binds the program although it does nothing
    server_ = std::make_unique<ServerThread>(options);
    std::string reason;
    first_ = scheduler::Connection::open(folder_.socket(), {.priority = 10}, "first", &reason);
    ASSERT_NE(first_, nullptr) << reason;
  }
  void TearDown() override {
    first_.reset();
    server_.reset();
  }

  // The device is the first client's until release().
  void occupy() { first_->gate().enter(); }
  void release() { first_->gate().leave(); }

  // Runs a shell's command line with the scheduler's variables and those given.
  Ended run(const std::string& variables, const std::string& program) const {
    const std::string line = "WEIR_SCHED_SOCKET='" + folder_.socket() + "' WEIR_SCHED_TERMS='priority=0' " + variables +
                             " timeout 100 " + program + " 2>&1";
    Ended ended;
    std::FILE* const pipe = ::popen(line.c_str(), "r");
    if (pipe == nullptr) return ended;
    std::array<char, 4096> part;
    for (std::size_t size = 0; (size = std::fread(part.data(), 1, part.size(), pipe)) > 0;)
      ended.output.append(part.data(), size);
    const int status = ::pclose(pipe);
    ended.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    return ended;
  }

  const scheduler::Mechanism* mechanism_ = nullptr;
  SocketFolder folder_;
  std::unique_ptr<ServerThread> server_;
  std::unique_ptr<scheduler::Connection> first_;
};

}  // namespace weir::testing
