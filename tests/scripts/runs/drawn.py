#!/usr/bin/env python3
"""drawn.py PAGE RUN...: what a browser draws from a page of report.py: lines and bars are at the
numbers of the runs' tables within a pixel, by the ticks of their axes; switches and keys work; no
text overlaps at three widths."""

import csv
import io
import math
import sys
import xml.etree.ElementTree
from pathlib import Path

import browser
from page_data import ends_of, rows_of, step_curve

SVG = "{http://www.w3.org/2000/svg}"
BIN = 3  # 1600 steps, at most 600 points
GROUPS = {"topk, density 0.01 (3 seeds)": ["topk-s1", "topk-s2", "topk-s3"],
          "gaussiank, density 0.01 (3 seeds)": ["gaussiank-s1", "gaussiank-s2", "gaussiank-s3"],
          "dense": ["dense"], "topk, density 0.001 (stopped)": ["stopped"]}
SEEDS = {"dense": ["dense"], "topk, density 0.001 (stopped)": ["stopped"],
         **{f"{name}, seed {seed}": [f"{kind}-s{seed}"] for kind, name in
            (("topk", "topk, density 0.01"), ("gaussiank", "gaussiank, density 0.01"))
            for seed in (1, 2, 3)}}


def epoch_points(folder, column, axis):
    """{epoch: (x, y)} of metrics.csv."""
    points, sums, ends = {}, {"seconds": 0, "bytes_sent": 0}, ends_of(folder)
    for row in rows_of(folder / "metrics.csv"):
        for name in sums:
            sums[name] += row[name]
        if row[column] != "":
            points[row["epoch"]] = ({**sums, "epoch": ends[row["epoch"]]}[axis], row[column])
    return points


def step_points(folder, axis):
    curve = step_curve(folder, BIN if folder.name != "stopped" else 2)
    return {bin: (x, y) for bin, (x, y) in enumerate(zip(curve[axis], curve["mean"]))
            if not math.isnan(y)}


def mean_points(every):
    """Means over the runs that have a point, by its key."""
    keys = sorted(set().union(*every))
    def mean(values):
        return sum(values) / len(values)
    return [tuple(mean([points[key][i] for points in every if key in points]) for i in (0, 1))
            for key in keys]


def mapping(ticks, log):
    """From values to pixels, by the first and the last tick; all ticks and their texts fit it."""
    scale = math.log10 if log else float
    (a, at_a, _), (b, at_b, _) = ticks[0], ticks[-1]
    def to_pixel(value):
        return at_a + (scale(value) - scale(a)) * (at_b - at_a) / (scale(b) - scale(a))
    for value, at, text in ticks:
        assert abs(to_pixel(value) - at) < 0.1, (value, at, text)
        assert abs(read(text) - value) <= 1e-3 * abs(value), (value, text)
    return to_pixel


def read(text):
    """The number that the text of a tick says."""
    number, _, unit = text.strip().replace("−", "-").partition(" ")
    factor = {"": 1, "B": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40}[unit]
    if number[-1] in "kM":
        number, factor = number[:-1], {"k": 1e3, "M": 1e6}[number[-1]]
    return float(number) * factor


def check_lines(figure, expected, logx=False, logy=False):
    """Lines by label are the expected points, in pixels and in the CSV below the chart."""
    across, up = mapping(figure["ticks"]["x"], logx), mapping(figure["ticks"]["y"], logy)
    assert set(figure["lines"]) == set(expected), (set(figure["lines"]), set(expected))
    rows = list(csv.reader(io.StringIO(figure["csv"])))[1:]
    for label, points in expected.items():
        drawn, written = figure["lines"][label], [row for row in rows if row[0] == label]
        assert len(drawn) == len(points) == len(written), (label, len(drawn), len(points))
        for (x, y), (at_x, at_y), row in zip(points, drawn, written):
            assert abs(across(x) - at_x) < 1 and abs(up(y) - at_y) < 1, (label, x, y, at_x, at_y)
            for value, cell in ((x, row[1]), (y, row[2])):
                assert abs(float(cell) - value) <= 1e-6 * abs(value), (label, row, x, y)


def expect(runs, units, column, axis):
    """The points of each label."""
    return {label: mean_points([step_points(runs[name], axis) if column == "train_loss"
                                else epoch_points(runs[name], column, axis) for name in names])
            for label, names in units.items()}


