"""A query parameter that takes one value is refused if it is given twice: either may be meant.

?limit=5&limit=9                 422 bad_parameters
?outcome=FIRED&outcome=MISSED    a list: each counts
"""

from __future__ import annotations

from collections import Counter
from http import HTTPStatus
from typing import get_origin

from fastapi import Request

from belfry.api.problems import Problem


def each_once(request: Request) -> None:
    """Raise `Problem` if a parameter of the route that takes one value has several.

    Unknown names are left to the route, which names the nearest known one.
    """
    counts = Counter(name for name, _ in request.query_params.multi_items())
    repeated = {name for name, count in counts.items() if count > 1}
    if not repeated:
        return
    dependant = getattr(request.scope.get("route"), "dependant", None)
    for each in getattr(dependant, "query_params", ()):
        for name, field in getattr(each.field_info.annotation, "model_fields", {}).items():
            shown = field.alias or name
            if shown in repeated and get_origin(field.annotation) is not list:
                message = f"{shown} is given {counts[shown]} times, and takes one value: keep one"
                raise Problem(
                    HTTPStatus.UNPROCESSABLE_ENTITY,
                    f"query.{shown}: {message}",
                    "bad_parameters",
                    errors=[{"where": f"query.{shown}", "message": message}],
                )
