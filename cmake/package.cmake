# The .deb: `make deb`, or cpack -G DEB in a build folder. Nothing in it is specific to the machine that built it but the
# libraries it was linked with, which dpkg-shlibdeps turns into dependencies.
set(WEIR_PACKAGE_CONTACT "Weir maintainers <maintainers@weir.invalid>" CACHE STRING "Maintainer of packages that are built here")
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME weir)
set(CPACK_PACKAGE_CONTACT ${WEIR_PACKAGE_CONTACT})
set(CPACK_PACKAGE_DIRECTORY ${PROJECT_BINARY_DIR}/packages)
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
# Bare of debug information, which is nine tenths of the program, but not of names: reports of hangs show them.
set(CPACK_PRE_BUILD_SCRIPTS ${PROJECT_SOURCE_DIR}/cmake/finish_deb.cmake)
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ
                                                WORLD_EXECUTE)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
# Weir has no revision of Debian's in its version; this is that of the package.
set(CPACK_DEBIAN_PACKAGE_RELEASE 1)
set(CPACK_DEBIAN_PACKAGE_SECTION utils)
set(CPACK_DEBIAN_PACKAGE_PRIORITY optional)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
# What is opened or started at run time is not seen by shlibdeps. Of that only OpenBLAS is needed, by the cpu device.
set(CPACK_DEBIAN_PACKAGE_DEPENDS "libopenblas0")
set(CPACK_DEBIAN_PACKAGE_RECOMMENDS "g++, libarchive13 | libarchive13t64")
set(CPACK_DEBIAN_PACKAGE_SUGGESTS "openmpi-bin, graphviz, linux-perf, ocl-icd-libopencl1")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "follow GPU commands from host threads to hardware queues")
set(CPACK_DEBIAN_PACKAGE_DESCRIPTION
    "Weir runs workloads of many streams on NVIDIA and AMD GPUs, OpenCL devices,
a software GPU or a simulated one, and says what each hop of a command costs:
channel, stream, hardware queue, kernel. It maps hardware queues, measures
preemption and overlap of communication, profiles and analyzes traces of other
programs, benchmarks kernels, and compares runs with a verdict.
.
GPU drivers are used where they are found; none is required.")
include(CPack)
