#include "lab/queues/calibrate_fit.h"

#include <algorithm>
#include <cmath>
#include <functional>

#include "device/sim/cost.h"

namespace weir {
namespace {

constexpr double kClose = 0.005;       // fraction of the measured step at which fitting ends
constexpr double kUnexplained = 0.03;  // fraction above which what kernels do in place is not the whole story
constexpr double kSensitive = 0.02;    // share of a kernel's duration that a contention of 1 must add to be fitted
constexpr int kRoomFits = 12, kExtraFits = 16, kRounds = 8;
constexpr double kMaxContention = 8;  // a larger value would stand for something else

bool is_kernel(const sim::Duration& duration) { return duration.of.kind == CommandKind::kernel; }

// Finds the value in a range with which the simulated step takes as long as the measured one. Larger values must make
// steps longer, or at least not shorter.
double fit(double low, double high, int fits, double measured_ns, const std::function<double(double)>& step_ns) {
  double value = high;
  for (int i = 0; i < fits; ++i) {
    value = std::sqrt(low * high);  // both ends are positive and decades apart
    const double simulated_ns = step_ns(value);
    if (std::fabs(simulated_ns / measured_ns - 1) < kClose) break;
    (simulated_ns < measured_ns ? low : high) = value;
  }
  return value;
}

// Gives each kernel the contention with which it lasts as long beside the others as it did on the device. One kernel's
// affects when others run, so that all are corrected together, a few times.
class ContentionFit {
 public:
  ContentionFit(sim::SimProfile& profile, const StepRun& run, const InPlace& in_place)
      : profile_(profile), run_(run), in_place_(in_place) {}

  void run() {
    set_all(0);
    const auto alone = durations();
    set_all(1);
    const auto crowded = durations();
    // By how much each kernel lasts longer for a contention of 1, where it is.
    std::map<sim::Signature, double> slopes;
    for (const sim::Duration& duration : profile_.durations) {
      const auto from = alone.find(duration.of), to = crowded.find(duration.of);
      if (!is_kernel(duration) || from == alone.end() || !in_place_.ns.contains(duration.of)) continue;
      if (to->second - from->second > kSensitive * duration.ns) slopes[duration.of] = to->second - from->second;
    }
    set_all(0);
    std::vector<sim::Duration> best = profile_.durations;
    double least = INFINITY;
    for (int round = 0; round < kRounds; ++round) {
      const auto simulated = round == 0 ? alone : durations();
      double error = 0;
      std::vector<sim::Duration> next = profile_.durations;
      for (sim::Duration& duration : next) {
        const auto slope = slopes.find(duration.of);
        if (slope == slopes.end()) continue;
        const double missing_ns = in_place_.ns.at(duration.of) - simulated.at(duration.of);
        error += std::fabs(missing_ns) / duration.ns;
        duration.contention = std::clamp(*duration.contention + 0.7 * missing_ns / slope->second, 0.0, kMaxContention);
      }
      if (error < least) {
        least = error;
        best = profile_.durations;
      }
      profile_.durations = std::move(next);
    }
    profile_.durations = std::move(best);
    guess_others(slopes);
  }

 private:
  void set_all(double contention) {
    for (sim::Duration& duration : profile_.durations)
      if (is_kernel(duration)) duration.contention = contention;
  }

  // A kernel that was never beside others says nothing of what would happen then: it gets the mean of those of its
  // name, or of all.
  void guess_others(const std::map<sim::Signature, double>& known) {
    struct Mean {
      double sum = 0, weight = 0;
    };
    std::map<std::string, Mean> means;  // by name; of all: ""
    for (const sim::Duration& duration : profile_.durations) {
      if (!known.contains(duration.of)) continue;
      for (const std::string& name : {duration.of.name, std::string()}) {
        means[name].sum += *duration.contention * duration.ns;
        means[name].weight += duration.ns;
      }
    }
    if (means.empty()) return;
    for (sim::Duration& duration : profile_.durations) {
      if (!is_kernel(duration) || known.contains(duration.of)) continue;
      const auto own = means.find(duration.of.name);
      const Mean& mean = own == means.end() ? means.at("") : own->second;
      duration.contention = mean.sum / mean.weight;
    }
  }

