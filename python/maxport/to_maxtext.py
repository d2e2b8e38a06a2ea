"""`python -m maxport.to_maxtext ...`: the command `maxport to_maxtext`.

It takes the arguments of `python -m maxtext.checkpoint_conversion.to_maxtext`.
"""

import sys

from maxport.__main__ import main

if __name__ == "__main__":
  main(["to_maxtext", *sys.argv[1:]])
