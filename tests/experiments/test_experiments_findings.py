"""Findings of experiments on made-up tables: where the opposite holds they say the opposite, and where nothing can be
told they say that."""
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
    def scored_by(self, names): return list(names) # all were heard
    def heard(self, frame): return frame
    def table(self, *args, **options): pass
    figure = file = table

def sources(experiment):
    "Cell id -> code."
    cells = json.loads((EXPERIMENTS/f'{experiment}.ipynb').read_text(encoding='utf-8'))['cells']
    return {c['id']: ''.join(c['source']) for c in cells if c['cell_type'] == 'code'}

def said(experiment, cell, **names):
    "What a cell finds, given the names that earlier cells would have made; imports of the whole notebook hold."
    names, cells = dict(names), sources(experiment)
    imports = [node for source in cells.values() for node in ast.parse(source).body
               if isinstance(node, (ast.Import, ast.ImportFrom))]
    exec(compile(ast.Module(imports, []), experiment, 'exec'), names)
    names['run'] = Run()
    exec(compile(cells[cell], f'{experiment}, {cell}', 'exec'), names)
    return ' '.join(names['run'].said)

# Ablations

def parts(low, high, p_holm):
    return pd.DataFrame(dict(part=['summaries', 'overlap'], level=['2000', 'full'],
                             change=[(low + high)/2, 0.], ci_low=[low, -.1], ci_high=[high, .1], p_holm=[p_holm, 1.]))

@pytest.mark.parametrize('low, high, p_holm, says', [
    (.02, .08, .01, ['less with summaries at 2,000 tokens (0.050 [0.020, 0.080] points)',
                     'more with no part', 'for 1 of 2', 'what remains is summaries at 2,000 tokens']),
    (-.08, -.02, .2, ['less with no part', 'more with summaries at 2,000 tokens', 'for 1 of 2', 'none is significant']),
    (-.02, .08, 1., ['less with no part', 'more with no part', 'for 2 of 2'])])
def test_what_a_part_changes(low, high, p_holm, says):
    text = said('judgememo_ablations', 'ablations-parts-finding', parts=parts(low, high, p_holm))
    for words in says: assert words in text

@pytest.mark.parametrize('mean, p_holm, says', [
    (-.2, .01, ['less is noticed in the long text of [17] (−0.20 [−0.30, −0.10] points, below 0 in 20 of 24',
                'more of no fault', 'other 1 of 2']),
    (.2, .01, ['in the long text of no fault', 'more of [17]', 'other 1 of 2']),
    (-.2, .3, ['of no fault, and more of no fault', 'other 2 of 2'])])
def test_what_long_texts_hide(mean, p_holm, says):
    pooled = pd.DataFrame(dict(task=['[17]', '[24]'], variant=['17', '24'], mean=[mean, 0.], ci_low=[mean - .1, -.1],
                               ci_high=[mean + .1, .1], p_holm=[p_holm, 1.], below=20, configurations=24))
    text = said('judgememo_ablations', 'ablations-pooled-finding', pooled=pooled)
    for words in says: assert words in text
    assert ('But of [17] the short texts also hold more' in text) == (mean < 0 and p_holm < .05)
    # as many at both lengths
    assert 'But of' not in said('judgememo_ablations', 'ablations-pooled-finding',
                                pooled=pooled.assign(variant=['41', '43']))

# What the recordings say

SAY = 'what_the_recordings_say'

def cells(*intervals, p_holm=1.):
    "Combinations of judge and fault with these intervals."
    names = ['43', '41', '42', '32', '17', '24']
    return pd.DataFrame([dict(evaluator='LI', variant=v, task=f'[{v}]', metric='fluency', mean=(low + high)/2,
                              ci_low=low, ci_high=high, p_holm=p_holm, missing=0, asked=65, scored=65, t=2.)
                         for v, (low, high) in zip(names, intervals)])

def test_whether_faults_are_noticed():
    text = said(SAY, 'say-one-finding', short=cells((-.5, -.3), (-1.4, -1.2), (-.1, .1), (.2, .4)))
    assert 'noticed (interval below 0) in 2 of 4' in text and 'No drop is shown for [42] by LI and [32] by LI.' in text
    assert 'largest drop is 1.30 points ([41], LI), the median 0.20' in text and 'less than one point in 3 of 4' in text

@pytest.mark.parametrize('low, high, says',
                         [(-.4, -.2,
                           'less is noticed in the long text in 1 ([43] LI −0.30 [−0.40, −0.20]), more in 0 (none)'),
                          (.2, .4, 'in the long text in 0 (none), more in 1 ([43] LI 0.30 [0.20, 0.40])'),
                          (-.2, .4, 'in the long text in 0 (none), more in 0 (none); in 2 no difference is shown')])
def test_whether_long_texts_hide_faults(low, high, says):
    assert says in said(SAY, 'say-two-finding', length=cells((low, high), (-.1, .1)))

def test_scores_that_are_missing_are_named_where_they_are_many():
    table = cells((-.1, .1), (-.1, .1))
    assert 'missing' not in said(SAY, 'say-two-finding', length=table)
    assert '17 of 65 for [41] by LI' in said(SAY, 'say-two-finding', length=table.assign(missing=[0, 17]))

