#!/bin/bash
# Installs what the build (and with "test", "hip", "lint" or "fuzz" those) needs from distribution packages. Calls apt only where
# something required is missing, so it is silent and quick on a machine that has everything, with a registry or without.
# Exit: 0 all there, 1 could not be installed, 2 a system that this script does not know.
set -u

purpose=${1:-build}
case $purpose in
  build | test | hip | lint | fuzz) ;;
  *) echo "usage: $0 [build|test|hip|lint|fuzz]" >&2; exit 2 ;;
esac

# package | what to look for where the package is not installed under that name: a command, a header or a python module
# (openblas_config.h, because every BLAS has a cblas.h)
required='build-essential|command:g++
cmake|command:cmake
ninja-build|command:ninja
pkg-config|command:pkg-config
file|command:file
libfmt-dev|header:fmt/format.h
libcli11-dev|header:CLI/CLI.hpp
nlohmann-json3-dev|header:nlohmann/json.hpp
libyaml-cpp-dev|header:yaml-cpp/yaml.h
libopenblas-dev|header:openblas_config.h'
optional='libhwloc-dev|header:hwloc.h
zlib1g-dev|header:zlib.h
libsqlite3-dev|header:sqlite3.h
libarchive-dev|header:archive.h
libncurses-dev|header:ncurses.h
libpq5|file:/usr/lib/'$(uname -m)'-linux-gnu/libpq.so.5
ccache|command:ccache'
# Other people's queues, which `weir channel` measures ours against.
queues='libboost-dev|header:boost/lockfree/spsc_queue.hpp
libconcurrentqueue-dev|header:concurrentqueue/concurrentqueue.h
libreaderwriterqueue-dev|header:readerwriterqueue.h'
# Debian has this one for x86-64 only.
[ "$(uname -m)" != x86_64 ] || queues+=$'\nlibatomic-queue-dev|header:atomic_queue/atomic_queue.h'
# Ranks: optional for a build, but CI must not pass because it left their tests out.
mpi='libopenmpi-dev|command:mpicxx
openmpi-bin|command:mpirun'
# Slurm on loopback, which `weir overlap` is tested under.
slurm='slurmctld|command:slurmctld
slurmd|command:slurmd
slurm-client|command:srun
munge|command:munged'
# A PostgreSQL server that tests start for themselves, and its client library, which weir opens when a history is there.
postgres='postgresql|file:/usr/lib/postgresql
libpq5|file:/usr/lib/'$(uname -m)'-linux-gnu/libpq.so.5
libpq-dev|header:postgresql/libpq-fe.h'
# AMD GPUs: a compiler for device code and the runtime's headers; 390 MB. CI compiles it and runs it on a fake runtime.
hip='hipcc|command:hipcc
libamdhip64-dev|file:/usr/include/hip/hip_runtime_api.h'
# Without these headers a build has no opencl device; the library and the drivers are found when it runs.
opencl_headers='opencl-c-headers|header:CL/cl.h'
# A driver that runs on any CPU: the opencl device is tested on it.
opencl='ocl-icd-libopencl1|file:/usr/lib/'$(uname -m)'-linux-gnu/libOpenCL.so.1
pocl-opencl-icd|file:/etc/OpenCL/vendors/pocl.icd
libclblast1|file:/usr/lib/'$(uname -m)'-linux-gnu/libclblast.so.1'
# The page of `weir report` is built with npm, and tested in a browser.
web='nodejs|command:node
npm|command:npm'
browser='chromium|command:chromium'
grep -qs '^ID=ubuntu' /etc/os-release && browser=  # a snap there: the browser's tests skip without it
# One version everywhere: formatting differs from release to release. Debian 12 and Ubuntu 24.04 both have 19.
fuzzer='clang-19|command:clang++-19
libclang-rt-19-dev|file:/usr/lib/llvm-19/lib/clang/19/lib/linux'
# CI compiles for the other architecture what has a line for one.
case $(uname -m) in
  aarch64) cross='g++-x86-64-linux-gnu|command:x86_64-linux-gnu-g++' ;;
  *) cross='g++-aarch64-linux-gnu|command:aarch64-linux-gnu-g++' ;;
esac
case $purpose in
  test)
    # The importers' fuzz targets run in CI too.
    required+=$'\npython3|command:python3\nlibgtest-dev|header:gtest/gtest.h\nzlib1g-dev|header:zlib.h\nlibsqlite3-dev|header:sqlite3.h\nlibarchive-dev|header:archive.h\nlibncurses-dev|header:ncurses.h\n'$mpi$'\n'$fuzzer$'\n'$queues$'\n'$hip$'\n'$opencl_headers$'\n'$opencl$'\n'$slurm$'\n'$postgres$'\n'$web$'\n'$cross${browser:+$'\n'$browser}
    optional+=$'\npython3-jsonschema|python:jsonschema'
    ;;
  lint)
    required+=$'\nlibgtest-dev|header:gtest/gtest.h\nclang-19|command:clang++-19\nclang-format-19|command:clang-format-19\nclang-tidy-19|command:clang-tidy-19'
    ;;
  hip) required+=$'\n'$hip ;;
  fuzz) required+=$'\nlibgtest-dev|header:gtest/gtest.h\nzlib1g-dev|header:zlib.h\nlibsqlite3-dev|header:sqlite3.h\nlibarchive-dev|header:archive.h\n'$fuzzer ;;
  *) optional+=$'\nlibgtest-dev|header:gtest/gtest.h\n'$mpi$'\n'$queues$'\n'$web$'\n'$opencl_headers ;;
