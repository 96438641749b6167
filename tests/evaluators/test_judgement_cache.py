"Kept judgements: what has changed is judged again and nothing else; damaged files are."
import subprocess
import sys
from pathlib import Path

import pytest

from factlib.core.modules import source_version
from factlib.core.records import Absence, Example, Judgement
from factlib.evaluators import judgement_cache
from factlib.evaluators.base import EvaluationError, Evaluator, evaluate, plan_only
from factlib.evaluators.judgement_cache import JudgementCache

TEXTS = [Example(i, target=f'Text {i}.', group='g') for i in 'abc'] + [Example('d', target='')]

class Counting(Evaluator):
    "Counts how often it is asked."
    name, offline = 'counting', True
    def __init__(self, version=1, absence=None):
        self.signature, self.absence, self.asked = f'counting|v:{version}', absence, 0

    async def judge(self, example):
        self.asked += 1
        if self.absence: return self.absent(example, self.absence)
        return self.judgement(example, len(example.target), dict(half=.5*len(example.target), none=Absence.malformed),
                              claim=['x'])

def judge_pair(judge, examples, folder, **how):
    "The frame, and whether it was kept."
    cache = JudgementCache(folder)
    frame = evaluate(judge, examples, cache=cache, progress=False, **how)
    assert cache.found + cache.made == 1
    return frame, cache.found == 1

def test_kept_judgements_are_those_that_were_made(tmp_path):
    one, two = Counting(), Counting()
    (first, was_kept), (again, is_kept) = judge_pair(one, TEXTS, tmp_path), judge_pair(two, TEXTS, tmp_path)
    assert (was_kept, is_kept, one.asked, two.asked) == (False, True, 3, 0)
    assert first.equals(again) and first.attrs == again.attrs == dict(signatures={'counting': 'counting|v:1'})
    columns = evaluate(Counting(), TEXTS, progress=False).columns
    assert set(first.columns) == set(columns)
    assert list(again.evidence) == [{}]*3 + [dict(missing_field='target')] # the claims are not kept
    assert again.value.tolist() == [7, 7, 7, None]
    assert list(again.none_absence)[:3] == ['malformed']*3 and again.none.tolist() == [None]*4

@pytest.mark.parametrize('other', [dict(version=2), dict(texts=TEXTS[:2]),
                                   dict(texts=TEXTS[::-1]), dict(source='changed')])
def test_what_changed_is_judged_again(tmp_path, other, monkeypatch):
    judge_pair(Counting(), TEXTS, tmp_path)
    if 'source' in other: monkeypatch.setattr(judgement_cache, 'source_version', lambda module: other['source'])
    judge = Counting(other.get('version', 1))
    assert judge_pair(judge, other.get('texts', TEXTS), tmp_path)[1] is False and judge.asked > 0
    assert len(list(tmp_path.iterdir())) == 2 # the other pair is still there
    monkeypatch.undo()
    assert judge_pair(Counting(), TEXTS, tmp_path)[1] is True

@pytest.mark.parametrize('damage', [lambda b: b'', lambda b: b[:100],
                                    lambda b: b[:-20], lambda b: b'PAR1' + b[4:-4][::-1] + b'PAR1', lambda b: b'text'])
def test_damaged_files_are_judged_again_with_a_word(tmp_path, damage, capsys):
    judge_pair(Counting(), TEXTS, tmp_path)
    path, = tmp_path.iterdir()
    path.write_bytes(damage(path.read_bytes()))
    judge = Counting()
    frame, was_kept = judge_pair(judge, TEXTS, tmp_path)
    assert not was_kept and judge.asked == 3 and frame.value.tolist() == [7, 7, 7, None]
    assert path.name in capsys.readouterr().out
    assert judge_pair(Counting(), TEXTS, tmp_path)[1] is True and len(list(tmp_path.iterdir())) == 1

def test_anothers_file_under_the_name_does_not_count(tmp_path):
    judge_pair(Counting(2), TEXTS, tmp_path)
    other, = tmp_path.iterdir()
    judge_pair(Counting(), TEXTS, tmp_path)
    mine = next(p for p in tmp_path.iterdir() if p != other)
    mine.write_bytes(other.read_bytes())
    judge = Counting()
    judge_pair(judge, TEXTS, tmp_path)
    assert judge.asked == 3

