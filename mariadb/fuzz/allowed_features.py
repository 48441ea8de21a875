"""Known differences of words, shapes and versions: a part of the list in allowed.py."""

from __future__ import annotations

from listed import Allowed

FEATURES: list[Allowed] = [
    Allowed("words of a syntax error in MATCH", "a parser of its own tells what is wrong in its own words", "^(error|warning) texts?$", "match",
            "1064.*syntax error in the text of MATCH", "1064.*syntax error"),
    Allowed("a join by a SPATIAL index", "InnoDB refuses it outside of a transaction (docs/decisions/0022)", "^outcome$", "^select .* join ",
            r"^\d+ rows", "^error 1207"),
    Allowed("a SPATIAL index of InnoDB's that lacks rows", "InnoDB finds SHALE's rows when it reads the table", "^rows by a SPATIAL index$",
            "^select", r"^\d+ rows", r"^\d+ rows; only here 0"),
]
