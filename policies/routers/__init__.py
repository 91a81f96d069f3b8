"""What a router knows of its workers, read from its own API and its metrics.

What sglang-router 0.3.2 (sgl-model-gateway) does, measured with small engines on the loopback:
- `DELETE /workers/{id}` answers 202; within 5 ms nothing new is sent to the worker. Requests in flight, streamed or
  not, are finished. An id is a UUID and another one after each registration; a url in its place is a 400.
- While requests are in flight, `load` in /workers and `smg_worker_requests_active` count them only with the policy
  cache_aware or in PD mode, and a streamed one only until its answer begins. With the removal the series becomes 0
  whatever is in flight, and shows some of them again when the next one ends. So a router's count above 0 tells of
  requests, and 0 tells nothing.
- `POST /workers` answers 202 for anything with a url, also for one that cannot work. It asks /health, /server_info and
  /model_info at once. A worker that answers is listed, healthy and sent requests within 50 ms, with a closed breaker
  and without waiting for the health checks that a listed one needs to come back. One that does not answer is given up
  after about 4 s: the job is `failed` in /workers/{id}, it is in no list, and nobody tries again.
- The same url once more fails as `already exists`; another spelling of it (a slash at the end) is a second worker.
- With `--dp-aware` a worker is listed by its ranks (`url@0`), and a DELETE by the id of a rank removes nobody.
- The last worker can be removed; the router then answers 503 to everybody.
- A breaker that is open leaves `is_healthy` true; only `smg_worker_cb_state` tells (0 closed, 1 open, 2 half open, -1
  removed). It is closed in a worker that was removed and registered again.
- A router that restarts knows the workers of its command line and no others.
- With `--api-key` everything but /liveness, /readiness and /health is 401 without it. A worker's own key is never told.
"""
