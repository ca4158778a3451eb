/* HIP's error codes, their names and texts, and the last error. */
#ifndef KC_ERRORS_H
#define KC_ERRORS_H

#define KC_ERRORS(entry)                                                                         \
  entry(hipSuccess, 0, "no error")                                                               \
  entry(hipErrorInvalidValue, 1, "invalid argument")                                             \
  entry(hipErrorOutOfMemory, 2, "out of memory")                                                 \
  entry(hipErrorNotInitialized, 3, "initialization error")                                       \
  entry(hipErrorDeinitialized, 4, "driver shutting down")                                        \
  entry(hipErrorInvalidConfiguration, 9, "invalid configuration argument")                       \
  entry(hipErrorInvalidPitchValue, 12, "invalid pitch argument")                                 \
  entry(hipErrorInvalidSymbol, 13, "invalid device symbol")                                      \
  entry(hipErrorInvalidDevicePointer, 17, "invalid device pointer")                              \
  entry(hipErrorInvalidMemcpyDirection, 21, "invalid copy direction for memcpy")                 \
  entry(hipErrorInsufficientDriver, 35, "driver version is insufficient for runtime version")    \
  entry(hipErrorMissingConfiguration, 52, "__global__ function call is not configured")          \
  entry(hipErrorPriorLaunchFailure, 53, "unspecified launch failure in prior launch")            \
  entry(hipErrorInvalidDeviceFunction, 98, "invalid device function")                            \
  entry(hipErrorNoDevice, 100, "no ROCm-capable device is detected")                             \
  entry(hipErrorInvalidDevice, 101, "invalid device ordinal")                                    \
  entry(hipErrorInvalidImage, 200, "device kernel image is invalid")                             \
  entry(hipErrorInvalidContext, 201, "invalid device context")                                   \
  entry(hipErrorInvalidHandle, 400, "invalid resource handle")                                   \
  entry(hipErrorIllegalState, 401, "the operation cannot be performed in the present state")     \
  entry(hipErrorNotFound, 500, "named symbol not found")                                         \
  entry(hipErrorNotReady, 600, "device not ready")                                               \
  entry(hipErrorIllegalAddress, 700, "an illegal memory access was encountered")                 \
  entry(hipErrorLaunchOutOfResources, 701, "out of resources for launch")                        \
  entry(hipErrorLaunchTimeOut, 702, "the launch timed out and was terminated")                   \
  entry(hipErrorAssert, 710, "device-side assert triggered")                                     \
  entry(hipErrorHostMemoryAlreadyRegistered, 712, "part or all of the requested memory range is already mapped") \
  entry(hipErrorHostMemoryNotRegistered, 713, "pointer does not correspond to a registered memory region") \
  entry(hipErrorLaunchFailure, 719, "unspecified launch failure")                                \
  entry(hipErrorCooperativeLaunchTooLarge, 720, "too many blocks in cooperative launch")         \
  entry(hipErrorNotSupported, 801, "operation not supported")                                    \
  entry(hipErrorUnknown, 999, "unknown error")                                                   \
  entry(hipErrorRuntimeMemory, 1052, "runtime memory call returned error")                       \
  entry(hipErrorRuntimeOther, 1053, "runtime call other than memory returned error")

enum hipError_t {
#define KC_CODE(name, code, text) name = code,
  KC_ERRORS(KC_CODE)
#undef KC_CODE
  hipErrorMemoryAllocation = hipErrorOutOfMemory,
  hipErrorInitializationError = hipErrorNotInitialized,
  hipErrorInvalidResourceHandle = hipErrorInvalidHandle,
};

static inline const char *hipGetErrorName(hipError_t error) {
  switch (error) {
#define KC_NAME(name, code, text) case name: return #name;
    KC_ERRORS(KC_NAME)
#undef KC_NAME
  }
  return "hipErrorUnknown";
}

static inline const char *hipGetErrorString(hipError_t error) {
  switch (error) {
#define KC_TEXT(name, code, text) case name: return text;
    KC_ERRORS(KC_TEXT)
#undef KC_TEXT
  }
  return "unknown error";
}
#undef KC_ERRORS

namespace kc {

static hipError_t last_error;

/* What a call of the runtime returns; an error is kept until someone asks for the last one. */
static inline hipError_t answer(hipError_t error) {
  if (error != hipSuccess) last_error = error;
  return error;
}

}  // namespace kc

static inline hipError_t hipPeekAtLastError() { return kc::last_error; }

static inline hipError_t hipGetLastError() {
  hipError_t error = kc::last_error;
  kc::last_error = hipSuccess;
  return error;
}
#endif
