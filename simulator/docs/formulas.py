"""Formulas of docstrings, written in plain letters, as LaTeX; and MathML of LaTeX, so that a page needs no script."""

from __future__ import annotations

import re
from functools import partial
from typing import Any

GREEK = re.compile("alpha|beta|gamma|delta|eta|theta|kappa|lambda|mu|nu|xi|pi|rho|sigma|tau|phi|psi|omega|Theta|Lambda")
WORDS = {
    "sum": r"\sum", "grad": r"\nabla", "argmin": r"\operatorname{argmin}\,", "max": r"\max", "min": r"\min",
    "mean": r"\operatorname{mean}", "sqrt": r"\operatorname{sqrt}", "exp": r"\exp", "log": r"\log",
    "eps": r"\varepsilon", "xhat": r"{\hat{x}{}}",
}  # fmt: skip
SIGNS = {
    "<-": r"\leftarrow ",
    "+=": "{+}{=}",
    "<=": r"\le ",
    ">=": r"\ge ",
    "->": r"\to ",
    "*": r"\cdot ",
    "...": r"\ldots ",
}
AFTER = re.compile(r"[;:] |, (?=[a-z]{2})")
"""What ends a formula that words come after."""
NUMBER = re.compile(r"(.*?)(?: {3,}\((\w+)\))?")
"""A line, and the number of its equation where it ends with one."""
TOKEN = re.compile(
    r"(?P<space>\s+)|(?P<index>[_^](?:\{[^{}]*\}|\([^()]*\)|-?\w+))|(?P<word>[A-Za-z]+)(?P<tilde>~?)|(?P<number>\d+(?:\.\d+)?)"
    r"|(?P<sign><-|\+=|<=|>=|->|\.\.\.|[-+*/=<>(){}\[\],;:.'])|(?P<bar>\|)"
)


def latex(text: str) -> str | None:
    r"""Turn a formula in plain letters into LaTeX; None for what is none, such as a sentence.

    >>> latex("x_i(t+1) = sum_j w_ij x_j(t) - alpha y_i(t)")
    'x_{i}(t+1) = \\sum_{j} w_{ij} x_{j}(t) - \\alpha  y_{i}(t)'
    >>> latex("a round of messages")
    """
    out: list[str] = []
    place, bars = 0, 0
    while place < len(text):
        found = TOKEN.match(text, place)
        made = None if found is None else _piece(found, bars)
        if found is None or made is None:
            return None
        bars += found.lastgroup == "bar"
        out.append(made)
        place = found.end()
    relation = re.search(r"[=<>]|<-", text)
    return "".join(out).strip().rstrip(".") if relation and re.search(r"[A-Za-z]", text) and bars % 2 == 0 else None


def set_in(text: str) -> str:
    """A cell of a table in Markdown, with the formula that it begins with set as one.

    >>> set_in("z_e = (f_i + f_j) / 2: `settle`")
    '{math}`z_{e} = (f_{i} + f_{j}) / 2`: `settle`'
    """
    for head, tail in ((text, ""), *((text[: end.start()], text[end.start() :]) for end in AFTER.finditer(text))):
        if formula := latex(head):
            return f"{{math}}`{formula}`{tail}"
    return text


def display(block: str) -> str | None:
    """A block of formulas, one a line, in Markdown; None if a line is none."""
    lines = [NUMBER.fullmatch(line) for line in block.splitlines() if line.strip()]
    made = [found and latex(found[1]) for found in lines]
    if not made or None in made:
        return None
    numbers = [rf"\qquad ({found[2]})" if found and found[2] else "" for found in lines]
    return "\n".join(f"```{{math}}\n{line}{number}\n```\n" for line, number in zip(made, numbers, strict=True))


def _piece(found: re.Match[str], bars: int) -> str | None:
    """LaTeX of a token; None for a word that no formula has."""
    if found["index"]:
        inner = _index(found["index"][1:].strip("{}"))
        return None if inner is None else f"{found['index'][0]}{{{inner}}}"
    if found["word"]:
        made = _word(found["word"])
        return made and (rf"{{\tilde{{{made}}}{{}}}}" if found["tilde"] else made)
    if found["bar"]:
        return r"\left\lVert " if bars % 2 == 0 else r" \right\rVert "
    if found["space"]:
        return " " if len(found[0]) < 3 else r"\quad "
    return SIGNS.get(found[0], found[0])


def _index(text: str) -> str | None:
    """A sub- or superscript: letters that stand for themselves, or a formula."""
    if re.fullmatch(r"[A-Za-z]*\d*", text):
        return _word(text) or (text if len(text) <= 2 else rf"\mathrm{{{text}}}")
    parts = [_word(part) or part for part in re.split(r"([A-Za-z]+)", text)]
    return "".join(parts).replace("*", r"{\ast}")


def _word(text: str) -> str | None:
    if text in WORDS:
        return WORDS[text]
    if GREEK.fullmatch(text):
        return f"\\{text} "
    return text if len(text) == 1 else None


def setup(app: Any) -> dict[str, Any]:
    """Register the renderer of formulas, by docutils; Sphinx calls this function."""
    inline, block = partial(_written, as_block=False), partial(_written, as_block=True)
    app.add_html_math_renderer("mathml", inline_renderers=(inline, None), block_renderers=(block, None))
    return {"parallel_read_safe": True}


def _written(writer: Any, node: Any, *, as_block: bool) -> None:
    from docutils import nodes
    from docutils.utils.math.latex2mathml import tex2mathml

    text = tex2mathml(node.astext(), as_block=as_block)
    writer.body.append(f'<div class="formula">{text}</div>' if as_block else text)
    raise nodes.SkipNode
