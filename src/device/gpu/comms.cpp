#include "device/gpu/comms.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <map>
#include <sstream>
#include <string>

#include "device/gpu/libraries.h"
#include "device/gpu/staging.h"
#include "device/rank/communicator.h"

namespace weir {
namespace {

constexpr const char* kAskedFor = "it was asked for";

// What a rank reports to rank 0, one line each: host, device, ranks on the host, devices, why it has no library.
std::string introduction(const PrimaryContext& context, Ranks local, int device_count, const std::string& reason) {
  std::array<char, 256> host{};
  gethostname(host.data(), host.size() - 1);
  return fmt::format("{}\n{}\n{}\n{}\n{}", host.data(), context.index(), local.count, device_count, reason);
}

// Why the library cannot connect these ranks; empty if it can.
std::string objection(const std::vector<std::string>& introductions) {
  std::map<std::pair<std::string, std::string>, std::size_t> owners;  // of devices, by host
  for (std::size_t rank = 0; rank < introductions.size(); ++rank) {
    std::istringstream lines(introductions[rank]);
    std::string host, index, ranks, devices, reason;
    for (std::string* field : {&host, &index, &ranks, &devices, &reason}) std::getline(lines, *field);
    if (reason == kAskedFor) return kAskedFor;
    if (!reason.empty()) return fmt::format("{} (rank {})", reason, rank);
    if (std::stoi(ranks) > std::stoi(devices))
      return fmt::format("NCCL needs a GPU per rank: {} ranks on this host, {} {}", ranks, devices,
                         devices == "1" ? "GPU" : "GPUs");
    const auto [owner, is_new] = owners.emplace(std::pair(host, index), rank);
    if (!is_new)
      return fmt::format("NCCL needs a GPU per rank: ranks {} and {} both use device {}", owner->second, rank, index);
  }
  return "";
}

// One decision for all ranks: a rank that decides alone would leave the others waiting.
std::string agreed_objection(PrimaryContext& context, Communicator& communicator, const std::string& reason) {
  int devices = 0;
  check(context.api(), context.api().device_count(&devices), "counting devices");
  return broadcast_text(
      communicator, objection(communicator.gather(introduction(context, communicator.local_ranks(), devices, reason))));
}

}  // namespace

int launch_collective(const GpuCollectives& collectives, GpuComm comm, const GpuCollective& collective,
                      GpuStream stream) noexcept {
  const auto& [op, type, ranks, from, to, count] = collective;
  const int number = nccl_type(type);
  switch (op) {
    case CollectiveOp::all_gather:
      return collectives.all_gather(from, to, count, number, comm, stream);
    case CollectiveOp::reduce_scatter:
      return collectives.reduce_scatter(from, to, count, number, kNcclSum, comm, stream);
    case CollectiveOp::all_reduce:
      return collectives.all_reduce(from, to, count, number, kNcclSum, comm, stream);
    case CollectiveOp::all_to_all:
    case CollectiveOp::shift:
      break;
  }
  int result = collectives.group_start();
  if (result != 0) return result;
  const auto note = [&](int next) {
    if (result == 0) result = next;
  };
  if (op == CollectiveOp::shift) {
    note(collectives.send(from, count, number, (ranks.rank + 1) % ranks.count, comm, stream));
    note(collectives.recv(to, count, number, (ranks.rank + ranks.count - 1) % ranks.count, comm, stream));
  } else {
    const std::uint64_t bytes = count * size_of(type);
    for (int peer = 0; peer < ranks.count; ++peer) {
      note(collectives.send(from + static_cast<std::uint64_t>(peer) * bytes, count, number, peer, comm, stream));
      note(collectives.recv(to + static_cast<std::uint64_t>(peer) * bytes, count, number, peer, comm, stream));
    }
  }
  note(collectives.group_end());  // even after an error: an open group swallows all later calls
  return result;
}

StreamComms::StreamComms(PrimaryContext& context, const Step& step, const Placement& placement,
                         Communicator* communicator, bool is_staged) {
  // Ranks have different steps where they are stages of a pipeline, but then all have groups.
  std::vector<RankGroup> groups = rank_groups(step);
  groups.insert(groups.begin(), RankGroup{});
  std::vector<std::vector<bool>> uses(groups.size());  // by group and stream
  for (auto& of_group : uses) of_group.resize(static_cast<std::size_t>(placement.stream_count), false);
  bool is_needed = false;
  for (CommandId id = 0; id < step.commands().size(); ++id) {
    const Command& command = step.commands()[id];
    if (command.kind != CommandKind::collective) continue;
    const auto group = std::find(groups.begin(), groups.end(), command.group) - groups.begin();
    uses[static_cast<std::size_t>(group)][placement.stream_of[id]] = true;
    is_needed = true;
  }
  if (!is_needed) return;
  if (communicator == nullptr)
    reject(fmt::format("{}: the step has collectives, but there are no other ranks to talk to", context.device_name()),
           "Start the run with --ranks.");
  ranks_ = communicator->ranks();
  std::string reason = is_staged ? kAskedFor : "";
  if (!is_staged) {
    collectives_ = context.api().collectives == nullptr ? nullptr : context.api().collectives(&reason);
    if (collectives_ == nullptr && reason.empty()) reason = "this build knows no library for them";
  }
  staged_reason_ = agreed_objection(context, *communicator, reason);
  if (!staged_reason_.empty()) {
    if (const std::string lacking = StagedCollectives::lacking(context.api()); !lacking.empty())
      reject(fmt::format("collectives have to be staged through host memory ({}), but {}", staged_reason_, lacking),
             is_staged ? "Use --device cpu, or leave network.* out." : "Use --device cpu, or a GPU for each rank.");
    collectives_ = nullptr;
    carrier_ = fmt::format("{}, staged through host memory: {}", communicator->library(), staged_reason_);
    return;
  }
  carrier_ = collectives_->version;

  const auto check_nccl = [&](int result, std::string_view action) {
    if (result != 0)
      fail(fmt::format("{}: {} failed: {}", context.device_name(), action, collectives_->describe(result)),
           "NCCL_DEBUG=INFO says more.");
  };
  const auto connect = [&](std::size_t stream, const RankGroup& group, const GpuCommId& id) {
    const Ranks own = group.within(ranks_);
    GpuComm comm = nullptr;
    check_nccl(collectives_->comm_init_rank(&comm, own.count, id, own.rank), "making a communicator");
    comms_.push_back({static_cast<StreamId>(stream), group, Handle<GpuComm, Close>(comm, {collectives_})});
  };
  for (std::size_t stream = 0; stream < uses[0].size(); ++stream) {
    if (!uses[0][stream]) continue;
    GpuCommId id{};
    if (ranks_.rank == 0) check_nccl(collectives_->get_unique_id(&id), "naming a communicator");
    communicator->broadcast(std::as_writable_bytes(std::span(id.bytes)), 0);
    connect(stream, {}, id);
  }
  if (groups.size() == 1) return;

  // The first rank of each group names its communicators; one round tells all ranks all names.
  const auto each_use = [&](const auto& body) {
    for (std::size_t g = 1; g < groups.size(); ++g)
      for (std::size_t stream = 0; stream < uses[g].size(); ++stream)
        if (uses[g][stream])
          body(stream, groups[g],
               fmt::format("\n{} {} {} {} {} ", groups[g].first(ranks_.rank), groups[g].stride, groups[g].size,
                           groups[g].offset, stream));
  };
  std::string named;
  each_use([&](std::size_t, const RankGroup& group, const std::string& key) {
    if (group.first(ranks_.rank) != ranks_.rank) return;
    GpuCommId id{};
    check_nccl(collectives_->get_unique_id(&id), "naming a communicator");
    named += key;
    for (const char byte : id.bytes) named += fmt::format("{:02x}", static_cast<unsigned char>(byte));
  });
  std::string all_named;
  for (const std::string& text : communicator->gather(named)) all_named += text;
  all_named = broadcast_text(*communicator, std::move(all_named));
  each_use([&](std::size_t stream, const RankGroup& group, const std::string& key) {
    const std::size_t at = all_named.find(key);
    GpuCommId id{};
    if (at == std::string::npos || all_named.size() < at + key.size() + 2 * sizeof id.bytes)
      fail(fmt::format("{}: no rank has named a communicator", context.device_name()));
    for (std::size_t i = 0; i < sizeof id.bytes; ++i)
      id.bytes[i] = static_cast<char>(std::stoi(all_named.substr(at + key.size() + 2 * i, 2), nullptr, 16));
    connect(stream, group, id);
  });
}

void StreamComms::abandon() noexcept {
  for (GroupComm& each : comms_) collectives_->comm_abort(each.comm.release());
}

}  // namespace weir
