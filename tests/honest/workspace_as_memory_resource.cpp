/* kernel: segment_max
   outcome: solved
   workspace: 65536

   Containers that live in the workspace, through a memory resource of the standard library. */
#include <algorithm>
#include <cstdint>
#include <list>
#include <memory_resource>
#include <vector>

extern "C" void segment_max(const int64_t *first, const float *x, float *out, int64_t segments, int64_t, float start,
                            void *workspace, int64_t workspace_bytes) {
  for (int64_t s = 0; s < segments; s++) {
    std::pmr::monotonic_buffer_resource pool(workspace, static_cast<std::size_t>(workspace_bytes),
                                             std::pmr::new_delete_resource());
    std::pmr::vector<float> chunk(&pool);
    std::pmr::list<float> tops({start}, &pool);
    for (int64_t i = first[s]; i < first[s + 1]; i += 1024) {
      chunk.assign(x + i, x + std::min(i + 1024, first[s + 1]));
      tops.push_back(*std::max_element(chunk.begin(), chunk.end()));
    }
    out[s] = *std::max_element(tops.begin(), tops.end());
  }
}
