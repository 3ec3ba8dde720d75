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

TEST_F(Packing, WeightsOfFidelityChecks) { // [K][R][D] as [K][ceil(R/32)][D][32], zeros behind R; nibbles are value + 8, column c + 16 in the high half
  constexpr int K = 2, R = 33, D = 3;
  std::vector<int8_t> q(K * R * D);
  std::vector<float> w(q.size()), p(K * R);
  for (size_t i = 0; i < q.size(); ++i) q[i] = static_cast<int8_t>(i % 16) - 8, w[i] = static_cast<float>(i);
  for (size_t i = 0; i < p.size(); ++i) p[i] = static_cast<float>(i) + 0.5f;
  auto type = [&](Type element) { return RankedTensorType::get({K, R, D}, element); };
  auto bytesOf = [](auto &v) { return llvm::ArrayRef<char>(reinterpret_cast<const char *>(v.data()), v.size() * sizeof(v[0])); };
  const std::string floats = pack(DenseElementsAttr::getFromRawBuffer(type(builder.getF32Type()), bytesOf(w)), "check_panel32");
  const std::string bytes = pack(DenseElementsAttr::getFromRawBuffer(type(builder.getI8Type()), bytesOf(q)), "check_panel32");
  const std::string nibbles = pack(DenseElementsAttr::getFromRawBuffer(type(builder.getI8Type()), bytesOf(q)), "check_nibble32");
  const std::string row = pack(DenseElementsAttr::getFromRawBuffer(RankedTensorType::get({K, R}, builder.getF32Type()), bytesOf(p)), "check_row32");
  ASSERT_EQ(floats.size(), size_t(K * 2 * D * 32 * 4));
  ASSERT_EQ(bytes.size(), size_t(K * 2 * D * 32));
  ASSERT_EQ(nibbles.size(), size_t(K * 2 * D * 16));
  ASSERT_EQ(row.size(), size_t(K * 2 * 32 * 4));
  for (int k = 0; k < K; ++k)
    for (int panel = 0; panel < 2; ++panel)
      for (int c = 0; c < 32; ++c) {
        const int r = panel * 32 + c;
        EXPECT_EQ(reinterpret_cast<const float *>(row.data())[(k * 2 + panel) * 32 + c], r < R ? p[k * R + r] : 0);
        for (int d = 0; d < D; ++d) {
          const int step = (k * 2 + panel) * D + d, from = (k * R + r) * D + d;
          EXPECT_EQ(reinterpret_cast<const float *>(floats.data())[step * 32 + c], r < R ? w[from] : 0);
          EXPECT_EQ(static_cast<int8_t>(bytes[step * 32 + c]), r < R ? q[from] : 0);
          EXPECT_EQ((static_cast<uint8_t>(nibbles[step * 16 + c % 16]) >> (c < 16 ? 0 : 4) & 15) - 8, r < R ? q[from] : 0);
        }
      }
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
