"""Linear Pipelining: Wang et al. 2017."""

from repro.claims import Curve, Scale, claim

ABSTRACT = "abstract of arXiv 1611.04255"
NAMES = {"LP": "linear_pipeline", "BE": "recursive_halving", "MST": "binomial_tree"}
BROADCAST = {"collective": "broadcast", "link": "1Gbit,0.05ms", "simulated_clock": True,
             "iterations": 1, "warmup": 1}
ALEXNET = {"dataset": "imagefolder", "batch_size": 8, "workers": 4, "link": "1Gbit,0.1ms",
           "lr": 0.0001, "warmup_epochs": 0, "eval_every": "never"}


def curves(*rows):
    return [Curve(label, rows, {"algorithm": name}) for label, name in NAMES.items()]


@claim("C1", "lp-2017", "broadcast over the number of ranks",
       "the cost of LP is invariant to P, that of Minimum Spanning Tree scales like O(log P)",
       ABSTRACT,
       {"quick": Scale("16 MB instead of 100 MB."), "short": Scale("100 MB."),
        "paper": Scale("100 MB.")})
def by_ranks(plan):
    """Broadcast on links of 1 Gbit/s and 0.05 ms, one full-duplex port per rank. BE is
    recursive_halving (scatter and allgather), MST is binomial_tree."""
    size = 16_000_000 if plan.scale == "quick" else 100_000_000
    rows = {P: plan.row(f"broadcast-P{P}", "bench comm", label=f"P = {P}", min_bytes=size,
                        max_bytes=size, workers=P, **BROADCAST) for P in (2, 4, 8, 16)}

    def seconds(name, P):
        return rows[P].value("seconds", algorithm=name, bytes=size)

    def growth(label):
        return seconds(NAMES[label], 16) / seconds(NAMES[label], 2)

    for name in NAMES.values():
        for P in rows:
            plan.line(f"{name}, P = {P}, seconds", seconds(name, P))
    plan.rule("LP: seconds at P = 16 over P = 2", growth("LP"), 0.75, 1.25,
              theirs="invariant to P",
              why="a quarter at most while P grows eightfold and log P fourfold; the invariance is "
              "that of long messages")
    plan.rule("MST: seconds at P = 16 over P = 2", growth("MST"), 3.6, 4.4,
              theirs="O(log P): 4", why="log2 16 / log2 2 = 4, within a tenth")
    plan.panel("Broadcast of one size", "ranks", "seconds", "ranks", "seconds, simulated clock",
               curves(*rows.values()), log="x")


@claim("C2", "lp-2017", "broadcast over the size",
       "up to 2x faster bandwidth than Bidirectional Exchange", ABSTRACT,
       {"quick": Scale(), "short": Scale(), "paper": Scale()})
def by_size(plan):
    """Broadcast on links of 1 Gbit/s and 0.05 ms, one full-duplex port per rank. BE is
    recursive_halving (scatter and allgather), MST is binomial_tree."""
    shown = [2**16, 2**20, 2**24] + [2**27] * (plan.scale != "quick")
    most = shown[-1]
    row = plan.row("sizes", "bench comm", min_bytes=shown[0], max_bytes=most,
                   factor=16 if plan.scale == "quick" else 2, workers=16, **BROADCAST)

    def rate(label, size):
        return row.value("algbw_gb_s", algorithm=NAMES[label], bytes=size)

    for label, name in NAMES.items():
        for size in shown:
            plan.line(f"{name}, {size} bytes, GB/s", rate(label, size))
    plan.rule(f"LP over BE, GB/s at {most} bytes, P = 16", rate("LP", most) / rate("BE", most),
              1.5, 2.5, theirs="up to 2",
              why="what rounds to 2; the size is the largest, because 'up to' names the best case")
    plan.panel("Broadcast on 16 ranks", "bytes", "seconds", "bytes", "seconds, simulated clock",
               curves(row), log="xy")
    plan.panel("Bandwidth", "bytes", "algbw_gb_s", "bytes", "GB/s", curves(row), log="x")


ATTRACTIVE = ("the collectives reduce communication bottlenecks in practice while preserving the "
              "attractive convergence properties of BSP-SGD")


def bsp(plan, config, beta):
    """The rows of BSP-SGD with each collective, rules, and panels; beta: seconds of an element."""
    blocks = {"linear_pipeline.alpha": "0.0001", "linear_pipeline.beta": beta}
    rows = {label: plan.row(label.lower(), config=config, label=label, sparsifier="bsp",
                            set={"root.collective": name, **(blocks if label == "LP" else {})})
            for label, name in NAMES.items()}

    def over(rival, column):
        return rows["LP"].value(column) / rows[rival].value(column)

    for rival in ("BE", "MST"):
        plan.rule(f"training loss of the first epoch, LP over {rival}",
                  over(rival, "first_train_loss"), 0.99, 1.01, theirs="convergence preserved",
                  why="equal up to rounding, which training amplifies; one per cent")
    for rival in ("BE", "MST"):
        plan.rule(f"seconds per step, LP over {rival}", over(rival, "seconds_per_step"), most=1,
                  theirs="reduce communication bottlenecks",
                  why="LP takes less time than what it replaces")
    by_row = [Curve(row.label, (row,), style=style) for row, style in
              zip(rows.values(), ("", "--", ":"))]
    for title, x, label in (("step", "step", "step"), ("time", "+seconds", "seconds")):
        plan.panel(f"Training loss by {title}", x, "train_loss", label, "loss", by_row,
                   file="steps.csv")


@claim("C3", "lp-2017", "BSP-SGD with LP, BE and MST", ATTRACTIVE, ABSTRACT,
       {"quick": Scale("LeNet-5 on generated images, 40 steps.", model="lenet", dataset="shapes",
                       lr=0.01, link="100Mbit,0.1ms", max_steps=40, epochs=1),
        "short": Scale("One epoch, the first of the ten in which the learning rate rises.",
                       max_steps=390, epochs=1, link="100Mbit,0.1ms"),
        "paper": Scale("Five epochs, the learning rate rises in the first.", epochs=5,
                       warmup_epochs=1, link="100Mbit,0.1ms")},
       measures=("seconds_per_step", "first_train_loss", "val_loss", "val_top1", "mib_per_step"))
def training(plan):
    """`bsp`: reduce to rank 0, update there, broadcast. BE is recursive_halving, MST is
    binomial_tree. LP forms sums in another order than BE and MST, whose bits agree, so that its
    losses agree with theirs up to rounding only. Validation is on the test file. The link has 100
    Mbit/s and 0.1 ms; LP takes its block size from these numbers instead of measuring them in the
    first step."""
    bsp(plan, "gtopk-2019/resnet20-dense.json", "3.2e-7")


@claim("C3-alexnet", "lp-2017", "AlexNet: BSP-SGD with LP, BE and MST", ATTRACTIVE, ABSTRACT,
       {"quick": Scale("Five steps.", **ALEXNET, max_steps=5),
        "short": Scale("20 steps.", **ALEXNET, max_steps=20)},
       measures=("seconds_per_step", "first_train_loss", "mib_per_step"))
def alexnet(plan):
    """As C3, on 224 × 224 pixels of image files in class folders, four workers of 8 images, on a
    link of 1 Gbit/s and 0.1 ms."""
    bsp(plan, "gtopk-2019/alexnet-dense.json", "3.2e-8")
