"""python -m app: start the page."""

from app.start import main

main()
