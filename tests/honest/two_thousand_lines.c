/* kernel: segment_max
   outcome: solved

   Two thousand lines: a function for every length up to 390, each of which calls the one before. */
#include <stdint.h>

static float largest_of_1(const float *x) { return x[0]; }

static __attribute__((noinline)) float largest_of_2(const float *x) {
  float before = largest_of_1(x);
  return x[1] > before ? x[1] : before;
}

static __attribute__((noinline)) float largest_of_3(const float *x) {
  float before = largest_of_2(x);
  return x[2] > before ? x[2] : before;
}

static __attribute__((noinline)) float largest_of_4(const float *x) {
  float before = largest_of_3(x);
  return x[3] > before ? x[3] : before;
}

static __attribute__((noinline)) float largest_of_5(const float *x) {
  float before = largest_of_4(x);
  return x[4] > before ? x[4] : before;
}

static __attribute__((noinline)) float largest_of_6(const float *x) {
  float before = largest_of_5(x);
  return x[5] > before ? x[5] : before;
}

static __attribute__((noinline)) float largest_of_7(const float *x) {
  float before = largest_of_6(x);
  return x[6] > before ? x[6] : before;
}

static __attribute__((noinline)) float largest_of_8(const float *x) {
  float before = largest_of_7(x);
  return x[7] > before ? x[7] : before;
}

static __attribute__((noinline)) float largest_of_9(const float *x) {
  float before = largest_of_8(x);
  return x[8] > before ? x[8] : before;
}

static __attribute__((noinline)) float largest_of_10(const float *x) {
  float before = largest_of_9(x);
  return x[9] > before ? x[9] : before;
}

static __attribute__((noinline)) float largest_of_11(const float *x) {
  float before = largest_of_10(x);
  return x[10] > before ? x[10] : before;
}

static __attribute__((noinline)) float largest_of_12(const float *x) {
  float before = largest_of_11(x);
  return x[11] > before ? x[11] : before;
}

static __attribute__((noinline)) float largest_of_13(const float *x) {
  float before = largest_of_12(x);
  return x[12] > before ? x[12] : before;
}

static __attribute__((noinline)) float largest_of_14(const float *x) {
  float before = largest_of_13(x);
  return x[13] > before ? x[13] : before;
}

static __attribute__((noinline)) float largest_of_15(const float *x) {
  float before = largest_of_14(x);
  return x[14] > before ? x[14] : before;
}

static __attribute__((noinline)) float largest_of_16(const float *x) {
  float before = largest_of_15(x);
  return x[15] > before ? x[15] : before;
}

static __attribute__((noinline)) float largest_of_17(const float *x) {
  float before = largest_of_16(x);
  return x[16] > before ? x[16] : before;
}

static __attribute__((noinline)) float largest_of_18(const float *x) {
  float before = largest_of_17(x);
  return x[17] > before ? x[17] : before;
}

static __attribute__((noinline)) float largest_of_19(const float *x) {
  float before = largest_of_18(x);
  return x[18] > before ? x[18] : before;
}

static __attribute__((noinline)) float largest_of_20(const float *x) {
  float before = largest_of_19(x);
  return x[19] > before ? x[19] : before;
}

static __attribute__((noinline)) float largest_of_21(const float *x) {
  float before = largest_of_20(x);
  return x[20] > before ? x[20] : before;
}

static __attribute__((noinline)) float largest_of_22(const float *x) {
  float before = largest_of_21(x);
  return x[21] > before ? x[21] : before;
}

static __attribute__((noinline)) float largest_of_23(const float *x) {
  float before = largest_of_22(x);
  return x[22] > before ? x[22] : before;
}

static __attribute__((noinline)) float largest_of_24(const float *x) {
  float before = largest_of_23(x);
  return x[23] > before ? x[23] : before;
}

static __attribute__((noinline)) float largest_of_25(const float *x) {
  float before = largest_of_24(x);
  return x[24] > before ? x[24] : before;
}

static __attribute__((noinline)) float largest_of_26(const float *x) {
  float before = largest_of_25(x);
  return x[25] > before ? x[25] : before;
}

static __attribute__((noinline)) float largest_of_27(const float *x) {
  float before = largest_of_26(x);
  return x[26] > before ? x[26] : before;
}

static __attribute__((noinline)) float largest_of_28(const float *x) {
  float before = largest_of_27(x);
  return x[27] > before ? x[27] : before;
}

static __attribute__((noinline)) float largest_of_29(const float *x) {
  float before = largest_of_28(x);
  return x[28] > before ? x[28] : before;
}

static __attribute__((noinline)) float largest_of_30(const float *x) {
  float before = largest_of_29(x);
  return x[29] > before ? x[29] : before;
}

static __attribute__((noinline)) float largest_of_31(const float *x) {
  float before = largest_of_30(x);
  return x[30] > before ? x[30] : before;
}

static __attribute__((noinline)) float largest_of_32(const float *x) {
  float before = largest_of_31(x);
  return x[31] > before ? x[31] : before;
}

static __attribute__((noinline)) float largest_of_33(const float *x) {
  float before = largest_of_32(x);
  return x[32] > before ? x[32] : before;
}

static __attribute__((noinline)) float largest_of_34(const float *x) {
  float before = largest_of_33(x);
  return x[33] > before ? x[33] : before;
}

static __attribute__((noinline)) float largest_of_35(const float *x) {
  float before = largest_of_34(x);
  return x[34] > before ? x[34] : before;
}

static __attribute__((noinline)) float largest_of_36(const float *x) {
  float before = largest_of_35(x);
  return x[35] > before ? x[35] : before;
}

static __attribute__((noinline)) float largest_of_37(const float *x) {
  float before = largest_of_36(x);
  return x[36] > before ? x[36] : before;
}

static __attribute__((noinline)) float largest_of_38(const float *x) {
  float before = largest_of_37(x);
  return x[37] > before ? x[37] : before;
}

static __attribute__((noinline)) float largest_of_39(const float *x) {
  float before = largest_of_38(x);
  return x[38] > before ? x[38] : before;
}

static __attribute__((noinline)) float largest_of_40(const float *x) {
  float before = largest_of_39(x);
  return x[39] > before ? x[39] : before;
}

static __attribute__((noinline)) float largest_of_41(const float *x) {
  float before = largest_of_40(x);
  return x[40] > before ? x[40] : before;
}

static __attribute__((noinline)) float largest_of_42(const float *x) {
  float before = largest_of_41(x);
  return x[41] > before ? x[41] : before;
}

static __attribute__((noinline)) float largest_of_43(const float *x) {
  float before = largest_of_42(x);
  return x[42] > before ? x[42] : before;
}

static __attribute__((noinline)) float largest_of_44(const float *x) {
  float before = largest_of_43(x);
  return x[43] > before ? x[43] : before;
}

static __attribute__((noinline)) float largest_of_45(const float *x) {
  float before = largest_of_44(x);
  return x[44] > before ? x[44] : before;
}

static __attribute__((noinline)) float largest_of_46(const float *x) {
  float before = largest_of_45(x);
  return x[45] > before ? x[45] : before;
}

static __attribute__((noinline)) float largest_of_47(const float *x) {
  float before = largest_of_46(x);
  return x[46] > before ? x[46] : before;
}

static __attribute__((noinline)) float largest_of_48(const float *x) {
  float before = largest_of_47(x);
  return x[47] > before ? x[47] : before;
}

static __attribute__((noinline)) float largest_of_49(const float *x) {
  float before = largest_of_48(x);
  return x[48] > before ? x[48] : before;
}

static __attribute__((noinline)) float largest_of_50(const float *x) {
  float before = largest_of_49(x);
  return x[49] > before ? x[49] : before;
}

static __attribute__((noinline)) float largest_of_51(const float *x) {
  float before = largest_of_50(x);
  return x[50] > before ? x[50] : before;
}

static __attribute__((noinline)) float largest_of_52(const float *x) {
  float before = largest_of_51(x);
  return x[51] > before ? x[51] : before;
}

static __attribute__((noinline)) float largest_of_53(const float *x) {
  float before = largest_of_52(x);
  return x[52] > before ? x[52] : before;
}

static __attribute__((noinline)) float largest_of_54(const float *x) {
  float before = largest_of_53(x);
  return x[53] > before ? x[53] : before;
}

