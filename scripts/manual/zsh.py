"""Completion for zsh: a function for each command, with the specifications of _arguments."""

from .commands import quote


def plain(text):
    """Text inside the brackets of a specification."""
    return "".join("\\" + c if c in "[]:\\" else c for c in text)


def values(option):
    if option.name == "set":
        return ":setting:_thinwire_settings"
    if option.words:
        return f":value:({' '.join(option.words)})"
    return ":file:_files" if option.takes_file else f":{plain(option.value)}: "


def specification(option):
    """One word for each flag; a repeated flag is offered again."""
    value = values(option) if option.value else ""
    return [quote(f"*{flag}[{plain(option.help)}]{value}") for flag in option.flags]


def function(name, command):
    words = [word for option in command.options for word in specification(option)]
    if not command.subcommands:
        if command.words:
            words.append(quote(f"1:word:({' '.join(command.words)})"))
        words.append("'*:file:_files'")
        return f"{name}() {{\n  _arguments \\\n    " + " \\\n    ".join(words) + "\n}\n"
    text = "".join(function(f"{name}_{sub.name}", sub) for sub in command.subcommands)
    return text + dispatcher(name, words, command.subcommands)


def identifier(name):
    return name.replace("-", "_")


def dispatcher(name, words, commands):
    """A function that completes a word and then what belongs to it."""
    offered = "\n".join("    " + quote(f"{one.name}:{one.help}") for one in commands)
    lines = [f"{name}() {{", "  local curcontext=$curcontext state line", "  local -a offered",
             "  typeset -A opt_args", f"  offered=(\n{offered}\n  )",
             "  _arguments -C \\\n    " + " \\\n    ".join([*words, "'1:command:->command'",
                                                           "'*::argument:->argument'"]),
             "  case $state in", "    command) _describe command offered ;;", "    argument)",
             "      case $line[1] in"]
    lines += [f"        {one.name}) {name}_{identifier(one.name)} ;;" for one in commands]
    return "\n".join([*lines, "      esac", "      ;;", "  esac", "}"]) + "\n"


def script(commands):
    text = "#compdef thinwire\n# zsh completion of thinwire, made from its option tables\n"
    settings = next(option.words for command in commands for option in command.options
                    if option.name == "set")
    text += "_thinwire_settings() { compadd -S '' -- " + " ".join(map(quote, settings)) + " }\n"
    text += "".join(function(f"_thinwire_{identifier(one.name)}", one) for one in commands)
    general = [quote("(-h --help)" + flag + "[print the commands]") for flag in ("-h", "--help")]
    general.append("'--version[print the versions of this build]'")
    return text + dispatcher("_thinwire", general, commands) + '_thinwire "$@"\n'
