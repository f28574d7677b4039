"""GaussianK: Shi, Chu et al. 2019."""

from repro.claims import LENET, LONG, SHAPES, TRAINING, UNJUDGED, Curve, Scale, claim
from repro.values import UNKNOWN

ABSTRACT = "abstract of arXiv 1911.08772"
NO_IMPACT = ("Top-k sparsification with error compensation reduces the traffic without an obvious "
             "impact on the model accuracy")
RANDK_FAILS = f"{NO_IMPACT}; that RandK-SGD fails is second-hand"
FEW = f"LeNet-5 and 4 workers instead of ResNet-20 and 16. {UNJUDGED}"
PAPER = ("140 epochs, as in the recipes. The configurations of the authors have 141, the figures "
         "of the paper show 120.")
BELL = {"quick": Scale("LeNet-5 and 4 workers on generated images.", **LENET, epochs=4, workers=4),
        "short": Scale("The first three of 30 epochs, with 4 workers instead of 16: one epoch at "
                       "each density, 0.015625, 0.004 and 0.001.", epochs=30,
                       lr_milestones=[17, 26], warmup_epochs=1, workers=4, max_steps=1170),
        "paper": Scale(PAPER)}
BF16 = {"set": {"allreduce.values": "bf16"}}
# one point of top-1 is taken as the most that is not obvious
NOT_OBVIOUS = {"least": -0.01, "theirs": "no obvious impact", "scales": LONG,
               "why": "the words are 'without an obvious impact on the model accuracy'; one point "
               "of top-1 is taken as the most that is not obvious"}
FAILS = {"most": -0.1, "theirs": "RandK-SGD fails (second-hand)", "scales": LONG,
         "why": "a failure is taken as ten points of top-1 or more, ten times what counts as not "
         "obvious"}


def recipe(name):
    return f"gaussiank-2019/resnet20-{name}.json"


def top1(row, other):
    return row.value("val_top1") - other.value("val_top1")


BELL_SHAPED = ("gradient coordinates are bell-shaped (second-hand; the abstract says that the "
               "gradient distributions of TopK-SGD are studied during training)")
TIGHTER = ("a tighter bound for the Top-k operator than the exact bound of Random-k; its form, "
           "||u - Top_k(u)||² <= (1 - k/d)² ||u||² for bell-shaped u, is second-hand")
AT_MOST_1 = {"theirs": "at most 1", "why": "the inequality", "most": 1}


def bell_rules(plan, row):
    plan.rule(f"least kurtosis over the epochs, {row.name}", row.value("least_kurtosis"), 3,
              theirs="bell-shaped", scales=LONG,
              why="3 is the normal distribution; a flat one has 1.8, two values 1")
    plan.rule(f"most abs(mean) / deviation over the epochs, {row.name}", row.value("most_offset"),
              most=0.1, theirs="bell-shaped", scales=LONG,
              why="the bell is centred at zero if the mean is within a tenth of the deviation")


@claim("B1", "gaussiank-2019", "distribution of gradient and residual", BELL_SHAPED, ABSTRACT, BELL,
       measures=("least_kurtosis", "most_offset"), figure="histograms")
def distribution(plan):
    """u is what is selected from, on rank 0: the gradient with dense, gradient + residual with
    topk."""
    for name, label in (("dense", "dense: gradient"), ("topk", "topk: gradient + residual")):
        bell_rules(plan, plan.row(name, config=recipe(name), label=label, analyze_every=50))


# options of the networks by scale; those of LeNet-5 (quick) and ResNet-20 (short) are those of B1
SMALL = {"workers": 4, "analyze_every": 50}
FIRST = {**SMALL, "epochs": 30, "lr_milestones": [17, 26], "warmup_epochs": 1}
THREE = {**SMALL, "dataset": "shapes", "lr": 0.01, "epochs": 3, "warmup_epochs": 1}
NETWORKS = {
    "quick": {"mlp": {**LENET, **SMALL, "model": "mlp", "epochs": 3},
              "lenet": {**LENET, **SMALL, "epochs": 4},
              "resnet20": {**SHAPES, **SMALL, "epochs": 1, "analyze_every": 20},
              "vgg16": {**SHAPES, **SMALL, "epochs": 1, "batch_size": 8, "max_steps": 40,
                        "analyze_every": 10}},
    "short": {"mlp": {**THREE, "model": "mlp"}, "lenet": {**THREE, "model": "lenet"},
              "resnet20": {**FIRST, "max_steps": 1170}, "vgg16": {**FIRST, "max_steps": 291}}}
