#!/bin/sh
# SPDX-License-Identifier: MIT
# shellcheck disable=SC2086,SC2317 # words; steps are called by their names
# tests/platforms.sh [step...]: packages and platforms that no other test builds; without steps all of them:
#
#   wheel     pip install . into a clean virtual environment, docs/python.md followed in it, its programs typed by mypy, tests/python with NumPy (takes packages from PyPI)
#   frameworks  PyTorch and JAX of PyPI (5 GB) on the emulator: examples/hosts/torch_stable.cc, XLA's FFI, torch.compile; if it is named
#   debian    the Debian source package, and lintian; programs by pkg-config and by CMake against what it installs
#   conan     the recipe and its test package (where conan is installed)
#   wrap      an archive of the source that Meson fetches by packaging/wrap, and a program with it
#   fetch     the same archive by CMake's FetchContent, and a program with it
#   container packaging/container on a Debian 12 made by debootstrap, by buildah (as root), and the command in it
#   bare      ./bootstrap demo on that Debian 12, where no compiler is, and two steps of ./bootstrap test
#   aarch64   cross-built by aarch64-linux-gnu-gcc; under qemu-aarch64 the command, and the tests that are programs and do not take minutes
#   aarch64_slow  those that do; if it is named
#   windows   the library by x86_64-w64-mingw32-gcc-posix, static and as a DLL; under wine examples, and test programs with Debian's Check
#   site      meson compile site: its links lead somewhere, its search finds names and guides (where build/ and doxygen are)
#   m32       is refused with gcc -m32, with the reason
#   musl      built by musl-gcc; the command, and the tests that are programs and do not take minutes
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

# cross NAME COMPILER SYSTEM FAMILY CPU [C-ARG]: a machine file for meson
cross() {
	cat >"$builds/$1.ini" <<END
[binaries]
c = [$cached'$2']
ar = '${2%-gcc}-ar'
strip = '${2%-gcc}-strip'
pkgconfig = 'false'
[built-in options]
c_args = [${6:-}]
c_link_args = [${6:-}]
[host_machine]
system = '$3'
cpu_family = '$4'
cpu = '$5'
endian = 'little'
END
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
	if grep -qs '^Tag: cp3[0-9]*-abi3-' "$builds"/venv/lib/*/site-packages/cptx-*/WHEEL; then ok; else bad "wheel: it is for one version of CPython alone"; fi
	try "wheel: the records that ship with the library" env -u CPTX_TUNE_PATH CPTX_TUNE_DIR="$dir/tune" "$builds/venv/bin/python" -c 'import ctypes, cptx
lib, each, n = cptx._abi.lib, ctypes.CFUNCTYPE(ctypes.c_bool, ctypes.c_void_p, ctypes.c_void_p), []
lib.cptx_tune_open.restype = ctypes.c_void_p
assert lib.cptx_tune_each(ctypes.c_void_p(lib.cptx_tune_open(None, None)), each(lambda *_: not n.append(1)), None, None, None) and len(n) > 10, n'
	"$builds/venv/bin/pip" install -q numpy ml_dtypes mypy >"$dir/log" 2>&1 || skip "wheel: NumPy, ml_dtypes and mypy cannot be installed"
	try "wheel: the type stubs, by mypy" python3 tests/python/typed.py "$builds/venv/bin/python"
	if [ ! -e build/libcptx.so ] || [ ! -e build/cptx ]; then
		skip "wheel: docs/python.md is followed where build/ has the library and the command"
		return
	fi
	try "wheel: docs/python.md" env CPTX_VENV="$builds/venv" python3 tests/docs/blocks.py "$source" "$source/build" cc docs/python.md
	tail -n 1 "$dir/log"
	# with NumPy, and on the library of the wheel
	module_tests wheel "$builds/venv/bin/python" "$(echo "$builds"/venv/lib/*/site-packages/cptx/libcptx.so)" module build rows attention frameworks
}

# What test_build.py compares with is made by a whole build.
has_twins() { [ -e build/tests/python/python_twins ] && [ -e build/python/_insns.pyi ]; }

