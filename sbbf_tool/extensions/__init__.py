"""Extensions: one folder per system or purpose. The core works without any of them."""