static __attribute__((noinline)) float largest_of_55(const float *x) {
  float before = largest_of_54(x);
  return x[54] > before ? x[54] : before;
}

static __attribute__((noinline)) float largest_of_56(const float *x) {
  float before = largest_of_55(x);
  return x[55] > before ? x[55] : before;
}

static __attribute__((noinline)) float largest_of_57(const float *x) {
  float before = largest_of_56(x);
  return x[56] > before ? x[56] : before;
}

static __attribute__((noinline)) float largest_of_58(const float *x) {
  float before = largest_of_57(x);
  return x[57] > before ? x[57] : before;
}

static __attribute__((noinline)) float largest_of_59(const float *x) {
  float before = largest_of_58(x);
  return x[58] > before ? x[58] : before;
}

static __attribute__((noinline)) float largest_of_60(const float *x) {
  float before = largest_of_59(x);
  return x[59] > before ? x[59] : before;
}

static __attribute__((noinline)) float largest_of_61(const float *x) {
  float before = largest_of_60(x);
  return x[60] > before ? x[60] : before;
}

static __attribute__((noinline)) float largest_of_62(const float *x) {
  float before = largest_of_61(x);
  return x[61] > before ? x[61] : before;
}

static __attribute__((noinline)) float largest_of_63(const float *x) {
  float before = largest_of_62(x);
  return x[62] > before ? x[62] : before;
}

static __attribute__((noinline)) float largest_of_64(const float *x) {
  float before = largest_of_63(x);
  return x[63] > before ? x[63] : before;
}

static __attribute__((noinline)) float largest_of_65(const float *x) {
  float before = largest_of_64(x);
  return x[64] > before ? x[64] : before;
}

static __attribute__((noinline)) float largest_of_66(const float *x) {
  float before = largest_of_65(x);
  return x[65] > before ? x[65] : before;
}

static __attribute__((noinline)) float largest_of_67(const float *x) {
  float before = largest_of_66(x);
  return x[66] > before ? x[66] : before;
}

static __attribute__((noinline)) float largest_of_68(const float *x) {
  float before = largest_of_67(x);
  return x[67] > before ? x[67] : before;
}

static __attribute__((noinline)) float largest_of_69(const float *x) {
  float before = largest_of_68(x);
  return x[68] > before ? x[68] : before;
}

static __attribute__((noinline)) float largest_of_70(const float *x) {
  float before = largest_of_69(x);
  return x[69] > before ? x[69] : before;
}

static __attribute__((noinline)) float largest_of_71(const float *x) {
  float before = largest_of_70(x);
  return x[70] > before ? x[70] : before;
}

static __attribute__((noinline)) float largest_of_72(const float *x) {
  float before = largest_of_71(x);
  return x[71] > before ? x[71] : before;
}

static __attribute__((noinline)) float largest_of_73(const float *x) {
  float before = largest_of_72(x);
  return x[72] > before ? x[72] : before;
}

static __attribute__((noinline)) float largest_of_74(const float *x) {
  float before = largest_of_73(x);
  return x[73] > before ? x[73] : before;
}

static __attribute__((noinline)) float largest_of_75(const float *x) {
  float before = largest_of_74(x);
  return x[74] > before ? x[74] : before;
}

static __attribute__((noinline)) float largest_of_76(const float *x) {
  float before = largest_of_75(x);
  return x[75] > before ? x[75] : before;
}

static __attribute__((noinline)) float largest_of_77(const float *x) {
  float before = largest_of_76(x);
  return x[76] > before ? x[76] : before;
}

static __attribute__((noinline)) float largest_of_78(const float *x) {
  float before = largest_of_77(x);
  return x[77] > before ? x[77] : before;
}

static __attribute__((noinline)) float largest_of_79(const float *x) {
  float before = largest_of_78(x);
  return x[78] > before ? x[78] : before;
}

static __attribute__((noinline)) float largest_of_80(const float *x) {
  float before = largest_of_79(x);
  return x[79] > before ? x[79] : before;
}

static __attribute__((noinline)) float largest_of_81(const float *x) {
  float before = largest_of_80(x);
  return x[80] > before ? x[80] : before;
}

static __attribute__((noinline)) float largest_of_82(const float *x) {
  float before = largest_of_81(x);
  return x[81] > before ? x[81] : before;
}

static __attribute__((noinline)) float largest_of_83(const float *x) {
  float before = largest_of_82(x);
  return x[82] > before ? x[82] : before;
}

static __attribute__((noinline)) float largest_of_84(const float *x) {
  float before = largest_of_83(x);
  return x[83] > before ? x[83] : before;
}

static __attribute__((noinline)) float largest_of_85(const float *x) {
  float before = largest_of_84(x);
  return x[84] > before ? x[84] : before;
}

static __attribute__((noinline)) float largest_of_86(const float *x) {
  float before = largest_of_85(x);
  return x[85] > before ? x[85] : before;
}

static __attribute__((noinline)) float largest_of_87(const float *x) {
  float before = largest_of_86(x);
  return x[86] > before ? x[86] : before;
}

static __attribute__((noinline)) float largest_of_88(const float *x) {
  float before = largest_of_87(x);
  return x[87] > before ? x[87] : before;
}

static __attribute__((noinline)) float largest_of_89(const float *x) {
  float before = largest_of_88(x);
  return x[88] > before ? x[88] : before;
}

static __attribute__((noinline)) float largest_of_90(const float *x) {
  float before = largest_of_89(x);
  return x[89] > before ? x[89] : before;
}

static __attribute__((noinline)) float largest_of_91(const float *x) {
  float before = largest_of_90(x);
  return x[90] > before ? x[90] : before;
}

static __attribute__((noinline)) float largest_of_92(const float *x) {
  float before = largest_of_91(x);
  return x[91] > before ? x[91] : before;
}

static __attribute__((noinline)) float largest_of_93(const float *x) {
  float before = largest_of_92(x);
  return x[92] > before ? x[92] : before;
}

static __attribute__((noinline)) float largest_of_94(const float *x) {
  float before = largest_of_93(x);
  return x[93] > before ? x[93] : before;
}

static __attribute__((noinline)) float largest_of_95(const float *x) {
  float before = largest_of_94(x);
  return x[94] > before ? x[94] : before;
}

static __attribute__((noinline)) float largest_of_96(const float *x) {
  float before = largest_of_95(x);
  return x[95] > before ? x[95] : before;
}

static __attribute__((noinline)) float largest_of_97(const float *x) {
  float before = largest_of_96(x);
  return x[96] > before ? x[96] : before;
}

static __attribute__((noinline)) float largest_of_98(const float *x) {
  float before = largest_of_97(x);
  return x[97] > before ? x[97] : before;
}

static __attribute__((noinline)) float largest_of_99(const float *x) {
  float before = largest_of_98(x);
  return x[98] > before ? x[98] : before;
}

static __attribute__((noinline)) float largest_of_100(const float *x) {
  float before = largest_of_99(x);
  return x[99] > before ? x[99] : before;
}

static __attribute__((noinline)) float largest_of_101(const float *x) {
  float before = largest_of_100(x);
  return x[100] > before ? x[100] : before;
}

static __attribute__((noinline)) float largest_of_102(const float *x) {
  float before = largest_of_101(x);
  return x[101] > before ? x[101] : before;
}

static __attribute__((noinline)) float largest_of_103(const float *x) {
  float before = largest_of_102(x);
  return x[102] > before ? x[102] : before;
}

static __attribute__((noinline)) float largest_of_104(const float *x) {
  float before = largest_of_103(x);
  return x[103] > before ? x[103] : before;
}

static __attribute__((noinline)) float largest_of_105(const float *x) {
  float before = largest_of_104(x);
  return x[104] > before ? x[104] : before;
}

static __attribute__((noinline)) float largest_of_106(const float *x) {
  float before = largest_of_105(x);
  return x[105] > before ? x[105] : before;
}

static __attribute__((noinline)) float largest_of_107(const float *x) {
  float before = largest_of_106(x);
  return x[106] > before ? x[106] : before;
}

static __attribute__((noinline)) float largest_of_108(const float *x) {
  float before = largest_of_107(x);
  return x[107] > before ? x[107] : before;
}

static __attribute__((noinline)) float largest_of_109(const float *x) {
  float before = largest_of_108(x);
  return x[108] > before ? x[108] : before;
}

static __attribute__((noinline)) float largest_of_110(const float *x) {
  float before = largest_of_109(x);
  return x[109] > before ? x[109] : before;
}