def check_curves(page, runs):
    for anchor, axis, units, logx, logy in (
            ("x=step", "step", GROUPS, False, False),
            ("x=bytes", "bytes_sent", GROUPS, True, False),  # logarithmic by itself
            ("x=bytes&logx=off&logloss=on", "bytes_sent", GROUPS, False, True),
            ("x=seconds&seeds=on&theme=dark&bands=off", "seconds", SEEDS, False, False)):
        found = browser.Figures(browser.dump(page, f"{anchor}&numbers=on")).found
        check_lines(found["train_loss"], expect(runs, units, "train_loss", axis), logx, logy)
        if axis != "step":
            for column in ("val_top1", "val_top5"):
                check_lines(found[column], expect(runs, units, column, axis), logx)
        check_lines(found["density"], expect(runs, units, "density", "epoch"), logy=True)
        check_lines(found["nnz_over_k"], expect(runs, units, "nnz_over_k", "epoch"))
        check_bars(found["seconds_by_phase"], runs, units)
        print(anchor, len(units), "lines of", len(found), "figures")


def check_bars(figure, runs, units):
    """Widths of the bars are the seconds of an average epoch."""
    across = mapping(figure["ticks"]["x"], False)
    for label, names in units.items():
        end = across(0)
        for phase in ("data", "forward", "backward", "select", "exchange", "wait", "update"):
            every = [row for name in names for row in [rows_of(runs[name] / "metrics.csv")]]
            mean = sum(sum(row[f"sec_{phase}"] - (row["sec_wait"] if phase == "exchange" else 0)
                           for row in rows) / len(rows) for rows in every) / len(every)
            x, width = figure["bars"][label, phase]
            assert abs(x - end) < 1 and abs(width - (across(mean) - across(0))) < 1, (label, phase)
            end = x + width


def check_switches(page):
    """What the controls do when they are used."""
    by_anchor = browser.Figures(browser.dump(page, "x=bytes&seeds=on&theme=dark")).found
    told = browser.result(page, r"""
      const $ = (query) => document.querySelector(query), all = (query) =>
        [...document.querySelectorAll(query)];
      const light = getComputedStyle(document.body).backgroundColor;
      $('[name=x][value=bytes]').click();
      $('[name=seeds]').click();
      $('[name=theme][value=dark]').click();
      const dark = getComputedStyle(document.body).backgroundColor;
      const paths = all('[data-name=train_loss] path.line').map((path) => path.getAttribute('d'));
      const anchor = location.hash;
      const bands = () => all('[data-name=val_top1] path.band').length;
      $('[name=seeds]').click();
      const with_bands = bands();
      $('[name=bands]').click();
      const without_bands = bands();
      $('.legend input').click();
      const fewer = all('[data-name=train_loss] path.line').length;
      const fewer_paths = all('[data-name=train_loss] path.line')
        .map((path) => path.getAttribute('d'));
      $('[name=measure0][value=seconds]').click();
      const chart = $('[data-name=val_top1] svg');
      chart.focus();
      const focused = document.activeElement === chart;
      chart.dispatchEvent(new KeyboardEvent('keydown', { key: 'ArrowRight' }));
      const first = $('[data-name=val_top1] .readout').textContent;
      chart.dispatchEvent(new KeyboardEvent('keydown', { key: 'ArrowRight' }));
      const second = $('[data-name=val_top1] .readout').textContent;
      const copy = $('[data-name=val_top1] button');
      copy.click();
      const area = $('[data-name=val_top1] textarea');
      const link = $('[data-name=val_top1] a');
      document.addEventListener('click', (event) => event.preventDefault());
      link.click();
      const picture = $('[data-name=train_loss] a[download$=svg]');
      picture.click();
      const closed = all('details:not([open])').length;
      dispatchEvent(new Event('beforeprint'));
      const open = all('details:not([open])').length;
      dispatchEvent(new Event('afterprint'));
      const seconds = $('[data-name=predictions_1] h3').textContent;
      const distributions = $('[data-name=histogram]').closest('section')
        .querySelector('.legend').textContent;
      const unnamed = all('svg[role=img]').filter((svg) => !svg.getAttribute('aria-label')).length;
      tell({ light, dark, paths, anchor, with_bands, without_bands, fewer, focused, first, second,
        area: area.hidden ? '' : area.value, link: decodeURIComponent(link.href.split(',')
        .slice(1).join(',')), svg: decodeURIComponent(picture.href), closed, open,
        closed_again: all('details:not([open])').length, fewer_paths, seconds,
        unnamed, distributions, headings: all('h2').length });""")
    assert told["light"] == "rgb(255, 255, 255)" and told["dark"] != told["light"], told["dark"]
    lines = by_anchor["train_loss"]["lines"].values()
    assert told.pop("paths") == ["M" + "L".join(f"{x:.2f},{y:.2f}" for x, y in line)
                             for line in lines], "a click and the anchor draw different lines"
    assert told["anchor"] == "#x=bytes&theme=dark&seeds=on", told["anchor"]
    assert told["with_bands"] == 2 and told["without_bands"] == 0, told
    assert told["fewer"] == 3 and told["focused"] and told["unnamed"] == 0, told
    assert told["first"].startswith("bytes sent, all ranks ") and told["first"] != told["second"]
    assert told["area"].startswith("label,bytes_sent,val_top1,") and told["link"] == told["area"]
    kind, _, svg = told["svg"].partition(",")
    drawing = xml.etree.ElementTree.fromstring(svg)
    written = {text.text.strip() for text in drawing.iter(f"{SVG}text") if text.text}
    assert kind.startswith("data:image/svg+xml") and "var(" not in svg and "class=" not in svg
    assert {"Training loss", "bytes sent, all ranks", "topk, density 0.01 (3 seeds)"} <= written
    assert "dense" not in written  # its box is off
    paths = [path.get("d") for path in drawing.iter(f"{SVG}path")]
    assert len(told["fewer_paths"]) == 3 and set(told["fewer_paths"]) <= set(paths), paths
    assert told["closed"] == told["closed_again"] == 2 and told["open"] == 0, told
    assert told["seconds"] == "Seconds of an iteration, 4 ranks" and told["headings"] == 6, told
    assert told["distributions"].strip() == "gaussiank, density 0.01, seed 1", told
    print("switches, keys, CSV, print")


