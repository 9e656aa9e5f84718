/* SPDX-License-Identifier: MIT */
#include "../test.h"

#include <cptx/epilogue.h>

int main(void)
{
	Suite *s = suite_create("kit");

	return test_main("kit epilogue", s);
}
