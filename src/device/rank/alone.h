// A communicator of one rank, whose collectives only copy. Used without MPI for steps that keep their collectives
// (Ranks::has_lone_collectives).
#pragma once

#include "device/rank/communicator.h"

namespace weir {

class AloneCommunicator final : public Communicator {
 public:
  Ranks ranks() const override { return {0, 1, true}; }
  Ranks local_ranks() const override { return {0, 1, true}; }
  std::string library() const override { return "none: one rank copies to itself"; }
  void open_channels(int) override {}
  Request start(int channel, const Collective& collective, ElementType type, const void* from, void* to,
                std::uint64_t count) override;
  bool test(Request) override { return true; }
  void barrier() override {}
  void broadcast(std::span<std::byte>, int) override {}
  std::vector<std::string> gather(const std::string& text) override { return {text}; }
  std::string scatter(const std::vector<std::string>& texts) override { return texts.front(); }
  [[noreturn]] void abort(int code) noexcept override;
};

}  // namespace weir
