# tests/<path>/*_test.cpp -> executable tests_<path, with _ for />; *_gpu_test.cpp of all folders -> tests_gpu (label gpu).
# A folder without a *_test.cpp of its own, tests/support, is linked into all of them.
include(GoogleTest)
find_package(GTest QUIET)
if(NOT GTest_FOUND)
  if(NOT WEIR_TESTS STREQUAL "AUTO")
    message(FATAL_ERROR "GoogleTest is missing: run scripts/setup.sh test, or configure with -DWEIR_TESTS=OFF")
  endif()
  message(STATUS "The tests are left out: GoogleTest is missing (scripts/setup.sh test installs it)")
  return()
endif()

# Folders whose tests run real threads against each other.
set(WEIR_THREADED_TESTS amd_log channel device device_hip device_opencl lab_channels lab_preempt lab_queues lab_watch
    run submit submit_inject submit_sched submit_sched_mechanism)
# Of these, CI builds and runs under TSan what needs no more than the lower layers; `make test-long` all of them.
set(WEIR_TSAN_TESTS amd_log channel device lab_preempt submit submit_inject submit_sched submit_sched_mechanism)
# Tests of one thread that take minutes under sanitizers: searches of state spaces, and what the simulator computes.
set(WEIR_SANITIZERS_LEAVE_OUT "*ProbeSim.*:*QueueCost.*:*SimRun.every_workload*:ScheduledRun.every_workload*:ChannelChange.*"
    "ChannelCalibration.*:Compare*.*:Properties/EveryPolicy.*:WeightedFairProperties.*:Explorer/EveryState.*")
list(JOIN WEIR_SANITIZERS_LEAVE_OUT ":" WEIR_SANITIZERS_LEAVE_OUT)
# Folders that read other people's bytes or manage memory: CI builds and runs them under ASan. `make test-long` does it
# with all.
set(WEIR_LAYER_TESTS amd_capture amd_ftrace amd_join amd_kfd amd_log base channel device device_rank kernel
    lab_kernels_package measure step submit_sched trace)

