# SPDX-License-Identifier: MIT
# cptx by Nix: the library, the command and, with python, the module.  From the top of the source tree:
#   nix-build packaging/nix
#   result/bin/cptx gemm --device emu:sm_90a --run 128x64x64
{ pkgs ? import <nixpkgs> { }, python ? false }:

pkgs.stdenv.mkDerivation {
  pname = "cptx";
  version = "0.1.0";
  src = pkgs.lib.cleanSource ../..;
  nativeBuildInputs = [ pkgs.meson pkgs.ninja pkgs.pkg-config pkgs.python3 ];
  buildInputs = [ pkgs.elfutils ];
  mesonFlags = [ "-Dtests=disabled" ] ++ pkgs.lib.optional python "-Dpython=enabled";
  # libcuda is opened at run time, and is the system's: it is no input
  meta = {
    description = "Builds, checks, prints and runs PTX kernels, one instruction per call";
    license = pkgs.lib.licenses.mit;
    mainProgram = "cptx";
    platforms = [ "x86_64-linux" "aarch64-linux" ];
  };
}