# module_tests STEP PYTHON LIBRARY TEST...: of tests/python; "build" compares with C, by a program of build/.
module_tests() {
	step=$1 python=$2 library=$3
	shift 3
	for test; do
		[ $test != build ] || has_twins || { skip "$step: test_build.py wants tests/python/python_twins and python/_insns.pyi in build/"; continue; }
		env CPTX_LIBRARY="$library" CPTX_INCLUDE="$source/include:$source/build/include" CPTX_BUILD="$source/build" \
			CPTX_TWINS="$source/build/tests/python/python_twins" nice "$python" "tests/python/test_$test.py" >"$dir/log" 2>&1
		count_of "$step: test_$test.py"
	done
}

# count_of WHAT: adds the figures of the last line of $dir/log
count_of() {
	figures=$(tr -d '\r' <"$dir/log" | sed -n 's/^.*: \([0-9]*\) passed, \([0-9]*\) failed, \([0-9]*\) skipped$/\1 \2 \3/p' | tail -n 1)
	if [ -z "$figures" ]; then
		bad "$1 did not come to its end"
		return
	fi
	tail -n 1 "$dir/log"
	read -r p f s <<-END
		$figures
	END
	[ "$f" -eq 0 ] || grep -A 8 '^FAIL: \|^ERROR: ' "$dir/log" | sed 's/^/    /'
	passed=$((passed + p)) failed=$((failed + f)) skipped=$((skipped + s))
}

frameworks() {
	[ -e build/libcptx.so ] || { skip "frameworks: there is no build/libcptx.so"; return; }
	[ -e "$builds/frameworks/bin/python" ] || try "frameworks: a virtual environment" python3 -m venv "$builds/frameworks" || return
	"$builds/frameworks/bin/pip" install -q torch jax numpy ml_dtypes >"$dir/log" 2>&1 || { skip "frameworks: PyTorch and JAX cannot be had from PyPI"; return; }
	module_tests frameworks "$builds/frameworks/bin/python" "$source/build/libcptx.so" frameworks rows attention jax build
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
	unset PKG_CONFIG_PATH PKG_CONFIG_SYSROOT_DIR
}

conan() {
	command -v conan >/dev/null || { skip "conan: it is not installed (pip install conan)"; return; }
	CONAN_HOME=$builds/conan
	export CONAN_HOME
	command conan profile detect --force >"$dir/log" 2>&1
	copy_source "$builds/conan-source" # conan builds the test package in its folder
	try "conan: create" nice env conan create "$builds/conan-source/packaging/conan" -s build_type=Debug # env: conan is a function here; Debug: a third of the time
	tail -n 3 "$dir/log"
}

# An archive of the source, as a release has one: $archive.
make_archive() {
	archive=$dir/cptx-0.1.0.tar.gz
	copy_source "$dir/archive/cptx-0.1.0"
	tar czf "$archive" -C "$dir/archive" cptx-0.1.0
	rm -rf "$dir/archive"
}

wrap() {
	make_archive
	rm -rf "$builds/wrap"
	mkdir -p "$builds/wrap"
	cp -r examples/embed "$builds/wrap/embed"
	mkdir "$builds/wrap/embed/meson/subprojects"
	sed "s|^directory = .*|directory = cptx-0.1.0\nsource_url = file://$archive\nsource_filename = cptx-0.1.0.tar.gz\nsource_hash = $(sha256sum "$archive" | cut -d' ' -f1)|" \
		packaging/wrap/cptx.wrap >"$builds/wrap/embed/meson/subprojects/cptx.wrap"
	try "wrap: meson setup" meson setup --wrap-mode=forcefallback --werror -Doptimization=0 -Dcptx:inspect=disabled "$builds/wrap/build" "$builds/wrap/embed/meson" || return
	try "wrap: ninja" ninja -C "$builds/wrap/build" embed
	run "$builds/wrap/build/embed"
}