static __attribute__((noinline)) float largest_of_111(const float *x) {
  float before = largest_of_110(x);
  return x[110] > before ? x[110] : before;
}

static __attribute__((noinline)) float largest_of_112(const float *x) {
  float before = largest_of_111(x);
  return x[111] > before ? x[111] : before;
}

static __attribute__((noinline)) float largest_of_113(const float *x) {
  float before = largest_of_112(x);
  return x[112] > before ? x[112] : before;
}

static __attribute__((noinline)) float largest_of_114(const float *x) {
  float before = largest_of_113(x);
  return x[113] > before ? x[113] : before;
}

static __attribute__((noinline)) float largest_of_115(const float *x) {
  float before = largest_of_114(x);
  return x[114] > before ? x[114] : before;
}

static __attribute__((noinline)) float largest_of_116(const float *x) {
  float before = largest_of_115(x);
  return x[115] > before ? x[115] : before;
}

static __attribute__((noinline)) float largest_of_117(const float *x) {
  float before = largest_of_116(x);
  return x[116] > before ? x[116] : before;
}

static __attribute__((noinline)) float largest_of_118(const float *x) {
  float before = largest_of_117(x);
  return x[117] > before ? x[117] : before;
}

static __attribute__((noinline)) float largest_of_119(const float *x) {
  float before = largest_of_118(x);
  return x[118] > before ? x[118] : before;
}

static __attribute__((noinline)) float largest_of_120(const float *x) {
  float before = largest_of_119(x);
  return x[119] > before ? x[119] : before;
}

static __attribute__((noinline)) float largest_of_121(const float *x) {
  float before = largest_of_120(x);
  return x[120] > before ? x[120] : before;
}

static __attribute__((noinline)) float largest_of_122(const float *x) {
  float before = largest_of_121(x);
  return x[121] > before ? x[121] : before;
}

static __attribute__((noinline)) float largest_of_123(const float *x) {
  float before = largest_of_122(x);
  return x[122] > before ? x[122] : before;
}

static __attribute__((noinline)) float largest_of_124(const float *x) {
  float before = largest_of_123(x);
  return x[123] > before ? x[123] : before;
}

static __attribute__((noinline)) float largest_of_125(const float *x) {
  float before = largest_of_124(x);
  return x[124] > before ? x[124] : before;
}

static __attribute__((noinline)) float largest_of_126(const float *x) {
  float before = largest_of_125(x);
  return x[125] > before ? x[125] : before;
}

static __attribute__((noinline)) float largest_of_127(const float *x) {
  float before = largest_of_126(x);
  return x[126] > before ? x[126] : before;
}

static __attribute__((noinline)) float largest_of_128(const float *x) {
  float before = largest_of_127(x);
  return x[127] > before ? x[127] : before;
}

static __attribute__((noinline)) float largest_of_129(const float *x) {
  float before = largest_of_128(x);
  return x[128] > before ? x[128] : before;
}

static __attribute__((noinline)) float largest_of_130(const float *x) {
  float before = largest_of_129(x);
  return x[129] > before ? x[129] : before;
}

static __attribute__((noinline)) float largest_of_131(const float *x) {
  float before = largest_of_130(x);
  return x[130] > before ? x[130] : before;
}

static __attribute__((noinline)) float largest_of_132(const float *x) {
  float before = largest_of_131(x);
  return x[131] > before ? x[131] : before;
}

static __attribute__((noinline)) float largest_of_133(const float *x) {
  float before = largest_of_132(x);
  return x[132] > before ? x[132] : before;
}

static __attribute__((noinline)) float largest_of_134(const float *x) {
  float before = largest_of_133(x);
  return x[133] > before ? x[133] : before;
}

static __attribute__((noinline)) float largest_of_135(const float *x) {
  float before = largest_of_134(x);
  return x[134] > before ? x[134] : before;
}

static __attribute__((noinline)) float largest_of_136(const float *x) {
  float before = largest_of_135(x);
  return x[135] > before ? x[135] : before;
}

static __attribute__((noinline)) float largest_of_137(const float *x) {
  float before = largest_of_136(x);
  return x[136] > before ? x[136] : before;
}

static __attribute__((noinline)) float largest_of_138(const float *x) {
  float before = largest_of_137(x);
  return x[137] > before ? x[137] : before;
}

static __attribute__((noinline)) float largest_of_139(const float *x) {
  float before = largest_of_138(x);
  return x[138] > before ? x[138] : before;
}

static __attribute__((noinline)) float largest_of_140(const float *x) {
  float before = largest_of_139(x);
  return x[139] > before ? x[139] : before;
}

static __attribute__((noinline)) float largest_of_141(const float *x) {
  float before = largest_of_140(x);
  return x[140] > before ? x[140] : before;
}

static __attribute__((noinline)) float largest_of_142(const float *x) {
  float before = largest_of_141(x);
  return x[141] > before ? x[141] : before;
}

static __attribute__((noinline)) float largest_of_143(const float *x) {
  float before = largest_of_142(x);
  return x[142] > before ? x[142] : before;
}

static __attribute__((noinline)) float largest_of_144(const float *x) {
  float before = largest_of_143(x);
  return x[143] > before ? x[143] : before;
}

static __attribute__((noinline)) float largest_of_145(const float *x) {
  float before = largest_of_144(x);
  return x[144] > before ? x[144] : before;
}

static __attribute__((noinline)) float largest_of_146(const float *x) {
  float before = largest_of_145(x);
  return x[145] > before ? x[145] : before;
}

static __attribute__((noinline)) float largest_of_147(const float *x) {
  float before = largest_of_146(x);
  return x[146] > before ? x[146] : before;
}

static __attribute__((noinline)) float largest_of_148(const float *x) {
  float before = largest_of_147(x);
  return x[147] > before ? x[147] : before;
}

static __attribute__((noinline)) float largest_of_149(const float *x) {
  float before = largest_of_148(x);
  return x[148] > before ? x[148] : before;
}

static __attribute__((noinline)) float largest_of_150(const float *x) {
  float before = largest_of_149(x);
  return x[149] > before ? x[149] : before;
}

static __attribute__((noinline)) float largest_of_151(const float *x) {
  float before = largest_of_150(x);
  return x[150] > before ? x[150] : before;
}

static __attribute__((noinline)) float largest_of_152(const float *x) {
  float before = largest_of_151(x);
  return x[151] > before ? x[151] : before;
}

static __attribute__((noinline)) float largest_of_153(const float *x) {
  float before = largest_of_152(x);
  return x[152] > before ? x[152] : before;
}

static __attribute__((noinline)) float largest_of_154(const float *x) {
  float before = largest_of_153(x);
  return x[153] > before ? x[153] : before;
}

static __attribute__((noinline)) float largest_of_155(const float *x) {
  float before = largest_of_154(x);
  return x[154] > before ? x[154] : before;
}

static __attribute__((noinline)) float largest_of_156(const float *x) {
  float before = largest_of_155(x);
  return x[155] > before ? x[155] : before;
}

static __attribute__((noinline)) float largest_of_157(const float *x) {
  float before = largest_of_156(x);
  return x[156] > before ? x[156] : before;
}

static __attribute__((noinline)) float largest_of_158(const float *x) {
  float before = largest_of_157(x);
  return x[157] > before ? x[157] : before;
}

static __attribute__((noinline)) float largest_of_159(const float *x) {
  float before = largest_of_158(x);
  return x[158] > before ? x[158] : before;
}

static __attribute__((noinline)) float largest_of_160(const float *x) {
  float before = largest_of_159(x);
  return x[159] > before ? x[159] : before;
}

static __attribute__((noinline)) float largest_of_161(const float *x) {
  float before = largest_of_160(x);
  return x[160] > before ? x[160] : before;
}

static __attribute__((noinline)) float largest_of_162(const float *x) {
  float before = largest_of_161(x);
  return x[161] > before ? x[161] : before;
}

static __attribute__((noinline)) float largest_of_163(const float *x) {
  float before = largest_of_162(x);
  return x[162] > before ? x[162] : before;
}

static __attribute__((noinline)) float largest_of_164(const float *x) {
  float before = largest_of_163(x);
  return x[163] > before ? x[163] : before;
}

static __attribute__((noinline)) float largest_of_165(const float *x) {
  float before = largest_of_164(x);
  return x[164] > before ? x[164] : before;
}

