"""Search and recall: which stored texts answer a query."""
