/* Prints where the fields of those structs lie that python/cptx/_abi.py declares once more. */
#include <cptx/dlpack.h>
#include <dlpack/dlpack.h>

#include <stdio.h>

#define SIZE(name, type) printf(#name " %zu\n", sizeof(type))
#define AT(name, type, field) printf(#name "." #field " %zu\n", offsetof(type, field))

int main(void)
{
	SIZE(ErrorInfo, cptx_error);
	AT(ErrorInfo, cptx_error, code);
	AT(ErrorInfo, cptx_error, text);
	SIZE(Site, cptx_site);
	SIZE(EmitOpt, cptx_emit_opt);
	SIZE(LoadOpt, cptx_load_opt);
	AT(LoadOpt, cptx_load_opt, target);
	AT(LoadOpt, cptx_load_opt, emit);
	AT(LoadOpt, cptx_load_opt, max_regs);
	AT(LoadOpt, cptx_load_opt, verbose);
	AT(LoadOpt, cptx_load_opt, line_info);
	AT(LoadOpt, cptx_load_opt, debug);
	AT(LoadOpt, cptx_load_opt, name);
	AT(LoadOpt, cptx_load_opt, compiler);
	AT(LoadOpt, cptx_load_opt, cache);
	AT(DeviceInfo, cptx_device_info, name);
	AT(DeviceInfo, cptx_device_info, compute_capability);
	AT(DeviceInfo, cptx_device_info, ptx);
	AT(DeviceInfo, cptx_device_info, driver);
	AT(DeviceInfo, cptx_device_info, target);
	SIZE(LaunchOpt, cptx_tensor_launch_opt);
	AT(LaunchOpt, cptx_tensor_launch_opt, signature);
	AT(LaunchOpt, cptx_tensor_launch_opt, grid);
	AT(LaunchOpt, cptx_tensor_launch_opt, block);
	AT(LaunchOpt, cptx_tensor_launch_opt, cluster);
	AT(LaunchOpt, cptx_tensor_launch_opt, dyn_smem);
	AT(LaunchOpt, cptx_tensor_launch_opt, overlap);
	SIZE(ArgInfo, cptx_tensor_arg_info);
	AT(ArgInfo, cptx_tensor_arg_info, name);
	AT(ArgInfo, cptx_tensor_arg_info, type);
	AT(ArgInfo, cptx_tensor_arg_info, is_tensor);
	AT(ArgInfo, cptx_tensor_arg_info, is_const);
	AT(ArgInfo, cptx_tensor_arg_info, is_optional);
	SIZE(Arg, cptx_tensor_arg);
	AT(Arg, cptx_tensor_arg, kind);
	AT(Arg, cptx_tensor_arg, u);
	AT(Arg, cptx_tensor_arg, api);
	SIZE(TensorOpt, cptx_tensor_opt);
	AT(TensorOpt, cptx_tensor_opt, type);
	AT(TensorOpt, cptx_tensor_opt, rank);
	AT(TensorOpt, cptx_tensor_opt, shape);
	AT(TensorOpt, cptx_tensor_opt, strides);
	AT(TensorOpt, cptx_tensor_opt, ptr);
	AT(TensorOpt, cptx_tensor_opt, read_only);
	AT(TensorOpt, cptx_tensor_opt, release);
	AT(TensorOpt, cptx_tensor_opt, user);
	SIZE(DLTensor, DLTensor);
	AT(DLTensor, DLTensor, data);
	AT(DLTensor, DLTensor, ndim);
	AT(DLTensor, DLTensor, shape);
	AT(DLTensor, DLTensor, strides);
	AT(DLTensor, DLTensor, byte_offset);
	SIZE(ManagedTensorVersioned, DLManagedTensorVersioned);
	AT(ManagedTensorVersioned, DLManagedTensorVersioned, manager_ctx);
	AT(ManagedTensorVersioned, DLManagedTensorVersioned, deleter);
	AT(ManagedTensorVersioned, DLManagedTensorVersioned, flags);
	AT(ManagedTensorVersioned, DLManagedTensorVersioned, dl_tensor);
	printf("NONE %d\nDL %d\nMANAGED %d\nVERSIONED %d\nOBJECT %d\nINT %d\nUINT %d\nFLOAT %d\nSTREAM_OF_FRAMEWORK %td\n",
	       CPTX_TENSOR_NONE, CPTX_TENSOR_DL, CPTX_TENSOR_MANAGED, CPTX_TENSOR_VERSIONED, CPTX_TENSOR_OBJECT, CPTX_TENSOR_INT,
	       CPTX_TENSOR_UINT, CPTX_TENSOR_FLOAT, (intptr_t)CPTX_TENSOR_STREAM);
	return 0;
}
