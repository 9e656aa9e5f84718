#include "kernels/gemm_sm90.h"
