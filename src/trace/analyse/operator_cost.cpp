#include "trace/analyse/operator_cost.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <tuple>
#include <utility>

#include "base/options.h"

namespace weir {
namespace {

bool is_float(NumberType type) { return type <= NumberType::f8; }

// What a framework makes of several inputs: the widest of the highest kind. Single numbers count only among themselves.
NumberType promoted(const std::vector<TensorShape>& tensors) {
  const auto rank_of = [](const TensorShape& tensor) {
    const int kind = tensor.type == NumberType::c64       ? 3
                     : is_float(tensor.type)              ? 2
                     : tensor.type == NumberType::boolean ? 0
                                                          : 1;
    return std::tuple(!tensor.dims.empty(), kind, bytes_of(tensor.type));
  };
  return std::max_element(tensors.begin(), tensors.end(),
                          [&](const auto& a, const auto& b) { return rank_of(a) < rank_of(b); })
      ->type;
}

double product(const std::vector<std::uint64_t>& dims, std::size_t from, std::size_t to) {
  double all = 1;
  for (std::size_t i = from; i < std::min(to, dims.size()); ++i) all *= static_cast<double>(dims[i]);
  return all;
}

// The shape of an element-wise result; empty where the shapes do not fit.
std::optional<std::vector<std::uint64_t>> broadcast(const std::vector<std::uint64_t>& a,
                                                    const std::vector<std::uint64_t>& b) {
  std::vector<std::uint64_t> made(std::max(a.size(), b.size()));
  for (std::size_t i = 0; i < made.size(); ++i) {  // from the last dimension
    const std::uint64_t x = i < a.size() ? a[a.size() - 1 - i] : 1, y = i < b.size() ? b[b.size() - 1 - i] : 1;
    if (x != y && x != 1 && y != 1) return std::nullopt;
    made[made.size() - 1 - i] = x == 1 ? y : x;
  }
  return made;
}

double all_bytes(const std::vector<TensorShape>& tensors) {
  double all = 0;
  for (const TensorShape& tensor : tensors) all += tensor.bytes();
  return all;
}

OperatorCost unknown(std::string reason) {
  return {std::nullopt, std::nullopt, NumberType::f32, false, std::move(reason)};
}
OperatorCost misfit() { return unknown("its shapes do not fit together as this operator's should"); }

// ---- Matrix products ----

// Of `a` and `b` as torch.matmul multiplies them, with a bias or not. `is_transposed`: b is [n, k], as of a linear
// layer.
OperatorCost matrix_product(const TensorShape& a, const TensorShape& b, const TensorShape* bias, bool is_transposed,
                            double result_bytes = 0) {
  std::vector<std::uint64_t> x = a.dims, y = b.dims;
  if (x.empty() || y.empty()) return misfit();
  if (x.size() == 1) x.insert(x.begin(), 1);
  if (y.size() == 1) y.push_back(1);
  if (is_transposed) {
    if (b.dims.size() == 1) y = {1, b.dims[0]};
    if (y.size() != 2) return misfit();
    std::swap(y[0], y[1]);
  }
  const std::uint64_t k = x.back();
  if (k != y[y.size() - 2]) return misfit();
  const auto batch = broadcast({x.begin(), x.end() - 2}, {y.begin(), y.end() - 2});
  if (!batch) return misfit();
  const double results =
      product(*batch, 0, kMostDims) * static_cast<double>(x[x.size() - 2]) * static_cast<double>(y.back());
  OperatorCost cost;
  cost.flop = 2 * results * static_cast<double>(k);
  cost.bytes = a.bytes() + b.bytes() + (bias != nullptr ? bias->bytes() : 0) +
               results * (result_bytes > 0 ? result_bytes : static_cast<double>(bytes_of(a.type)));
  cost.type = a.type;
  cost.is_matrix = true;
  return cost;
}

OperatorCost product_of_two(const OperatorInputs& in) {
  if (in.tensors.size() < 2) return misfit();
  return matrix_product(in.tensors[0], in.tensors[1], nullptr, false);
}
// aten::addmm(bias, a, b): the bias is in front.
OperatorCost product_and_sum(const OperatorInputs& in) {
  if (in.tensors.size() < 3) return misfit();
  return matrix_product(in.tensors[1], in.tensors[2], in.tensors.data(), false);
}
OperatorCost linear(const OperatorInputs& in) {
  if (in.tensors.size() < 2) return misfit();
  return matrix_product(in.tensors[0], in.tensors[1], in.tensors.size() > 2 ? &in.tensors[2] : nullptr, true);
}
// 8-bit integers are summed up in 32 bits. The result of 8-bit floats is of 16 bits in nearly all programs.
OperatorCost product_of_bytes(const OperatorInputs& in) {
  if (in.tensors.size() < 2) return misfit();
  const bool is_integer = !is_float(in.tensors[0].type);
  OperatorCost cost = matrix_product(in.tensors[0], in.tensors[1], nullptr, false, is_integer ? 4 : 2);
  if (!is_integer && cost.bytes) cost.reason = "bytes for a result of 16 bits";
  return cost;
}

// ---- Convolutions ----

std::optional<bool> flag_of(const std::string& text) {
  if (text == "True" || text == "true") return true;
  if (text == "False" || text == "false") return false;
  return std::nullopt;
}

// The flags among the values, in their order: lists and numbers are left out.
std::vector<bool> flags_of(const OperatorInputs& in) {
  std::vector<bool> flags;
  for (const std::string& value : in.values)
    if (const auto flag = flag_of(value)) flags.push_back(*flag);
  return flags;
}

std::vector<std::vector<std::uint64_t>> lists_of(const OperatorInputs& in) {
  std::vector<std::vector<std::uint64_t>> lists;
  for (const std::string& value : in.values)
    if (const auto dims = input_dims(value)) lists.push_back(*dims);
  return lists;
}

// A list of one stands for all dimensions, as in torch.
std::optional<std::uint64_t> along(const std::vector<std::uint64_t>& list, std::size_t dimension) {
  if (list.size() == 1) return list[0];
  if (dimension >= list.size()) return std::nullopt;
  return list[dimension];
}

struct ConvolutionOrder {
  std::size_t stride = 0, padding = 1, dilation = 2;  // among the lists of values
  bool has_transposed = true;                         // the first flag says whether it is transposed
};

OperatorCost convolution(const OperatorInputs& in, const ConvolutionOrder& order) {
  if (in.tensors.size() < 2) return misfit();
  const TensorShape &input = in.tensors[0], &weight = in.tensors[1];
  const std::size_t rank = weight.dims.size();
  if (rank < 3 || input.dims.size() != rank) return misfit();
  const auto lists = lists_of(in);
  const std::vector<bool> flags = flags_of(in);
  const std::size_t last = std::max({order.stride, order.padding, order.dilation});
  if (lists.size() <= last || (order.has_transposed && flags.empty()))
    return unknown(
        "the trace lacks the stride and padding of the convolution (PyTorch: record_shapes with concrete inputs)");
  const bool is_transposed = order.has_transposed && flags[0];
  // Each output adds up the channels of its group for each element of the kernel; transposed, each input is added to
  // as many outputs.
  const double kernel = product(weight.dims, 1, rank);
  OperatorCost cost;
  cost.type = input.type;
  cost.is_matrix = true;
  double results = static_cast<double>(input.dims[0]) * static_cast<double>(weight.dims[0]);
  for (std::size_t i = 2; i < rank && !is_transposed; ++i) {
    const auto stride = along(lists[order.stride], i - 2), padding = along(lists[order.padding], i - 2),
               dilation = along(lists[order.dilation], i - 2);
    if (!stride || !padding || !dilation || *stride == 0 || weight.dims[i] == 0) return misfit();
    const std::uint64_t reach = *dilation * (weight.dims[i] - 1) + 1, room = input.dims[i] + 2 * *padding;
    if (room < reach) return misfit();
    results *= static_cast<double>((room - reach) / *stride + 1);
  }
  if (is_transposed) {
    cost.flop = 2 * input.elements() * kernel;
    cost.reason = "bytes of a transposed convolution are not computed";
    return cost;
  }
  cost.flop = 2 * results * kernel;
  cost.bytes = input.bytes() + weight.bytes() + (in.tensors.size() > 2 ? in.tensors[2].bytes() : 0) +
               results * static_cast<double>(bytes_of(input.type));
  return cost;
}

OperatorCost torch_convolution(const OperatorInputs& in) { return convolution(in, {}); }
OperatorCost plain_convolution(const OperatorInputs& in) { return convolution(in, {0, 1, 2, false}); }
// cuDNN's and MIOpen's: padding comes before stride.
OperatorCost vendor_convolution(const OperatorInputs& in) { return convolution(in, {1, 0, 2, false}); }

// Gradients of input and weight, each as much as the convolution itself. The gradient of the output is the first
// input, so no stride is needed. The last list says which gradients were asked for.
OperatorCost convolution_backward(const OperatorInputs& in) {
  if (in.tensors.size() < 3) return misfit();
  const TensorShape &gradient = in.tensors[0], &input = in.tensors[1], &weight = in.tensors[2];
  if (weight.dims.size() < 3 || input.dims.size() != weight.dims.size()) return misfit();
  const std::vector<bool> flags = flags_of(in);
  if (flags.empty()) return unknown("the trace does not say whether the convolution is transposed");
  const double once = 2 * (flags[0] ? input : gradient).elements() * product(weight.dims, 1, weight.dims.size());
  bool has_input = true, has_weight = true;
  OperatorCost cost;
  if (!in.values.empty() && in.values.back().starts_with('[')) {
    const std::string& mask = in.values.back();
    if (const auto parts = input_parts(std::string_view(mask).substr(1, mask.size() - 2));
        parts && parts->size() == 3 && flag_of(std::string((*parts)[0])) && flag_of(std::string((*parts)[1]))) {
      has_input = *flag_of(std::string((*parts)[0]));
      has_weight = *flag_of(std::string((*parts)[1]));
    } else {
      cost.reason = "counted as if gradients of input and weight were both asked for";
    }
  }
  cost.type = gradient.type;
  cost.is_matrix = true;
  cost.flop = once * ((has_input ? 1 : 0) + (has_weight ? 1 : 0));
  cost.bytes = gradient.bytes() + input.bytes() + weight.bytes() + (has_input ? input.bytes() : 0) +
               (has_weight ? weight.bytes() : 0);
  return cost;
}

// ---- Attention ----

struct AttentionOrder {
  std::size_t query = 0;            // index of q among the tensors; k and v follow
  bool is_sequence_second = false;  // [batch, sequence, heads, dim] instead of [batch, heads, sequence, dim]
  std::size_t causal = 0;           // index of is_causal among the flags
  bool is_backward = false;
};

OperatorCost attention(const OperatorInputs& in, const AttentionOrder& order) {
  if (in.tensors.size() < order.query + 3) return misfit();
  const TensorShape &q = in.tensors[order.query], &k = in.tensors[order.query + 1], &v = in.tensors[order.query + 2];
  if (q.dims.size() == 3 && order.is_sequence_second)
    return unknown("sequences of different lengths are packed, and the trace does not say how long each is");
  const auto size = q.dims.size();
  if (size < 3 || size > 4 || k.dims.size() != size || v.dims.size() != size) return misfit();
  const std::size_t sequence = order.is_sequence_second ? 1 : size - 2, heads = order.is_sequence_second ? 2 : size - 3;
  const auto at = [](const TensorShape& tensor, std::size_t i) { return static_cast<double>(tensor.dims[i]); };
  if (q.dims.back() != k.dims.back() || k.dims[sequence] != v.dims[sequence]) return misfit();
  const double rows = (size == 4 ? at(q, 0) : 1) * at(q, heads), from = at(q, sequence), to = at(k, sequence);
  OperatorCost cost;
  cost.type = q.type;
  cost.is_matrix = true;
  cost.flop = 2 * rows * from * to * (at(q, size - 1) + at(v, size - 1));
  const std::vector<bool> flags = flags_of(in);
  if (order.causal >= flags.size()) {
    cost.reason = "counted without a causal mask, of which the trace says nothing";
  } else if (flags[order.causal]) {
    if (from == to)
      *cost.flop /= 2;
    else
      cost.reason = "counted without the causal mask, because queries and keys differ in length";
  }
  // Forward two products, backward five of the same size: two for q and k, one each for v and the weights, and the
  // scores once more.
  if (order.is_backward) *cost.flop *= 2.5;
  const double result = rows * from * at(v, size - 1) * static_cast<double>(bytes_of(q.type));
  const double inputs = q.bytes() + k.bytes() + v.bytes();
  cost.bytes = order.is_backward ? 2 * inputs + 2 * result : inputs + result;
  return cost;
}

template <std::size_t query, bool is_sequence_second, std::size_t causal, bool is_backward>
OperatorCost attention_like(const OperatorInputs& in) {
  return attention(in, {query, is_sequence_second, causal, is_backward});
}

// ---- What only moves data, or nearly so ----

OperatorCost element_wise_of(const OperatorInputs& in, std::optional<NumberType> result) {
  if (in.tensors.empty()) return misfit();
  std::vector<std::uint64_t> dims;
  for (const TensorShape& tensor : in.tensors) {
    const auto wider = broadcast(dims, tensor.dims);
    if (!wider) return misfit();
    dims = *wider;
  }
  const double results = product(dims, 0, kMostDims);
  OperatorCost cost;
  cost.type = promoted(in.tensors);
  cost.flop = results;
  cost.bytes = all_bytes(in.tensors) + results * static_cast<double>(bytes_of(result.value_or(cost.type)));
  return cost;
}
OperatorCost element_wise(const OperatorInputs& in) { return element_wise_of(in, std::nullopt); }
OperatorCost comparison(const OperatorInputs& in) { return element_wise_of(in, NumberType::boolean); }
// aten::where(condition, a, b): the condition does not decide the type.
OperatorCost selection(const OperatorInputs& in) {
  if (in.tensors.size() < 3) return misfit();
  return element_wise_of(in, promoted({in.tensors[1], in.tensors[2]}));
}
// aten::add_(self, ...): the result has the type of the first.
OperatorCost in_place(const OperatorInputs& in) {
  if (in.tensors.empty()) return misfit();
  OperatorCost cost = element_wise_of(in, in.tensors[0].type);
  cost.type = in.tensors[0].type;
  return cost;
}

// The first input is read and something as large is written, with so many flop per element.
OperatorCost over_rows(const OperatorInputs& in, double flop, std::size_t most_inputs) {
  if (in.tensors.empty() || in.tensors[0].dims.empty()) return misfit();
  OperatorCost cost;
  cost.type = in.tensors[0].type;
  cost.flop = flop * in.tensors[0].elements();
  cost.bytes = in.tensors[0].bytes();
  for (std::size_t i = 0; i < std::min(most_inputs, in.tensors.size()); ++i) *cost.bytes += in.tensors[i].bytes();
  return cost;
}
// Largest, difference, exponential, sum, quotient.
OperatorCost softmax(const OperatorInputs& in) { return over_rows(in, 5, 1); }
// aten::_softmax_backward_data(gradient, result, ...): product, sum, difference, product.
OperatorCost softmax_backward(const OperatorInputs& in) { return over_rows(in, 4, 2); }
// Mean; difference, square and sum of the variance; difference and quotient; weight and bias.
OperatorCost normalisation(const OperatorInputs& in) { return over_rows(in, 8, 5); }
// aten::native_layer_norm_backward(gradient, input, ..., mean, rstd, weight, bias): about twice as much.
OperatorCost normalisation_backward(const OperatorInputs& in) { return over_rows(in, 16, 8); }
// Bytes without the result, which has fewer elements than the input.
OperatorCost reduction(const OperatorInputs& in) {
  if (in.tensors.empty()) return misfit();
  if (in.tensors.size() == 2) return element_wise(in);  // aten::max(a, b)
  const TensorShape& input = in.tensors[0];
  OperatorCost cost;
  cost.type = input.type;
  cost.flop = input.elements();
  cost.bytes = input.bytes();
  return cost;
}
OperatorCost running_total(const OperatorInputs& in) { return over_rows(in, 1, 1); }

// aten::copy_(to, from)
OperatorCost copy_into(const OperatorInputs& in) {
  if (in.tensors.size() < 2) return misfit();
  OperatorCost cost;
  cost.type = in.tensors[0].type;
  cost.flop = 0;
  cost.bytes = in.tensors[0].bytes() + in.tensors[1].bytes();
  return cost;
}
// Reads its input and writes as much.
OperatorCost copy_of(const OperatorInputs& in) {
  if (in.tensors.empty()) return misfit();
  OperatorCost cost;
  cost.type = in.tensors[0].type;
  cost.flop = 0;
  cost.bytes = 2 * in.tensors[0].bytes();
  return cost;
}
OperatorCost filling(const OperatorInputs& in) {
  if (in.tensors.empty()) return misfit();
  OperatorCost cost;
  cost.type = in.tensors[0].type;
  cost.flop = 0;
  cost.bytes = in.tensors[0].bytes();
  return cost;
}
// aten::embedding(weight, indices): one row per index, read and written.
OperatorCost embedding(const OperatorInputs& in) {
  if (in.tensors.size() < 2 || in.tensors[0].dims.size() != 2) return misfit();
  const TensorShape &weight = in.tensors[0], &indices = in.tensors[1];
  OperatorCost cost;
  cost.type = weight.type;
  cost.flop = 0;
  cost.bytes = indices.bytes() + 2 * indices.elements() * static_cast<double>(weight.dims[1] * bytes_of(weight.type));
  return cost;
}
// aten::index_select(self, dimension, indices)
OperatorCost index_select(const OperatorInputs& in) {
  if (in.tensors.size() < 2 || in.tensors[0].dims.empty()) return misfit();
  std::optional<std::int64_t> dimension;
  for (const std::string& value : in.values)
    if (!dimension) dimension = parse_integer(value);
  if (!dimension) return unknown("the trace does not say along which dimension it selects");
  const auto rank = static_cast<std::int64_t>(in.tensors[0].dims.size());
  if (*dimension < -rank || *dimension >= rank) return misfit();
  const auto along_it = static_cast<std::size_t>(*dimension < 0 ? *dimension + rank : *dimension);
  if (in.tensors[0].dims[along_it] == 0) return misfit();
  const double slice = in.tensors[0].bytes() / static_cast<double>(in.tensors[0].dims[along_it]);
  OperatorCost cost;
  cost.type = in.tensors[0].type;
  cost.flop = 0;
  cost.bytes = in.tensors[1].bytes() + 2 * in.tensors[1].elements() * slice;
  return cost;
}

// ---- The list ----

struct Known {
  std::string_view name;
  OperatorCost (*cost)(const OperatorInputs&);
};

// Names without "aten::". Where an operator has a variant that works in place, its name is looked up without the
// underscore.
constexpr auto kForwardFlash = attention_like<0, false, 0, false>;
constexpr Known kKnown[] = {
    {"mm", product_of_two},
    {"bmm", product_of_two},
    {"matmul", product_of_two},
    {"mv", product_of_two},
    {"dot", product_of_two},
    {"addmm", product_and_sum},
    {"_addmm_activation", product_and_sum},
    {"addmv", product_and_sum},
    {"baddbmm", product_and_sum},
    {"linear", linear},
    {"_scaled_mm", product_of_bytes},
    {"_int_mm", product_of_bytes},
    {"convolution", torch_convolution},
    {"_convolution", torch_convolution},
    {"convolution_overrideable", torch_convolution},
    {"conv1d", plain_convolution},
    {"conv2d", plain_convolution},
    {"conv3d", plain_convolution},
    {"cudnn_convolution", vendor_convolution},
    {"miopen_convolution", vendor_convolution},
    {"miopen_depthwise_convolution", vendor_convolution},
    {"convolution_backward", convolution_backward},
    // (q, k, v, mask, dropout, is_causal, ...)
    {"scaled_dot_product_attention", kForwardFlash},
    // (q, k, v, dropout, is_causal, ...)
    {"_scaled_dot_product_flash_attention", kForwardFlash},
    // (q, k, v, bias, wants_log_sum, dropout, is_causal, ...)
    {"_scaled_dot_product_efficient_attention", attention_like<0, false, 1, false>},
    {"_scaled_dot_product_cudnn_attention", attention_like<0, false, 1, false>},
    // (q, k, v, lengths, lengths, longest, longest, dropout, is_causal, ...)
    {"_flash_attention_forward", attention_like<0, true, 0, false>},
    {"_scaled_dot_product_flash_attention_backward", attention_like<1, false, 0, true>},
    {"_scaled_dot_product_efficient_attention_backward", attention_like<1, false, 0, true>},
    {"_scaled_dot_product_cudnn_attention_backward", attention_like<1, false, 0, true>},
    {"_flash_attention_backward", attention_like<1, true, 0, true>},
    {"flash_attn::_flash_attn_forward", attention_like<0, true, 0, false>},
    {"flash_attn::_flash_attn_backward", attention_like<1, true, 0, true>},
    {"FlashAttnFunc", attention_like<0, true, 0, false>},
    {"native_layer_norm", normalisation},
    {"layer_norm", normalisation},
    {"native_group_norm", normalisation},
    {"native_batch_norm", normalisation},
    {"_native_batch_norm_legit", normalisation},
    {"cudnn_batch_norm", normalisation},
    {"miopen_batch_norm", normalisation},
    {"rms_norm", normalisation},
    {"_fused_rms_norm", normalisation},
    {"native_layer_norm_backward", normalisation_backward},
    {"native_group_norm_backward", normalisation_backward},
    {"native_batch_norm_backward", normalisation_backward},
    {"cudnn_batch_norm_backward", normalisation_backward},
    {"miopen_batch_norm_backward", normalisation_backward},
    {"_fused_rms_norm_backward", normalisation_backward},
    {"softmax", softmax},
    {"_softmax", softmax},
    {"log_softmax", softmax},
    {"_log_softmax", softmax},
    {"_softmax_backward_data", softmax_backward},
    {"_log_softmax_backward_data", softmax_backward},
    {"embedding", embedding},
    {"index_select", index_select},
    {"copy", copy_into},
    {"clone", copy_of},
    {"contiguous", copy_of},
    {"fill", filling},
    {"zero", filling},
    {"cumsum", running_total},
    {"cumprod", running_total},
    {"where", selection},
};
// Between blanks.
constexpr std::string_view kReductions =
    " sum mean amax amin max min argmax argmin prod norm all any var std var_mean linalg_vector_norm "
    "logsumexp count_nonzero ";
constexpr std::string_view kComparisons =
    " eq ne lt le gt ge logical_and logical_or logical_xor logical_not isnan isinf isfinite ";
constexpr std::string_view kElementWise =
    " add sub rsub mul div neg abs sign exp exp2 expm1 log log2 log1p sqrt rsqrt reciprocal pow square "
    "sin cos tan tanh sigmoid relu gelu silu mish elu leaky_relu hardtanh hardswish hardsigmoid softplus "
    "erf clamp clamp_min clamp_max maximum minimum floor ceil round trunc remainder fmod floor_divide "
    "bitwise_and bitwise_or bitwise_xor bitwise_not addcmul addcdiv lerp masked_fill threshold atan2 "
    "threshold_backward gelu_backward silu_backward tanh_backward sigmoid_backward hardtanh_backward "
    "hardswish_backward elu_backward leaky_relu_backward softplus_backward mish_backward ";

bool is_among(std::string_view words, std::string_view name) {
  return words.find(fmt::format(" {} ", name)) != std::string_view::npos;
}

}  // namespace

OperatorCost operator_cost(std::string_view name, std::string_view shapes) {
  if (shapes.empty()) return unknown("the trace has no shapes of its inputs (PyTorch: record_shapes=True)");
  const auto inputs = operator_inputs(shapes);
  if (!inputs) return unknown("its shapes cannot be read");
  if (name.starts_with("aten::")) name.remove_prefix(6);
  const bool is_in_place = name.size() > 1 && name.ends_with('_') && !name.ends_with("__");
  const std::string_view plain = is_in_place ? name.substr(0, name.size() - 1) : name;
  if (inputs->has_lists) return unknown("it works on lists of tensors");
  for (const Known& known : kKnown)
    if (known.name == plain) return known.cost(*inputs);
  if (is_among(kReductions, plain)) return reduction(*inputs);
  if (is_among(kComparisons, plain)) return is_in_place ? in_place(*inputs) : comparison(*inputs);
  if (is_among(kElementWise, plain)) return is_in_place ? in_place(*inputs) : element_wise(*inputs);
  return unknown("the cost of this operator is not known");
}

}  // namespace weir
