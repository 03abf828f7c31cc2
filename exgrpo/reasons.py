"""The reasons of a verdict, as texts for a reader: what decided, or why nothing could."""

SAME_TEXT = "same text"
EXACT = "exact"
ALGEBRA = "algebra"
MATH_VERIFY = "math-verify"
CHOICE = "choice"

NO_ANSWER = "no answer"
NO_THINK_END = "no closing think tag"
NO_CHOICE = "no choice in the answer"

UNREADABLE = "cannot be read"  # the parser finds no mathematics in a text
NOT_COMPARED = "cannot be compared"  # and behind a colon the kind of the error
TOO_DEEP = "nested too deep"

TIME = "time limit"
MEMORY = "memory limit"

NO_GOLD = "the gold cannot be read"
NO_GOLD_LETTER = "the gold is not the letter of a choice, a capital"