SCALES = {"quick": Scale("Generated images; VGG-16 takes 40 steps."),
          "short": Scale("MLP and LeNet-5: three epochs of generated images, where the authors "
                         "have MNIST. ResNet-20 and VGG-16: the first three of 30 epochs. 4 "
                         "workers instead of 16.")}


def network_rows(plan, *names):
    """{network: its rows of these names}"""
    label, recipes = {"dense": "gradient", "topk": "gradient + residual"}, {"vgg16": "vgg16"}
    at_scale = NETWORKS.get(plan.scale, NETWORKS["short"])
    return {network: [plan.row(
        f"{network}-{name}", label=f"{network}, {name}: {label[name]}", **options,
        config=f"gaussiank-2019/{recipes.get(network, 'resnet20')}-{name}.json")
        for name in names] for network, options in at_scale.items()}


@claim("B1-networks", "gaussiank-2019", "distribution of gradient and residual by network",
       BELL_SHAPED, ABSTRACT, SCALES, measures=("least_kurtosis", "most_offset"),
       figure="histograms")
def networks(plan):
    """The authors draw FNN, LeNet, ResNet-20, VGG-16 and two LSTMs; Thinwire has no LSTM."""
    for rows in network_rows(plan, "dense", "topk").values():
        for row in rows:
            bell_rules(plan, row)


@claim("B2-networks", "gaussiank-2019", "bound of the Top-k operator by network", TIGHTER, ABSTRACT,
       SCALES, figure="ratios")
def networks_bound(plan):
    # the trainings of B1-networks
    for network, (row,) in network_rows(plan, "topk").items():
        largest = row.value("most_topk_over_bound")
        text = f"{network}: largest left_topk / (1 - k/d)²"
        plan.line(f"{text} over the epochs", largest, "at most 1")
        plan.rule(text, largest, **AT_MOST_1, scales=LONG)


@claim("B2", "gaussiank-2019", "bound of the Top-k operator",
       TIGHTER, ABSTRACT,
       {"quick": Scale("The trained rows are LeNet-5 on generated images."),
        "short": Scale("The trained row has the first three of 30 epochs, with 4 workers instead "
                       "of 16."),
        "paper": Scale(PAPER)}, figure="ratios")
def bound(plan):
    # the training of B1
    topk = plan.row("topk", config=recipe("topk"), label="training with topk",
                    **BELL[plan.scale].options, analyze_every=50).value("most_topk_over_bound")
    random = plan.row("random", "analyze theory")
    plan.line("topk: largest left_topk / (1 - k/d)² over the epochs", topk, "at most 1")
    plan.rule("topk: largest left_topk / (1 - k/d)²", topk, **AT_MOST_1, scales=LONG)
    for vector in ("gaussian", "laplace"):
        for rho in (0.001, 0.01, 0.1):
            where = {"vector": vector, "density": rho}
            left = random.value("topk_drawn", **where) / random.value("bound", **where)
            plan.line(f"{vector}, k/d = {rho}: left by Top-k / (1 - k/d)²", left, "at most 1")
            plan.rule(f"{vector} vector, k/d = {rho}", left, **AT_MOST_1)


@claim("B3", "gaussiank-2019", "ResNet-20: accuracy of TopK-, GaussianK- and RandK-SGD",
       RANDK_FAILS, ABSTRACT,
       {"quick": Scale(FEW, **LENET, epochs=4, workers=4),
        "short": Scale("The runs of claim A1: 30 epochs and 4 workers with gTop-k's schedule, "
                       "instead of 140 epochs and 16 workers with GaussianK's.", epochs=30,
                       lr_milestones=[17, 26], warmup_epochs=2, warmup_from=0.25, decay_all=True,
                       density_warmup=[0.004], workers=4, val_size=5000),
        "paper": Scale(PAPER, analyze_every=50)}, measures=TRAINING)
