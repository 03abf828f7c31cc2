"""Answers in other clothes: LaTeX without braces, units, separators, characters, bare boxes."""

import pytest
from judged import misjudged

from exgrpo import answers
from exgrpo.grading import Grader, grade

# What is shown: pairs of a gold and answers equal to it, and of answers that are not.
FORMS: dict[str, tuple[dict[str, list[str]], dict[str, list[str]]]] = {
    "Arguments without braces.": (
        {
            r"\frac\pi4": [r"\pi/4", r"\frac{\pi}{4}", r"\frac{\pi}4"],
            r"\pi/12": [r"\frac\pi{12}", r"\frac \pi {12}"],
            r"\alpha/2": [r"\frac\alpha2"],
            r"\frac{\sqrt{3}}{2}": [r"\frac\sqrt3 2", r"\frac\sqrt{3}2", r"\frac{\sqrt3}2"],
            r"\sqrt[3]{4}": [r"\sqrt[3]4", r"\sqrt[3] 4"],
            r"\frac{1}{\sqrt2}": [r"\frac1\sqrt2", r"\frac1{\sqrt2}"],
            "2": [r"\frac1\frac12", r"\lg 100"],
            r"\sqrt{2}": [r"2^\frac12"],
            r"\frac12": [r"\nicefrac12", r"\frac 1 2"],
            "120": [r"\tbinom{10}3", r"\binom{10}3"],
            "101_2": [r"101_{\text{2}}", r"101_\text{2}", "(101)_2", "101₂", "101_{2}"],
            r"\mathbb{R}": [r"\mathbb R", "ℝ"],
            r"\ln 2": [r"\log_e 2", r"\log_{e}2"],
        },
        {
            r"\frac\pi4": [r"\frac4\pi", r"\frac\pi2", r"\frac{\pi}{4}2"],
            r"\frac{\sqrt{3}}{2}": [r"\frac{\sqrt{32}}{}", r"\frac3\sqrt2"],
            "101_2": [r"101_\text{3}", "(101)_3", "101"],
            r"\mathbb{R}": [r"\mathbb Z", "ℚ", "R"],
            r"\sqrt[3]{4}": [r"\sqrt[4]3", r"\sqrt4"],
        },
    ),
    "Units.": (
        {
            "5": [
                *(r"5\,\frac{\text{m}}{\text{s}}", r"5\,\frac{\text{km}}{\text{h}}", "5 µm"),
                *(r"5\text{ m}\cdot\text{s}^{-1}", r"5\,\mathrm{m\,s^{-2}}", "5min", "5 mL"),
                *(r"5\text{ N}\cdot\text{m}", r"5\text{ W}/\text{m}^2", r"5\ \Omega", "5 Hz"),
                *(r"5~\mathrm{\mu m}", r"5\,\mathrm{k\Omega}", "5℃", r"5\text{ sq. ft.}", "5 Ω"),
                *(r"5\text{ months}", r"5\text{ lengths}", "5 teeth", "5 properties", "5 canteens"),
                *(
                    r"\frac{10}{2}\text{ years old}",
                    r"5\text{-year}",
                    r"5\text{ (cm)}",
                    "5 Röntgen",
                ),
            ],
            "50": [
                *("¥50", "₹50", r"\pounds 50", r"\text{\$}50", r"\text{€}50", "USD 50", "Rs 50"),
                *(r"\text{USD }50", "50¢", r"US\$50", "50 Rs", "Rs. 50", "＄50", "50 USD"),
                *(r"\$50/\text{hour}", r"\$50\text{ per hour}", "50€"),
            ],
            "12": [r"\text{Cost}=12\text{ dollars}", r"\text{Cost}=12"],
            "7": [
                *(r"\text{Cost}=7\text{ dollars}", r"x=7\text{ cm}", r"7\operatorname{cm}"),
                *("7 sq. ft.", r"7\text{ K}", r"$7\text{ K}$", r"\$7/\text{h}", r"7\text{ times}"),
                *(r"7\text{ p.m.}", r"7\text{ zeros}"),
            ],
            "2x": [r"2x\text{ cm}", r"2x\text{ units}"],
            r"5x+3": [r"5x+3\text{ dollars}"],
            r"\frac{1}{2}": [r"\frac{1}{2} mile", r"\frac12 degrees"],
            r"3\sqrt2": [r"3\sqrt{2} cm"],
            r"6\pi": [r"6 \pi cm^2", r"6\pi\text{ feet}"],
            r"7\text{ PM}": ["7", r"7\text{ p.m.}", r"7\,\mathrm{pm}"],
            "-50": ["-€50", r"-\$50", "$-50$"],
        },
        {
            "5": [
                *(
                    f"5 {word}"
                    for word in """
                    elevenths twelfths sixteenths twentieths millionths quadrillion lakh crore
                    factorials permille googol binary hex forty-fifths nths
                    """.split()  # noqa: SIM905
                ),
                *(
                    rf"5\text{{ {words}}}"
                    for words in """
                    no solution,impossible,extraneous,rejected,invalid,unknown,rounded,estimated
                    """.strip().split(",")
                ),
                *(r"5\text{!}", r"5\text{ /}", r"5\text{-}", r"5\text{ ^}", r"5\text{!a}"),
                *(r"5\text{ m}/", r"5\cdot\text{two}", r"5/\text{seven}", r"5\text{ 百万}"),
                *(r"5\text{ m}\cdot\text{wrong}", r"5\,\frac{\text{ten}}{\text{s}}", "5x", "5Q"),
                *(
                    r"\text{Friday 5}\text{ or 6}",
                    r"5\text{hun}\text{dred}",
                    r"5\Omega x",
                    r"5\text{a}",
                    "5 and 6 cm",
                    "USD",
                    "USD 6",
                ),
            ],
            "7": [
                # K, m and mil are thousands and millions of money.
                *(r"\$7\text{ K}", r"$7\text{ K}", r"€7\text{ m}", r"\text{USD }7\text{ K}"),
                *(
                    r"7\text{ K}\text{ dollars}",
                    r"\$7\text{ mil}",
                    r"\$7\text{mn}",
                    r"\$7\text{ mm}",
                ),
                *("7 Mil", "7 thou", r"7\text{ thou}", r"7\text{ myriad}"),
                *("7 fold", r"7\text{-fold}", r"7\text{th}", "7 ppm", r"7\%\text{ off}", "7 when"),
                *(r"7\text{ up}", r"7\text{ point}", "7 conjugate", "7 complement", "7 transposed"),
                *("7 max", "7 upwards", r"7\text{ ca.}", "7 hopefully", "7 likely", "7 sometimes"),
                *("7 wait", "7 fails", "7 mistake", "7 error", "7 erroneous", "7 contradiction"),
                *("7 absurd", "7 nonexistent", r"7\text{ DNE}", r"7\text{ in debt}", "7 lost"),
                *(r"7/\text{m}", r"7\text{ m}/\text{wait}"),
            ],
            r"7\text{ AM}": [r"7\text{ PM}", r"7\text{ p.m.}"],
            "5x": [r"5\text{ apples}"],
            "2k": [r"2k\text{ even}", r"2k\text{ m}"],
            r"\frac12": [r"\frac12 abc", r"\frac12 hundred"],
        },
    ),
    "Separators.": (
        {
            "5.5": ["5{,}5"],
            "3.14": ["3{,}14", "3{,}140"[:-1]],
            "0.125": ["0{,}125"],
            "1234567": [
                "1{,}234{,}567",
                r"1,\!234,\!567",
                "1'234'567",
                "1 234 567",
                r"1\,234\,567",
            ],
            "1200, 300": [r"1200\text{ and }300"],
            "10080": [
                *(r"\$\,10{,}080", r"x=\,10{,}080", r"\,10,\!080", r"10{,}\!080", r"10{,}\,080"),
                *(r"\text{USD }10{,}080", r"\text{Rs. }10{,}080", r"10,\! 080"),
            ],
            "(5,10080)": ["(5,10{,}080)"],
            "5,10080": ["5,10{,}080"],
            "10080,20000": ["10{,}080,20{,}000"],
            r"11,\! 111,\! 111,\! 100": ["11111111100"],
            "(0.5,0.25)": ["(0{,}5,0{,}25)"],
        },
        {
            "314": ["3{,}14"],
            "15": ["1{,}5"],
            "1234": ["12{,}34", r"1\quad234", r"1\qquad 234", "1'23'4"],
            "1234567": ["1234{,}567", "1{,}234'567", "1{,}23{,}4567"],
            "100000": ["1{,}00{,}000", "1,00,000"],
            "1": ["1{,}00{,}000"],
            "1.234": ["1{,}23{,}4"],
            "100200": [r"100\text{ and }200", "100 and 200", r"100\quad 200"],
        },
    ),
    "Characters.": (
        {
            "5": ["\u200b5", "\ufeff5\u200e", "５", "٥", r"\color{red}{5}", r"{\color{red} 5}"],
            "x^4": ["x⁴", "x⁠⁴"],
            "10^{23}": ["10²³"],
            "10^{-3}": ["10⁻³"],
            r"\frac15": ["⅕", r"\textcolor{blue}{\frac15}"],
            r"\frac{11}{5}": ["2⅕"],
            "x_1": ["x₁", "x_{1}"],
            r"\alpha+1": ["α+1", "1+α"],
            r"90": ["90º", "90°"],
            r"x \le 3": ["x⩽3", "x ≦ 3"],
            "30": [r"∠A=30°", "30˚", "＝30", "=30", r"\underline{30}"],
            r"\frac12": ["¹⁄₂"],
            r"\sqrt{12}": ["√12", r"√\frac{24}{2}", "2√３"],
        },
        {
            "5": ["６", "٦", "⅕", "x⁵"],
            "21/5": ["2⅕"],
            "x4": ["x⁴"],
            r"\alpha": ["β", "a"],
            "1023": ["10²³"],
            "2.5": ["2¹⁄₂"],
            "30": ["≦30", "∠30"],
        },
    ),
}


