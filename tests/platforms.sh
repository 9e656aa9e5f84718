#!/bin/sh
# SPDX-License-Identifier: MIT
# shellcheck disable=SC2086,SC2317 # words; steps are called by their names
# tests/platforms.sh [step...]: packages and platforms that no other test builds; without steps all of them:
#
#   wheel     pip install . into a clean virtual environment, and docs/python.md followed in it (takes packages from PyPI)
#   debian    the Debian source package, and lintian; programs by pkg-config and by CMake against what it installs
#   conan     the recipe and its test package (where conan is installed)
#   aarch64   cross-built by aarch64-linux-gnu-gcc; the command and tests of the emulator under qemu-aarch64
#   windows   is refused by x86_64-w64-mingw32-gcc, with the reason
#   musl      built by musl-gcc; the command
#   m32       built by gcc -m32; the command
#
# Builds lie in the folder that CPTX_PLATFORMS names, or in build-platforms.  What cannot be tried is skipped and says why.  The
# last line is "platforms: N passed, N failed, N skipped".
set -u
cd "$(dirname "$0")/.." || exit 2
source=$(pwd -P) suite=platforms
. tests/embed/common.sh
mkdir -p "${CPTX_PLATFORMS:-build-platforms}"
builds=$(cd "${CPTX_PLATFORMS:-build-platforms}" && pwd -P)
cached='' system_path=/usr/bin:/usr/sbin:/sbin:/bin
if have ccache; then
	cached="'ccache', "
	[ ! -d /usr/lib/ccache ] || system_path=/usr/lib/ccache:$system_path
	CCACHE_DIR=$(ccache --get-config cache_dir) # debhelper makes a home of its own
	export CCACHE_DIR
fi

copy_source() { # FOLDER: the files that git knows, or would
	rm -rf "$1" && mkdir -p "$1" && git ls-files -co --exclude-standard | while read -r f; do [ ! -e "$f" ] || echo "$f"; done | tar cf - -T - | tar xf - -C "$1"
}

# cross NAME COMPILER SYSTEM CPU FAMILY EXE-WRAPPER [C-ARG]: a machine file for meson
cross() {
	cat >"$builds/$1.ini" <<END
[binaries]
c = [$cached'$2']
ar = '${2%-gcc}-ar'
strip = '${2%-gcc}-strip'
pkgconfig = 'false'
$([ -z "$6" ] || echo "exe_wrapper = [$6]")
[built-in options]
c_args = [${7:-}]
c_link_args = [${7:-}]
[host_machine]
system = '$3'
cpu_family = '$4'
cpu = '$5'
endian = 'little'
END
}

# setup NAME OPTION...: the build, without what needs other libraries, and with -O1, which takes half the time of a release
setup() {
	name=$1
	shift
	[ -e "$builds/$name/build.ninja" ] || try "$name: meson setup" meson setup "$builds/$name" --buildtype=release -Doptimization=1 -Ddefault_library=shared -Dinspect=disabled -Dtests=disabled "$@" || return 1
	try "$name: ninja" nice ninja -C "$builds/$name"
	[ -e "$builds/$name/cptx" ] || [ -e "$builds/$name/cptx.exe" ]
}

# uses NAME COMMAND...: what the command line does there: it checks a kernel, makes one, and runs both on the emulator
uses() {
	name=$1
	shift
	try "$name: cptx --version" "$@" --version
	try "$name: cptx check" "$@" check --arch sm_90a examples/turn.ptx
	try "$name: cptx run" "$@" run -g 1 -b 64 -a 'buf:u32[64]=iota' examples/turn.ptx
	for target in sm_80 sm_90a sm_100a; do
		try "$name: a GEMM for $target, emulated" "$@" gemm --device emu:$target --run 64x64x64
	done
}

wheel() {
	copy_source "$builds/wheel-source"
	rm -rf "$builds/venv"
	try "wheel: a virtual environment" python3 -m venv "$builds/venv" || { skip "wheel: there is no python3 with venv"; return; }
	if ! "$builds/venv/bin/pip" download -q --no-deps -d "$dir" meson-python >"$dir/log" 2>&1; then
		skip "wheel: no packages can be had from PyPI"
		return
	fi
	try "wheel: pip install ." "$builds/venv/bin/pip" install "$builds/wheel-source"
	"$builds/venv/bin/pip" install -q numpy ml_dtypes >"$dir/log" 2>&1 || skip "wheel: NumPy and ml_dtypes cannot be installed"
	if [ ! -e build/libcptx.so ] || [ ! -e build/cptx ]; then
		skip "wheel: docs/python.md is followed where build/ has the library and the command"
		return
	fi
	try "wheel: docs/python.md" env CPTX_VENV="$builds/venv" python3 tests/docs/blocks.py "$source" "$source/build" cc docs/python.md
	tail -n 1 "$dir/log"
}

