"""What the options of a method, as typed, say: its sparsifier, its flags, whether it is dense."""

import shlex

DENSE = ("dense", "bsp")
# options that change only the messages of a dense sum, not what is summed
MESSAGES = ("--allreduce", "--scope", "--overlap", "--bucket-mib")


def flags_in(words):
    """{(flag, value)} of a list of words; a switch has the value ''."""
    found = set()
    for i, word in enumerate(words):
        if word.startswith("--"):
            value = words[i + 1] if i + 1 < len(words) else ""
            found.add((word, "" if value.startswith("--") else value))
    return found


def flags_of(entry):
    return flags_in(shlex.split(entry.label))


def sparsifier_of(entry):
    return shlex.split(entry.label)[1]


def options_of(entry):
    """The options beyond --sparsifier NAME, as typed."""
    return shlex.join(shlex.split(entry.label)[2:])


def of_messages(flag):
    """Whether a flag with its value changes only the messages of a dense sum."""
    name, value = flag
    return name in MESSAGES or (name == "--set" and value.startswith("allreduce."))


def is_dense(entry):
    return sparsifier_of(entry) in DENSE


def is_plain_dense(entry):
    return is_dense(entry) and not options_of(entry)


def is_dense_exchange(entry):
    """Dense without options, or with options that change only its messages."""
    return is_dense(entry) and all(map(of_messages, flags_in(shlex.split(options_of(entry)))))
