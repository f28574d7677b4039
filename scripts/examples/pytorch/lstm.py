#!/usr/bin/env python3
"""lstm.py TEXT: a two-layer LSTM language model on words, trained by several methods of exchange.

Two layers as in the gTop-k and GaussianK papers, of 200 units each. See language.py for text,
methods and the CSV.
"""

import language
import torch
from torch import nn


class Lstm(nn.Module):
    def __init__(self, width=200):
        super().__init__()
        self.embedding = nn.Embedding(language.VOCABULARY, width)
        self.lstm = nn.LSTM(width, width, 2, batch_first=True)
        self.head = nn.Linear(width, language.VOCABULARY)

    def forward(self, tokens):
        return self.head(self.lstm(self.embedding(tokens))[0])


if __name__ == "__main__":
    language.main(__doc__.splitlines()[0], lambda _: Lstm(),
                  lambda parameters: torch.optim.SGD(parameters, lr=5.0),
                  batch=8, length=35, clip=0.25)
