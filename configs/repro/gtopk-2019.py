"""gTop-k: Shi et al., ICDCS 2019."""

from repro.claims import LENET, LONG, SHAPES, TRAINING, UNJUDGED, Curve, Scale, claim
from repro.values import UNKNOWN

CONVERGES = ("nearly consistent convergence performance with S-SGD, and only slight degradation of "
             "generalization performance")
ABSTRACT = "abstract of arXiv 1901.04359"
IN_PROPORTION = "30 epochs instead of 140, milestones and warm-up in proportion."
SHORT = Scale(IN_PROPORTION, epochs=30, lr_milestones=[17, 26], warmup_epochs=2, val_size=5000)
RESNET20 = {"quick": Scale(UNJUDGED, **SHAPES, bn_stats="recompute", epochs=2), "short": SHORT}
BF16 = {"set": {"allreduce.values": "bf16"}}
# one point of top-1 is taken as the most that is slight
SLIGHT = {"least": -0.01, "theirs": "slight degradation", "scales": LONG,
          "why": "the words are 'slight degradation'; one point is taken as the most"}
LINK = {"alpha": 0.000436, "beta": 3.6e-8}  # theirs: seconds, and seconds an element


def top1(row, other):
    return row.value("val_top1") - other.value("val_top1")


def gaussiank(plan, network):
    plan.row("gaussiank", config=f"gtopk-2019/{network}-topk.json", sparsifier="gaussiank",
             set={"gaussiank.refine": "paper"}, scales=("quick", "short"))


def dense_rows(plan, network):
    plan_dense = plan.row("dense", config=f"gtopk-2019/{network}-dense.json")
    plan.row("dense-bf16", config=f"gtopk-2019/{network}-dense.json",
             label="dense, messages in bf16", scales=("quick", "short"), **BF16)
    plan.row("topk", config=f"gtopk-2019/{network}-topk.json")
    return plan_dense


@claim("A1", "gtopk-2019", "ResNet-20: convergence of gTop-k", CONVERGES, ABSTRACT,
       RESNET20 | {"paper": Scale()}, measures=TRAINING)
def resnet20(plan):
    """Their curves of this network and of VGG-16 compare equal batches (4 workers of 32 and 128);
    those on ImageNet do not: AlexNet has 8 workers of 256 with dense and 4 with gtopk, ResNet-50 8
    of 64 with dense and 4 of 32 with gtopk (`icdcs2019_convergence` in
    scripts/icdcs2019/plot_loss.py of hclhkbu/gtopkssgd)."""
    dense = dense_rows(plan, "resnet20")
    gtopk = plan.row("gtopk", config="gtopk-2019/resnet20-gtopk.json", label="gtopk, as published")
    gaussiank(plan, "resnet20")
    plan.row("gtopk-corrected", config="gtopk-2019/resnet20-gtopk.json",
             label="gtopk, conserving, momentum correction", momentum_correction="on",
             set={"gtopk.put_back": "conserve", "gtopk.rotate": "true"},
             scales=("quick", "short"))
    plan.row("dgc", config="gtopk-2019/resnet20-topk.json", sparsifier="dgc",
             scales=("quick", "short"))
    plan.rule("top-1 of gtopk minus that of dense", top1(gtopk, dense), **SLIGHT)


@claim("A1-vgg16", "gtopk-2019", "VGG-16: convergence of gTop-k", CONVERGES, ABSTRACT,
       {"quick": Scale(f"LeNet-5 instead of VGG-16. {UNJUDGED}", **LENET, batch_size=32, epochs=4),
        "short": SHORT, "paper": Scale()}, measures=TRAINING)
def vgg16(plan):
    dense = dense_rows(plan, "vgg16")
    gtopk = plan.row("gtopk", config="gtopk-2019/vgg16-gtopk.json")
    gaussiank(plan, "vgg16")
    plan.rule("top-1 of gtopk minus that of dense", top1(gtopk, dense), **SLIGHT)