static __attribute__((noinline)) float largest_of_166(const float *x) {
  float before = largest_of_165(x);
  return x[165] > before ? x[165] : before;
}

static __attribute__((noinline)) float largest_of_167(const float *x) {
  float before = largest_of_166(x);
  return x[166] > before ? x[166] : before;
}

static __attribute__((noinline)) float largest_of_168(const float *x) {
  float before = largest_of_167(x);
  return x[167] > before ? x[167] : before;
}

static __attribute__((noinline)) float largest_of_169(const float *x) {
  float before = largest_of_168(x);
  return x[168] > before ? x[168] : before;
}

static __attribute__((noinline)) float largest_of_170(const float *x) {
  float before = largest_of_169(x);
  return x[169] > before ? x[169] : before;
}

static __attribute__((noinline)) float largest_of_171(const float *x) {
  float before = largest_of_170(x);
  return x[170] > before ? x[170] : before;
}

static __attribute__((noinline)) float largest_of_172(const float *x) {
  float before = largest_of_171(x);
  return x[171] > before ? x[171] : before;
}

static __attribute__((noinline)) float largest_of_173(const float *x) {
  float before = largest_of_172(x);
  return x[172] > before ? x[172] : before;
}

static __attribute__((noinline)) float largest_of_174(const float *x) {
  float before = largest_of_173(x);
  return x[173] > before ? x[173] : before;
}

static __attribute__((noinline)) float largest_of_175(const float *x) {
  float before = largest_of_174(x);
  return x[174] > before ? x[174] : before;
}

static __attribute__((noinline)) float largest_of_176(const float *x) {
  float before = largest_of_175(x);
  return x[175] > before ? x[175] : before;
}

static __attribute__((noinline)) float largest_of_177(const float *x) {
  float before = largest_of_176(x);
  return x[176] > before ? x[176] : before;
}

static __attribute__((noinline)) float largest_of_178(const float *x) {
  float before = largest_of_177(x);
  return x[177] > before ? x[177] : before;
}

static __attribute__((noinline)) float largest_of_179(const float *x) {
  float before = largest_of_178(x);
  return x[178] > before ? x[178] : before;
}

static __attribute__((noinline)) float largest_of_180(const float *x) {
  float before = largest_of_179(x);
  return x[179] > before ? x[179] : before;
}

static __attribute__((noinline)) float largest_of_181(const float *x) {
  float before = largest_of_180(x);
  return x[180] > before ? x[180] : before;
}

static __attribute__((noinline)) float largest_of_182(const float *x) {
  float before = largest_of_181(x);
  return x[181] > before ? x[181] : before;
}

static __attribute__((noinline)) float largest_of_183(const float *x) {
  float before = largest_of_182(x);
  return x[182] > before ? x[182] : before;
}

static __attribute__((noinline)) float largest_of_184(const float *x) {
  float before = largest_of_183(x);
  return x[183] > before ? x[183] : before;
}

static __attribute__((noinline)) float largest_of_185(const float *x) {
  float before = largest_of_184(x);
  return x[184] > before ? x[184] : before;
}

static __attribute__((noinline)) float largest_of_186(const float *x) {
  float before = largest_of_185(x);
  return x[185] > before ? x[185] : before;
}

static __attribute__((noinline)) float largest_of_187(const float *x) {
  float before = largest_of_186(x);
  return x[186] > before ? x[186] : before;
}

static __attribute__((noinline)) float largest_of_188(const float *x) {
  float before = largest_of_187(x);
  return x[187] > before ? x[187] : before;
}

static __attribute__((noinline)) float largest_of_189(const float *x) {
  float before = largest_of_188(x);
  return x[188] > before ? x[188] : before;
}

static __attribute__((noinline)) float largest_of_190(const float *x) {
  float before = largest_of_189(x);
  return x[189] > before ? x[189] : before;
}

static __attribute__((noinline)) float largest_of_191(const float *x) {
  float before = largest_of_190(x);
  return x[190] > before ? x[190] : before;
}

static __attribute__((noinline)) float largest_of_192(const float *x) {
  float before = largest_of_191(x);
  return x[191] > before ? x[191] : before;
}

static __attribute__((noinline)) float largest_of_193(const float *x) {
  float before = largest_of_192(x);
  return x[192] > before ? x[192] : before;
}

static __attribute__((noinline)) float largest_of_194(const float *x) {
  float before = largest_of_193(x);
  return x[193] > before ? x[193] : before;
}

static __attribute__((noinline)) float largest_of_195(const float *x) {
  float before = largest_of_194(x);
  return x[194] > before ? x[194] : before;
}

static __attribute__((noinline)) float largest_of_196(const float *x) {
  float before = largest_of_195(x);
  return x[195] > before ? x[195] : before;
}

static __attribute__((noinline)) float largest_of_197(const float *x) {
  float before = largest_of_196(x);
  return x[196] > before ? x[196] : before;
}

static __attribute__((noinline)) float largest_of_198(const float *x) {
  float before = largest_of_197(x);
  return x[197] > before ? x[197] : before;
}

static __attribute__((noinline)) float largest_of_199(const float *x) {
  float before = largest_of_198(x);
  return x[198] > before ? x[198] : before;
}

static __attribute__((noinline)) float largest_of_200(const float *x) {
  float before = largest_of_199(x);
  return x[199] > before ? x[199] : before;
}

static __attribute__((noinline)) float largest_of_201(const float *x) {
  float before = largest_of_200(x);
  return x[200] > before ? x[200] : before;
}

static __attribute__((noinline)) float largest_of_202(const float *x) {
  float before = largest_of_201(x);
  return x[201] > before ? x[201] : before;
}

static __attribute__((noinline)) float largest_of_203(const float *x) {
  float before = largest_of_202(x);
  return x[202] > before ? x[202] : before;
}

static __attribute__((noinline)) float largest_of_204(const float *x) {
  float before = largest_of_203(x);
  return x[203] > before ? x[203] : before;
}

static __attribute__((noinline)) float largest_of_205(const float *x) {
  float before = largest_of_204(x);
  return x[204] > before ? x[204] : before;
}

static __attribute__((noinline)) float largest_of_206(const float *x) {
  float before = largest_of_205(x);
  return x[205] > before ? x[205] : before;
}

static __attribute__((noinline)) float largest_of_207(const float *x) {
  float before = largest_of_206(x);
  return x[206] > before ? x[206] : before;
}

static __attribute__((noinline)) float largest_of_208(const float *x) {
  float before = largest_of_207(x);
  return x[207] > before ? x[207] : before;
}

static __attribute__((noinline)) float largest_of_209(const float *x) {
  float before = largest_of_208(x);
  return x[208] > before ? x[208] : before;
}

static __attribute__((noinline)) float largest_of_210(const float *x) {
  float before = largest_of_209(x);
  return x[209] > before ? x[209] : before;
}

static __attribute__((noinline)) float largest_of_211(const float *x) {
  float before = largest_of_210(x);
  return x[210] > before ? x[210] : before;
}

static __attribute__((noinline)) float largest_of_212(const float *x) {
  float before = largest_of_211(x);
  return x[211] > before ? x[211] : before;
}

static __attribute__((noinline)) float largest_of_213(const float *x) {
  float before = largest_of_212(x);
  return x[212] > before ? x[212] : before;
}

static __attribute__((noinline)) float largest_of_214(const float *x) {
  float before = largest_of_213(x);
  return x[213] > before ? x[213] : before;
}

static __attribute__((noinline)) float largest_of_215(const float *x) {
  float before = largest_of_214(x);
  return x[214] > before ? x[214] : before;
}

static __attribute__((noinline)) float largest_of_216(const float *x) {
  float before = largest_of_215(x);
  return x[215] > before ? x[215] : before;
}

static __attribute__((noinline)) float largest_of_217(const float *x) {
  float before = largest_of_216(x);
  return x[216] > before ? x[216] : before;
}

static __attribute__((noinline)) float largest_of_218(const float *x) {
  float before = largest_of_217(x);
  return x[217] > before ? x[217] : before;
}

static __attribute__((noinline)) float largest_of_219(const float *x) {
  float before = largest_of_218(x);
  return x[218] > before ? x[218] : before;
}

static __attribute__((noinline)) float largest_of_220(const float *x) {
  float before = largest_of_219(x);
  return x[219] > before ? x[219] : before;
}

