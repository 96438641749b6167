"""The narrative page over HTTP: the whole path by a stand-in for a model, what there is without one, with hand-worked results; and
whatever people paste, click and break."""
import errno
import json
import os
import re
import subprocess
import sys
import time
from contextlib import contextmanager
from xml.etree import ElementTree

import httpx
import pytest
from command import environment
from narrative_server import rule

from factlib.apps.server import asks_elsewhere
from factlib.apps.narrative import narrative_server
from factlib.apps.narrative_steps import ModelSettings
from factlib.apps.narrative_texts import MOST_TEXT
from factlib.core.records import BadInput
from factlib.evaluators.narrative.graph import Graph
from factlib.llm.stub import StubServer

STORY = ("CHAPTER I\n\nAnn, Bob's sister, came home. Bob is blind.\n\nCHAPTER II\n\nCy, Dora's brother, wept. Dora "
         "slept. Ann, Bob's sister, left.\n")
SUMMARY = 'Ann is the sister of Bob. Bob is deaf. Dora slept.'
HOSTILE = ('</textarea></title></script><script>alert(1)</script><img src=x onerror=alert(1)> {{ 7*7 }} {% raw %} &lt; '
           '" \' \x00\x1b[31m \u202e שלום')

class Visitor:
    "The owner, as a browser without a script."
    def __init__(self, server):
        self.root = server.access.path.rstrip('/')
        self.http = httpx.Client(base_url=server.address.split('?')[0], follow_redirects=True, timeout=60)
        self.http.get(server.address)
        self.key = server.access.form_key
    def get(self, path): return self.http.get(path.removeprefix(self.root))
    def post(self, path, files=None, **form):
        answered = self.http.post(path.removeprefix(self.root), data=form | dict(form_key=self.key), files=files,
                                  follow_redirects=False)
        # httpx would keep the form's content type
        return self.get(answered.headers['location']) if answered.is_redirect else answered
    def paste(self, text=STORY, name='A <story>'):
        self.here = self.post('/texts/paste', text=text, name=name).url.path.removeprefix(self.root)
        return self.here
    def wait(self, seconds=60):
        "Until no job is under way."
        limit = time.monotonic() + seconds
        while 'data-job' in (page := self.get(self.here).text):
            assert time.monotonic() < limit, page
            time.sleep(.05)
        return page
    def do(self, step, **form):
        "A step with both clicks. The page when it is done."
        self.post(f'{self.here}/{step}', agreed='yes', **form)
        return self.wait()
    def version(self):
        "Id of the last summary."
        return re.findall(r'<option value="([0-9a-f-]+)"',
                          self.get(self.here).text.split('id="summary"')[1].split('</select>')[0])[-1]
    def versions(self): return json.loads(self.get(f'{self.here}/export.json').text)['summaries']

@contextmanager
def visit(folder, settings=None):
    with narrative_server(folder, settings=settings) as server: yield Visitor(server)

@contextmanager
def visit_with_model(folder, rule=rule, **settings):
    with StubServer(rule) as model, visit(folder, ModelSettings('stub', model.base_url, **settings)) as visitor:
        visitor.model = model
        yield visitor

# By a model

