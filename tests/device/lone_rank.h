// One rank that hears what the test says that the others have told it. Its collectives fail unless the test has others.
#pragma once

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "base/error.h"
#include "device/gpu/api.h"
#include "device/rank/communicator.h"

namespace weir {

class LoneRank final : public Communicator {
 public:
  LoneRank(Ranks ranks, Ranks local) : ranks_(ranks), local_(local) {}
  Ranks ranks() const override { return ranks_; }
  Ranks local_ranks() const override { return local_; }
  std::string library() const override { return "nobody"; }
  void open_channels(int) override {}
  Request start(int, const Collective&, ElementType, const void*, void*, std::uint64_t) override {
    on_start();
    return 1;
  }
  bool test(Request) override { return on_test(); }
  void barrier() override {}
  void broadcast(std::span<std::byte> bytes, int) override {
    if (ranks_.rank == 0) return;
    // From rank 0 comes the size of its objection, which is none, and then names of communicators.
    std::fill(bytes.begin(), bytes.end(), std::byte{0});
    if (bytes.size() == sizeof(GpuCommId)) std::memcpy(bytes.data(), "fake", 5);
  }
  // The others are on hosts of their own, with a device each, unless they are `beside` this one.
  std::vector<std::string> gather(const std::string& text) override {
    if (ranks_.rank != 0) return {};
    std::vector<std::string> all = {text};
    for (int r = 1; r < ranks_.count; ++r) all.push_back(is_beside ? text : "host" + std::to_string(r) + "\n0\n1\n1\n");
    return all;
  }
  [[noreturn]] void abort(int) noexcept override { std::abort(); }

  bool is_beside = false;
  std::function<void()> on_start = [] { fail("nobody takes part"); };
  std::function<bool()> on_test = [] { return true; };

 private:
  Ranks ranks_, local_;
};

}  // namespace weir
