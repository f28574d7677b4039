"""The results of a run: one number or text for each name."""

from . import UserError, settings
from .folder import BROKEN, FINISHED, STOPPED, TOTALS
from .tables import known


UNITS = ("B", "KiB", "MiB", "GiB", "TiB")  # of powers of 1024


def bytes_text(value, _position=None, form=".4g"):
    """A size with four digits: `6.172 MiB`, or in another form; also a formatter of axes."""
    for unit in UNITS[:-1]:
        if abs(value) < 1024:
            return f"{value:{form}} {unit}"
        value /= 1024
    return f"{value:{form}} {UNITS[-1]}"


def fixed(value):
    return f"{value:.4f}"


def short(value):
    return f"{value:.4g}"


def seconds_text(value):
    return f"{value:.1f}" if value >= 10 else f"{value:.3g}"


# how a table writes each number; CSV has nine digits
FORMS = {"epochs_done": "{:.0f}".format, "val_top1": fixed, "best_top1": fixed, "val_top5": fixed,
         "train_loss": short, "val_loss": short, "train_seconds": seconds_text,
         "images_per_s": "{:.0f}".format, "bytes_sent": bytes_text, "nnz_over_k": short}
NAMES = ("state", *FORMS)


def last(values):
    """The last value that is not nan, or None."""
    values = known(values)
    return values[-1] if values else None


def of(run):
    """{name: value} of a run; None where it has no value yet."""
    top1 = run["val_top1"]
    seconds, images = run["seconds"], run["images_per_s"]
    top5 = None if run.has_few_classes else last(run["val_top5"])
    found = {"state": run.state, "epochs_done": run.epochs, "val_top1": last(top1),
             "best_top1": max(known(top1), default=None), "val_top5": top5,
             "train_loss": last(run["train_loss"]), "val_loss": last(run["val_loss"])}
    if run.state in (FINISHED, STOPPED):  # its totals include an epoch that is not complete
        return found | {name: run.summary[name] for name in TOTALS[1:]}
    if not seconds:
        return found | dict.fromkeys(TOTALS[1:])
    k = run["density"]  # of an epoch, up to a factor
    sent = sum(share * density for share, density in zip(run["nnz_over_k"], k))
    total = sum(rate * time for rate, time in zip(images, seconds))
    return found | {"train_seconds": sum(seconds), "images_per_s": total / sum(seconds),
                    "bytes_sent": sum(run["bytes_sent"]), "nnz_over_k": sent / sum(k)}


def with_settings(run):
    """Settings and results of a run by key, and the rest of its summary; of a broken one the
    reason."""
    place = {"name": run.name, "folder": str(run.folder)}
    values = dict(place)
    try:
        values |= settings.flat(run.config)
        rest = {key: one for key, one in run.summary.items() if not isinstance(one, (dict, list))}
        values = {**rest, **values, **of(run)}
    except UserError as error:
        values |= {"state": BROKEN, "reason": str(error)}
    return values | place
