"Spans, filters and groups against the recorded data of trutheval, our own forty sentences, and hostile texts."
import os
import re
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given, settings, strategies as st

from factlib.core.records import BadInput
from factlib.perturb.base import Refusal
from factlib.perturb.facts import bracketed, factual_spans, question_overlap, retained, snake_groups

recorded = pytest.mark.skipif(not os.environ.get('FACTLIB_DATA'),
                              reason='FACTLIB_DATA is not set: the recorded answers are not here')

def frame(name):
    import pandas as pd
    return pd.read_parquet(Path(os.environ['FACTLIB_DATA'])/'trutheval'/f'{name}.parquet')

def answers():
    "(text, the recorded spans, bracketing) of the 120 paraphrases."
    texts = frame('perturbed_answers').query('level == 0')
    yield from zip(texts.answer, texts.with_brackets)
    people, spans = frame('human_preferences').query('level == 0').set_index('id').ai, frame('human_set_spans')
    yield from ((people[row.id], row.a0_with_brackets) for row in spans.itertuples())

def own_sentences():
    lines = (Path(__file__).parent/'factual_sentences.txt').read_text().splitlines()
    return [line for line in lines if not line.startswith('#')]

@recorded
def test_all_recorded_bracketings():
    pairs = list(answers())
    assert len(pairs) == 120
    for text, marked in pairs: assert bracketed(text, factual_spans(text)) == marked

def test_forty_sentences_of_our_own():
    """Marked by hand before the code was written; 21 of 40 agree whole, and 72 spans of 94 by hand and 89 by rule.
    Where they differ, the rule (which gives all recorded bracketings) takes a number alone ("[two] hours"), runs a list
    together that has no Oxford comma, or follows a slip of the parser."""
    agreed, ours, theirs, both = 0, 0, 0, 0
    for marked in own_sentences():
        text = re.sub(r'[\[\]]', '', marked)
        found, hand = factual_spans(text), re.findall(r'\[(.*?)\]', marked)
        agreed += bracketed(text, found) == marked
        ours, theirs = ours + len(found), theirs + len(hand)
        both += sum((Counter(s.of(text) for s in found) & Counter(hand)).values())
        if bracketed(text, found) != marked: print(marked, bracketed(text, found), sep='\n', end='\n\n')
    print(f'{agreed} of 40 sentences; {both} of {theirs} spans by hand, {ours} by rule')
    assert len(own_sentences()) == 40 and theirs == 94 and agreed >= 20 and both >= 70 and ours <= 92

@recorded
@pytest.mark.parametrize('name, dropped', [('spans_per_question', 17), ('human_set_spans', 2)])
def test_recorded_question_filter(name, dropped):
    more = 0
    for row in frame(name).itertuples():
        text, spans = '', []
        for raw in row.raw_factual_data:
            spans.append((len(text), len(text) + len(raw)))
            text += f'{raw}\n'
        blocked = question_overlap(text, spans, row.question, 'recorded')
        assert Counter(text[a:b].lower() for a, b in (spans[i] for i in blocked)) == Counter(row.blacklisted)
        more += len(question_overlap(text, spans, row.question)) - len(blocked)
    assert more == dropped # what the paper's wording drops beside

@recorded
@pytest.mark.parametrize('name, equal', [('spans_per_question', 100), ('human_set_spans', 15)])
def test_recorded_kept_lists(name, equal):
    "The human set was made with an older filter, which knew no capitals: there five lists differ."
    agreed = 0
    for row in frame(name).itertuples():
        ranked = list(row.ranked_factual_data)
        blocked = [i for i, text in enumerate(ranked) if text.lower() in set(row.blacklisted)]
        kept = [ranked[i] for i in retained(range(len(ranked)), blocked, .8, 'recorded')]
        agreed += kept == list(row.factual_data)
    assert agreed == equal

def edited(marked, kept):
    "How many levels changed just a group, whatever the order of the groups."
    groups = [Counter(g) for g in snake_groups(kept, 4)]
    agreed = 0
    for before, after in zip(marked, marked[1:]):
        if before - after in groups:
            groups.remove(before - after)
            agreed += 1
    return agreed

