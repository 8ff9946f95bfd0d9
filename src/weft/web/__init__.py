"""Views over receipts, for browsers and documents."""
