// The communicator over MPI: the only source that includes mpi.h, built as libweir_mpi.so. Knows no device, no run.
#include <fmt/format.h>
#include <mpi.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <climits>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "device/rank/mpi.h"
#include "weir_build.h"

namespace weir {
namespace {

constexpr std::int64_t kLongestCollective_ns = 120'000'000'000;
constexpr std::size_t kLargestMessage = 1u << 30;  // MPI counts are int
constexpr int kPingPongs = 64;
constexpr std::int64_t kPatience_ns = 20'000;  // of spinning, before it yields the core

// Adds in float and rounds once per step, in whatever order MPI chooses.
template <class T>
void add_small(void* in, void* inout, int* count, MPI_Datatype*) {
  const auto* const from = static_cast<const T*>(in);
  auto* const to = static_cast<T*>(inout);
  for (int i = 0; i < *count; ++i) to[i] = from_float<T>(to_float(from[i]) + to_float(to[i]));
}

// "Open MPI v4.1.4, package: Debian OpenMPI, ident: 4.1.4, ..." or "MPICH Version:\t4.0.2\nMPICH Release date: ..."
std::string library_name() {
  char text[MPI_MAX_LIBRARY_VERSION_STRING] = {};
  int length = 0;
  if (MPI_Get_library_version(text, &length) != MPI_SUCCESS) return "unknown MPI";
  std::string name(text, static_cast<std::size_t>(length));
  name.resize(std::min(name.find_first_of(",\n"), name.size()));
  std::replace(name.begin(), name.end(), '\t', ' ');
  return name;
}

struct Pending {
  MPI_Request requests[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
  std::int64_t started_ns = 0;
  int channel = 0;
  CollectiveOp op{};
};

class MpiCommunicator final : public Communicator {
 public:
  MpiCommunicator() {
    int provided = 0;
    if (MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &provided) != MPI_SUCCESS)
      fail("MPI_Init_thread failed", "Start a job with mpirun or srun, or run without --ranks.");
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    char host[MPI_MAX_PROCESSOR_NAME] = {};
    int length = 0;
    MPI_Get_processor_name(host, &length);
    host_.assign(host, static_cast<std::size_t>(length));
    check(MPI_Comm_rank(MPI_COMM_WORLD, &ranks_.rank), "MPI_Comm_rank");
    check(MPI_Comm_size(MPI_COMM_WORLD, &ranks_.count), "MPI_Comm_size");
    if (provided < MPI_THREAD_SERIALIZED)
      fail(fmt::format("{}: this MPI does not allow calls from more than one thread", name()),
           "Weir needs MPI_THREAD_SERIALIZED: use an MPI that is built with threads.");
    MPI_Comm local = MPI_COMM_NULL;
    check(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &local), "MPI_Comm_split_type");
    MPI_Comm_rank(local, &local_.rank);
    MPI_Comm_size(local, &local_.count);
    MPI_Comm_free(&local);
    check(MPI_Comm_dup(MPI_COMM_WORLD, &control_), "MPI_Comm_dup");
    check(MPI_Op_create(add_small<F16>, 1, &add_half_), "MPI_Op_create");
    check(MPI_Op_create(add_small<Bf16>, 1, &add_bfloat16_), "MPI_Op_create");
  }

  ~MpiCommunicator() override {
    for (MPI_Comm& channel : channels_) MPI_Comm_free(&channel);
    for (Group& group : groups_)
      for (MPI_Comm& channel : group.channels) MPI_Comm_free(&channel);
    MPI_Op_free(&add_half_);
    MPI_Op_free(&add_bfloat16_);
    MPI_Comm_free(&control_);
    MPI_Finalize();
  }
  MpiCommunicator(const MpiCommunicator&) = delete;
  MpiCommunicator& operator=(const MpiCommunicator&) = delete;

  Ranks ranks() const override { return ranks_; }
  Ranks local_ranks() const override { return local_; }
  std::string library() const override { return library_name(); }
  std::string host() const override { return host_; }

