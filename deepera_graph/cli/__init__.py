"""The command line `deepera`: a module a group of commands, with their options, help and work.

What a command works with is imported when it runs, so that every ``--help`` is quick. `options` has
the options that commands share, `opening` what is made of them, `console` how commands speak.
"""
