"""Ordinary PyTorch training scripts, run once with PyTorch and once with Rushlight: the printed numbers agree."""
from __future__ import annotations

import contextlib
import importlib
import io
import re
import sys
import textwrap
from typing import Any

import pytest

pytest.importorskip("torch", reason="the scripts are compared with real torch")

SCRIPTS: dict[str, str] = {}


def script(function_source: str) -> str:
    """Register a script under the name its first line gives in a comment."""
    text = textwrap.dedent(function_source).lstrip()
    SCRIPTS[text.splitlines()[0].lstrip("# ")] = text
    return text


script("""
    # MLP classifier with DataLoader
    import torch
    from torch import nn
    import torch.nn.functional as F
    from torch.utils.data import DataLoader, TensorDataset, random_split

    torch.manual_seed(0)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    x = torch.randn(200, 6)
    y = (x[:, 0] * x[:, 1] + x[:, 2] > 0).long()
    train, valid = random_split(TensorDataset(x, y), [160, 40])
    train_loader = DataLoader(train, batch_size=16, shuffle=True)
    valid_loader = DataLoader(valid, batch_size=64)

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc1 = nn.Linear(6, 32, bias=False)  # its gradient would be rounding noise, which Adam enlarges
            self.bn = nn.BatchNorm1d(32)
            self.dropout = nn.Dropout(0.2)
            self.fc2 = nn.Linear(32, 2)

        def forward(self, x):
            return self.fc2(self.dropout(F.relu(self.bn(self.fc1(x)))))

    model = Net().to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    for epoch in range(3):
        model.train()
        running = 0.0
        for data, target in train_loader:
            data, target = data.to(device), target.to(device)
            optimizer.zero_grad()
            loss = F.cross_entropy(model(data), target)
            loss.backward()
            optimizer.step()
            running += loss.item() * len(data)
        model.eval()
        correct, loss = 0, 0.0
        with torch.no_grad():
            for data, target in valid_loader:
                output = model(data)
                loss += F.cross_entropy(output, target, reduction="sum").item()
                correct += (output.argmax(dim=1) == target).sum().item()
        print(f"epoch {epoch} train {running / len(train):.6f} valid {loss / len(valid):.6f} correct {correct}")
""")

script("""
    # char-RNN with LSTM
    import torch
    from torch import nn

    torch.manual_seed(1)
    text = "the quick brown fox jumps over the lazy dog. " * 4
    chars = sorted(set(text))
    index = {c: i for i, c in enumerate(chars)}
    data = torch.tensor([index[c] for c in text])

    class CharRNN(nn.Module):
        def __init__(self, vocabulary, hidden):
            super().__init__()
            self.embedding = nn.Embedding(vocabulary, 8)
            self.lstm = nn.LSTM(8, hidden, num_layers=2, batch_first=True)
            self.head = nn.Linear(hidden, vocabulary)

        def forward(self, x, state=None):
            out, state = self.lstm(self.embedding(x), state)
            return self.head(out), state

    model = CharRNN(len(chars), 16)
    optimizer = torch.optim.RMSprop(model.parameters(), lr=5e-3)
    criterion = nn.CrossEntropyLoss()
    state = None
    for step in range(12):
        start = (step * 15) % (len(data) - 16)
        x, y = data[start:start + 15].unsqueeze(0), data[start + 1:start + 16].unsqueeze(0)
        logits, state = model(x, state)
        state = tuple(s.detach() for s in state)
        loss = criterion(logits.reshape(-1, len(chars)), y.reshape(-1))
        optimizer.zero_grad()
        loss.backward()
        norm = nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        print(step, loss.item(), norm.item())
    with torch.no_grad():
        token, state, sample = data[:1].unsqueeze(0), None, []
        for _ in range(10):
            logits, state = model(token, state)
            token = torch.multinomial(torch.softmax(logits[:, -1], dim=-1), 1)
            sample.append(token.item())
    print(sample)
""")