@claim("A1-density", "gtopk-2019", "ResNet-20 and VGG-16: sensitivity of gTop-k to the density",
       CONVERGES, ABSTRACT,
       {"quick": Scale("LeNet-5 on generated images and a few epochs: the accuracies say nothing "
                       "about the claim.", **LENET, epochs=2),
        "short": Scale("10 epochs instead of 140, milestones and warm-up in proportion.",
                       epochs=10, val_size=5000, lr_milestones=[6, 9], warmup_epochs=1),
        "paper": Scale()}, measures=TRAINING)
def density(plan):
    """The densities are in the comments of scripts/icdcs2019/plot_loss.py of hclhkbu/gtopkssgd;
    the abstract names none."""
    for network, row, label, scales in (("resnet20", "", "", ("quick", *LONG)),
                                        ("vgg16", "vgg16-", "VGG-16, ", LONG)):
        most, _, least = [
            plan.row(f"{row}gtopk-{one}", config=f"gtopk-2019/{network}-gtopk.json", density=one,
                     label=f"{label}gtopk, density {one}", scales=scales)
            for one in (0.001, 0.0005, 0.0001)]
        name = label.replace(", ", ": ")
        plan.rule(f"{name}top-1 of gtopk-0.0001 minus that of gtopk-0.001", top1(least, most),
                  **SLIGHT)


@claim("A1-exact", "gtopk-2019", "ResNet-20: gTop-k beside the k largest of all entries",
       "gTop-k trains as well as a selection of the k largest of the sum of all sent entries",
       "a figure in scripts/icdcs2019 of hclhkbu/gtopkssgd (select k from kP); the abstract of "
       "arXiv 1901.04359 does not have it", RESNET20, measures=TRAINING)
def exact(plan):
    plan.row("dense", config="gtopk-2019/resnet20-dense.json")
    gtopk = plan.row("gtopk", config="gtopk-2019/resnet20-gtopk.json", label="gtopk, as published")
    best = plan.row("exact", config="gtopk-2019/resnet20-gtopk.json", sparsifier="exact",
                    label="exact: the k largest of the sum of all")
    plan.rule("top-1 of gtopk minus that of exact", top1(gtopk, best), -0.01,
              theirs="close, in a figure of the authors", scales=("short",),
              why="one point of top-1 is taken as the most that is close, as in A1")


K_OF_RESNET50 = "k = 25,600, that of ResNet-50 at density 0.001. By parameters: density 0.001."


@claim("A2", "gtopk-2019", "cost of the exchange over the number of workers",
       "reduces the communication complexity from O(kP) to O(k log P), where P is the number of "
       "workers", ABSTRACT,
       {"quick": Scale(f"By ranks: a vector of a million elements and {K_OF_RESNET50}"),
        "short": Scale(f"By ranks: a vector of eight million elements and {K_OF_RESNET50}"),
        "paper": Scale()})