def accuracy(plan):
    dense = plan.row("dense", config=recipe("dense"))
    plan.row("dense-bf16", config=recipe("dense"), label="dense, messages in bf16",
             scales=("quick", "short"), **BF16)
    topk, gaussiank, randk = (
        plan.row(name, config=recipe(name), label=label) for name, label in (
            ("topk", None), ("gaussiank", None), ("randk", "randk without error feedback")))
    plan.rule("top-1 of topk minus that of dense", top1(topk, dense), **NOT_OBVIOUS)
    plan.rule("top-1 of gaussiank minus that of dense", top1(gaussiank, dense), **NOT_OBVIOUS)
    plan.rule("top-1 of randk minus that of dense", top1(randk, dense), **FAILS)


@claim("B3-density", "gaussiank-2019", "ResNet-20: sensitivity to the density", NO_IMPACT,
       ABSTRACT,
       {"quick": Scale(FEW, **LENET, epochs=3, workers=4),
        "short": Scale("10 epochs instead of 140, milestones in proportion, one epoch of warm-up. "
                       "4 workers instead of 16. Densities 0.0001, 0.001, 0.005 and 0.01.",
                       epochs=10, val_size=5000, lr_milestones=[6, 9], warmup_epochs=1, workers=4),
        "paper": Scale(PAPER, analyze_every=50)}, measures=TRAINING)
def density(plan):
    """The densities of hclhkbu/GaussianK-SGD are 0.001, 0.005 and 0.01. No epoch of the density
    warm-up has less than the density of the row."""
    densities = [0.0001] * (plan.scale == "short") + [0.001, 0.005, 0.01]
    for name in ("topk", "gaussiank"):
        rows = {}
        for one in densities:
            early = {"density_warmup": [0.015625]} if one > 0.001 else {}
            rows[one] = plan.row(f"{name}-{one}", config=recipe(name),
                                 label=f"{name}, density {one}", density=one, **early)
        plan.rule(f"top-1 of {name}-0.001 minus that of {name}-0.01",
                  top1(rows[0.001], rows[0.01]), **NOT_OBVIOUS)


@claim("B3-workers", "gaussiank-2019", "ResNet-20 by the number of workers", RANDK_FAILS, ABSTRACT,
       {"quick": Scale(f"16 workers; LeNet-5 with batches of 8 instead of ResNet-20. {UNJUDGED}",
                       **LENET, epochs=4, batch_size=8),
        "short": Scale("16 workers, 30 epochs instead of 140, milestones and warm-up in "
                       "proportion.", epochs=30, val_size=5000, lr_milestones=[17, 26],
                       warmup_epochs=1),
        "paper": Scale(PAPER, analyze_every=50)}, measures=TRAINING)
def workers(plan):
    """At scale `paper` the rows of 16 workers are those of B1 and B3; those of 4 have the same
    protocol."""
    every, rows = ([4, 16] if plan.scale == "paper" else [16]), {}
    for name, of, label, more, scales in (
            ("dense", "dense", "dense", {}, ("quick", *LONG)),
            ("dense-bf16", "dense", "dense, messages in bf16", BF16, ("quick", "short")),
            ("topk", "topk", "topk", {}, ("quick", *LONG)),
            ("gaussiank", "gaussiank", "gaussiank", {}, ("quick", *LONG)),
            ("gtopk", "topk", "gtopk", {"sparsifier": "gtopk"}, ("short",)),
            ("randk", "randk", "randk without error feedback", {}, ("quick", *LONG))):
        for P in every:
            rows[name, P] = plan.row(f"{name}-{P}", config=recipe(of), label=f"{label}, P = {P}",
                                     scales=scales, workers=P, **more)
    for name, band in (("topk", NOT_OBVIOUS), ("gaussiank", NOT_OBVIOUS), ("randk", FAILS)):
        for P in every:
            plan.rule(f"top-1 of {name} minus that of dense, P = {P}",
                      top1(rows[name, P], rows["dense", P]), **band)


@claim("B4", "gaussiank-2019", "time of a selection",
       "an approximate top-k selection that is computing-efficient for GPUs and significantly "
       "reduces the computing overhead", ABSTRACT,
       {"quick": Scale("At most a million elements, which fit in a cache.", iterations=5),
        "short": Scale(), "paper": Scale()})
