/* kernel: prefix_sum
   outcome: solved

   The running sums come out of a coroutine, one at a time. */
#include <coroutine>
#include <cstdint>
#include <exception>

struct Sums {
  struct promise_type {
    double current = 0;
    Sums get_return_object() { return {std::coroutine_handle<promise_type>::from_promise(*this)}; }
    std::suspend_always initial_suspend() noexcept { return {}; }
    std::suspend_always final_suspend() noexcept { return {}; }
    std::suspend_always yield_value(double value) noexcept {
      current = value;
      return {};
    }
    void return_void() noexcept {}
    void unhandled_exception() { std::terminate(); }
  };
  std::coroutine_handle<promise_type> handle;
  double next() const {
    handle.resume();
    return handle.promise().current;
  }
};

static Sums running(const float *x, int64_t n) {
  double sum = 0;
  for (int64_t i = 0; i < n; i++) co_yield sum += x[i];
}

extern "C" void prefix_sum(const float *x, float *out, int64_t n) {
  Sums sums = running(x, n);
  for (int64_t i = 0; i < n; i++) out[i] = static_cast<float>(sums.next());
  sums.handle.destroy();
}
