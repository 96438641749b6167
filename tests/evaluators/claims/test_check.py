"How a claim and its source are read before they are compared, and what the baseline does with foreign texts."
from itertools import permutations

import pytest

from factlib.core.loop import run_sync
from factlib.core.records import Absence, Example
from factlib.evaluators.base import get
from factlib.evaluators.claims import check
from factlib.evaluators.claims.check import EvidenceText, closest, plain, spelled_out

def test_contractions():
    assert plain("i ca n't , i 'm old .") == "i can't, i'm old." and spelled_out("i ca n't") == 'i can not'
    assert plain('don \' t') == "don't"

def test_the_closest_sentences_are_the_same_in_whatever_order_a_process_keeps_a_set(monkeypatch):
    "Two sentences share words in 2, 3 and 5 sentences with the claim: 1/2**.5 + 1/3**.5 + 1/5**.5 has two roundings."
    words = 'kiwi fig plum'.split(), 'mango pear melon'.split()
    where = {w: [i, *range(2, 1 + n)] for i, of_one in enumerate(words) for w, n in zip(of_one, (2, 3, 5))}
    evidence = EvidenceText(tuple('abcdef'), frozenset(where), where, frozenset(), False)
    for order in permutations(where):
        monkeypatch.setattr(check, 'set', lambda _, order=order: order, raising=False)
        assert closest(' '.join(where), evidence, 3) == ['c', 'd', 'a']

@pytest.mark.parametrize('turn', ['🙂🙂', '罗马陷落了。', 'سقطت روما.', '{"verdict": 1} {target} {{x}}',
                                  'a' * 100_000, '\ud800 left', '!!!', 'x\x00y', '1889 ' * 2000])
def test_nothing_breaks(turn):
    judgement = run_sync(get('word_support').judge(Example('a', source='Tickets cost 5 euros.', target=turn)))
    assert judgement.absence or 0 <= judgement.value <= 1

def test_no_source_is_typed():
    judgement = run_sync(get('word_support').judge(Example('a', target='Rome fell.')))
    assert judgement.absence is Absence.inapplicable
