/* SPDX-License-Identifier: MIT */
#include "../test.h"

#include <cptx/roles.h>

int main(void)
{
	Suite *s = suite_create("kit");

	return test_main("kit roles", s);
}
