"""The image of belfry without Docker: built (`build.py`), and run (`check.py`)."""