def test_power():
    "16 differences of standard deviation 1: by G*Power a two-sided test finds d_z .749 with a power of 80 %."
    length = cells((-.1, .1)).assign(scored=16, mean=.5, t=2.) # sd = .5/2*4 = 1
    text = said(SAY, 'say-power', length=length, short=cells((-1.1, -.9)))
    assert 'difference of 0.75 points' in text and 'at least 80 % in 1 of 1 combinations' in text
    assert 'half as much there, in 0.' in text
    assert 'half as much there, in 1.' in said(SAY, 'say-power', length=length, short=cells((-1.7, -1.5)))

def gold(longer, seed=0):
    "Untouched texts that gain so many points in full; eight documents with a small scatter."
    rows = [dict(evaluator='LI', variant='gold', metric='fluency', level=level,
                 group=f'd{i}', value=4 + (i % 3)/10 + (longer*(1 + i % 2) if level == 'full' else 0))
            for i in range(8) for level in ('2000', 'full')]
    return pd.DataFrame(rows)

@pytest.mark.parametrize('longer, says', [(-.1, 'lower in 1 of 1 cases (LI, fluency −0.15'),
                                          (.1, 'lower in 0 of 1 cases (none), higher in 1 (LI, fluency 0.15'),
                                          (0., 'for 1 no difference is shown')])
def test_whether_length_alone_costs_points(longer, says):
    assert says in said(SAY, 'say-gold', setups=dict(vanilla=gold(longer)))

@pytest.mark.parametrize('low, high, says', [(-.2, -.1, 'judged more alike'),
                                             (.1, .2, 'judged less alike'), (-.1, .1, 'no change is shown')])
def test_whether_the_lengths_come_closer(low, high, says):
    pooled = pd.DataFrame([dict(cases='all cases', documents=30, change=(low + high)/2,
                                ci_low=low, ci_high=high, p=.5)])
    assert says in said(SAY, 'say-three-pooled-finding', pooled=pooled, steps=pd.DataFrame())

def test_finer_scores_are_named():
    steps = pd.DataFrame(dict(vanilla=[6], JudgeMemo=[16]), index=['LI'])
    assert 'LI 16 instead of 6' in said(SAY, 'say-three-pooled-finding', pooled=pd.DataFrame(), steps=steps)

@pytest.mark.parametrize('memo, says', [(-.8, 'larger under JudgeMemo than under the single prompt in 1 of 1'),
                                        (-.2, 'in 0 of 1')])
def test_whose_drops_are_larger(memo, says):
    def scores(drop):
        return pd.DataFrame([dict(evaluator='LI', variant=v, metric='fluency',
                                  level='2000', group=f'd{i}', value=4 + i/10 + (drop if v == '43' else 0))
                             for i in range(3) for v in ('gold', '43')])
    assert says in said(SAY, 'say-three-sharp', same=dict(vanilla=scores(-.5), JudgeMemo=scores(memo)), judges=['LI'])

# A rule or a final call

RULE = 'judgememo_rule_or_final_call'

@pytest.mark.parametrize('low, high, p_holm, says', [
    (.1, .5, .04, ['is "mean" in 2 of 3 and "worst" in 0 of 1 configurations of 2 models; worse (below 0) is no rule.',
                   'Holm over all 4 tests (rules, judges, lengths) a rule is better than the final call in 1 and worse '
                   'in 0 ("mean" by LI base on whole documents, p 0.040); the least other p is 0.200.']),
    (-.5, -.1, .04,
     ['is "mean" in 0 of 3 and "worst" in 0 of 1 configurations of 2 models; worse (below 0) is "mean" in 2 of 3.',
      'in 0 and worse in 1 ("mean" by LI base on whole documents, p 0.040); the least']),
    (.1, .5, .12, ['is "mean" in 2 of 3', 'in 0 and worse in 0; the least other p is 0.120.']),
    (-.1, .5, 1., ['is "mean" in 0 of 3', 'worse (below 0) is no rule', 'in 0 and worse in 0'])])
def test_whether_a_rule_is_better(low, high, p_holm, says):
    solid = pd.DataFrame(dict(evaluator=['LI base', 'LI context', 'Q base', 'LI base'],
                              rule=['mean']*3 + ['worst'], level='full',
                              gain=[(low + high)/2, .1, (low + high)/2, 0.], gain_low=[low, -.2, low, -.1],
                              gain_high=[high, .4, high, .1], p_holm=[p_holm, .2, .3, 1.]))
    text = said(RULE, 'rule-overall-finding', solid=solid, memories=range(10), sections=range(90), setups='baseline')
    for words in says: assert words in text, text
    assert '10% fewer requests' in text

def test_quotations_are_told_fault_by_fault():
    known = pd.DataFrame(dict(evaluator=['Q', 'Q', 'LI'], level='full',
                              manipulation=['[17]', '[43]', '[43]'], errors=[10, 100, 50],
                              documents=[30, 7, 30], labelled=1., by_place=1., lift=[0., .6, 0.],
                              quoted=[.5, .1, .2], quoted_low=[.4, .05, .1], quoted_by_chance=[.3, .02, .15]))
    text = said(RULE, 'rule-quoted-finding', places=known, longest='full')
    assert (('Q 10% of the errors of [43] to 50% of [17] (7 to 30 documents a fault); LI 20% of the errors of [43] (30 '
             'documents)') in text)
    assert 'In 1 of 3 combinations' in text and 'over 50 points less often ([43])' in text
    assert 'above chance in 2 of 3' in text
