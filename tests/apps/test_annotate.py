"""Pages for annotators over HTTP: who is let in, to what; what an answer stores; what is refused or never sent."""
import json
import os
import re
import socket

import httpx
import pytest
from annotators import ROWS, Parts, Person, compare_rows, secret

from factlib.apps.annotate import Store, overview, serve
from factlib.apps.annotate_forms import make_form
from factlib.apps.annotate_page import AnnotatorPages
from factlib.apps.server import Server, visible
from factlib.core.records import BadInput


@pytest.fixture
def served(tmp_path):
    with serve('compare', compare_rows(), tmp_path/'a.db', ('Ann', 'Bob')) as annotation: yield annotation

@pytest.fixture
def ann(served):
    with Person(served.urls['Ann']) as person: yield person

def test_a_choice_is_stored_before_the_next_item_appears(served, ann):
    assert ann.item == 'q0' and ann.progress() == (0, 3)
    shown = {}
    for i, which in enumerate(('first', 'second', 'both')):
        first = ann.page.text.index('machine') < ann.page.text.index('woman')
        shown[f'q{i}'] = dict(first='AI', second='Expert') if first else dict(first='Expert', second='AI')
        assert ann.send(f'choice={which}', seconds='1.5').status_code == 200
        assert ann.progress() == (i + 1, 3)
    assert ann.item == '' and 'All 3 items are answered' in ann.page.text
    rows = served.store.answers()
    assert list(rows.item) == ['q0', 'q1', 'q2'] and list(rows.seconds) == [1.5]*3 and set(rows.field) == {'choice'}
    assert list(rows['value']) == [shown['q0']['first'], shown['q1']['second'], 'both']
    assert list(rows.shown) == [shown[i] for i in rows.item] and list(rows.group) == ['g0']*3

def test_makers_are_never_sent(tmp_path):
    "Neither by name nor by order: over many items and people either stands first about as often."
    rows = compare_rows(120)
    firsts = []
    with serve('compare', rows, tmp_path/'a.db', ('A', 'B')) as annotation:
        for address in annotation.urls.values():
            with Person(address) as person:
                for row in rows:
                    html = person.open('./?' + str(httpx.QueryParams(item=row['id'], differences='yes'))).text
                    assert 'Expert' not in html and not re.search(r'\bAI\b', html)
                    words = Parts(html).text
                    firsts.append(words.index('machine') < words.index('woman'))
    assert 90 < sum(firsts) < 150 # 240 fair coins: four standard deviations are 31
    assert firsts[:120] != firsts[120:]

def test_the_same_press_is_stored_once(served, ann):
    fields = ann.fields('choice=both')
    for _ in range(3): assert ann.http.post(ann.base + 'answer', data=fields).status_code == 200
    assert len(served.store.history()) == 1
    other = fields | dict(choice='choice=neither') # another button of the same page is another press
    ann.http.post(ann.base + 'answer', data=other)
    assert list(served.store.answers()['value']) == ['neither'] and len(served.store.history()) == 2

def test_undo(served, ann):
    ann.send('choice=both')
    ann.send('choice=neither', comment='Odd.')
    assert ann.item == 'q2'
    press = ann.value('press')
    ann.undo()
    assert ann.item == 'q1' and ann.progress() == (1, 3)
    ann.undo(press) # sent again: nothing more is taken back
    assert ann.progress() == (1, 3) and list(served.store.answers().item) == ['q0']
    ann.undo()
    assert ann.item == 'q0' and ann.progress() == (0, 3)
    ann.undo()
    assert ann.progress() == (0, 3)
    history = served.store.history()
    assert len(history) == 5 and list(history.stands) == [False]*3 + [False]*2 and sum(history.undo) == 2