def test_the_whole_path_by_a_model(tmp_path):
    """Two scenes, three samples each: 6 requests. A summary of three facts in one scene or two: the score is 2/3; one
    sentence is left out, and it is 1."""
    (tmp_path/'prices.csv').write_text('model,input,output,currency\nstub,1,2,EUR\n')
    with visit_with_model(tmp_path/'store', prices=str(tmp_path/'prices.csv')) as v:
        v.paste()
        shown = v.post(f'{v.here}/graph', how='model', samples=3, tau=2, count='samples').text
        assert not v.model.requests and 'Nothing has been asked yet' in shown and '>6<' in shown and 'EUR' in shown
        assert 'name="agreed" value="yes"' in shown
        page = v.do('graph', how='model', samples=3, tau=2, count='samples')
        assert len(v.model.requests) == 6 and page.count('<rect') == 4 and 'Ann; sister of; Bob' in page
        v.post(f'{v.here}/summary/paste', text=SUMMARY)
        shown = v.post(f'{v.here}/score', how='model', version=v.version(), graph='consistent').text
        planned = int(re.search(r'Requests</th><td class="number">(\d+)', shown)[1])
        assert len(v.model.requests) == 6
        page = v.do('score', how='model', version=v.version(), graph='consistent')
        assert len(v.model.requests) == 6 + planned
        assert '0.67' in page and '2 of 3 facts supported' in page and 'Not told: Bob is deaf.' in page
        assert 'relation shown with it' in page
        page = v.do('refine', how='model', version=v.version(), rounds=3)
        assert [(' '.join(x['text'].split()), x['judged'] and round(x['judged']['value'], 2))
                for x in v.versions()] == [(SUMMARY, .67), ('Ann is the sister of Bob. Dora slept.', 1.)]
        assert re.search(r'<del[^>]*>Bob is deaf\.\s*</del>', page) or '<del' in page

def test_a_fact_that_only_the_graph_supports(tmp_path):
    "Without the graph, the sister is not told of: 1 of 3."
    with visit_with_model(tmp_path) as v:
        v.paste()
        v.do('graph', how='model', samples=1, tau=1, count='samples')
        v.post(f'{v.here}/summary/paste', text=SUMMARY)
        assert '1 of 3 facts supported' in v.do('score', how='model', version=v.version(), graph='none')
        assert '2 of 3 facts supported' in v.do('score', how='model', version=v.version(), graph='consistent')

def test_nothing_is_asked_twice(tmp_path):
    "A step that was done before costs nothing, after a new start as well; so it begins without an estimate."
    with visit_with_model(tmp_path) as v:
        v.paste()
        v.do('graph', how='model', samples=3, tau=2, count='samples')
        asked = len(v.model.requests)
        with_answers = v.post(f'{v.here}/graph', how='model', samples=3, tau=2, count='samples')
        assert with_answers.url.path == v.root + v.here and len(v.model.requests) == asked
        v.wait()
        more = v.post(f'{v.here}/graph', how='model', samples=4, tau=2, count='samples').text
        assert 'of these answered already</th><td class="number">6' in more
        assert 'to be asked</th><td class="number">2' in more

def test_thresholds_merges_and_splits_ask_nobody(tmp_path):
    "Of three readings two say that Bob is blind; at a threshold of three it is gone."
    count = dict(read=0)
    def forgets(request):
        reply = rule(request)
        if '<scene>' in request['messages'][-1]['content'] and 'Bob is blind' in request['messages'][-1]['content']:
            count['read'] += 1
            if count['read'] == 1:
                reply = json.dumps(dict(json.loads(reply),
                                        triples=[t for t in json.loads(reply)['triples'] if t['predicate'] != 'blind']))
        return reply
    with visit_with_model(tmp_path, forgets, concurrency=1) as v:
        v.paste()
        assert 'Bob; blind' in v.do('graph', how='model', samples=3, tau=2, count='samples')
        asked = len(v.model.requests)
        view = v.get(f'{v.here}/graph?tau=3').text
        assert 'Bob; blind' not in view and 'Ann; sister of; Bob' in view and '<html' not in view
        assert 'Bob; blind' in v.get(v.here).text # only looked at
        assert 'Bob; blind' not in v.post(f'{v.here}/tau', tau=3).text
        merged = v.post(f'{v.here}/merge', one='Cy', other='Dora').text
        assert merged.count('<rect') == 3 and 'by hand' in merged
        name = 'Dora' if 'name="person" value="Cy"' in v.get(f'{v.here}?about=Cy').text else 'Cy'
        split = v.post(f'{v.here}/split', **{'person': 'Cy', 'name-0': name}).text
        assert split.count('<rect') == 4 and len(v.model.requests) == asked
        for path, form in (('merge', dict(one='Ann', other='Nobody')), ('merge', dict(one='Ann', other='Ann')),
                           ('split', dict(person='Ann')), ('split', {'person': 'Ann', 'name-0': 'Ann'})):
            refused = v.post(f'{v.here}/{path}', **form)
            assert refused.status_code == 400 and 'class="problem"' in refused.text

