#!/usr/bin/env python3
"""Checks in headless Chromium that pages of fsbench fit their window, and takes pictures of them.

    scripts/check_page.py results/quickstart/report.html [MORE.html …] [--pictures FOLDER]

Each page is laid out 390 and 1,400 pixels wide, light and dark. A page that is wider than its window fails; tables may
scroll in their own boxes. Needs `chromium` (or the program that $CHROMIUM names).
"""

import argparse
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

WIDTHS = [390, 1400]
HEIGHT = 3000
SCHEMES = {"light": [], "dark": ["--blink-settings=preferredColorScheme=0"]}

FRAME = """<!doctype html><meta charset="utf-8"><body style="margin:0"><p id="found"></p>
<iframe id="page" src="{url}" style="border:0;width:{width}px;height:2000px"></iframe>
<script>
addEventListener('load', () => {{
  const page = document.getElementById('page').contentDocument;
  for (const details of page.querySelectorAll('details')) details.open = true;
  const wide = page.documentElement.scrollWidth;
  const beyond = [...page.querySelectorAll('body *')].filter(one => {{
    if (one.closest('.wide') && !one.classList.contains('wide')) return false;
    return one.getBoundingClientRect().right > {width} + 1;
  }});
  const name = one => one.tagName.toLowerCase() + ' ' + (one.textContent || '').trim().slice(0, 40);
  document.getElementById('found').textContent = ['FOUND', wide, ...beyond.slice(0, 3).map(name)].join('|') + '|END';
}});
</script>"""


def chromium():
    name = os.environ.get("CHROMIUM") or next(filter(shutil.which, ["chromium", "chromium-browser", "google-chrome"]), None)
    if name is None:
        sys.exit("check_page: no chromium here; install it, or name it in CHROMIUM")
    return [name, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--allow-file-access-from-files"]


def check(browser, page, width, pictures):
    with tempfile.TemporaryDirectory() as folder:
        frame = pathlib.Path(folder) / "frame.html"
        frame.write_text(FRAME.format(url=page.as_uri(), width=width), encoding="utf-8")
        command = [*browser, "--virtual-time-budget=5000", "--window-size=1600,2200", "--dump-dom", frame.as_uri()]
        dom = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False).stdout
    found = dom.partition(">FOUND|")[2].partition("|END")[0].split("|")
    if not found[0].isdigit():
        return f"{page}: the page did not load in {browser[0]}"
    if pictures:
        for scheme, options in SCHEMES.items():
            picture = pictures / f"{page.parent.name}-{page.stem}-{width}-{scheme}.png"
            size = f"--window-size={width},{HEIGHT}"
            subprocess.run(
                [*browser, *options, size, f"--screenshot={picture}", page.as_uri()],
                capture_output=True, timeout=120, check=False,
            )
    if int(found[0]) > width or found[1:]:
        return f"{page}: {found[0]} pixels wide in a window of {width}; beyond its edge: {', '.join(found[1:]) or 'nothing'}"
    print(f"{page}: fits {width} pixels")
    return None


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("pages", nargs="+", type=pathlib.Path)
    parser.add_argument("--pictures", type=pathlib.Path, help="folder for pictures of the pages")
    arguments = parser.parse_args()
    browser = chromium()
    if arguments.pictures:
        arguments.pictures.mkdir(parents=True, exist_ok=True)
    problems = [
        problem
        for page in arguments.pages
        for width in WIDTHS
        if (problem := check(browser, page.resolve(), width, arguments.pictures))
    ]
    for problem in problems:
        print(problem, file=sys.stderr)
    sys.exit(1 if problems else 0)


if __name__ == "__main__":
    main()