static __attribute__((noinline)) float largest_of_221(const float *x) {
  float before = largest_of_220(x);
  return x[220] > before ? x[220] : before;
}

static __attribute__((noinline)) float largest_of_222(const float *x) {
  float before = largest_of_221(x);
  return x[221] > before ? x[221] : before;
}

static __attribute__((noinline)) float largest_of_223(const float *x) {
  float before = largest_of_222(x);
  return x[222] > before ? x[222] : before;
}

static __attribute__((noinline)) float largest_of_224(const float *x) {
  float before = largest_of_223(x);
  return x[223] > before ? x[223] : before;
}

static __attribute__((noinline)) float largest_of_225(const float *x) {
  float before = largest_of_224(x);
  return x[224] > before ? x[224] : before;
}

static __attribute__((noinline)) float largest_of_226(const float *x) {
  float before = largest_of_225(x);
  return x[225] > before ? x[225] : before;
}

static __attribute__((noinline)) float largest_of_227(const float *x) {
  float before = largest_of_226(x);
  return x[226] > before ? x[226] : before;
}

static __attribute__((noinline)) float largest_of_228(const float *x) {
  float before = largest_of_227(x);
  return x[227] > before ? x[227] : before;
}

static __attribute__((noinline)) float largest_of_229(const float *x) {
  float before = largest_of_228(x);
  return x[228] > before ? x[228] : before;
}

static __attribute__((noinline)) float largest_of_230(const float *x) {
  float before = largest_of_229(x);
  return x[229] > before ? x[229] : before;
}

static __attribute__((noinline)) float largest_of_231(const float *x) {
  float before = largest_of_230(x);
  return x[230] > before ? x[230] : before;
}

static __attribute__((noinline)) float largest_of_232(const float *x) {
  float before = largest_of_231(x);
  return x[231] > before ? x[231] : before;
}

static __attribute__((noinline)) float largest_of_233(const float *x) {
  float before = largest_of_232(x);
  return x[232] > before ? x[232] : before;
}

static __attribute__((noinline)) float largest_of_234(const float *x) {
  float before = largest_of_233(x);
  return x[233] > before ? x[233] : before;
}

static __attribute__((noinline)) float largest_of_235(const float *x) {
  float before = largest_of_234(x);
  return x[234] > before ? x[234] : before;
}

static __attribute__((noinline)) float largest_of_236(const float *x) {
  float before = largest_of_235(x);
  return x[235] > before ? x[235] : before;
}

static __attribute__((noinline)) float largest_of_237(const float *x) {
  float before = largest_of_236(x);
  return x[236] > before ? x[236] : before;
}

static __attribute__((noinline)) float largest_of_238(const float *x) {
  float before = largest_of_237(x);
  return x[237] > before ? x[237] : before;
}

static __attribute__((noinline)) float largest_of_239(const float *x) {
  float before = largest_of_238(x);
  return x[238] > before ? x[238] : before;
}

static __attribute__((noinline)) float largest_of_240(const float *x) {
  float before = largest_of_239(x);
  return x[239] > before ? x[239] : before;
}

static __attribute__((noinline)) float largest_of_241(const float *x) {
  float before = largest_of_240(x);
  return x[240] > before ? x[240] : before;
}

static __attribute__((noinline)) float largest_of_242(const float *x) {
  float before = largest_of_241(x);
  return x[241] > before ? x[241] : before;
}

static __attribute__((noinline)) float largest_of_243(const float *x) {
  float before = largest_of_242(x);
  return x[242] > before ? x[242] : before;
}

static __attribute__((noinline)) float largest_of_244(const float *x) {
  float before = largest_of_243(x);
  return x[243] > before ? x[243] : before;
}

static __attribute__((noinline)) float largest_of_245(const float *x) {
  float before = largest_of_244(x);
  return x[244] > before ? x[244] : before;
}

static __attribute__((noinline)) float largest_of_246(const float *x) {
  float before = largest_of_245(x);
  return x[245] > before ? x[245] : before;
}

static __attribute__((noinline)) float largest_of_247(const float *x) {
  float before = largest_of_246(x);
  return x[246] > before ? x[246] : before;
}

static __attribute__((noinline)) float largest_of_248(const float *x) {
  float before = largest_of_247(x);
  return x[247] > before ? x[247] : before;
}

static __attribute__((noinline)) float largest_of_249(const float *x) {
  float before = largest_of_248(x);
  return x[248] > before ? x[248] : before;
}

static __attribute__((noinline)) float largest_of_250(const float *x) {
  float before = largest_of_249(x);
  return x[249] > before ? x[249] : before;
}

static __attribute__((noinline)) float largest_of_251(const float *x) {
  float before = largest_of_250(x);
  return x[250] > before ? x[250] : before;
}

static __attribute__((noinline)) float largest_of_252(const float *x) {
  float before = largest_of_251(x);
  return x[251] > before ? x[251] : before;
}

static __attribute__((noinline)) float largest_of_253(const float *x) {
  float before = largest_of_252(x);
  return x[252] > before ? x[252] : before;
}

static __attribute__((noinline)) float largest_of_254(const float *x) {
  float before = largest_of_253(x);
  return x[253] > before ? x[253] : before;
}

static __attribute__((noinline)) float largest_of_255(const float *x) {
  float before = largest_of_254(x);
  return x[254] > before ? x[254] : before;
}

static __attribute__((noinline)) float largest_of_256(const float *x) {
  float before = largest_of_255(x);
  return x[255] > before ? x[255] : before;
}

static __attribute__((noinline)) float largest_of_257(const float *x) {
  float before = largest_of_256(x);
  return x[256] > before ? x[256] : before;
}

static __attribute__((noinline)) float largest_of_258(const float *x) {
  float before = largest_of_257(x);
  return x[257] > before ? x[257] : before;
}

static __attribute__((noinline)) float largest_of_259(const float *x) {
  float before = largest_of_258(x);
  return x[258] > before ? x[258] : before;
}

static __attribute__((noinline)) float largest_of_260(const float *x) {
  float before = largest_of_259(x);
  return x[259] > before ? x[259] : before;
}

static __attribute__((noinline)) float largest_of_261(const float *x) {
  float before = largest_of_260(x);
  return x[260] > before ? x[260] : before;
}

static __attribute__((noinline)) float largest_of_262(const float *x) {
  float before = largest_of_261(x);
  return x[261] > before ? x[261] : before;
}

static __attribute__((noinline)) float largest_of_263(const float *x) {
  float before = largest_of_262(x);
  return x[262] > before ? x[262] : before;
}

static __attribute__((noinline)) float largest_of_264(const float *x) {
  float before = largest_of_263(x);
  return x[263] > before ? x[263] : before;
}

static __attribute__((noinline)) float largest_of_265(const float *x) {
  float before = largest_of_264(x);
  return x[264] > before ? x[264] : before;
}

static __attribute__((noinline)) float largest_of_266(const float *x) {
  float before = largest_of_265(x);
  return x[265] > before ? x[265] : before;
}

static __attribute__((noinline)) float largest_of_267(const float *x) {
  float before = largest_of_266(x);
  return x[266] > before ? x[266] : before;
}

static __attribute__((noinline)) float largest_of_268(const float *x) {
  float before = largest_of_267(x);
  return x[267] > before ? x[267] : before;
}

static __attribute__((noinline)) float largest_of_269(const float *x) {
  float before = largest_of_268(x);
  return x[268] > before ? x[268] : before;
}

static __attribute__((noinline)) float largest_of_270(const float *x) {
  float before = largest_of_269(x);
  return x[269] > before ? x[269] : before;
}

static __attribute__((noinline)) float largest_of_271(const float *x) {
  float before = largest_of_270(x);
  return x[270] > before ? x[270] : before;
}

static __attribute__((noinline)) float largest_of_272(const float *x) {
  float before = largest_of_271(x);
  return x[271] > before ? x[271] : before;
}

static __attribute__((noinline)) float largest_of_273(const float *x) {
  float before = largest_of_272(x);
  return x[272] > before ? x[272] : before;
}

static __attribute__((noinline)) float largest_of_274(const float *x) {
  float before = largest_of_273(x);
  return x[273] > before ? x[273] : before;
}

static __attribute__((noinline)) float largest_of_275(const float *x) {
  float before = largest_of_274(x);
  return x[274] > before ? x[274] : before;
}

