"Findings of experiments on made-up tables: where the opposite holds they say the opposite, and where nothing can be told they say that."
import ast
import json
from pathlib import Path

import pandas as pd
import pytest

EXPERIMENTS = Path(__file__).resolve().parents[2]/'nbs'/'experiments'

class Run:
    "Takes what a cell hands in; keeps the sentences."
    def __init__(self): self.said = []
    def finding(self, text, cell, lead=0): self.said.append(text)
    def table(self, *args, **options): pass
    figure = file = table

def sources(experiment):
    "Cell id -> code."
    cells = json.loads((EXPERIMENTS/f'{experiment}.ipynb').read_text(encoding='utf-8'))['cells']
    return {c['id']: ''.join(c['source']) for c in cells if c['cell_type'] == 'code'}

def said(experiment, cell, **names):
    "What a cell finds, given the names that earlier cells would have made; imports of the whole notebook hold."
    names, cells = dict(names), sources(experiment)
    imports = [node for source in cells.values() for node in ast.parse(source).body if isinstance(node, (ast.Import, ast.ImportFrom))]
    exec(compile(ast.Module(imports, []), experiment, 'exec'), names)
    names['run'] = Run()
    exec(compile(cells[cell], f'{experiment}, {cell}', 'exec'), names)
    return ' '.join(names['run'].said)

# Ablations

def parts(low, high, p_holm):
    return pd.DataFrame(dict(part=['summaries', 'overlap'], level=['2000', 'full'], change=[(low + high)/2, 0.], ci_low=[low, -.1], ci_high=[high, .1], p_holm=[p_holm, 1.]))

@pytest.mark.parametrize('low, high, p_holm, says', [
    (.02, .08, .01, ['less with summaries at 2,000 tokens (0.050 [0.020, 0.080] points)', 'more with no part', 'for 1 of 2', 'what remains is summaries at 2,000 tokens']),
    (-.08, -.02, .2, ['less with no part', 'more with summaries at 2,000 tokens', 'for 1 of 2', 'none is significant']),
    (-.02, .08, 1., ['less with no part', 'more with no part', 'for 2 of 2'])])
def test_what_a_part_changes(low, high, p_holm, says):
    text = said('judgememo_ablations', 'ablations-parts-finding', parts=parts(low, high, p_holm))
    for words in says: assert words in text

@pytest.mark.parametrize('mean, p_holm, says', [
    (-.2, .01, ['less is noticed in the long text of [17] (−0.20 [−0.30, −0.10] points, below 0 in 20 of 24', 'more of no fault', 'other 1 of 2']),
    (.2, .01, ['in the long text of no fault', 'more of [17]', 'other 1 of 2']),
    (-.2, .3, ['of no fault, and more of no fault', 'other 2 of 2'])])
def test_what_long_texts_hide(mean, p_holm, says):
    pooled = pd.DataFrame(dict(task=['[17]', '[24]'], mean=[mean, 0.], ci_low=[mean - .1, -.1], ci_high=[mean + .1, .1], p_holm=[p_holm, 1.], below=20, configurations=24))
    text = said('judgememo_ablations', 'ablations-pooled-finding', pooled=pooled)
    for words in says: assert words in text