def selection(plan):
    """On a CPU, an exact top-k takes one or two passes over memory here. Times are medians over the
    rounds of the ratio to one addition `e += g` in the same round, so that other programs on the
    machine disturb them less. --device cuda measures a GPU."""
    names = ("topk", "gaussiank", "dgc", "trimmed", "redsync", "randk", "hardthreshold", "sidco",
             "oktopk", "gaussiank refine=histogram")
    sizes = ((10_000, 100_000, 1_000_000) if plan.scale == "quick"
             else (100_000, 1_000_000, 25_600_000))
    rows = {d: plan.row(f"select-{d}", "bench select", label=f"d = {d}", d=d, density=0.001,
                        distribution="gaussian") for d in sizes}
    for name in names:
        for d, row in rows.items():
            plan.line(f"{name}, d = {d}, time over that of e += g",
                      row.value("of_add", selector=name))
    most = sizes[-1]
    for rival in ("topk", "dgc", "trimmed"):
        times = [rows[most].value("of_add", selector=name) for name in ("gaussiank", rival)]
        plan.rule(f"gaussiank over {rival}, time at d = {most}", times[0] / times[1], most=1,
                  theirs="significantly less", scales=LONG,
                  why="less than 1 is the least that 'reducing the computing overhead' can mean")
    plan.panel("Selection with error feedback", "d", "of_add", "elements d",
               "time / time of e += g",
               [Curve(name, tuple(rows.values()), {"selector": name}) for name in names], log="x")


@claim("B4-torch", "gaussiank-2019", "time of a selection beside PyTorch's",
       "as B4; the authors' code selects by torch.topk", ABSTRACT,
       {"quick": Scale("At most a million elements, which fit in a cache.", repeat=3),
        "short": Scale(repeat=3), "paper": Scale(repeat=3)},
       theirs="milliseconds for 2 million elements, k = 1,000, on a P100 with PyTorch 1.1: pytorch "
       "issue 22812 of July 2019")
def torch(plan):
    """What the claim was measured against: on a GPU, torch.topk took 8 times as long as a full sort
    in 2019. All are in one run, on a CPU on one thread, so that milliseconds compare; PyTorch's two
    have error feedback, too. With --device cuda, torch.sort is the radix sort of CUB."""
    names = ("topk", "gaussiank", "std::nth_element", "torch.topk", "torch.sort")
    sizes = (10_000, 100_000, 1_000_000) + (25_600_000,) * (plan.scale != "quick")
    rows = {d: plan.row(f"torch-{d}", "bench torch", label=f"d = {d}", d=d, density=0.001,
                        distribution="gaussian") for d in sizes}
    for name in names:
        for d, row in rows.items():
            plan.line(f"{name}, d = {d}, milliseconds", row.value("milliseconds", selector=name))
    plan.line("torch.topk, d = 2000000, milliseconds on a GPU", UNKNOWN, 25.58)
    plan.line("torch.sort, d = 2000000, milliseconds on a GPU", UNKNOWN, 3.197)
    most = sizes[-1]
    for rival in names[3:]:
        times = [rows[most].value("milliseconds", selector=name) for name in ("gaussiank", rival)]
        plan.rule(f"gaussiank over {rival}, time at d = {most}", times[0] / times[1], most=1,
                  theirs="significantly less", scales=LONG, why="as B4")
    plan.panel("Selection with error feedback", "d", "milliseconds", "elements d", "milliseconds",
               [Curve(name, tuple(rows.values()), {"selector": name}) for name in names], log="xy")


@claim("B5", "gaussiank-2019", "time of an iteration on 10 Gbit/s",
       "up to 2.33×, 3.63× and 1.51× faster than Dense-, TopK- and DGC-SGD on 16 GPUs with 10 "
       "GbE (second-hand; the abstract says 'improve the scaling efficiency')",
       "quoted second-hand",
       {"quick": Scale("Nothing is measured at this scale, so only the ratio to dense can be "
                       "predicted."), "short": Scale(), "paper": Scale()})