static __attribute__((noinline)) float largest_of_276(const float *x) {
  float before = largest_of_275(x);
  return x[275] > before ? x[275] : before;
}

static __attribute__((noinline)) float largest_of_277(const float *x) {
  float before = largest_of_276(x);
  return x[276] > before ? x[276] : before;
}

static __attribute__((noinline)) float largest_of_278(const float *x) {
  float before = largest_of_277(x);
  return x[277] > before ? x[277] : before;
}

static __attribute__((noinline)) float largest_of_279(const float *x) {
  float before = largest_of_278(x);
  return x[278] > before ? x[278] : before;
}

static __attribute__((noinline)) float largest_of_280(const float *x) {
  float before = largest_of_279(x);
  return x[279] > before ? x[279] : before;
}

static __attribute__((noinline)) float largest_of_281(const float *x) {
  float before = largest_of_280(x);
  return x[280] > before ? x[280] : before;
}

static __attribute__((noinline)) float largest_of_282(const float *x) {
  float before = largest_of_281(x);
  return x[281] > before ? x[281] : before;
}

static __attribute__((noinline)) float largest_of_283(const float *x) {
  float before = largest_of_282(x);
  return x[282] > before ? x[282] : before;
}

static __attribute__((noinline)) float largest_of_284(const float *x) {
  float before = largest_of_283(x);
  return x[283] > before ? x[283] : before;
}

static __attribute__((noinline)) float largest_of_285(const float *x) {
  float before = largest_of_284(x);
  return x[284] > before ? x[284] : before;
}

static __attribute__((noinline)) float largest_of_286(const float *x) {
  float before = largest_of_285(x);
  return x[285] > before ? x[285] : before;
}

static __attribute__((noinline)) float largest_of_287(const float *x) {
  float before = largest_of_286(x);
  return x[286] > before ? x[286] : before;
}

static __attribute__((noinline)) float largest_of_288(const float *x) {
  float before = largest_of_287(x);
  return x[287] > before ? x[287] : before;
}

static __attribute__((noinline)) float largest_of_289(const float *x) {
  float before = largest_of_288(x);
  return x[288] > before ? x[288] : before;
}

static __attribute__((noinline)) float largest_of_290(const float *x) {
  float before = largest_of_289(x);
  return x[289] > before ? x[289] : before;
}

static __attribute__((noinline)) float largest_of_291(const float *x) {
  float before = largest_of_290(x);
  return x[290] > before ? x[290] : before;
}

static __attribute__((noinline)) float largest_of_292(const float *x) {
  float before = largest_of_291(x);
  return x[291] > before ? x[291] : before;
}

static __attribute__((noinline)) float largest_of_293(const float *x) {
  float before = largest_of_292(x);
  return x[292] > before ? x[292] : before;
}

static __attribute__((noinline)) float largest_of_294(const float *x) {
  float before = largest_of_293(x);
  return x[293] > before ? x[293] : before;
}

static __attribute__((noinline)) float largest_of_295(const float *x) {
  float before = largest_of_294(x);
  return x[294] > before ? x[294] : before;
}

static __attribute__((noinline)) float largest_of_296(const float *x) {
  float before = largest_of_295(x);
  return x[295] > before ? x[295] : before;
}

static __attribute__((noinline)) float largest_of_297(const float *x) {
  float before = largest_of_296(x);
  return x[296] > before ? x[296] : before;
}

static __attribute__((noinline)) float largest_of_298(const float *x) {
  float before = largest_of_297(x);
  return x[297] > before ? x[297] : before;
}

static __attribute__((noinline)) float largest_of_299(const float *x) {
  float before = largest_of_298(x);
  return x[298] > before ? x[298] : before;
}

static __attribute__((noinline)) float largest_of_300(const float *x) {
  float before = largest_of_299(x);
  return x[299] > before ? x[299] : before;
}

static __attribute__((noinline)) float largest_of_301(const float *x) {
  float before = largest_of_300(x);
  return x[300] > before ? x[300] : before;
}

static __attribute__((noinline)) float largest_of_302(const float *x) {
  float before = largest_of_301(x);
  return x[301] > before ? x[301] : before;
}

static __attribute__((noinline)) float largest_of_303(const float *x) {
  float before = largest_of_302(x);
  return x[302] > before ? x[302] : before;
}

static __attribute__((noinline)) float largest_of_304(const float *x) {
  float before = largest_of_303(x);
  return x[303] > before ? x[303] : before;
}

static __attribute__((noinline)) float largest_of_305(const float *x) {
  float before = largest_of_304(x);
  return x[304] > before ? x[304] : before;
}

static __attribute__((noinline)) float largest_of_306(const float *x) {
  float before = largest_of_305(x);
  return x[305] > before ? x[305] : before;
}

static __attribute__((noinline)) float largest_of_307(const float *x) {
  float before = largest_of_306(x);
  return x[306] > before ? x[306] : before;
}

static __attribute__((noinline)) float largest_of_308(const float *x) {
  float before = largest_of_307(x);
  return x[307] > before ? x[307] : before;
}

static __attribute__((noinline)) float largest_of_309(const float *x) {
  float before = largest_of_308(x);
  return x[308] > before ? x[308] : before;
}

static __attribute__((noinline)) float largest_of_310(const float *x) {
  float before = largest_of_309(x);
  return x[309] > before ? x[309] : before;
}

static __attribute__((noinline)) float largest_of_311(const float *x) {
  float before = largest_of_310(x);
  return x[310] > before ? x[310] : before;
}

static __attribute__((noinline)) float largest_of_312(const float *x) {
  float before = largest_of_311(x);
  return x[311] > before ? x[311] : before;
}

static __attribute__((noinline)) float largest_of_313(const float *x) {
  float before = largest_of_312(x);
  return x[312] > before ? x[312] : before;
}

static __attribute__((noinline)) float largest_of_314(const float *x) {
  float before = largest_of_313(x);
  return x[313] > before ? x[313] : before;
}

static __attribute__((noinline)) float largest_of_315(const float *x) {
  float before = largest_of_314(x);
  return x[314] > before ? x[314] : before;
}

static __attribute__((noinline)) float largest_of_316(const float *x) {
  float before = largest_of_315(x);
  return x[315] > before ? x[315] : before;
}

static __attribute__((noinline)) float largest_of_317(const float *x) {
  float before = largest_of_316(x);
  return x[316] > before ? x[316] : before;
}

static __attribute__((noinline)) float largest_of_318(const float *x) {
  float before = largest_of_317(x);
  return x[317] > before ? x[317] : before;
}

static __attribute__((noinline)) float largest_of_319(const float *x) {
  float before = largest_of_318(x);
  return x[318] > before ? x[318] : before;
}

static __attribute__((noinline)) float largest_of_320(const float *x) {
  float before = largest_of_319(x);
  return x[319] > before ? x[319] : before;
}

static __attribute__((noinline)) float largest_of_321(const float *x) {
  float before = largest_of_320(x);
  return x[320] > before ? x[320] : before;
}

static __attribute__((noinline)) float largest_of_322(const float *x) {
  float before = largest_of_321(x);
  return x[321] > before ? x[321] : before;
}

static __attribute__((noinline)) float largest_of_323(const float *x) {
  float before = largest_of_322(x);
  return x[322] > before ? x[322] : before;
}

static __attribute__((noinline)) float largest_of_324(const float *x) {
  float before = largest_of_323(x);
  return x[323] > before ? x[323] : before;
}

static __attribute__((noinline)) float largest_of_325(const float *x) {
  float before = largest_of_324(x);
  return x[324] > before ? x[324] : before;
}

static __attribute__((noinline)) float largest_of_326(const float *x) {
  float before = largest_of_325(x);
  return x[325] > before ? x[325] : before;
}

static __attribute__((noinline)) float largest_of_327(const float *x) {
  float before = largest_of_326(x);
  return x[326] > before ? x[326] : before;
}

static __attribute__((noinline)) float largest_of_328(const float *x) {
  float before = largest_of_327(x);
  return x[327] > before ? x[327] : before;
}

static __attribute__((noinline)) float largest_of_329(const float *x) {
  float before = largest_of_328(x);
  return x[328] > before ? x[328] : before;
}

static __attribute__((noinline)) float largest_of_330(const float *x) {
  float before = largest_of_329(x);
  return x[329] > before ? x[329] : before;
}

