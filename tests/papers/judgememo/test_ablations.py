"Findings about JudgeMemo's parts on made-up tables: where the opposite holds they say the opposite."
import pandas as pd
import pytest

from factlib.papers.judgememo.ablations import (configured_deltas, context_cells, part_changes, part_finding,
                                                pooled_finding)
from factlib.report.published import published
from sentences import says

@pytest.mark.parametrize('change, q, words', [
    (.05, .01, ['Faults are noticed less with summaries at 2,000 tokens (0.050 [0.030, 0.070] points); for the other '
                '1 of 2 comparisons neither less nor more is shown (Benjamini-Hochberg over 2 tests).']),
    (-.05, .01, ['Faults are noticed more with summaries at 2,000 tokens (−0.050', 'for the other 1 of 2']),
    (.05, .2, ['In none of 2 comparisons'])])
def test_what_a_part_changes(change, q, words):
    parts = pd.DataFrame(dict(part=['summaries', 'overlap'], level=['2000', 'full'], change=[change, 0.],
                              ci_low=[change - .02, -.1], ci_high=[change + .02, .1], q=[q, 1.], family=2))
    says(part_finding(parts), *words)

def test_parts_that_go_either_way():
    parts = pd.DataFrame(dict(part=['a', 'b', 'c'], level='full', change=[.1, .2, -.1], ci_low=[.05, .1, -.2],
                              ci_high=[.15, .3, -.05], q=.01, family=3))
    says(part_finding(parts), 'noticed less with a in whole texts (0.100 [0.050, 0.150] points) and b in whole texts',
         'points) and more with c in whole texts (−0.100', 'for the other 0 of 3')

@pytest.mark.parametrize('mean, p_holm, words', [
    (-.2, .01, ['less is noticed in the long text of [17] (−0.20 [−0.30, −0.10] points, below 0 in 20 of 24',
                'more of no fault', 'other 1 of 2']),
    (.2, .01, ['in the long text of no fault', 'more of [17]', 'other 1 of 2']),
    (-.2, .3, ['of no fault, and more of no fault', 'other 2 of 2'])])
def test_what_long_texts_hide(mean, p_holm, words):
    pooled = pd.DataFrame(dict(task=['[17]', '[24]'], variant=['17', '24'], mean=[mean, 0.], ci_low=[mean - .1, -.1],
                               ci_high=[mean + .1, .1], p_holm=[p_holm, 1.], family=2, below=20, configurations=24))
    text = pooled_finding(pooled)
    says(text, *words)
    assert ('But of [17] the short texts also hold more' in text) == (mean < 0 and p_holm < .05)
    # as many at both lengths
    assert 'But of' not in pooled_finding(pooled.assign(variant=['41', '43']))

def test_only_the_part_changes():
    """Summaries cost half a point of the drop, whatever the overlap; the overlap changes nothing. A part that was
    recorded only with or only without has no row."""
    rows = [dict(evaluator='LI', context_dir='context', section_size=2000, overlap=overlap, section_summary=summary,
                 report_mode='report_only', level='2000', metric='fluency', variant=v, group=g,
                 value=4. + i - (v == '41')*(1 + i/10 - summary/2)) for overlap in (0., .1) for summary in (False, True)
            for v in ('gold', '41') for i, g in enumerate('abc')]
    found = part_changes(configured_deltas(pd.DataFrame(rows))).set_index('part')
    assert list(found.index) == ['overlap 0.1', 'section summaries'] and found.change.round(9).tolist() == [0., .5]
    assert found.n.tolist() == [6, 6] and found.documents.tolist() == [3, 3]

def test_a_judge_whose_deltas_are_all_alike_has_no_t():
    "Nothing varies, so there is no standard error to divide by, in Table 5.3 either."
    rows = [dict(evaluator='M', context_dir='context', section_size=2000, overlap=.1, section_summary=False,
                 report_mode='report_only', level=level, metric=metric, variant=v, group=g, value=4. - (v == '24'))
            for level in ('2000', 'full') for metric in ('fluency', 'coherence') for v in ('gold', '24') for g in 'abc']
    cells = context_cells(published('judgememo')['5.3'].cells, pd.DataFrame(rows))
    assert cells['score|24|2000|ctx'].definition == 3
    assert all(x is None or x != x for x in cells['z|24|2000|ctx'][:2])
