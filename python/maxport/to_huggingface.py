"""`python -m maxport.to_huggingface ...`: the command `maxport to_huggingface`.

It takes the arguments of `python -m maxtext.checkpoint_conversion.to_huggingface`.
"""

import sys

from maxport.__main__ import main

if __name__ == "__main__":
  main(["to_huggingface", *sys.argv[1:]])
