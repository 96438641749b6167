"Several criteria as one: correction, page, folder, gate."
import json
import re

import numpy as np
import pandas as pd
import pytest
from planted_judges import file_of, points

from factlib.core.records import BadInput
from factlib.trust.criteria import folder_names, join_criteria
from factlib.trust.trust import trust, write_trust
from factlib.trust.baselines import filter_leads
from factlib.trust.decision import NO, NOT_YET, YES
from factlib.trust.filters import filter_rates

def criterion(seed, n, noise=.5, use='filter', need='filter=.6'):
    rng = np.random.default_rng(seed)
    quality = rng.normal(3, 1, n)
    rate = lambda sd: points(quality + rng.normal(0, sd, n))
    columns = dict(gpt=rate(noise), ann=rate(.4), text=[f'text {i}' for i in range(n)])
    return trust(file_of(columns, judges=('gpt',)), use=use, need=need)

@pytest.fixture(scope='module')
def rubric():
    parts = {name: criterion(seed, 200, .2) for seed, name in enumerate(('clarity', 'tone & style', 'facts', 'depth'))}
    return join_criteria(parts, 'rubric.csv')

def test_p_of_a_yes_is_below_five_percent_exactly_where_its_interval_is_above():
    seen = []
    for seed in range(8):
        for noise in (.2, .6, 9.): # the last is refused: far on the wrong side is no p of a yes
            found = criterion(seed, 60, noise, 'filter,mean')
            for made in found.decisions.made:
                assert (made.decision == YES) == (made.p < .05), made.why
                seen.append(made.decision)
    assert {YES, NO, NOT_YET} == set(seen)

def test_p_is_that_of_the_criterion_that_was_asked_for():
    "The same rates held against other criteria: p rises with what is asked for, and is that of the weaker rate."
    made = {need: criterion(3, 200, .2, need=f'filter={need}').decisions.made[0] for need in (.5, .6, .7, .75)}
    assert sorted(d.p for d in made.values()) == [d.p for d in made.values()] and made[.5].p < .001 < made[.75].p
    whole = criterion(3, 200, .2).matrix
    for need, d in made.items():
        rates = filter_rates(whole, 'gpt', dict(caught=need, passed=need)).values()
        weaker = max(r.p if r.estimate > need else 1. for r, *_ in rates)
        leads = [lead.p for _, lead in filter_leads(whole, 'gpt').values()]
        assert d.p == pytest.approx(max(weaker, *leads))

def test_holm_over_criteria_judges_and_uses():
    parts = {f'c{k}': criterion(k, 70, .6, 'filter') for k in range(10)}
    alone = {name: t.decisions.iloc[0] for name, t in parts.items()}
    yes = {name: d.made.p for name, d in alone.items() if d.decision == YES}
    found = join_criteria(parts)
    assert found.claims == 10
    steps = sorted(yes.values()) # step down: the k-th smallest times (10 - k), no smaller than those before it
    by_hand = {p: min(1., max(steps[i]*(10 - i) for i in range(steps.index(p) + 1))) for p in steps}
    rows = found.decisions.set_index('criterion')
    for name, p in yes.items():
        assert rows.p_holm[name] == pytest.approx(by_hand[p])
        assert rows.decision[name] == (YES if by_hand[p] < .05 else NOT_YET)
    lost = [name for name in yes if rows.decision[name] == NOT_YET]
    assert 0 < len(lost) < 10
    assert all('by itself a yes' in rows.why[name] and '10 claims' in rows.why[name] for name in lost)
    assert (found.trusts[lost[0]].decisions.decision == NOT_YET).all() # its own page says the same
    assert f'{len(lost)} yes do not stand' in found.said[-1] or len(lost) == 1

def test_sentences_of_all_criteria_are_said_once(rubric):
    assert rubric.said[-1].startswith('A yes is corrected for 4 claims')
    assert all(line.startswith(('clarity', 'tone & style', 'facts', 'depth', 'A yes', 'Good')) for line in rubric.said)
    assert len(rubric.said) == len(set(rubric.said)) and len(rubric.lines) == 4
    assert rubric.lines[1].startswith('tone & style: gpt, filter: YES. ')

def test_the_folder_has_a_page_for_each(rubric, tmp_path):
    part = join_criteria({name: rubric.trusts[name] for name in ('tone & style', 'facts')}, 'rubric.csv')
    write_trust(part, tmp_path/'out', texts=False)
    assert not (tmp_path/'out'/'facts'/'items.parquet').exists()
    page = write_trust(part, tmp_path/'out') # in its own place
    html = page.read_text('utf-8')
    for address in re.findall(r'href="([^"#:]+)"', html): assert (page.parent/address).is_file(), address
    for anchor in re.findall(r'href="#([^"]+)"', html): assert f'id="{anchor}"' in html, anchor
    own = page.parent/'tone_style'
    assert (own/'index.html').is_file() and (own/'tables'/'decisions.csv').is_file() and (own/'items.parquet').is_file()
    assert 'href="../index.html"' in (own/'index.html').read_text('utf-8')
    result = json.loads((page.parent/'result.json').read_text())
    assert 'tone_style/index.html' in result['files'] and result['evaluators']['gpt']['asked'] == 400
    table = pd.read_csv(page.parent/'tables'/'decisions.csv')
    assert list(table)[:4] == ['criterion', 'judge', 'use', 'decision'] and len(table) == 2

def test_json_gate_and_page_alone(rubric, tmp_path):
    found = json.loads(json.dumps(rubric.to_dict(), allow_nan=False))
    assert found['criteria'] == rubric.criteria and {d['criterion'] for d in found['decisions']} == set(rubric.criteria)
    assert rubric.gate() == 0 == found['gate'] and rubric.uses == ('filter',) and rubric.needs['caught'] == .6
    html = rubric.html(tmp_path/'page.html').read_text('utf-8')
    assert 'tables/' not in html and '../' not in html and html.count('class="chip yes"') == 8
    worse = join_criteria({'a': criterion(0, 200), 'b': criterion(1, 300, 9., need='filter=.75')})
    assert worse.gate() == 1 and 'b, gpt, filter' in worse.gate_sentence()

def test_names_of_criteria_are_text_and_safe_folders():
    found = folder_names(['a/b', 'a b', 'A_B', '..', 'CON', 'tables', 'Ausdruck ä', 'x'*200])
    assert list(found.values())[:3] == ['a_b', 'a_b-2', 'A_B-3'] and found['..'] == 'criterion'
    assert found['CON'] == 'CON-2' and found['tables'] == 'tables-2' and len(found['x'*200]) == 50
    bad = '<script>alert(1)</script>'
    assert '<script>' not in join_criteria({bad: criterion(0, 60)}).page()
    with pytest.raises(BadInput, match='no criterion'): join_criteria({})
