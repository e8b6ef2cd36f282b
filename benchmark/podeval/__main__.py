"""The entry point of `python -m podeval` and `accelerate launch -m podeval`."""

from podeval.cli import main

if __name__ == "__main__":
    main()
