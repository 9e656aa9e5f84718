// OpenCL C: local memory, barriers, vectors and swizzles.
// archs: 70 75

__constant float weights[3] = {0.25f, 0.5f, 0.25f};

__kernel void blur(__global const float4 *in, __global float4 *out, int n)
{
	__local float4 line[128];
	int i = __nvvm_read_ptx_sreg_ctaid_x() * __nvvm_read_ptx_sreg_ntid_x() + __nvvm_read_ptx_sreg_tid_x();
	int t = __nvvm_read_ptx_sreg_tid_x();
	line[t] = in[i];
	__syncthreads();
	if (i > 0 && i < n - 1)
		out[i] = line[t - 1] * weights[0] + line[t].wzyx * weights[1] + line[t + 1] * weights[2];
}

__kernel __attribute__((reqd_work_group_size(64, 1, 1))) void convert(__global const uchar4 *in, __global short4 *out)
{
	int i = __nvvm_read_ptx_sreg_tid_x();
	__local int shared[64];
	shared[i] = in[i].x;
	__syncthreads();
	out[i] = __builtin_convertvector(in[i], short4) + (short)shared[63 - i];
}