def test_comment_and_skip(served, ann):
    assert ann.send('skip', why='  ').status_code == 400 and 'Say in a word why' in ann.page.text
    ann.open()
    ann.send('comment', comment='A <b>remark</b>')
    assert ann.item == 'q0' and '<b>remark' not in ann.response.text and 'A <b>remark</b>' in ann.page.text
    ann.send('skip', why='It breaks off.', comment='A <b>remark</b>')
    assert ann.item == 'q1' and ann.progress() == (1, 3)
    assert {(r.field, r['value']) for _, r in served.store.answers().iterrows()} == {
        ('comment', 'A <b>remark</b>'), ('skip', 'It breaks off.')}
    ann.open('./?item=q0')
    ann.send('choice=both', comment='')
    assert [(r.field, r['value']) for _, r in served.store.answers().iterrows()] == [('choice', 'both')]

@pytest.mark.parametrize('form, choices', [('compare', ['choice=both']), ('facts', ['label=supported']),
                                           ('criteria', ['order=yes', 'smooth=no']),
                                           ('claims', ['label:c1=verified', 'label:c2=abstention', 'done=yes'])])
def test_what_was_answered_and_is_skipped_counts_nowhere(tmp_path, form, choices):
    "Until the skip is taken back: then the answers stand again."
    with serve(form, ROWS[form](1), tmp_path/'a.db') as served, Person(served.urls['A']) as person:
        id = person.item
        for choice in choices: person.send(choice)
        before = [(row['field'], row['value']) for row in served.store.rows()]
        person.open(f'./?item={id}')
        person.send('skip', why='Not the same story.')
        assert [(row['field'], row['value']) for row in served.store.rows()] == [('skip', 'Not the same story.')]
        row, = overview(served.store).tables['progress'].to_dict('records')
        assert (row['answered'], row['skipped'], row['open']) == (0, 1, 0)
        person.undo()
        assert person.item == id
        assert [(row['field'], row['value']) for row in served.store.rows()] == before
    assert len(before) == len(choices)

def test_training_comes_first_and_counts_nowhere(tmp_path):
    rows = compare_rows(2) + [dict(compare_rows(1)[0], id='t', training='both')]
    with serve('compare', rows, tmp_path/'a.db') as annotation, Person(annotation.urls['A']) as person:
        assert person.item == 't' and 'Training' in person.page.text and person.progress() == (0, 2)
        assert 'Both are good' not in person.page.text.split('Training')[0]
        person.send('choice=neither')
        assert 'What was agreed on' in person.page.text and 'Both are good' in person.page.text
        assert person.item == 't' and person.progress() == (0, 2)
        person.open()
        assert person.item == 'q0'
        assert len(annotation.store.answers()) == 0 and list(annotation.store.history().training) == [True]

def test_resume_and_two_servers_at_one_store(tmp_path):
    with (serve('compare', compare_rows(), tmp_path/'a.db') as one,
          serve('compare', compare_rows(), tmp_path/'a.db') as two):
        with Person(one.urls['A']) as here, Person(two.urls['A']) as there:
            here.send('choice=both')
            there.open()
            assert there.item == 'q1'
            there.send('choice=both')
            here.open()
            assert here.item == 'q2' and here.progress() == (2, 3)
    with serve('compare', compare_rows(), tmp_path/'a.db') as again, Person(again.urls['A']) as person:
        assert person.item == 'q2'

# Who is let in

def test_tokens(served):
    urls = served.urls
    assert len({secret(a) for a in urls.values()}) == 2 and all(len(secret(a))*6 >= 128 for a in urls.values())
    base = urls['Ann'].split('?')[0]
    with httpx.Client() as http:
        for token in ('', 'x', secret(urls['Bob']), secret(urls['Ann'])[:-1]):
            assert http.get(base, params=dict(token=token)).status_code == 403
        assert http.get(base).status_code == 403
        entered = http.get(urls['Ann'])
        assert entered.status_code == 302 and entered.headers['location'] == './'
        assert 'HttpOnly' in entered.headers['set-cookie'] and 'SameSite' in entered.headers['set-cookie']
        assert http.get(base).status_code == 200
        assert http.get(urls['Bob'].split('?')[0]).status_code == 403 # Ann's cookie opens Ann's items only

def test_both_addresses_in_one_browser(served):
    with Person(served.urls['Ann']) as ann:
        ann.http.get(served.urls['Bob'])
        assert ann.open().status_code == 200 and ann.http.get(served.urls['Bob'].split('?')[0]).status_code == 200

