"""Completion for bash: a table of words, and a function that looks up the command before the
cursor.
"""

from .commands import quote

FUNCTION = r'''
_thinwire() {
  local cur=${COMP_WORDS[COMP_CWORD]} path=thinwire key= word i=$((COMP_CWORD - 1)) prev
  # bash splits at `=`: --model=res and --set KEY=VALUE are three and four words
  if [[ $cur == = ]]; then
    cur=
    ((++i))
  fi
  [[ ${COMP_WORDS[i]} == = ]] && ((i > 1)) && ((--i))
  if [[ ${COMP_WORDS[i]} != -* && ${COMP_WORDS[i + 1]-} == = ]]; then
    key=${COMP_WORDS[i]}=
    [[ ${COMP_WORDS[--i]} == = ]] && ((i > 1)) && ((--i))
  fi
  prev=${COMP_WORDS[i]}
  COMPREPLY=()
  for ((i = 1; i < COMP_CWORD; ++i)); do
    word=${COMP_WORDS[i]}
    [[ $word != -* && -n ${_thinwire_flags[$path $word]+known} ]] && path="$path $word"
  done
  if [[ -n ${_thinwire_values[$path $prev]+known} ]]; then
    mapfile -t COMPREPLY < <(compgen -W "${_thinwire_values[$path $prev]}" -- "$key$cur")
    [[ ${COMPREPLY[0]-} == *= ]] && compopt -o nospace 2>/dev/null
    COMPREPLY=("${COMPREPLY[@]#"$key"}")
  elif [[ " ${_thinwire_files[$path]-} " == *" $prev "* ]]; then
    mapfile -t COMPREPLY < <(compgen -f -- "$cur")
    compopt -o filenames 2>/dev/null
  elif [[ " ${_thinwire_others[$path]-} " == *" $prev "* ]]; then
    return  # a number
  elif [[ $cur == -* ]]; then
    mapfile -t COMPREPLY < <(compgen -W "${_thinwire_flags[$path]-}" -- "$cur")
  elif [[ -n ${_thinwire_words[$path]-} ]]; then
    mapfile -t COMPREPLY < <(compgen -W "${_thinwire_words[$path]}" -- "$cur")
  else
    mapfile -t COMPREPLY < <(compgen -f -- "$cur")
    compopt -o filenames 2>/dev/null
  fi
  return 0
}
complete -F _thinwire thinwire
'''


def entries(path, command):
    """[(kind, key, words)] of a command and its subcommands; `path` is `thinwire train`."""
    options = command.options
    rows = [("flags", path, [flag for o in options for flag in o.flags]),
            ("files", path, [flag for o in options if o.takes_file for flag in o.flags]),
            ("others", path, [flag for o in options if o.value and not o.takes_file and not o.words
                              for flag in o.flags])]
    rows += [("values", f"{path} {flag}", o.words) for o in options if o.words for flag in o.flags]
    if words := [sub.name for sub in command.subcommands] + [*command.words]:
        rows.append(("words", path, words))
    for sub in command.subcommands:
        rows += entries(f"{path} {sub.name}", sub)
    return rows


def script(commands):
    rows = [("flags", "thinwire", ["-h", "--help", "--version"]),
            ("words", "thinwire", [command.name for command in commands])]
    for command in commands:
        rows += entries(f"thinwire {command.name}", command)
    text = "# bash completion of thinwire, made from its option tables\n"
    text += "declare -gA _thinwire_flags _thinwire_files _thinwire_others _thinwire_values\n"
    text += "declare -gA _thinwire_words\n"
    text += "".join(f"_thinwire_{kind}[{quote(key)}]={quote(' '.join(words))}\n"
                    for kind, key, words in rows)
    return text + FUNCTION