fetch() {
	have cmake || { skip "fetch: cmake is not installed"; return; }
	make_archive
	rm -rf "$builds/fetch"
	try "fetch: cmake" cmake -S examples/embed/fetch -B "$builds/fetch" -DCPTX_URL="$archive" "-DCMAKE_C_COMPILER_LAUNCHER=$(command -v ccache)" || return
	try "fetch: cmake --build" cmake --build "$builds/fetch"
	run "$builds/fetch/embed"
}

# A bare Debian 12 in $builds/debian12.
bare_debian() {
	have debootstrap || { skip "$1: debootstrap is not installed"; return 1; }
	[ "$(id -u)" -eq 0 ] || { skip "$1: it needs root"; return 1; }
	[ -e "$builds/debian12/etc/debian_version" ] && return
	try "$1: debootstrap" debootstrap --variant=minbase bookworm "$builds/debian12.new" && mv "$builds/debian12.new" "$builds/debian12"
	[ -e "$builds/debian12/etc/debian_version" ]
}

bare() {
	bare_debian bare || return
	rm -rf "$builds/debian12-demo"
	cp -a "$builds/debian12" "$builds/debian12-demo"
	cp /etc/resolv.conf "$builds/debian12-demo/etc/"
	copy_source "$builds/debian12-demo/srv/cptx"
	if chroot "$builds/debian12-demo" sh -c 'command -v cc gcc meson ninja python3' >"$dir/log" 2>&1; then bad "bare: it has a compiler or Meson"; else ok; fi
	mount --bind /proc "$builds/debian12-demo/proc"
	try "bare: ./bootstrap demo" chroot "$builds/debian12-demo" sh -c 'cd /srv/cptx && PATH=/usr/sbin:/usr/bin:/sbin:/bin ./bootstrap demo'
	tail -n 3 "$dir/log"
	try "bare: ./bootstrap test house format" chroot "$builds/debian12-demo" sh -c 'cd /srv/cptx && PATH=/usr/sbin:/usr/bin:/sbin:/bin ./bootstrap test house format'
	tail -n 4 "$dir/log"
	umount "$builds/debian12-demo/proc"
}

container() {
	have buildah || { skip "container: buildah is not installed"; return; }
	bare_debian container || return
	copy_source "$builds/container"
	# the names of the Containerfile mean the Debian made here; nothing is asked of a registry
	base=$(buildah from scratch)
	try "container: a base image" buildah add -q "$base" "$builds/debian12" /
	for tag in debian:12 debian:12-slim; do
		try "container: $tag" buildah commit -q "$base" "docker.io/library/$tag"
	done
	# --isolation=chroot: it runs where containers may not set limits and groups, as in another container or a small VM
	try "container: buildah build" nice buildah build --isolation=chroot --pull=never -f "$builds/container/packaging/container/Containerfile" -t cptx-test "$builds/container" || return
	in=$(buildah from --pull-never cptx-test)
	for device in emu:sm_80 emu:sm_90a; do
		try "container: cptx gemm on $device" buildah run --isolation=chroot "$in" cptx gemm --device $device --run 64x64x64
	done
	try "container: the Python module" buildah run --isolation=chroot "$in" python3 -c 'import cptx; print(cptx.Device("emu:sm_90a"))'
	buildah rm "$base" "$in" >"$dir/log" 2>&1
}

