"""Other engines read what this tool writes, and it reads what they write. Marked `engines`: each test starts one of them."""