debian() {
	for tool in dpkg-buildpackage dh dh_python3 lintian; do
		have "$tool" || { skip "debian: $tool is not installed (devscripts, debhelper, dh-python, lintian)"; return; }
	done
	rm -rf "$builds/debian"
	copy_source "$builds/debian/cptx-0.1.0"
	cp -r packaging/debian "$builds/debian/cptx-0.1.0/debian"
	rm "$builds/debian/cptx-0.1.0/debian/README.md"
	try "debian: dpkg-buildpackage" sh -c "cd '$builds/debian/cptx-0.1.0' && PATH=$system_path nice dpkg-buildpackage --source-option=-Zgzip -us -uc" || return
	try "debian: lintian" sh -c "cd '$builds/debian' && lintian --allow-root --fail-on error,warning cptx_*.changes"
	try "debian: the command, unpacked" sh -c "cd '$builds/debian' && rm -rf root && for d in *.deb; do dpkg -x \$d root; done &&
		LD_LIBRARY_PATH=\$(dirname root/usr/lib/*/libcptx.so.0.1) root/usr/bin/cptx gemm --device emu:sm_80 --run 64x64x64"
	root=$builds/debian/root
	lib=$(dirname "$root"/usr/lib/*/libcptx.so.0.1)
	export PKG_CONFIG_PATH="$lib/pkgconfig" PKG_CONFIG_SYSROOT_DIR="$root"
	# shellcheck disable=SC2046 # words
	try "debian: a program by pkg-config" gcc -std=c11 examples/embed/embed.c $(pkg-config --cflags --libs cptx) -o "$builds/debian/embed" -Wl,-rpath,"$lib"
	run "$builds/debian/embed"
	try "debian: a program by CMake" cmake -S examples/embed/cmake -B "$builds/debian/cmake" -DCMAKE_PREFIX_PATH="$root/usr"
	try "debian: cmake --build" cmake --build "$builds/debian/cmake"
	run "$builds/debian/cmake/embed"
}

conan() {
	command -v conan >/dev/null || { skip "conan: it is not installed (pip install conan)"; return; }
	CONAN_HOME=$builds/conan
	export CONAN_HOME
	command conan profile detect --force >"$dir/log" 2>&1
	try "conan: create" nice conan_create
}
conan_create() { env conan create packaging/conan; }

aarch64() {
	for tool in aarch64-linux-gnu-gcc qemu-aarch64; do
		have "$tool" || { skip "aarch64: $tool is not installed"; return; }
	done
	cross aarch64 aarch64-linux-gnu-gcc linux aarch64 aarch64 "'qemu-aarch64', '-L', '/usr/aarch64-linux-gnu'"
	setup aarch64 --cross-file "$builds/aarch64.ini" || return
	uses aarch64 qemu-aarch64 -L /usr/aarch64-linux-gnu -E LD_LIBRARY_PATH="$builds/aarch64" "$builds/aarch64/cptx"
}

windows() {
	have x86_64-w64-mingw32-gcc || { skip "windows: x86_64-w64-mingw32-gcc is not installed (gcc-mingw-w64)"; return; }
	cross windows x86_64-w64-mingw32-gcc windows x86_64 x86_64 ''
	rm -rf "$builds/windows"
	if meson setup "$builds/windows" --cross-file "$builds/windows.ini" >"$dir/log" 2>&1; then bad "windows: it is set up"; else ok; fi
	if grep -q 'ERROR: .*cptx is not ported to Windows: ' "$dir/log"; then ok; else bad "windows: the refusal does not say why"; fi
}

musl() {
	have musl-gcc || { skip "musl: musl-gcc is not installed (musl-tools)"; return; }
	[ -e "$builds/musl/build.ninja" ] || CC=musl-gcc setup musl -Ddefault_library=static || return
	setup musl || return
	uses musl "$builds/musl/cptx"
}

m32() {
	echo 'int main(void) { return sizeof(long) != 4; }' >"$dir/m32.c"
	gcc -m32 "$dir/m32.c" -o "$dir/m32" 2>"$dir/log" || { skip "m32: gcc -m32 does not link (gcc-12-multilib, libc6-dev-i386)"; return; }
	# the headers of Linux are the same ones, which gcc-multilib links where -m32 looks for them
	cross m32 gcc linux x86 i686 '' "'-m32', '-idirafter', '/usr/include/x86_64-linux-gnu'"
	sed -i "s/^ar = .*/ar = 'ar'/; s/^strip = .*/strip = 'strip'/" "$builds/m32.ini"
	setup m32 --cross-file "$builds/m32.ini" || return
	uses m32 env LD_LIBRARY_PATH="$builds/m32" "$builds/m32/cptx"
}

[ $# -gt 0 ] || set -- wheel debian conan aarch64 windows musl m32
for step; do
	case $step in
	wheel | debian | conan | aarch64 | windows | musl | m32) $step ;;
	*) echo "platforms: there is no step '$step'" >&2; exit 2 ;;
	esac
done
finish
