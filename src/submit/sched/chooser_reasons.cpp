#include "submit/sched/chooser_reasons.h"

#include <fmt/format.h>

#include "base/units.h"

namespace weir::scheduler {
namespace {

std::string why_not_confinable(Confinable confinable) {
  switch (confinable) {
    case Confinable::not_hooked:
      return "its launches are not seen early enough: the library was not loaded before the program";
    case Confinable::no_driver:
      return "its driver cannot confine kernels (CUDA 12.4 or newer can)";
    case Confinable::own_contexts:
      return "it works in contexts that it made itself";
    case Confinable::refused:
      return "the driver refused to confine it";
    case Confinable::unknown:
    case Confinable::yes:
      break;
  }
  return "it has launched nothing yet";
}

}  // namespace

std::string Chooser::name(int seat) const {
  const int pid = facts_[static_cast<std::size_t>(seat)].pid;
  return pid > 0 ? fmt::format("process {}", pid) : fmt::format("the client on seat {}", seat);
}

std::string Chooser::reason(int seat) const {
  const Choice& choice = this->choice(seat);
  const auto at_the_gate = [&](const std::string& why) {
    const std::string tightened =
        choice.bound >= 0 ? fmt::format(", for the bound of {}", name(choice.bound)) : std::string();
    return fmt::format("held at the gate with {} in flight{}: {}", choice.in_flight, tightened, why);
  };
  const auto use = [&] {
    const std::string when =
        fmt::format("while {} is {}", name(choice.beside), choice.confine == Confine::always ? "about" : "active");
    const char* const found = choice.is_fitted  ? ", which costs it least of what was tried"
                              : choice.is_tried ? "; other parts are being tried"
                                                : "";
    return fmt::format("they use {} % of the device {}{}", choice.part_percent, when, found);
  };
  const auto compared = [&](const char* how) {
    return fmt::format("its commands take {}, {} {}: {}", format_duration(choice.command_ns), how,
                       format_duration(choice.longest_ns), use());
  };
  switch (choice.why) {
    case Why::alone:
      return "alone on the device";
    case Why::first:
      return "makes way for nobody";
    case Why::nobody_about:
      return "has the device: nobody that comes first was active lately";
    case Why::no_mechanism:
      return at_the_gate("the daemon's mechanism does not confine kernels");
    case Why::isolated:
      return at_the_gate("it shares no process with others, as it asked");
    case Why::apart:
      return at_the_gate("it, or one that comes first, shares no MPS with the other");
    case Why::not_confinable:
      return at_the_gate(why_not_confinable(facts_[static_cast<std::size_t>(seat)].confinable));
    case Why::turns:
      return at_the_gate("it takes turns with others, and its share follows from them");
    case Why::unknown_length:
      return fmt::format("how long its commands take is not known yet: {}", use());
    case Why::short_commands:
      return compared("no longer than");
    case Why::long_commands:
      return compared("longer than");
    case Why::tightened:
      return fmt::format("the bound of {} asks for it: its commands use {} % of the device while that is about",
                         name(choice.bound), choice.part_percent);
    case Why::held:
      return at_the_gate("no part of the device was small enough");
  }
  return "";
}

std::string Chooser::bound_reason(int seat) const {
  const Bound& bound = clients_[static_cast<std::size_t>(seat)].bound;
  const std::int64_t most_ns = facts_[static_cast<std::size_t>(seat)].terms.p99_ns;
  const std::string p99 = format_duration(bound.p99_ns), most = format_duration(most_ns);
  switch (bound.state) {
    case BoundState::none:
      return "";
    case BoundState::unknown:
      return fmt::format("p99 <= {}: too few requests so far", most);
    case BoundState::kept:
      return fmt::format("p99 {} <= {}: kept", p99, most);
    case BoundState::exceeded:
      return fmt::format("p99 {} > {}: the others are confined more where that lasts", p99, most);
    case BoundState::cannot_be:
      break;
  }
  const auto because = [&]() -> std::string {
    if (bound.alone_p99_ns > most_ns)
      return fmt::format("without the others it takes {}", format_duration(bound.alone_p99_ns));
    if (bound.blocker >= 0 && bound.blocker_ns > most_ns / 4)
      return fmt::format("a command of {} that has begun takes {}", name(bound.blocker),
                         format_duration(bound.blocker_ns));
    return "and nothing else that was tried comes closer";
  };
  return fmt::format("p99 {} > {}: cannot be kept, {}", p99, most, because());
}

const char* name_of(Confine confine) {
  switch (confine) {
    case Confine::beside:
      return "beside";
    case Confine::always:
      return "always";
    case Confine::never:
      break;
  }
  return "never";
}

const char* name_of(Confinable confinable) {
  switch (confinable) {
    case Confinable::yes:
      return "yes";
    case Confinable::not_hooked:
      return "not_hooked";
    case Confinable::no_driver:
      return "no_driver";
    case Confinable::own_contexts:
      return "own_contexts";
    case Confinable::refused:
      return "refused";
    case Confinable::unknown:
      break;
  }
  return "unknown";
}

const char* name_of(Why why) {
  switch (why) {
    case Why::first:
      return "comes_first";
    case Why::nobody_about:
      return "nobody_about";
    case Why::no_mechanism:
      return "no_mechanism";
    case Why::isolated:
      return "isolated";
    case Why::apart:
      return "apart";
    case Why::not_confinable:
      return "not_confinable";
    case Why::turns:
      return "takes_turns";
    case Why::unknown_length:
      return "unknown_length";
    case Why::short_commands:
      return "short_commands";
    case Why::long_commands:
      return "long_commands";
    case Why::tightened:
      return "tightened";
    case Why::held:
      return "held";
    case Why::alone:
      break;
  }
  return "alone";
}

const char* name_of(BoundState state) {
  switch (state) {
    case BoundState::unknown:
      return "unknown";
    case BoundState::kept:
      return "kept";
    case BoundState::exceeded:
      return "exceeded";
    case BoundState::cannot_be:
      return "cannot_be_kept";
    case BoundState::none:
      break;
  }
  return "none";
}

}  // namespace weir::scheduler