def test_what_changes_something_brings_its_key(served, ann):
    fields = ann.fields('choice=both')
    with Person(served.urls['Bob']) as bob: theirs = bob.form_key
    for key in ('', 'x', theirs):
        assert ann.http.post(ann.base + 'answer', data=fields | dict(form_key=key)).status_code == 403
    for origin in ('https://evil.example', 'null', 'http://127.0.0.1:1'):
        assert ann.http.post(ann.base + 'answer', data=fields, headers=dict(Origin=origin)).status_code == 403
        assert ann.http.post(ann.base + 'undo', data=fields, headers=dict(Origin=origin)).status_code == 403
    assert len(served.store.history()) == 0

def test_other_hosts(served, ann):
    for host in ('evil.example', f'evil.example:{served.server.access.port}', '127.0.0.1'):
        assert ann.http.get(ann.base, headers=dict(Host=host)).status_code in (400, 403)
        said = ann.http.post(ann.base + 'answer', data=ann.fields('choice=both'), headers=dict(Host=host))
        assert said.status_code in (400, 403)
    assert len(served.store.history()) == 0

def test_an_allowed_host(tmp_path):
    with (serve('compare', compare_rows(), tmp_path/'a.db', allow=('hub.example',)) as served,
          Person(served.urls['A']) as person):
        there = dict(Host='hub.example', Origin='https://hub.example')
        assert person.http.get(person.base, headers=there).status_code == 200
        said = person.http.post(person.base + 'answer', data=person.fields('choice=both'), headers=there)
        assert said.status_code == 200

@pytest.mark.parametrize('wrong', [dict(item='q9'), dict(item=''), dict(item='../q0'), dict(choice='choice=AI'),
                                   dict(choice='choice=third'), dict(choice='label=first'), dict(choice=''),
                                   dict(choice='='), dict(press=''), dict(press='a b c d e f'), dict(press='x'*100),
                                   dict(comment='x'*30_000)])
def test_what_was_not_on_the_page_is_refused(served, ann, wrong):
    said = ann.http.post(ann.base + 'answer', data=ann.fields('choice=both') | wrong)
    assert 400 <= said.status_code < 500 and len(served.store.history()) == 0

def raw_post(served, cookie, length, kind):
    "The first part of what is answered to a body that says how long it is, of which three bytes come."
    port = served.server.access.port
    with socket.create_connection(('127.0.0.1', port), timeout=10) as connection:
        path = served.server.access.path
        connection.sendall(f'POST {path}answer HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nCookie: {cookie}\r\n'
                           f'Content-Type: {kind}\r\nContent-Length: {length}\r\n\r\nabc'.encode())
        return connection.recv(4096)

def test_routes_and_bodies(served, ann):
    for path in ('../../etc/passwd', '..%2f..%2fsettings.ini', 'files/../../x', 'files/annotate.html.jinja', 'none',
                 'answer'):
        assert ann.http.get(ann.base + path).status_code in (403, 404), path
    assert ann.http.get(ann.base + '?item=../x').status_code == 404
    said = None
    try: said = ann.http.post(ann.base + 'answer', data=ann.fields('choice=both', comment='x'*1_100_000))
    except httpx.TransportError: pass # cut off before it was read
    assert said is None or 400 <= said.status_code < 500
    cookie = '='.join(*ann.http.cookies.items())
    for length, kind, status in ((1_048_577, 'text/plain', b'413'), (9*10**30, 'text/plain', b'413'),
                                 (3, 'multipart/form-data', b'400')):
        said = raw_post(served, cookie, length, kind)
        assert said.split()[1] == status and b"default-src 'none'" in said and b'nosniff' in said
    assert len(served.store.history()) == 0 and ann.open().status_code == 200