@pytest.mark.parametrize("shown", FORMS)
@pytest.mark.parametrize("right", [True, False])
def test_forms(shown: str, right: bool, grader: Grader) -> None:
    pairs = [(gold, other) for gold, others in FORMS[shown][not right].items() for other in others]
    assert not misjudged(grader, pairs, right)


@pytest.mark.parametrize(
    ("text", "content"),
    [
        (r"\boxed\text{6}", r"\text{6}"),
        (r"\boxed $6$.", "$6$"),
        (r"\boxed(6).", "(6)"),
        (r"\boxed[1,8).", "[1,8)"),
        (r"\boxed\frac12.", r"\frac12"),
        (r"\boxed\frac\pi4.", r"\frac\pi4"),
        (r"\boxed\frac{1}{2}.", r"\frac{1}{2}"),
        (r"\boxed\sqrt[3]{2} and so on", r"\sqrt[3]{2}"),
        (r"\boxed -\frac12.", r"-\frac12"),
        (r"\boxed -3.5.", "-3.5"),
        (r"\boxed½.", "½"),
        (r"\boxed=6", "="),
        (r"\boxed\left(1,2\right).", r"\left(1,2\right)"),
        (r"\boxed\{6\}.", r"\{6\}"),
        (r"\boxed\left\{\frac12,3\right\}.", r"\left\{\frac12,3\right\}"),
        (r"\boxed~6", "6"),
        (r"\boxed~{6}", "6"),
        ("\\boxed\n{6}", "6"),
        (r"\boxed\boxed{6}", "6"),
        # The command is spoken of, empty or cut off: the box before it is the last.
        (r"as \boxed asks.", "5"),
        (r"in `\boxed{}`.", "5"),
        (r"in `\boxed`.", "5"),
        (r"in \boxed (as asked).", "5"),
        (r"in \boxed", "5"),
        (r"in \boxed ~", "5"),
        ("in \\boxed\n7 times", "5"),
        (r"in \boxed{6", "5"),
    ],
)
def test_the_last_box_counts_however_it_is_written(text: str, content: str) -> None:
    assert answers.last_box(rf"First \boxed{{5}}, then {text}") == content
    assert grade("5", rf"First \boxed{{5}}, then {text}").correct is (content == "5")
