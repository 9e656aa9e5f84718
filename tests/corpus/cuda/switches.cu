/* SPDX-License-Identifier: MIT */
// Switch statements: sparse, and one that drives a small interpreter loop.
// archs: 75 80 90a 100a 120a

extern "C" __global__ void sparse(const unsigned *key, int *out)
{
	int r;
	switch (key[threadIdx.x]) {
	case 1u: r = 17; break;
	case 100u: r = out[0]; break;
	case 5000u: r = -1; break;
	case 0x80000000u: r = 99; break;
	case 0xfffffffeu: r = 3; break;
	default: r = 0;
	}
	out[threadIdx.x] = r;
}

extern "C" __global__ void interpret(const unsigned char *code, long long *stack, int length)
{
	int top = 0;
	long long acc = 0;
	for (int pc = 0; pc < length; ++pc) {
		switch (code[pc]) {
		case 0: stack[top++] = acc; break;
		case 1: acc = stack[--top]; break;
		case 2: acc += stack[--top]; break;
		case 3: acc -= stack[--top]; break;
		case 4: acc *= stack[--top]; break;
		case 5: acc = code[++pc]; break;
		case 6: if (acc == 0) pc += code[pc + 1]; else ++pc; break;
		case 7: pc -= code[pc + 1]; break;
		case 8: acc = ~acc; break;
		case 9: acc <<= code[++pc]; break;
		case 10: stack[0] = acc; goto done;
		case 11: acc ^= stack[top - 1]; break;
		default: __trap();
		}
	}
done:
	stack[1] = acc;
}