static __attribute__((noinline)) float largest_of_331(const float *x) {
  float before = largest_of_330(x);
  return x[330] > before ? x[330] : before;
}

static __attribute__((noinline)) float largest_of_332(const float *x) {
  float before = largest_of_331(x);
  return x[331] > before ? x[331] : before;
}

static __attribute__((noinline)) float largest_of_333(const float *x) {
  float before = largest_of_332(x);
  return x[332] > before ? x[332] : before;
}

static __attribute__((noinline)) float largest_of_334(const float *x) {
  float before = largest_of_333(x);
  return x[333] > before ? x[333] : before;
}

static __attribute__((noinline)) float largest_of_335(const float *x) {
  float before = largest_of_334(x);
  return x[334] > before ? x[334] : before;
}

static __attribute__((noinline)) float largest_of_336(const float *x) {
  float before = largest_of_335(x);
  return x[335] > before ? x[335] : before;
}

static __attribute__((noinline)) float largest_of_337(const float *x) {
  float before = largest_of_336(x);
  return x[336] > before ? x[336] : before;
}

static __attribute__((noinline)) float largest_of_338(const float *x) {
  float before = largest_of_337(x);
  return x[337] > before ? x[337] : before;
}

static __attribute__((noinline)) float largest_of_339(const float *x) {
  float before = largest_of_338(x);
  return x[338] > before ? x[338] : before;
}

static __attribute__((noinline)) float largest_of_340(const float *x) {
  float before = largest_of_339(x);
  return x[339] > before ? x[339] : before;
}

static __attribute__((noinline)) float largest_of_341(const float *x) {
  float before = largest_of_340(x);
  return x[340] > before ? x[340] : before;
}

static __attribute__((noinline)) float largest_of_342(const float *x) {
  float before = largest_of_341(x);
  return x[341] > before ? x[341] : before;
}

static __attribute__((noinline)) float largest_of_343(const float *x) {
  float before = largest_of_342(x);
  return x[342] > before ? x[342] : before;
}

static __attribute__((noinline)) float largest_of_344(const float *x) {
  float before = largest_of_343(x);
  return x[343] > before ? x[343] : before;
}

static __attribute__((noinline)) float largest_of_345(const float *x) {
  float before = largest_of_344(x);
  return x[344] > before ? x[344] : before;
}

static __attribute__((noinline)) float largest_of_346(const float *x) {
  float before = largest_of_345(x);
  return x[345] > before ? x[345] : before;
}

static __attribute__((noinline)) float largest_of_347(const float *x) {
  float before = largest_of_346(x);
  return x[346] > before ? x[346] : before;
}

static __attribute__((noinline)) float largest_of_348(const float *x) {
  float before = largest_of_347(x);
  return x[347] > before ? x[347] : before;
}

static __attribute__((noinline)) float largest_of_349(const float *x) {
  float before = largest_of_348(x);
  return x[348] > before ? x[348] : before;
}

static __attribute__((noinline)) float largest_of_350(const float *x) {
  float before = largest_of_349(x);
  return x[349] > before ? x[349] : before;
}

static __attribute__((noinline)) float largest_of_351(const float *x) {
  float before = largest_of_350(x);
  return x[350] > before ? x[350] : before;
}

static __attribute__((noinline)) float largest_of_352(const float *x) {
  float before = largest_of_351(x);
  return x[351] > before ? x[351] : before;
}

static __attribute__((noinline)) float largest_of_353(const float *x) {
  float before = largest_of_352(x);
  return x[352] > before ? x[352] : before;
}

static __attribute__((noinline)) float largest_of_354(const float *x) {
  float before = largest_of_353(x);
  return x[353] > before ? x[353] : before;
}

static __attribute__((noinline)) float largest_of_355(const float *x) {
  float before = largest_of_354(x);
  return x[354] > before ? x[354] : before;
}

static __attribute__((noinline)) float largest_of_356(const float *x) {
  float before = largest_of_355(x);
  return x[355] > before ? x[355] : before;
}

static __attribute__((noinline)) float largest_of_357(const float *x) {
  float before = largest_of_356(x);
  return x[356] > before ? x[356] : before;
}

static __attribute__((noinline)) float largest_of_358(const float *x) {
  float before = largest_of_357(x);
  return x[357] > before ? x[357] : before;
}

static __attribute__((noinline)) float largest_of_359(const float *x) {
  float before = largest_of_358(x);
  return x[358] > before ? x[358] : before;
}

static __attribute__((noinline)) float largest_of_360(const float *x) {
  float before = largest_of_359(x);
  return x[359] > before ? x[359] : before;
}

static __attribute__((noinline)) float largest_of_361(const float *x) {
  float before = largest_of_360(x);
  return x[360] > before ? x[360] : before;
}

static __attribute__((noinline)) float largest_of_362(const float *x) {
  float before = largest_of_361(x);
  return x[361] > before ? x[361] : before;
}

static __attribute__((noinline)) float largest_of_363(const float *x) {
  float before = largest_of_362(x);
  return x[362] > before ? x[362] : before;
}

static __attribute__((noinline)) float largest_of_364(const float *x) {
  float before = largest_of_363(x);
  return x[363] > before ? x[363] : before;
}

static __attribute__((noinline)) float largest_of_365(const float *x) {
  float before = largest_of_364(x);
  return x[364] > before ? x[364] : before;
}

static __attribute__((noinline)) float largest_of_366(const float *x) {
  float before = largest_of_365(x);
  return x[365] > before ? x[365] : before;
}

static __attribute__((noinline)) float largest_of_367(const float *x) {
  float before = largest_of_366(x);
  return x[366] > before ? x[366] : before;
}

static __attribute__((noinline)) float largest_of_368(const float *x) {
  float before = largest_of_367(x);
  return x[367] > before ? x[367] : before;
}

static __attribute__((noinline)) float largest_of_369(const float *x) {
  float before = largest_of_368(x);
  return x[368] > before ? x[368] : before;
}

static __attribute__((noinline)) float largest_of_370(const float *x) {
  float before = largest_of_369(x);
  return x[369] > before ? x[369] : before;
}

static __attribute__((noinline)) float largest_of_371(const float *x) {
  float before = largest_of_370(x);
  return x[370] > before ? x[370] : before;
}

static __attribute__((noinline)) float largest_of_372(const float *x) {
  float before = largest_of_371(x);
  return x[371] > before ? x[371] : before;
}

static __attribute__((noinline)) float largest_of_373(const float *x) {
  float before = largest_of_372(x);
  return x[372] > before ? x[372] : before;
}

static __attribute__((noinline)) float largest_of_374(const float *x) {
  float before = largest_of_373(x);
  return x[373] > before ? x[373] : before;
}

static __attribute__((noinline)) float largest_of_375(const float *x) {
  float before = largest_of_374(x);
  return x[374] > before ? x[374] : before;
}

static __attribute__((noinline)) float largest_of_376(const float *x) {
  float before = largest_of_375(x);
  return x[375] > before ? x[375] : before;
}

static __attribute__((noinline)) float largest_of_377(const float *x) {
  float before = largest_of_376(x);
  return x[376] > before ? x[376] : before;
}

static __attribute__((noinline)) float largest_of_378(const float *x) {
  float before = largest_of_377(x);
  return x[377] > before ? x[377] : before;
}

static __attribute__((noinline)) float largest_of_379(const float *x) {
  float before = largest_of_378(x);
  return x[378] > before ? x[378] : before;
}

static __attribute__((noinline)) float largest_of_380(const float *x) {
  float before = largest_of_379(x);
  return x[379] > before ? x[379] : before;
}

static __attribute__((noinline)) float largest_of_381(const float *x) {
  float before = largest_of_380(x);
  return x[380] > before ? x[380] : before;
}

static __attribute__((noinline)) float largest_of_382(const float *x) {
  float before = largest_of_381(x);
  return x[381] > before ? x[381] : before;
}

static __attribute__((noinline)) float largest_of_383(const float *x) {
  float before = largest_of_382(x);
  return x[382] > before ? x[382] : before;
}

static __attribute__((noinline)) float largest_of_384(const float *x) {
  float before = largest_of_383(x);
  return x[383] > before ? x[383] : before;
}

static __attribute__((noinline)) float largest_of_385(const float *x) {
  float before = largest_of_384(x);
  return x[384] > before ? x[384] : before;
}

