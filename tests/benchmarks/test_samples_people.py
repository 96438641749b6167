"""The people of three Holmes stories: every name stands in the text and belongs to one person, and the card counts what
is there."""
import json, re
from collections import Counter
from pathlib import Path

import pytest

from factlib.benchmarks.samples import stories
from factlib.core.records import BadInput

SAMPLES = Path(__file__).parents[2]/'data'/'samples'
GOLD = json.loads((SAMPLES/'holmes_people.json').read_text(encoding='utf-8'))
CARD = (SAMPLES/'holmes_people.md').read_text(encoding='utf-8')
IDS = sorted(GOLD)
JOINT = 'Francis Hay Moulton' # stands only in "Mr. and Mrs. Francis Hay Moulton"
each_story = pytest.mark.parametrize('id', IDS)

@pytest.fixture(scope='module')
def texts():
    try: return {s.id: s for s in stories()}
    except BadInput as e: pytest.skip(str(e))

def places(form, text):
    "Where a form stands as whole words."
    return [m.span() for m in re.finditer(rf'(?<!\w){re.escape(form)}(?!\w)', text)]

def aliases(id): return [a for p in GOLD[id]['people'] for a in p['aliases']]
def person(id, label): return next(p for p in GOLD[id]['people'] if p['label'] == label)

# ---- form

@each_story
def test_the_form(id):
    story = GOLD[id]
    assert list(story) == ['title', 'people', 'ambiguous', 'relations']
    for p in story['people']:
        assert list(p) == ['label', 'aliases', 'descriptions', 'kind', 'by'] and p['kind'] in ('main', 'minor')
        assert p['by'] in ('name', 'role', 'aside')
        assert bool(p['aliases']) == (p['by'] != 'role') and (p['aliases'] or p['descriptions']), p
        assert p['by'] == 'name' or p['kind'] == 'minor', p
    labels = [p['label'] for p in story['people']]
    assert len(set(labels)) == len(labels)
    for r in story['relations']:
        assert list(r) == ['subject', 'relation', 'object',
                           'evidence'] and {r['subject'], r['object']} <= set(labels) and r['subject'] != r['object'], r
    for a in story['ambiguous']:
        assert list(a) == ['form', 'fits', 'used_for'] and len(a['fits']) > 1
        assert set(a['used_for']) <= set(a['fits']) <= set(labels)

@each_story
def test_nobody_shares_a_name(id):
    "But for forms listed as ambiguous. Case doesn't count."
    shared = {a['form'].lower(): a['used_for'] for a in GOLD[id]['ambiguous']}
    owners = {}
    for p in GOLD[id]['people']:
        assert len({a.lower() for a in p['aliases']}) == len(p['aliases']), p
        for form in p['aliases'] + p['descriptions']: owners.setdefault(form.lower(), []).append(p['label'])
    for form, labels in owners.items():
        assert len(labels) == 1 or sorted(shared.get(form, [])) == sorted(labels), (form, labels)
    for form, labels in shared.items(): assert sorted(owners[form]) == sorted(labels), form

@each_story
def test_a_pair_has_one_relation(id):
    pairs = Counter(frozenset((r['subject'], r['object'])) for r in GOLD[id]['relations'])
    assert set(pairs.values()) == {1}

@each_story
def test_who_is_named_in_passing_has_no_part(id):
    "An aside is related to nobody, but as the client of another case."
    asides = {p['label'] for p in GOLD[id]['people'] if p['by'] == 'aside'}
    assert {r['relation'] for r in GOLD[id]['relations'] if asides & {r['subject'], r['object']}} <= {'client'}

# ---- against the text

@each_story
def test_what_is_quoted_stands_in_the_text(id, texts):
    story, text = GOLD[id], texts[id].text
    assert story['title'] == texts[id].title
    for p in story['people']:
        for form in p['aliases'] + p['descriptions']: assert places(form, text), form
    for r in story['relations']: assert r['evidence'] in text and len(r['evidence'].split()) <= 12, r

@each_story
def test_an_alias_stands_alone(id, texts):
    "Somewhere outside every longer alias (rule 5), and without article or possessive (rule 6)."
    text = texts[id].text
    for form in aliases(id):
        longer = [span for other in aliases(id) if form in other and form != other for span in places(other, text)]
        free = [a for a, b in places(form, text) if not any(c <= a and b <= d for c, d in longer)]
        assert free or form == JOINT, form
        assert not re.match(r'(the|a|an|my|old|little|poor)\b', form, re.I) and not re.search("('s|')$", form), form

TITLE = re.compile(
    r"\b(?:Mr\.|Mrs\.|Dr\.|Miss|Master|Colonel|Major-General|Lord|Lady|Duke of|Duchess of|King of) (?=[A-Z])")

@each_story
def test_no_title_with_a_name_is_left_out(id, texts):
    "Whoever has a title before a name is in the list: what follows the title begins with an alias."
    known = sorted((a.lower() for a in aliases(id)), key=len, reverse=True)
    for m in TITLE.finditer(texts[id].text):
        rest = texts[id].text[m.start():m.start() + 60]
        assert any(rest.lower().startswith(a) and not rest[len(a)].isalnum() for a in known), rest

# ---- known by hand

def test_cases_that_a_reader_knows():
    helen, julia = person('holmes-08', 'Helen Stoner'), person('holmes-08', 'Julia Stoner')
    assert 'Miss Roylott' in helen['aliases'] and julia['aliases'] == ['Julia']
    assert GOLD['holmes-08']['ambiguous'][0] == {'form': 'Miss Stoner',
                                                 'fits': ['Helen Stoner', 'Julia Stoner'], 'used_for': ['Helen Stoner']}
    assert {'Lady St. Simon', 'Mrs. Moulton', 'Miss Doran'} <= set(person('holmes-10', 'Hatty Doran')['aliases'])
    assert not any('Carlo' in a for a in aliases('holmes-12')) # a dog

# ---- the card

COUNTS = {'people': lambda s: len(s['people']), 'aliases': lambda s: sum(len(p['aliases']) for p in s['people']),
          'ambiguous': lambda s: len(s['ambiguous']), 'relations': lambda s: len(s['relations']),
          'main': lambda s: sum(p['kind'] == 'main' for p in s['people'])}
COUNTS |= {by: lambda s, by=by: sum(p['by'] == by for p in s['people']) for by in ('name', 'aside', 'role')}
TABLE = {what: [int(n) for n in numbers]
         for what, *numbers in re.findall(r'^\| (\w+) \| (\d+) \| (\d+) \| (\d+) \| (\d+) \|$', CARD, re.M)}

def test_the_card_counts_what_is_there():
    assert TABLE.keys() == COUNTS.keys()
    for what, numbers in TABLE.items():
        counts = [COUNTS[what](GOLD[id]) for id in IDS]
        assert numbers == [*counts, sum(counts)], what

def test_the_card_computes_agreement_right():
    rows = re.findall(r'^\| [a-z ]+ \| (\d+) \| (\d+) \| (\d+) \| ([\d.]+) % \|$', CARD, re.M)
    assert len(rows) == 4
    for first, second, shared, percent in rows:
        assert abs(200*int(shared)/(int(first) + int(second)) - float(percent)) <= .05
