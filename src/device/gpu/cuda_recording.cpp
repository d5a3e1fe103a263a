// Kernel launches of NVIDIA's libraries, read from a captured graph and repeated without calling the library again.
#include "device/gpu/libraries.h"
#include "weir_build.h"

#if WEIR_HAVE_CUDA
#include <cuda.h>

namespace weir {
namespace {

struct RecordingLibrary : VendorLibrary {
  explicit RecordingLibrary(const VendorLibrary& driver) : VendorLibrary(driver) {}
  CUresult (*nodes)(CUgraph, CUgraphNode*, std::size_t*) = need("cuGraphGetNodes");
  // The entry without a suffix: cuda.h of CUDA 13 declares only the one with edge data.
  CUresult (*edges)(CUgraph, CUgraphNode*, CUgraphNode*, std::size_t*) = need("cuGraphGetEdges");
  CUresult (*type)(CUgraphNode, CUgraphNodeType*) = need("cuGraphNodeGetType");
  CUresult (*parameters)(CUgraphNode, CUDA_KERNEL_NODE_PARAMS_v2*) = need("cuGraphKernelNodeGetParams_v2");
  CUresult (*attribute)(CUgraphNode, CUlaunchAttributeID,
                        CUlaunchAttributeValue*) = need("cuGraphKernelNodeGetAttribute");
  CUresult (*launch)(const CUlaunchConfig*, CUfunction, void**, void**) = need("cuLaunchKernelEx");
};

const RecordingLibrary* g_recording = nullptr;  // written once, while the library is opened

constexpr std::size_t kMaxNodes = 4;  // a product and its split-k reduction; longer ones are left to the library

// The nodes of a chain in order; empty if the graph is not a chain.
std::vector<CUgraphNode> chain_of(CUgraph graph) {
  std::size_t count = 0, edges = 0;
  if (g_recording->nodes(graph, nullptr, &count) != CUDA_SUCCESS || count == 0 || count > kMaxNodes) return {};
  std::vector<CUgraphNode> nodes(count);
  if (g_recording->nodes(graph, nodes.data(), &count) != CUDA_SUCCESS) return {};
  if (count == 1) return nodes;
  CUgraphNode from[kMaxNodes] = {}, to[kMaxNodes] = {};
  if (g_recording->edges(graph, nullptr, nullptr, &edges) != CUDA_SUCCESS || edges != count - 1) return {};
  if (g_recording->edges(graph, from, to, &edges) != CUDA_SUCCESS) return {};
  const auto next = [&](CUgraphNode node) -> CUgraphNode {
    for (std::size_t i = 0; i < edges; ++i)
      if (from[i] == node) return to[i];
    return nullptr;
  };
  for (CUgraphNode first : nodes) {
    std::vector<CUgraphNode> chain;
    for (CUgraphNode node = first; node != nullptr && chain.size() <= count; node = next(node)) chain.push_back(node);
    if (chain.size() == count) return chain;
  }
  return {};
}

int graph_kernels(GpuGraph graph, std::vector<GpuRecordedKernel>* kernels) {
  const std::vector<CUgraphNode> chain = chain_of(reinterpret_cast<CUgraph>(graph));
  if (chain.empty()) return CUDA_ERROR_NOT_SUPPORTED;
  for (CUgraphNode node : chain) {
    CUgraphNodeType type{};
    CUDA_KERNEL_NODE_PARAMS_v2 p{};
    if (g_recording->type(node, &type) != CUDA_SUCCESS || type != CU_GRAPH_NODE_TYPE_KERNEL ||
        g_recording->parameters(node, &p) != CUDA_SUCCESS)
      return CUDA_ERROR_NOT_SUPPORTED;
    GpuRecordedKernel kernel;
    // A library's CUkernel may be launched in place of a CUfunction.
    kernel.function = reinterpret_cast<GpuFunction>(p.func != nullptr ? p.func : reinterpret_cast<CUfunction>(p.kern));
    kernel.grid = {p.gridDimX, p.gridDimY, p.gridDimZ};
    kernel.block = {p.blockDimX, p.blockDimY, p.blockDimZ};
    kernel.shared_bytes = p.sharedMemBytes;
    kernel.parameters = p.kernelParams;
    kernel.extra = p.extra;
    CUlaunchAttributeValue value{};
    if (g_recording->attribute(node, CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, &value) == CUDA_SUCCESS)
      kernel.cluster = {value.clusterDim.x, value.clusterDim.y, value.clusterDim.z};
    if (g_recording->attribute(node, CU_LAUNCH_ATTRIBUTE_COOPERATIVE, &value) == CUDA_SUCCESS && value.cooperative != 0)
      return CUDA_ERROR_NOT_SUPPORTED;
    if (kernel.function == nullptr || (kernel.parameters == nullptr && kernel.extra == nullptr))
      return CUDA_ERROR_NOT_SUPPORTED;
    kernels->push_back(kernel);
  }
  return 0;
}

int graph_size(GpuGraph graph, std::size_t* nodes) {
  return g_recording->nodes(reinterpret_cast<CUgraph>(graph), nullptr, nodes);
}

int launch_recorded(const GpuRecordedKernel& kernel, GpuStream stream) {
  CUlaunchAttribute cluster{};
  CUlaunchConfig config{};
  config.gridDimX = kernel.grid[0];
  config.gridDimY = kernel.grid[1];
  config.gridDimZ = kernel.grid[2];
  config.blockDimX = kernel.block[0];
  config.blockDimY = kernel.block[1];
  config.blockDimZ = kernel.block[2];
  config.sharedMemBytes = kernel.shared_bytes;
  config.hStream = reinterpret_cast<CUstream>(stream);
  if (kernel.cluster[0] * kernel.cluster[1] * kernel.cluster[2] > 1) {
    cluster.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
    cluster.value.clusterDim.x = kernel.cluster[0];
    cluster.value.clusterDim.y = kernel.cluster[1];
    cluster.value.clusterDim.z = kernel.cluster[2];
    config.attrs = &cluster;
    config.numAttrs = 1;
  }
  return g_recording->launch(&config, reinterpret_cast<CUfunction>(kernel.function), kernel.parameters, kernel.extra);
}

}  // namespace

void bind_recording(const VendorLibrary& driver, GpuApi& api) {
  g_recording = new RecordingLibrary(driver);
  if (!g_recording->missing().empty()) return;
  api.graph_kernels = graph_kernels;
  api.launch_recorded = launch_recorded;
  api.graph_size = graph_size;
}

}  // namespace weir
#endif
