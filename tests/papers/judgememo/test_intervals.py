"Findings from the intervals of the thesis's screening, on made-up tables."
import pandas as pd
import pytest

from factlib.papers.judgememo.intervals import apart_finding, dense_words, lost_words
from factlib.perturb.quality import TASKS
from sentences import ends, says

def tasks(shift):
    rows = [dict(level=level, task=task, metric='fluency', ci_low=4. + s, ci_high=4.2 + s, delta_low=s - .1,
                 delta_high=s + .1) for level in ('2000', 'full') for task, s in (('gold', 0.), ('41', shift))]
    table = pd.DataFrame(rows)
    return [apart_finding(table), lost_words(table[table.task.isin(TASKS)])]

def test_intervals_of_scores_and_of_their_difference():
    says(tasks(-.5), 'to lower: 1 of 1 at 2K and 1 of 1 at Full', 'spoilt scores are apart for 1 and 1',
         'noticed at 2K is noticed at Full')
    # the paired difference tells more
    says(tasks(-.15), 'to lower: 1 of 1 at 2K and 1 of 1 at Full', 'spoilt scores are apart for 0 and 0')
    says(tasks(.5), 'to lower: 0 of 1 at 2K and 0 of 1 at Full', 'spoilt scores are apart for 1 and 1')

@pytest.mark.parametrize('task, full, words',
                         [('42', .1,
                           '2K only: [42] wrong verb tenses. But short texts hold more per 1,000 tokens of [42] (100 '
                           'verbs'), ('41', .1, '2K only: [41] typos, of which both lengths hold the same share.'),
                          ('42', -.1, 'Every fault that is noticed at 2K is noticed at Full, too.')])
def test_a_fault_noticed_in_short_texts_only_may_be_denser_there(task, full, words):
    says(lost_words(pd.DataFrame(dict(task=task, level=['2000', 'full'], delta_high=[-.1, full]))), words)

@pytest.mark.parametrize('typos, words, told',
                         [((-.3, -.3), (-.05, -.3),
                           '[41] typos 2 of 2 (1K: 1 of 1, Full: 1 of 1); [43] shuffled word order 1 of 2 (1K: 0 of 1, '
                           'Full: 1 of 1).'),
                          ((-.05, .3), (-.3, .3),
                           '[41] typos 0 of 2 (1K: 0 of 1, Full: 0 of 1); [43] shuffled word order 1 of 2 (1K: 1 of 1, '
                           'Full: 0 of 1).')])
def test_packed_faults_at_every_length(typos, words, told):
    part = ends(pd.DataFrame(dict(manipulation=['41', '41', '43', '43'], density='dense', level=['1000', 'full']*2)),
                [*typos, *words], .1)
    says(dense_words(part), told)
    assert not dense_words(part.assign(density='widespread'))
