r"""Units: signs of currencies before a number, words, `\text{}` and signs behind it.

A unit is any word, so that unknown ones ("apples") count, but for those that can change or hedge
the number (`5 hundred`, `5 or so`) and letters that may be unknowns (`5x`). Behind a formula, where
words may be conditions or factors (`2k\text{ even}`, `\frac12 abc`), only known units count.
"""

import re

from exgrpo.number_words import MAY_BE_COUNTED, makes_another_value

_NO_UNITS = frozenset(
    """
    double doubled twice triple tripled halved negative inverse reciprocal infinity bn grand gross
    tens ish undefined factorials binary octal hex hexadecimal permille mille ppm
    mil mn mln mio bln tn thou myriad myriads fold off th st nd rd debt lost dne nonexistent
    conjugate complement transposed max upwards ca hopefully likely sometimes wait fails when
    mistake error erroneous contradiction absurd
    never none no nope untrue guess estimate estimated estimates rounded unknown unsure
    impossible invalid extraneous rejected reject eliminated excluded discarded inadmissible
    and not is are was were be isn aren cannot to than more less fewer greater least most else other
    about approximately approx circa around almost nearly roughly maybe perhaps possibly probably
    either neither nor both if unless except but otherwise wrong incorrect false also any
    minimum maximum
    divided multiplied added subtracted power raised root bases modulus
    sin cos tan cot csc log ln exp sqrt frac pi
    """.split()  # noqa: SIM905
)
_STILL_UNITS = MAY_BE_COUNTED | {"squared", "cubed"}
_NOT_FIRST = ("squared", "cubed", "point", "up")
_LETTERS_OF_UNITS = frozenset("mgshdlaLhNJWVAKCFT")  # "a" as in "10 a day"
_THOUSANDS_OF_MONEY = frozenset("K m T mm MM".split())  # noqa: SIM905
_MONEY = frozenset(
    """
    dollar dollars buck bucks euro euros pound pounds cent cents yen yuan rupee rupees franc francs
    usd eur gbp jpy cny inr cad aud chf rs
    """.split()  # noqa: SIM905
)
_KNOWN_UNITS = _MONEY | frozenset(
    """
    unit units degree degrees radian radians meter meters metre metres centimeter centimeters
    kilometer kilometers millimeter millimeters foot feet inch inches yard yards mile miles
    gram grams kilogram kilograms ounce ounces liter liters litre litres gallon gallons
    second seconds minute minutes hour hours day days week weeks month months year years
    square cubic sq cu per squared cubed
    cm mm km kg mg ml mL ft in yd mi oz lb lbs hr hrs min mins sec secs mph h s
    """.split()  # noqa: SIM905
)

_POWER = r"(?:\s*\^\s*(?:-?\d|\{\s*-?\d\s*\}))?"
# Of a unit in \text{}: no digit but in a power, at least one letter, and no ! or ^ before it.
_WORDS = (
    rf"\\(?:text|operatorname)\{{[\s/(.\"-]*(?:(?:[^\W\d_]|\\(?:mu|Omega)(?![a-zA-Z])){_POWER}"
    rf"(?:[\s./()&\"':;%-]|\\cdot(?![a-zA-Z]))*)+\}}{_POWER}"
)
_FACTORS = rf"(?:\s*(?:{_WORDS}|/|\\cdot(?![a-zA-Z])))+"
_SET_UNIT = re.compile(rf"(?:{_FACTORS}|\s*\\frac\s*\{{{_FACTORS}\s*\}}\s*\{{{_FACTORS}\s*\}})+")
_NUMBER = re.compile(r"(?:[a-zA-Z] ?= ?)?[-+]?[\d.]+(?:/\d+)?")
_END = re.compile(r"(?:\d\.?|[a-zA-Z})!])$")
_LETTER_END = re.compile(r"(?<!\\p)[a-zA-Z]$")
_COMMAND = re.compile(r"\\(?:text|operatorname|cdot|frac)")
_PART_OF_WORD = re.compile(r"\\mu\s*|\\(?=Omega)|\}\\text\{")  # \text{hun}\text{dred} is one