def exchange(plan):
    """Exchange of sparse entries, and of whole vectors by a ring in f32 and bf16, on links with the
    0.436 ms and 3.6e-5 ms per element of the plotting scripts in hclhkbu/gtopkssgd. `allgather` is
    the exchange of topk. k is the same for all P. Up to 16 ranks the messages are sent on a
    simulated clock; beyond, the cost model of `advise` predicts. Over the number of parameters, k
    is a thousandth of it; the dotted lines are what `plot_allreduce_comparison` of that script
    draws, with 1 ms for each message in place of the 0.436 ms. Point to point: a broadcast to one
    rank, between threads of this machine and on the link of the script, beside its line for
    measured messages (`plot_p2platency`)."""
    elements, density = {"quick": (1_000_000, 0.0256), "short": (8_000_000, 0.0032),
                         "paper": (25_600_000, 0.001)}[plan.scale]
    bench = {"min_bytes": 4 * elements, "max_bytes": 4 * elements, "density": density,
             "link": "888.9Mbit,0.436ms", "simulated_clock": True, "iterations": 1, "warmup": 1}
    few, many = (2, 4, 8, 16), (32, 64, 128)
    sparse = {P: plan.row(f"exchange-P{P}", "bench comm", **bench, collective="sparse", workers=P)
              for P in few}
    dense = {P: plan.row(f"dense-P{P}", "bench comm", **bench, collective="allreduce",
                         implementation="ring", workers=P) for P in few}
    model = plan.row("model", "advise", parameters=elements, density=density, simulate=True,
                     select=0, **LINK, compute=1, ranks=[*few, *many])
    sizes = {m: plan.row(f"parameters-{m}M", "advise", parameters=m * 2**20, simulate=True,
                         select=0, **LINK, compute=1, ranks=[32])
             for m in (1, 2, 4, 8, 16, 32, 64, 128)}
    message = {"collective": "broadcast", "implementation": "binomial_tree", "workers": 2,
               "min_bytes": 2**14, "max_bytes": 2**22}
    here = plan.row("point-to-point", "bench comm", **message, iterations=100)
    link = plan.row("point-to-point-link", "bench comm", **message, link=bench["link"],
                    simulated_clock=True, iterations=1, warmup=1)
    rings = ("ring", "ring bf16")
    for rows, names, of in ((sparse, ("allgather", "gtopk"), ""), (dense, rings, "dense ")):
        for unit, column in (("seconds, simulated clock", "seconds"),
                             ("MiB per rank", "mib_per_rank")):
            for name in names:
                for P, row in rows.items():
                    plan.line(f"{of}{name}, P = {P}, {unit}", row.value(column, algorithm=name))
    predicted = [(name, {"sparsifier": name}) for name in ("topk", "gtopk")]
    predicted += [(f"dense {ring}", {"sparsifier": "dense", "collective": ring}) for ring in rings]
    for name, where in predicted:
        for P in many:
            plan.line(f"{name}, P = {P}, seconds, predicted",
                      model.value("exchange_seconds", **where, ranks=P))
    for name, where in predicted[:3]:
        for m, row in sizes.items():
            plan.line(f"{name}, P = 32, {m} × 2^20 parameters, seconds, predicted",
                      row.value("exchange_seconds", **where, ranks=32))
    theirs = {size: LINK["alpha"] + LINK["beta"] * size / 4
              for size in (2**14, 2**16, 2**18, 2**20, 2**22)}
    for size, of_script in theirs.items():
        plan.line(f"point to point between threads, {size} bytes, seconds",
                  here.value("seconds", bytes=size), of_script)

    def seconds(name, P):
        return sparse[P].value("seconds", algorithm=name)

    plan.rule("gtopk: seconds at P = 16 over P = 2", seconds("gtopk", 16) / seconds("gtopk", 2),
              most=4.4, theirs="O(k log P): 4",
              why="log2 16 / log2 2 = 4, and a tenth for effects of a finite message length")
    plan.rule("topk: seconds at P = 16 over P = 2",
              seconds("allgather", 16) / seconds("allgather", 2), 7.5, theirs="O(kP): 8",
              why="O(kP) is 8 times, (P-1)k is 15 times; latency grows slower")
    plan.rule("topk over gtopk, seconds at P = 16",
              seconds("allgather", 16) / seconds("gtopk", 16), 1, theirs="gtopk is cheaper",
              why="the claim is an improvement at many workers")
    at_128, at_16 = (model.value("exchange_seconds", sparsifier="gtopk", ranks=P)
                     for P in (128, 16))
    plan.rule("gtopk: seconds at P = 128 over P = 16", at_128 / at_16, most=1.925,
              theirs="O(k log P): 1.75",
              why="log2 128 / log2 16 = 1.75, and a tenth as above")

    def simulated(rows, first, **names):
        return [Curve(f"{label}, simulated", tuple(rows.values()), {"algorithm": name},
                      colour=first + i) for i, (label, name) in enumerate(names.items())]

    plan.columns = 2
    ours = simulated(sparse, 0, topk="allgather", gtopk="gtopk")
    rings_sent = simulated(dense, 2, **{f"dense {ring}": ring for ring in rings})
    model_curves = [Curve(f"{name}, predicted", (model,), where, y="exchange_seconds", style="--",
                          colour=i) for i, (name, where) in enumerate(predicted)]
    plan.panel("Seconds of the exchange", "ranks", "seconds", "ranks", "seconds",
               (*ours, *model_curves, *rings_sent), log="xy")
    plan.panel("Bytes sent per rank", "ranks", "mib_per_rank", "ranks", "MiB", (*ours, *rings_sent),
               log="xy")
    # k entries cost 2 k beta; P = 32 has five levels
    script = {"topk": (5e-3, 62), "gtopk": (10e-3, 20)}
    drawn = [Curve(f"{name}, formula of their script", style=":", colour=i,
                   points={m * 2**20: start + share * m * 2**20 / 1000 * LINK["beta"]
                           for m in sizes})
             for i, (name, (start, share)) in enumerate(script.items())]
    plan.panel("Seconds of the exchange, P = 32", "parameters", "exchange_seconds", "parameters",
               "seconds", [Curve(f"{name}, predicted", tuple(sizes.values()), where, style="--",
                                 colour=i) for i, (name, where) in enumerate(predicted[:3])]
               + drawn, log="xy")
    plan.panel("Point to point", "bytes", "seconds", "bytes", "seconds",
               [Curve("threads of this machine", (here,), colour=4),
                Curve("their link, simulated", (link,), colour=5),
                Curve("measured by them, fitted", points=theirs, style=":", colour=6)], log="xy")