script("""
    # REINFORCE with Categorical
    import torch
    from torch import nn
    from torch.distributions import Categorical

    torch.manual_seed(2)

    class Corridor:
        def reset(self):
            self.place, self.time = 3, 0
            return self.observe()

        def observe(self):
            one_hot = torch.zeros(7)
            one_hot[self.place] = 1.0
            return one_hot

        def step(self, action):
            self.place += 1 if action == 1 else -1
            self.time += 1
            done = self.place in (0, 6) or self.time == 20
            return self.observe(), 1.0 if self.place == 6 else -0.05, done

    policy = nn.Sequential(nn.Linear(7, 16), nn.Tanh(), nn.Linear(16, 2), nn.Softmax(dim=-1))
    optimizer = torch.optim.Adam(policy.parameters(), lr=2e-2)
    env = Corridor()
    for episode in range(8):
        observation, done, log_probs, rewards, entropies = env.reset(), False, [], [], []
        while not done:
            m = Categorical(policy(observation))
            action = m.sample()
            log_probs.append(m.log_prob(action))
            entropies.append(m.entropy())
            observation, reward, done = env.step(action.item())
            rewards.append(reward)
        returns, total = [], 0.0
        for reward in reversed(rewards):
            total = reward + 0.9 * total
            returns.insert(0, total)
        returns = torch.tensor(returns)
        if len(returns) > 1:
            returns = (returns - returns.mean()) / (returns.std() + 1e-6)
        loss = -(torch.stack(log_probs) * returns).sum() - 0.01 * torch.stack(entropies).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(episode, len(rewards), loss.item())
""")

script("""
    # GAN with detach
    import torch
    from torch import nn

    torch.manual_seed(3)
    torch.backends.cudnn.deterministic = True
    generator = nn.Sequential(nn.Linear(4, 16), nn.LeakyReLU(0.2), nn.Linear(16, 2))
    critic = nn.Sequential(nn.Linear(2, 16), nn.LeakyReLU(0.2), nn.Linear(16, 1), nn.Sigmoid())
    for module in list(generator) + list(critic):
        if isinstance(module, nn.Linear):
            nn.init.xavier_uniform_(module.weight)
            nn.init.zeros_(module.bias)
    optimizer_g = torch.optim.Adam(generator.parameters(), lr=1e-2, betas=(0.5, 0.999))
    optimizer_d = torch.optim.Adam(critic.parameters(), lr=1e-2, betas=(0.5, 0.999))
    criterion = nn.BCELoss()
    for step in range(15):
        angle = torch.rand(32) * 6.2831853
        real = torch.stack((angle.cos(), angle.sin()), dim=1)
        ones, zeros = torch.ones(32, 1), torch.zeros(32, 1)
        fake = generator(torch.randn(32, 4))
        optimizer_d.zero_grad()
        loss_d = criterion(critic(real), ones) + criterion(critic(fake.detach()), zeros)
        loss_d.backward()
        optimizer_d.step()
        optimizer_g.zero_grad()
        loss_g = criterion(critic(fake), ones)
        loss_g.backward()
        optimizer_g.step()
        if step % 3 == 0:
            print(step, loss_d.item(), loss_g.item())
""")

script("""
    # VAE with Normal
    import torch
    from torch import nn
    from torch.distributions import Normal, kl_divergence

    torch.manual_seed(4)

    class VAE(nn.Module):
        def __init__(self):
            super().__init__()
            self.encoder = nn.Sequential(nn.Linear(8, 16), nn.ReLU())
            self.mean, self.log_std = nn.Linear(16, 3), nn.Linear(16, 3)
            self.decoder = nn.Sequential(nn.Linear(3, 16), nn.ReLU(), nn.Linear(16, 8))

        def forward(self, x):
            h = self.encoder(x)
            posterior = Normal(self.mean(h), self.log_std(h).exp())
            z = posterior.rsample()
            prior = Normal(torch.zeros_like(z), torch.ones_like(z))
            reconstruction = Normal(self.decoder(z), 0.5)
            log_likelihood = reconstruction.log_prob(x).sum(-1)
            return log_likelihood.mean(), kl_divergence(posterior, prior).sum(-1).mean()

    data = torch.randn(64, 3) @ torch.randn(3, 8) + 0.1 * torch.randn(64, 8)
    model = VAE()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    for step in range(15):
        log_likelihood, kl = model(data)
        loss = kl - log_likelihood
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(step, log_likelihood.item(), kl.item())
""")

script("""
    # MAML inner loop with autograd.grad
    import math
    import torch
    import torch.nn.functional as F

    torch.manual_seed(5)

    def init(*shape):
        return (torch.randn(*shape) / math.sqrt(shape[-1])).requires_grad_()

    weights = [init(16, 1), torch.zeros(16, requires_grad=True), init(1, 16), torch.zeros(1, requires_grad=True)]

    def net(x, w):
        return F.linear(torch.tanh(F.linear(x, w[0], w[1])), w[2], w[3])

    optimizer = torch.optim.SGD(weights, lr=0.05, momentum=0.9)
    for iteration in range(6):
        meta_loss = 0.0
        for task in range(3):
            phase, amplitude = torch.rand(2)
            x = torch.rand(10, 1) * 4 - 2
            y = (1 + amplitude) * torch.sin(x + phase)
            fast = weights
            for _ in range(2):
                inner = F.mse_loss(net(x[:5], fast), y[:5])
                grads = torch.autograd.grad(inner, fast, create_graph=True)
                fast = [w - 0.1 * g for w, g in zip(fast, grads)]
            meta_loss = meta_loss + F.mse_loss(net(x[5:], fast), y[5:])
        optimizer.zero_grad()
        meta_loss.backward()
        optimizer.step()
        print(iteration, meta_loss.item())
""")

