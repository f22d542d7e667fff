"""What llama.cpp makes of a GGUF file, for smollm2_test.go.

    python llama_logits.py MODEL.gguf OUT.bin     # logits on its own greedy text
    python llama_logits.py MODEL.gguf --speed     # tokens per second, as JSON

OUT.bin: for each of 20 prompts three int32, the number of prompt tokens p,
of generated tokens n and of the vocabulary v, then p + n int32 token ids and
n × v float32 logits, row i being what token p + i was chosen from.
"""

import json
import sys
import time

import llama_cpp
import numpy as np

QUESTIONS = [
    "What is the capital of France?", "Write a haiku about rain.", "Explain gravity to a child.",
    "List three fruits.", "What is 12 times 12?", "Translate 'good morning' to Spanish.",
    "Who wrote Romeo and Juliet?", "Give me a recipe for pancakes.", "What is photosynthesis?",
    "Write a Python function that adds two numbers.", "Why is the sky blue?", "Tell me a joke.",
    "What is the largest planet?", "Summarise the story of Cinderella.", "How do I boil an egg?",
    "What does HTTP stand for?", "Name the seasons.", "Describe a cat.", "What is a prime number?",
    "Give advice for a job interview.",
]


def chat(question):
    return ("<|im_start|>system\nYou are a helpful AI assistant named SmolLM, trained by Hugging Face<|im_end|>\n"
            f"<|im_start|>user\n{question}<|im_end|>\n<|im_start|>assistant\n").encode()


def main(model, out):
    speed = out == "--speed"
    threads = 2 if speed else 1  # two wait for each other on a busy machine
    llm = llama_cpp.Llama(model, n_ctx=600, n_batch=512, logits_all=not speed, verbose=False,
                          n_threads=threads, n_threads_batch=threads)
    if speed:
        text = llm.tokenize(" ".join(QUESTIONS * 5).encode(), add_bos=False)[:512]
        rates = {"prefill": 0.0, "decode": 0.0}
        for _ in range(3):  # the best of three
            llm.reset()
            start = time.perf_counter()
            llm.eval(text)
            rates["prefill"] = max(rates["prefill"], len(text) / (time.perf_counter() - start))
            llm.reset()
            llm.eval(text[:32])
            start = time.perf_counter()
            for i in range(64):
                llm.eval([text[32 + i]])
            rates["decode"] = max(rates["decode"], 64 / (time.perf_counter() - start))
        print(json.dumps(rates))
        return
    with open(out, "wb") as file:
        for question in QUESTIONS:
            tokens = llm.tokenize(chat(question), add_bos=False, special=True)
            prompt, rows = len(tokens), []
            llm.reset()
            llm.eval(tokens)
            while True:
                rows.append(llm.scores[llm.n_tokens - 1].astype(np.float32))
                tokens.append(int(rows[-1].argmax()))
                if len(rows) == 64 or tokens[-1] == llm.token_eos():
                    break
                llm.eval(tokens[-1:])
            np.array([prompt, len(rows), len(rows[0])], np.int32).tofile(file)
            np.array(tokens, np.int32).tofile(file)
            np.stack(rows).tofile(file)


main(sys.argv[1], sys.argv[2])