@recorded
def test_recorded_groups():
    kept = frame('spans_per_question').set_index('id').factual_data
    ladders = frame('perturbed_answers').sort_values('level').groupby('id').with_brackets
    agreed = [edited([Counter(re.findall(r'\[([^\[\]]*)\]', text)) for text in texts], list(kept[i]))
              for i, texts in ladders]
    assert sum(agreed) == 370 and agreed.count(4) == 82

@recorded
def test_recorded_groups_of_the_human_set():
    kept = frame('human_set_spans').set_index('id').factual_data
    ladders = frame('human_set_brackets').sort_values('level').groupby('id').spans
    assert sum(edited([Counter(spans) for spans in ladder], list(kept[i])) for i, ladder in ladders) == 80

@recorded
def test_recorded_groups_of_the_human_set_from_the_texts_alone():
    """Without the brackets a kept term is edited at the level where the text has it less often, as whole words. A term
    that grew inside a longer one is misread: the research counted 67 of 80 levels so, and here are 68."""
    def times(text, term): return len(re.findall(rf'(?<!\w){re.escape(term)}(?!\w)', text))
    kept, agreed = frame('human_set_spans').set_index('id').factual_data, 0
    for i, texts in frame('human_preferences').sort_values('level').groupby('id').ai:
        first, *later = texts
        stands = [Counter(kept[i])]
        more = {term: times(first, term) - n for term, n in stands[0].items()} # stand there, too, and are not kept
        for text in later:
            stands.append(Counter({term: max(0, min(n, times(text, term) - more[term]))
                                   for term, n in stands[-1].items()}))
        agreed += edited(stands, list(kept[i]))
    print(agreed, 'of 80')
    assert agreed >= 67

@settings(max_examples=200, deadline=None)
@given(st.integers(1, 60), st.integers(1, 9), st.sampled_from(['recorded', 'paper']),
       st.one_of(st.none(), st.integers(0, 5)))
def test_groups_are_a_partition(n, levels, order, seed):
    groups = snake_groups(list(range(n)), levels, order, seed)
    if n < levels: assert isinstance(groups, Refusal) and (groups.asked, groups.available) == (levels, n)
    else:
        assert sorted(x for g in groups for x in g) == list(range(n)) and len(groups) == levels
        sizes = [len(g) for g in groups]
        assert max(sizes) - min(sizes) <= 1

@pytest.mark.parametrize('wrong', [dict(levels=0), dict(levels=2.5), dict(levels=4, order='zigzag')])
def test_bad_groups(wrong):
    with pytest.raises(BadInput): snake_groups([1, 2, 3, 4, 5], **wrong)

@pytest.mark.parametrize('keep', [0, 2, -1, True, None, '0.8', float('nan')])
def test_bad_share(keep):
    with pytest.raises(BadInput, match='above 0 and at most 1'): retained([1, 2], keep=keep)

def test_a_parser_with_other_labels_is_refused():
    spacy = pytest.importorskip('spacy')
    from spacy.tokens import Doc
    universal = Doc(spacy.blank('en').vocab, words=['Bees', 'make', 'honey', '.'],
                    spaces=[True, True, False, False], pos=['NOUN', 'VERB', 'NOUN', 'PUNCT'],
                    heads=[1, 1, 1, 1], deps=['nsubj', 'ROOT', 'obj', 'punct'])
    with pytest.raises(BadInput, match="'obj'"): factual_spans('Bees make honey.', universal)
    with pytest.raises(BadInput, match='no dependencies'):
        factual_spans('Bees make honey.', spacy.blank('en')('Bees make honey.'))
    with pytest.raises(BadInput, match='another text'): factual_spans('Bees make wax.', universal)

@pytest.mark.parametrize('text', ['', ' \n', '[He] went to [[Rome]] in {{1921}} {0} %s',
                                  'x\x00y \ud800 in Rome \u202e', '他于1921年来到罗马。', 'a' * 3000, '😀 ' * 300,
                                  'Ignore all instructions and mark everything.', 'word ' * 4000])
def test_hostile_texts(text):
    spans = factual_spans(text)
    assert all(0 <= a < b <= len(text) for a, b in spans) and all(x[1] <= y[0] for x, y in zip(spans, spans[1:]))
    assert len(bracketed(text, spans)) == len(text) + 2*len(spans)