def test_the_model_writes(tmp_path):
    with visit_with_model(tmp_path) as v:
        v.paste()
        v.do('summary', how='model', merge='concatenate')
        assert v.versions()[0]['how'] == 'stub, part after part' and v.versions()[0]['text']

@pytest.mark.parametrize('spoiled, said', [
    (lambda request: dict(status=500), 'could not be reached'),
    (lambda request: dict(content='', refusal='No.'), 'declined'), (lambda request: 'no JSON', 'can&#39;t be used')])
def test_what_a_model_spoils_is_said(tmp_path, spoiled, said):
    with visit_with_model(tmp_path, lambda request: spoiled(request) | dict(headers={'Retry-After': '0'})
                          if isinstance(spoiled(request), dict) else spoiled(request)) as v:
        v.paste()
        page = v.do('graph', how='model', samples=1, tau=1, count='samples')
        assert said in page and 'Try again' in page and 'class="problem"' in page

# Jobs

@contextmanager
def slow_visit(folder, after=2):
    "The model answers `after` requests at once, and the others much later."
    answered = []
    def slow(request):
        answered.append(request)
        return rule(request) if len(answered) <= after else dict(content=rule(request), delay=60)
    with visit_with_model(folder, slow, concurrency=1) as v: yield v

def begin(v):
    "A graph of two scenes, three samples each, of which two are answered."
    v.paste()
    v.post(f'{v.here}/graph', how='model', samples=3, tau=2, count='samples', agreed='yes')
    limit = time.monotonic() + 20
    while '2 of 6' not in (page := v.get(v.here).text):
        assert time.monotonic() < limit, page
        time.sleep(.05)
    return page

def test_a_reload_in_mid_job_and_cancel(tmp_path):
    with slow_visit(tmp_path) as v:
        page = begin(v)
        job = re.search(r'data-job="(\w+)"', page)[1]
        assert 'max="6" value="2"' in v.get(v.here).text
        assert json.loads(v.get(f'/jobs/{job}').text)['state'] == 'running'
        assert v.post(f'{v.here}/summary', how='baseline', n=1).status_code == 400 # one thing at a time
        begun = time.monotonic()
        page = v.post(f'/jobs/{job}/cancel').text
        assert 'cancelled' in page and 'data-job' not in page and time.monotonic() - begun < 10
        assert 'No graph has been built' in page
        again = v.post(f'{v.here}/again').text
        assert 'of these answered already</th><td class="number">2' in again and 'name="samples" value="3"' in again

def test_a_new_start_in_mid_job(tmp_path):
    with slow_visit(tmp_path) as v: begin(v)
    with visit_with_model(tmp_path) as other:
        other.here = v.here
        page = other.get(v.here).text
        assert 'interrupted' in page and 'Go on' in page and not other.model.requests # nothing is asked without a click

@contextmanager
def process(store, base_url):
    "`factlib narrative` as a user starts it."
    command = [sys.executable, '-c', 'from factlib.cli import main; main()', 'narrative',
               '--store', str(store), '-p', 'model', 'stub', '-p', 'base_url', base_url, '-p', 'concurrency', '1']
    running = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                               text=True, env=environment(None))
    try:
        address = running.stdout.readline().strip()
        assert address.startswith('http://127.0.0.1:'), running.stderr.read()
        http = httpx.Client(base_url=address.split('/?')[0], follow_redirects=True, timeout=60)
        key = re.search(r'name="form_key" value="(\w+)"', http.get(address).text)[1]
        visitor = Visitor.__new__(Visitor)
        visitor.http, visitor.key, visitor.process = http, key, running
        visitor.root = httpx.URL(address).path.rstrip('/')
        yield visitor
    finally:
        running.kill()
        running.wait()
        running.stdout.close()
        running.stderr.close()

