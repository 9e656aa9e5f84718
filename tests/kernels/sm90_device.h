/* The device of the tests of the sm_90a GEMM, opened once: a GPU that has wgmma, else the emulator. */
#ifndef SM90_DEVICE_H
#define SM90_DEVICE_H

#include "../test.h"

#include <cptx/device.h>

static cptx_device *dev;

static void open_device(void)
{
	cptx_error err = { 0 };

	if (dev)
		return;
	dev = cptx_device_open("cuda", &err);
	if (dev && strcmp(cptx_device_get_info(dev)->target, "sm_90a")) {
		cptx_device_close(dev);
		dev = NULL;
	}
	if (dev && !cptx_device_make_current(dev, &err))
		ck_abort_msg("%s", err.text);
	err = (cptx_error){ 0 };
	if (!dev)
		dev = cptx_device_open("emu:sm_90a", &err);
	ck_assert_msg(dev != NULL, "%s", err.text);
}

#endif
