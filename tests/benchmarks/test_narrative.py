"Summaries of narratives: what is known of them, what was recorded, and what is made false."
import os

import pandas as pd
import pytest

from factlib.benchmarks.base import BENCHMARKS, load
from factlib.benchmarks.montagelie import summary
from factlib.benchmarks.narrative import LEVELS, storysumm_recorded
from factlib.core.records import BadInput
from factlib.text.edits import Edit, revert_edits

needs_data = pytest.mark.skipif(not os.environ.get('FACTLIB_DATA'),
                                reason='FACTLIB_DATA is not set: StorySumm and FABLES are not here')

def test_they_are_registered():
    assert {'storysumm', 'fables', 'holmes_false'} <= set(BENCHMARKS) and BENCHMARKS['holmes_false'].good == 'true'
    assert BENCHMARKS['storysumm'].needs and BENCHMARKS['fables'].needs and not BENCHMARKS['holmes_false'].needs

@pytest.mark.parametrize('name', ['storysumm', 'fables'])
def test_absent_data_is_one_clear_sentence(name, monkeypatch):
    monkeypatch.setenv('FACTLIB_DATA', '')
    with pytest.raises(BadInput, match=f'factlib fetch {name}.*FACTLIB_DATA'): load(name)

def written(folder, wrong=False):
    "Two summaries of one story, with recorded verdicts."
    (folder/'storysumm').mkdir()
    rows = [dict(id=i, story_id=7, split=s, model='m', label=l, difficulty=d,
                 summary=['One.', 'Two.'], sentence_labels=[1, l], claims=['c'], human_score=(1 + l)/2)
        for i, s, l, d in [('a', 'val', 1, None), ('b', 'test', 0, 'hard')]]
    pd.DataFrame(rows).drop(columns=['claims'] if wrong else []).to_parquet(folder/'storysumm/summaries.parquet')
    pd.DataFrame([dict(story_id=7, story='A story.')]).to_parquet(folder/'storysumm/stories.parquet')
    said = [dict(evaluator=e, id=i, label=l, prob=p, unit_labels=u, unit=n) for e, n, i, l, p, u in [
        ('x', 'claim', 'a', 0., None, [1, 0, 1, 1]), ('x', 'claim', 'b', 1., None, [1, 1]),
        ('y', 'summary', 'a', None, .3, None), ('y', 'summary', 'b', None, .9, None)]]
    pd.DataFrame(said).to_parquet(folder/'storysumm/recorded_predictions.parquet')
    return folder

def test_storysumm_by_hand(tmp_path, monkeypatch):
    monkeypatch.setenv('FACTLIB_DATA', str(written(tmp_path)))
    a, b = load('storysumm')
    assert (a.id, a.source, a.target, a.truth, a.group) == ('a', 'A story.', 'One. Two.', 1., '7') and b.truth == .5
    assert a.meta['difficulty'] is None
    assert b.meta == dict(label='unfaithful', difficulty='hard', split='test',
                          model='m', sentences=['One.', 'Two.'], sentence_labels=[1, 0], claims=['c'])
    assert [e.id for e in load('storysumm', split='test')] == ['b']
    assert [e.truth for e in load('storysumm', truth='label')] == ['faithful', 'unfaithful']
    recorded = storysumm_recorded()
    assert list(recorded.value) == [.75, 1., .3, .9] and list(recorded.faithful) == [1, 0, 1, 0]
    assert recorded.verdict.isna().sum() == 2
    for wrong in [dict(split='dev'), dict(truth='mean'), dict(n=0)]:
        with pytest.raises(BadInput): load('storysumm', **wrong)

def test_storysumm_with_a_missing_column(tmp_path, monkeypatch):
    monkeypatch.setenv('FACTLIB_DATA', str(written(tmp_path, wrong=True)))
    with pytest.raises(BadInput, match="lacks the column 'claims'"): load('storysumm')

