// A PostgreSQL server of a test's own: in a private folder, reached through a socket there, gone with the object. Knows
// Debian's folders; skips nothing itself.
#pragma once

#include <sys/types.h>

#include <memory>
#include <string>
#include <vector>

#include "base/process.h"
#include "support/programs.h"

namespace weir::testing {

class PostgresServer {
 public:
  // One for all tests of a program, started when it is first asked for.
  static PostgresServer& shared();

  PostgresServer();
  ~PostgresServer();
  PostgresServer(const PostgresServer&) = delete;
  PostgresServer& operator=(const PostgresServer&) = delete;

  // Why there is no server; empty where there is one.
  const std::string& reason() const { return reason_; }
  // The address of a new, empty database.
  std::string make_database();
  std::string address(const std::string& database) const;

  // SIGKILL to the server's first process. Its others notice and end.
  void kill();
  // SIGKILL to one of its other processes, by chance: the first one then ends all connections and recovers.
  void kill_child(std::uint32_t chance);
  // After kill(): returns when it answers again. False if it does not within two minutes.
  bool start();

 private:
  bool answers() const;
  std::vector<std::string> as_its_user(std::vector<std::string> command) const;

  Folder folder_;
  std::string programs_, reason_;
  uid_t user_ = 0;
  gid_t group_ = 0;
  std::unique_ptr<Process> server_;
  int databases_ = 0;
};

}  // namespace weir::testing
