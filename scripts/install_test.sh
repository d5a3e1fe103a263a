#!/bin/bash
# Uses an installation as others would. tree: installs into a scratch folder, moves it, runs the program from an empty
# folder, builds a kernel by find_package and by pkg-config, and measures it. deb: what the package holds and says.
# Builds nothing of the project. usage: install_test.sh tree|deb BUILD_FOLDER    exit 77: cannot be tried here
set -eu
part=$1
build=$(cd "$2" && pwd)
source=$(cd "$(dirname "$0")/.." && pwd)
cmake=${CMAKE:-cmake}
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

complain() {
  echo "install_test: $*" >&2
  exit 1
}
expect() { # text, and what it was found in
  grep -qF -- "$1" <<<"$2" || complain "no '$1' in: $2"
}
skip() {
  echo "skipped: $*"
  exit 77
}

check_tree() { # prefix
  local prefix=$1 file
  for file in bin/weir include/weir/kernel.h include/weir/checkpoint.h share/weir/python/weir.py \
    share/weir/config/default.yaml share/weir/kernels/softmax/bench.yaml \
    lib/cmake/weir/weirConfig.cmake share/pkgconfig/weir.pc share/bash-completion/completions/weir \
    share/fish/vendor_completions.d/weir.fish share/doc/weir/docs/cli.md share/doc/weir/README.md; do
    [ -s "$prefix/$file" ] || complain "$file is not installed"
  done
  compgen -G "$prefix/share/man/man1/weir.1*" >/dev/null || complain "there is no manual page"
  for file in "$build"/libweir_{mpi,cupti,hip_gate}.so; do
    [ ! -e "$file" ] || [ -e "$prefix/lib/weir/${file##*/}" ] || complain "lib/weir/${file##*/} is not installed"
  done
  ! grep -rlF -- "$source" "$prefix/lib/cmake" "$prefix/share/pkgconfig" || complain "names the source folder"
}

test_tree() {
  local prefix=$scratch/moved weir said flags
  "$cmake" --install "$build" --prefix "$scratch/first" >/dev/null
  mv "$scratch/first" "$prefix"
  check_tree "$prefix"
  mkdir "$scratch/empty"
  cd "$scratch/empty"
  weir=$prefix/bin/weir
  expect "weir " "$("$weir" --version)"
  # Files that come with it, and modules, from where it lies now.
  expect "fork_join" "$("$weir" list --file fork_join)"
  expect "reduction" "$("$weir" bench --path reduction --device cpu --list)"
  said=$("$weir" overlap default --device cpu --set run.scale=tiny --set run.iterations=2 --set run.warmup=1 -o overlap 2>&1) ||
    complain "overlap: $said"
  if [ -e "$prefix/lib/weir/libweir_mpi.so" ]; then
    ! "$weir" info | grep -q 'MPI .*not beside' || complain "the MPI module is not found"
  fi
  # As bash reads it.
  said=$(PATH=$prefix/bin:$PATH bash --norc -c '
    source "$1"; COMP_WORDS=(weir run --file fork) COMP_CWORD=3; _weir; echo "${COMPREPLY[@]}"' \
    bash "$prefix/share/bash-completion/completions/weir")
  expect fork_join "$said"
  if command -v man >/dev/null; then
    said=$(man --warnings -l -Tutf8 -Z "$prefix"/share/man/man1/weir.1* 2>&1 >/dev/null)
    [ -z "$said" ] || complain "man: $said"
  fi

  # Somebody's project.
  mkdir "$scratch/project"
  cp "$source/kernels/reduction/kernel.cpp" "$scratch/project/"
  printf 'problem_size:\n  count: 4096\nprecisions: [fp32]\n' >"$scratch/project/bench.yaml"
  cat >"$scratch/project/CMakeLists.txt" <<'CMAKE'
cmake_minimum_required(VERSION 3.16)
project(somebodys LANGUAGES CXX)
find_package(weir 0.1 REQUIRED)
weir_add_kernel(sum kernel.cpp)
enable_testing()
add_test(NAME bench COMMAND weir::program bench --path ${CMAKE_CURRENT_BINARY_DIR}/kernels --device cpu --iterations 2
                            --warmup 1 --no-roofline -o ${CMAKE_CURRENT_BINARY_DIR}/reports)
CMAKE
  "$cmake" -S "$scratch/project" -B "$scratch/project/build" -DCMAKE_PREFIX_PATH="$prefix" >/dev/null ||
    complain "a project cannot find the package"
  "$cmake" --build "$scratch/project/build" >"$scratch/log" 2>&1 || complain "$(cat "$scratch/log")"
  [ -s "$scratch/project/build/kernels/sum/kernel.so" ] || complain "weir_add_kernel made no kernel.so"
  (cd "$scratch/project/build" && ${CTEST:-ctest} --output-on-failure >"$scratch/log" 2>&1) || complain "$(cat "$scratch/log")"
  expect '"status": "ok"' "$(cat "$scratch"/project/build/reports/kernels/*)"
  sed -i 's/weir 0.1 /weir 9.9 /' "$scratch/project/CMakeLists.txt"
  ! "$cmake" -S "$scratch/project" -B "$scratch/other" -DCMAKE_PREFIX_PATH="$prefix" >/dev/null 2>&1 ||
    complain "version 9.9 was found"
  if command -v pkg-config >/dev/null; then
    read -ra flags < <(PKG_CONFIG_PATH=$prefix/share/pkgconfig pkg-config --cflags weir)
    echo '#include <weir/kernel.h>' | ${CC:-cc} -x c -std=c11 -fsyntax-only "${flags[@]}" - || complain "pkg-config: ${flags[*]}"
  fi
}

test_deb() {
  local package listing said
  command -v dpkg-shlibdeps >/dev/null || skip "dpkg-dev is not installed"
  cd "$build"
  ${CPACK:-cpack} -G DEB -D CPACK_DEBIAN_COMPRESSION_TYPE=gzip -B "$scratch/packages" >"$scratch/log" 2>&1 || complain "$(cat "$scratch/log")"
  package=$(compgen -G "$scratch/packages/weir_*.deb") || complain "no package"
  said=$(dpkg-deb --info "$package")
  for field in "Package: weir" "Version: " "libc6 (>= " "Section: utils" "Maintainer: " "Description: follow GPU"; do
    expect "$field" "$said"
  done
  ! grep -q conffiles <<<"$said" || complain "it has conffiles"
  listing=$(dpkg-deb --contents "$package")
  for file in usr/bin/weir usr/share/weir/config/default.yaml usr/share/man/man1/weir.1.gz usr/include/weir/kernel.h \
    usr/share/zsh/vendor-completions/_weir usr/share/doc/weir/copyright; do
    expect "./$file" "$listing"
  done
  ! awk '{ print $2 }' <<<"$listing" | grep -vqx root/root || complain "not all files are root's"
  dpkg-deb -x "$package" "$scratch/root"
  cd "$scratch"
  expect "fork_join" "$(root/usr/bin/weir list --file fork_join)"
  if command -v lintian >/dev/null; then
    said=$(lintian --fail-on error --allow-root "$package" 2>&1) || complain "lintian: $said"
  fi
}

case $part in
  tree) test_tree ;;
  deb) test_deb ;;
  *) complain "tree or deb?" ;;
esac
