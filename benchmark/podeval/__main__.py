"""`python -m podeval`, and so `accelerate launch -m podeval`."""

from podeval.cli import main

if __name__ == "__main__":
    main()