_SHORT_UNITS = (
    r"[kcmn]m|[km]g|m[lL]|ft|in|yd|mi|oz|lb|sq|hrs?|mins?|secs?|km/h|mph|m/s|[kMG]?Hz|kW|kWh|kN|kJ"
    r"|k?Pa|[kMG]?eV|[km]V|mA|Rs|(?:[kM]|\\mu ?)?\\Omega|\\mu ?[mgsFACV]"
)
_PLAIN_UNIT = re.compile(
    rf"(?P<number>{_NUMBER.pattern}|.*(?:\}}|\\pi(?![a-zA-Z])))"
    rf"(?P<unit>(?:\s+[^\W\d_]{{3,}}|\s*(?:{_SHORT_UNITS})(?![a-zA-Z]))(?:\.?[ /][^\W\d_]+)*)"
    rf"{_POWER}"
)

_CODES = r"(?:USD|EUR|GBP|JPY|CNY|INR|CAD|AUD|CHF|Rs\.?|\\pounds|\\euro|\\yen)"
_CURRENCY = re.compile(
    rf"^([-+]?)\s*(?:\\text\{{\s*{_CODES}\s*\}}|{_CODES}(?![a-zA-Z]))\s*([-+]?)(?=[\d.]|\\frac)"
)


def without_unit(text: str, money: bool = False) -> str:
    """An answer in LaTeX with arguments in braces, less its unit; the same where it has none.

    money: it had a sign of a currency, so that K and m are thousands and millions, no units.
    """
    text, codes = _CURRENCY.subn(r"\1\2", text, count=1)
    number, unit = _apart(text)
    if not (unit and _ends_in_number(number)):
        return text
    formula = _NUMBER.fullmatch(number) is None
    loose = formula and (_LETTER_END.search(number) or not unit.lstrip().startswith(("\\", "/")))
    words = re.findall(r"[^\W\d_]+", _COMMAND.sub(" ", _PART_OF_WORD.sub("", unit)))
    known = not loose or (len(words[0]) > 1 and _KNOWN_UNITS.issuperset(words))
    return number if known and _is_unit(words, unit, money or codes > 0) else text


def _apart(text: str) -> tuple[str, str]:
    """A number and what may be its unit; without one the text."""
    if found := _PLAIN_UNIT.fullmatch(text):
        return found["number"], found["unit"]
    runs = list(_SET_UNIT.finditer(text))
    if not runs or runs[-1].end() < len(text) or runs[-1][0].endswith(("/", "cdot")):
        return text, ""
    return text[: runs[-1].start()].rstrip(), runs[-1][0]


def _ends_in_number(text: str) -> bool:
    r"""Whether a number or a formula ends here, not words: `\text{20}` is a number."""
    before, brace, last = text.rpartition("{")
    words = bool(brace) and text.endswith("}") and before.endswith(r"\text")
    return bool(_END.search(text)) and not (words and not last[:-1].rstrip()[-1:].isdigit())


def _is_unit(words: list[str], written: str, money: bool) -> bool:
    """Whether these words, as written behind a number, leave it what it is."""
    if not words or words == ["a"] or words[0] in _NOT_FIRST:
        return False
    if money or not _MONEY.isdisjoint(map(str.lower, words)):
        if not _THOUSANDS_OF_MONEY.isdisjoint(words):
            return False
    elif written.startswith("/") and len(words[0]) == 1:
        return False  # 5/\text{m} may be a quotient
    return all(map(_leaves_number, words))


def _leaves_number(word: str) -> bool:
    plain = word.lower()
    if plain in _NO_UNITS or (plain not in _STILL_UNITS and makes_another_value(plain)):
        return False
    return len(word) > 1 or word in _LETTERS_OF_UNITS or word > "\x7f"
