// A program with streams, in virtual time, that does what the library in a program does: it follows the plan and writes
// log, digests, notes and stacks (trace/race_format.h). What it computes depends on the order in which its commands
// would run with the delays and waits of the plan, and on nothing else, so a busy machine changes nothing.
//   fake_racy_program SCENARIO [COUNTER_FILE]
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "trace/race_format.h"

namespace {

namespace format = weir::race_format;
using Time = std::int64_t;  // virtual, in ns
using Address = std::uint64_t;

constexpr Time kCallNs = 5'000;
constexpr std::uint64_t kBlock = 4'096;

struct Plan {
  bool observes = false;
  std::uint64_t seed = 0;
  std::uint32_t one_in = 0, most = format::kMostDelays;
  Time blind_ns = 0;
  std::map<std::uint32_t, Time> delays;               // by sequence; there is one thread
  std::multimap<std::uint32_t, std::uint32_t> waits;  // second -> first
  std::set<std::uint32_t> joins, hashed, stacks;
};

std::uint32_t sequence_in(const std::string& name) {
  return static_cast<std::uint32_t>(std::strtoul(name.c_str() + name.find('.') + 1, nullptr, 10));
}

Plan read_plan(const std::string& file) {
  Plan plan;
  std::ifstream in(file);
  std::string line;
  std::getline(in, line);
  if (line != format::kPlanTitle) return plan;
  while (std::getline(in, line)) {
    std::istringstream words(line);
    std::string what, first, second;
    words >> what;
    if (what == "observe") plan.observes = true;
    if (what == "blind") words >> plan.seed >> plan.one_in >> plan.blind_ns;
    if (what == "most") words >> plan.most;
    if (what == "delay") {
      Time ns = 0;
      words >> first >> ns;
      plan.delays[sequence_in(first)] = ns;
    }
    if (what == "wait") {
      words >> first >> second;
      plan.waits.emplace(sequence_in(second), sequence_in(first));
    }
    if (what == "join" || what == "hash" || what == "stack") {
      words >> first;
      (what == "join" ? plan.joins : what == "hash" ? plan.hashed : plan.stacks).insert(sequence_in(first));
    }
  }
  return plan;
}

// One command, or one access of the host, as it runs.
struct Work {
  Time begin = 0, end = 0;
  std::vector<Address> reads, writes;
  std::uint64_t number = 0;
  std::uint64_t seen = 0;  // a digest of what it read
};

std::uint64_t mixed(std::uint64_t a, std::uint64_t b) { return format::mix(a, static_cast<std::uint32_t>(b), 7); }

class Program {
 public:
  explicit Program(std::string folder) : folder_(std::move(folder)), plan_(read_plan(folder_ + "/plan")) {
    std::ofstream(folder_ + "/claim") << ::getpid() << "\n";
    format::Header header{};
    std::memcpy(header.magic, format::kMagic, sizeof header.magic);
    header.version = format::kVersion;
    header.pid = static_cast<std::uint32_t>(::getpid());
    append(&header, sizeof header);
  }

  std::uint32_t stream() {
    const auto number = static_cast<std::uint32_t>(ends_.size());
    ends_.push_back(0);
    format::Entry entry = entry_of(format::Kind::stream);
    entry.stream = number;
    entry.object = 0x1000 + number;
    entry.name = text("stream " + std::to_string(number + 7));
    write(entry, {});
    return number;
  }
  Address allocate(bool is_host = false) {
    const Address begin = next_;
    next_ += 16 * kBlock;
    mark(format::Kind::allocate, begin, is_host ? format::kHost : std::uint8_t{0});
    return begin;
  }
  void release(Address begin, std::uint32_t stream) { mark(format::Kind::release, begin, 0, stream); }
  void allocate_again(Address begin, std::uint32_t stream) { mark(format::Kind::allocate, begin, 0, stream); }

