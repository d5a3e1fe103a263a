// Answers the questions that a KFD trace is recorded for. Each answer comes from counted calls; otherwise there is a
// reason instead, because events that a filter excluded or a buffer lost are no evidence of absence.
#include <fmt/format.h>

#include "amd/ftrace/summary.h"
#include "base/named_values.h"
#include "base/units.h"

namespace weir::ftrace {
namespace {

struct Question {
  const char *key, *question;
  Json evidence;
  Json answer(std::string words) const { return json(std::move(words), nullptr); }
  Json no_answer(std::string reason) const { return json(nullptr, std::move(reason)); }

 private:
  Json json(Json answer, Json reason) const {
    return WEIR_NAMED(key, question, std::move(answer), std::move(reason), evidence);
  }
};

std::string no_creates(const FtraceCounters& counters) {
  return counters.has_losses() ? "no creation is in the trace, and part of it was lost"
                               : "no creation is in the trace: there was none, or the filter left it out";
}

std::string words_of(const Tally& tally) {
  if (tally.count() == 1) return fmt::format("{} (one call)", format_duration(static_cast<double>(tally.largest())));
  return fmt::format("p50 {}, p90 {}, p99 {}, max {} ({} calls)", format_duration(tally.quantile(0.5)),
                     format_duration(tally.quantile(0.9)), format_duration(tally.quantile(0.99)),
                     format_duration(static_cast<double>(tally.largest())), tally.count());
}

// Exact durations if there are any, otherwise the proven bounds.
std::optional<std::string> length_words(const VerbTally& tally) {
  if (tally.exact.count() > 0) {
    std::string words = words_of(tally.exact);
    if (tally.bounded > 0) words += fmt::format("; {} more are only bounded", tally.bounded);
    return words;
  }
  std::string words;
  if (tally.at_least.count() > 0) words = "at least: " + words_of(tally.at_least);
  if (tally.at_most.count() > 0) words += (words.empty() ? "at most: " : "; at most: ") + words_of(tally.at_most);
  if (words.empty()) return std::nullopt;
  return words;
}

Json how_asked(const KfdSummary& summary, const FtraceCounters& counters) {
  const KfdCalls& calls = counters.calls;
  std::uint64_t ioctls = 0;
  for (const NameCount& one : calls.ioctls)
    if (one.name == "create_queue") ioctls = one.count;
  const Question question{"how_is_a_queue_asked_for",
                          "How does the runtime ask for a queue?",
                          {{"ioctl_create_queue", ioctls},
                           {"kfd_ioctl", calls.kfd_ioctl},
                           {"kfd_ioctl_create_queue", calls.create_handler},
                           {"pqm_create_queue", calls.pqm_create},
                           {"create_queue_scheduler", calls.create_scheduler},
                           {"creates", summary.of(KfdVerb::create).calls},
                           {"failed", summary.of(KfdVerb::create).failed}}};
  if (summary.of(KfdVerb::create).calls == 0) return question.no_answer(no_creates(counters));
  if (ioctls == 0 && calls.create_handler == 0 && counters.texts == 0)
    return question.no_answer("the filter shows KFD at work, but not the ioctl that asked for it");
  std::string chain;
  const auto add = [&](const char* name, std::uint64_t count) {
    if (count > 0) chain += fmt::format("{}{} {}x", chain.empty() ? "" : " -> ", name, count);
  };
  add("kfd_ioctl_create_queue", calls.create_handler);
  add("pqm_create_queue", calls.pqm_create);
  add("create_queue_cpsch", calls.create_scheduler);
  std::string words = "by an ioctl on /dev/kfd, AMDKFD_IOC_CREATE_QUEUE";
  words +=
      chain.empty() ? fmt::format(" ({} seen)", std::max(ioctls, summary.of(KfdVerb::create).calls)) : ": " + chain;
  if (const auto failed = summary.of(KfdVerb::create).failed; failed > 0) words += fmt::format("; {} failed", failed);
  return question.answer(words + ".");
}

Json how_long(const KfdSummary& summary, const FtraceCounters& counters) {
  const VerbTally& tally = summary.of(KfdVerb::create);
  const Question question{"how_long_does_kfd_take",
                          "How long does KFD take to create one?",
                          {{"exact", tally.exact.count()}, {"bounded", tally.bounded}, {"unknown", tally.unknown}}};
  if (summary.creates() == 0) return question.no_answer(no_creates(counters));
  const auto words = length_words(tally);
  if (!words)
    return question.no_answer("only entries were traced: use function_graph, return probes or a wider filter");
  return question.answer(*words + ". This is KFD's part; the runtime takes longer (weir amd log shows how much).");
}

Json how_launched(const FtraceCounters& counters) {
  const KfdCalls& calls = counters.calls;
  const Question question{"doorbell_or_ioctl_per_launch",
                          "Is a doorbell or an ioctl used for a launch?",
                          {{"kfd_ioctls", calls.kfd_ioctl},
                           {"kinds_of_ioctl", calls.ioctls.size()},
                           {"doorbell_allocations", calls.doorbell_allocate},
                           {"doorbell_mmaps", calls.doorbell_mmap},
                           {"amdgpu_cs_ioctl", calls.cs_ioctl}}};
  if (calls.ioctls.empty())
    return question.no_answer("no ioctl of KFD is named in the trace (kfd_ioctl_*, or system calls)");
  if (calls.doorbell_allocate + calls.doorbell_mmap == 0)
    return question.no_answer("no allocation or mmap of a doorbell is in the trace: the filter may hide it");
  if (counters.has_losses()) return question.no_answer("events were lost, so ioctls cannot be said to be few");
  std::string kinds;
  std::uint64_t named = 0;
  for (const NameCount& one : calls.ioctls) named += one.count;
  for (std::size_t i = 0; i < calls.ioctls.size() && i < 4; ++i)
    kinds += fmt::format("{}{} {}x", i == 0 ? "" : ", ", calls.ioctls[i].name, calls.ioctls[i].count);
  std::string words = fmt::format(
      "no ioctl: of {} ioctls of {} kinds ({}{}) none launches a kernel, KFD has none that does. Doorbells were "
      "allocated {}x and mapped {}x; writing to them is invisible to ftrace, so how many launches there were is not in "
      "this trace (weir amd join counts them in the log).",
      named, calls.ioctls.size(), kinds, calls.ioctls.size() > 4 ? ", ..." : "", calls.doorbell_allocate,
      calls.doorbell_mmap);
  if (calls.cs_ioctl > 0)
    words += fmt::format(" {} submissions went through amdgpu_cs_ioctl: not to queues of KFD.", calls.cs_ioctl);
  return question.answer(words);
}

Json where_mqd(const KfdSummary& summary, const FtraceCounters& counters) {
  const Json mqds = summary.mqds_document(counters.calls);
  const Question question{"where_is_the_mqd_allocated",
                          "Where is the MQD allocated?",
                          {{"allocations_per_create", mqds["allocations_per_create"]},
                           {"inits_per_create", mqds["inits_per_create"]},
                           {"create_texts", counters.calls.mqd_texts}}};
  if (summary.creates() == 0) return question.no_answer(no_creates(counters));
  std::uint64_t with_one = 0, most = 0;
  if (mqds["allocations_per_create"].is_array())
    for (const Json& row : mqds["allocations_per_create"])
      if (row["calls"] > 0) with_one += row["creates"].get<std::uint64_t>();
  if (mqds["inits_per_create"].is_array())
    for (const Json& row : mqds["inits_per_create"]) most = std::max(most, row["calls"].get<std::uint64_t>());
  if (with_one == 0)
    return question.no_answer("no allocate_mqd was seen below a create: the filter may have left it out");
  std::string words =
      fmt::format("in the kernel, within the create: allocate_mqd in {} of {}", with_one, summary.creates());
  if (most > 1)
    words += fmt::format(
        "; init_mqd up to {}x for one queue, which is expected: partitioned chips have an MQD image "
        "for each XCC",
        most);
  return question.answer(words + ".");
}

Json kernel_queue(const FtraceCounters& counters) {
  const KfdCalls& calls = counters.calls;
  const Question question{"is_a_kernel_queue_used",
                          "Is a kernel compute queue (KCQ) used?",
                          {{"calls", calls.kcq},
                           {"jobs_on_compute_rings", calls.compute_ring_jobs},
                           {"amdgpu_calls_beyond_kfd", calls.amdgpu_beyond_kfd}}};
  if (calls.kcq + calls.compute_ring_jobs > 0) {
    std::string names;
    for (std::size_t i = 0; i < calls.kcq_names.size() && i < 3; ++i)
      names += (i == 0 ? "" : ", ") + calls.kcq_names[i].name;
    return question.answer(
        fmt::format("its functions were called {}x{}; {} jobs ran on compute rings. User queues do not need it.",
                    calls.kcq, names.empty() ? "" : " (" + names + ")", calls.compute_ring_jobs));
  }
  if (counters.has_losses()) return question.no_answer("none of its functions was seen, but events were lost");
  if (calls.amdgpu_beyond_kfd == 0)
    return question.no_answer(
        "no function of amdgpu outside KFD is in the trace, so its filter may have left kernel queues out");
  return question.answer(
      fmt::format("none: none of its functions is among {} calls of amdgpu outside KFD.{}", calls.amdgpu_beyond_kfd,
                  counters.written_entries ? "" : " Whether events before them were overwritten is not in the text."));
}

Json how_preempted(const KfdSummary& summary, const FtraceCounters& counters) {
  const VerbTally& tally = summary.of(KfdVerb::preempt);
  const Question question{"how_long_does_preemption_take",
                          "How long does the hardware take to let go of its queues?",
                          {{"preemptions", tally.calls},
                           {"failed", tally.failed},
                           {"unmap_calls", summary.of(KfdVerb::unmap).calls},
                           {"fence_waits", counters.calls.fence_wait}}};
  if (tally.calls == 0)
    return question.no_answer(
        counters.calls.mes_remove > 0    ? "the firmware (MES) takes queues off without a fence of KFD: see unmap"
        : counters.calls.fence_wait == 0 ? "no wait for a fence (amdkfd_fence_wait_timeout) is in the trace"
                                         : "waits for fences were seen, but no unmap that they end");
  const auto words = length_words(tally);
  if (!words) return question.no_answer("unmap and fence have no times");
  std::string all = "from unmap to fence " + *words;
  if (tally.failed > 0) all += fmt::format("; {} timed out or failed", tally.failed);
  return question.answer(all + ". An unmap takes all queues of a GPU off, whoever asked.");
}

}  // namespace

Json ftrace_answers(const KfdSummary& summary, const FtraceCounters& counters) {
  return Json::array({how_asked(summary, counters), how_long(summary, counters), how_launched(counters),
                      where_mqd(summary, counters), kernel_queue(counters), how_preempted(summary, counters)});
}

}  // namespace weir::ftrace
