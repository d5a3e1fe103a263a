#include "trace/work_class.h"

#include <array>
#include <string>

#include "trace/kinds.h"

namespace weir {
namespace {

// The first rule one of whose parts occurs decides. Names are compared as lower-case letters and digits.
struct Rule {
  WorkClass work;
  bool in_arguments;  // also in the template's arguments and the parameters, which for some libraries say what is done
  std::array<std::string_view, 32> parts;
};

// Names from the sources of PyTorch, cuBLAS, cuDNN, CUTLASS, Tensile, MIOpen, FlashAttention, vLLM, Triton, FBGEMM, CUB
// and rocPRIM as real traces show them.
constexpr Rule kRules[] = {
    // TorchInductor says first how a fused kernel works, and then which operators are in it.
    {WorkClass::element_wise, false, {"tritonpoi", "tritonfor"}},
    {WorkClass::reduction, false, {"tritonred", "tritonper"}},
    // State-space models (Mamba) sum along the sequence.
    {WorkClass::reduction, false, {"chunkscan", "selectivescan", "chunkcumsum", "chunkstate", "statepassing"}},
    {WorkClass::matrix, false, {"matmul", "fusedmoekernel", "scaledmm", "marlinmarlin"}},
    {WorkClass::rearranging, false, {"appendpagedkvcache", "storekvcache", "updatekvcache", "reshapeandcache"}},
    {WorkClass::attention,
     true,
     {"flashfwd", "flashbwd", "flashattn", "fmha", "attention", "attnfwd", "attnbwd", "sdpa", "batchprefillwith",
      "batchdecodewith", "fwdkernelsplitk", "bwdkernelfuse", "computedotdoo", "convertdqto", "bwdkerneldq",
      "bwdkerneldkdv"}},
    {WorkClass::element_wise, false, {"rotary", "ropekernel", "applyrope", "fusedrope"}},
    {WorkClass::sorting, false, {"gathertopk", "topkgating"}},
    {WorkClass::embedding,
     false,
     {"embedding", "indexselect",    "indexelementwise",  "indexfunc",      "indexingbackward",
      "indexput",  "gather",         "scatter",           "krnpartial",     "partialsegment",
      "jagged",    "permuteindices", "permutepooledembs", "linearizeindex", "boundscheckindices",
      "recatcopy", "sparsedata",     "bagoffsets",        "moepermute",     "moeunpermute"}},
    {WorkClass::normalisation,
     false,
     {"layernorm", "lnfwd", "lnbwd", "rmsnorm", "batchnorm", "groupnorm", "instancenorm", "rownorm", "bnfw", "bnbw",
      "rowwisemoments", "gammabeta", "cucomputegradinput", "cuapplylayernorm", "partgradgamma", "internalgradients",
      "addnorm"}},
    {WorkClass::softmax, false, {"softmax", "crossentropy", "nllloss", "logsumexp"}},
    {WorkClass::convolution, true, {"fprop",     "dgrad",    "wgrad",         "winograd",      "asmconv",
                                    "naiveconv", "igemmfwd", "igemmbwd",      "igemmwrw",      "implicitconvolve",
                                    "im2col",    "col2im",   "convdepthwise", "depthwiseconv", "causalconv1d",
                                    "convolve",  "conv2d",   "conv3d",        "conv1d",        "convfwd",
                                    "convbwd"}},
    {WorkClass::optimizer,
     true,
     {"multitensorapply", "adamfunctor", "fusedadam", "adamw", "sgdfunctor", "fusedsgd", "lambstage", "lambfunctor"}},
    {WorkClass::matrix,
     false,
     {"gemm", "gemv", "nvjet", "cijk", "splitk", "tritontem", "wvsplitk", "xmma", "cublaslt", "gemvx", "bmm"}},
    {WorkClass::sorting,
     false,
     {"sort", "topk", "scan", "histogram", "unique", "mergesort", "nonzero", "bincount", "searchsorted", "partition",
      "routing", "moealign", "bitmatrix", "deviceselect"}},
    {WorkClass::pooling, false, {"maxpool", "avgpool", "averagepool", "pool2d", "pool3d", "upsample", "interpolat"}},
    {WorkClass::random, true, {"distribution", "dropout", "philox", "curand", "rocrand", "randperm", "bernoulli"}},
    {WorkClass::rearranging,
     true,
     {"catarray", "copykernel", "nchwtonhwc", "nhwctonchw", "converttensor", "rollcuda", "flipkernel", "triutril",
      "chunkcat", "splitwithsizes", "repeatinterleave", "copyandcast"}},
    {WorkClass::rearranging, false, {"transpose", "permute", "im2row", "subtensor", "tensorreorder"}},
    {WorkClass::reduction,
     false,
     {"reduce", "argmax", "argmin", "lpnorm", "normkernel", "dotkernel", "asum", "nrm2", "sumkernel", "moesum"}},
    {WorkClass::element_wise, false, {"elementwise",     "pointwise",  "axpy",       "axby",    "scalkernel",
                                      "actandmul",       "gelu",       "silu",       "swiglu",  "relu",
                                      "sigmoid",         "activation", "fillkernel", "quant",   "arange",
                                      "transformkernel", "addkernel",  "mulkernel",  "biasadd", "addbias",
                                      "vectoradd",       "vecadd",     "saxpy",      "triad",   "lerp"}},
    // CUTLASS and cuBLASLt name the product in the arguments of one kernel for all.
    {WorkClass::matrix, true, {"gemm", "cublaslt"}},
};

// Of the whole name, with arguments.
std::string all_letters_of(std::string_view name) {
  std::string letters;
  for (const char c : name) {
    if (c >= 'A' && c <= 'Z') letters += static_cast<char>(c - 'A' + 'a');
    if ((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9')) letters += c;
  }
  return letters;
}

// FBGEMM is a library of much more than products.
std::string without_fbgemm(std::string letters) {
  constexpr std::string_view kFbgemm = "fbgemm";
  for (std::size_t at = letters.find(kFbgemm); at != std::string::npos; at = letters.find(kFbgemm, at))
    letters.erase(at, kFbgemm.size());
  return letters;
}

}  // namespace

const char* to_string(WorkClass work) noexcept {
  constexpr std::array<const char*, kWorkClasses> kNames = {
      "matrix",       "attention",     "convolution", "normalisation", "softmax",     "embedding",
      "element-wise", "reduction",     "pooling",     "sorting",       "rearranging", "random",
      "optimizer",    "communication", "copy",        "memset",        "unrecognised"};
  return kNames[static_cast<std::size_t>(work)];
}

WorkClass work_class_of(SpanKind kind, std::string_view name) {
  switch (kind) {
    case SpanKind::collective:
      return WorkClass::communication;
    case SpanKind::copy:
      return WorkClass::copy;
    case SpanKind::memset:
      return WorkClass::memset;
    case SpanKind::kernel:
    case SpanKind::host:
      break;
  }
  // Recordings have several commands under the name of the last: "gemm and 12 before it", "group (... before it)".
  if (name.find(" before it") != std::string_view::npos) return WorkClass::unrecognised;
  constexpr std::size_t kLongest = 4096;  // names come from files
  name = name.substr(0, kLongest);
  const std::string function = without_fbgemm(letters_of(name, true)), all = without_fbgemm(all_letters_of(name));
  // XLA says how a fused kernel works, too: loop_multiply_fusion_3 (one element at a time), input_reduce_fusion.
  if (function.starts_with("loop") && function.find("fusion") != std::string::npos) return WorkClass::element_wise;
  for (const Rule& rule : kRules) {
    const std::string& text = rule.in_arguments ? all : function;
    for (const std::string_view part : rule.parts)
      if (!part.empty() && text.find(part) != std::string::npos) return rule.work;
  }
  return WorkClass::unrecognised;
}

}  // namespace weir
