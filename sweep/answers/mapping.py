"""Answers that are mappings, as notebooks and tables take them."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd


# A row of an answer by field; `answers.types` has the fields of each question's.
Row = dict[str, Any]


class AnswerMapping(dict[str, Any]):
    """An answer by field, as `--format json` prints it; a notebook shows it as a table.

    >>> import paradl
    >>> space = {"dataset": "imagenet-226", "system": "abci"}
    >>> answer = paradl.predict("alexnet", "data", 64, 32, **space)
    >>> answer.to_frame().loc["memory_parts.weights", "value"]
    183236640.0
    """

    def to_dict(self) -> dict[str, Any]:
        """Return a plain copy."""
        return dict(self)

    def to_frame(self) -> "pd.DataFrame":
        """Return the rows of an answer that has rows, else a row for each field, by its name."""
        import pandas as pd  # late: it takes long to import

        if isinstance(self.get("rows"), list):
            return pd.DataFrame(self["rows"], dtype=object)
        flat = pd.json_normalize(self, max_level=2).T
        return flat.set_axis(["value"], axis=1).rename_axis("field")

    def _repr_html_(self) -> str:
        """Return the table that a notebook shows."""
        html: str = self.to_frame().to_html(max_rows=40, notebook=True)
        return html