# images/s per worker by number of workers; the unit of the LSTM is not stated
PUBLISHED = {
    "vgg16": {
        "dense": {1: 1317.3, 4: 104.2, 8: 92.56, 16: 39.48, 32: 12.6},
        "topk": {1: 1317.3, 4: 110.6, 8: 109.9, 16: 97.87, 32: 63.0},
        "gtopk": {1: 1317.3, 4: 131.1, 8: 130.6, 16: 126.4, 32: 123.2}},
    "resnet20": {
        "dense": {1: 920.6, 4: 821.7, 8: 705.2, 16: 520.4, 32: 287.9},
        "topk": {1: 920.6, 4: 908.8, 8: 753.0, 16: 737.6, 32: 696.0},
        "gtopk": {1: 920.6, 4: 916.3, 8: 868.7, 16: 808.5, 32: 789.3}},
    "alexnet": {
        "dense": {1: 173.5, 4: 14.01, 8: 12.12, 16: 4.936, 32: 1.234},
        "topk": {1: 173.5, 4: 14.24, 8: 13.87, 16: 13.35, 32: 9.236},
        "gtopk": {1: 173.5, 4: 16.54, 8: 16.45, 16: 16.36, 32: 15.78}},
    "resnet50": {
        "dense": {1: 52.87, 4: 39.0, 8: 36.99, 16: 23.18, 32: 10.72},
        "topk": {1: 52.87, 4: 37.73, 8: 35.7, 16: 34.5, 32: 30.58},
        "gtopk": {1: 52.87, 4: 39.8, 8: 39.71, 16: 39.06, 32: 39.12}},
    "lstm": {
        "dense": {1: 392.0, 4: 12.657, 8: 8.7, 16: 4.1, 32: 2.1},
        "topk": {1: 392.0, 4: 19.9, 8: 18.6, 16: 14.8, 32: 5.4},
        "gtopk": {1: 392.0, 4: 17.8, 8: 17.6, 16: 15.1, 32: 10.8}},
}
# seconds of an iteration of gtopk at P = 32
PARTS = ("computation", "compression", "communication")
BREAKDOWN = {"alexnet": (0.257205, 0.383776, 3.36298), "resnet20": (0.146005, 0.001618, 0.024686),
             "resnet50": (4.882041, 0.15405, 1.424253), "vgg16": (0.139536, 0.091353, 0.811753)}


