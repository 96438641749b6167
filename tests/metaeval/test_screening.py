"What a screening says in sentences, on made-up tables."
import pandas as pd
import pytest

from factlib.metaeval.screening import dose_finding

@pytest.mark.parametrize('noticed, rewarded, words',
                         [(['[41]'], [],
                           'counter (score): the score falls in over nine of ten texts for 1 of 2 kinds ([41] at dose '
                           '2 only) and rises for 0 (none). random (a control): the score falls in over nine of ten '
                           'texts for 0 of 2 kinds (none) and rises for 0 (none).'),
                          ([], ['[14]'], 'for 0 of 2 kinds (none) and rises for 1 ([14] from dose 1)')])
def test_which_kinds_are_noticed(noticed, rewarded, words):
    "Two kinds at two doses, one evaluator and the random control."
    whole = pd.DataFrame([dict(evaluator=e, name=kind, factor=x, scored=12,
                               noticed=e != 'random' and kind in noticed and x > 1, rewarded=kind in rewarded)
                          for e in ('counter', 'random') for kind in ('[14]', '[41]') for x in (1, 2)])
    said = [dose_finding(whole[whole.evaluator == e], what) for e, what in (('counter', 'score'),
                                                                            ('random', 'a control'))]
    assert words in ' '.join(said)
