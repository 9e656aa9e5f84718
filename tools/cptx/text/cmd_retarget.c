/* SPDX-License-Identifier: MIT */
/* cptx retarget: PTX of others for the driver and device that are there, or which line prevents it. */
#include "cli/cli.h"

#include <cptx/device.h>
#include <cptx/retarget.h>

#include <getopt.h>
#include <stdlib.h>
#include <string.h>

enum { OPTION_DRIVER, OPTION_DEVICE, OPTION_ARCH, OPTION_OUTPUT, OPTION_WHY, OPTIONS };
static const cli_option options[OPTIONS] = {
	[OPTION_DRIVER] = { "driver", 'D', "MAJOR.MINOR", "CUDA version of the driver; default: that of --device, else any",
	                    "11.8 12.0 12.4 12.8 13.0" },
	[OPTION_DEVICE] = { "device", 'd', "NAME", "for this machine's device and driver", "cuda:0" },
	[OPTION_ARCH] = { "arch", 'a', "NAME", "this target and no other", "@arch" },
	[OPTION_OUTPUT] = { "output", 'o', "FILE", "write the PTX there; default: standard output", "@file" },
	[OPTION_WHY] = { "why", 'w', NULL, "which targets were tried, and why each was taken or not, on standard error", NULL },
};

enum { WHY = 16384 };

/* "12.8" as 12080. */
static bool read_driver(const char *text, uint32_t *driver)
{
	unsigned major, minor;
	char end;

	if (sscanf(text, "%u.%u%c", &major, &minor, &end) != 2 || major < 1 || major > 99 || minor > 99)
		return false;
	*driver = major * 1000 + minor * 10;
	return true;
}

/* What this machine's device says. */
static int ask_device(const cli_command *cmd, const char *name, cptx_retarget_opt *o)
{
	cptx_error err = { .code = CPTX_OK };
	cptx_device *dev = cptx_device_open(name, &err);

	if (!dev)
		return cli_refused(cmd, &err);
	const cptx_device_info *i = cptx_device_get_info(dev);
	o->compute_capability = i->compute_capability;
	o->driver = o->driver ? o->driver : i->driver;
	cptx_device_close(dev);
	return EXIT_OK;
}

static int retarget(const cli_command *cmd, const char *path, const char *output, cptx_retarget_opt *o, bool tell)
{
	static char why[WHY];
	cptx_error err = { .code = CPTX_OK };
	size_t size;
	char *text = cli_read(cmd, path, &size);
	int status = EXIT_OK;

	if (!text)
		return EXIT_FAILED;
	o->name = !strcmp(path, "-") ? "standard input" : path;
	cptx_ptx *ptx = cptx_retarget(text, size, o, why, sizeof why, &err);
	if (tell)
		cli_put(stderr, why, strlen(why));
	if (!ptx)
		status = err.code == CPTX_E_ARG ? cli_usage(cmd, "%s", err.text) : cli_failed(cmd, "%s", err.text);
	else if (!cli_write(cmd, output ? output : "-", cptx_ptx_text(ptx), cptx_ptx_size(ptx)))
		status = EXIT_FAILED;
	cptx_ptx_destroy(ptx);
	free(text);
	return status ? status : cli_flush(cmd, EXIT_OK);
}

static int run(const cli_command *cmd, int argc, char **argv)
{
	cptx_retarget_opt o = { .driver = 0 };
	const char *value, *device = NULL, *output = NULL;
	bool why = false;
	int status = EXIT_OK;

	for (int option; (option = cli_next(cmd, argc, argv, &value, &status)) != -1;) {
		switch (option) {
		case -2: return status;
		case OPTION_DRIVER:
			if (!read_driver(value, &o.driver))
				return cli_bad_value(cmd, OPTION_DRIVER, value, "expected a version of CUDA, as in 12.8");
			break;
		case OPTION_DEVICE: device = value; break;
		case OPTION_ARCH: o.target = value; break;
		case OPTION_OUTPUT: output = value; break;
		case OPTION_WHY: why = true; break;
		default: break;
		}
	}
	if (optind + 1 != argc)
		return cli_usage(cmd, optind < argc ? "one file at a time: %s" : "name a file, or - for standard input",
		                 optind < argc ? argv[optind + 1] : "");
	if (o.target && !cli_target(cmd, o.target))
		return EXIT_USAGE;
	if (output && cli_clash(cmd, "the PTX", output, argv[optind]))
		return EXIT_USAGE;
	if (device && (status = ask_device(cmd, device, &o)))
		return status;
	return retarget(cmd, argv[optind], output, &o, why);
}

const cli_command cmd_retarget = {
	.name = "retarget",
	.arguments = "[OPTION]... FILE",
	.about = "Prints PTX for an older driver or another device, or says which line prevents it.",
	.details = "Only .version and .target change: to the lowest version that the text needs, and to the first of its own\n"
			   "target, sm_NNa, sm_NNf, sm_NN of the device and those of older ones that has all that the text uses.\n\n"
			   "  cptx retarget kernel.ptx --driver 12.8 -o older.ptx\n"
			   "  cptx retarget kernel.ptx --device cuda:0 --why\n"
			   "  cptx retarget kernel.ptx --arch sm_80\n",
	.options = options,
	.noption = OPTIONS,
	.operand_choices = "@file",
	.run = run,
};
