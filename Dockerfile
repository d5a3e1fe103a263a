# Images of Weir; docs/containers.md says how to run them beside a GPU.
#   docker build -t weir .                                  the CPU, OpenCL on it, simulated GPUs
#   docker build -t weir:cuda --build-arg VARIANT=cuda .    and NVIDIA GPUs
#   docker build -t weir:rocm --build-arg VARIANT=rocm .    and AMD GPUs
# scripts/container_test.sh carries out the steps of the first in a bare root file system.
ARG VARIANT=cpu

FROM debian:12.12 AS tools-cpu
FROM nvidia/cuda:13.0.2-devel-ubuntu24.04 AS tools-cuda
FROM rocm/dev-ubuntu-24.04:7.0-complete AS tools-rocm

FROM debian:12.12-slim AS base-cpu
RUN apt-get update && apt-get install -y --no-install-recommends pocl-opencl-icd && rm -rf /var/lib/apt/lists/*
# cuBLAS, NVRTC and NCCL are in the image; CUPTI, which times commands on the device, is not.
FROM nvidia/cuda:13.0.2-runtime-ubuntu24.04 AS base-cuda
RUN apt-get update && apt-get install -y --no-install-recommends cuda-cupti-13-0 && rm -rf /var/lib/apt/lists/*
FROM rocm/dev-ubuntu-24.04:7.0-complete AS base-rocm

FROM tools-${VARIANT} AS build
WORKDIR /src
# First what seldom changes, so that a second build does not install it again.
COPY scripts/setup.sh scripts/
RUN scripts/setup.sh build && rm -rf /var/lib/apt/lists/*
COPY . .
RUN make deb

FROM base-${VARIANT}
COPY --from=build /src/build/release/packages/ /packages/
# A compiler for kernel packages, mpirun for ranks.
RUN apt-get update && apt-get install -y --no-install-recommends /packages/*.deb g++ libarchive13 openmpi-bin \
    && rm -rf /packages /var/lib/apt/lists/* \
    && useradd --create-home --uid 1001 weir && install -d -o weir /results
USER weir
# Mount a folder here, and results stay.
WORKDIR /results
ENTRYPOINT ["weir"]
CMD ["info"]
