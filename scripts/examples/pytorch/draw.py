#!/usr/bin/env python3
"""draw.py CSV FIGURE: perplexity over bytes and over seconds, a line a method, means over seeds.

CSV: of lstm.py or gpt.py. Needs pandas and matplotlib.
"""

import sys
from pathlib import Path

import pandas
from matplotlib import pyplot

if len(sys.argv) != 3 or not Path(sys.argv[1]).is_file():
    sys.exit(__doc__.splitlines()[0])
table = pandas.read_csv(sys.argv[1])
table["MiB sent by all ranks"] = table["bytes"] / 2**20
mean = table.drop(columns="seed").groupby(["method", "step"]).mean().reset_index()
figure, panels = pyplot.subplots(1, 3, figsize=(13, 4), sharey=True, layout="constrained")
for panel, column in zip(panels, ["step", "MiB sent by all ranks", "seconds"], strict=True):
    for method, rows in mean.groupby("method", sort=False):
        panel.plot(rows[column], rows["perplexity"], label=method)
    if column != "step":
        panel.set_xscale("log", base=2)
    panel.set(xlabel=column, yscale="log")
    panel.grid(alpha=0.3)
    for axis in (panel.xaxis, panel.yaxis):
        axis.set_major_formatter("{x:g}")
    panel.yaxis.set_minor_formatter("{x:g}")
panels[0].set_ylabel("perplexity of the validation text")
figure.legend(*panels[0].get_legend_handles_labels(), loc="outside right upper")
figure.savefig(sys.argv[2])
print(mean[mean["step"] == mean["step"].max()].to_string(index=False))
