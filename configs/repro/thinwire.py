"""Thinwire's own claims."""

from repro.claims import Scale, claim


@claim("E1", "thinwire", "a dense rival with messages in bf16",
       "rounding the messages of the dense sum to bf16 halves the bytes and costs no accuracy",
       "Thinwire's own; the fair rival of every sparsifier",
       {"quick": Scale("Generated images: the accuracies say nothing.", dataset="shapes",
                       val_size=0, epochs=1, warmup_epochs=0, bn_stats="recompute"),
        "short": Scale("10 epochs.")},
       measures=("val_top1", "val_loss", "train_loss", "mib_per_step"))
def bf16(plan):
    recipe = {"config": "resnet20-cifar10.json", "sparsifier": "dense", "workers": 4,
              "batch_size": 32}
    f32 = plan.row("dense", **recipe)
    bf16 = plan.row("dense-bf16", label="dense, messages in bf16", **recipe,
                    set={"allreduce.values": "bf16"})
    plan.rule("bytes in bf16 over bytes in f32",
              bf16.value("mib_per_step") / f32.value("mib_per_step"), 0.5, 0.5,
              why="two bytes for four")
    plan.rule("top-1 in bf16 minus that in f32", bf16.value("val_top1") - f32.value("val_top1"),
              -0.01, scales=("short",),
              why="one point is twice the standard error with 5,000 images")
    plan.curves("epoch", "+bytes_sent")
