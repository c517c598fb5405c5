"""Questions about one configuration, a design space, a cube or the catalogue: a file for each.

To add a verb: three files, and a line each in three lists.

1. sweep/questions/VERB.py: a function VERB that takes a `Source` named `cube` (a store, a Dataset
   or slice, a design space) and a selection, reads cells by `open_source` (a `Reader`) or calls the
   kernels by `open_space`, both of `sweep.cells.source`, and returns rows of its answer's type;
   `tabulate` of `sweep.answers.mapping` makes a DataFrame of them.
2. The type of its answer, in a file of sweep/answers/types/ with a row of `ANSWERS`: the JSON
   schema and the heads of tables follow.
3. Its command, in sweep/cli/questions.py: `@app.command(cls=QuestionCommand)` puts the
   options of a space into `context.obj`; its `read` returns a `Subject`, whose `ask` calls VERB;
   `show_rows` of `sweep.text.tables` prints. Heavy imports stand inside. Options have the names of
   the arguments that they become, so that messages fit both.

The lists: src/paradl/__init__.pyi, `QUESTIONS` in sweep/accessor.py for `ds.paradl`, and `GROUPS`
of sweep/cli/commands.py, by which `--help` is ordered. Tests:
tests/sweep/questions/test_VERB.py, a line in tests/sweep/answers/test_schemas.py, and in
tests/sweep/cli/test_quick.py if it must answer at once. Page: docs/questions.md.
"""
