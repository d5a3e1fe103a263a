# ROCm's libraries without a GPU, for tests: a HIP runtime whose queues are threads, its BLAS and its management library.
# Each variant lies in a folder of its own under fake_hip/, for LD_LIBRARY_PATH. Needs HIP's headers.
set(WEIR_FAKE_HIP_DIR ${PROJECT_BINARY_DIR}/fake_hip)
if(NOT WEIR_HIP_INCLUDE_DIR)
  return()
endif()

# Instrumented like everything else: a sanitizer would be blind where it is not.
add_library(fake_hip_parts OBJECT tests/fake_hip/device.cpp tests/fake_hip/kernels.cpp tests/fake_hip/queues.cpp
                                  tests/fake_hip/streams.cpp)
set_target_properties(fake_hip_parts PROPERTIES POSITION_INDEPENDENT_CODE ON)
target_include_directories(fake_hip_parts PRIVATE tests)
target_include_directories(fake_hip_parts SYSTEM PRIVATE ${WEIR_HIP_INCLUDE_DIR})
target_link_libraries(fake_hip_parts PRIVATE weir_kernel weir_base)

# name: folder and exported symbols; version: of HIP; major: in the library's name.
function(weir_add_fake_hip name version major)
  set(target fake_hip_${name})
  add_library(${target} SHARED tests/fake_hip/variant.cpp $<TARGET_OBJECTS:fake_hip_parts>)
  target_compile_definitions(${target} PRIVATE WEIR_FAKE_HIP_VERSION=${version})
  target_link_libraries(${target} PRIVATE weir_kernel weir_base)
  target_link_options(${target} PRIVATE -Wl,--version-script=${PROJECT_SOURCE_DIR}/tests/fake_hip/${name}.map)
  set_target_properties(${target} PROPERTIES OUTPUT_NAME amdhip64 SUFFIX .so.${major} NO_SONAME ON
                                             LINK_DEPENDS ${PROJECT_SOURCE_DIR}/tests/fake_hip/${name}.map
                                             LIBRARY_OUTPUT_DIRECTORY ${WEIR_FAKE_HIP_DIR}/${name})
  target_link_options(${target} PRIVATE -Wl,-soname,libamdhip64.so.${major})
  add_dependencies(fake_hip ${target})
endfunction()

# name: of the library and its source; output: its file; major: in its name.
function(weir_add_fake_rocm name output major)
  add_library(fake_${name} SHARED tests/fake_hip/${name}.cpp)
  target_include_directories(fake_${name} SYSTEM PRIVATE ${WEIR_HIP_INCLUDE_DIR})
  target_link_libraries(fake_${name} PRIVATE weir_options ${ARGN})
  target_link_options(fake_${name} PRIVATE -Wl,-soname,lib${output}.so.${major})
  set_target_properties(fake_${name} PROPERTIES OUTPUT_NAME ${output} SUFFIX .so.${major} NO_SONAME ON
                                                CXX_VISIBILITY_PRESET hidden
                                                LIBRARY_OUTPUT_DIRECTORY ${WEIR_FAKE_HIP_DIR}/rocm6)
  add_dependencies(fake_hip fake_${name})
endfunction()

add_custom_target(fake_hip)
weir_add_fake_hip(rocm6 60443483 6)
weir_add_fake_hip(rocm5 50221153 5)
weir_add_fake_hip(broken 60443483 6)
weir_add_fake_rocm(rocblas rocblas 4 fake_hip_rocm6)
weir_add_fake_rocm(rocm_smi rocm_smi64 7)
weir_add_fake_rocm(hiprtc hiprtc 6)
# librocprofiler-sdk in a folder of its own, because most tests are to find none, and the rocprofv3 that preloads it.
# Not instrumented, as what is preloaded is not.
if(NOT WEIR_SANITIZE)
  add_library(fake_rocprofiler SHARED tests/fake_hip/rocprofiler_sdk.cpp tests/fake_hip/rocprofiler_json.cpp
                                      tests/fake_hip/rocprofiler_api.cpp)
  target_include_directories(fake_rocprofiler SYSTEM PRIVATE ${WEIR_HIP_INCLUDE_DIR})
  target_link_libraries(fake_rocprofiler PRIVATE weir_options)
  target_link_options(fake_rocprofiler PRIVATE -Wl,-soname,librocprofiler-sdk.so.1)
  set_target_properties(fake_rocprofiler PROPERTIES OUTPUT_NAME rocprofiler-sdk SUFFIX .so.1 NO_SONAME ON
                                                    CXX_VISIBILITY_PRESET hidden
                                                    LIBRARY_OUTPUT_DIRECTORY ${WEIR_FAKE_HIP_DIR}/rocprofiler)
  add_dependencies(fake_hip fake_rocprofiler)
  set(WEIR_FAKE_ROCPROFILER ${WEIR_FAKE_HIP_DIR}/rocprofiler/librocprofiler-sdk.so.1)
  configure_file(tests/fake_hip/rocprofv3.in ${WEIR_FAKE_HIP_DIR}/bin/rocprofv3 @ONLY
                 FILE_PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE)
endif()
# Something that has every name of the library and is none at all.
foreach(suffix so.7 so.6 so.5 so)
  file(WRITE ${WEIR_FAKE_HIP_DIR}/text/libamdhip64.${suffix} "This is not a library.\n")
endforeach()

# Who opens them.
foreach(tests tests_device_hip tests_cli)
  if(TARGET ${tests})
    target_compile_definitions(${tests} PRIVATE WEIR_FAKE_HIP_DIR="${WEIR_FAKE_HIP_DIR}")
    add_dependencies(${tests} fake_hip)
  endif()
endforeach()

# A HIP program of somebody else, for the launch gate. Not instrumented, as what is preloaded is not.
if(TARGET weir_hip_gate AND TARGET tests_submit_inject AND NOT WEIR_SANITIZE)
  foreach(variant rocm6 rocm5)
    set(program fake_hip_program_${variant})
    add_executable(${program} tests/submit/inject/fake_hip_program.cpp)
    target_include_directories(${program} PRIVATE src)
    target_include_directories(${program} SYSTEM PRIVATE ${WEIR_HIP_INCLUDE_DIR})
    target_link_libraries(${program} PRIVATE fake_hip_${variant} Threads::Threads)
  endforeach()
  target_compile_definitions(fake_hip_program_rocm5 PRIVATE WEIR_LACKS_HOST_FUNCTIONS)
  target_compile_definitions(tests_submit_inject PRIVATE WEIR_FAKE_HIP_PROGRAM="$<TARGET_FILE:fake_hip_program_rocm6>"
                                                  WEIR_FAKE_HIP_PROGRAM_5="$<TARGET_FILE:fake_hip_program_rocm5>"
                                                  WEIR_HIP_GATE="$<TARGET_FILE:weir_hip_gate>")
  add_dependencies(tests_submit_inject weir_hip_gate fake_hip_program_rocm6 fake_hip_program_rocm5)
endif()