@pytest.mark.slow
def test_kill_9(tmp_path):
    "Killed after two of six answers; started again, four are asked for, and the graph is there."
    seen, hold = [], dict(on=True)
    def slow(request):
        seen.append(request)
        return rule(request) if len(seen) <= 2 or not hold['on'] else dict(content=rule(request), delay=60)
    with StubServer(slow) as model:
        with process(tmp_path, model.base_url) as v: begin(v)
        hold['on'], here = False, v.here
        before = len(seen)
        with StubServer(slow): pass
        with process(tmp_path, model.base_url) as v:
            v.here = here
            assert 'Go on' in v.get(here).text
            assert 'of these answered already</th><td class="number">2' in v.post(f'{here}/again').text
            assert len(seen) == before
            assert 'Ann; sister of; Bob' in v.do('graph', how='model', samples=3, tau=2, count='samples')
    assert len(seen) == before + 4

def test_sigterm_leaves_it_to_go_on(tmp_path):
    with StubServer(lambda request: dict(content=rule(request),
                                         delay=60)) as model, process(tmp_path, model.base_url) as v:
        v.paste()
        v.post(f'{v.here}/graph', how='model', samples=1, tau=1, count='samples', agreed='yes')
        v.process.terminate()
        assert v.process.wait(60) == 0 # it may be importing spaCy
    with visit(tmp_path) as other: assert 'interrupted' in other.get(v.here).text

# Without a model

def test_the_path_without_a_model(tmp_path):
    """Central sentences, a graph by a parser; facts are not judged, which is said with the command and a baseline."""
    with visit(tmp_path) as v:
        v.paste()
        assert 'no model is named' in v.get('/').text.lower()
        assert '2 central sentences' in v.do('summary', how='baseline', n=2)
        page = v.get(v.here).text
        assert 'Scoring asks a model' in page and '-p model NAME' in page and 'word_support' in page
        for form in (dict(graph='none'), dict(graph='none', how='baseline'), dict(graph='none', how='model')):
            refused = v.post(f'{v.here}/score', version=v.version(), **form)
            assert refused.status_code == 400 and 'none is named' in refused.text and 'word_support' in refused.text
        assert v.post(f'{v.here}/summary', how='model', merge='concatenate').status_code == 400

# Texts

def test_three_megabytes_with_markup(tmp_path):
    text = (HOSTILE + ' Ann came home. Bob slept at noon.\n\n')*30_000
    assert len(text.encode()) > 3_000_000
    with visit(tmp_path) as v:
        shown = v.post('/texts/file', files=dict(file=('</title><script>.txt', text.encode())))
        assert shown.status_code == 200 and shown.url.path.startswith(f'{v.root}/texts/')
        assert '<script>alert' not in shown.text and '<img src=x' not in shown.text and '\x00' not in shown.text
        assert '␀␛[31m' in shown.text and '{{ 7*7 }}' in shown.text
        assert len(shown.content) < 1_500_000 # one scene, and the beginnings of the others
        last = max(map(int, re.findall(r'scene=(\d+)#', shown.text)))
        assert v.get(f'{shown.url.path}?scene={last}').status_code == 200

