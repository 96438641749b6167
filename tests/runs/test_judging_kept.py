"Kept pairs: what has changed is judged again and nothing else; damaged files are."
import subprocess
import sys
from pathlib import Path

import pytest

from factlib.core.records import Absence, Example, Judgement
from factlib.evaluators.base import Evaluator
from factlib.runs import judging as kept
from factlib.runs.judging import judged_pair, pair_key, source_version

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

def test_kept_judgements_are_those_that_were_made(tmp_path):
    one, two = Counting(), Counting()
    (first, was_kept), (again, is_kept) = judged_pair(one, TEXTS, tmp_path), judged_pair(two, TEXTS, tmp_path)
    assert (was_kept, is_kept, one.asked, two.asked) == (False, True, 3, 0)
    assert first.drop(columns='evidence').equals(again.drop(columns='evidence'))
    assert again.value.tolist() == [7, 7, 7, None]
    assert list(again.none_absence)[:3] == ['malformed']*3 and again.none.tolist() == [None]*4

@pytest.mark.parametrize('other', [dict(version=2), dict(texts=TEXTS[:2]),
                                   dict(texts=TEXTS[::-1]), dict(source='changed')])
def test_what_changed_is_judged_again(tmp_path, other, monkeypatch):
    judged_pair(Counting(), TEXTS, tmp_path)
    if 'source' in other: monkeypatch.setattr(kept, 'source_version', lambda module: other['source'])
    judge = Counting(other.get('version', 1))
    assert judged_pair(judge, other.get('texts', TEXTS), tmp_path)[1] is False and judge.asked > 0
    assert len(list(tmp_path.iterdir())) == 2 # the other pair is still there
    monkeypatch.undo()
    assert judged_pair(Counting(), TEXTS, tmp_path)[1] is True

@pytest.mark.parametrize('damage', [lambda b: b'', lambda b: b[:100],
                                    lambda b: b[:-20], lambda b: b'PAR1' + b[4:-4][::-1] + b'PAR1', lambda b: b'text'])
def test_damaged_files_are_judged_again_with_a_word(tmp_path, damage, capsys):
    judged_pair(Counting(), TEXTS, tmp_path)
    path, = tmp_path.iterdir()
    path.write_bytes(damage(path.read_bytes()))
    judge = Counting()
    frame, was_kept = judged_pair(judge, TEXTS, tmp_path)
    assert not was_kept and judge.asked == 3 and frame.value.tolist() == [7, 7, 7, None]
    assert path.name in capsys.readouterr().out
    assert judged_pair(Counting(), TEXTS, tmp_path)[1] is True and len(list(tmp_path.iterdir())) == 1

def test_anothers_file_under_the_name_does_not_count(tmp_path):
    judged_pair(Counting(2), TEXTS, tmp_path)
    other, = tmp_path.iterdir()
    judged_pair(Counting(), TEXTS, tmp_path)
    mine = next(p for p in tmp_path.iterdir() if p != other)
    mine.write_bytes(other.read_bytes())
    judge = Counting()
    judged_pair(judge, TEXTS, tmp_path)
    assert judge.asked == 3

def test_what_did_not_arrive_is_not_kept(tmp_path):
    judged_pair(Counting(absence=Absence.transport), TEXTS, tmp_path)
    assert not list(tmp_path.iterdir())
    judged_pair(Counting(absence=Absence.refused), TEXTS, tmp_path)
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
                                      'from factlib.runs.judging import source_version; '
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
    with pytest.raises(OSError, match='No space'): judged_pair(Counting(), TEXTS, tmp_path)
    assert not list(tmp_path.iterdir())

def test_evaluators_of_factlib_have_a_source():
    from factlib.evaluators.base import EVALUATORS, get
    assert len({source_version(type(get(n)).__module__) for n in ('length', 'rouge1', 'order_path')}) == 3
    assert pair_key(get('length'), TEXTS)['source'] != pair_key(Counting(), TEXTS)['source'] and 'length' in EVALUATORS
