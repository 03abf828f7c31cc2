"""The built-in task in words: short everyday stories whose answer takes `level` operations.

`Mia has 12 marbles. She finds 5 marbles. She gives 4 marbles to each of 2 friends. How many marbles
does Mia have now?` has the level 3 (add, multiply, subtract) and the answer 9. A pretrained model
answers in its own words, so that only the answer can be checked, not the steps. [ours]
"""

import random
from dataclasses import dataclass

SOURCE = "arithmetic"

PEOPLE = (
    *((name, "she", "her") for name in ("Mia", "Ada", "Lena", "Nora", "Zoe", "Ines", "Aisha")),
    *((name, "he", "him") for name in ("Tom", "Ben", "Omar", "Luis", "Finn", "Raj", "Paul")),
)
THINGS = ("marbles", "stickers", "shells", "stamps", "pencils", "buttons", "cards", "nuts")
FACTORS = {"doubles": 2, "triples": 3}
LARGEST = 40  # of a running count: small numbers, since the story is what is to be understood


@dataclass(frozen=True)
class Scene:
    """The sentences of a story: how it begins, what adds or takes away, what is asked.

    A sentence of `more` and `fewer` counts once ({n}), one of `packs_in` and `packs_out` counts
    {k} packs of {n}. All counts are of the same things.
    """

    start: str
    more: tuple[str, ...]
    fewer: tuple[str, ...]
    packs_in: tuple[str, ...]
    packs_out: tuple[str, ...]
    times: str
    part: str
    question: str


SCENES = (
    Scene(
        start="{who} has {n} {things}.",
        more=(
            "{She} finds {n} {things}.",
            "{friend} gives {her} {n} {things}.",
            "{She} wins {n} {things} in a game.",
        ),
        fewer=(
            "{She} gives {n} {things} to {friend}.",
            "{She} loses {n} {things}.",
            "{She} leaves {n} {things} at school.",
        ),
        packs_in=("{She} buys {k} bags with {n} {things} in each.",),
        packs_out=("{She} gives {n} {things} to each of {k} friends.",),
        times="A lucky trade {times} the number of {things}.",
        part="{She} makes {k} equal heaps of all the {things} and keeps only one heap.",
        question="How many {things} does {who} have now?",
    ),
    Scene(
        start="{who} has saved {n} dollars.",
        more=(
            "{She} earns {n} dollars for washing a car.",
            "{friend} pays back {n} dollars to {her}.",
            "{She} receives {n} dollars as a present.",
        ),
        fewer=(
            "{She} spends {n} dollars on a book.",
            "{She} lends {n} dollars to {friend}.",
            "{She} pays {n} dollars for lunch.",
        ),
        packs_in=("{She} mows {k} lawns for {n} dollars each.",),
        packs_out=("{She} buys {k} tickets for {n} dollars each.",),
        times="A kind aunt {times} what {she} has.",
        part="{She} splits all the money into {k} equal parts and keeps only one part.",
        question="How many dollars does {who} have now?",
    ),
    Scene(
        start="A bus leaves the station with {n} people.",
        more=("At the park {n} people get on.", "At the market {n} people get on."),
        fewer=("At the church {n} people get off.", "At the school {n} people get off."),
        packs_in=("At the hotel {k} families of {n} people get on.",),
        packs_out=("At the museum {k} groups of {n} people get off.",),
        times="A crowd at the stadium {times} the number of people on the bus.",
        part="At the lake the people form {k} equal teams and only one team stays on the bus.",
        question="How many people are on the bus now?",
    ),
    Scene(
        start="{who} bakes {n} rolls in the morning.",
        more=("{She} bakes {n} rolls at noon.", "{friend} brings {n} rolls."),
        fewer=(
            "{She} sells {n} rolls.",
            "{friend} eats {n} rolls.",
            "The birds take {n} rolls.",
        ),
        packs_in=("{She} bakes {k} trays with {n} rolls on each.",),
        packs_out=("{She} sells {k} bags with {n} rolls in each.",),
        times="A helper {times} the number of rolls.",
        part="{She} makes {k} equal heaps of all the rolls and keeps only one heap.",
        question="How many rolls does {who} have now?",
    ),
)


def draw(level: int, rng: random.Random) -> tuple[str, str]:
    """A random question with `level` operations, and its answer, a whole number from 0."""
    scene = rng.choice(SCENES)
    (who, she, her), (friend, _, _) = rng.sample(PEOPLE, 2)
    words = {"who": who, "she": she, "She": she.capitalize(), "her": her, "friend": friend}
    words["things"] = rng.choice(THINGS)
    value = rng.randint(2, 12)
    sentences = [scene.start.format(n=value, **words)]
    operations = 0
    while operations < level:
        taken, value, sentence = _event(scene, value, level - operations, words, rng)
        operations += taken
        sentences.append(sentence)
    return " ".join([*sentences, scene.question.format(**words)]), str(value)


def _event(
    scene: Scene, value: int, operations: int, words: dict[str, str], rng: random.Random
) -> tuple[int, int, str]:
    """What happens next: operations taken (at most `operations`), the new count, the sentence."""
    number, packs, each = rng.randint(2, 9), rng.randint(2, 4), rng.randint(2, 5)
    word = rng.choice(list(FACTORS))
    events: list[tuple[int, int, str, dict[str, int | str]]] = []
    if value + number <= LARGEST:
        events += [(1, value + number, rng.choice(scene.more), {"n": number})] * 3
    if value >= number:
        events += [(1, value - number, rng.choice(scene.fewer), {"n": number})] * 3
    if 0 < value <= LARGEST // FACTORS[word]:
        events.append((1, value * FACTORS[word], scene.times, {"times": word}))
    if value > 0 and value % packs == 0:
        events += [(1, value // packs, scene.part, {"k": packs})] * 2
    counts: dict[str, int | str] = {"k": packs, "n": each}
    if operations > 1 and value + packs * each <= LARGEST:
        events += [(2, value + packs * each, rng.choice(scene.packs_in), counts)] * 2
    if operations > 1 and value >= packs * each:
        events += [(2, value - packs * each, rng.choice(scene.packs_out), counts)] * 2
    taken, value, sentence, numbers = rng.choice(events)
    return taken, value, sentence.format(**words, **numbers)
