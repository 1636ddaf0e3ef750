"""Makes formulas.json: what Python itself says of formulas, known ones and drawn ones.

    python crates/lockstep-measure/tests/formulas.py
"""

import ast
import json
import math
import pathlib
import random
import statistics

CLASSES = ["cat", "dog", "elk"]
LINES = [(0.5, 0.25), (2.0, 1.5), (-1.0, -1.75), (4.0, 4.0), (0.0, 3.5), (2.5, 2.0), (-3.0, 0.5)]
ROWS = [("cat", "cat", 0.75), ("dog", "cat", 0.5), ("elk", "elk", 0.875), ("dog", "dog", 0.625), ("cat", "elk", 0.375)]

KNOWN = {
    "classes": [
        "mean(label != predicted)",
        "mean(5 * (label == 'dog' and predicted != 'dog') + (predicted == 'dog' and label != 'dog'))",
        "sum(label == 'cat' and predicted == \"cat\") / sum(predicted == 'cat')",
        "sum(1)",
        "mean(not label == predicted or probability > 0.7)",
        "mean(where(label == predicted, probability, -probability))",
        "quantile(probability, 0.3) + median(probability)",
    ],
    "numbers": [
        "sqrt(mean((label - predicted) ** 2))",
        "mean(abs(label - predicted) / maximum(abs(label), 1e-9))",
        "mean(abs(label - predicted) <= .5)",
        "std(label - predicted) ** 2",
        "max(label) - min(predicted)",
        "mean(exp(-label ** 2)) * -2 ** -1",
        "sqrt(mean((log1p(label + 4) - log1p(predicted + 4)) ** 2))",
        "mean(-7 % 3 + label % 2 - predicted % -1.5)",
        "1 - sum((label - predicted) ** 2) / sum(label ** 2)",
    ],
}


def draw(depth):
    """What is of each sample, as a number."""
    kind = random.randrange(9) if depth else random.randrange(3)
    if kind < 3:
        return random.choice(["label", "predicted", "2", "0.5", "3e-1"])
    a, b = draw(depth - 1), draw(depth - 1)
    return [
        f"{a} {random.choice('+-*')} {b}",
        f"({a} {random.choice('+-*')} {b})",
        f"abs({a}) / (1 + abs({b}))",
        f"minimum({a}, {b})",
        f"-{a} ** 2" if a.isalpha() else f"-({a})",
        f"where({condition(depth - 1)}, {a}, {b})",
    ][kind - 3]


def condition(depth):
    """What is true of a sample or not."""
    kind = random.randrange(5) if depth else random.randrange(2)
    if kind < 2:
        a, b = draw(0), draw(0)
        return f"{a} {random.choice(['<', '<=', '>', '>=', '==', '!='])} {b}"
    a, b = condition(depth - 1), condition(depth - 1)
    return [f"not {a}", f"{a} and {b}", f"({a} or {b})"][kind - 2]


def value(formula, rows):
    """What a formula comes to by Python's own rules."""
    functions = {
        "abs": abs, "exp": math.exp, "log": math.log, "log1p": math.log1p, "sqrt": math.sqrt, "minimum": min, "maximum": max,
        "where": lambda condition, a, b: a if condition else b,
    }
    whole = {
        "mean": statistics.fmean, "sum": sum, "std": statistics.pstdev, "min": min, "max": max, "median": statistics.median,
    }

    def quantile(numbers, share):
        numbers = sorted(numbers)
        at = share * (len(numbers) - 1)
        below = math.floor(at)
        above = min(below + 1, len(numbers) - 1)
        return numbers[below] + (numbers[above] - numbers[below]) * (at - below)

    class Wholes(ast.NodeTransformer):
        def visit_Call(self, call):
            if call.func.id not in whole and call.func.id != "quantile":
                return self.generic_visit(call)
            part = compile(ast.Expression(call.args[0]), "formula", "eval")
            numbers = [float(eval(part, functions, row)) for row in rows]
            if call.func.id == "quantile":
                return ast.Constant(quantile(numbers, call.args[1].value))
            return ast.Constant(float(whole[call.func.id](numbers)))

    tree = ast.fix_missing_locations(Wholes().visit(ast.parse(formula, mode="eval")))
    return float(eval(compile(tree, "formula", "eval"), functions))


def main():
    random.seed(35)
    classes = [dict(zip(["label", "predicted", "probability"], row)) for row in ROWS]
    numbers = [dict(zip(["label", "predicted"], row)) for row in LINES]
    drawn = [f"mean({draw(3)})" for _ in range(40)] + [f"sum({condition(3)})" for _ in range(40)]
    cases = {
        "classes": [[formula, value(formula, classes)] for formula in KNOWN["classes"]],
        "numbers": [[formula, value(formula, numbers)] for formula in KNOWN["numbers"] + drawn],
    }
    made = {"names": CLASSES, "rows": ROWS, "lines": LINES, "cases": cases}
    path = pathlib.Path(__file__).with_name("formulas.json")
    path.write_text(json.dumps(made, indent=1) + "\n")


main()