def test_fables_by_hand(tmp_path, monkeypatch):
    (tmp_path/'fables').mkdir()
    rows = [dict(book=b, model=m, summary=f'{b}.', n_claims=4, n_Yes=y, n_No=4 - y, n_PartialSupport=0,
                 n_Inapplicable=0) for b, m, y in [('The Inn', 'p', 3), ('The Inn', 'q', 0), ('A Road', 'p', 4)]]
    pd.DataFrame(rows).to_parquet(tmp_path/'fables/summaries.parquet')
    monkeypatch.setenv('FACTLIB_DATA', str(tmp_path))
    assert [(e.id, e.truth, e.group, e.source) for e in load('fables')] == [('The Inn/p', .75, 'The Inn', None),
                                                                            ('The Inn/q', 0., 'The Inn', None),
                                                                            ('A Road/p', 1., 'A Road', None)]
    books = tmp_path/'books'
    books.mkdir()
    with pytest.raises(BadInput, match='no|not a folder'): load('fables', books=books)
    (books/'the_inn.txt').write_text('An inn.')
    inn = load('fables', books=books)
    assert [e.source for e in inn] == ['An inn.', 'An inn.'] and [r.id for r in inn.refused] == ['A Road/p']
    assert 'A Road' in inn.refused[0].reason
    (books/'the_inn.txt').rename(books/'other.txt')
    with pytest.raises(BadInput, match='None of the texts'): load('fables', books=books)

@needs_data
def test_the_real_sets():
    summaries, novels = load('storysumm').examples, load('fables').examples
    assert len(summaries) == 96 and len({e.group for e in summaries}) == 32
    assert len(load('storysumm', split='val')) == 33
    labels = [(e.meta['label'], e.meta['difficulty']) for e in summaries]
    assert [labels.count(x) for x in [('faithful', None), ('unfaithful', 'easy'),
                                      ('unfaithful', 'hard')]] == [36, 20, 40]
    assert len(novels) == 130 and len({e.group for e in novels}) == 26
    assert round(sum(e.truth for e in novels)/130, 3) == .765
    assert sum(e.meta['claims'] for e in novels) == 3158 and sum(e.meta['Yes'] for e in novels) == 2422
    recorded = storysumm_recorded()
    assert len(recorded) == 960 and recorded.value.notna().all() and recorded.verdict.isna().sum() == 2*96

def test_holmes_false():
    "Each level changes what the one before changed, and every change can be taken back."
    false = load('holmes_false', n=3)
    assert len(false) == 15 and not false.refused and {e.truth for e in false} == {'true', 'false'}
    assert false.good == 'true'
    for group in {e.group for e in false}:
        own = {(e.variant, e.level): e for e in false if e.group == group}
        assert list(own) == [('original', 'true'), ('harmless', 'true'),
                             ('false', '1'), ('false', '4'), ('false', 'all')]
        true = ' '.join(s['text'] for s in summary(group)['sentences'])
        assert own['original', 'true'].target == true
        counts = []
        for e in own.values():
            edits = [Edit(x['start'], x['start'] + len(x['after']), x['before'], x['after']) for x in e.meta['edits']]
            assert revert_edits(e.target, edits) == true
            counts.append(len(edits))
        assert counts[:1] + counts[2:4] == [0, 1, 4] and counts[1] == counts[4] >= 14
        changed = [{(x['before'], x['after']) for x in own['false', level].meta['edits']}
                   for level in ('1', '4', 'all')]
        assert changed[0] <= changed[1] <= changed[2]

def test_holmes_false_options():
    assert LEVELS == (1, 4, None)
    only = load('holmes_false', n=1, levels=(2,), kinds=('negation',))
    assert [e.level for e in only] == ['true', 'true', '2']
    assert load('holmes_false', n=1, seed=1).examples[-1].target != load('holmes_false',
                                                                         n=1, seed=2).examples[-1].target
    for wrong in [dict(levels=()), dict(levels=(0,)), dict(levels=(1, 1)), dict(kinds='lies'), dict(split='val')]:
        with pytest.raises(BadInput): load('holmes_false', **wrong)

@pytest.mark.slow
def test_who_compares_nothing_sees_nothing():
    """Controls that read only the summary can't tell true from false: a change that shows itself would be no test of
    reading."""
    from factlib.evaluators.base import evaluate
    from factlib.metaeval.truth import agreement_with_truth
    from factlib.runs.judging import judges_for
    false = load('holmes_false')
    for judge in judges_for(['length', 'tense', 'function_words']):
        [auc] = agreement_with_truth(evaluate(judge, false.examples, progress=False),
                                     false.examples, high='true').estimate
        assert abs(auc - .5) < .1, judge.name