file(GLOB_RECURSE test_sources CONFIGURE_DEPENDS tests/*.cpp)
# Programs of their own: one that mpirun starts several times, and what stands in for a GPU in other people's programs.
list(FILTER test_sources EXCLUDE REGEX "/mpi_selftest\\.cpp$|/tests/submit/inject/fake_|/tests/lab/race/fake_")
file(GLOB_RECURSE test_headers CONFIGURE_DEPENDS src/*.h)

# What every test sees.
add_library(tests_options INTERFACE)
target_link_libraries(tests_options INTERFACE weir_libraries GTest::gtest)
target_compile_definitions(tests_options INTERFACE WEIR_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
target_include_directories(tests_options INTERFACE tests)
# What is tested is optimised; the tests themselves would only take longer to compile. Those that instantiate channels, or
# compute references and state spaces, would take longer to run.
set(WEIR_COMPUTING_TESTS channel kernel measure submit_sched)

function(weir_optimise_tests target)
  set(level "")  # that of the sanitizer
  if(WEIR_SANITIZE STREQUAL "address")
    set(level -O0)
  elseif(CMAKE_BUILD_TYPE STREQUAL "Release")
    string(REGEX REPLACE "^tests_" "" folder ${target})
    set(level -O0)
    if(folder IN_LIST WEIR_COMPUTING_TESTS)
      set(level -O1)
    endif()
  endif()
  target_compile_options(${target} PRIVATE ${level})
  weir_reuse_precompiled(${target} tests "${level}" tests_options <gtest/gtest.h>)
endfunction()

set(support_sources ${test_sources})
list(FILTER support_sources INCLUDE REGEX "/tests/support/")
list(FILTER test_sources EXCLUDE REGEX "/tests/support/")
add_library(tests_support STATIC ${support_sources})
# Headers that have no source of their own bring what they include to the tests that include them.
set(support_files ${support_sources})
foreach(source IN LISTS support_sources)
  string(REGEX REPLACE "\\.cpp$" ".h" header ${source})
  if(EXISTS ${header})
    list(APPEND support_files ${header})
  endif()
endforeach()
weir_folders_of(below ${support_files})
list(TRANSFORM below PREPEND weir_)
target_link_libraries(tests_support PUBLIC ${below} tests_options)
weir_optimise_tests(tests_support)

add_custom_target(tests_threads)
add_custom_target(tests_tsan)
add_custom_target(tests_layers)

function(weir_add_tests name)
  cmake_parse_arguments(arg "" "LABEL" "SOURCES" ${ARGN})
  add_executable(${name} ${arg_SOURCES})
  string(REGEX REPLACE "^tests_" "" folder ${name})
  # The folders that they and their headers include.
  list(GET arg_SOURCES 0 first)
  cmake_path(GET first PARENT_PATH here)
  file(GLOB headers ${here}/*.h)
  weir_folders_of(below ${arg_SOURCES} ${headers})
  list(TRANSFORM below PREPEND weir_)
  # These drive the whole program.
  if(name MATCHES "^tests_(cli|docs|gpu)$")
    set(below weir_core)
  endif()
  target_link_libraries(${name} PRIVATE tests_support ${below} tests_options GTest::gtest_main)
  set(is_layer FALSE)
  if(folder IN_LIST WEIR_LAYER_TESTS)
    set(is_layer TRUE)
    add_dependencies(tests_layers ${name})
  endif()
  weir_optimise_tests(${name})
  # A package: its header is written in macros.
  set_source_files_properties(${PROJECT_SOURCE_DIR}/tests/lab/kernels/package/packages.cpp
                              PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
  if(NOT folder IN_LIST WEIR_SEPARATE_FOLDERS)
    weir_join_sources(${name})
  endif()
  # Only these drive the binary; for the others it would be one more thing to wait for.
  if(TARGET weir AND name MATCHES "^tests_(cli|docs|gpu)$")
    target_compile_definitions(${name} PRIVATE WEIR_BINARY="$<TARGET_FILE:weir>")
    add_dependencies(${name} weir)
  endif()
  # Tests on the GPU share one device and its memory; PoCL's processes share its cache of programs.
  set(alone RUN_SERIAL FALSE)
  if(arg_LABEL STREQUAL "gpu")
    set(alone RUN_SERIAL TRUE)
  elseif(folder STREQUAL "device_opencl")
    set(alone RESOURCE_LOCK opencl)
  endif()
  if(WEIR_SANITIZE)
    # One process per folder, because each pays for its start or a leak check (docs/adr/0004-sanitizers-in-ci.md).
    add_test(NAME ${name} COMMAND ${name} --gtest_brief=1 --gtest_filter=-${WEIR_SANITIZERS_LEAVE_OUT})
    set_tests_properties(${name} PROPERTIES TIMEOUT 1500 LABELS "${arg_LABEL}" ${alone})
    if(is_layer)
      set_property(TEST ${name} APPEND PROPERTY LABELS layers)
    endif()
    if(folder IN_LIST WEIR_TSAN_TESTS)
      set_property(TEST ${name} APPEND PROPERTY LABELS tsan)
    endif()
  else()
    # PRE_TEST: asking for the tests at build time would run each binary once per link.
    # The time limit is for what hangs: threads that hand work to each other take 100 times as long beside busy loops.
    gtest_discover_tests(${name} DISCOVERY_MODE PRE_TEST TEST_PREFIX ${name}. WORKING_DIRECTORY ${PROJECT_BINARY_DIR}
                         DISCOVERY_TIMEOUT 60 PROPERTIES TIMEOUT 1500 LABELS "${arg_LABEL}"
                         ${alone})
  endif()
endfunction()

# Under ASan the weir binary itself checks for leaks only here: tests/cli starts it too often to wait for that.
if(TARGET weir AND WEIR_SANITIZE STREQUAL "address")
  target_sources(weir PRIVATE ${PROJECT_SOURCE_DIR}/cmake/no_leak_check.cpp)
  set_source_files_properties(${PROJECT_SOURCE_DIR}/cmake/no_leak_check.cpp PROPERTIES SKIP_PRECOMPILE_HEADERS ON
                              SKIP_UNITY_BUILD_INCLUSION ON)
  add_test(NAME leaks.list COMMAND weir list)
  add_test(NAME leaks.run COMMAND weir run tiny_kernel_stress --device cpu --scale tiny --iterations 2 --quiet)
  set_tests_properties(leaks.list leaks.run PROPERTIES ENVIRONMENT ASAN_OPTIONS=detect_leaks=1 LABELS leaks)
endif()

if(TARGET weir_mpi)
  add_executable(mpi_selftest tests/device/rank/mpi_selftest.cpp)
  target_link_libraries(mpi_selftest PRIVATE weir_core)
  set_target_properties(mpi_selftest PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR})
  add_dependencies(mpi_selftest weir_mpi)
  find_program(WEIR_MPIRUN NAMES mpirun mpiexec)
  if(WEIR_MPIRUN)
    # Ranks wait for each other, so other tests' threads must not take their cores.
    add_test(NAME mpi.selftest COMMAND ${WEIR_MPIRUN} -n 3 --oversubscribe --allow-run-as-root $<TARGET_FILE:mpi_selftest>)
    # MPI libraries keep what they allocate until the process ends.
    set_tests_properties(mpi.selftest PROPERTIES TIMEOUT 1500 LABELS rank RUN_SERIAL TRUE
                         ENVIRONMENT ASAN_OPTIONS=detect_leaks=0)
  endif()
  if(TARGET weir AND NOT WEIR_SANITIZE)
    add_test(NAME slurm.smoke COMMAND ${PROJECT_SOURCE_DIR}/scripts/slurm_smoke.sh $<TARGET_FILE:weir>
                                      ${PROJECT_SOURCE_DIR}/config)
    set_tests_properties(slurm.smoke PROPERTIES TIMEOUT 1500 LABELS rank RUN_SERIAL TRUE SKIP_RETURN_CODE 77)
  endif()
endif()

set(gpu_sources ${test_sources})
list(FILTER gpu_sources INCLUDE REGEX "_gpu_test\\.cpp$")
list(FILTER test_sources EXCLUDE REGEX "_gpu_test\\.cpp$")
# No sanitizer runs where there is a GPU.
if(gpu_sources AND NOT WEIR_SANITIZE)
  list(APPEND gpu_sources ${PROJECT_SOURCE_DIR}/tests/cli/program.cpp
                          ${PROJECT_SOURCE_DIR}/tests/lab/conformance/examined.cpp)
  set(docs_sources ${test_sources})
  list(FILTER docs_sources INCLUDE REGEX "/tests/docs/")
  list(FILTER docs_sources EXCLUDE REGEX "_test\\.cpp$")
  list(APPEND gpu_sources ${docs_sources})
  weir_add_tests(tests_gpu LABEL gpu SOURCES ${gpu_sources})
endif()

set(test_folders ${test_sources})
list(FILTER test_folders INCLUDE REGEX "_test\\.cpp$")
list(TRANSFORM test_folders REPLACE ".*/tests/(.+)/[^/]+$" "\\1")
list(REMOVE_DUPLICATES test_folders)
if(WEIR_SANITIZE)
  # These read text: instrumenting them would find nothing, and std::regex is slow to compile that way.
  list(REMOVE_ITEM test_folders docs repo)
endif()
foreach(path IN LISTS test_folders)
  set(folder_sources ${test_sources})
  list(FILTER folder_sources INCLUDE REGEX "/tests/${path}/[^/]+$")
  string(REPLACE / _ folder ${path})
  if(folder IN_LIST WEIR_THREADED_TESTS)
    weir_add_tests(tests_${folder} LABEL threads SOURCES ${folder_sources})
    add_dependencies(tests_threads tests_${folder})
    if(folder IN_LIST WEIR_TSAN_TESTS)
      add_dependencies(tests_tsan tests_${folder})
    endif()
  else()
    weir_add_tests(tests_${folder} LABEL ${folder} SOURCES ${folder_sources})
  endif()
endforeach()

# A vendor's library that fails, for runs of the program with LD_LIBRARY_PATH: fake_<vendor>/<kind>/<library>. The kind
# `lacking` lacks an entry.
function(weir_add_fake vendor kind library tests)
  set(target fake_${vendor}_${kind})
  add_library(${target} MODULE tests/fake_${vendor}/fake_${vendor}.cpp)
  set_target_properties(${target} PROPERTIES PREFIX "" OUTPUT_NAME ${library} SUFFIX .so.1
                        LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/fake_${vendor}/${kind})
  target_include_directories(${target} SYSTEM PRIVATE ${WEIR_OPENCL_INCLUDE_DIR})
  if(kind STREQUAL "lacking")
    target_compile_definitions(${target} PRIVATE FAKE_LACKS_A_SYMBOL)
  endif()
  add_dependencies(${tests} ${target})
endfunction()
if(TARGET tests_device_opencl)
  target_sources(tests_device_opencl PRIVATE ${PROJECT_SOURCE_DIR}/tests/device/allocation_count.cpp)
endif()
if(TARGET tests_cli AND WEIR_HAVE_OPENCL)
  weir_add_fake(opencl failing libOpenCL tests_cli)
  weir_add_fake(opencl lacking libOpenCL tests_cli)
  set_source_files_properties(tests/cli/opencl_test.cpp PROPERTIES COMPILE_DEFINITIONS
                              WEIR_FAKE_OPENCL="${PROJECT_BINARY_DIR}/fake_opencl")
endif()
if(TARGET tests_cli AND WEIR_HAVE_CUDA)
  weir_add_fake(cuda old libcuda tests_cli)
  weir_add_fake(cuda lacking libcuda tests_cli)
  set_source_files_properties(tests/cli/cuda_test.cpp PROPERTIES COMPILE_DEFINITIONS
                              WEIR_FAKE_CUDA_DIR="${PROJECT_BINARY_DIR}/fake_cuda")
endif()

# NVML for one board: a driver's library, so that it has to be there when the test's process starts.
if(TARGET tests_device_nvml)
  foreach(variant new old)
    set(target fake_nvml_${variant})
    add_library(${target} MODULE tests/fake_nvml/nvml.cpp)
    set_target_properties(${target} PROPERTIES PREFIX "" OUTPUT_NAME libnvidia-ml SUFFIX .so.1
                                               LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/fake_nvml/${variant})
    add_dependencies(tests_device_nvml ${target})
    add_test(NAME nvml.${variant} COMMAND tests_device_nvml --gtest_brief=1)
    set_tests_properties(nvml.${variant} PROPERTIES
                         FAIL_REGULAR_EXPRESSION "Skipped"
                         ENVIRONMENT "LD_LIBRARY_PATH=${PROJECT_BINARY_DIR}/fake_nvml/${variant};WEIR_FAKE_NVML=${variant}")
  endforeach()
  target_compile_definitions(fake_nvml_old PRIVATE WEIR_FAKE_NVML_OLD)
endif()

# The fake GPU is a device like any other to those who examine devices, and packages launch on it.
file(GLOB fake_gpu_sources CONFIGURE_DEPENDS tests/device/fake_gpu*.cpp)
foreach(tests tests_lab_conformance tests_lab_kernels_package)
  if(TARGET ${tests})
    target_sources(${tests} PRIVATE ${fake_gpu_sources})
  endif()
endforeach()

# Tests pack what the program unpacks.
if(TARGET tests_trace AND WEIR_HAVE_LIBARCHIVE)
  target_link_libraries(tests_trace PRIVATE LibArchive::LibArchive)
endif()

# What lives in other people's programs is no part of this one.
if(TARGET tests_submit_inject)
  foreach(stem launch_gate process race_plan recorder stream_marks)
    target_sources(tests_submit_inject PRIVATE ${PROJECT_SOURCE_DIR}/src/submit/inject/${stem}.cpp)
  endforeach()
endif()

# Command lines of the docs are run as those of tests/cli are.
if(TARGET tests_docs)
  target_sources(tests_docs PRIVATE ${PROJECT_SOURCE_DIR}/tests/cli/program.cpp)
endif()

# `weir race -- program` without a GPU: a program that does what the library in a program does, in virtual time.
if(TARGET tests_lab_race)
  add_executable(fake_racy_program tests/lab/race/fake_racy_program.cpp)
  target_include_directories(fake_racy_program PRIVATE src)
  foreach(tests IN ITEMS tests_lab_race tests_cli)
    if(TARGET ${tests})
      target_compile_definitions(${tests} PRIVATE WEIR_FAKE_RACY_PROGRAM="$<TARGET_FILE:fake_racy_program>")
      add_dependencies(${tests} fake_racy_program)
    endif()
  endforeach()
endif()

# `weir profile -- program` without a GPU: a program that does what the CUDA driver does, and a CUPTI that makes records
# up. Neither is instrumented, as what they load is not.
if(TARGET weir_cupti AND TARGET tests_cli)
  add_library(fake_cupti MODULE tests/submit/inject/fake_cupti.cpp)
  target_include_directories(fake_cupti SYSTEM PRIVATE ${WEIR_CUDA_INCLUDE_DIR})
  add_executable(fake_cuda_program tests/submit/inject/fake_cuda_program.cpp)
  target_link_libraries(fake_cuda_program PRIVATE ${CMAKE_DL_LIBS})
  target_compile_definitions(tests_cli PRIVATE WEIR_FAKE_CUPTI="$<TARGET_FILE:fake_cupti>"
                                               WEIR_FAKE_PROGRAM="$<TARGET_FILE:fake_cuda_program>")
  add_dependencies(tests_cli fake_cupti fake_cuda_program)
endif()
# And `weir sched run`: a driver whose GPU is made of threads, for the launch gate in a program of its own.
if(TARGET fake_cupti AND TARGET tests_submit_inject)
  add_library(fake_cuda_driver SHARED tests/submit/inject/fake_driver.cpp tests/submit/inject/fake_memory.cpp)
  set_target_properties(fake_cuda_driver PROPERTIES PREFIX "" OUTPUT_NAME libcuda SUFFIX .so.1 NO_SONAME ON
                                                    LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/fake_cuda/driver)
  target_link_options(fake_cuda_driver PRIVATE -Wl,-soname,libcuda.so.1)
  target_include_directories(fake_cuda_driver SYSTEM PUBLIC ${WEIR_CUDA_INCLUDE_DIR})
  target_link_libraries(fake_cuda_driver PRIVATE Threads::Threads ${CMAKE_DL_LIBS})
  add_executable(fake_gate_program tests/submit/inject/fake_gate_program.cpp)
  target_link_libraries(fake_gate_program PRIVATE fake_cuda_driver Threads::Threads)
  # Comes before LD_LIBRARY_PATH, which may hold a real driver.
  target_link_options(fake_gate_program PRIVATE -Wl,--disable-new-dtags)
  add_executable(fake_race_program tests/submit/inject/fake_race_program.cpp)
  target_link_libraries(fake_race_program PRIVATE fake_cuda_driver Threads::Threads ${CMAKE_DL_LIBS})
  target_link_options(fake_race_program PRIVATE -Wl,--disable-new-dtags)
  target_compile_definitions(tests_submit_inject PRIVATE WEIR_FAKE_GATE_PROGRAM="$<TARGET_FILE:fake_gate_program>"
                                                  WEIR_FAKE_RACE_PROGRAM="$<TARGET_FILE:fake_race_program>"
                                                  WEIR_FAKE_CUPTI="$<TARGET_FILE:fake_cupti>"
                                                  WEIR_CUPTI_MODULE="$<TARGET_FILE:weir_cupti>")
  add_dependencies(tests_submit_inject weir_cupti fake_cupti fake_gate_program fake_race_program)
endif()

# `weir sched` with a stand-in for NVIDIA's MPS, and for the driver that it asks for.
if(TARGET tests_cli)
  add_executable(fake_mps_control tests/fake_mps/fake_mps_control.cpp)
  set_target_properties(fake_mps_control PROPERTIES OUTPUT_NAME nvidia-cuda-mps-control
                                                    RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/fake_mps)
  add_library(fake_mps_driver MODULE tests/fake_mps/fake_driver_library.cpp)
  set_target_properties(fake_mps_driver PROPERTIES PREFIX "" OUTPUT_NAME libcuda SUFFIX .so.1
                                                   LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/fake_mps)
  target_compile_definitions(tests_cli PRIVATE WEIR_FAKE_MPS="${PROJECT_BINARY_DIR}/fake_mps")
  add_dependencies(tests_cli fake_mps_control fake_mps_driver)
endif()

# The page of `weir report`: its functions in node, the whole of it in a browser.
if(WEIR_HAVE_HTML AND TARGET weir)
  add_test(NAME web.units COMMAND ${WEIR_NPM} run --silent test WORKING_DIRECTORY ${WEIR_WEB_DIR})
  add_test(NAME web.browser COMMAND ${WEIR_NPM} run --silent test:browser WORKING_DIRECTORY ${WEIR_WEB_DIR})
  set_tests_properties(web.units web.browser PROPERTIES TIMEOUT 1500 LABELS web SKIP_RETURN_CODE 77
                       ENVIRONMENT WEIR_BINARY=$<TARGET_FILE:weir>)
endif()

include(fake_hip)

# Every header compiles alone.
if(WEIR_HEADER_CHECK)
  set(check_sources "")
  foreach(header IN LISTS test_headers)
    cmake_path(RELATIVE_PATH header BASE_DIRECTORY ${PROJECT_SOURCE_DIR}/src)
    set(check_source ${WEIR_GENERATED_DIR}/header_check/${header}.cpp)
    file(CONFIGURE OUTPUT ${check_source} CONTENT "#include \"${header}\"\n#include \"${header}\"\n")
    list(APPEND check_sources ${check_source})
  endforeach()
  add_library(header_check OBJECT ${check_sources})
  target_link_libraries(header_check PRIVATE weir_libraries CLI11::CLI11)
  target_compile_options(header_check PRIVATE -O0 -g0)
endif()

# Drivers read LD_LIBRARY_PATH before main() does anything: the table on the HIP device, over a runtime without a GPU.
if(TARGET fake_hip AND TARGET tests_lab_conformance AND WEIR_HAVE_HIP)
  add_dependencies(tests_lab_conformance fake_hip)
  add_test(NAME conformance.fake_hip COMMAND tests_lab_conformance --gtest_brief=1 --gtest_filter=*/hip_*)
  set_tests_properties(conformance.fake_hip PROPERTIES TIMEOUT 1500 LABELS conformance RUN_SERIAL TRUE
                       FAIL_REGULAR_EXPRESSION ": Skipped"  # the runtime is there
                       # gcc 12's leak check crashes on threads of a library that was opened at run time; tests_device_hip,
                       # where it is loaded from the start, has the check.
                       ENVIRONMENT "LD_LIBRARY_PATH=${WEIR_FAKE_HIP_DIR}/rocm6;ASAN_OPTIONS=detect_leaks=0")
endif()
