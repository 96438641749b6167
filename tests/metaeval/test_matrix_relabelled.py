"Relabelled texts (benchmarks/false_discoveries.py): what stays, what is exchanged, and that nothing is left to find."
import importlib.util
from collections import Counter
from pathlib import Path

import numpy as np

from factlib.core.records import Example

spec = importlib.util.spec_from_file_location('false_discoveries',
                                              Path(__file__).parents[2]/'benchmarks'/'false_discoveries.py')
script = importlib.util.module_from_spec(spec)
spec.loader.exec_module(script)


def texts(truths, group, **more):
    return [Example(f'{group}{i}', target='A text.', truth=t, group=group, **more) for i, t in enumerate(truths)]


def test_a_group_keeps_its_labels_and_its_texts_exchange_them():
    examples = texts(['true', 'false', 'false'], 'a')
    drawn = Counter(tuple(e.truth for e in script.relabelled(examples, np.random.default_rng(i))) for i in range(300))
    assert set(drawn) == {('true', 'false', 'false'), ('false', 'true', 'false'), ('false', 'false', 'true')}
    assert min(drawn.values()) > 60 # 100 each, and five errors of sqrt(300*1/3*2/3) = 8.2 below


def test_groups_of_the_same_size_exchange_theirs():
    examples = texts(['true', 'true'], 'a') + texts(['false', 'false'], 'b') + texts(['true'], 'c')
    seen = {tuple(e.truth for e in script.relabelled(examples, np.random.default_rng(i))) for i in range(50)}
    assert seen == {('true', 'true', 'false', 'false', 'true'), ('false', 'false', 'true', 'true', 'true')}


def test_controls_and_texts_without_a_truth_stay():
    examples = texts(['true', 'false'], 'a') + texts(['true'], 'd', variant='harmless') + texts([None], 'e')
    for i in range(20):
        anew = script.relabelled(examples, np.random.default_rng(i))
        assert [e.id for e in anew] == [e.id for e in examples]
        assert [e.truth for e in anew[2:]] == ['true', None]


def test_controls_take_part_where_they_count():
    examples = texts(['false'], 'a') + [Example('d', target='A text.', truth='true', group='a', variant='harmless')]
    drawn = {tuple(e.truth for e in script.relabelled(examples, np.random.default_rng(i), controls=True))
             for i in range(30)}
    assert drawn == {('false', 'true'), ('true', 'false')}


def test_who_knows_the_truth_is_at_chance_on_relabelled_texts():
    "40 groups of a true and a false text: one in 1,000 draws is beyond .5 +-.26 (3.3 errors of sqrt(.25/40) = .079)."
    examples = [e for g in range(40) for e in texts(['true', 'false'], f'g{g:02d}')]
    knows = {e.id: float(e.truth == 'true') for e in examples}
    assert script.contest(examples, 'true').share(knows) == 1
    assert abs(script.contest(script.relabelled(examples, np.random.default_rng(3)), 'true').share(knows) - .5) < .26