def check_layout(page):
    """No text is cut or lies on another; the page is not wider than the window."""
    for width in (400, 900, 1600):
        # a window of Chromium has at least 500 pixels, so the page is narrowed
        told = browser.result(page, f"const width = {width};" + r"""
          document.documentElement.style.width = `${width}px`;
          dispatchEvent(new Event('resize'));
          const boxes = (root, query) => [...root.querySelectorAll(query)].map((text) =>
            ({ text: text.textContent, box: text.getBoundingClientRect() }));
          const problems = [];
          let columns = 0;
          for (const svg of document.querySelectorAll('figure svg[role=img]')) {
            const outer = svg.getBoundingClientRect(), texts = boxes(svg, 'text');
            texts.forEach(({ text, box }, i) => {
              if (box.left < outer.left - 1 || box.right > outer.right + 1 ||
                  box.top < outer.top - 1 || box.bottom > outer.bottom + 1)
                problems.push(`${text} is cut`);
              for (const other of texts.slice(i + 1))
                if (box.left < other.box.right && other.box.left < box.right &&
                    box.top < other.box.bottom - 2 && other.box.top < box.bottom - 2)
                  problems.push(`${text} lies on ${other.text}`);
            });
          }
          for (const { text, box } of boxes(document, 'h1, h3, p, label, button'))
            if (box.right > width + 1) problems.push(`${text} leaves the window`);
          if (document.body.scrollWidth > width) problems.push('too wide');
          for (const table of document.querySelectorAll('.table')) {
            const scroll = table.querySelector('.scroll');
            scroll.dispatchEvent(new Event('scroll'));
            const hint = parseInt(table.querySelector('.more').textContent.match(/\d+/) ?? 0);
            const outside = [...scroll.querySelectorAll('th')].filter((th) =>
              th.getBoundingClientRect().right > scroll.getBoundingClientRect().right + 1).length;
            if (hint !== outside) problems.push(`a hint at ${hint} of ${outside} columns`);
            columns += outside;
          }
          const size = parseFloat(getComputedStyle(document.querySelector('.tick')).fontSize);
          const svg = document.querySelector('figure svg[role=img]');
          tell({ problems, columns, drawn: svg.viewBox.baseVal.width,
            size: size * svg.getBoundingClientRect().width / svg.viewBox.baseVal.width });""",
                              anchor="x=bytes&seeds=on", width=max(500, width))
        assert not told["problems"] and (told["columns"] or width > 900), (width, told)
        assert 300 <= told["drawn"] < width and told["size"] > 11, told
        print("width", width)


def check_ticks(page):
    """Labels of ticks at the edges of a chart are whole."""
    told = browser.result(page, r"""
      const plot = document.querySelector('.plot'), cut = [];
      for (let end = 1; end < 300; end += 7) {
        const points = [{ x: 1, y: 1 }, { x: end * 2 ** 20, y: 2 }];
        const series = [{ label: 'a', look: 'c0', dash: 0, column: 'b', points }];
        for (const log of [true, false]) {
          const made = lineChart({ width: 400, title: '', series, x: { ...AXES.bytes, log },
            y: { form: short } });
          plot.innerHTML = made.markup;
          plot.firstElementChild.style.width = '400px';
          const outer = plot.firstElementChild.getBoundingClientRect();
          for (const tick of plot.querySelectorAll('.tick')) {
            const box = tick.getBoundingClientRect();
            if (box.left < outer.left || box.right > outer.right) cut.push(tick.textContent);
          }
        }
      }
      tell(cut);""")
    assert not told, told
    print("ticks")


def main():
    page, runs = sys.argv[1], {folder.name: folder for folder in map(Path, sys.argv[2:])}
    check_curves(page, runs)
    check_switches(page)
    check_layout(page)
    check_ticks(page)


if __name__ == "__main__":
    main()
