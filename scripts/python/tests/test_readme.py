"""The examples of README.md, in order, as one program."""

import pathlib
import re


def test_the_examples_run(tmp_path, monkeypatch, capsys):
    text = (pathlib.Path(__file__).parents[1] / "README.md").read_text()
    examples = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    assert len(examples) == 8
    monkeypatch.chdir(tmp_path)
    names = {}
    for number, example in enumerate(examples):
        exec(compile(example, f"example {number}", "exec"), names)
    printed = capsys.readouterr().out
    assert "768 [" in printed and "22528 " in printed and "(22528 → 32) × 2 → 8 → 1" in printed
