"""What else lives in Redis, and how to reach it; only this package and the ledger import redis."""