def iteration(plan):
    """Predicted for 16 workers on 10 Gbit/s and 0.05 ms, batch 32. The rules compare with dense
    sums by a ring; the last lines of the table compare with recursive halving, the fastest dense
    collective known here, in f32, in bf16, and in bf16 during backward. `advise` up to version
    0.2.0 sums the small tensors of `dgc` by a ring, later ones by the fastest collective, which
    takes 0.0385 s less. Their figures are the largest over their networks and machines; here the
    network is ResNet-50 at 224 × 224, and the computer another. `given`: the compute time of
    ResNet-50 at the 52.87 images/s of hclhkbu/gtopkssgd, selections take no time. `machine`:
    computation and selections measured on the CPU of this machine. The other networks of the
    authors have given compute times, too: AlexNet that of its 173.5 images/s, VGG-16 at 224 and
    Inception-V4 at 299 that of ResNet-50 by multiplications (15.47, 12.25 and 4.09 G an image).
    Inception-V4 is a vector of as many parameters as models/inceptionv4.py of
    hclhkbu/GaussianK-SGD has, without tensors and hence without `dgc`, which is DGC as Lin et al.
    published it, with a selection in each tensor and momentum before it; the DGC that the paper
    compares with selects over the whole model."""
    link = {"link": "10Gbit,0.05ms", "ranks": [2, 4, 8, 16, 32]}
    large = {"classes": 1000, "image_size": 224, "batch_size": 32}
    resnet50 = 0.605258  # seconds
    rows = given, machine = (
        plan.row("given", "advise", simulate=True, select=0, compute=resnet50, model="resnet50",
                 **large, **link),
        plan.row("machine", "advise", workers=1, scales=LONG, model="resnet50", **large, **link))
    others = [(title, plan.row(f"given-{name}", "advise", simulate=True, select=0,
                               compute=compute, **network, **link))
              for name, title, compute, network in (
                  ("alexnet", "AlexNet", 0.184438, {"model": "alexnet", **large}),
                  ("vgg16", "VGG-16", resnet50 * 15.47 / 4.09, {"model": "vgg16", **large}),
                  ("inceptionv4", "Inception-V4", resnet50 * 12.25 / 4.09,
                   {"parameters": 42679816}))]
    methods = (("dense ring", {"sparsifier": "dense", "collective": "ring"}),
               ("dense ring in bf16", {"sparsifier": "dense", "collective": "ring bf16"}),
               *((name, {"sparsifier": name}) for name in ("topk", "dgc", "gaussiank")))

    def has(row, method):
        return method != "dgc" or "parameters" not in row.resolved

    def seconds(row, **where):
        return row.value("iteration_seconds", **where, ranks=16)

    def over(row, sparsifier, **where):
        return (seconds(row, sparsifier=sparsifier, **where)
                / seconds(row, sparsifier="gaussiank"))

    for row in rows:
        for label, where in methods:
            plan.line(f"{row.name}: {label}, seconds", seconds(row, **where))
    for row in rows:
        for collective in ("ring bf16", "recursive_halving", "recursive_halving bf16"):
            plan.line(f"{row.name}: dense {collective} over gaussiank",
                      over(row, "dense", collective=collective))
    for _, row in others:
        for rival, where in (*methods[:2], ("dense recursive_halving bf16", {
                "sparsifier": "dense", "collective": "recursive_halving bf16"}), *methods[2:4]):
            if has(row, rival):
                plan.line(f"{row.name}: {rival} over gaussiank", over(row, **where))
    plan.line("machine: dense recursive_halving bf16, during backward, over gaussiank",
              over(machine, "dense", collective="recursive_halving bf16 overlap"))

    plan.rule("given: dense ring over gaussiank", over(given, "dense", collective="ring"),
              1, 2.33, theirs="up to 2.33",
              why="faster than dense, and 'up to' is an upper limit")
    for label, value, most in (
            ("dense ring", over(machine, "dense", collective="ring"), 2.33),
            ("topk", over(machine, "topk"), 3.63), ("dgc", over(machine, "dgc"), 1.51)):
        plan.rule(f"machine: {label} over gaussiank", value, 1, most, theirs=f"up to {most}",
                  scales=LONG, why="faster, and 'up to' is an upper limit")
    for title, row in (("ResNet-50, given compute time", given),
                       ("ResNet-50, this machine", machine),
                       *((f"{title}, given compute time", row) for title, row in others)):
        plan.panel(title, "ranks", "iteration_seconds", "ranks", "seconds per iteration",
                   [Curve(name.replace(" in", ""), (row,) * has(row, name), where,
                          style="--" * (name == "gaussiank")) for name, where in methods], log="x")
