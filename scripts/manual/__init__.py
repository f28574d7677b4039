"""Manual pages and completions of `thinwire`, from the option tables of its programs and scripts.

commands.py reads the commands with their options, man.py, bash.py, zsh.py and fish.py write.
"""