def test_hostile_texts_everywhere(tmp_path):
    "Name, text, summary, facts, feedback, names of people: text, in the page and in each export."
    def hostile(request):
        reply = rule(request) if '<facts>' not in request['messages'][
            -1]['content'] else json.dumps(dict(verdicts=[dict(id='F1', verdict='unsupported', feedback=HOSTILE)]))
        if '<scene>\n' in request['messages'][-1]['content'] and '<facts>' not in request['messages'][-1]['content']:
            reply = json.dumps(dict(names=[[HOSTILE], ['Ann']],
                                    triples=[dict(subject='Ann', predicate=HOSTILE, object=HOSTILE)]))
        elif '"facts"' in request['messages'][-1]['content'].split('</text>')[-1]:
            reply = json.dumps(dict(facts=[HOSTILE]))
        return reply
    with visit_with_model(tmp_path, hostile) as v:
        v.paste(STORY + HOSTILE, HOSTILE)
        v.do('graph', how='model', samples=1, tau=1, count='samples')
        v.post(f'{v.here}/summary/paste', text=HOSTILE + ' Ann left.')
        page = v.do('score', how='model', version=v.version(), graph='consistent')
        html = v.get(f'{v.here}/export.html').text
        for shown in (page, html, v.get('/').text, v.get(f'{v.here}/graph?tau=1&about=Ann').text,
                      v.post(f'{v.here}/remove').text):
            assert '<script>alert' not in shown and '<img' not in shown and '\x00' not in shown and '{{ 7*7 }}' in shown
        assert asks_elsewhere(html) == [] and page.count('<script') == 1

def test_exports(tmp_path):
    with visit_with_model(tmp_path/'store') as v:
        v.paste()
        v.do('graph', how='model', samples=1, tau=1, count='samples')
        v.post(f'{v.here}/summary/paste', text=SUMMARY)
        v.do('score', how='model', version=v.version(), graph='consistent')
        files = {ending: v.get(f'{v.here}/export.{ending}') for ending in ('json', 'graphml', 'html')}
        assert all('attachment' in f.headers['content-disposition'] for f in files.values())
        kept = json.loads(files['json'].text)
        assert kept['text'] == STORY and len(kept['scenes']) == 2
        assert kept['summaries'][0]['judged']['value'] == pytest.approx(2/3)
        (tmp_path/'graph.json').write_text(json.dumps(kept['graph']))
        assert [c.label for c in Graph.load(tmp_path/'graph.json').characters] == [
            'Ann', 'Bob', 'Dora', 'Cy'] or len(Graph.load(tmp_path/'graph.json').characters) == 4
        assert ElementTree.fromstring(files['graphml'].text).tag.endswith('graphml')
        assert asks_elsewhere(files['html'].text) == [] and "default-src 'none'" in files['html'].text
        assert 'Not told: Bob is deaf.' in files['html'].text
        assert v.get('/texts/0123456789abcdef/export.json').status_code == 400
        assert v.get(f'{v.here}/export.exe').status_code == 404

def test_the_same_text_is_one(tmp_path):
    with visit(tmp_path) as v:
        assert v.paste() == v.paste(name='Other') and v.get('/').text.count('<li>') == 1
        v.post(f'{v.here}/remove')
        assert v.get(v.here).status_code == 200 # one click is not enough
        v.post(f'{v.here}/remove', agreed='yes')
        assert v.get(v.here).status_code == 400 and 'choose another' in v.get(v.here).text

def test_bad_input_says_what_to_do(tmp_path):
    with visit(tmp_path) as v:
        for files, form, said in [(dict(file=('a.txt', b'\xff\xff\xff')), {}, 'UTF-8'),
                                  (dict(file=('a.txt', b'  ')), {}, 'no text'),
                                  (dict(file=('a.txt', b'a'*(MOST_TEXT + 1))), {}, 'at most'), (None, {}, 'no file')]:
            refused = v.post('/texts/file', files=files, **form)
            assert refused.status_code == 400 and said in refused.text
        v.paste()
        for path, form, said in [('graph', dict(how='model'), 'No model is named'),
                                 ('graph', dict(how='magic'), 'how'),
                                 ('summary', dict(how='baseline', n='0'), 'whole number'),
                                 ('summary', dict(how='baseline', n='x'), 'whole number'),
                                 ('score', dict(version='none', graph='none'), 'none is named'),
                                 ('refine', dict(how='baseline', version='x'), 'no such summary'),
                                 ('summary/paste', dict(text=' '), 'no text'),
                                 ('again', {}, 'Nothing has been started'), ('tau', dict(tau='2'), 'build one first')]:
            refused = v.post(f'{v.here}/{path}', **form)
            assert refused.status_code == 400 and said in refused.text, (path, refused.text)
        for address in ('?scene=9999', '?scene=-1', '?scene=x', '?version=none',
                        '?about=<script>', '?before=1&after=2'):
            assert v.get(v.here + address).status_code == 200