  void open_channels(int count) override {
    while (static_cast<int>(channels_.size()) < count) {
      MPI_Comm channel = MPI_COMM_NULL;
      check(MPI_Comm_dup(MPI_COMM_WORLD, &channel), "MPI_Comm_dup");
      channels_.push_back(channel);
    }
  }

  void open_group(const RankGroup& group, int count) override {
    auto known = std::find_if(groups_.begin(), groups_.end(), [&](const Group& each) { return each.group == group; });
    if (known == groups_.end()) known = groups_.insert(known, {group, {}});
    std::vector<int> members;
    for (int i = 0; i < group.within(ranks_).count; ++i) members.push_back(group.first(ranks_.rank) + i * group.stride);
    MPI_Group all = MPI_GROUP_NULL, own = MPI_GROUP_NULL;
    check(MPI_Comm_group(MPI_COMM_WORLD, &all), "MPI_Comm_group");
    check(MPI_Group_incl(all, static_cast<int>(members.size()), members.data(), &own), "MPI_Group_incl");
    while (static_cast<int>(known->channels.size()) < count) {
      MPI_Comm channel = MPI_COMM_NULL;
      check(MPI_Comm_create_group(MPI_COMM_WORLD, own, 3, &channel), "MPI_Comm_create_group");
      known->channels.push_back(channel);
    }
    MPI_Group_free(&own);
    MPI_Group_free(&all);
  }

  Request start(int channel, const Collective& collective, ElementType type, const void* from, void* to,
                std::uint64_t count) override;
  bool test(Request request) override;

  void barrier() override {
    MPI_Request request = MPI_REQUEST_NULL;
    check(MPI_Ibarrier(control_, &request), "MPI_Ibarrier");
    meet(request);
  }
  void broadcast(std::span<std::byte> bytes, int from) override {
    for (std::size_t done = 0; done < bytes.size(); done += kLargestMessage) {
      const std::size_t size = std::min(kLargestMessage, bytes.size() - done);
      check(MPI_Bcast(bytes.data() + done, static_cast<int>(size), MPI_BYTE, from, control_), "MPI_Bcast");
    }
  }
  std::vector<std::string> gather(const std::string& text) override;
  std::string scatter(const std::vector<std::string>& texts) override;
  bool any(bool claim) override {
    const int mine = claim ? 1 : 0;
    int all = 0;
    MPI_Request request = MPI_REQUEST_NULL;
    check(MPI_Iallreduce(&mine, &all, 1, MPI_INT, MPI_MAX, control_, &request), "MPI_Iallreduce");
    meet(request);
    return all != 0;
  }
  RankClockOffset clock_offset() override;

  [[noreturn]] void abort(int code) noexcept override {
    MPI_Abort(MPI_COMM_WORLD, code);
    ::_exit(code);
  }

 private:
  std::string name() const { return fmt::format("rank {} of {} ({})", ranks_.rank, ranks_.count, host_); }

  void check(int status, const char* call) const {
    if (status == MPI_SUCCESS) return;
    char text[MPI_MAX_ERROR_STRING] = {};
    int length = 0;
    MPI_Error_string(status, text, &length);
    fail(fmt::format("{}: {}: {}", name(), call, std::string_view(text, static_cast<std::size_t>(length))));
  }

  // In pieces that MPI can count.
  void send(const std::string& text, int to) const;
  std::string receive(int from) const;

  // Waits without taking a core from ranks that still measure; then all leave within one short barrier.
  void meet(MPI_Request& request) const {
    int is_done = 0;
    const std::int64_t begun = now_ns();
    for (;;) {
      check(MPI_Test(&request, &is_done, MPI_STATUS_IGNORE), "MPI_Test");
      if (is_done != 0) break;
      if (now_ns() - begun > kPatience_ns) std::this_thread::sleep_for(std::chrono::microseconds(50));
    }
    check(MPI_Barrier(control_), "MPI_Barrier");
  }