@claim("A3", "gtopk-2019", "scaling efficiency on 1 Gbit/s",
       "on 32 machines with 1 Gbps Ethernet, 2.7-12× higher scaling efficiency than S-SGD and "
       "1.1-1.7× improvement over Top-k S-SGD", ABSTRACT,
       {"quick": Scale(), "short": Scale(), "paper": Scale()},
       theirs="throughputs per worker, images/s, by number of workers: `realdata_speedup` in "
       "scripts/icdcs2019/communication.py of hclhkbu/gtopkssgd; seconds of computation, "
       "compression and communication: `plot_breakdown` in the same file")
def scaling(plan):
    """Predicted with their latency (0.436 ms) and time per element (3.6e-5 ms), and a compute time
    of batch / their throughput on one GPU. Batch sizes are those of `plot_breakdown` in the same
    file: 128 for both networks on CIFAR-10, 64 for AlexNet, 256 for ResNet-50. With them, the
    compute time is within 5 % of theirs for ResNet-20 and ResNet-50, and 0.7 and 1.4 times theirs
    for VGG-16 and AlexNet. `realdata_speedup` names 128, and 32 for the other three, beside the
    throughputs; with those, which the lines with batch 32 have, four rules would hold, too. The
    selection takes no time here. Their dense baseline at P = 32 takes 6.7 to 12 times as long as a
    ring takes at their own latency and bandwidth. The rules compare with a ring; lines of the table
    compare with their baseline and with recursive halving, the fastest dense collective known here,
    in f32 and in bf16. Their gtopk at P = 32 communicates for 5 to 70 times as long as the formula
    says at their latency and bandwidth (`plot_breakdown`), so that their curves lie below the
    predicted ones; in the predicted breakdown only the communication is predicted, and computation
    and compression are theirs. Their own ratios at P = 32 leave the bands of the abstract: 12.8
    times dense for AlexNet, and 1.96, 1.71 and 2.00 times topk for VGG-16, AlexNet and the LSTM on
    Penn Treebank, whose throughputs are given here and not predicted: their unit is not stated."""
    workers, rows, small = [1, 4, 8, 16, 32], {}, {}

    def advise(name, network, batch, compute, ranks):
        images = ({"classes": 1000, "image_size": 224} if network in ("alexnet", "resnet50")
                  else {})
        return plan.row(name, "advise", simulate=True, select=0, model=network, batch_size=batch,
                        **LINK, compute=compute, ranks=ranks, **images)

    for network, batch, compute in (("vgg16", 128, 0.097168), ("resnet20", 128, 0.139035),
                                    ("alexnet", 64, 0.368942), ("resnet50", 256, 4.841791)):
        rows[network] = advise(network, network, batch, compute, workers)
    for network, compute in (("resnet20", 0.03476), ("alexnet", 0.184438), ("resnet50", 0.605258)):
        small[network] = advise(f"{network}-batch-32", network, 32, compute, [32])

    def rate(row, sparsifier, P=32, collective="ring"):
        dense = {"collective": collective} if sparsifier == "dense" else {}
        return row.value("images_per_s", sparsifier=sparsifier, **dense, ranks=P)

    def over(row, collective):
        return rate(row, "gtopk") / rate(row, "dense", collective=collective)

    rivals = ("ring bf16", "recursive_halving", "recursive_halving bf16")
    for label, sparsifier, collective in (
            ("dense ring", "dense", "ring"), ("dense ring in bf16", "dense", "ring bf16"),
            ("topk", "topk", ""), ("gtopk", "gtopk", "")):
        for network, row in rows.items():
            for P in workers:
                theirs = "" if "bf16" in label else PUBLISHED[network][sparsifier][P]
                plan.line(f"{network}, P = {P}, {label}, images/s per worker",
                          rate(row, sparsifier, P, collective), theirs)
    for sparsifier, theirs in PUBLISHED["lstm"].items():
        for P in workers:
            plan.line(f"lstm, P = {P}, {sparsifier}, per worker", UNKNOWN, theirs[P])
    for network, row in rows.items():
        theirs = PUBLISHED[network]
        plan.line(f"{network}, P = 32, gtopk predicted : dense measured by them",
                  rate(row, "gtopk") / theirs["dense"][32],
                  theirs["gtopk"][32] / theirs["dense"][32])
    theirs = PUBLISHED["lstm"]
    for rival in ("dense", "topk"):
        plan.line(f"lstm, P = 32, gtopk : {rival}", UNKNOWN,
                  theirs["gtopk"][32] / theirs[rival][32])
    gtopk = {"sparsifier": "gtopk", "ranks": 32}
    for network, parts in BREAKDOWN.items():
        row = rows[network]
        ours = (row.value("compute", **gtopk), UNKNOWN, row.value("exchange_seconds", **gtopk))
        for part, value, theirs in zip(PARTS, ours, parts):
            plan.line(f"{network}, P = 32, gtopk: {part}, seconds", value, theirs)
    for network, row in rows.items():
        for collective in rivals:
            plan.line(f"{network}, P = 32: gtopk : dense {collective}", over(row, collective))
    for network, row in small.items():
        plan.line(f"{network}, batch 32, P = 32: gtopk : dense ring", over(row, "ring"))
    for network, row in small.items():
        for collective in rivals:
            plan.line(f"{network}, batch 32, P = 32: gtopk : dense {collective}",
                      over(row, collective))
    for network, row in small.items():
        plan.line(f"{network}, batch 32, P = 32: gtopk : topk",
                  rate(row, "gtopk") / rate(row, "topk"))

    for network, row in rows.items():
        theirs = PUBLISHED[network]
        plan.rule(f"{network}, P = 32: gtopk : dense ring", over(row, "ring"), 2.7, 12,
                  theirs=theirs["gtopk"][32] / theirs["dense"][32],
                  why="the range of the abstract; with equal compute times the ratio of "
                  "efficiencies is that of throughputs")
    for network, row in rows.items():
        theirs = PUBLISHED[network]
        plan.rule(f"{network}, P = 32: gtopk : topk", rate(row, "gtopk") / rate(row, "topk"),
                  1.1, 1.7, theirs=theirs["gtopk"][32] / theirs["topk"][32],
                  why="the range of the abstract")

    plan.columns = 4
    for network, title in (("vgg16", "VGG-16, CIFAR-10, batch 128"),
                           ("resnet20", "ResNet-20, CIFAR-10, batch 128"),
                           ("alexnet", "AlexNet, ImageNet, batch 64"),
                           ("resnet50", "ResNet-50, ImageNet, batch 256"),
                           ("lstm", "LSTM, Penn Treebank: theirs alone")):
        predicted = [Curve(f"{label}, predicted", (rows[network],), where, colour=colour)
                     for label, colour, where in (
                         ("dense ring", 0, {"sparsifier": "dense", "collective": "ring"}),
                         ("dense ring bf16", 3, {"sparsifier": "dense",
                                                 "collective": "ring bf16"}),
                         ("topk", 1, {"sparsifier": "topk"}),
                         ("gtopk", 2, {"sparsifier": "gtopk"})) if network in rows]
        measured = [Curve(f"{name}, measured by them", points=points, style="--", colour=colour)
                    for colour, (name, points) in enumerate(PUBLISHED[network].items())]
        plan.panel(title, "ranks", "images_per_s", "ranks", "scaling efficiency",
                   (*predicted, *measured), log="xy", relative=True)
    measured = [Curve(part, points={network: parts[i] for network, parts in BREAKDOWN.items()})
                for i, part in enumerate(PARTS)]
    predicted = [*measured[:2],
                 Curve(PARTS[2], tuple(rows.values()), gtopk, y="exchange_seconds")]
    for title, curves in (("measured by them", measured), ("communication predicted", predicted)):
        plan.panel(f"gtopk at P = 32, {title}", "model", "", "", "share of an iteration", curves,
                   stacked=True)
