#!/bin/sh
# SPDX-License-Identifier: MIT
# install.sh SOURCE BUILD PREFIX LIBDIR CC: installs into a folder and builds programs outside the source tree with what is there.
# The last line is "install: N passed, N failed, N skipped".
set -u
source=$1 build=$2 prefix=$3 lib=$3/$4 cc=$5
suite=install
. "$source/tests/embed/common.sh"
root=$dir/root
have meson || { skip "meson is not on PATH"; finish; }
try "the installation" env DESTDIR="$root" meson install -C "$build" --no-rebuild --quiet
program=$dir/outside/embed.c
mkdir "$dir/outside"
cp "$source/examples/embed/embed.c" "$program"

# ---- the records that ship with the library, in a tree that was moved ----
if [ -e "$root$prefix/bin/cptx" ] && [ -e "$root$lib/libcptx.so" ]; then
	try "cptx tune --list" env -u CPTX_TUNE_PATH CPTX_TUNE_DIR="$dir/none" LD_LIBRARY_PATH="$root$lib" "$root$prefix/bin/cptx" tune --list
	if [ "$(grep -c ' SMs, ' "$dir/log")" -gt 10 ]; then ok; else bad "records that ship with the library are not found"; fi
else
	skip "there is no command with a shared library"
fi

# ---- pkg-config ----
export PKG_CONFIG_PATH="$root$lib/pkgconfig" PKG_CONFIG_SYSROOT_DIR="$root"
if have pkg-config; then
	flags=$(pkg-config --cflags cptx)
	# shellcheck disable=SC2046,SC2086 # words
	if [ -e "$root$lib/libcptx.so" ]; then
		try "shared, pkg-config" $cc -std=c11 -Wall -Wextra -Werror $flags "$program" -o "$dir/shared" $(pkg-config --libs cptx) -Wl,-rpath,"$root$lib"
		run "$dir/shared"
	else
		skip "there is no shared library"
	fi
	# shellcheck disable=SC2046,SC2086 # words
	if [ -e "$root$lib/libcptx.a" ]; then
		try "static, pkg-config" $cc -std=c11 $flags "$program" -o "$dir/static" \
			$(pkg-config --static --libs cptx | sed 's/-lcptx/-l:libcptx.a/')
		run "$dir/static"
	else
		skip "there is no static library"
	fi
else
	skip "pkg-config is not installed"
fi

# ---- the reader of cubins ----
cat >"$dir/outside/cubin.c" <<'END'
#include <cptx/cubin.h>
#include <stdio.h>
int main(void)
{
	cptx_error err = { 0 };
	cptx_cubin_view_destroy(cptx_cubin_view_of("none", 4, "not.cubin", &err));
	puts(err.text);
	return 0;
}
END
cat >"$dir/outside/CMakeLists.txt" <<'END'
cmake_minimum_required(VERSION 3.13)
project(cubin C)
find_package(cptx 0.1 REQUIRED COMPONENTS cubin)
add_executable(cubin cubin.c)
target_link_libraries(cubin cptx::cubin)
END
reads() { try "$1" "$1" && if grep -q '^not.cubin: ' "$dir/log"; then ok; else bad "$1 printed something else"; fi; }
if [ ! -e "$root$prefix/include/cptx/cubin.h" ]; then
	skip "there is no libcptx_cubin: it needs libelf"
else
	# shellcheck disable=SC2046,SC2086 # words
	if have pkg-config && [ -e "$root$lib/libcptx_cubin.so" ]; then
		try "cubin, pkg-config" $cc -std=c11 $(pkg-config --cflags cptx_cubin) "$dir/outside/cubin.c" -o "$dir/cubin" \
			$(pkg-config --libs cptx_cubin) -Wl,-rpath,"$root$lib"
		reads "$dir/cubin"
	fi
	for shared in ON OFF; do
		if [ $shared = ON ]; then ending=so; else ending=a; fi
		if ! have cmake || [ ! -e "$root$lib/libcptx_cubin.$ending" ]; then continue; fi
		try "cubin, cmake" cmake -S "$dir/outside" -B "$dir/cubin-$shared" -DCMAKE_C_COMPILER="${cc##* }" \
			-DCMAKE_PREFIX_PATH="$root$prefix" -DBUILD_SHARED_LIBS=$shared
		try "cubin, cmake --build" cmake --build "$dir/cubin-$shared"
		reads "$dir/cubin-$shared/cubin"
	done
fi

# ---- CMake: examples/embed/cmake, both libraries, and versions that do not fit ----
cmake_build() { # NAME OPTION...
	name=$1
	shift
	try "cmake, $name" cmake -S "$source/examples/embed/cmake" -B "$dir/$name" -DCMAKE_C_COMPILER="${cc##* }" \
		-DCMAKE_PREFIX_PATH="$root$prefix" "$@"
	try "cmake --build, $name" cmake --build "$dir/$name"
	run "$dir/$name/embed"
}
if have cmake; then
	[ ! -e "$root$lib/libcptx.so" ] || cmake_build cmake-shared
	[ ! -e "$root$lib/libcptx.a" ] || cmake_build cmake-static -DBUILD_SHARED_LIBS=OFF
	if [ -x "$root$prefix/bin/cptx" ]; then # a bundle that is linked in, with its loader
		mkdir "$dir/serve"
		echo 'small gemm 64x64x64' >"$dir/serve/kernels.txt"
		cat >"$dir/serve/serve.c" <<'END'
