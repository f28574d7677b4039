"""zsh_offers.py FOLDER LINE: prints what zsh offers for the last word of a command line.

Starts zsh with the completion in FOLDER, replaces the function that shows what is offered, and
completes the line as if the user had typed it and pressed Tab.
"""

import os
import pty
import select
import sys
import tempfile
import time

SETUP = r"""
PS1='ready> '
zstyle ':completion:*' list-prompt ''
LISTMAX=0
fpath=({folder} $fpath)
autoload -Uz compinit
compinit -D -u
# compadd: -O and -D are of the completion system itself; all else is offered
compadd() {{
  if [[ "${{(j: :)@[1,(i)(-|--)]}} " == *-(O|A|D)\ * ]]; then builtin compadd "$@"; return; fi
  local -a found
  builtin compadd -O found "$@"
  print -rl -- $found >>{output}
  builtin compadd "$@"
}}
done-completing() {{ print -r -- end-of-offers >>{output} }}
zle -N done-completing
bindkey '^X' done-completing
"""


def read_until(terminal, word, seconds):
    """Reads the terminal until it shows the word."""
    text, end = b"", time.monotonic() + seconds
    while word not in text and time.monotonic() < end:
        if select.select([terminal], [], [], 0.1)[0]:
            text += os.read(terminal, 65536)


def main(folder, line):
    with tempfile.TemporaryDirectory() as home:
        output = os.path.join(home, "offers")
        with open(os.path.join(home, ".zshrc"), "w", encoding="utf-8") as file:
            file.write(SETUP.format(folder=folder, output=output))
        open(output, "w", encoding="utf-8").close()
        child, terminal = pty.fork()
        if child == 0:
            environment = {**os.environ, "ZDOTDIR": home, "TERM": "dumb"}
            os.execvpe("zsh", ["zsh", "-d", "-i"], environment)
        read_until(terminal, b"ready> ", 20)
        os.write(terminal, line.encode() + b"\t\x18")
        end, offers = time.monotonic() + 20, ""
        while "end-of-offers" not in offers and time.monotonic() < end:
            if select.select([terminal], [], [], 0.05)[0]:
                os.read(terminal, 65536)
            with open(output, encoding="utf-8") as file:
                offers = file.read()
        os.kill(child, 9)
        os.waitpid(child, 0)
    print("\n".join(sorted({word for word in offers.split() if word != "end-of-offers"})))


if __name__ == "__main__":
    main(*sys.argv[1:])
