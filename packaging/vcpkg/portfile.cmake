# SPDX-License-Identifier: MIT
# The port lies in the source tree that it builds: packaging/vcpkg.
get_filename_component(SOURCE_PATH "${CURRENT_PORT_DIR}/../.." ABSOLUTE)
if("cubin" IN_LIST FEATURES)
  set(INSPECT enabled)
else()
  set(INSPECT disabled)
endif()
vcpkg_configure_meson(SOURCE_PATH "${SOURCE_PATH}"
  OPTIONS -Dtests=disabled -Dcli=disabled -Dinspect=${INSPECT})
vcpkg_install_meson()
vcpkg_fixup_pkgconfig()
vcpkg_cmake_config_fixup(PACKAGE_NAME cptx CONFIG_PATH lib/cmake/cptx)
# It lies one folder less deep now than where it was installed.
vcpkg_replace_string("${CURRENT_PACKAGES_DIR}/share/cptx/cptxConfig.cmake" "/../../.." "/../..")
file(REMOVE_RECURSE "${CURRENT_PACKAGES_DIR}/debug/include" "${CURRENT_PACKAGES_DIR}/debug/share")
vcpkg_install_copyright(FILE_LIST "${SOURCE_PATH}/LICENSE")
