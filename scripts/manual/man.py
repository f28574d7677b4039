"""Manual pages in roff: thinwire.1 and a page for each command."""

import re


def escape(text):
    """Text that roff prints as it is."""
    return text.replace("\\", "\\e").replace("-", "\\-")


def safe(line):
    """A line that does not begin with a control character, which roff would take for a request."""
    return ("\\&" if line[:1] in (".", "'") else "") + escape(line)


def paragraph(text):
    """Paragraphs are filled; indented lines stay as they are."""
    text = "\n".join(f"    {line[2:]}" if re.match("  [^ ]", line) else line
                     for line in text.splitlines())
    blocks = []
    for block in text.split("\n\n"):
        lines = block.strip("\n").splitlines()
        if any(line.startswith("    ") for line in lines):
            blocks.append("\n".join([".nf", *(safe(line[4:]) for line in lines), ".fi"]))
        else:
            blocks.append("\n".join(safe(line.strip()) for line in lines))
    return "\n.PP\n".join(blocks)


def head(page, version, phrase):
    return (f'.TH {page.upper()} 1 "" "Thinwire {version}" "User Commands"\n'
            f".SH NAME\n{escape(page)} \\- {escape(phrase)}\n")


def of_option(option):
    flags = ", ".join(f"\\fB{escape(flag)}\\fR" for flag in option.flags)
    value = f" \\fI{escape(option.value)}\\fR" if option.value else ""
    text = option.help[:1].upper() + option.help[1:]
    more = []
    if option.words and option.name != "set":
        more.append(f"Values: {', '.join(option.words)}.")
    if option.default and option.value:
        more.append(f"Default: {option.default}.")
    if option.required:
        more.append("Required.")
    end = "" if text.endswith((".", "?")) or not text else "."
    return f".TP\n{flags}{value}\n{paragraph(' '.join([text + end, *more]))}\n"


def of_options(command):
    return "".join(f".SS {escape(group)}\n" + "".join(map(of_option, options))
                   for group, options in command.groups)


def usage(words, command):
    arguments = f" \\fI{escape(command.arguments)}\\fR" if command.arguments else ""
    return f"\\fB{escape(words)}\\fR [\\fIoptions\\fR]{arguments}\n"


def of_command(command, version):
    words = f"thinwire {command.name}"
    page = head(words.replace(" ", "-"), version, command.help)
    page += ".SH SYNOPSIS\n"
    if command.subcommands:
        page += ".br\n".join(usage(f"{words} {sub.name}", sub) for sub in command.subcommands)
    else:
        page += usage(words, command)
    if command.text:
        page += f".SH DESCRIPTION\n{paragraph(command.text)}\n"
    for sub in command.subcommands:
        page += f".SH {escape(sub.name.upper())}\n"
        page += f"{paragraph(sub.help[:1].upper() + sub.help[1:] + '.')}\n{of_options(sub)}"
    page += f".SH OPTIONS\n{of_options(command)}"
    return page + ".SH SEE ALSO\n\\fBthinwire\\fR(1)\n"


def overview(commands, version):
    page = head("thinwire", version, "distributed deep-learning training over slow networks")
    page += ".SH SYNOPSIS\n\\fBthinwire\\fR \\fIcommand\\fR [\\fIoptions\\fR]\n"
    page += ".SH COMMANDS\n"
    for command in commands:
        page += f".TP\n\\fBthinwire\\-{escape(command.name)}\\fR(1)\n{paragraph(command.help)}\n"
    page += (".SH OPTIONS\n.TP\n\\fB\\-h\\fR, \\fB\\-\\-help\\fR\nPrint the commands.\n"
             ".TP\n\\fB\\-\\-version\\fR\nPrint the versions of this build.\n")
    page += (".SH ENVIRONMENT\n.TP\nTHINWIRE_BIN\nFolder of the programs.\n"
             ".TP\nTHINWIRE_CACHE\nFolder of data sets (default: data\\-cache).\n")
    return page + (".SH EXIT STATUS\n0 after success, 1 after a failure, 2 after a wrong option or "
                   "command, 3 after a signal to train, 4 after numbers that are not finite.\n")


def pages(commands, version):
    """{file name: text}"""
    result = {"thinwire.1": overview(commands, version)}
    for command in commands:
        result[f"thinwire-{command.name}.1"] = of_command(command, version)
    return result
