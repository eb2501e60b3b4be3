"""The builder's prompts as text files.

Source:
    Our own wording after DeepEra, section 6.2 and Fig. 10; the paper describes these steps and
    prints the prompt of one of them.
"""

PACKAGE = __name__
