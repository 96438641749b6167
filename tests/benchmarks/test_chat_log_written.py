"The written dialogues: what the card counts is in the file, and every claim is annotated by the card's rules."
import json, re
from collections import Counter
from pathlib import Path

import pytest

SAMPLES = Path(__file__).parents[2]/'data'/'samples'
LINES = (SAMPLES/'written_dialogues.jsonl').read_text(encoding='utf-8').splitlines()
CARD = (SAMPLES/'written_dialogues.md').read_text(encoding='utf-8')
CATEGORIES = {'verified', 'out_of_scope', 'contradicted', 'lacking_evidence', 'abstention'}
DIALOGUES = {d['id']: d for d in map(json.loads, LINES)}

def split(name): return [d for d in DIALOGUES.values() if name in (d['split'], 'all')]
def turns(dialogues): return [m for d in dialogues for m in d['messages'] if m['role'] == 'assistant']
def claims(dialogues): return [c for m in turns(dialogues) for c in m['claims']]
def claim(id, place):
    turn, number = map(int, place.split('.'))
    return turns([DIALOGUES[id]])[turn - 1]['claims'][number - 1]

COUNTS = dict(conversations=len) | {
    'assistant turns': lambda ds: len(turns(ds)),
    'turns without a claim': lambda ds: sum(not m['claims'] for m in turns(ds)),
    'turns supported': lambda ds: sum(m.get('label') == 'supported' for m in turns(ds)),
    'turns unsupported': lambda ds: sum(m.get('label') == 'unsupported' for m in turns(ds)),
    'claims': lambda ds: len(claims(ds)),
    'drifts': lambda ds: sum(c['against'] == 'memory' for c in claims(ds)),
    'claims that only memory supports': lambda ds: sum(c['by'] == 'memory' for c in claims(ds)),
    'presuppositions': lambda ds: sum(c['presupposed'] for c in claims(ds))}
COUNTS |= {k: lambda ds, k=k: sum(c['category'] == k for c in claims(ds)) for k in CATEGORIES}
ROWS = re.findall(r'^\| ([a-z_ ]+) \| (\d+) \| (\d+) \| (\d+) \|$', CARD, re.M)
TABLE = {what: [int(n) for n in numbers] for what, *numbers in ROWS}
LINKS = re.findall(r'^\| (wd[\w-]+) \| ([\d.]+) \| (memory|drift) \| ([\w. ]+?) \| ?(\w*) ?\|$', CARD, re.M)

# ---- counts

@pytest.mark.parametrize('what', sorted(COUNTS))
def test_the_card_counts_what_is_there(what):
    assert TABLE[what] == [COUNTS[what](split(name)) for name in ('seen', 'unseen', 'all')]

def test_as_the_issue_asks():
    """Thirty conversations, abstentions and contradictions 15 % each, 10 drifts, 20 claims only memory supports, at
    least 30 presuppositions; ten conversations, with all classes, unseen."""
    share = {k: n / len(claims(split('all'))) for k, n in Counter(c['category'] for c in claims(split('all'))).items()}
    assert len(DIALOGUES) == len(LINES) == 30 and len(split('unseen')) == 10
    assert share.keys() == CATEGORIES and all(abs(share[k] - .15) < .005 for k in ('abstention', 'contradicted'))
    assert COUNTS['drifts'](split('all')) == 10 and COUNTS['claims that only memory supports'](split('all')) == 20
    assert COUNTS['presuppositions'](split('all')) >= 30
    for name in ('seen', 'unseen'):
        assert {c['category'] for c in claims(split(name))} == CATEGORIES
        assert all(COUNTS[k](split(name)) for k in ('drifts', 'claims that only memory supports',
                                                    'turns supported', 'turns without a claim'))
        assert {'verified', 'contradicted',
                'lacking_evidence'} <= {c['category'] for c in claims(split(name)) if c['presupposed']}

# ---- each line

