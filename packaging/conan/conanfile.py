# SPDX-License-Identifier: MIT
import os
import re

from conan import ConanFile
from conan.tools.files import copy
from conan.tools.layout import basic_layout
from conan.tools.meson import Meson, MesonToolchain

TOP = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")


class Cptx(ConanFile):
    name = "cptx"
    license = "MIT"
    description = "Builds, checks, prints and runs PTX kernels, one instruction per call"
    settings = "os", "arch", "compiler", "build_type"
    options = {"shared": [True, False], "fPIC": [True, False]}
    default_options = {"shared": False, "fPIC": True}

    def set_version(self):
        with open(os.path.join(TOP, "meson.build")) as f:
            self.version = re.search(r"version: '([\d.]+)'", f.read())[1]

    def export_sources(self):
        for name in ("meson.build", "meson_options.txt", "LICENSE"):
            copy(self, name, TOP, self.export_sources_folder)
        for folder in ("cmake", "docs", "include", "python", "src", "tests", "third_party", "tools"):
            copy(self, folder + "/*", TOP, self.export_sources_folder)

    def layout(self):
        basic_layout(self)

    def generate(self):
        meson = MesonToolchain(self)
        meson.project_options.update({"tests": "disabled", "cli": "disabled", "inspect": "disabled"})
        meson.generate()

    def build(self):
        meson = Meson(self)
        meson.configure()
        meson.build()

    def package(self):
        copy(self, "LICENSE", self.source_folder, os.path.join(self.package_folder, "licenses"))
        Meson(self).install()

    def package_info(self):
        self.cpp_info.libs = ["cptx"]
        if self.settings.os in ("Linux", "FreeBSD"):
            self.cpp_info.system_libs = ["dl", "m", "pthread"]
