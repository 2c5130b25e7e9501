"""Spark DDL cut into tokens, in one pass over the text.

Every pattern is possessive or a plain character class, so no text makes the matching go back.
"""

from __future__ import annotations

import re
from typing import NamedTuple, NoReturn

from catalog.errors import InvalidSchema
from catalog.schema.names import shown

WORD, QUOTED, STRING, NUMBER, SYMBOL, END = "word", "quoted", "string", "number", "symbol", "end"


class Token(NamedTuple):
    """A piece of DDL; `text` is without quotes and escapes."""

    kind: str
    text: str
    start: int


_TOKEN = re.compile(
    r"""
      (?P<space>   [ \t\n\f\r\v\u00a0\u1680\u2000-\u200a\u2028\u202f\u205f\u3000]++ )
    | (?P<line>    --(?:\\\n|[^\r\n])*+ )
    | (?P<block>   /\*(?!\+) )
    | (?P<raw>     [rR](?:'[^']*+'|"[^"]*+") )
    | (?P<string>  '(?:[^'\\]++|\\.|'')*+' | "(?:[^"\\]++|\\.|"")*+" )
    | (?P<quoted>  `(?:[^`]++|``)*+` )
    | (?P<word>    \w++ )
    | (?P<symbol>  [<>(),:.!] )
    """,
    re.VERBOSE | re.DOTALL,
)
_BLOCK_EDGE = re.compile(r"/\*|\*/")
_PLAIN_WORD = re.compile(r"[A-Za-z0-9_]+")
# Spark's lexer prefers a number to a name wherever both would fit: 1L, 2d, 1e5, 3BD.
_NUMERIC = re.compile(r"[0-9]+(?:[LSY]|(?:E[0-9]+)?(?:F|D|BD)?)", re.IGNORECASE)

_ESCAPE = re.compile(
    r"\\(?:u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|([01][0-7]{2})|(.))|(''|\"\")", re.DOTALL
)
# Spark keeps the backslash of \% and \_, for LIKE.
_ESCAPED = {
    "0": "\0",
    "b": "\b",
    "n": "\n",
    "r": "\r",
    "t": "\t",
    "Z": "\x1a",
    "%": r"\%",
    "_": r"\_",
}


def tokenize(text: str) -> list[Token]:
    """The tokens of a DDL text, comments left out, with one END token last."""
    found: list[Token] = []
    at = 0
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            _refuse_character(text, at)
        kind, piece = str(match.lastgroup), match.group()
        if kind == "block":
            at = _end_of_block(text, at)
            continue
        if kind not in ("space", "line"):
            found.append(_token(kind, piece, text, at))
        at = match.end()
    found.append(Token(END, "end of text", len(text)))
    return found


def fail(text: str, at: int, problem: str) -> NoReturn:
    """Raise InvalidSchema for a problem at an offset; the message counts positions from 1."""
    near = text[at : at + 20]
    where = f"at position {at + 1}, near {near!r}" if near else f"at position {at + 1}, the end"
    raise InvalidSchema(f"DDL is malformed {where}: {problem}", value=shown(text), position=at + 1)


class Cursor:
    """A place in a DDL text that moves forward token by token."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens = tokenize(text)
        self._next = 0

    def peek(self, ahead: int = 0) -> Token:
        return self._tokens[min(self._next + ahead, len(self._tokens) - 1)]

    def skip(self, count: int) -> None:
        self._next += count

    def take(self) -> Token:
        token = self.peek()
        self.skip(1)
        return token

    def is_symbol(self, symbol: str, ahead: int = 0) -> bool:
        return self.peek(ahead)[:2] == (SYMBOL, symbol)

    def is_word(self, word: str, ahead: int = 0) -> bool:
        token = self.peek(ahead)
        return token.kind == WORD and token.text.lower() == word

    def accept(self, symbol: str) -> bool:
        found = self.is_symbol(symbol)
        self.skip(1 if found else 0)
        return found

    def accept_words(self, *words: str) -> bool:
        found = all(self.is_word(word, ahead) for ahead, word in enumerate(words))
        self.skip(len(words) if found else 0)
        return found

    def expect(self, symbol: str, what: str) -> None:
        if not self.accept(symbol):
            self.expected(what)

    def expect_end(self) -> None:
        if self.peek().kind != END:
            self.expected("a comma or the end")

    def expected(self, what: str) -> NoReturn:
        self.fail(self.peek(), f"expected {what}, found {self.peek().text[:40]!r}")

    def fail(self, token: Token, problem: str) -> NoReturn:
        fail(self._text, token.start, problem)


def _token(kind: str, piece: str, text: str, at: int) -> Token:
    if kind == "raw":
        return Token(STRING, piece[2:-1], at)
    if kind == "string":
        return Token(STRING, _unescape(piece, text, at), at)
    if kind == "quoted":
        return Token(QUOTED, piece[1:-1].replace("``", "`"), at)
    if kind == "symbol":
        return Token(SYMBOL, piece, at)
    if not _PLAIN_WORD.fullmatch(piece):
        fail(text, at, f"write {piece[:40]!r} in backquotes: it has more than A-Z, 0-9 and _")
    return Token(NUMBER if _NUMERIC.fullmatch(piece) else WORD, piece, at)


def _end_of_block(text: str, start: int) -> int:
    depth = 0
    for edge in _BLOCK_EDGE.finditer(text, start):
        depth += 1 if edge.group() == "/*" else -1
        if depth == 0:
            return edge.end()
    fail(text, start, "this comment is not closed; close it with */")


def _refuse_character(text: str, at: int) -> NoReturn:
    if text[at] in "'\"`":
        fail(text, at, f"this quote is not closed; close it with {text[at]}")
    if text[at] == "-":
        fail(text, at, "'-' is not expected here; write a name that has one in backquotes")
    fail(text, at, f"character {text[at]!r} is not expected here; remove it or use backquotes")


def _unescape(piece: str, text: str, at: int) -> str:
    quote, body = piece[0], piece[1:-1]
    if "\\" not in body and quote not in body:
        return body

    def plain(match: re.Match[str]) -> str:
        short, long, octal, single, doubled = match.groups()
        if doubled:
            return quote if doubled[0] == quote else doubled
        if single:
            return _ESCAPED.get(single, single)
        code = int(octal, 8) if octal else int(short or long, 16)
        if code > 0x10FFFF:
            fail(text, at, f"{match.group()} is not a character; use at most \\U0010FFFF")
        return chr(code)

    # Java joins two escaped halves of a surrogate pair into one character; Python does not.
    joined = _ESCAPE.sub(plain, body).encode("utf-16-le", "surrogatepass")
    return joined.decode("utf-16-le", "surrogatepass")
