// Chooses for every client how it makes way for those that come first: by waiting at its gate, or in a part of the
// device, and with how many commands there. A state machine without clock, process or device: what clients say of
// themselves, and the time, are arguments. Allocates only for texts.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>

#include "submit/sched/board.h"
#include "submit/sched/part_fit.h"
#include "submit/sched/policy.h"

namespace weir::scheduler {

// What is known about the client on a seat.
struct ClientFacts {
  int pid = 0;  // for texts; 0: not visible, so they name the seat
  Terms terms;
  std::uint64_t may_yield_to = 0;  // seats; see may_yield()
  Confinable confinable = Confinable::unknown;
  bool is_apart = false;            // its process does not run beside others': it is in no MPS, or that is down
  std::int64_t command_ns = 0;      // its longest command of late; 0: not known
  std::uint64_t commands = 0;       // that passed its gate
  std::uint64_t requests = 0;       // that have ended
  std::uint64_t requests_ns = 0;    // what these took together
  std::int64_t request_p99_ns = 0;  // of the latest kRequestWindow; 0: too few
};

// Why a client has what it has.
enum class Why : std::uint8_t {
  alone,
  first,         // there is nobody whom it would have to make way for
  nobody_about,  // there is, but nobody of late
  no_mechanism,  // the rest up to turns: held at the gate
  isolated,
  apart,           // it, or one that it yields to, is given the device alone by the driver
  not_confinable,  // see ClientFacts
  turns,           // those that it yields to yield to it at other times
  unknown_length,  // confined, from here to the end of the ladder
  short_commands,
  long_commands,
  tightened,  // more than the length of its commands asks for, because of a bound
  held,       // the end of the ladder: no part of the device keeps the bound
};

struct Choice {
  Confine confine = Confine::never;
  std::uint32_t part_percent = 0;  // 0: not confined
  std::uint32_t in_flight = 0;     // 0: not counted, because it is alone
  Why why = Why::alone;
  int beside = -1;              // the client that it makes way for: the most urgent one that was active lately
  int bound = -1;               // the client whose bound has tightened this
  std::int64_t longest_ns = 0;  // commands that take longer are long
  std::int64_t command_ns = 0;  // the length that this follows from
  bool is_tried = false;        // parts of other sizes are being tried
  bool is_fitted = false;       // of the parts that were tried this one cost least
  bool operator==(const Choice&) const = default;
};

// What became of the bound on a client's requests.
enum class BoundState : std::uint8_t {
  none,       // it has no bound
  unknown,    // too few requests so far
  kept,       //
  exceeded,   // others will be confined more
  cannot_be,  // nothing more can be done
};

struct ChooserSettings {
  bool confines = false;        // whether the daemon's mechanism confines kernels
  std::uint32_t in_flight = 0;  // for all clients that may have to make way; 0: chosen
  std::int64_t long_command_ns = 400'000;
};

class Chooser {
 public:
  explicit Chooser(const ChooserSettings& settings) : settings_(settings) {}

  // `recent`: seats that were active lately. Facts are by seat; those of empty seats are ignored. Times do not go back.
  void decide(std::uint64_t seated, std::uint64_t recent, std::span<const ClientFacts, kMaxClients> facts,
              std::int64_t now_ns);

  const Choice& choice(int seat) const { return clients_[static_cast<std::size_t>(seat)].choice; }
  BoundState bound_state(int seat) const { return clients_[static_cast<std::size_t>(seat)].bound.state; }
  // The parts that were tried for this client; none while that is not done.
  std::span<const PartFit::Tried> tried(int seat) const { return clients_[static_cast<std::size_t>(seat)].fit.tried(); }
  // How many steps those who yield to this client are confined more for its bound.
  int tightened(int seat) const { return clients_[static_cast<std::size_t>(seat)].bound.level; }
  // For people: "its commands take 1.6 ms, longer than 400 us: they use 85 % of the device while process 7 is about".
  std::string reason(int seat) const;
  // Empty for a client without a bound.
  std::string bound_reason(int seat) const;

  static constexpr int kLevels = 8;                // of the ladder
  static constexpr std::uint32_t kFirstPart = 80;  // that a client makes ready

 private:
  // On which side of a threshold a length is; slow to change sides, so that it does not flap.
  struct Side {
    bool is_known = false, is_over = false;
    std::int64_t threshold_ns = 0;
    std::int64_t since_ns = kNever;  // it has been clearly on the other side
    void see(std::int64_t length_ns, std::int64_t of_ns, std::int64_t now_ns);
  };
  // A client's bound, and what has been tried to keep it.
  struct Bound {
    BoundState state = BoundState::none;
    int level = 0;
    std::int64_t begun_ns = 0;                  // of the present look at its requests
    std::uint64_t begun_requests = 0;           // that had ended by then
    std::uint64_t company = 0;                  // clients that were about in that time and yield to it
    std::uint64_t yielding = 0, long_ones = 0;  // to whom what failed applies
    int looks = 0;                              // at the present level
    int far = 0;                                // of these, in a row: far over the bound
    std::array<double, kLevels>
        ratios{};  // p99 over bound when a level was last set, a mean of several looks; 0: never
    std::int64_t good_since_ns = kNever, kept_since_ns = kNever;
    std::array<std::int64_t, kLevels> retry_ns{};  // a level that failed is not tried again before
    std::array<std::uint8_t, kLevels> failures{};
    std::int64_t stays_until_ns = 0;  // all levels have failed, and this one came closest
    std::int64_t p99_ns = 0, alone_p99_ns = 0;
    int blocker = -1;  // of the company, the one with the longest commands
    std::int64_t blocker_ns = 0;
  };
  struct State {
    Choice choice;
    Side is_short, is_long, fills;  // its commands are below 50 us; above the threshold; above half a millisecond
    std::int64_t short_ns = 0;      // the length that decides how many short ones are in flight
    std::int64_t length_ns = 0;     // the last one on the side that is_long says
    Bound bound;
    PartFit fit;
  };
  struct Setting {
    Confine confine = Confine::never;
    std::uint32_t part_percent = 0, in_flight = 0;
    bool operator==(const Setting&) const = default;
  };

  std::uint64_t coming_first(int seat) const;
  Why obstacle(int seat, std::uint64_t ahead) const;
  std::int64_t threshold_ns(std::uint64_t ahead) const;
  bool has_bound(std::uint64_t ahead) const;
  void measure(int seat, std::int64_t now_ns);
  void try_parts(int seat, std::int64_t now_ns);
  std::uint32_t gate_in_flight(const State& client) const;
  Setting setting(int seat, int level) const;
  bool differ(std::uint64_t company, int level, int other) const;
  int tighter(std::uint64_t company, int level) const;
  int looser(std::uint64_t company, int level) const;
  void follow_bound(int seat, std::int64_t now_ns);
  void look_at(int seat, std::int64_t now_ns);
  void tighten(Bound& bound, std::int64_t now_ns);
  void loosen(Bound& bound, std::int64_t now_ns);
  Choice chosen(int seat) const;

  std::string name(int seat) const;

  ChooserSettings settings_;
  std::array<State, kMaxClients> clients_{};
  std::array<ClientFacts, kMaxClients> facts_{};
  std::uint64_t seated_ = 0, recent_ = 0;
};

}  // namespace weir::scheduler
