#include "lab/kernels/package/compile_flags.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace weir::package {
namespace {

std::string hint_of(const std::string& flag) {
  try {
    check_compile_flag(flag);
  } catch (const Error& error) {
    return error.hint;
  }
  ADD_FAILURE() << flag << " was accepted";
  return {};
}

TEST(CompileFlags, flags_that_change_code_are_allowed) {
  for (const char* const flag : {"-O3",
                                 "-Ofast",
                                 "-DNAME",
                                 "-DNAME=1",
                                 "-DTYPE=unsigned",
                                 "-UNAME",
                                 "-std=c++20",
                                 "-std=gnu++17",
                                 "-march=native",
                                 "-mcpu=neoverse-v1",
                                 "-mtune=znver4",
                                 "-march=armv8.2-a+fp16",
                                 "-mavx2",
                                 "-mno-avx512f",
                                 "-msse4.2",
                                 "-mprefer-vector-width=512",
                                 "-ffast-math",
                                 "-fno-math-errno",
                                 "-ffp-contract=off",
                                 "-fopenmp",
                                 "-lm",
                                 "-lopenblas",
                                 "-Iinclude",
                                 "-I.",
                                 "-g",
                                 "-pthread",
                                 "--use_fast_math",
                                 "--fmad=false",
                                 "--maxrregcount=64",
                                 "--gpu-architecture=sm_90a",
                                 "-cl-fast-relaxed-math",
                                 "-cl-std=CL2.0"})
    EXPECT_NO_THROW(check_compile_flag(flag)) << flag;
}

TEST(CompileFlags, flags_that_load_code_or_touch_files_are_refused) {
  for (const char* const flag : {"-fplugin=/tmp/a.so",
                                 "-fplugin=a",
                                 "-fpass-plugin=a.so",
                                 "-fplugin-arg-a-b",
                                 "-fno-plugin=a",
                                 "-mllvm",
                                 "-mllvm=-load=a.so",
                                 "-mmlir",
                                 "-Wl,-rpath,/tmp",
                                 "-Wa,x",
                                 "-Wp,-MD,/etc/x",
                                 "-Xcompiler",
                                 "-Xlinker",
                                 "-B/tmp",
                                 "-o",
                                 "-o/etc/passwd",
                                 "-specs=a",
                                 "--specs=a",
                                 "@file",
                                 "-include",
                                 "-include/etc/passwd",
                                 "-imacros",
                                 "-isystem/x",
                                 "-L/tmp",
                                 "-L.",
                                 "-l:evil.a",
                                 "-l/x",
                                 "-l../x",
                                 "-I/usr/include",
                                 "-I../other",
                                 "-Iinclude/../../x",
                                 "-I",
                                 "-fprofile-use=/x",
                                 "-fdump-tree-all",
                                 "-fsanitize=address",
                                 "-fuse-ld=evil",
                                 "-wrapper",
                                 "-E",
                                 "-S",
                                 "-c",
                                 "-x",
                                 "kernel2.cpp",
                                 "",
                                 "-",
                                 "--",
                                 "-O9",
                                 "-O3;rm",
                                 "-D",
                                 "-D1",
                                 "-DWEIR_HOST_CODE=0",
                                 "-D__CUDACC_RTC__",
                                 "-march=",
                                 "-march=$(x)",
                                 "-march=a b",
                                 "-DNAME=a b",
                                 "-DNAME=\x1b[2J",
                                 "--maxrregcount=x",
                                 "--gpu-architecture=sm_90,compute_90",
                                 "--gpu-architecture=",
                                 "--compiler-bindir=/x",
                                 "-ccbin=/x",
                                 "-fopenmp -fplugin=x",
                                 "-m",
                                 "-cl-",
                                 "-save-temps",
                                 "-dumpdir"})
    EXPECT_THROW(check_compile_flag(flag), Error) << flag;
  EXPECT_THROW(check_compile_flag("-D" + std::string(300, 'a')), Error);
}

TEST(CompileFlags, a_refusal_says_what_to_do) {
  EXPECT_NE(hint_of("-L/opt/lib").find("dependencies"), std::string::npos);
  EXPECT_NE(hint_of("-O3 -DNAME").find("item of its own"), std::string::npos);
  EXPECT_NE(hint_of("-I/usr/include").find("into the folder"), std::string::npos);
  EXPECT_NE(hint_of("-DWEIR_X").find("WEIR_"), std::string::npos);
  EXPECT_NE(hint_of("-fplugin=a").find("-ffast-math"), std::string::npos);
}

TEST(CompileFlags, each_compiler_gets_what_it_understands) {
  const std::vector<std::string> flags = {"-O3",    "-DN=1", "-Iinclude",       "-march=native", "-std=c++20",
                                          "-lblas", "-UX",   "--use_fast_math", "-ffast-math",   "-cl-mad-enable"};
  using Flags = std::vector<std::string>;
  EXPECT_EQ(flags_for(Form::host_source, false, flags, "/p"),
            (Flags{"-O3", "-DN=1", "-I/p/include", "-march=native", "-std=c++20", "-lblas", "-UX", "-ffast-math"}));
  EXPECT_EQ(flags_for(Form::cuda_source, false, flags, "/p"),
            (Flags{"-DN=1", "-I/p/include", "-std=c++20", "-UX", "--use_fast_math"}));
  EXPECT_EQ(flags_for(Form::cuda_source, true, flags, "/p"),
            (Flags{"-O3", "-DN=1", "-I/p/include", "-Xcompiler", "-march=native", "-std=c++20", "-lblas", "-UX",
                   "--use_fast_math", "-Xcompiler", "-ffast-math"}));
  EXPECT_EQ(flags_for(Form::hip_source, false, flags, "/p"),
            (Flags{"-O3", "-DN=1", "-I/p/include", "-std=c++20", "-UX", "-ffast-math"}));
  EXPECT_EQ(flags_for(Form::hip_source, true, flags, "/p"), flags_for(Form::host_source, false, flags, "/p"));
  EXPECT_EQ(flags_for(Form::opencl_source, false, flags, "/p"), (Flags{"-DN=1", "-I/p/include", "-cl-mad-enable"}));
  EXPECT_EQ(flags_for(Form::library, false, {"-O3"}, "/p"), Flags{});
}

}  // namespace
}  // namespace weir::package