def test_another_annotators_item(tmp_path):
    store = Store(tmp_path/'a.db')
    items = make_form('compare').items(compare_rows())
    store.begin('compare', {}, items, 0, dict(Ann=['q0'], Bob=['q1', 'q2']))
    pages = AnnotatorPages(make_form('compare'), store, store.items(), 'Ann').routes()
    with Server({'1': pages}) as server, Person(server.address) as ann:
        assert ann.http.get(ann.base, params=dict(item='q1')).status_code == 404
        assert ann.http.post(ann.base + 'answer', data=ann.fields('choice=both', item='q1')).status_code == 404
    assert len(store.history()) == 0

def test_headers(served, ann):
    answers = [ann.http.get(ann.base + path) for path in ('', 'codebook', 'none', 'files/annotate.js')]
    for said in answers:
        policy = dict(rule.split(' ', 1) for rule in said.headers['content-security-policy'].split('; '))
        assert policy['default-src'] == "'none'" and policy['script-src'].startswith("'nonce-")
        assert policy['frame-ancestors'] == "'self' http://127.0.0.1:* http://localhost:*"
        assert said.headers['referrer-policy'] == 'no-referrer' and said.headers['x-content-type-options'] == 'nosniff'
        assert 'x-frame-options' not in said.headers and said.headers['cache-control'] == 'no-store'
    nonces = [re.search(r"'nonce-([^']*)'", said.headers['content-security-policy'])[1] for said in answers]
    assert len(set(nonces)) == len(nonces) and f'nonce="{nonces[0]}"' in answers[0].text

def test_addresses_are_relative(served, ann):
    "So that a proxy can put anything before them."
    ann.send('choice=both')
    for path in ('./', 'codebook', './?item=q0&differences=yes'):
        page = Parts(ann.open(path).text)
        links = [a.get(name) for _, a in page.tags for name in ('href', 'src', 'action') if a.get(name)]
        assert links and not [x for x in links if x.startswith('/') or ':' in x and x != 'data:,']

def test_neither_tokens_nor_texts_reach_the_log(tmp_path, capfd):
    rows = compare_rows(1)
    rows[0]['texts']['AI'] = 'SECRETTEXT'
    with serve('compare', rows, tmp_path/'a.db') as served, Person(served.urls['A']) as person:
        token, access = secret(served.urls['A']), served.server.access
        person.send('choice=nothing', comment='SECRETTEXT')
        served.store.close() # every page fails from now on
        os.rename(tmp_path/'a.db', tmp_path/'b.db')
        person.open()
        person.http.get(served.urls['A'], headers=dict(Host='evil.example'))
        for raw in (f'GET {access.path}?token={token}'.encode() + b' HTTP/9\r\n\r\n',
                    f'POST {access.path}answer HTTP/1.1\r\nContent-Length: x\r\n\r\n'.encode()):
            with socket.create_connection(('127.0.0.1', access.port)) as line:
                line.sendall(raw)
                line.settimeout(2)
                try: line.recv(1000)
                except OSError: pass
    said = ''.join(capfd.readouterr())
    assert token not in said and 'SECRETTEXT' not in said

HOSTILE = ['<script>document.title = "broken"</script>', '</textarea></form><img src=x onerror=alert(1)>',
           '"><a href="javascript:alert(1)">x</a>', '{{ 7*7 }}{% raw %}', 'שלום \u202e<b>abc</b>', '👩‍👩‍👧 e\u0301',
           'a\x00b\x1b[31m', '\ud800 half', '-- \' OR 1=1; DROP TABLE presses']

