# Compiles src/kernel/device_code.cu with nvcc into one fat binary and embeds it. No CUDA library is linked: the driver
# is opened at run time. Where nvcc is missing the build goes on, and WEIR_CUDA_REASON says why.
set(WEIR_HAVE_CUDA 0)
set(WEIR_CUDA_REASON "")
set(WEIR_NVCC_VERSION "")
set(WEIR_CUDA_INCLUDE_DIR "")
set(WEIR_HAVE_CUPTI 0)
set(WEIR_CUPTI_REASON "")
set(WEIR_CUDA_ARCHITECTURES "80;90;100" CACHE STRING "Device code is compiled for these sm_XX, as far as nvcc knows them")
set(WEIR_CUDA_PTX 90 CACHE STRING "Newer devices compile device code from PTX of this compute_XX")


if(WEIR_CUDA STREQUAL "OFF")
  set(WEIR_CUDA_REASON "switched off by WEIR_CUDA=OFF")
else()
  find_program(WEIR_NVCC nvcc HINTS ENV CUDA_PATH ENV CUDA_HOME PATH_SUFFIXES bin PATHS /usr/local/cuda/bin)
  if(NOT WEIR_NVCC)
    set(WEIR_CUDA_REASON "nvcc was not found")
  elseif(NOT EXISTS ${device_source})
    set(WEIR_CUDA_REASON "src/kernel/device_code.cu does not exist")
  else()
    # release 13.0, V13.0.88
    execute_process(COMMAND ${WEIR_NVCC} --version OUTPUT_VARIABLE version_text ERROR_QUIET)
    string(REGEX MATCH "V([0-9.]+)" ignored "${version_text}")
    set(WEIR_NVCC_VERSION "${CMAKE_MATCH_1}")
    file(REAL_PATH ${WEIR_NVCC} nvcc_path)
    cmake_path(GET nvcc_path PARENT_PATH nvcc_dir)
    cmake_path(GET nvcc_dir PARENT_PATH WEIR_CUDA_ROOT)
    file(GLOB target_dirs ${WEIR_CUDA_ROOT}/targets/*-linux/include)
    find_path(WEIR_CUDA_H_DIR cuda.h PATHS ${WEIR_CUDA_ROOT}/include ${target_dirs} NO_DEFAULT_PATH)
    if(NOT WEIR_CUDA_H_DIR)
      find_path(WEIR_CUDA_H_DIR cuda.h)
    endif()
    if(WEIR_CUDA_H_DIR)
      set(WEIR_HAVE_CUDA 1)
      set(WEIR_CUDA_INCLUDE_DIR ${WEIR_CUDA_H_DIR})
      # Headers alone: the library is opened at run time. builtin_types.h belongs to the runtime, and CUPTI's need it.
      find_path(WEIR_CUPTI_H_DIR cupti_activity.h
                PATHS ${WEIR_CUDA_ROOT}/extras/CUPTI/include ${WEIR_CUDA_ROOT}/include ${target_dirs})
      if(NOT WEIR_CUPTI_H_DIR)
        set(WEIR_CUPTI_REASON "cupti_activity.h was not found")
      elseif(NOT EXISTS ${WEIR_CUDA_H_DIR}/builtin_types.h)
        set(WEIR_CUPTI_REASON "cupti_activity.h was found, but not builtin_types.h")
      else()
        set(WEIR_HAVE_CUPTI 1)
        list(APPEND WEIR_CUDA_INCLUDE_DIR ${WEIR_CUPTI_H_DIR})
      endif()
    else()
      set(WEIR_CUDA_REASON "nvcc was found, but not cuda.h")
    endif()
  endif()
endif()

if(NOT WEIR_HAVE_CUDA)
  set(WEIR_CUPTI_REASON ${WEIR_CUDA_REASON})
endif()
if(WEIR_CUDA STREQUAL "ON" AND NOT WEIR_HAVE_CUDA)
  message(FATAL_ERROR "WEIR_CUDA=ON: ${WEIR_CUDA_REASON}")
endif()

if(WEIR_HAVE_CUDA)
  set(WEIR_CUDA_SUMMARY "nvcc ${WEIR_NVCC_VERSION}")
  # sm_80 sm_90 ... one per line
  execute_process(COMMAND ${WEIR_NVCC} --list-gpu-code OUTPUT_VARIABLE known_code ERROR_QUIET)
  string(REGEX MATCHALL "sm_[0-9]+" known_code "${known_code}")
  set(gencode "")
  foreach(architecture IN LISTS WEIR_CUDA_ARCHITECTURES)
    if("sm_${architecture}" IN_LIST known_code)
      list(APPEND gencode -gencode arch=compute_${architecture},code=sm_${architecture})
    endif()
  endforeach()
  list(APPEND gencode -gencode arch=compute_${WEIR_CUDA_PTX},code=compute_${WEIR_CUDA_PTX})

  # Nine tenths of the code are alike from device to device: 6.3 MB become 0.9. nvcc 12.8 calls it so, older ones do
  # what they can.
  if(WEIR_NVCC_VERSION VERSION_GREATER_EQUAL 12.8)
    set(compression --compress-mode=size)
  else()
    set(compression -Xfatbin -compress-all)
  endif()
  set(device_binary ${WEIR_DEVICE_DIR}/cuda_code.fatbin)
  add_custom_command(
    OUTPUT ${device_binary}
    COMMAND ${CMAKE_COMMAND} -E make_directory ${WEIR_DEVICE_DIR}
    COMMAND ${WEIR_NVCC} -fatbin -O3 -std=c++17 --threads 2 ${compression} -Werror all-warnings -I ${PROJECT_SOURCE_DIR}/src ${gencode}
            -o ${device_binary} ${device_source}
    DEPENDS ${device_source} ${device_parts}
    COMMENT "Compiling device code with nvcc ${WEIR_NVCC_VERSION}"
    VERBATIM)
  weir_embed(weir_cuda_code ${device_binary})
else()
  set(WEIR_CUDA_SUMMARY "none (${WEIR_CUDA_REASON})")
endif()
