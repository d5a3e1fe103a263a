#include "support/postgres_server.h"

#include <fmt/format.h>
#include <pwd.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>

#include "base/error.h"

namespace weir::testing {
namespace {

namespace fs = std::filesystem;

// /usr/lib/postgresql/15/bin; the newest of them. Empty: there is none.
std::string programs_of_server() {
  std::vector<std::string> found;
  std::error_code ignored;
  for (const auto& version : fs::directory_iterator("/usr/lib/postgresql", ignored))
    if (fs::exists(version.path() / "bin/initdb", ignored) && fs::exists(version.path() / "bin/postgres", ignored))
      found.push_back((version.path() / "bin").string());
  std::sort(found.begin(), found.end());
  return found.empty() ? "" : found.back();
}

}  // namespace

PostgresServer& PostgresServer::shared() {
  static PostgresServer server;
  return server;
}

PostgresServer::PostgresServer() : programs_(programs_of_server()), user_(::getuid()), group_(::getgid()) {
  if (programs_.empty()) {
    reason_ = "there is no PostgreSQL server in /usr/lib/postgresql (scripts/setup.sh test installs one)";
    return;
  }
  // The server refuses to run as root.
  if (user_ == 0) {
    const passwd* found = ::getpwnam("postgres");
    if (found == nullptr) found = ::getpwnam("nobody");
    if (found == nullptr || ::chown(folder_.path().c_str(), found->pw_uid, found->pw_gid) != 0) {
      reason_ = "these tests run as root, and there is no other user for the server";
      return;
    }
    user_ = found->pw_uid;
    group_ = found->pw_gid;
  }
  const Outcome made = run_program(as_its_user({programs_ + "/initdb", "-D", folder_ / "data", "-U", "weir", "-A",
                                                "trust", "-E", "UTF8", "--locale=C", "--no-sync", "--no-instructions"}),
                                   folder_.path());
  if (made.code != 0)
    reason_ = "initdb failed: " + made.err.substr(0, 500);
  else if (!start())
    reason_ = "the server did not start";
}

PostgresServer::~PostgresServer() {
  if (server_) kill();
}

std::vector<std::string> PostgresServer::as_its_user(std::vector<std::string> command) const {
  if (::getuid() != 0) return command;
  std::vector<std::string> all = {"setpriv", fmt::format("--reuid={}", user_), fmt::format("--regid={}", group_),
                                  "--clear-groups", "--pdeathsig=KILL"};
  all.insert(all.end(), command.begin(), command.end());
  return all;
}

bool PostgresServer::answers() const {
  return run_program({programs_ + "/pg_isready", "-q", "-h", folder_.path().string(), "-U", "weir", "-d", "postgres"})
             .code == 0;
}

bool PostgresServer::start() {
  const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(2);
  while (std::chrono::steady_clock::now() < end) {
    if (!server_ || !server_->listen(0)) {
      // Refuses to start while processes of the one before still have its memory, so it is tried again.
      ProcessOptions options;
      options.command = as_its_user({programs_ + "/postgres", "-D", folder_ / "data", "-k", folder_.path().string(),
                                     "-c", "listen_addresses=", "-c", "fsync=off", "-c", "full_page_writes=off", "-c",
                                     "shared_buffers=32MB", "-c", "max_connections=100"});
      options.folder = folder_.path();
      server_ = std::make_unique<Process>(std::move(options));
    }
    server_->listen(50);
    if (answers()) return true;
  }
  return false;
}

std::string PostgresServer::address(const std::string& database) const {
  return fmt::format("postgresql://weir@/{}?host={}", database, folder_.path().string());
}

std::string PostgresServer::make_database() {
  const std::string name = fmt::format("test_{}_{}", ::getpid(), ++databases_);
  const Outcome made =
      run_program({programs_ + "/createdb", "-h", folder_.path().string(), "-U", "weir", "-T", "template0", name});
  if (made.code != 0) fail("createdb failed: " + made.err);
  return address(name);
}

void PostgresServer::kill() {
  server_->signal(SIGKILL);
  while (server_->listen(50)) {
  }
}

void PostgresServer::kill_child(std::uint32_t chance) {
  std::ifstream list(fmt::format("/proc/{0}/task/{0}/children", server_->id()));
  std::vector<pid_t> children;
  for (pid_t child = 0; list >> child;) children.push_back(child);
  if (!children.empty()) ::kill(children[chance % children.size()], SIGKILL);
}

}  // namespace weir::testing
