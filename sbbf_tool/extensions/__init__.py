"""What serves one system or one purpose: a folder each, beside the core, which works without any of them."""