  MPI_Datatype type_of(ElementType type) const {
    if (type == ElementType::f32) return MPI_FLOAT;
    return type == ElementType::i32 ? MPI_INT32_T : MPI_UINT16_T;
  }
  MPI_Op sum_of(ElementType type) const {
    if (type == ElementType::f16) return add_half_;
    return type == ElementType::bf16 ? add_bfloat16_ : MPI_SUM;
  }
  Pending* take() {
    if (idle_.empty()) {
      all_.push_back(std::make_unique<Pending>());
      idle_.reserve(all_.size());
      return all_.back().get();
    }
    Pending* const pending = idle_.back();
    idle_.pop_back();
    return pending;
  }

  Ranks ranks_, local_;
  std::string host_;
  MPI_Comm control_ = MPI_COMM_NULL;
  MPI_Op add_half_ = MPI_OP_NULL, add_bfloat16_ = MPI_OP_NULL;
  struct Group {
    RankGroup group;
    std::vector<MPI_Comm> channels;
  };
  // The open channels between the ranks of a group.
  const std::vector<MPI_Comm>& channels_of(const RankGroup& group) const {
    for (const Group& each : groups_)
      if (each.group == group) return each.channels;
    return channels_;
  }

  std::vector<MPI_Comm> channels_;  // between all ranks
  std::vector<Group> groups_;
  std::vector<std::unique_ptr<Pending>> all_;
  std::vector<Pending*> idle_;
};

Communicator::Request MpiCommunicator::start(int channel, const Collective& collective, ElementType type,
                                             const void* from, void* to, std::uint64_t count) {
  const CollectiveOp op = collective.op;
  const Ranks own = collective.group.within(ranks_);
  const std::vector<MPI_Comm>& channels = channels_of(collective.group);
  const auto where = [&] { return fmt::format("{}: {} on channel {}", name(), name_of(op), channel); };
  const bool is_open = collective.group.has_all() || &channels != &channels_;
  if (!is_open || channel < 0 || channel >= static_cast<int>(channels.size()))
    fail(where() + ": the channel is not open");
  const auto parts = static_cast<std::uint64_t>(own.count);
  const bool is_split = op == CollectiveOp::reduce_scatter || op == CollectiveOp::all_to_all;
  if (is_split && count % parts != 0) fail(fmt::format("{}: {} elements do not divide by {}", where(), count, parts));
  const std::uint64_t each = is_split ? count / parts : count;
  if (each > INT_MAX)
    fail(fmt::format("{}: {} elements per rank are more than MPI counts", where(), each),
         "Split the collective, or use a smaller --scale.");
  const int n = static_cast<int>(each);
  const MPI_Datatype datatype = type_of(type);
  const MPI_Comm comm = channels[static_cast<std::size_t>(channel)];
  const void* source = from;
  if (from == to) {
    if (op != CollectiveOp::all_reduce) fail(where() + ": input and output are the same memory");
    source = MPI_IN_PLACE;
  }

  Pending* const pending = take();
  pending->op = op;
  pending->channel = channel;
  pending->started_ns = now_ns();
  MPI_Request* const requests = pending->requests;
  switch (op) {
    case CollectiveOp::all_gather:
      check(MPI_Iallgather(source, n, datatype, to, n, datatype, comm, requests), "MPI_Iallgather");
      break;
    case CollectiveOp::reduce_scatter:
      check(MPI_Ireduce_scatter_block(source, to, n, datatype, sum_of(type), comm, requests),
            "MPI_Ireduce_scatter_block");
      break;
    case CollectiveOp::all_reduce:
      check(MPI_Iallreduce(source, to, n, datatype, sum_of(type), comm, requests), "MPI_Iallreduce");
      break;
    case CollectiveOp::all_to_all:
      check(MPI_Ialltoall(source, n, datatype, to, n, datatype, comm, requests), "MPI_Ialltoall");
      break;
    case CollectiveOp::shift: {
      const int before = (own.rank + own.count - 1) % own.count;
      const int after = (own.rank + 1) % own.count;
      check(MPI_Irecv(to, n, datatype, before, 0, comm, &requests[0]), "MPI_Irecv");
      check(MPI_Isend(source, n, datatype, after, 0, comm, &requests[1]), "MPI_Isend");
      break;
    }
  }
  return reinterpret_cast<Request>(pending);
}

bool MpiCommunicator::test(Request request) {
  auto* const pending = reinterpret_cast<Pending*>(request);
  int is_done = 0;
  // One status each: with MPI_STATUSES_IGNORE the failed request could not be identified.
  MPI_Status statuses[2];
  check(MPI_Testall(2, pending->requests, &is_done, statuses), "MPI_Testall");
  if (is_done != 0) {
    idle_.push_back(pending);
    return true;
  }
  if (now_ns() - pending->started_ns > kLongestCollective_ns)
    fail(fmt::format("{}: {} on channel {} has not ended after {} s: another rank does not take part", name(),
                     name_of(pending->op), pending->channel, kLongestCollective_ns / 1'000'000'000),
         "Look for a rank that hangs or swaps; the others wait for it.");
  return false;
}

void MpiCommunicator::send(const std::string& text, int to) const {
  const std::uint64_t size = text.size();
  check(MPI_Send(&size, 1, MPI_UINT64_T, to, 1, control_), "MPI_Send");
  for (std::size_t done = 0; done < text.size(); done += kLargestMessage)
    check(MPI_Send(text.data() + done, static_cast<int>(std::min(kLargestMessage, text.size() - done)), MPI_CHAR, to, 1,
                   control_),
          "MPI_Send");
}

std::string MpiCommunicator::receive(int from) const {
  std::uint64_t size = 0;
  check(MPI_Recv(&size, 1, MPI_UINT64_T, from, 1, control_, MPI_STATUS_IGNORE), "MPI_Recv");
  std::string text(size, '\0');
  for (std::size_t done = 0; done < size; done += kLargestMessage)
    check(MPI_Recv(text.data() + done, static_cast<int>(std::min(kLargestMessage, size - done)), MPI_CHAR, from, 1,
                   control_, MPI_STATUS_IGNORE),
          "MPI_Recv");
  return text;
}

std::vector<std::string> MpiCommunicator::gather(const std::string& text) {
  if (ranks_.rank != 0) {
    send(text, 0);
    return {};
  }
  std::vector<std::string> texts = {text};
  for (int rank = 1; rank < ranks_.count; ++rank) texts.push_back(receive(rank));
  return texts;
}

std::string MpiCommunicator::scatter(const std::vector<std::string>& texts) {
  if (ranks_.rank != 0) return receive(0);
  for (int rank = 1; rank < ranks_.count; ++rank) send(texts[static_cast<std::size_t>(rank)], rank);
  return texts.front();
}

RankClockOffset MpiCommunicator::clock_offset() {
  RankClockOffset best;
  best.error_ns = ranks_.rank == 0 ? 0 : 1e18;
  for (int rank = 1; rank < ranks_.count; ++rank) {
    if (ranks_.rank != 0 && ranks_.rank != rank) continue;
    for (int i = 0; i < kPingPongs; ++i) {
      std::int64_t time = 0;
      if (ranks_.rank == 0) {
        check(MPI_Recv(&time, 1, MPI_INT64_T, rank, 2, control_, MPI_STATUS_IGNORE), "MPI_Recv");
        time = now_ns();
        check(MPI_Send(&time, 1, MPI_INT64_T, rank, 2, control_), "MPI_Send");
        continue;
      }
      const std::int64_t sent = now_ns();
      check(MPI_Send(&time, 1, MPI_INT64_T, 0, 2, control_), "MPI_Send");
      check(MPI_Recv(&time, 1, MPI_INT64_T, 0, 2, control_, MPI_STATUS_IGNORE), "MPI_Recv");
      const auto round_trip = static_cast<double>(now_ns() - sent);
      if (round_trip / 2 < best.error_ns) best = {static_cast<double>(time - sent) - round_trip / 2, round_trip / 2};
    }
  }
  return best;
}

std::unique_ptr<Communicator> open_mpi() { return std::make_unique<MpiCommunicator>(); }

}  // namespace
}  // namespace weir

extern "C" __attribute__((visibility("default"))) const weir::MpiModule* weir_mpi_module() {
  static const weir::MpiModule module = {weir::kMpiModuleInterface, WEIR_VERSION, weir::library_name, weir::open_mpi};
  return &module;
}