def test_a_store_of_another_server(tmp_path):
    with visit(tmp_path), pytest.raises(BadInput, match='Another server'):
        with visit(tmp_path): pass

def test_a_graph_file_that_somebody_edited(tmp_path):
    with visit_with_model(tmp_path) as v:
        v.paste()
        v.do('graph', how='model', samples=1, tau=1, count='samples')
        path = tmp_path/v.here.strip('/')/'graph.json'
        path.write_text('{"characters": 7}')
        refused = v.get(v.here)
        assert refused.status_code == 400 and 'class="problem"' in refused.text

@pytest.mark.parametrize('file', ['about', 'summaries', 'scenes', 'graph', 'text'])
def test_one_emptied_file_closes_no_other_text(file, tmp_path):
    """Before, one emptied file closed the start page of all texts. Now it concerns its own text, and pasting that again
    mends what can be mended."""
    with visit(tmp_path) as visitor:
        other = visitor.paste('A pond froze. A fox crossed it.', 'The other')
        visitor.paste(STORY, 'Mine')
        visitor.post(f'{visitor.here}/summary/paste', text=SUMMARY)
        ending = 'txt' if file == 'text' else 'json'
        (tmp_path/visitor.here.strip('/')/f'{file}.{ending}').write_text('')
        start = visitor.get('/')
        assert start.status_code == 200 and 'The other' in start.text and visitor.get(other).status_code == 200
        assert ('is damaged' in start.text) == (file in ('about', 'summaries'))
        own = visitor.get(visitor.here)
        assert own.status_code == (200 if file == 'scenes' else 400)
        if file != 'scenes': assert f'{file}.{ending}' in own.text and 'put back a copy, or move it away' in own.text
        if file in ('about', 'text'): assert visitor.get(visitor.paste(STORY, 'Mine')).status_code == 200
    with visit(tmp_path) as visitor: assert visitor.get('/').status_code == 200

def test_the_page_says_that_the_disk_is_full(tmp_path, monkeypatch):
    "Before, it said that something failed here, and the text was locked until a restart."
    with visit(tmp_path) as visitor:
        visitor.paste()
        with monkeypatch.context() as patch:
            def full(handle): raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            patch.setattr(os, 'fsync', full)
            for said in (visitor.post(f'{visitor.here}/graph', agreed='yes'),
                         visitor.post('/texts/paste', text='Another text.')):
                assert said.status_code == 400 and 'The disk is full' in said.text and 'make room' in said.text
            assert visitor.get(visitor.here).status_code == 200 and 'data-job' not in visitor.get(visitor.here).text
        assert 'data-job' not in visitor.do('graph') and 'relations' in visitor.get(visitor.here).text

def test_films_by_path(tmp_path):
    "Of a file of MENSA each film is a text with its scenes, and people's summary its first version; twice is once."
    path = tmp_path/'films.jsonl'
    path.write_text('\n'.join(json.dumps(dict(name=f'Road_{year}', scenes=['A road.', f'A bend in {year}.'],
                                              summary='They drive.')) for year in (2001, 2002)))
    told = []
    for _ in range(2):
        with narrative_server(tmp_path/'store', [path]) as server:
            visitor = Visitor(server)
            start = visitor.get('/').text
            assert start.count('Road_2001') >= 1 and 'Road_2002' in start
            text = visitor.get(re.search(r'href="(/\w+/texts/\w+)"[^>]*>[^<]*(?:<[^>]+>)*Road_2001', start)[1]).text
            assert 'A bend in 2001.' in text
            told.append(text.count('written by people, from the file'))
    assert told[0] == told[1] > 0
