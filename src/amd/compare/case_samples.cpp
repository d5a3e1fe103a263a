#include "amd/compare/case_samples.h"

#include <algorithm>

namespace weir::amd {
namespace {

// Hostile files may contain any times; the distance of two is limited to this.
constexpr std::int64_t kFarthest = std::int64_t{1} << 61;

std::int64_t distance(std::int64_t from, std::int64_t to) {
  if (to <= from) return 0;
  const auto wide = static_cast<std::uint64_t>(to) - static_cast<std::uint64_t>(from);
  return static_cast<std::int64_t>(std::min(wide, static_cast<std::uint64_t>(kFarthest)));
}

}  // namespace

void ThinnedSamples::add(double value) {
  std::uint64_t before = count_++ % every_;  // earlier samples in this group
  if (before == 0 && values_.size() == kMax) {
    for (std::size_t i = 0; 2 * i < kMax; ++i) values_[i] = values_[2 * i + random_.below(2)];
    values_.resize(kMax / 2);
    every_ *= 2;
    before = (count_ - 1) % every_;  // 0: kMax groups were merged into kMax / 2 whole ones
  }
  if (before == 0) {
    values_.push_back(value);
  } else if (random_.below(static_cast<std::uint32_t>(std::min<std::uint64_t>(before + 1, UINT32_MAX))) == 0) {
    values_.back() = value;
  }
}

Stretch& Stretch::operator+=(const Stretch& other) {
  launches += other.launches;
  barriers += other.barriers;
  copies += other.copies;
  copied_bytes += other.copied_bytes;
  pause_ns += other.pause_ns;
  return *this;
}

Stretch& Stretches::at(std::int64_t time_ns) {
  if (stretches_.empty()) {
    begin_ns_ = last_ns_ = time_ns;
    stretches_.resize(1);
  }
  const std::int64_t offset = distance(begin_ns_, time_ns);
  last_ns_ = std::max(last_ns_, begin_ns_ + std::min(offset, INT64_MAX - std::max<std::int64_t>(0, begin_ns_)));
  while (offset / width_ns_ >= static_cast<std::int64_t>(kMax)) {
    for (std::size_t i = 0; i < stretches_.size(); ++i) {
      if (i % 2 == 0) {
        stretches_[i / 2] = stretches_[i];
      } else {
        stretches_[i / 2] += stretches_[i];
      }
    }
    stretches_.resize((stretches_.size() + 1) / 2);
    width_ns_ *= 2;
  }
  const auto index = static_cast<std::size_t>(offset / width_ns_);
  if (index >= stretches_.size()) stretches_.resize(index + 1);
  return stretches_[index];
}

void Stretches::add_pause(std::int64_t from_ns, std::int64_t to_ns) {
  at(to_ns);  // widens as needed
  const std::int64_t from = distance(begin_ns_, from_ns), to = distance(begin_ns_, to_ns);
  for (std::int64_t i = from / width_ns_; i * width_ns_ < to; ++i) {
    const std::int64_t begin = std::max(from, i * width_ns_), end = std::min(to, (i + 1) * width_ns_);
    stretches_[static_cast<std::size_t>(i)].pause_ns += static_cast<double>(end - begin);
  }
}

std::vector<Stretch> Stretches::whole(std::int64_t width_ns) const {
  std::vector<Stretch> found(stretches_.empty() ? 0
                                                : static_cast<std::size_t>(distance(begin_ns_, last_ns_) / width_ns));
  const auto factor = static_cast<std::size_t>(width_ns / width_ns_);
  for (std::size_t i = 0; i < found.size() * factor && i < stretches_.size(); ++i) found[i / factor] += stretches_[i];
  return found;
}

void CaseSampler::begin_run() {
  is_new_run_ = true;
  last_launch_ns_ = INT64_MIN;
}

Stretches* CaseSampler::run() {
  if (is_new_run_) {
    is_new_run_ = false;
    is_left_out_ = runs_.size() == kMaxRuns;
    if (is_left_out_) {
      ++runs_left_out_;
    } else {
      runs_.emplace_back();
    }
  }
  return is_left_out_ ? nullptr : &runs_.back();
}

void CaseSampler::launch(std::int64_t time_ns) {
  Stretches* const stretches = run();
  if (stretches == nullptr) return;
  stretches->at(time_ns).launches += 1;
  if (last_launch_ns_ != INT64_MIN) {
    const std::int64_t gap = distance(last_launch_ns_, time_ns);
    gap_ns.add(static_cast<double>(gap));
    if (!is_idle_known_ && gap >= kPauseNs) stretches->add_pause(last_launch_ns_, time_ns);
  }
  last_launch_ns_ = std::max(last_launch_ns_, time_ns);
}

void CaseSampler::barrier(std::int64_t time_ns) {
  if (Stretches* const stretches = run()) stretches->at(time_ns).barriers += 1;
}

void CaseSampler::copy(std::int64_t time_ns, double bytes) {
  Stretches* const stretches = run();
  if (stretches == nullptr) return;
  Stretch& stretch = stretches->at(time_ns);
  stretch.copies += 1;
  stretch.copied_bytes += bytes;
}

void CaseSampler::idle(std::int64_t from_ns, std::int64_t to_ns) {
  Stretches* const stretches = run();
  if (stretches != nullptr && distance(from_ns, to_ns) >= kPauseNs) stretches->add_pause(from_ns, to_ns);
}

std::int64_t CaseSampler::width_ns() const {
  std::int64_t width = 0;
  for (const Stretches& stretches : runs_) width = std::max(width, stretches.width_ns());
  return width;
}

std::vector<Stretch> CaseSampler::stretches() const {
  std::vector<Stretch> all;
  for (const Stretches& stretches : runs_) {
    const std::vector<Stretch> own = stretches.whole(width_ns());
    all.insert(all.end(), own.begin(), own.end());
  }
  return all;
}

double CaseSampler::observed_ns() const {
  double sum = 0;
  for (const Stretches& stretches : runs_)
    if (!stretches.is_empty()) sum += static_cast<double>(distance(stretches.begin_ns(), stretches.last_ns()));
  return sum;
}

}  // namespace weir::amd
