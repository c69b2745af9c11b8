"""The dashboard: a static site of many runs over time, built from records alone and readable without a server."""