esac

optional=$(grep -vxFf <(echo "$required") <<<"$optional")

has_header() {
  local folder folders prefix prefixes
  IFS=: read -r -a folders <<<"${CPATH:-}:${CPLUS_INCLUDE_PATH:-}"
  IFS=':;' read -r -a prefixes <<<"${CMAKE_PREFIX_PATH:-}"
  for prefix in "${prefixes[@]}" /usr /usr/local; do
    folders+=("$prefix/include" "$prefix/include/$(uname -m)-linux-gnu" "$prefix/include/openblas"
      "$prefix/include/$(uname -m)-linux-gnu/openblas-pthread")
  done
  for folder in "${folders[@]}"; do
    [ -n "$folder" ] && [ -e "$folder/$1" ] && return 0
  done
  return 1
}

is_present() { # package probe
  local name=${2#*:}
  dpkg-query -W -f='${Status}' "$1" 2>/dev/null | grep -q 'ok installed' && return 0
  case $2 in
    command:*) command -v "$name" >/dev/null ;;
    header:*) has_header "$name" ;;
    file:*) [ -e "$name" ] ;;
    python:*) python3 -c "import $name" 2>/dev/null ;;
  esac
}

missing_of() {
  local package probe
  while IFS='|' read -r package probe; do
    is_present "$package" "$probe" || printf '%s ' "$package"
  done <<<"$1"
}

missing=$(missing_of "$required")
extra=$(missing_of "$optional")
if [ -z "$missing" ]; then
  [ -z "$extra" ] || echo "setup: going on without these optional packages: $extra"
  exit 0
fi

id=unknown
version=unknown
if [ -r /etc/os-release ]; then
  id=$(. /etc/os-release && echo "${ID:-unknown}")
  version=$(. /etc/os-release && echo "${VERSION_ID:-unknown}")
fi
case $id-$version in
  debian-12 | ubuntu-24.04) ;;
  *)
    {
      echo "setup: this script installs packages on Debian 12 and Ubuntu 24.04 only; this is $id $version."
      echo "Install these (Debian's names), then run the same command again:"
      printf '  %s\n' $missing
      [ -z "$extra" ] || echo "Optional: $extra"
    } >&2
    exit 2
    ;;
esac

sudo=
if [ "$(id -u)" -ne 0 ]; then
  if ! command -v sudo >/dev/null; then
    echo "setup: missing: $missing" >&2
    echo "Not root, and there is no sudo. As root: apt-get install $missing" >&2
    exit 1
  fi
  sudo=sudo
fi

apt() { # retries arguments
  local retries=$1
  shift
  $sudo env DEBIAN_FRONTEND=noninteractive apt-get -q -o DPkg::Lock::Timeout=300 -o Acquire::Retries="$retries" "$@"
}
install() { apt 5 install -y --no-install-recommends "$@"; }

echo "setup: installing $missing$extra"
log=$(mktemp)
trap 'rm -f "$log"' EXIT
# Package lists that are already there usually do; a failure (stale or no lists, a busy mirror) refreshes them. Where no
# registry's name is known, twice, waiting longer would not help.
unknown=0
for attempt in 1 2 3; do
  install $missing $extra >"$log" 2>&1 && break
  [ "$attempt" -lt 3 ] || break
  sleep $((attempt * 4))
  apt 0 update >>"$log" 2>&1
  if grep -qE 'failure resolving|ould not resolve' "$log" && ! grep -qE '^(Get|Hit):' "$log"; then
    unknown=$((unknown + 1))
    [ "$unknown" -lt 2 ] || break
  fi
done

missing=$(missing_of "$required")
[ -z "$missing" ] && exit 0
# A missing optional package must not take the required ones with it.
[ -z "$extra" ] || [ "$unknown" -ge 2 ] || install $missing >"$log" 2>&1
missing=$(missing_of "$required")
[ -z "$missing" ] && exit 0
{
  echo "setup: apt-get could not install what is needed here: $(grep -m1 '^E: ' "$log" || tail -n1 "$log")"
  echo "Install these on a machine without access to a package registry by other means, then run the same command again:"
  printf '  %s\n' $missing
  extra=$(missing_of "$optional")
  [ -z "$extra" ] || echo "Optional: $extra"
} >&2
exit 1