def test_what_did_not_arrive_is_not_kept(tmp_path):
    judge_pair(Counting(absence=Absence.transport), TEXTS, tmp_path)
    assert not list(tmp_path.iterdir())
    judge_pair(Counting(absence=Absence.refused), TEXTS, tmp_path)
    assert len(list(tmp_path.iterdir())) == 1

def test_the_source_counts_with_all_that_it_imports(tmp_path):
    "In a process of its own, because modules and their sources are read once."
    package = tmp_path/'mine'
    package.mkdir()
    (package/'__init__.py').write_text('')
    (package/'judge.py').write_text('from .words import count\nfrom os import path\n')
    (package/'words.py').write_text('count = len\n')
    (package/'other.py').write_text('x = 1\n')
    version = lambda: subprocess.run([sys.executable, '-c',
                                      'from factlib.core.modules import source_version; '
                                      'print(source_version("mine.judge"))'],
                                     cwd=tmp_path, capture_output=True, text=True, check=True).stdout
    first = version()
    (package/'other.py').write_text('x = 2\n')
    assert version() == first
    (package/'words.py').write_text('count = sum\n')
    assert version() != first

def test_a_disk_that_is_full_leaves_nothing_half_written(tmp_path, monkeypatch):
    import pyarrow.parquet as pq
    monkeypatch.setattr(pq, 'write_table',
                        lambda table, path: (Path(path).write_bytes(b'PAR1'),
                                             (_ for _ in ()).throw(OSError(28, 'No space left on device'))))
    with pytest.raises(OSError, match='No space'): judge_pair(Counting(), TEXTS, tmp_path)
    assert not list(tmp_path.iterdir())

def test_evaluators_of_factlib_have_a_source():
    from factlib.evaluators.base import EVALUATORS, get
    assert len({source_version(type(get(n)).__module__) for n in ('length', 'rouge1', 'order_path')}) == 3
    key = JudgementCache('nowhere').key
    assert key(get('length'), TEXTS)['source'] != key(Counting(), TEXTS)['source'] and 'length' in EVALUATORS
    assert list(key(get('length'), TEXTS)) == ['evaluator', 'signature', 'examples', 'source']

def test_a_language_that_is_given_is_another_pair(tmp_path):
    "What an evaluator can't read depends on it."
    judge_pair(Counting(), TEXTS, tmp_path)
    assert judge_pair(Counting(), TEXTS, tmp_path, language='de')[1] is False
    assert judge_pair(Counting(), TEXTS, tmp_path, language='German')[1] is True
    assert judge_pair(Counting(), TEXTS, tmp_path)[1] is True and len(list(tmp_path.iterdir())) == 2

def test_every_field_of_an_example_counts_also_for_one_cache(tmp_path):
    "The digest of the examples is remembered, for these objects alone."
    from dataclasses import replace
    cache = JudgementCache(tmp_path)
    key = cache.key(Counting(), TEXTS)
    assert cache.key(Counting(), list(TEXTS)) == key
    for other in ([replace(TEXTS[0], truth=1), *TEXTS[1:]], TEXTS[::-1], TEXTS[:2], []):
        assert cache.key(Counting(), other)['examples'] != key['examples']
    assert cache.key(Counting(), TEXTS) == key

def test_while_it_is_planned_nothing_is_kept_and_what_is_kept_is_not_asked(tmp_path):
    noted = []
    with plan_only(lambda judge, examples: noted.append(judge.name)):
        frame = evaluate(judge := Counting(), TEXTS, cache=tmp_path)
        assert noted == ['counting'] and not list(tmp_path.iterdir())
        assert list(frame.absence) == ['inapplicable']*4 and frame.value.tolist() == [None]*4
    evaluate(judge, TEXTS, cache=tmp_path, progress=False)
    assert judge.asked == 3
    with plan_only(lambda judge, examples: noted.append(judge.name)):
        assert evaluate(judge, TEXTS, cache=tmp_path).value.tolist() == [7, 7, 7, None]
    assert noted == ['counting'] and judge.asked == 3

def test_an_evaluator_that_breaks_leaves_nothing_in_the_cache(tmp_path):
    class Broken(Counting):
        async def judge(self, example): raise ZeroDivisionError
    with pytest.raises(EvaluationError): evaluate(Broken(), TEXTS, cache=tmp_path, progress=False)
    assert not list(tmp_path.iterdir())