#include <cptx_load.h>
#include <stdio.h>
extern const uint64_t kernels[];
extern const size_t kernels_size;
int main(void)
{
	char err[CPTX_LOAD_ERROR] = "";
	cptx_load *b = cptx_load_memory(kernels, kernels_size, err);
	printf("%u kernel: %s%s\n", cptx_load_count(b), b ? cptx_load_about(b, 0) : "", err);
	cptx_load_close(b);
	return 0;
}
END
		cat >"$dir/serve/CMakeLists.txt" <<'END'
cmake_minimum_required(VERSION 3.13)
project(serve C)
find_package(cptx 0.1 REQUIRED)
cptx_add_bundle(kernels kernels.txt TARGETS sm_80 sm_90a MACHINE_CODE none C)
cptx_add_bundle(file kernels.txt TARGETS sm_80 MACHINE_CODE none)
add_executable(serve serve.c)
target_link_libraries(serve PRIVATE kernels)
END
		try "bundle, cmake" cmake -S "$dir/serve" -B "$dir/serving" -DCMAKE_C_COMPILER="${cc##* }" \
			-DCMAKE_PREFIX_PATH="$root$prefix" -DCMAKE_C_FLAGS="-D_DEFAULT_SOURCE"
		try "bundle, cmake --build" env LD_LIBRARY_PATH="$root$lib" CPTX_CACHE=0 cmake --build "$dir/serving"
		try "$dir/serving/serve" "$dir/serving/serve" &&
			if grep -q '^1 kernel: gemm 64x64x64x1, ' "$dir/log"; then ok; else bad "serve printed something else"; fi
		if [ -s "$dir/serving/file.bundle" ]; then ok; else bad "there is no file.bundle"; fi
	fi
	cat >"$dir/fits.cmake" <<'END'
string(REPLACE "." ";" parts "${PACKAGE_FIND_VERSION}")
list(GET parts 0 PACKAGE_FIND_VERSION_MAJOR)
list(LENGTH parts PACKAGE_FIND_VERSION_COUNT)
include(${FILE})
message(STATUS "fits: ${PACKAGE_VERSION_COMPATIBLE}")
END
	for version in 0.1=TRUE 0.1.0=TRUE 0=TRUE 0.2=FALSE 0.0.9=FALSE 1.0=FALSE 0.1.9=FALSE; do
		try "find_package(cptx ${version%=*})" cmake -DFILE="$root$lib/cmake/cptx/cptxConfigVersion.cmake" \
			-DPACKAGE_FIND_VERSION="${version%=*}" -P "$dir/fits.cmake"
		if grep -q "fits: ${version#*=}" "$dir/log"; then ok; else bad "it should be ${version#*=}"; fi
	done
else
	skip "cmake is not installed"
fi

# ---- a plugin with the static library in it exports its own names only ----
cat >"$dir/outside/plugin.c" <<'END'
#include <cptx/gemm.h>
int plugin_builds(void)
{
	cptx_error err = { 0 };
	cptx_gemm_opt o = cptx_gemm_default(CPTX_GEMM_SYNC, NULL);
	cptx_module *m = cptx_module_new(NULL);
	int built = cptx_gemm_build(m, &o, &err) && cptx_device_open("emu:sm_80", &err);
	cptx_module_destroy(m);
	return built;
}
END
if ! have nm || [ ! -e "$root$lib/libcptx.a" ]; then
	skip "there is no nm, or no static library"
else
	for archive in "$root$lib/libcptx.a" "$build/libcptx.a"; do
		[ -e "$archive" ] || continue
		# shellcheck disable=SC2086 # words
		try "a plugin" $cc -std=c11 -shared -fPIC -I"$root$prefix/include" "$dir/outside/plugin.c" "$archive" -o "$dir/plugin.so" \
			-lm -ldl -lpthread -Wl,--no-undefined
		nm -D --defined-only "$dir/plugin.so" | awk '{ print $NF }' | sort >"$dir/log"
		if [ "$(cat "$dir/log")" = plugin_builds ]; then ok; else bad "a plugin of $archive exports more than plugin_builds"; fi
	done
	echo 'int plugin_builds(void); int main(void) { return plugin_builds() ? 0 : 1; }' >"$dir/outside/host.c"
	# shellcheck disable=SC2086 # words
	try "a host of it" $cc "$dir/outside/host.c" "$dir/plugin.so" -o "$dir/host" -Wl,-rpath,"$dir"
	try "the plugin in a host" "$dir/host"
fi

# ---- what is installed beside ----
if grep -q 'MIT License' "$root$prefix/share/doc/cptx/LICENSE"; then ok; else bad "the licence is not installed"; fi
for file in include/cptx/insn.h include/cptx/insn_fast.h include/cptx/findings.def include/cptx/cplusplus.h; do
	if [ -s "$root$prefix/$file" ]; then ok; else bad "$file is not installed"; fi
done
finish