# Check for aarch64 as a static library, from Debian's archive: a folder for pkg-config.
check_for_aarch64() {
	root=$builds/aarch64-root lists=$builds/aarch64-apt
	[ ! -e "$root/usr/lib/aarch64-linux-gnu/libcheck_pic.a" ] || return 0
	mkdir -p "$root" "$lists/lists/partial" "$lists/archives/partial"
	asked="-o APT::Architecture=arm64 -o APT::Architectures=arm64 -o Dir::State=$lists -o Dir::Cache=$lists -o Dir::State::status=/dev/null"
	(cd "$lists" && apt-get $asked update && apt-get $asked download check libsubunit-dev) >"$dir/log" 2>&1 || return 1
	for package in "$lists"/*.deb; do dpkg -x "$package" "$root"; done
	rm -f "$root"/usr/lib/aarch64-linux-gnu/*.so # qemu would look for it on this machine
	[ -e "$root/usr/lib/aarch64-linux-gnu/libcheck_pic.a" ]
}

# programs_of BUILD quick|slow: the tests that are programs, by their names; scripts would start what they test without qemu, and so do
# some of table and to_c, which compile programs and run them.
programs_of() {
	meson introspect --tests "$1" | python3 -c 'import collections, json, os, sys
tests = json.load(sys.stdin)
starts = collections.defaultdict(set)
for t in tests:
    starts[t["name"]].add(t["cmd"][0].startswith(os.path.realpath(sys.argv[1]) + "/"))
for t in tests:
    suites = {s.split(":")[-1] for s in t["suite"]}
    if starts[t["name"]] == {True} and not suites & {"gpu", *sys.argv[3:]} and ("slow" in suites) == (sys.argv[2] == "slow"):
        print(t["name"])' "$@"
}

# run_tests NAME quick|slow: its tests that are programs, each with what it counted.
run_tests() {
	case $1,$2 in aarch64,slow) names=$(programs_of "$builds/$1" "$2" table to_c) ;; *) names=$(programs_of "$builds/$1" "$2") ;; esac
	said=$builds/$1/meson-logs/testlog.txt
	rm -f "$said"
	[ -n "$names" ] || { bad "$1: no program of the tests is known"; return; }
	case $1 in aarch64) emulated=CPTX_TEST_QEMU=1 ;; *) emulated= ;; esac # whose memory is not that of the program
	env $emulated nice meson test -C "$builds/$1" --no-rebuild $names >"$dir/log" 2>&1
	[ -e "$said" ] || { bad "$1: meson test ran nothing"; return; }
	awk -v listed="$(echo "$names" | wc -w)" -v figures="$dir/sum" -f tests/sum.awk "$said"
	read -r p f s <"$dir/sum"
	rm "$dir/sum"
	passed=$((passed + p)) failed=$((failed + f)) skipped=$((skipped + s))
}

aarch64() { test_aarch64 quick; }
aarch64_slow() { test_aarch64 slow; }
test_aarch64() { # quick|slow
	qemu=$(command -v qemu-aarch64 || command -v qemu-aarch64-static) || { skip "aarch64: there is no qemu-aarch64 (qemu-user)"; return; }
	have aarch64-linux-gnu-gcc || { skip "aarch64: there is no aarch64-linux-gnu-gcc (gcc-aarch64-linux-gnu)"; return; }
	cat >"$builds/aarch64.ini" <<-END
		[binaries]
		c = [$cached'aarch64-linux-gnu-gcc']
		exe_wrapper = ['$qemu', '-L', '/usr/aarch64-linux-gnu']
		[properties]
		sys_root = '$builds/aarch64-root'
		pkg_config_libdir = '$builds/aarch64-root/usr/lib/aarch64-linux-gnu/pkgconfig'
	END
	tests=enabled
	check_for_aarch64 || { tests=disabled; skip "aarch64: the tests, since Debian's Check for arm64 cannot be had"; }
	[ -e "$builds/aarch64/build.ninja" ] || meson setup "$builds/aarch64" --buildtype=release -Doptimization=1 -Ddefault_library=shared -Dinspect=disabled -Dtests=$tests \
		--cross-file packaging/cross/aarch64-linux-gnu.ini --cross-file "$builds/aarch64.ini" >"$dir/log" 2>&1 || { bad "aarch64: meson setup"; return; }
	try "aarch64: ninja cptx" nice ninja -C "$builds/aarch64" cptx || return
	uses aarch64 "$qemu" -L /usr/aarch64-linux-gnu -E LD_LIBRARY_PATH="$builds/aarch64" "$builds/aarch64/cptx"
	[ $tests = enabled ] || return
	try "aarch64: ninja" nice ninja -C "$builds/aarch64" || return
	run_tests aarch64 "$1"
}

# refused NAME REASON: meson does not set it up, and says why
refused() {
	rm -rf "${builds:?}/$1"
	if meson setup "$builds/$1" --cross-file "$builds/$1.ini" >"$dir/log" 2>&1; then bad "$1: it is set up"; else ok; fi
	if grep -q "ERROR: .*$2" "$dir/log"; then ok; else bad "$1: the refusal does not say why"; fi
}

# Check, from Debian's source in $builds/check-source: check_from_source NAME COMPILER [CMAKE-ARG...] installs it in $builds/NAME-check.
check_from_source() {
	root=$builds/$1-check from=$builds/check-source compiler=$2
	shift 2
	[ ! -e "$root/lib/libcheck_pic.a" ] || return 0
	have cmake || return 1
	if ! ls -d "$from"/check-*/ >"$dir/log" 2>&1; then
		rm -rf "$from" && mkdir -p "$from/lists/partial" "$from/archives/partial" || return 1
		echo 'deb-src http://deb.debian.org/debian bookworm main' >"$from/sources.list"
		asked="-o Dir::Etc::SourceList=$from/sources.list -o Dir::Etc::SourceParts=/dev/null -o Dir::State=$from -o Dir::Cache=$from -o Dir::State::status=/var/lib/dpkg/status"
		(cd "$from" && apt-get $asked update && apt-get $asked source check) >"$dir/log" 2>&1 || return 1
	fi
	# shellcheck disable=SC2211 # of cmake, not a command
	(cmake -S "$from"/check-*/ -B "$root-build" -DCMAKE_C_COMPILER="$compiler" -DCMAKE_BUILD_TYPE=Release -DCHECK_ENABLE_TESTS=OFF -DCHECK_ENABLE_SUBUNIT=OFF \
		-DHAVE_SUBUNIT=0 "-DCMAKE_INSTALL_PREFIX=$root" "$@" && nice cmake --build "$root-build" -t check install) >"$dir/log" 2>&1 || return 1
	rm -f "$root"/lib/libcheck.so*
	cp "$root/lib/libcheck.a" "$root/lib/libcheck_pic.a" # what Debian's check.pc names
}

