"True texts beside the lies of the same text, and of no other; what nobody was asked about takes no part."
import pandas as pd
import pytest
from factlib.core.records import BadInput, Example
from factlib.metaeval.standing import true_ahead

def test_only_lies_of_the_same_text_count():
    "Of two summaries of a story, the first is above its own lie and below the other's."
    text = lambda i, level: Example(f'{i}/original/{level}', source='s', target=f'{i} {level}', group='s', level=level)
    true, false = [[text(i, level) for i in 'ab'] for level in ('true', 'easy')]
    value = {'a/original/true': .5, 'a/original/easy': .4, 'b/original/true': .9, 'b/original/easy': .8}
    judged = pd.DataFrame([dict(evaluator='x', example_id=i, value=v) for i, v in value.items()])
    row, = true_ahead(judged, true, false).itertuples()
    assert (row.share, row.pairs, row.even) == (1, 2, 0)
    with pytest.raises(BadInput, match='No true text'): true_ahead(judged, true[:1], false[1:])

def test_a_text_that_nobody_was_asked_about_takes_no_part():
    text = lambda g, level: Example(f'{g}/original/{level}', source='s', target=f'{g} {level}', group=g, level=level)
    true, false = [[text(g, level) for g in 'stu'] for level in ('true', 'easy')]
    value = {'s/original/true': .5, 's/original/easy': .5, 't/original/true': .9, 't/original/easy': .8}
    judged = pd.DataFrame([dict(evaluator='x', example_id=i, value=v) for i, v in value.items()])
    row, = true_ahead(judged, true, false).itertuples()
    assert (row.share, row.even, row.pairs, row.stories) == (.75, .5, 2, 2)
