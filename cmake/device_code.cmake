# Compiles src/kernel/device_code.cu with nvcc into one fat binary and embeds it. No CUDA library is linked: the driver
# is opened at run time. Where nvcc is missing the build goes on, and WEIR_CUDA_REASON says why.
set(WEIR_HAVE_CUDA 0)
set(WEIR_CUDA_REASON "")
set(WEIR_NVCC_VERSION "")
set(WEIR_CUDA_INCLUDE_DIR "")
set(WEIR_HAVE_CUPTI 0)
set(WEIR_CUPTI_REASON "")
set(WEIR_DEVICE_CODE_SOURCE "")
set(WEIR_CUDA_ARCHITECTURES "80;90;100" CACHE STRING "Device code is compiled for these sm_XX, as far as nvcc knows them")
set(WEIR_CUDA_PTX 90 CACHE STRING "Newer devices compile device code from PTX of this compute_XX")

set(device_source ${PROJECT_SOURCE_DIR}/src/kernel/device_code.cu)
file(GLOB device_parts CONFIGURE_DEPENDS src/kernel/*.cu src/kernel/*.cuh)

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

  set(device_dir ${PROJECT_BINARY_DIR}/device)
  set(device_binary ${device_dir}/device_code.fatbin)
  add_custom_command(
    OUTPUT ${device_binary}
    COMMAND ${CMAKE_COMMAND} -E make_directory ${device_dir}
    COMMAND ${WEIR_NVCC} -fatbin -O3 -std=c++17 --threads 2 -Werror all-warnings -I ${PROJECT_SOURCE_DIR}/src ${gencode}
            -o ${device_binary} ${device_source}
    DEPENDS ${device_source} ${device_parts}
    COMMENT "Compiling device code with nvcc ${WEIR_NVCC_VERSION}"
    VERBATIM)
  set(WEIR_DEVICE_CODE_SOURCE ${device_dir}/device_code.S)
  configure_file(${PROJECT_SOURCE_DIR}/cmake/device_code.S.in ${WEIR_DEVICE_CODE_SOURCE} @ONLY)
  set_source_files_properties(${WEIR_DEVICE_CODE_SOURCE} PROPERTIES OBJECT_DEPENDS ${device_binary}
                                                                    SKIP_PRECOMPILE_HEADERS ON)
else()
  set(WEIR_CUDA_SUMMARY "none (${WEIR_CUDA_REASON})")
endif()