# Of the tests those whose program is one file, libcptx and the parts that are compiled below, and which start no processes.
windows_tests='emu/async emu/atom emu/core emu/launches emu/link emu/mbarrier emu/orders emu/scalar emu/sync emu/stall emu/system emu/texture emu/race
	emu/undefined emu/matrix emu/mma emu/wgmma kit/epilogue_rows kit/made kit/maps kit/mma_errors kit/operand_errors kit/values layout/desc layout/frag
	layout/lanes layout/run layout/tensor_map layout/tile kernels/gemm_auto kernels/gemm_out kernels/gemm_group'
windows() {
	have x86_64-w64-mingw32-gcc-posix || { skip "windows: there is no x86_64-w64-mingw32-gcc-posix (gcc-mingw-w64-x86-64-posix)"; return; }
	win=$builds/windows
	printf "[binaries]\nc = [%s'x86_64-w64-mingw32-gcc-posix']\n" "$cached" >"$builds/windows.ini"
	[ -e "$win/build.ninja" ] || try "windows: meson setup" meson setup "$win" --buildtype=release -Doptimization=1 \
		--cross-file packaging/cross/x86_64-w64-mingw32.ini --cross-file "$builds/windows.ini" || return
	try "windows: ninja" nice ninja -C "$win" || return
	have wine || { skip "windows: what is built is not run, since there is no wine"; return; }
	export WINEPREFIX="$builds/wine" WINEDEBUG=-all CPTX_DEVICE=emu:sm_90a
	check_from_source windows x86_64-w64-mingw32-gcc-posix -DCMAKE_SYSTEM_NAME=Windows || skip "windows: the tests, since Check cannot be built (its source from Debian, CMake)"
	by="${cached:+ccache }x86_64-w64-mingw32-gcc-posix -std=c11 -O1 -w -D__USE_MINGW_ANSI_STDIO=1 -I$win/include -Iinclude -Iexamples -Isrc -Isrc/windows -Itests -Itools/cptx -I$builds/windows-check/include"
	with="$win/libcptx.a -static -fstack-protector -lm -pthread"
	for example in saxpy embed/embed; do
		try "windows: $example, built" $by "examples/$example.c" -o "$win/example.exe" $with
		try "windows: $example, run" wine "$win/example.exe"
		if grep -q ': 0 of 1000 .*wrong\|; 0 of 1000 .*wrong' "$dir/log"; then ok; else bad "windows: $example printed something else"; fi
	done
	try "windows: with the DLL" $by examples/saxpy.c -o "$win/saxpy.exe" "$win/libcptx.dll.a"
	try "windows: with the DLL, run" wine "$win/saxpy.exe"
	[ -e "$builds/windows-check/lib/libcheck.a" ] || return
	for part in tests/emu/trial tests/emu/bulk tests/emu/tensor tests/emu/tensor_run tests/emu/matrix_forms tests/emu/move_forms tests/emu/wgmma_forms tests/emu/wmma_forms \
		tests/kernels/gemm_draw tests/kernels/gemm_tests tests/kernels/gemm_trial tests/kernels/gemm_trial_out tools/cptx/reference/*.c; do
		part=${part%.c}
		try "windows: $part.c" $by -DONE_OF_TRIALS=4 -c "$part.c" -o "$win/part_${part##*/}.o" || return
	done
	for test in $windows_tests; do
		name=${test%/*}_${test#*/}
		try "windows: $name, built" $by "tests/${test%/*}/test_${test#*/}.c" "$win"/part_*.o "$builds/windows-check/lib/libcheck.a" -o "$win/$name.exe" $with || continue
		nice wine "$win/$name.exe" >"$dir/log" 2>&1
		count_of "windows: $name"
	done
	unset WINEPREFIX WINEDEBUG CPTX_DEVICE
}

