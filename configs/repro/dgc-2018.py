"""DGC: Lin et al., ICLR 2018, by the code of one of its authors."""

from repro.claims import LONG, TRAINING, UNJUDGED, Scale, claim

# top-1 with DGC by GPUs, nodes of eight batches, and schedule; with dense training
COSINE = {"lr_schedule": "cosine"}
PUBLISHED = {
    "resnet50": ("ResNet-50", 0.762, (0.766, 0.765, 0.763, 0.767, 0.768, 0.766, 0.764, 0.759)),
    "vgg16": ("VGG-16-BN", 0.734, (0.741, 0.738, 0.733, 0.744, 0.742, 0.738, 0.731, 0.717)),
}
RUNS = (  # workers, batches of each in a step, schedule
    (8, 1, {}), (16, 1, {}), (32, 1, {}), (32, 1, COSINE), (64, 1, COSINE), (8, 8, COSINE),
    (16, 8, COSINE), (32, 8, COSINE))
QUICK = {"model": "lenet", "dataset": "shapes", "zero_init": False, "workers": 4, "lr": 0.002,
         "epochs": 2, "warmup_epochs": 1}
BF16 = {"set": {"allreduce.values": "bf16"}}


@claim("D1", "dgc-2018", "DGC on ImageNet",
       "top-1 of DGC at density 0.001 on 8 to 256 GPUs beside dense training",
       "README of synxlin/deep-gradient-compression",
       {"quick": Scale("LeNet-5 and 4 workers on generated images: the accuracies say nothing "
                       "about the claim."), "paper": Scale()},
       measures=("val_top1", "val_loss", "mib_per_step", "train_seconds"),
       theirs="top-1 on ImageNet, density 0.001, by number of GPUs, and with the cosine schedule: "
       "README of synxlin/deep-gradient-compression. dense: of torchvision's model zoo, which it "
       "links")
def imagenet(plan):
    """The recipes are those of synxlin/deep-gradient-compression (configs/dgc-2018). Their figures
    for dense training are those of torchvision's model zoo, which their README links, not of their
    recipes. Nodes of 8 GPUs are workers with 8 batches a step, as their README suggests.
    configs/README.md lists what differs."""
    for name, of, label, more in (
            ("dense", "dense", "dense", {}),
            ("dense-bf16", "dense", "dense, messages in bf16", BF16),
            ("dgc", "dgc", "dgc", {"density_warmup": [0.25]})):
        plan.row(f"quick-{name}", config=f"dgc-2018/resnet50-{of}.json", scales=("quick",),
                 label=f"LeNet-5, {label}, P = 4", **QUICK, **more)
    rows = []

    def add(name, network, label, of, theirs="", **options):
        row = plan.row(f"{network}-{name}", config=f"dgc-2018/{network}-{of}.json", theirs=theirs,
                       label=f"{PUBLISHED[network][0]}, {label}", scales=("paper",), **options)
        rows.extend([row] if theirs else [])

    for network, (_, dense, dgc) in PUBLISHED.items():
        add("dense", network, "dense, P = 8", "dense", dense)
        add("dense-bf16", network, "dense, messages in bf16, P = 8", "dense", **BF16)
        for (workers, batches, schedule), theirs in zip(RUNS, dgc):
            many = {"accumulate": batches} if batches > 1 else {}
            add(f"dgc-P{workers}" + f"x{batches}" * bool(many) + "-cosine" * bool(schedule),
                network, f"dgc, P = {workers}" + f" with {batches} batches each" * bool(many)
                + ", cosine" * bool(schedule), "dgc", theirs, workers=workers, **many,
                warmup_from=1 / workers, **schedule)
    for row in rows:
        plan.rule(f"top-1 of {row.name} minus theirs", row.value("val_top1") - row.theirs, -0.01,
                  0.01, theirs=row.theirs, scales=("paper",),
                  why="within a point: their own figures of 8 and 16 GPUs differ by less than half "
                  "a point")


CIFAR = {"model": "resnet20", "dataset": "cifar10", "workers": 8, "batch_size": 128, "lr": 0.1,
         "lr_scaling": "linear", "warmup_epochs": 5, "warmup_from": 0.125, "decay_all": True}


@claim("D2", "dgc-2018", "DGC on CIFAR-10", "ResNet-20 with DGC learns as with dense training",
       "a figure in the README of synxlin/deep-gradient-compression",
       {"quick": Scale(f"LeNet-5. {UNJUDGED}", **QUICK),
        "short": Scale("30 epochs instead of 200.", **CIFAR, epochs=30, val_size=5000),
        "paper": Scale(**CIFAR, epochs=200)}, measures=TRAINING,
       theirs="the best top-1 of 200 epochs on 8 GPUs, read from that figure")
def cifar(plan):
    """configs/cifar/resnet20.py with configs/dgc/wm5.py of that repository, warm-up densities as in
    its code. There the cosine has a step an epoch, an epoch its short last batch, and gradients
    are f32. Theirs: the best validations, the others the last ones."""
    dense = plan.row("dense", theirs=0.916)
    dgc = plan.row("dgc", sparsifier="dgc", theirs=0.915,
                   density_warmup=[round(0.001 ** (e / 6), 6) for e in range(1, 6)])
    plan.rule("top-1 of dgc minus that of dense", dgc.value("val_top1") - dense.value("val_top1"),
              -0.01, theirs=-0.001, scales=LONG, why="one point is taken as the most, as in A1")
