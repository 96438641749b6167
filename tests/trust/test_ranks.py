"Planning for a ranking."
import pytest

from factlib.trust.ranks import groups_to_separate

@pytest.mark.parametrize('p, pairs, groups, n', [(.01, 3, 50, 117), (.001, 3, 50, 64), (.05, 10, 20, 112)])
def test_groups_with_which_people_separate_a_pair_again(p, pairs, groups, n):
    "By tables: t of p (2.405, 3.265, 1.729), z of .025/pairs (2.394, 2.394, 2.807) and z of .9 (1.282)."
    assert groups_to_separate(p, pairs, groups) == n

@pytest.mark.parametrize('p, groups', [(.5, 50), (.01, 1), (0., 50)])
def test_nothing_is_planned_from_nothing(p, groups): assert groups_to_separate(p, 3, groups) == 0
