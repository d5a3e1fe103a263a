# What `cmake --install` puts where, the CMake package for projects that build kernels, and the .deb (cpack -G DEB).
# Everything lies relative to bin/weir, which looks for it from there: an installed tree can be moved.

# The program writes its own manual page and completions. Not where it cannot run: for another machine, or with a
# sanitizer, which may need help to start.
set(WEIR_MANUAL_DIR ${PROJECT_BINARY_DIR}/manual)
set(WEIR_HAS_MANUAL FALSE)
find_program(WEIR_GZIP gzip)
mark_as_advanced(WEIR_GZIP)
if(NOT CMAKE_CROSSCOMPILING AND NOT WEIR_SANITIZE)
  set(WEIR_HAS_MANUAL TRUE)
  set(WEIR_MANUAL_PAGE ${WEIR_MANUAL_DIR}/weir.1)
  set(pack "")
  if(WEIR_GZIP)
    # Without a name or a time in it, so that two builds give the same file.
    set(pack COMMAND ${WEIR_GZIP} -9nf ${WEIR_MANUAL_PAGE})
    string(APPEND WEIR_MANUAL_PAGE .gz)
  endif()
  add_custom_command(TARGET weir POST_BUILD
                     COMMAND ${CMAKE_COMMAND} -E make_directory ${WEIR_MANUAL_DIR}
                     COMMAND weir help --man > ${WEIR_MANUAL_DIR}/weir.1 ${pack}
                     COMMAND weir completion bash > ${WEIR_MANUAL_DIR}/weir.bash
                     COMMAND weir completion zsh > ${WEIR_MANUAL_DIR}/_weir
                     COMMAND weir completion fish > ${WEIR_MANUAL_DIR}/weir.fish
                     VERBATIM)
endif()

install(TARGETS weir EXPORT weirTargets RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
# lib, whatever the system's own folder for libraries: the program looks in ../lib/weir.
foreach(module weir_mpi weir_cupti weir_hip_gate)
  if(TARGET ${module})
    install(TARGETS ${module} LIBRARY DESTINATION lib/weir)
  endif()
endforeach()
install(DIRECTORY config kernels DESTINATION ${CMAKE_INSTALL_DATADIR}/weir)
# What programs under `weir race` import: one file, for any Python.
install(FILES python/weir.py DESTINATION ${CMAKE_INSTALL_DATADIR}/weir/python)
# slurmd starts these as they are.
install(PROGRAMS config/fleet/prolog.sh config/fleet/epilog.sh config/fleet/probe.sbatch
        DESTINATION ${CMAKE_INSTALL_DATADIR}/weir/config/fleet)
if(WEIR_HAS_MANUAL)
  install(FILES ${WEIR_MANUAL_PAGE} DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
  install(FILES ${WEIR_MANUAL_DIR}/weir.bash DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions RENAME weir)
  install(FILES ${WEIR_MANUAL_DIR}/_weir DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions)
  install(FILES ${WEIR_MANUAL_DIR}/weir.fish DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d)
endif()
install(FILES README.md CHANGELOG.md LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(DIRECTORY docs DESTINATION ${CMAKE_INSTALL_DOCDIR})

# Public is what kernel packages include: a C interface with a version of its own. The program's own layers are not
# (docs/adr/0028-what-is-installed.md).
add_library(weir_kernel_interface INTERFACE)
target_include_directories(weir_kernel_interface INTERFACE $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>
                                                 $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
set_target_properties(weir_kernel_interface PROPERTIES EXPORT_NAME kernel)
set_target_properties(weir PROPERTIES EXPORT_NAME program)
install(TARGETS weir_kernel_interface EXPORT weirTargets)
install(DIRECTORY include/weir DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})

include(CMakePackageConfigHelpers)
set(package_dir lib/cmake/weir)
configure_package_config_file(cmake/weirConfig.cmake.in ${WEIR_GENERATED_DIR}/weirConfig.cmake
                              INSTALL_DESTINATION ${package_dir} NO_SET_AND_CHECK_MACRO)
# Headers alone: a project for 32 bits may use them as well. Before 1.0 a minor version may change them.
write_basic_package_version_file(${WEIR_GENERATED_DIR}/weirConfigVersion.cmake COMPATIBILITY SameMinorVersion
                                 ARCH_INDEPENDENT)
install(EXPORT weirTargets NAMESPACE weir:: DESTINATION ${package_dir})
install(FILES ${WEIR_GENERATED_DIR}/weirConfig.cmake ${WEIR_GENERATED_DIR}/weirConfigVersion.cmake
        DESTINATION ${package_dir})
configure_file(cmake/weir.pc.in ${WEIR_GENERATED_DIR}/weir.pc @ONLY)
install(FILES ${WEIR_GENERATED_DIR}/weir.pc DESTINATION ${CMAKE_INSTALL_DATADIR}/pkgconfig)

include(package)

# Installs into a scratch folder, moves it, and uses what is there as others would.
if(WEIR_TESTS AND WEIR_HAS_MANUAL)
  foreach(part tree deb)
    add_test(NAME install.${part} COMMAND ${PROJECT_SOURCE_DIR}/scripts/install_test.sh ${part} ${PROJECT_BINARY_DIR})
    set_tests_properties(install.${part} PROPERTIES TIMEOUT 1500 LABELS install SKIP_RETURN_CODE 77
                         ENVIRONMENT "CMAKE=${CMAKE_COMMAND};CPACK=${CMAKE_CPACK_COMMAND}")
  endforeach()
endif()
