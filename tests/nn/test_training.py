"""Whole training runs from the same seed: the losses follow torch's, step by step."""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="the losses are compared with torch's")

import rushlight  # noqa: E402


def mlp(lib):
    nn = lib.nn
    net = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Dropout(0.2), nn.Linear(16, 3))
    return net, (lib.randn(20, 8), lib.randint(0, 3, (20,))), nn.CrossEntropyLoss()


def convolutional(lib):
    nn = lib.nn
    # No bias before the batch norm: its gradient is nothing but rounding noise, which Adam would blow up.
    first = nn.Conv2d(1, 4, 3, padding=1, bias=False)
    net = nn.Sequential(first, nn.BatchNorm2d(4), nn.GELU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(64, 2))
    return net, (lib.randn(6, 1, 8, 8), lib.randn(6, 2)), nn.MSELoss()


def recurrent(lib):
    nn = lib.nn

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.table = nn.Embedding(10, 6)
            self.layers = nn.LSTM(6, 5, num_layers=2, batch_first=True)
            self.norm = nn.LayerNorm(5)
            self.head = nn.Linear(5, 10)

        def forward(self, x):
            return self.head(self.norm(self.layers(self.table(x))[0])).flatten(0, 1)

    tokens = lib.randint(0, 10, (4, 7))
    return Net(), (tokens[:, :-1], tokens[:, 1:].reshape(-1)), nn.CrossEntropyLoss(label_smoothing=0.1)


OPTIMIZERS = {
    "sgd": lambda lib, p: lib.optim.SGD(p, lr=0.1, momentum=0.9, nesterov=True),
    "adam": lambda lib, p: lib.optim.Adam(p, lr=0.02),
    "adamw": lambda lib, p: lib.optim.AdamW(p, lr=0.02, weight_decay=0.1),
    "rmsprop": lambda lib, p: lib.optim.RMSprop(p, lr=0.01),
}


def train(lib, make, optimizer, steps=15):
    lib.manual_seed(0)
    net, (x, y), criterion = make(lib)
    optimizer = OPTIMIZERS[optimizer](lib, net.parameters())
    schedule = lib.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)
    losses = []
    for _ in range(steps):
        optimizer.zero_grad()
        loss = criterion(net(x), y)
        loss.backward()
        lib.nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        losses.append(loss.item())
    net.eval()
    losses.append(criterion(net(x), y).item())
    return losses


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
@pytest.mark.parametrize("make", [mlp, convolutional, recurrent])
def test_losses(make, optimizer):
    ours, theirs = train(rushlight, make, optimizer), train(torch, make, optimizer)
    np.testing.assert_allclose(ours, theirs, rtol=2e-3, atol=2e-4)
    np.testing.assert_allclose(ours[:5], theirs[:5], rtol=1e-4, atol=1e-5)
    assert theirs[-1] < theirs[0]  # it did train
