#!/usr/bin/env python3
"""gpt.py TEXT: a small GPT on words, trained by several methods of exchange.

Six layers of 320, 10.6 million parameters, the embedding shared with the head; AdamW with a weight
decay of 0.01. See language.py for text, methods and the CSV.
"""

import language
import torch
from torch import nn


class Gpt(nn.Module):
    def __init__(self, length, width=320, layers=6, heads=8):
        super().__init__()
        self.embedding = nn.Embedding(language.VOCABULARY, width)
        self.position = nn.Parameter(torch.zeros(length, width))
        block = nn.TransformerEncoderLayer(width, heads, 4 * width, dropout=0.0, activation="gelu",
                                           batch_first=True, norm_first=True)
        self.blocks = nn.TransformerEncoder(block, layers, nn.LayerNorm(width),
                                            enable_nested_tensor=False)
        nn.init.normal_(self.embedding.weight, std=0.02)

    def forward(self, tokens):
        length = tokens.shape[1]
        mask = nn.Transformer.generate_square_subsequent_mask(length)
        x = self.embedding(tokens) + self.position[:length]
        return self.blocks(x, mask, is_causal=True) @ self.embedding.weight.T


if __name__ == "__main__":
    language.main(__doc__.splitlines()[0], Gpt,
                  lambda parameters: torch.optim.AdamW(parameters, lr=1e-3),
                  batch=4, length=64, clip=1.0)
