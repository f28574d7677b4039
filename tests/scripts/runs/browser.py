"""Pages in a headless Chromium."""

import html
import html.parser
import json
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

PROGRAM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))),
               None)


class Figures(html.parser.HTMLParser):
    """{name: {"lines": {label: [(x, y)]}, "ticks": {axis: [(value, at, text)]}, "bars":
    {(label, phase): (x, width)}, "csv": text}} of a page, positions in pixels."""

    def __init__(self, text):
        super().__init__()
        self.found, self.now, self.take = {}, None, None
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        given = dict(attributes)
        if tag == "figure":
            self.now = self.found.setdefault(given["data-name"], {
                "lines": {}, "ticks": {"x": [], "y": []}, "bars": {}, "csv": "",
                "hidden": "hidden" in given})
        if tag == "textarea" and self.now is not None:
            self.take = "csv"
        if tag == "text" and given.get("class") == "tick":
            self.now["ticks"][given["data-axis"]].append(
                [float(given["data-value"]), float(given["data-at"]), ""])
            self.take = given["data-axis"]
        if tag == "path" and "data-label" in given:
            points = [tuple(map(float, pair.split(","))) for pair in given["d"][1:].split("L")]
            self.now["lines"][given["data-label"]] = points
        if tag == "rect" and "data-phase" in given:
            self.now["bars"][given["data-label"], given["data-phase"]] = (
                float(given["x"]), float(given["width"]))

    def handle_data(self, text):
        if self.take == "csv":
            self.now["csv"] += text
        elif self.take:
            self.now["ticks"][self.take][-1][2] += text

    def handle_endtag(self, tag):
        if tag in ("text", "textarea"):
            self.take = None
        if tag == "figure":
            self.now = None


def dump(page, anchor="", width=900, script=""):
    """The document after its scripts have run, with `script` appended to them."""
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "page.html"
        # an error of a script is text of the document
        watch = "<script>addEventListener('error', (e) => document.title = `error: ${e.message}`)"
        text = Path(page).read_text().replace("<head>", f"<head>{watch}</script>", 1)
        copy.write_text(text.replace("</body>", f"<script>{script}</script></body>"))
        done = subprocess.run(
            [PROGRAM, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars",
             f"--user-data-dir={folder}/profile", f"--window-size={width},900", "--dump-dom",
             f"{copy.as_uri()}#{anchor}"], capture_output=True, text=True, check=True, timeout=120)
    title = re.search("<title>(.*?)</title>", done.stdout).group(1)
    assert not title.startswith("error"), title
    return done.stdout


def result(page, script, **options):
    """What a script that ends with `tell(value)` tells."""
    tell = ("const tell = (value) => { const told = document.createElement('pre');"
            "told.id = 'told'; told.textContent = JSON.stringify(value);"
            "document.body.append(told); };")
    text = dump(page, script=f"{tell}(() => {{ {script} }})();", **options)
    told = re.search('<pre id="told">(.*?)</pre>', text, flags=re.S)
    assert told, f"the script told nothing: {script}"
    return json.loads(html.unescape(told.group(1)))