script("""
    # Autoencoder that saves, loads and resumes
    import os
    import tempfile
    import torch
    from torch import nn, optim

    torch.manual_seed(6)

    class AutoEncoder(nn.Module):
        def __init__(self):
            super().__init__()
            self.encoder = nn.Sequential(nn.Conv2d(1, 4, 3, stride=2, padding=1), nn.ReLU(), nn.Flatten(), nn.Linear(64, 8))
            self.decoder = nn.Sequential(nn.Linear(8, 64), nn.Unflatten(1, (4, 4, 4)), nn.ReLU(),
                                         nn.ConvTranspose2d(4, 1, 2, stride=2), nn.Sigmoid())

        def forward(self, x):
            return self.decoder(self.encoder(x))

    images = torch.rand(12, 1, 8, 8).round()
    path = os.path.join(tempfile.mkdtemp(), "checkpoint.pt")

    def train(epochs, resume=False):
        model = AutoEncoder()
        optimizer = optim.Adam(model.parameters(), lr=1e-2)
        first = 0
        if resume:
            checkpoint = torch.load(path, map_location="cpu")
            model.load_state_dict(checkpoint["model"])
            optimizer.load_state_dict(checkpoint["optimizer"])
            torch.set_rng_state(checkpoint["rng"])
            first = checkpoint["epoch"] + 1
        for epoch in range(first, first + epochs):
            noise = 0.1 * torch.randn_like(images)
            loss = nn.functional.binary_cross_entropy(model(images + noise), images)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            torch.save({"epoch": epoch, "model": model.state_dict(), "optimizer": optimizer.state_dict(),
                        "rng": torch.get_rng_state()}, path)
            print(epoch, loss.item())

    train(3)
    torch.rand(100)
    train(3, resume=True)
    print(sorted(torch.load(path)["model"]), os.listdir(os.path.dirname(path)))
""")

script("""
    # Gradient accumulation
    import torch
    import torch.nn as nn

    torch.manual_seed(7)
    model = nn.Sequential(nn.Linear(5, 20), nn.GELU(), nn.LayerNorm(20), nn.Linear(20, 1))
    decay = [p for n, p in model.named_parameters() if p.dim() > 1]
    rest = [p for n, p in model.named_parameters() if p.dim() <= 1]
    optimizer = torch.optim.SGD([{"params": decay, "weight_decay": 1e-2}, {"params": rest}], lr=0.1, nesterov=True, momentum=0.9)
    scaler = torch.amp.GradScaler("cpu", enabled=False)
    x, y = torch.randn(48, 5), torch.randn(48, 1)
    accumulate = 4
    optimizer.zero_grad(set_to_none=True)
    for step, (xb, yb) in enumerate(zip(x.split(4), y.split(4))):
        with torch.autocast("cpu", enabled=False):
            loss = nn.functional.smooth_l1_loss(model(xb), yb) / accumulate
        scaler.scale(loss).backward()
        if (step + 1) % accumulate == 0:
            scaler.unscale_(optimizer)
            norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 0.5)
            scaler.step(optimizer)
            scaler.update()
            optimizer.zero_grad(set_to_none=True)
            print(step, norm.item())
        print(step, loss.item())
""")

script("""
    # LR scheduling
    import torch
    from torch.optim.lr_scheduler import CosineAnnealingLR, LinearLR, ReduceLROnPlateau, SequentialLR, StepLR

    torch.manual_seed(8)
    x = torch.randn(30, 4)
    y = x @ torch.tensor([1.0, -2.0, 0.5, 3.0]) + 0.3

    def run(make):
        w = torch.zeros(4, requires_grad=True)
        b = torch.zeros((), requires_grad=True)
        optimizer = torch.optim.SGD([w, b], lr=0.2)
        scheduler = make(optimizer)
        for epoch in range(10):
            optimizer.zero_grad()
            loss = ((x @ w + b - y) ** 2).mean()
            loss.backward()
            optimizer.step()
            scheduler.step(*([loss.item()] if isinstance(scheduler, ReduceLROnPlateau) else []))
        print(optimizer.param_groups[0]["lr"], loss.item(), w.tolist())

    run(lambda o: StepLR(o, 3, gamma=0.5))
    run(lambda o: CosineAnnealingLR(o, 10))
    run(lambda o: ReduceLROnPlateau(o, patience=1, threshold=0.5))
    run(lambda o: SequentialLR(o, [LinearLR(o, 0.1, total_iters=4), StepLR(o, 2)], milestones=[4]))
""")