@pytest.mark.parametrize('id', DIALOGUES)
def test_a_conversation_is_whole(id):
    d = DIALOGUES[id]
    assert list(d) == ['id', 'split', 'knowledge', 'messages'] and d['split'] in ('seen', 'unseen')
    assert all(isinstance(k, str) and k for k in d['knowledge'])
    assert [m['role'] for m in d['messages']] == ['user', 'assistant'] * (len(d['messages']) // 2)
    assert 2 <= len(turns([d])) <= 5
    for m in d['messages']:
        assert m['content'] == m['content'].strip() != ''
        if m['role'] == 'user': assert list(m) == ['role', 'content']; continue
        assert m['reference'] == m['reference'].strip() != '' and list(m)[:3] == ['role', 'content', 'reference']
        assert ('label' in m) == bool(m['claims'])
        if m['claims']:
            assert m['label'] == ('supported' if all(c['category'] == 'verified' for c in m['claims'])
                                  else 'unsupported')
        assert len({c['text'] for c in m['claims']}) == len(m['claims'])

@pytest.mark.parametrize('id', DIALOGUES)
def test_a_claim_is_whole(id):
    for c in claims([DIALOGUES[id]]):
        assert list(c) == ['text', 'category', 'presupposed', 'by', 'against'] and c['category'] in CATEGORIES
        assert isinstance(c['presupposed'], bool)
        assert c['by'] in (('reference', 'memory') if c['category'] == 'verified' else (None,)), c
        assert c['against'] in (('reference', 'memory') if c['category'] == 'contradicted' else (None,)), c
        # the speakers have names
        assert c['text'].endswith('.') and c['text'] == c['text'].strip() and not re.search(
            r'\b(I|you|we|my|your|our)\b', c['text']), c

def test_verified_claims_are_in_other_words():
    "Fewer than one verified claim in twenty stands in its reference word for word."
    plain = lambda text: re.sub(r'\W+', ' ', text).lower().strip()
    copied = [c['text'] for m in turns(split('all')) for c in m['claims']
              if c['by'] == 'reference' and plain(c['text']) in plain(m['reference'])]
    assert len(copied) < .05 * sum(c['by'] == 'reference' for c in claims(split('all'))), copied

# ---- memory

def test_the_card_names_every_memory_claim_and_drift():
    assert len(set(LINKS)) == 30 and Counter(kind for _, _, kind, *_ in LINKS) == dict(memory=20, drift=10)
    for id, place, kind, *_ in LINKS: assert claim(id, place)['by' if kind == 'memory' else 'against'] == 'memory'

@pytest.mark.parametrize('id, place, kind, ground, also', LINKS)
def test_what_memory_holds_was_there_before(id, place, kind, ground, also):
    "It is knowledge of the agent (memory claims only), or a claim verified in an earlier turn."
    if ground.startswith('knowledge'):
        assert kind == 'memory' and DIALOGUES[id]['knowledge'][int(ground.split()[1]) - 1]
    else: assert int(ground.split('.')[0]) < int(place.split('.')[0]) and claim(id, ground)['category'] == 'verified'
    if also == 'knowledge': assert claim(id, ground)['by'] == 'memory' and DIALOGUES[id]['knowledge']

def test_some_drifts_contradict_the_reference_too():
    assert Counter(also for _, _, kind, _, also in LINKS if kind == 'drift') == {'': 4, 'reference': 2, 'knowledge': 4}

# ---- texts

def test_some_are_tokenised_and_lower_case():
    tokenised = [id for id, d in DIALOGUES.items()
                 if any(re.search(r" (n't|'m|'s) ", m['content']) for m in turns([d]))]
    assert [id[:4] for id in tokenised] == ['wd05', 'wd14', 'wd20', 'wd27']
    assert all(m['content'] == m['content'].lower() for id in tokenised for m in turns([DIALOGUES[id]]))

def test_splits_share_no_sentence():
    texts = {name: {m[k] for d in split(name) for m in d['messages'] for k in ('content', 'reference') if k in m}
             for name in ('seen', 'unseen')}
    assert not texts['seen'] & texts['unseen']
