/* kernel: nbody
   outcome: solved

   std::thread, std::async, a mutex and a condition variable; all of them have ended when the call returns. */
#include <cmath>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <future>
#include <mutex>
#include <thread>
#include <vector>

struct Bodies {
  const float *x, *y, *z, *mass;
  float *ax, *ay, *az, floor_square;
  int64_t n;

  void pulled(int64_t first, int64_t end) const {
    for (int64_t i = first; i < end; i++) {
      double sum[3] = {};
      for (int64_t j = 0; j < n; j++) {
        double d[3] = {double(x[j]) - x[i], double(y[j]) - y[i], double(z[j]) - z[i]};
        double square = d[0] * d[0] + d[1] * d[1] + d[2] * d[2] + floor_square;
        double pull = mass[j] / (square * std::sqrt(square));
        for (int k = 0; k < 3; k++) sum[k] += d[k] * pull;
      }
      ax[i] = float(sum[0]), ay[i] = float(sum[1]), az[i] = float(sum[2]);
    }
  }
};

extern "C" void nbody(const float *x, const float *y, const float *z, const float *mass, float *ax, float *ay,
                      float *az, int64_t n, float soft) {
  Bodies bodies{x, y, z, mass, ax, ay, az, soft * soft + 0x1p-10f, n};
  std::mutex mutex;
  std::condition_variable opened;
  bool open = false;
  auto rest = std::async(std::launch::async, [&] { bodies.pulled(n / 2, n); });
  std::vector<std::thread> threads;
  for (int64_t t = 0; t < 2; t++)
    threads.emplace_back([&, t] {
      std::unique_lock lock(mutex);
      opened.wait(lock, [&] { return open; });
      lock.unlock();
      bodies.pulled(n / 2 * t / 2, n / 2 * (t + 1) / 2);
    });
  {
    std::lock_guard lock(mutex);
    open = true;
    opened.notify_all();
  }
  for (auto &thread : threads) thread.join();
  rest.get();
}
