/* SPDX-License-Identifier: MIT */
/* Which function of the driver a name stands for (forms.def). */
#ifndef CPTX_SANITIZE_FORMS_H
#define CPTX_SANITIZE_FORMS_H

enum { CUDA_VERSION = 13000 }; /* that the libraries here are of */

/* The function that a program means which asks for the name in a version of CUDA, 12030 for example, as it is exported. */
const char *san_form(const char *name, unsigned version);

#endif
