# shellcheck shell=bash disable=SC2034
# Functions shared by dev, tools/check, .ci/run and tools/cleanroom. Sourced with the repository's root as working folder.

BUILD_PACKAGES=(build-essential cmake ninja-build ccache pkg-config libcjson-dev libprotobuf-c-dev protobuf-c-compiler
    libonnx-dev libxxhash-dev libsimde-dev check python3 python3-venv ca-certificates)
CHECK_PACKAGES=(clang clang-format)
TEST_PYTHON=(numpy==2.4.6 onnx==1.22.0 onnxruntime==1.32.0)
PEER_PYTHON=(openvino==2026.4.1)
SMALL_MODELS=(ppocrv2_cls silero_ifless magika)
export DEBIAN_FRONTEND=noninteractive

say() { printf '\n== %s\n' "$*" >&2; }

as_root() {
    if [ "$(id -u)" -eq 0 ]; then "$@"; else sudo "$@"; fi
}

# Installs the Debian packages that are missing; nothing to do takes no time.
install_packages() {
    local missing=() package
    for package in "$@"; do
        [ "$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null)" = installed ] || missing+=("$package")
    done
    [ ${#missing[@]} -gt 0 ] || return 0
    say "Installing Debian packages: ${missing[*]}"
    mkdir -p build
    as_root apt-get update -qq >&2
    as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq -o Dpkg::Use-Pty=0 --no-install-recommends \
        "${missing[@]}" >build/packages.log 2>&1 || {
        tail -n 20 build/packages.log >&2
        return 1
    }
}

# python_environment FOLDER PACKAGE==VERSION...: a venv with these packages; a stamp makes the second call instant.
python_environment() {
    local folder=$1 python=/usr/bin/python3
    shift
    [ "$(cat "$folder/packages" 2>/dev/null)" = "$*" ] && return 0
    [ -x "$python" ] || python=python3
    say "Installing Python packages in $folder: $*"
    mkdir -p "$(dirname "$folder")"
    "$python" -m venv "$folder" && "$folder/bin/pip" install --quiet --disable-pip-version-check "$@" >&2 || return 1
    echo "$*" >"$folder/packages"
}

# configure_and_build FOLDER [CMAKE ARGUMENT...]
configure_and_build() {
    local folder=$1
    shift
    mkdir -p "$folder"
    if [ ! -f "$folder/build.ninja" ] || [ $# -gt 0 ]; then
        cmake -S . -B "$folder" -G Ninja -DCMAKE_C_COMPILER_LAUNCHER=ccache "$@" >"$folder/configure.log" 2>&1 || {
            cat "$folder/configure.log" >&2
            return 1
        }
    fi
    cmake --build "$folder" -- --quiet >&2
}

# All C files of ours, NUL-separated.
source_files() {
    local folders=() folder
    for folder in abi core include plugins cli examples tests bench tools; do
        [ -d "$folder" ] && folders+=("$folder")
    done
    find "${folders[@]}" -name '*.[ch]' -print0 | sort -z
}

passed_total=0
failed_total=0

# count LABEL COMMAND...: runs it, shows its output, and adds its last "N passed, N failed" line to the totals. A command
# without such a line counts as one; a failure that its line does not show counts as one failed.
count() {
    local label=$1 log line passed=0 failed=0 status=0
    shift
    log=$(mktemp)
    say "$label"
    "$@" 2>&1 | tee "$log" || status=$?
    line=$(grep -E '^([A-Za-z]+: )?[0-9]+ passed, [0-9]+ failed' "$log" | tail -n 1) || true
    rm -f "$log"
    if [ -n "$line" ]; then
        passed=$(sed -E 's/.*\b([0-9]+) passed.*/\1/' <<<"$line")
        failed=$(sed -E 's/.*\b([0-9]+) failed.*/\1/' <<<"$line")
    elif [ "$status" -eq 0 ]; then
        passed=1
    fi
    [ "$status" -eq 0 ] || [ "$failed" -gt 0 ] || failed=1
    passed_total=$((passed_total + passed))
    failed_total=$((failed_total + failed))
    [ "$failed" -eq 0 ] || echo "FAILED: $label" >&2
}

# Prints the sum; fails if anything failed or nothing ran.
count_total() {
    echo "$passed_total passed, $failed_total failed"
    [ "$failed_total" -eq 0 ] && [ "$passed_total" -gt 0 ]
}
