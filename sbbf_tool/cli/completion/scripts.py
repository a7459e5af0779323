"""The scripts of the shells. Each sends what is typed in variables, never as arguments, and reads items that end with a NUL byte.

The first item is `files` or `words`. After `files` the shell completes a path itself; after `words` follow pairs of a word and its help,
for bash the text to insert alone.
"""

from __future__ import annotations

SCRIPTS = {
    "bash": r"""_sbbf() {
    local item kind=
    COMPREPLY=()
    while IFS= read -r -d '' item; do
        if [[ -z $kind ]]; then kind=$item; else COMPREPLY+=("$item"); fi
    done < <(_SBBF_COMPLETE=bash_complete _SBBF_LINE="${COMP_LINE:0:COMP_POINT}" _SBBF_BREAKS="$COMP_WORDBREAKS" "$1" 2>/dev/null)
    if [[ $kind == files ]]; then compopt -o default -o bashdefault 2>/dev/null; fi
}
complete -F _sbbf sbbf
""",
    "zsh": r"""#compdef sbbf
_sbbf() {
    local -a items words_found helps
    local separator=$'\x1f'
    items=("${(@0)$(_SBBF_COMPLETE=zsh_complete _SBBF_WORDS="${(pj:$separator:)${(@Q)words[2,CURRENT-1]}}" \
        _SBBF_CURRENT="${(Q)PREFIX}" ${(Q)words[1]} 2>/dev/null)}")
    [[ $PREFIX == --*=* ]] && compset -P 1 '*='
    if [[ $items[1] == files ]]; then
        _files
        return
    fi
    local at
    for ((at = 2; at < $#items; at += 2)); do
        words_found+=("$items[at]")
        helps+=("${(V)items[at]}${items[at+1]:+ -- $items[at+1]}")
    done
    (( $#words_found )) && compadd -l -d helps -a words_found
}
if [[ $zsh_eval_context[-1] == loadautofunc ]]; then
    _sbbf "$@"
else
    compdef _sbbf sbbf
fi
""",
    "fish": r"""function __sbbf_complete
    set -l typed (commandline -opc)
    set -l raw (commandline -ct)
    set -l current (string unescape -- $raw; or string replace -r '^["\']' '' -- $raw)
    set -l items (_SBBF_COMPLETE=fish_complete _SBBF_WORDS=(string join \x1f -- $typed[2..-1]) _SBBF_CURRENT="$current" \
        $typed[1] 2>/dev/null | string split0)
    if test "$items[1]" = files
        set -l option (string match -r '^--[^=]*=' -- $current)
        for path in (__fish_complete_path (string replace -r '^--[^=]*=' '' -- $current))
            echo "$option$path"
        end
        return
    end
    set -l at 2
    while test $at -lt (count $items)
        printf '%s\t%s\n' $items[$at] $items[(math $at + 1)]
        set at (math $at + 2)
    end
end
complete -c sbbf -f -a '(__sbbf_complete)'
""",
}
