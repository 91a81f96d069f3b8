"""Policy tried out: on cases that a person wrote, and on changes that were decided before."""
