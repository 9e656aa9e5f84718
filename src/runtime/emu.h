/* SPDX-License-Identifier: MIT */
/* What the files of the emulator's device share (emu.c). */
#ifndef CPTX_RUNTIME_EMU_H
#define CPTX_RUNTIME_EMU_H

#include "emu/core/machine.h"
#include "runtime/runtime.h"

emu_machine *emulator_of(const cptx_device *dev); /* NULL: it is no emulator */
void emulator_lock(const cptx_device *dev);
void emulator_unlock(const cptx_device *dev);

#endif