  void kernel(std::uint32_t stream, const std::string& name, std::vector<Address> reads, std::vector<Address> writes,
              Time ns = 50'000) {
    std::vector<format::Access> accesses;
    for (const Address each : reads) accesses.push_back({each, 0, format::kReads | format::kWrites, 0});
    for (const Address each : writes)
      if (std::find(reads.begin(), reads.end(), each) == reads.end())
        accesses.push_back({each, 0, format::kReads | format::kWrites, 1});
    submit(format::Kind::kernel, stream, name, std::move(reads), std::move(writes), ns, std::move(accesses));
  }
  void copy(std::uint32_t stream, Address from, Address to) {
    submit(format::Kind::copy, stream, "", {from}, {to}, 50'000,
           {{from, kBlock, format::kReads | format::kExact, 0}, {to, kBlock, format::kWrites | format::kExact, 0}});
  }
  void record(std::uint64_t event, std::uint32_t stream) {
    host_ += kCallNs;
    events_[event] = ends_[stream];
    format::Entry entry = entry_of(format::Kind::event_record);
    entry.stream = stream;
    entry.object = event;
    write(entry, {});
  }
  void wait(std::uint32_t stream, std::uint64_t event) {
    host_ += kCallNs;
    ends_[stream] = std::max(ends_[stream], events_[event]);
    format::Entry entry = entry_of(format::Kind::stream_wait_event);
    entry.stream = stream;
    entry.object = event;
    write(entry, {});
  }
  void synchronize() {
    for (const Time end : ends_) host_ = std::max(host_, end);
    write(entry_of(format::Kind::context_synchronize), {});
  }
  void synchronize(std::uint32_t stream) {
    host_ = std::max(host_, ends_[stream]);
    format::Entry entry = entry_of(format::Kind::stream_synchronize);
    entry.stream = stream;
    write(entry, {});
  }
  void pass(Time ns) { host_ += ns; }
  // The index of what the host saw.
  std::size_t read_in_host(Address address) {
    works_.push_back({host_, host_, {address}, {}, ++numbers_});
    return works_.size() - 1;
  }
  void write_in_host(Address address) { works_.push_back({host_, host_, {}, {address}, ++numbers_}); }

