// A small graph on the whole way: passes, plan, emitted kernels, optimised code. One step per fusion group, each an internal function that the entry calls with a
// barrier behind it; the GEMM's driver, its epilogue hook and the row kernel's mathematics are inlined, multiply-adds are instructions, no libm is left.
// RUN: tare-opt %s --tare-clean --tare-fused --tare-planned -o %t.mlir
// RUN: tare-llc %t.mlir --emit mlir | FileCheck %s --check-prefix=EMIT
// RUN: tare-llc %t.mlir --level x86-64-v4 --emit ir | FileCheck %s --check-prefix=CODE
// RUN: tare-llc %t.mlir --level x86-64-v4 --emit ir | FileCheck %s --check-prefix=CALLS
// RUN: tare-llc %t.mlir --level x86-64-v3 --emit ir | FileCheck %s --check-prefix=CALLS
// RUN: tare-llc %t.mlir --level x86-64-v3 --emit elf -o %t.elf && llvm-objdump -d --no-show-raw-insn %t.elf | FileCheck %s --check-prefix=ASM

// EMIT: llvm.func internal @gemm_f32_24x40_add_gelu_erf(
// EMIT: llvm.call @tare_gemm_f32
// EMIT: llvm.func internal @gemm_f32_40x24_add(
// EMIT: llvm.func internal @row_f32_24_layer_norm(
// EMIT: llvm.func @tare_entry(
// EMIT: llvm.call @gemm_f32_24x40_add_gelu_erf
// EMIT: llvm.call @gemm_f32_40x24_add(
// EMIT: llvm.call @row_f32_24_layer_norm

// CODE: define {{.*}}i64 @tare_entry(
// CODE: <16 x float> @llvm.fma.v16f32

// What is called at all: tiles, barriers, stamps; never a driver, a hook, or a function of libm.
// CALLS: define {{.*}}i64 @tare_entry(
// CALLS-NOT: call {{[^@]*}}@{{(fma|fmaf|erf|erff|exp|expf|sqrt|sqrtf|tare_gemm_f32|tare_erff|tare_expf|gemm_f32_24x40_add_gelu_erf\.epilogue)\(}}

// ASM: <tare_entry>:
// ASM-NOT: call{{.*}}<fmaf
// ASM: vfmadd231ps {{.*}}%ymm

!x = tensor<?x24xf32, #graph.dims<["n", 24]>>
!h = tensor<?x40xf32, #graph.dims<["n", 40]>>
func.func @main(%x: !x {graph.name = "x"}) -> (!x {graph.name = "y"}) {
  %w1 = graph.constant "w1" dense<0.5> : tensor<24x40xf32> -> tensor<24x40xf32>
  %b1 = graph.constant "b1" dense<0.5> : tensor<40xf32> -> tensor<40xf32>
  %w2 = graph.constant "w2" dense<0.5> : tensor<40x24xf32> -> tensor<40x24xf32>
  %g = graph.constant "g" dense<0.5> : tensor<24xf32> -> tensor<24xf32>
  %0 = graph.matmul %x, %w1 : !x, tensor<24x40xf32> -> !h loc("/up/MatMul")
  %1 = graph.binary <add> %0, %b1 : !h, tensor<40xf32> -> !h loc("/up/Add")
  %2 = graph.unary <gelu_erf> %1 : !h -> !h loc("/act/Gelu")
  %3 = graph.matmul %2, %w2 : !h, tensor<40x24xf32> -> !x loc("/down/MatMul")
  %4 = graph.binary <add> %3, %x : !x, !x -> !x loc("/Add")
  %5 = graph.layer_norm %4, %g {axis = 1 : i64, epsilon = 1.0e-5 : f64} : (!x, tensor<24xf32>) -> !x loc("/norm/LayerNormalization")
  return %5 : !x
}