script("""
    # Small GPT
    import math
    import torch
    import torch.nn as nn
    from torch.nn import functional as F

    torch.manual_seed(9)
    torch.cuda.manual_seed_all(9)

    class Block(nn.Module):
        def __init__(self, width, heads, length):
            super().__init__()
            self.heads = heads
            self.qkv, self.out = nn.Linear(width, 3 * width, bias=False), nn.Linear(width, width)
            self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
            self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width), nn.Dropout(0.1))
            self.register_buffer("mask", torch.tril(torch.ones(length, length)).view(1, 1, length, length))

        def forward(self, x):
            B, T, C = x.size()
            q, k, v = self.qkv(self.norm1(x)).split(C, dim=2)
            q, k, v = (t.view(B, T, self.heads, C // self.heads).transpose(1, 2) for t in (q, k, v))
            att = (q @ k.transpose(-2, -1)) * (1.0 / math.sqrt(k.size(-1)))
            att = att.masked_fill(self.mask[:, :, :T, :T] == 0, float("-inf"))
            y = F.softmax(att, dim=-1) @ v
            x = x + self.out(y.transpose(1, 2).contiguous().view(B, T, C))
            return x + self.mlp(self.norm2(x))

    class GPT(nn.Module):
        def __init__(self, vocabulary=11, length=8, width=16):
            super().__init__()
            self.tokens, self.places = nn.Embedding(vocabulary, width), nn.Embedding(length, width)
            self.blocks = nn.Sequential(*[Block(width, 2, length) for _ in range(2)])
            self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, vocabulary, bias=False)
            self.tokens.weight = self.head.weight
            self.apply(self._init)

        def _init(self, module):
            if isinstance(module, (nn.Linear, nn.Embedding)):
                torch.nn.init.normal_(module.weight, mean=0.0, std=0.02)

        def forward(self, idx, targets):
            x = self.tokens(idx) + self.places(torch.arange(idx.size(1)))
            logits = self.head(self.norm(self.blocks(x)))
            return F.cross_entropy(logits.view(-1, logits.size(-1)), targets.reshape(-1))

    model = GPT()
    print(sum(p.numel() for p in model.parameters()))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2, betas=(0.9, 0.95))
    sequence = torch.randint(0, 11, (4, 9))
    for step in range(8):
        loss = model(sequence[:, :-1], sequence[:, 1:])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(step, loss.item())
""")


@contextlib.contextmanager
def served_as_torch(engine: str) -> Any:
    """`import torch` and its submodules mean this engine for the length of the block."""
    hidden = {name: module for name, module in sys.modules.items() if name == "torch" or name.startswith("torch.")}
    if engine == "torch":
        yield
        return
    for name in hidden:
        del sys.modules[name]
    names = ("", ".nn", ".nn.functional", ".nn.init", ".nn.utils", ".optim", ".optim.lr_scheduler", ".utils", ".utils.data",
             ".autograd", ".distributions", ".cuda", ".backends", ".backends.cudnn", ".amp")
    for name in names:
        sys.modules["torch" + name] = importlib.import_module(engine + name)
    try:
        yield
    finally:
        for name in [name for name in sys.modules if name == "torch" or name.startswith("torch.")]:
            del sys.modules[name]
        sys.modules.update(hidden)


def printed(source: str, engine: str) -> str:
    out = io.StringIO()
    with served_as_torch(engine), contextlib.redirect_stdout(out):
        exec(compile(source, f"<script on {engine}>", "exec"), {"__name__": "__main__"})
    return out.getvalue()


NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:e[-+]?\d+)?")


@pytest.mark.parametrize("name", SCRIPTS)
def test_script_prints_the_same(name):
    expected, found = (printed(SCRIPTS[name], engine) for engine in ("torch", "rushlight"))
    assert NUMBER.sub("#", found) == NUMBER.sub("#", expected)
    numbers = [float(number) for number in NUMBER.findall(found)]
    assert len(numbers) > 8
    assert numbers == pytest.approx([float(number) for number in NUMBER.findall(expected)], rel=1e-4, abs=1e-4)


def test_the_scripts_ran_on_the_engine_they_name():
    source = "import torch\nfrom torch import nn\nimport torch.nn.functional as F\nprint(torch.__name__, nn.__name__, F.__name__)"
    assert printed(source, "rushlight") == "rushlight rushlight.nn rushlight.nn.functional\n"
    assert printed(source, "torch") == "torch torch.nn torch.nn.functional\n"
