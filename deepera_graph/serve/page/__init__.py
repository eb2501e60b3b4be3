"""The page at ``/``: a question, its passages, and what judges say of them, in a browser.

Its files are served as they are: HTML, one style sheet and ES modules, with no build step and
nothing from other hosts.
"""
