"""Completion for fish: a line for each flag, with the commands before it as the condition."""


def quote(text):
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


FUNCTIONS = """\
# the words of the command line so far, without flags
function __thinwire_words
    commandline -opc | string match -v -- '-*'
end
# whether they begin with `thinwire WORD...`
function __thinwire_at
    set -l words (__thinwire_words)
    for i in (seq (count $argv))
        test "$words[$(math $i + 1)]" = "$argv[$i]"; or return 1
    end
end
# whether they are `thinwire WORD...`
function __thinwire_is
    __thinwire_at $argv; and test (count (__thinwire_words)) -eq (math (count $argv) + 1)
end
"""


def line(condition, *words):
    return " ".join(["complete -c thinwire", f"-n {quote(condition)}", *words])


def of_command(path, command):
    """Lines for the flags of a command and for its subcommands; `path` is like `bench comm`."""
    lines = []
    at = f"{'__thinwire_is' if command.subcommands else '__thinwire_at'} {path}"
    for option in command.options:
        words = [f"-s {option.letter}"] * bool(option.letter) + [f"-l {option.name}"]
        if option.words:
            words.append(f"-x -a {quote(' '.join(option.words))}")
        elif option.value:
            words.append("-r" if option.takes_file else "-x")
        lines.append(line(at, *words, f"-d {quote(option.help)}"))
    if command.words:
        lines.append(line(f"__thinwire_is {path}", f"-f -a {quote(' '.join(command.words))}"))
    for sub in command.subcommands:
        lines.append(line(at, f"-f -a {sub.name} -d {quote(sub.help)}"))
        lines += of_command(f"{path} {sub.name}", sub)
    return lines


def script(commands):
    lines = ["# fish completion of thinwire, made from its option tables", FUNCTIONS,
             line("__thinwire_is", "-f"),
             line("__thinwire_is", "-s h -l help -d 'print the commands'"),
             line("__thinwire_is", "-l version -d 'print the versions of this build'")]
    for command in commands:
        lines.append(line("__thinwire_is", f"-f -a {command.name} -d {quote(command.help)}"))
        lines += of_command(command.name, command)
    return "\n".join(lines) + "\n"
