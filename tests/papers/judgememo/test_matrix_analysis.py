"What is noticed of faults at their strongest, on made-up tables."
import pandas as pd
import pytest

from factlib.papers.judgememo.matrix_analysis import strongest_findings
from sentences import says

def strong(a, b):
    table = pd.DataFrame([dict(id=i, task=f'[{i}]', length=f'{k} tokens',
                               level=k, metric='coherence', intensity=75., delta=d, scored=11 if i == '11' else 20)
                          for i, ds in (('32', a), ('11', b)) for k, d in zip(('1000', '2000'), ds)])
    return table.assign(ci_low=table.delta - .1, ci_high=table.delta + .1)

@pytest.mark.parametrize('a, b, other, words', [
    ((-.3, -.4), (0., .05), (0., 0.),
     ['1 of 2 faults are noticed at each length, 1,000 and 2,000 tokens, on the metric they were meant to lower '
      '(interval below 0): [32]', 'At some of these lengths only: none; at none of them',
      'to lower: [11].', 'On the other metric, a drop is shown for none of these',
      'With 11 to 20 texts']),
    ((-.3, -.4), (0., .05), (0., -.35),
     ['On the other metric, a drop is shown for [11] at 2,000 tokens (fluency, −0.35 [−0.45, −0.25]).']),
    ((-.3, 0.), (.3, .4), (0., 0.), ['0 of 2 faults are noticed at each length',
                                     '(interval below 0): none', 'At some of these lengths only: [32];'])])
def test_what_is_noticed_at_its_strongest(a, b, other, words):
    says(strongest_findings(strong(a, b), strong((-.5, -.5), other).assign(metric='fluency')), *words)
