// Texts that patched drivers write with trace_printk. They mark points within functions, so the time between two of
// them is a lower bound; the end is never seen.
#include "amd/ftrace/spans.h"

namespace weir::ftrace {

void annotate(KfdSpan& span, std::string_view text) {
  const auto set32 = [&](std::optional<std::uint32_t>& field, std::initializer_list<std::string_view> keys) {
    for (const std::string_view key : keys) {
      if (field) return;
      // The offset for mmap has more than 32 bits and is not a doorbell.
      if (const auto value = value_of(text, key); value && *value <= UINT32_MAX)
        field = static_cast<std::uint32_t>(*value);
    }
  };
  const auto set64 = [&](std::optional<std::uint64_t>& field, std::initializer_list<std::string_view> keys) {
    for (const std::string_view key : keys)
      if (!field) field = value_of(text, key);
  };
  if (text.find('=') == text.npos) return;
  set32(span.queue_id, {"queue_id", "qid"});
  set32(span.gpu_id, {"gpu_id", "gpu"});
  set32(span.doorbell, {"doorbell", "doorbell_offset", "doorbell_off"});
  set64(span.ring_base, {"ring_base", "queue_address", "ring_base_address"});
  set64(span.ring_bytes, {"ring_size", "queue_size"});
  set64(span.mqd_base, {"mqd_addr", "mqd_base", "gart_mqd_addr"});
  if (!span.process)
    if (const auto pid = value_of(text, "pid"); pid && *pid > 0 && *pid <= INT32_MAX)
      span.process = static_cast<int>(*pid);
}

// map_queues_cpsch: [KFD-TRACE] KFD_MAP_QUEUES_CPSCH: pid=41 queue_id=9 pipe=0 queue=0 doorbell=0x1000 pasid=32788
// kfd_ioctl_create_queue: [KFD-TRACE] CREATE_QUEUE: pid=41 gpu_id=0xf7bc queue_type=2
// KFD_MQD_CREATE: pid=41 gpu=0xf7bc qid=0 type=0 active=1 | Total_MQDs=1
bool SpanBuilder::on_text(Thread& thread, const TraceLine& line) {
  constexpr std::string_view kMark = "[KFD-TRACE]";
  std::string_view text = line.text, name = line.name;
  const std::size_t mark = text.find(kMark);
  if (mark != text.npos) text = trimmed(text.substr(mark + kMark.size()));
  if (mark != text.npos || text.starts_with("KFD_MQD_")) {
    std::size_t taken = 0;
    name = symbol_at(text, &taken);
    if (name.empty() || !text.substr(taken).starts_with(':')) return mark != text.npos;
    text = text.substr(taken + 1);
  } else if (!name.starts_with("KFD_MQD_")) {
    return false;
  }
  ++counters_.texts;
  --counters_.events;  // it has the form of an event

  const auto open = [&](KfdVerb verb) {
    Frame* const frame = open_span(thread, verb);
    if (frame) annotate(frame->span, text);
    return frame;
  };
  // A single mark: it shows that the call happened, and when.
  const auto instant = [&](KfdVerb verb) {
    KfdSpan span = span_of(line, verb);
    annotate(span, text);
    emit(span);
  };
  const auto begin = [&](KfdVerb verb, int level) {
    Frame* const frame = open_span(thread, verb);
    if (frame && frame->style != Style::text) return annotate(frame->span, text);
    Frame& pushed = push_apart(thread, line, name, {KfdPart::none, verb, level}, Style::text);
    annotate(pushed.span, text);
  };
  const auto succeed = [&](KfdVerb verb) {
    Frame* const frame = open(verb);
    if (!frame) {
      KfdSpan span = span_of(line, verb);
      span.started_ns = kNoTime;
      span.ended_ns = line.at_ns;
      span.end = EndKind::at_least;
      span.result = 0;
      annotate(span, text);
      return emit(span);
    }
    const auto index = static_cast<std::size_t>(frame - thread.frames.data());
    touch(thread, index + 1, line.at_ns);
    if (!frame->span.result) frame->span.result = 0;
    if (frame->style == Style::text) pop_to(thread, index, kNoTime);
  };

  if (name == "CREATE_QUEUE") {
    begin(KfdVerb::create, 11);
  } else if (name == "CREATE_QUEUE_BEFORE_PQM" || name == "CREATE_QUEUE_CPSCH" || name == "KFD_MQD_CREATE") {
    Frame* const frame = open(KfdVerb::create);
    if (frame) touch(thread, static_cast<std::size_t>(frame - thread.frames.data()) + 1, line.at_ns);
    if (name == "KFD_MQD_CREATE") ++counts_.calls().mqd_texts;
  } else if (name == "CREATE_QUEUE_SUCCESS") {
    succeed(KfdVerb::create);
  } else if (name == "DESTROY_QUEUE") {
    if (!open(KfdVerb::destroy)) instant(KfdVerb::destroy);
  } else if (name == "UPDATE_QUEUE") {
    if (!open(KfdVerb::update)) instant(KfdVerb::update);
  } else if (name == "KFD_MAP_QUEUES_CPSCH") {
    // There is one text per queue of a runlist: within a traced call they do not count as calls.
    if (!open_span(thread, KfdVerb::map)) instant(KfdVerb::map);
    ++counts_.calls().map_texts;
  } else if (name == "ADD_QUEUE_MES") {
    begin(KfdVerb::map, 51);
  } else if (name == "ADD_QUEUE_MES_SUCCESS") {
    succeed(KfdVerb::map);
  }
  return true;
}

}  // namespace weir::ftrace