site() {
	have doxygen || { skip "site: doxygen is not installed"; return; }
	[ -e build/build.ninja ] || { skip "site: there is no build/"; return; }
	try "site: meson compile" nice meson compile -C build site
	tail -n 1 "$dir/log"
}

m32() {
	echo 'int main(void) { return sizeof(long) != 4; }' >"$dir/m32.c"
	gcc -m32 "$dir/m32.c" -o "$dir/m32" 2>"$dir/log" || { skip "m32: gcc -m32 does not link (gcc-12-multilib, libc6-dev-i386)"; return; }
	cross m32 gcc linux x86 i686 "'-m32'"
	sed -i "s/^ar = .*/ar = 'ar'/; s/^strip = .*/strip = 'strip'/" "$builds/m32.ini"
	refused m32 'cptx needs a host of 64 bits: '
}

musl() {
	have musl-gcc || { skip "musl: musl-gcc is not installed (musl-tools)"; return; }
	tests=enabled
	check_from_source musl musl-gcc || { tests=disabled; skip "musl: the tests, since Check cannot be built by musl-gcc (its source from Debian, CMake)"; }
	[ -e "$builds/musl/build.ninja" ] || try "musl: meson setup" env CC="${cached:+ccache }musl-gcc" PKG_CONFIG_LIBDIR="$builds/musl-check/lib/pkgconfig" \
		meson setup "$builds/musl" --buildtype=release -Doptimization=1 -Ddefault_library=static -Dinspect=disabled -Dtests=$tests || return
	try "musl: ninja" nice ninja -C "$builds/musl" || return
	uses musl "$builds/musl/cptx"
	[ $tests = disabled ] || run_tests musl quick
}

all='wheel debian conan wrap fetch container bare aarch64 windows musl site m32'
[ $# -gt 0 ] || set -- $all
for step; do
	case " $all frameworks aarch64_slow " in
	*" $step "*) $step ;;
	*) echo "platforms: there is no step '$step'" >&2; exit 2 ;;
	esac
done
finish