  std::map<sim::Signature, double> durations() const {
    sim::SimProfile traced = profile_;
    const double plain_ns = simulate(profile_, run_, false).submit_ns;
    if (plain_ns > 0 && in_place_.submit_ns > 0) scale_host(traced, in_place_.submit_ns / plain_ns);
    return mean_durations(run_.built.step, simulate(traced, run_, true).timeline);
  }

  sim::SimProfile& profile_;
  const StepRun& run_;
  const InPlace& in_place_;
};

double mean_contention(const sim::SimProfile& profile) {
  double sum = 0, weight = 0;
  for (const sim::Duration& duration : profile.durations) {
    if (!is_kernel(duration)) continue;
    sum += duration.contention.value_or(profile.contention) * duration.ns;
    weight += duration.ns;
  }
  return weight > 0 ? sum / weight : profile.contention;
}

}  // namespace

std::map<sim::Signature, double> mean_durations(const Step& step, const Timeline& timeline) {
  std::map<sim::Signature, std::pair<double, int>> sums;
  for (const Span& span : timeline.spans) {
    if (span.iteration == 0 || span.started_ns == kNoTime || span.ended_ns == kNoTime) continue;
    auto& [sum, count] = sums[sim::signature_of(step, span.command)];
    sum += static_cast<double>(span.ended_ns - span.started_ns);
    ++count;
  }
  std::map<sim::Signature, double> means;
  for (const auto& [signature, sum] : sums) means.emplace(signature, sum.first / sum.second);
  return means;
}

void fit_kernels(Calibration& calibration, const StepRun& run, const InPlace& in_place) {
  sim::SimProfile& profile = calibration.profile;
  const double measured_ns = calibration.measured.step_ns;
  const auto simulated = [&] { return calibration.simulated_ns = simulate(profile, run, false).step_ns; };
  const auto with_room = [&](double room) {
    profile.room = room;
    ContentionFit(profile, run, in_place).run();
    return simulated();
  };
  const auto error = [&](double ns) { return std::fabs(ns / measured_ns - 1); };

  // Copies and host functions share what no queue decides: links and the host's memory.
  for (sim::Duration& duration : profile.durations)
    if (const auto found = in_place.ns.find(duration.of); !is_kernel(duration) && found != in_place.ns.end())
      duration.ns = std::max(duration.ns, found->second);
  const double plain_ns = with_room(1);
  if (plain_ns / measured_ns > 1 + kClose) {
    sim::SimProfile plain = profile, best = profile;
    double least = error(plain_ns);
    // Contention is fitted again for each value, so that steps do not quite grow with it: the best counts, not the
    // last.
    fit(0.001, 1, kRoomFits, measured_ns, [&](double room) {
      const double ns = with_room(room);
      if (error(ns) < least) {
        least = error(ns);
        best = profile;
      }
      return ns;
    });
    // If room cannot explain the step, an extreme value is worse than none.
    profile = least > 0.5 * error(plain_ns) ? std::move(plain) : std::move(best);
    simulated();
  } else if (plain_ns / measured_ns < 1 - kUnexplained) {
    // The trace does not show all of it, since it slows the host down and keeps kernels apart: as much for every
    // kernel.
    const std::vector<sim::Duration> plain = profile.durations;
    const auto with_more = [&](double more) {
      profile.contention = more;
      profile.durations = plain;
      for (sim::Duration& duration : profile.durations)
        if (is_kernel(duration)) *duration.contention += more;
      return simulated();
    };
    with_more(fit(0.001, 3, kExtraFits, measured_ns, with_more));
    if (error(calibration.simulated_ns) > 0.5 * error(plain_ns)) with_more(0);
  }
  calibration.contention = mean_contention(profile);
}

}  // namespace weir
