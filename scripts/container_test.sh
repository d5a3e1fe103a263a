#!/bin/bash
# Carries out the steps of the Dockerfile in a bare root file system, for machines that have no container engine: those of
# the cpu variant, each stage in a copy of ROOT. Then runs the program as the image would. Needs root, and packages.
# Make ROOT with: debootstrap --variant=minbase bookworm ROOT
# usage: container_test.sh ROOT    ends with "N passed, N failed"
set -eu
[ $# -eq 1 ] && [ -x "$1/bin/sh" ] || { echo "usage: $0 ROOT (debootstrap --variant=minbase bookworm ROOT)" >&2; exit 2; }
[ "$(id -u)" -eq 0 ] || { echo "container_test: chroot and mount need root: run it with sudo" >&2; exit 2; }
bare=$(cd "$1" && pwd)
source=$(cd "$(dirname "$0")/.." && pwd)
scratch=$(mktemp -d)
passed=0
clean_up() {
  # Never into a mounted /dev: what cannot be unmounted stays.
  awk -v at="$scratch/" 'index($2, at) == 1 { print $2 }' /proc/mounts | sort -r | xargs -r umount || return
  rm -rf --one-file-system "$scratch"
}
trap clean_up EXIT

declare -A root=()     # of each stage
stage= folder=/ user=root entrypoint= command=
inside() { # user, command line
  chroot --userspec="$1" "${root[$stage]}" /usr/bin/env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
    HOME=/tmp DEBIAN_FRONTEND=noninteractive sh -ec "cd $folder; $2" </dev/null
}
enter() { # base, name
  local base=$1 name=${2:-final}
  stage=$name folder=/ user=root
  if [ -n "${root[$base]-}" ]; then
    root[$name]=${root[$base]}
    return
  fi
  root[$name]=$scratch/$name
  cp -a "$bare" "${root[$name]}"
  rm -f "${root[$name]}/etc/resolv.conf"
  cp -L /etc/resolv.conf "${root[$name]}/etc/resolv.conf"
  cp -r /etc/apt/. "${root[$name]}/etc/apt/"
  mount -t proc proc "${root[$name]}/proc"
  mount -t sysfs -o ro sysfs "${root[$name]}/sys" # as container engines do: PoCL aborts a program without it
  mount --rbind /dev "${root[$name]}/dev"
  mount --make-rslave "${root[$name]}/dev"
}
copy() { # [--from=stage] source ... target
  local from=$source to=${root[$stage]}
  case $1 in --from=*) from=${root[${1#--from=}]}; shift ;; esac
  local target=${*: -1}
  case $target in /*) ;; *) target=$folder/$target ;; esac
  mkdir -p "$to$target"
  if [ "$from" = "$source" ] && [ "$1" = . ]; then # what git tracks, as a clone has it
    git -C "$source" ls-files -z | tar -C "$source" --null -T - -c | tar -C "$to$target" -x
  else
    while [ $# -gt 1 ]; do
      if [ -d "$from/$1" ]; then cp -r "$from/$1/." "$to$target"; else cp "$from/$1" "$to$target"; fi
      shift
    done
  fi
}

while read -r word rest; do
  rest=${rest//'${VARIANT}'/cpu}
  case $word in
    '' | '#'* | ARG) continue ;;
    FROM)
      read -r base _ name <<<"$rest"
      case $name in *-cuda | *-rocm) stage= ; continue ;; esac
      enter "$base" "$name" ;;
    *) [ -n "$stage" ] || continue ;;&
    RUN) inside root "$rest" ;;
    COPY) read -ra words <<<"$rest"; copy "${words[@]}" ;;
    WORKDIR) folder=$rest; mkdir -p "${root[$stage]}$folder" ;;
    USER) user=$rest ;;
    ENTRYPOINT) entrypoint=$(tr -d '[]",' <<<"$rest") ;;
    CMD) command=$(tr -d '[]",' <<<"$rest") ;;
    *) echo "container_test: unknown step $word" >&2; exit 1 ;;
  esac
  passed=$((passed + 1))
  echo "== $word $rest"
done < <(sed -e ':a' -e '/\\$/N; s/\\\n//; ta' "$source/Dockerfile")

for line in "$command" "run moe --device cpu --scale tiny --iterations 3 -o moe.json" \
  "run moe --device sim:h200 --iterations 3 --quiet" "run hetero_kernels --device opencl --scale tiny --iterations 3 --quiet" \
  "bench --path kernels --filter softmax --device cpu --precision fp32 --iterations 3 --no-roofline"; do
  echo "== $entrypoint $line"
  inside "$user" "$entrypoint $line" || { echo "$passed passed, 1 failed"; exit 1; }
  passed=$((passed + 1))
done
echo "$passed passed, 0 failed"
