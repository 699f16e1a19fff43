"""`make protocol`: each model, its states, and which planted bugs were caught."""

from __future__ import annotations

import sys

from tests.protocol.spin import MODELS, check


def main() -> int:
    """Print the table; 1 where a model has an error or a planted bug passes."""
    failed = False
    print(f"{'model':14} {'states':>9} {'seconds':>8}  {'bugs caught':12} verdict")
    for model in MODELS:
        found = check(model)
        passed = [bug for bug in model.bugs if not check(model, bug).violation]
        caught = f"{len(model.bugs) - len(passed)} of {len(model.bugs)}"
        verdict = "holds" if not found.violation else found.violation
        failed = failed or bool(passed or found.violation)
        print(f"{model!s:14} {found.states:>9,} {found.seconds:>8.1f}  {caught:12} {verdict}")
        for bug in passed:
            print(f"{'':14} {bug} was not caught")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
