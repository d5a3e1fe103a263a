// What the variants of the fake HIP runtime differ in besides what they export.
extern const int kFakeHipVersion;
const int kFakeHipVersion = WEIR_FAKE_HIP_VERSION;  // 60443483 is HIP 6.4, 50221153 is HIP 5.2
