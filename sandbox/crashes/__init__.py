"""The crash matrix: whatever dies at whatever moment, nothing is lost, done twice or claimed falsely."""
