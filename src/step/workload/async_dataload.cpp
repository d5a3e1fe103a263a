// Loading during computation: image batches are copied to the device, normalised and flipped there, and classified by a
// small CNN, in two alternating slots.
#include "kernel/im2col.h"
#include "step/workload/list.h"
#include "step/workload/model.h"

namespace weir::workload_list {
namespace {

constexpr std::int64_t kColours = 3, kFirst = 16, kSecond = 32, kClasses = 10;  // channels of each layer
constexpr std::int64_t kKernel = 3, kStride = 2, kPadding = 1;
constexpr std::int64_t kSlots = 2;

// A square image of `side` x `side` x `channels`.
struct Picture {
  std::int64_t side, channels;
  std::int64_t positions() const { return side * side; }
  std::int64_t size() const { return positions() * channels; }
};

class Dataload : Model {
  enum Role : std::uint8_t { kCopy, kPreprocess, kCompute };

 public:
  Dataload(const Params& params, int stream_count)
      : Model(params, stream_count, {1, 1, 1}),
        batches_(params.integer("batches")),
        images_(params.integer("images")),
        chunk_(params.integer("chunk")),
        raw_{params.integer("side"), kColours} {
    require_multiple("images", images_, "chunk", chunk_);
    for (const RoleLanes& lanes : lanes_) require_items("chunks of images", batches_ * chunks(), lanes);
  }

  Step build() {
    first_ = layers_.weights(kKernel * kKernel * kColours, kFirst);
    second_ = layers_.weights(kKernel * kKernel * kFirst, kSecond);
    last_ = layers_.weights(kSecond, kClasses);
    for (std::int64_t i = 0; i < kSlots * chunks(); ++i) slots_.push_back(layers_.output(chunk_ * raw_.size()));
    const Operand logits = layers_.output(batches_ * images_ * kClasses);
    // The next batch is submitted before this one's long computation.
    Operand ready = load(0);
    for (std::int64_t b = 0; b < batches_; ++b) {
      const Operand next = b + 1 < batches_ ? load(b + 1) : Operand{};
      classify(b, ready, slice(logits, {b, 1}, images_ * kClasses));
      ready = next;
    }
    return finish(batches_ * images_);
  }

 private:
  std::int64_t chunks() const { return images_ / chunk_; }
  // Calls body(lane, index of the chunk, its images).
  template <class Body>
  void each_chunk(Role role, std::int64_t batch, Body&& body) {
    for (std::int64_t c = 0; c < chunks(); ++c) body(lanes_[role][batch * chunks() + c], c, Part{c * chunk_, chunk_});
  }

  // Host memory -> the batch's slot -> normalised. A slot is refilled only after its contents were preprocessed.
  Operand load(std::int64_t batch) {
    const Operand pixels{step_.host(layers_.type(), elements(images_ * raw_.size()), Init::uniform, 0.5f, 0.5f)};
    const Operand flips = integers(images_, 2);
    const Operand ready = layers_.output(images_ * raw_.size());
    const auto slot = [&](std::int64_t c) { return slots_[static_cast<std::size_t>(batch % kSlots * chunks() + c)]; };
    each_chunk(kCopy, batch, [&](Lane lane, std::int64_t c, Part images) {
      step_.copy(lane, slice(pixels, images, raw_.size()), slot(c));
    });
    each_chunk(kPreprocess, batch, [&](Lane lane, std::int64_t c, Part images) {
      step_.launch("augment", lane, layers_.shape({images.count, raw_.side, raw_.side, raw_.channels}, {0.5f, 2}),
                   {slot(c), slice(flips, images), slice(ready, images, raw_.size())});
    });
    return ready;
  }

  void classify(std::int64_t batch, Operand ready, Operand logits) {
    Picture picture = raw_;
    Operand x = convolution(batch, ready, picture, first_, kFirst);
    x = convolution(batch, x, picture, second_, kSecond);
    const Operand pooled = layers_.output(images_ * picture.channels);
    each_chunk(kCompute, batch, [&](Lane lane, std::int64_t, Part images) {
      step_.launch("sum_rows", lane,
                   layers_.shape({images.count, picture.positions(), picture.channels, picture.channels},
                                 {1 / static_cast<float>(picture.positions())}),
                   {slice(x, images, picture.size()), slice(pooled, images, picture.channels)});
    });
    each_chunk(kCompute, batch, [&](Lane lane, std::int64_t, Part images) {
      layers_.gemm(lane, slice(pooled, images, picture.channels), last_, {images.count, kClasses, picture.channels},
                   slice(logits, images, kClasses));
    });
  }

  // A 3 x 3 convolution with stride 2 and a rectifier, as a matrix product of patches; `picture` becomes its output.
  Operand convolution(std::int64_t batch, Operand x, Picture& picture, Operand weights, std::int64_t channels) {
    const std::int64_t packed = image_patch(picture.channels, kKernel, kStride, kPadding);
    const ImagePatch patch(packed);
    const Picture made{patch.along(picture.side), channels};
    const Operand patches = layers_.output(images_ * made.positions() * patch.size());
    const Operand product = layers_.output(images_ * made.size()), out = layers_.output(images_ * made.size());
    each_chunk(kCompute, batch, [&](Lane lane, std::int64_t, Part images) {
      step_.launch("im2col", lane, layers_.shape({images.count, picture.side, picture.side, packed}),
                   {slice(x, images, picture.size()), slice(patches, images, made.positions() * patch.size())});
    });
    each_chunk(kCompute, batch, [&](Lane lane, std::int64_t, Part images) {
      layers_.gemm(lane, slice(patches, images, made.positions() * patch.size()), weights,
                   {images.count * made.positions(), channels, patch.size()}, slice(product, images, made.size()));
    });
    each_chunk(kCompute, batch, [&](Lane lane, std::int64_t, Part images) {
      layers_.relu(lane, slice(product, images, made.size()), images.count * made.size(),
                   slice(out, images, made.size()));
    });
    picture = made;
    return out;
  }

  std::int64_t batches_, images_, chunk_;
  Picture raw_;
  std::vector<Operand> slots_;     // [slots][chunks], as copied from the host
  Operand first_, second_, last_;  // weights of the CNN
};

}  // namespace

Workload async_dataload() {
  return {.name = "async_dataload",
          .summary = "Image batches copied, preprocessed and classified at once",
          .category = "pipeline",
          .priority = 3,
          .unit = "images/s",
          .scaling = Scaling::divided,
          .shows = "copy engines beside preprocessing and compute",
          .streams = {1, 6, kMaxStreams},
          .params =
              {
                  integer_param("batches", "batches per iteration", {4, 4, 4}, 1, 256),
                  integer_param("images", "images of a batch; a multiple of chunk", {16, 32, 32}, 1, 4096),
                  integer_param("side", "height and width of an image", {8, 48, 224}, 1, 2048),
                  integer_param("chunk", "images that are copied and computed at once", {1, 2, 2}, 1, 4096),
              },
          .roles = {"copy", "preprocess", "compute"},
          .build = build_model<Dataload>};
}

}  // namespace weir::workload_list