  // Runs it all, in the order of virtual time; afterwards seen() is known.
  void run() {
    std::vector<std::pair<std::pair<Time, int>, std::size_t>> moments;  // writes at the end come first
    for (std::size_t i = 0; i < works_.size(); ++i) {
      moments.push_back({{works_[i].begin, 1}, i});
      moments.push_back({{works_[i].end, works_[i].end == works_[i].begin ? 2 : 0}, i});
    }
    std::stable_sort(moments.begin(), moments.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    std::map<Address, std::uint64_t> memory;
    for (const auto& [when, i] : moments) {
      Work& work = works_[i];
      if (when.second == 1) {
        for (const Address each : work.reads) work.seen = mixed(work.seen, memory[each]);
        continue;
      }
      if (hashes_.contains(i)) {
        std::vector<format::Access>& accesses = hashes_[i].second;
        for (format::Access& access : accesses) {
          const Address address = access.begin;
          const bool is_written = std::count(work.writes.begin(), work.writes.end(), address) > 0;
          access.begin = memory[address];
          access.bytes = is_written ? mixed(work.seen, work.number) : memory[address];
        }
      }
      for (const Address each : work.writes) memory[each] = mixed(work.seen, work.number);
    }
    for (auto& [work, pair] : hashes_) write(pair.first, pair.second);
  }
  std::uint64_t seen(std::size_t work) const { return works_[work].seen; }
  bool has_waits() const { return !plan_.waits.empty(); }
  void checkpoint(const std::string& name, std::uint64_t digest) {
    std::ofstream(folder_ + "/digests", std::ios::app) << name << " 1 " << std::hex << digest << "\n";
  }

  ~Program() {
    if (plan_.observes || !plan_.hashed.empty())
      std::ofstream(folder_ + "/log", std::ios::binary).write(log_.data(), static_cast<std::streamsize>(log_.size()));
  }
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

 private:
  void append(const void* bytes, std::size_t count) { log_.append(static_cast<const char*>(bytes), count); }
  static format::Entry entry_of(format::Kind kind) {
    format::Entry entry{};
    entry.kind = static_cast<std::uint8_t>(kind);
    entry.thread = 1;
    entry.stream = format::kNone;
    return entry;
  }
  void write(format::Entry entry, const std::vector<format::Access>& accesses) {
    entry.accesses = static_cast<std::uint32_t>(accesses.size());
    entry.time_ns = host_;
    append(&entry, sizeof entry);
    append(accesses.data(), accesses.size() * sizeof(format::Access));
  }
  std::uint32_t text(const std::string& words) {
    const auto [found, is_new] = texts_.try_emplace(words, static_cast<std::uint32_t>(texts_.size() + 1));
    if (is_new) {
      format::Entry entry = entry_of(format::Kind::text);
      entry.object = found->second;
      entry.accesses = static_cast<std::uint32_t>(words.size());
      append(&entry, sizeof entry);
      append(words.data(), words.size());
    }
    return found->second;
  }
  void mark(format::Kind kind, Address begin, std::uint8_t flags, std::uint32_t stream = format::kNone) {
    format::Entry entry = entry_of(kind);
    entry.flags = flags;
    entry.stream = stream;
    write(entry, {{begin, 16 * kBlock, format::kWrites | format::kExact, 0}});
  }

  void submit(format::Kind kind, std::uint32_t stream, const std::string& name, std::vector<Address> reads,
              std::vector<Address> writes, Time ns, std::vector<format::Access> accesses) {
    host_ += kCallNs;
    const std::uint32_t sequence = ++sequence_;
    Time begin = std::max(host_, ends_[stream]);
    for (auto [wait, end] = plan_.waits.equal_range(sequence); wait != end; ++wait)
      if (command_ends_.contains(wait->second)) begin = std::max(begin, command_ends_[wait->second]);
    if (plan_.delays.contains(sequence)) begin += plan_.delays[sequence];
    if (plan_.one_in > 0 && made_ < plan_.most && format::mix(plan_.seed, 1, sequence) % plan_.one_in == 0) {
      begin += plan_.blind_ns;
      ++made_;
    }
    format::Entry entry = entry_of(kind);
    entry.sequence = sequence;
    entry.stream = stream;
    entry.name = name.empty() ? 0 : text(name);
    write(entry, accesses);
    if (plan_.hashed.contains(sequence)) {
      format::Entry hashed = entry_of(format::Kind::hashed);
      hashed.sequence = sequence;
      hashes_[works_.size()] = {hashed, accesses};
    }
    if (plan_.stacks.contains(sequence))
      std::ofstream(folder_ + "/stacks", std::ios::app)
          << "command 1." << sequence << "\nfake_racy_program: " << (name.empty() ? "copy" : name) << "\n\n";
    works_.push_back({begin, begin + ns, std::move(reads), std::move(writes), ++numbers_});
    ends_[stream] = command_ends_[sequence] = begin + ns;
    if (plan_.joins.contains(sequence)) host_ = std::max(host_, ends_[stream]);
  }

  std::string folder_;
  Plan plan_;
  std::string log_;
  Time host_ = 0;
  std::vector<Time> ends_;  // of streams
  std::map<std::uint64_t, Time> events_;
  std::map<std::uint32_t, Time> command_ends_;
  std::map<std::string, std::uint32_t> texts_;
  std::vector<Work> works_;
  std::map<std::size_t, std::pair<format::Entry, std::vector<format::Access>>> hashes_;
  std::uint32_t sequence_ = 0, made_ = 0;
  std::uint64_t numbers_ = 0;
  Address next_ = 0x7000'0000'0000;
};

// How often the program was run with this file before.
int count_in(const char* file) {
  int count = 0;
  std::ifstream(file) >> count;
  std::ofstream(file) << count + 1 << "\n";
  return count;
}

}  // namespace

int main(int argc, char** argv) {
  const char* const folder = std::getenv(format::kFolderVariable);
  const std::string scenario = argc > 1 ? argv[1] : "clean";
  if (folder == nullptr || scenario == "silent") return 0;
  std::uint64_t result = 0, stale = 0;
  {
    Program program(folder);
    const std::uint32_t main_stream = program.stream(), side = program.stream();
    const Address input = program.allocate(), weights = program.allocate(), middle = program.allocate(),
                  out = program.allocate(), out_2 = program.allocate(), pinned = program.allocate(true),
                  scratch = program.allocate();
    const bool is_clean = scenario == "clean";
    const bool is_racy_by_itself = scenario == "by_itself" && count_in(argv[2]) % 2 == 1;
    std::size_t checked = 0;
    // Two steps of other work; its streams wait for each other as they must.
    for (std::uint64_t step = 0; step < 3; ++step) {
      for (int i = 0; i < 4; ++i) program.kernel(main_stream, "layer", {weights, input}, {scratch});
      program.record(1, main_stream);
      program.wait(side, 1);
      program.kernel(side, "reduce", {scratch}, {scratch});
      program.record(2, side);
      program.wait(main_stream, 2);
      program.kernel(main_stream, "update", {scratch}, {weights});
      program.synchronize();
      if (step != 1) continue;

      if (scenario == "reuse" || scenario == "reuse_of_pool") {
        program.kernel(main_stream, "produce", {input}, {middle});
        program.record(3, main_stream);
        program.wait(side, 3);
        program.kernel(side, "consume", {middle}, {out});
        program.pass(300'000);
        if (scenario == "reuse_of_pool") {
          program.release(middle, main_stream);
          program.allocate_again(middle, main_stream);
        }
        program.kernel(main_stream, "fill", {weights}, {middle});
      } else if (scenario == "two_writers") {
        // The second one ends in time by chance in the first run with a wait, which is then about the first one.
        const bool is_lucky = program.has_waits() && count_in(argv[2]) == 0;
        program.kernel(main_stream, "produce_a", {input}, {middle});
        program.kernel(main_stream, "produce_b", {input}, {out_2}, is_lucky ? 0 : 50'000);
        program.pass(300'000);
        program.kernel(side, "consume", {middle, out_2}, {out});
      } else if (scenario == "host_read") {
        program.kernel(main_stream, "produce", {input}, {middle});
        program.copy(main_stream, middle, pinned);
        program.pass(300'000);
        stale = program.read_in_host(pinned);
      } else {
        program.kernel(main_stream, "produce", {input}, {middle}, 200'000);
        program.record(3, main_stream);
        program.pass(is_racy_by_itself ? 0 : 300'000);
        if (is_clean) program.wait(side, 3);
        program.kernel(side, "before", {scratch}, {scratch});
        program.kernel(side, "consume", {middle}, {out});
        program.record(4, side);
        if (scenario == "two_races") {
          program.pass(300'000);
          program.kernel(main_stream, "consume_too", {out}, {out_2});
        }
        program.wait(main_stream, 4);
      }
      program.synchronize();
    }
    program.synchronize();
    const std::size_t one = program.read_in_host(out), two = program.read_in_host(out_2);
    checked = program.read_in_host(weights);
    program.run();
    if (scenario == "host_read") result = program.seen(stale);
    result = mixed(mixed(result, program.seen(one)), mixed(program.seen(two), program.seen(checked)));
    stale = program.seen(one);
    if (scenario == "checkpoint") {
      program.checkpoint("out", result);
      result = 0;
    }
  }
  // What is right is what the same program gives without a plan; these compare with it by a file of the first run.
  if (scenario == "crash" || scenario == "hang") {
    std::uint64_t right = stale;
    if (std::ifstream before(argv[2]); before >> right && right != stale) {
      if (scenario == "crash") std::_Exit(11);
      for (;;) std::this_thread::sleep_for(std::chrono::seconds(1));
    }
    std::ofstream(argv[2]) << stale << "\n";
  }
  const auto now = std::chrono::steady_clock::now().time_since_epoch().count();
  if (scenario == "unsteady") result = static_cast<std::uint64_t>(now) ^ static_cast<std::uint64_t>(::getpid());
  if (scenario == "unsteady_line")
    std::printf("token %llx\n",
                static_cast<unsigned long long>(now) * 31U + static_cast<unsigned long long>(::getpid()));
  std::printf("loss %.9f\n", static_cast<double>(result % 1'000'000) / 1e6);
  std::printf("took %.6f s\n", static_cast<double>(now % 1'000'000'000) / 1e9);
  std::printf("digest %016llx\n", static_cast<unsigned long long>(result));
  return 0;
}
