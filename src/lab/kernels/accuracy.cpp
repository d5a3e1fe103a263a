#include "lab/kernels/accuracy.h"

#include <fmt/format.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "base/named_values.h"

namespace weir::bench {
namespace {

// One output. Errors that cannot be measured are infinite, so that the larger of two is always the worse one.
struct Judged {
  double rmse = 0, max_error = 0, relative_error = 0;
  std::uint64_t count = 0, not_finite = 0, not_equal = 0, no_reference = 0;
  std::string trouble;
};

Judged compare(const package::CheckedOutput& output) {
  Judged judged;
  judged.count = output.expected.size();
  if (output.actual.size() != output.expected.size()) {
    judged.rmse = judged.max_error = judged.relative_error = std::numeric_limits<double>::infinity();
    judged.trouble = fmt::format("\"{}\" has {} elements, its reference {}", output.name, output.actual.size(),
                                 output.expected.size());
    return judged;
  }
  // The scale of relative errors for elements that are small themselves.
  double largest = 0;
  std::uint64_t finite = 0;
  for (const double e : output.expected)
    if (std::isfinite(e)) largest = std::max(largest, std::fabs(e)), ++finite;
  double squares = 0;  // of values divided by the largest, so that it cannot overflow
  for (const double e : output.expected)
    if (std::isfinite(e) && largest > 0) squares += (e / largest) * (e / largest);
  const double rms = finite == 0 ? 0 : largest * std::sqrt(squares / static_cast<double>(finite));

  std::vector<double> errors;
  errors.reserve(output.expected.size());
  for (std::size_t i = 0; i < output.expected.size(); ++i) {
    const double a = output.actual[i], e = output.expected[i];
    if (std::isnan(e)) {
      ++judged.no_reference;
      continue;
    }
    judged.not_equal += a == e ? 0 : 1;
    if (a == e) {
      errors.push_back(0);
    } else if (!std::isfinite(a) || !std::isfinite(e)) {
      ++judged.not_finite;
    } else {
      const double error = std::fabs(a - e), scale = std::max(std::fabs(e), rms);
      errors.push_back(error);
      judged.max_error = std::max(judged.max_error, error);
      // A reference of zeros has no scale, so its errors are absolute.
      judged.relative_error = std::max(judged.relative_error, scale > 0 ? error / scale : error);
    }
  }
  double sum = 0;
  for (const double error : errors)
    if (judged.max_error > 0) sum += (error / judged.max_error) * (error / judged.max_error);
  if (!errors.empty()) judged.rmse = judged.max_error * std::sqrt(sum / static_cast<double>(errors.size()));

  if (judged.not_finite > 0)
    judged.trouble =
        fmt::format("{} of {} elements of \"{}\" are NaN or infinite", judged.not_finite, judged.count, output.name);
  else if (judged.no_reference > 0)
    judged.trouble = fmt::format("the reference itself is NaN for {} of {} elements of \"{}\"", judged.no_reference,
                                 judged.count, output.name);
  else if (output.is_whole && judged.not_equal > 0)
    judged.trouble = fmt::format("{} of {} whole numbers of \"{}\" differ from the reference", judged.not_equal,
                                 judged.count, output.name);
  if (judged.not_finite > 0 || judged.no_reference > 0)
    judged.rmse = judged.max_error = judged.relative_error = std::numeric_limits<double>::infinity();
  return judged;
}

void put_errors(Json& block, const Judged& judged) {
  block.update(
      WEIR_NAMED(number_or_null(judged.rmse), number_or_null(judged.max_error), number_or_null(judged.relative_error)));
}

// Errors that the kernel reports; returns those that are beyond a limit.
std::vector<std::string> put_reported(Json& block, const package::ReportedErrors& reported,
                                      std::optional<double> rmse_limit, std::optional<double> relative_limit) {
  std::vector<std::string> troubles;
  const auto put = [&](const char* key, const std::optional<double>& error, const std::optional<double>& limit) {
    block[key] = number_or_null(error);
    if (error && limit && !(*error <= *limit))
      troubles.push_back(fmt::format("the kernel reports {} {:.3g}, which is beyond {:.3g}", key, *error, *limit));
    else if (error && !std::isfinite(*error))
      troubles.push_back(fmt::format("the kernel reports {} that is not finite", key));
  };
  put("rmse", reported.rmse, rmse_limit);
  put("max_error", reported.max_error, std::nullopt);
  put("relative_error", reported.relative_error, relative_limit);
  return troubles;
}

double relative_error_of(const Accuracy& accuracy) {
  const Json& value = accuracy.block["relative_error"];
  return value.is_number() ? value.get<double>() : std::numeric_limits<double>::infinity();
}

}  // namespace

Accuracy judge_accuracy(const package::Checked& checked, Precision precision, const package::Tolerance& tolerance) {
  const bool is_default = !tolerance.rmse && !tolerance.relative_error;
  const std::optional<double> relative_limit = is_default ? facts_of(precision).tolerance : tolerance.relative_error;
  Accuracy accuracy;
  accuracy.block = {{"rmse", nullptr},
                    {"max_error", nullptr},
                    {"relative_error", nullptr},
                    {"tolerance",
                     {{"rmse", number_or_null(tolerance.rmse)},
                      {"relative_error", number_or_null(relative_limit)},
                      {"is_default", is_default}}},
                    {"is_within", nullptr},
                    {"outputs", Json::array()},
                    {"reason", nullptr}};
  std::vector<std::string> troubles = checked.faults;
  Judged worst;
  for (const package::CheckedOutput& output : checked.outputs) {
    if (output.expected.empty() && !checked.reason.empty()) continue;
    Judged judged = compare(output);
    if (judged.trouble.empty() && !output.is_whole) {
      if (relative_limit && !(judged.relative_error <= *relative_limit))
        judged.trouble = fmt::format("\"{}\": relative error {:.3g} is beyond {:.3g}", output.name,
                                     judged.relative_error, *relative_limit);
      else if (tolerance.rmse && !(judged.rmse <= *tolerance.rmse))
        judged.trouble = fmt::format("\"{}\": rmse {:.3g} is beyond {:.3g}", output.name, judged.rmse, *tolerance.rmse);
    }
    worst.rmse = std::max(worst.rmse, judged.rmse);
    worst.max_error = std::max(worst.max_error, judged.max_error);
    worst.relative_error = std::max(worst.relative_error, judged.relative_error);
    Json entry = {{"name", output.name}};
    put_errors(entry, judged);
    entry.update(WEIR_NAMED(judged.count, judged.not_finite));
    if (output.is_whole) entry["not_equal"] = judged.not_equal;
    entry["is_within"] = judged.trouble.empty();
    accuracy.block["outputs"].push_back(std::move(entry));
    if (!judged.trouble.empty()) troubles.push_back(std::move(judged.trouble));
  }
  const bool is_checked = checked.reason.empty() && !checked.outputs.empty();
  if (!is_checked && checked.reported) {
    for (std::string& trouble : put_reported(accuracy.block, *checked.reported, tolerance.rmse, relative_limit))
      troubles.push_back(std::move(trouble));
    accuracy.block["is_within"] = troubles.empty();
    accuracy.block["reason"] = "the kernel reports these errors itself";
  } else if (is_checked) {
    put_errors(accuracy.block, worst);
    accuracy.block["is_within"] = troubles.empty();
  } else {
    accuracy.block["reason"] = checked.reason.empty() ? "the kernel has no output to compare" : checked.reason;
  }
  if (troubles.empty()) return accuracy;
  accuracy.is_accurate = false;
  accuracy.inaccuracy = fmt::format("{}", fmt::join(troubles, "; "));
  accuracy.block["is_within"] = false;
  accuracy.block["reason"] = accuracy.inaccuracy;
  return accuracy;
}

Accuracy worse_of(Accuracy before, Accuracy after) {
  const bool is_after_worse = before.is_accurate != after.is_accurate
                                  ? before.is_accurate
                                  : relative_error_of(after) > relative_error_of(before);
  Accuracy& worse = is_after_worse ? after : before;
  worse.block["checked"] = is_after_worse ? "after measuring" : "before measuring";
  return std::move(worse);
}

}  // namespace weir::bench
