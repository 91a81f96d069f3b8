"""Where measurements come from: scrapes that workers record in Redis, and a Prometheus server where there is one."""
