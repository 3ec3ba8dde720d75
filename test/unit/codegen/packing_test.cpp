// Weight packing: panels of every float type against the definition [ceil(N/32)][K][32], splats, booleans, 4-bit elements, and data of the wrong size.
#include "compiler/codegen/cpu/Packing.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/DialectResourceBlobManager.h"
#include "mlir/IR/MLIRContext.h"
#include <gtest/gtest.h>

using namespace mlir;

namespace {

struct Packing : testing::Test {
  MLIRContext context;
  Builder builder{&context};
  std::string pack(ElementsAttr value, llvm::StringRef packing) {
    auto bytes = tare::packWeight(value, packing);
    EXPECT_TRUE(bool(bytes)) << llvm::toString(bytes.takeError());
    return bytes ? *bytes : "";
  }
};

TEST_F(Packing, Panels) {
  constexpr int K = 3, N = 70;
  std::vector<float> w(K * N);
  for (int i = 0; i < K * N; ++i) w[i] = float(i) + 0.5f;
  const std::string bytes = pack(DenseElementsAttr::get(RankedTensorType::get({K, N}, builder.getF32Type()), llvm::ArrayRef<float>(w)), "panel32");
  ASSERT_EQ(bytes.size(), 3u * K * 32 * 4);
  const float *p = reinterpret_cast<const float *>(bytes.data());
  for (int panel = 0; panel < 3; ++panel)
    for (int k = 0; k < K; ++k)
      for (int j = 0; j < 32; ++j) {
        const int n = panel * 32 + j;
        EXPECT_EQ(p[(panel * K + k) * 32 + j], n < N ? w[k * N + n] : 0.0f);
      }
}

TEST_F(Packing, HalfTypesAndLeadingOnes) {
  std::vector<uint16_t> w = {0x3c00, 0x4000, 0xc200};
  for (Type element : {Type(builder.getF16Type()), Type(builder.getBF16Type())}) {
    auto type = RankedTensorType::get({1, 1, 3}, element);
    const std::string bytes = pack(DenseElementsAttr::getFromRawBuffer(type, llvm::ArrayRef<char>(reinterpret_cast<char *>(w.data()), 6)), "panel32");
    ASSERT_EQ(bytes.size(), 64u);
    EXPECT_EQ(memcmp(bytes.data(), w.data(), 6), 0);
    EXPECT_EQ(bytes.substr(6), std::string(58, '\0'));
  }
}

TEST_F(Packing, SplatsAndResources) {
  auto type = RankedTensorType::get({2, 33}, builder.getF32Type());
  const std::string splat = pack(DenseElementsAttr::get(type, 2.5f), "panel32");
  std::vector<float> values(66, 2.5f);
  auto resource = DenseResourceElementsAttr::get(type, "w", HeapAsmResourceBlob::allocateAndCopyInferAlign(llvm::ArrayRef<float>(values)));
  EXPECT_EQ(splat, pack(resource, "panel32"));
  EXPECT_EQ(pack(resource, "raw"), pack(DenseElementsAttr::get(type, 2.5f), "raw"));
}

TEST_F(Packing, BooleansAndNibbles) {
  EXPECT_EQ(pack(DenseElementsAttr::get(RankedTensorType::get({3}, builder.getI1Type()), llvm::ArrayRef<bool>{true, false, true}), "raw"), std::string("\1\0\1", 3));
  EXPECT_EQ(pack(DenseElementsAttr::get(RankedTensorType::get({2}, builder.getI1Type()), llvm::ArrayRef<bool>{true}), "raw"), std::string("\1\1", 2));
  const llvm::APInt four[] = {llvm::APInt(4, 3), llvm::APInt(4, 15), llvm::APInt(4, 9)};
  EXPECT_EQ(pack(DenseElementsAttr::get(RankedTensorType::get({3}, builder.getIntegerType(4)), llvm::ArrayRef(four)), "raw"), std::string("\xf3\x09", 2));
}

TEST_F(Packing, RefusesDataOfTheWrongSize) {
  std::vector<float> values(5, 1.0f);
  auto resource = DenseResourceElementsAttr::get(RankedTensorType::get({2, 3}, builder.getF32Type()), "short", HeapAsmResourceBlob::allocateAndCopyInferAlign(llvm::ArrayRef<float>(values)));
  auto bytes = tare::packWeight(resource, "raw");
  ASSERT_FALSE(bool(bytes));
  EXPECT_EQ(llvm::toString(bytes.takeError()), "a weight of 24 bytes has 20 bytes of data");
}

} // namespace
