// A GEMM with an inlined hook, at the AVX-512 and the AVX2 level: the driver and the hook vanish into tare_entry, the hook's loop and the tile work at the
// level's full width with real FMA instructions, and nothing is called that the code section does not hold.
// RUN: tare-llc %s --level x86-64-v4 --emit ir | FileCheck %s --check-prefix=WIDE
// RUN: tare-llc %s --level x86-64-v3 --emit ir | FileCheck %s --check-prefix=NARROW
// RUN: tare-llc %s --level x86-64-v4 --emit elf -o %t.elf && llvm-objdump -d --no-show-raw-insn %t.elf | FileCheck %s --check-prefix=ASM
// RUN: tare-llc %s --level avx512-bf16 --emit elf -o %t.elf && llvm-readelf -S -s -r %t.elf | FileCheck %s --check-prefix=ELF

// WIDE-NOT: call {{.*}}@{{(fmaf|fma|tare_gemm_f32|tare_tanhf|epilogue)\(}}
// WIDE: define {{.*}}@tare_entry(
// WIDE-NOT: call {{.*}}@{{(fmaf|fma|tare_gemm_f32|tare_tanhf|epilogue)\(}}
// WIDE: call {{.*}}<16 x float> @llvm.fma.v16f32
// WIDE: define internal {{.*}}@tile_f32_5x32(
// WIDE: <16 x float> @llvm.fma.v16f32

// NARROW: define {{.*}}@tare_entry(
// NARROW-NOT: call {{.*}}@{{(fmaf|fma|tare_gemm_f32|tare_tanhf|epilogue)\(}}
// NARROW: call {{.*}}<8 x float> @llvm.fma.v8f32

// ASM: <tare_entry>:
// ASM-NOT: call{{.*}}fma
// ASM: <tile_f32_14x32>:
// ASM-NOT: vmov{{.*}}%zmm{{.*}}(%rsp)
// ASM: vfmadd231ps {{.*}}%zmm
// ASM: ret

// ELF-NOT: .data
// ELF-NOT: .bss
// ELF: There are no relocations in this file
// ELF-NOT: UND {{[a-z]}}
// ELF: 0000000000000000 {{.*}} tare_entry

llvm.func @tare_gemm_f32(!llvm.ptr, i64, !llvm.ptr, i64, i64, i64, i64, i64, !llvm.ptr, !llvm.ptr)
llvm.func @tare_tanhf(f32) -> f32
llvm.func internal @epilogue(%env: !llvm.ptr, %tile: !llvm.ptr, %row: i64, %col: i64, %rows: i64, %cols: i64) {
  %c0 = llvm.mlir.constant(0 : i64) : i64
  %c1 = llvm.mlir.constant(1 : i64) : i64
  %c32 = llvm.mlir.constant(32 : i64) : i64
  %n = llvm.mlir.constant(45 : i64) : i64
  %one = llvm.mlir.constant(1.0 : f32) : f32
  llvm.br ^rows(%c0 : i64)
^rows(%r: i64):
  %more_rows = llvm.icmp "slt" %r, %rows : i64
  llvm.cond_br %more_rows, ^cols(%c0 : i64), ^done
^cols(%c: i64):
  %more_cols = llvm.icmp "slt" %c, %cols : i64
  llvm.cond_br %more_cols, ^body, ^next_row
^body:
  %tr = llvm.mul %r, %c32 : i64
  %ti = llvm.add %tr, %c : i64
  %tp = llvm.getelementptr %tile[%ti] : (!llvm.ptr, i64) -> !llvm.ptr, f32
  %x = llvm.load %tp : !llvm.ptr -> f32
  %y = llvm.fadd %x, %one : f32
  %t = llvm.call @tare_tanhf(%y) : (f32) -> f32
  %gr = llvm.add %row, %r : i64
  %gm = llvm.mul %gr, %n : i64
  %gc = llvm.add %col, %c : i64
  %gi = llvm.add %gm, %gc : i64
  %op = llvm.getelementptr %env[%gi] : (!llvm.ptr, i64) -> !llvm.ptr, f32
  llvm.store %t, %op : f32, !llvm.ptr
  %c_next = llvm.add %c, %c1 : i64
  llvm.br ^cols(%c_next : i64)
^next_row:
  %r_next = llvm.add %r, %c1 : i64
  llvm.br ^rows(%r_next : i64)
^done:
  llvm.return
}
llvm.func @tare_entry(%args: !llvm.ptr, %thread: i64) -> i64 {
  %zero = llvm.mlir.constant(0 : i64) : i64
  %m = llvm.mlir.constant(5 : i64) : i64
  %n = llvm.mlir.constant(45 : i64) : i64
  %k = llvm.mlir.constant(40 : i64) : i64
  %buffers = llvm.load %args : !llvm.ptr -> !llvm.ptr
  %a = llvm.load %buffers : !llvm.ptr -> !llvm.ptr
  %p1 = llvm.getelementptr %buffers[1] : (!llvm.ptr) -> !llvm.ptr, !llvm.ptr
  %b = llvm.load %p1 : !llvm.ptr -> !llvm.ptr
  %p2 = llvm.getelementptr %buffers[2] : (!llvm.ptr) -> !llvm.ptr, !llvm.ptr
  %c = llvm.load %p2 : !llvm.ptr -> !llvm.ptr
  %p3 = llvm.getelementptr %args[2] : (!llvm.ptr) -> !llvm.ptr, i64
  %threads = llvm.load %p3 : !llvm.ptr -> i64
  %fn = llvm.mlir.addressof @epilogue : !llvm.ptr
  llvm.call @tare_gemm_f32(%a, %k, %b, %m, %n, %k, %thread, %threads, %fn, %c) : (!llvm.ptr, i64, !llvm.ptr, i64, i64, i64, i64, i64, !llvm.ptr, !llvm.ptr) -> ()
  llvm.return %zero : i64
}
