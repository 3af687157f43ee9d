"""The page under load: `python -m tests.app.load` measures the real app with visitors and a browser."""
