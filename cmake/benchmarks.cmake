# bench/x.cpp -> bench_x. bench/x.cu (with x.cpp beside it, where there is one) -> bench_x that needs a GPU: not part of
# the default build, target bench_gpu. `run_bench` and `run_bench_gpu` build and run them all.
file(GLOB bench_sources CONFIGURE_DEPENDS bench/*.cpp)
file(GLOB bench_headers CONFIGURE_DEPENDS bench/*.h)
file(GLOB bench_device_sources CONFIGURE_DEPENDS bench/*.cu)

set(gpu_benchmarks "")
set(no_gpu_benchmarks "no bench/*.cu")
if(bench_device_sources AND NOT WEIR_HAVE_CUDA)
  set(no_gpu_benchmarks ${WEIR_CUDA_REASON})
elseif(bench_device_sources)
  # The static runtime: the benchmark starts where only a driver is installed.
  file(GLOB target_dirs ${WEIR_CUDA_ROOT}/targets/*-linux/lib)
  find_library(WEIR_CUDART cudart_static PATHS ${WEIR_CUDA_ROOT}/lib64 ${WEIR_CUDA_ROOT}/lib ${target_dirs})
  if(NOT WEIR_CUDART)
    set(no_gpu_benchmarks "libcudart_static.a was not found")
  endif()
endif()

foreach(source IN LISTS bench_device_sources)
  cmake_path(GET source STEM stem)
  set(host_source ${PROJECT_SOURCE_DIR}/bench/${stem}.cpp)
  set(host_sources "")
  if(host_source IN_LIST bench_sources)
    set(host_sources ${host_source})
    list(REMOVE_ITEM bench_sources ${host_source})
  endif()
  if(WEIR_HAVE_CUDA AND WEIR_CUDART)
    set(object ${WEIR_DEVICE_DIR}/bench_${stem}.o)
    add_custom_command(
      OUTPUT ${object}
      COMMAND ${CMAKE_COMMAND} -E make_directory ${WEIR_DEVICE_DIR}
      COMMAND ${WEIR_NVCC} -c -O3 -std=c++20 -I ${PROJECT_SOURCE_DIR}/src -I ${WEIR_GENERATED_DIR} ${gencode}
              -o ${object} ${source}
      DEPENDS ${source} ${bench_headers}
      COMMENT "Compiling bench/${stem}.cu"
      VERBATIM)
    add_executable(bench_${stem} EXCLUDE_FROM_ALL ${host_sources} ${object})
    set_target_properties(bench_${stem} PROPERTIES LINKER_LANGUAGE CXX)
    target_link_libraries(bench_${stem} PRIVATE weir_core ${WEIR_CUDART} rt)
    list(APPEND gpu_benchmarks bench_${stem})
  endif()
endforeach()

set(benchmarks "")
foreach(source IN LISTS bench_sources)
  cmake_path(GET source STEM stem)
  # Built by `make bench` and `make lint`: tests need none of them.
  add_executable(bench_${stem} EXCLUDE_FROM_ALL ${source})
  target_link_libraries(bench_${stem} PRIVATE weir_core)
  list(APPEND benchmarks bench_${stem})
endforeach()
add_custom_target(benchmarks DEPENDS ${benchmarks})

# Runs the given executables one after another, or says why there are none.
function(weir_add_run_target name reason)
  if(NOT ARGN)
    add_custom_target(${name} COMMAND ${CMAKE_COMMAND} -E echo "Nothing to run: ${reason}" VERBATIM)
    return()
  endif()
  # A target each, one after the other because they share the terminal: with `ninja -k 0`, one that misses its bar keeps
  # none of the others from running. None runs while another is still being compiled.
  add_custom_target(${name})
  foreach(benchmark IN LISTS ARGN)
    add_custom_target(run_${benchmark} COMMAND ${benchmark} WORKING_DIRECTORY ${PROJECT_SOURCE_DIR} USES_TERMINAL VERBATIM)
    add_dependencies(run_${benchmark} ${ARGN})
    add_dependencies(${name} run_${benchmark})
  endforeach()
endfunction()

add_custom_target(bench_gpu DEPENDS ${gpu_benchmarks})
weir_add_run_target(run_bench "no bench/*.cpp" ${benchmarks})
weir_add_run_target(run_bench_gpu "${no_gpu_benchmarks}" ${gpu_benchmarks})