@pytest.mark.parametrize('form', ['compare', 'facts', 'criteria', 'claims'])
def test_hostile_texts_are_shown_as_text(tmp_path, form):
    def spoilt(x, text):
        if isinstance(x, dict): return {name: spoilt(own, text) for name, own in x.items()}
        if isinstance(x, list): return [spoilt(own, text) for own in x]
        return text if isinstance(x, str) else x
    rows = []
    for i, text in enumerate(HOSTILE):
        row, = ROWS[form](1)
        rows.append({name: x if name in ('id', 'group') else spoilt(x, text) for name, x in row.items()} | dict(
            id=f'i{i}', group=text))
    with serve(form, ROWS[form](1), tmp_path/'clean.db') as served, Person(served.urls['A']) as person:
        clean = sorted({tag for tag, _ in person.page.tags} | {'ins', 'del'})
    with serve(form, rows, tmp_path/'a.db') as served, Person(served.urls['A']) as person:
        for i, text in enumerate(HOSTILE):
            person.open(f'./?item=i{i}&differences=yes')
            assert person.response.status_code == 200 and visible(text) in person.page.text
            assert {tag for tag, _ in person.page.tags} <= set(clean)
            assert not [a for _, a in person.page.tags if any(name.startswith('on') for name in a)]
            person.send('comment', comment=visible(text))
            assert person.response.status_code == 200
        kept = served.store.answers()
        assert len(kept) == len(HOSTILE) and served.store.export(tmp_path/'out')

def test_a_million_characters_in_one_line(tmp_path):
    row, = compare_rows(1)
    row['texts'] = dict(AI='x'*1_000_000, Expert='word '*200_000)
    row['bases'] = dict(AI='y', Expert='word '*100_000)
    with serve('compare', [row], tmp_path/'a.db') as served, Person(served.urls['A']) as person:
        assert 'x'*1_000_000 in person.page.text and 'word '*1000 in person.page.text
        person.open('./?item=q0&differences=yes')
        assert person.response.status_code == 200

# What is wrong from the start

@pytest.mark.parametrize('form, rows, said', [
    ('rank', compare_rows(), 'no form .rank.'), ('compare', [], 'hold no row'),
    ('compare', [dict(id='a')], 'Row 1 has no .texts'), ('compare', compare_rows(1)*2, 'in row 1 and again in row 2'),
    ('compare', [dict(compare_rows(1)[0], id=None)], "no 'id'"),
    ('facts', [dict(id=1, claim='x')], "Row 1 has no 'source'"),
    ('criteria', [dict(id=1, second='x')], "Row 1 has no 'questions'"), ('claims', [dict(id=1)], "Row 1 has no 'text'"),
    ('compare', [*compare_rows(1), dict(compare_rows(2)[1], texts=dict(A='x', B='y'), bases={})], 'same two makers'),
    ('compare', 'none.jsonl', 'There is no file'), ('facts', [3], 'Row 1 is no JSON object')])
def test_bad_input_leaves_no_store(tmp_path, form, rows, said):
    with pytest.raises(BadInput, match=said) as told: serve(form, rows, tmp_path/'a.db')
    assert '\n' not in str(told.value) and not os.listdir(tmp_path)

def test_a_taken_port_leaves_no_store(tmp_path, served):
    with pytest.raises(BadInput, match='give another one'):
        serve('compare', compare_rows(), tmp_path/'b.db', port=served.server.access.port)
    assert not [name for name in os.listdir(tmp_path) if name.startswith('b')]
    for wrong, said in ((dict(annotators=('a', 'a')), 'different names'), (dict(annotators=()), 'different names'),
                        (dict(annotators=('../x',)), 'different names'), (dict(annotators=('A', 'item')), 'than'),
                        (dict(labels='fables'), 'no option'),
                        (dict(host='no such host.'), 'had')):
        with pytest.raises(BadInput, match=said): serve('compare', compare_rows(), tmp_path/'b.db', **wrong)
    assert not [name for name in os.listdir(tmp_path) if name.startswith('b')]

@pytest.mark.parametrize('change', [dict(form='facts'), dict(seed=1), dict(data=compare_rows(2))])
def test_another_question_is_another_store(tmp_path, served, change):
    given = dict(form='compare', data=compare_rows(), seed=0) | change
    if change.get('form'): given['data'] = ROWS['facts']()
    with pytest.raises(BadInput, match='name another file'): serve(store=tmp_path/'a.db', **given)
    assert served.store.form == 'compare'
    with pytest.raises(BadInput, match='no store of annotations'):
        (tmp_path/'x.jsonl').write_text(json.dumps(dict(a=1)))
        serve('compare', compare_rows(), tmp_path/'x.jsonl')
    assert (tmp_path/'x.jsonl').read_text() == '{"a": 1}'