static __attribute__((noinline)) float largest_of_386(const float *x) {
  float before = largest_of_385(x);
  return x[385] > before ? x[385] : before;
}

static __attribute__((noinline)) float largest_of_387(const float *x) {
  float before = largest_of_386(x);
  return x[386] > before ? x[386] : before;
}

static __attribute__((noinline)) float largest_of_388(const float *x) {
  float before = largest_of_387(x);
  return x[387] > before ? x[387] : before;
}

static __attribute__((noinline)) float largest_of_389(const float *x) {
  float before = largest_of_388(x);
  return x[388] > before ? x[388] : before;
}

static __attribute__((noinline)) float largest_of_390(const float *x) {
  float before = largest_of_389(x);
  return x[389] > before ? x[389] : before;
}

static float (*const by_length[])(const float *) = {
    largest_of_1, largest_of_2, largest_of_3, largest_of_4, largest_of_5, largest_of_6, largest_of_7, largest_of_8,
    largest_of_9, largest_of_10, largest_of_11, largest_of_12, largest_of_13, largest_of_14, largest_of_15,
    largest_of_16, largest_of_17, largest_of_18, largest_of_19, largest_of_20, largest_of_21, largest_of_22,
    largest_of_23, largest_of_24, largest_of_25, largest_of_26, largest_of_27, largest_of_28, largest_of_29,
    largest_of_30, largest_of_31, largest_of_32, largest_of_33, largest_of_34, largest_of_35, largest_of_36,
    largest_of_37, largest_of_38, largest_of_39, largest_of_40, largest_of_41, largest_of_42, largest_of_43,
    largest_of_44, largest_of_45, largest_of_46, largest_of_47, largest_of_48, largest_of_49, largest_of_50,
    largest_of_51, largest_of_52, largest_of_53, largest_of_54, largest_of_55, largest_of_56, largest_of_57,
    largest_of_58, largest_of_59, largest_of_60, largest_of_61, largest_of_62, largest_of_63, largest_of_64,
    largest_of_65, largest_of_66, largest_of_67, largest_of_68, largest_of_69, largest_of_70, largest_of_71,
    largest_of_72, largest_of_73, largest_of_74, largest_of_75, largest_of_76, largest_of_77, largest_of_78,
    largest_of_79, largest_of_80, largest_of_81, largest_of_82, largest_of_83, largest_of_84, largest_of_85,
    largest_of_86, largest_of_87, largest_of_88, largest_of_89, largest_of_90, largest_of_91, largest_of_92,
    largest_of_93, largest_of_94, largest_of_95, largest_of_96, largest_of_97, largest_of_98, largest_of_99,
    largest_of_100, largest_of_101, largest_of_102, largest_of_103, largest_of_104, largest_of_105, largest_of_106,
    largest_of_107, largest_of_108, largest_of_109, largest_of_110, largest_of_111, largest_of_112, largest_of_113,
    largest_of_114, largest_of_115, largest_of_116, largest_of_117, largest_of_118, largest_of_119, largest_of_120,
    largest_of_121, largest_of_122, largest_of_123, largest_of_124, largest_of_125, largest_of_126, largest_of_127,
    largest_of_128, largest_of_129, largest_of_130, largest_of_131, largest_of_132, largest_of_133, largest_of_134,
    largest_of_135, largest_of_136, largest_of_137, largest_of_138, largest_of_139, largest_of_140, largest_of_141,
    largest_of_142, largest_of_143, largest_of_144, largest_of_145, largest_of_146, largest_of_147, largest_of_148,
    largest_of_149, largest_of_150, largest_of_151, largest_of_152, largest_of_153, largest_of_154, largest_of_155,
    largest_of_156, largest_of_157, largest_of_158, largest_of_159, largest_of_160, largest_of_161, largest_of_162,
    largest_of_163, largest_of_164, largest_of_165, largest_of_166, largest_of_167, largest_of_168, largest_of_169,
    largest_of_170, largest_of_171, largest_of_172, largest_of_173, largest_of_174, largest_of_175, largest_of_176,
    largest_of_177, largest_of_178, largest_of_179, largest_of_180, largest_of_181, largest_of_182, largest_of_183,
    largest_of_184, largest_of_185, largest_of_186, largest_of_187, largest_of_188, largest_of_189, largest_of_190,
    largest_of_191, largest_of_192, largest_of_193, largest_of_194, largest_of_195, largest_of_196, largest_of_197,
    largest_of_198, largest_of_199, largest_of_200, largest_of_201, largest_of_202, largest_of_203, largest_of_204,
    largest_of_205, largest_of_206, largest_of_207, largest_of_208, largest_of_209, largest_of_210, largest_of_211,
    largest_of_212, largest_of_213, largest_of_214, largest_of_215, largest_of_216, largest_of_217, largest_of_218,
    largest_of_219, largest_of_220, largest_of_221, largest_of_222, largest_of_223, largest_of_224, largest_of_225,
    largest_of_226, largest_of_227, largest_of_228, largest_of_229, largest_of_230, largest_of_231, largest_of_232,
    largest_of_233, largest_of_234, largest_of_235, largest_of_236, largest_of_237, largest_of_238, largest_of_239,
    largest_of_240, largest_of_241, largest_of_242, largest_of_243, largest_of_244, largest_of_245, largest_of_246,
    largest_of_247, largest_of_248, largest_of_249, largest_of_250, largest_of_251, largest_of_252, largest_of_253,
    largest_of_254, largest_of_255, largest_of_256, largest_of_257, largest_of_258, largest_of_259, largest_of_260,
    largest_of_261, largest_of_262, largest_of_263, largest_of_264, largest_of_265, largest_of_266, largest_of_267,
    largest_of_268, largest_of_269, largest_of_270, largest_of_271, largest_of_272, largest_of_273, largest_of_274,
    largest_of_275, largest_of_276, largest_of_277, largest_of_278, largest_of_279, largest_of_280, largest_of_281,
    largest_of_282, largest_of_283, largest_of_284, largest_of_285, largest_of_286, largest_of_287, largest_of_288,
    largest_of_289, largest_of_290, largest_of_291, largest_of_292, largest_of_293, largest_of_294, largest_of_295,
    largest_of_296, largest_of_297, largest_of_298, largest_of_299, largest_of_300, largest_of_301, largest_of_302,
    largest_of_303, largest_of_304, largest_of_305, largest_of_306, largest_of_307, largest_of_308, largest_of_309,
    largest_of_310, largest_of_311, largest_of_312, largest_of_313, largest_of_314, largest_of_315, largest_of_316,
    largest_of_317, largest_of_318, largest_of_319, largest_of_320, largest_of_321, largest_of_322, largest_of_323,
    largest_of_324, largest_of_325, largest_of_326, largest_of_327, largest_of_328, largest_of_329, largest_of_330,
    largest_of_331, largest_of_332, largest_of_333, largest_of_334, largest_of_335, largest_of_336, largest_of_337,
    largest_of_338, largest_of_339, largest_of_340, largest_of_341, largest_of_342, largest_of_343, largest_of_344,
    largest_of_345, largest_of_346, largest_of_347, largest_of_348, largest_of_349, largest_of_350, largest_of_351,
    largest_of_352, largest_of_353, largest_of_354, largest_of_355, largest_of_356, largest_of_357, largest_of_358,
    largest_of_359, largest_of_360, largest_of_361, largest_of_362, largest_of_363, largest_of_364, largest_of_365,
    largest_of_366, largest_of_367, largest_of_368, largest_of_369, largest_of_370, largest_of_371, largest_of_372,
    largest_of_373, largest_of_374, largest_of_375, largest_of_376, largest_of_377, largest_of_378, largest_of_379,
    largest_of_380, largest_of_381, largest_of_382, largest_of_383, largest_of_384, largest_of_385, largest_of_386,
    largest_of_387, largest_of_388, largest_of_389, largest_of_390,
};

enum { LONGEST = 390 };

void segment_max(const int64_t *first, const float *x, float *out, int64_t segments, int64_t n, float start) {
  (void)n;
  for (int64_t s = 0; s < segments; s++) {
    float best = start;
    for (int64_t i = first[s]; i < first[s + 1]; i += LONGEST) {
      int64_t count = first[s + 1] - i < LONGEST ? first[s + 1] - i : LONGEST;
      float largest = by_length[count - 1](x + i);
      best = largest > best ? largest : best;
    }
    out[s] = best;
  }
}
