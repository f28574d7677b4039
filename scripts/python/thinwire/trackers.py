"""Runs for TensorBoard, MLflow and Weights & Biases."""

import importlib
import math
import time
from pathlib import Path

from .reader import UserError, settings

MOST_METRICS = 1000  # in one request to MLflow


def needed(package, user):
    """A package, or ImportError with one line that names who needs it."""
    try:
        return importlib.import_module(package)
    except ImportError:
        name = package.partition(".")[0]
        raise ImportError(f"{user} needs the Python package {name}: pip install {name}") from None


def scalars(run):
    """Pairs (step, {name: value}) by step, without empty cells, as `train --tensorboard` names
    them: step/NAME of steps.csv, epoch/NAME of metrics.csv at the last step of the epoch, or at the
    number of the epoch where nothing tells that step."""
    found, last = {}, {}
    record = run.record
    steps = record.optional("steps.csv")  # results that are kept may lack it
    for prefix, table in (("step", steps), ("epoch", record.metrics)):
        if table is None:
            continue
        at = [int(number) for number in table.numbers(prefix)]
        if prefix == "step":
            last = dict(zip(table.numbers("epoch"), at))
        else:
            each = record.steps_per_epoch or 1  # 0: of an older run
            at = [last.get(epoch, epoch * each) for epoch in at]
        for name in table.names[1:]:
            for step, value in zip(at, table.numbers(name)):
                if not math.isnan(value):
                    found.setdefault(step, {})[f"{prefix}/{name}"] = value
    return sorted(found.items())


def timed(run):
    """Triples (time, step, {name: value}): back from when the table was written, by its seconds."""
    table = run.record.optional("steps.csv") or run.record.metrics
    found, name = scalars(run), f"{table.names[0]}/seconds"
    at = table.path.stat().st_mtime if table.path.exists() else time.time()  # results that are kept
    at -= sum(values.get(name, 0) for _, values in found)
    for step, values in found:
        at += values.get(name, 0)
        yield at, step, values


def numbers(summary):
    return {name: value for name, value in summary.items() if type(value) in (int, float)}


def to_tensorboard(run, folder):
    """Writes the scalars to an event file in FOLDER/NAME, which is returned. UserError if there is
    one already."""
    path = Path(folder) / run.name
    if any(path.glob("*tfevents*")):
        raise UserError(f"{path} has events already")
    user = "to_tensorboard"
    writer = needed("tensorboard.summary.writer.event_file_writer", user).EventFileWriter(str(path))
    event = needed("tensorboard.compat.proto.event_pb2", user).Event
    summary = needed("tensorboard.compat.proto.summary_pb2", user).Summary
    for at, step, values in timed(run):
        writer.add_event(event(wall_time=at, step=step, summary=summary(value=[
            summary.Value(tag=name, simple_value=value) for name, value in values.items()])))
    writer.close()
    return path


def to_mlflow(run, **options):
    """Logs settings as parameters, scalars and final results as metrics to a new run of MLflow.
    Options are those of mlflow.start_run. Returns the number of that run."""
    mlflow = needed("mlflow", "to_mlflow")
    with mlflow.start_run(**{"run_name": run.name, **options}) as begun:
        mlflow.log_params({name: settings.text(value)
                           for name, value in settings.flat(run.config).items()})
        metrics = [mlflow.entities.Metric(name, value, int(1000 * at), step)
                   for at, step, values in timed(run) for name, value in values.items()]
        for i in range(0, len(metrics), MOST_METRICS):
            mlflow.MlflowClient().log_batch(begun.info.run_id, metrics[i:i + MOST_METRICS])
        mlflow.log_metrics(numbers(run.summary))
    return begun.info.run_id


def to_wandb(run, **options):
    """Logs settings, scalars and final results to a new run of Weights & Biases. Options are those
    of wandb.init. Returns the number of that run."""
    wandb = needed("wandb", "to_wandb")
    begun = wandb.init(**{"name": run.name, "config": settings.flat(run.config), **options})
    for step, values in scalars(run):
        begun.log(values, step=step)
    begun.summary.update(numbers(run.summary))
    begun.finish()
    return begun.id
