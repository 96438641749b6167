"""The page believes nothing that a folder of results says: what isn't whole is refused, what is whole is escaped, and
no link leads elsewhere."""
import base64
import json
import os
import shutil
from html.parser import HTMLParser
from pathlib import Path

import pandas as pd
import pytest

from factlib.core.files import write_atomic
from factlib.report.page import build_page
from factlib.report.results import Experiment, digests
from factlib.report.tables import format_p

PNG = base64.b64decode(
    'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg==')
SCRIPT = '<script>alert(1)</script>'

class Page(HTMLParser):
    def __init__(self, html):
        super().__init__()
        self.tags, self.links = [], []
        self.feed(html)
    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        self.tags.append((tag, attributes))
        self.links += [attributes[name] for name in ('href', 'src') if name in attributes]

def write(run, **more):
    "A folder of results made by hand, whole by its own account."
    for file, content in {'tables/a.csv': b'x\n1\n', 'figures/a.png': PNG, 'notebook.html': b'<p>'}.items():
        if not (run/file).exists(): write_atomic(run/file, content)
    shown = [dict(kind='table', file='tables/a.csv', caption='A table', cell='a', columns=None, digits=3),
             dict(kind='figure', file='figures/a.png', caption='A figure', cell='b')]
    files = [s['file'] for s in more.get('shown', shown)]
    result = dict(title='T', question='Q?', parameters=dict(n=1),
                  evaluators=dict(e=dict(asked=1, scored=1, signature='s')),
                  seconds=.1, findings=[dict(text='F', cell='c', lead=1)], shown=shown, files=files) | more
    if 'sha256' not in result:
        result['sha256'] = digests(run, [f for f in [*files, 'notebook.html']
                                         if not os.path.isabs(f) and (run/f).is_file()])
    write_atomic(run/'result.json', json.dumps(result))
    return run

def page_of(outputs):
    html = build_page(outputs).read_text(encoding='utf-8')
    page = Page(html)
    assert not {tag for tag, _ in page.tags} & {'script', 'iframe', 'object', 'embed', 'base', 'form', 'svg', 'link'}
    assert not [a for _, a in page.tags if any(name.startswith('on') for name in a)]
    assert all(link.startswith(('./', '#', 'data:image/png;base64,')) for link in page.links), page.links
    assert any(a.get('http-equiv') == 'Content-Security-Policy' and "default-src 'none'" in a['content']
               for _, a in page.tags)
    return html, page

def test_what_is_whole_is_shown(tmp_path):
    write(tmp_path/'r')
    html, page = page_of(tmp_path)
    assert 'Not shown' not in html
    assert {'./r/notebook.html#cell-id=a', './r/tables/a.csv', './r/figures/a.svg',
            './r/result.json'} <= set(page.links)

def test_a_sentence_that_does_not_lead_stands_under_what_its_cell_shows(tmp_path):
    "A page opens with three sentences at most. A further one without a table or picture of its cell is in a list."
    findings = [dict(text=text, cell=cell, lead=lead) for text, cell, lead in
                [('Four leads', 'a', 4), ('Three leads', 'b', 3), ('Two leads', 'c', 2), ('One waits', 'a', 1),
                 (f'{SCRIPT} of the picture', 'b', 0), ('Nowhere else', 'c', 0)]]
    html, page = page_of(write(tmp_path/'r', findings=findings).parent)
    opening, rest = html.split('<img')[:2]
    assert [f['text'] in opening for f in findings] == [True]*3 + [False]*3
    picture, table = rest.split('<summary>')[:2]
    assert '&lt;script&gt;alert(1)&lt;/script&gt; of the picture' in picture and 'One waits' not in picture
    assert table.index('full precision') < table.index('One waits') and 'Nowhere else' not in table
    assert html.count('What else was found (1)') == 1 and html.count('Nowhere else') == 1
    assert page.links.count('./r/notebook.html#cell-id=a') == 3 # both sentences and the table

HARM = {
    'another table': lambda run: write_atomic(run/'tables/a.csv', 'x\n2\n'),
    'another picture': lambda run: write_atomic(run/'figures/a.png', PNG + b'x'),
    'another notebook': lambda run: write_atomic(run/'notebook.html', '<b>'),
    'a table that is gone': lambda run: (run/'tables/a.csv').unlink(),
    'a link outside': lambda run: ((run/'tables/a.csv').unlink(), (run/'tables/a.csv').symlink_to('/etc/hosts')),
    'a device': lambda run: ((run/'tables/a.csv').unlink(), (run/'tables/a.csv').symlink_to('/dev/zero')),
    'a pipe': lambda run: ((run/'tables/a.csv').unlink(), os.mkfifo(run/'tables/a.csv')),
    'a folder': lambda run: ((run/'tables/a.csv').unlink(), (run/'tables/a.csv').mkdir()),
    'half a result': lambda run: write_atomic(run/'result.json', (run/'result.json').read_bytes()[:-40]),
    'a result in another encoding': lambda run: write_atomic(run/'result.json',
                                                             (run/'result.json').read_text().encode('utf-16')),
    'a result that is a pipe': lambda run: ((run/'result.json').unlink(), os.mkfifo(run/'result.json')) and None,
    'deeply nested': lambda run: write_atomic(run/'result.json', '['*100_000),
    'a list': lambda run: write_atomic(run/'result.json', '[]'),
    'no digests': lambda run: write_atomic(run/'result.json',
                                           json.dumps({k: v for k, v in json.loads(
                                               (run/'result.json').read_text()).items() if k != 'sha256'}))}

@pytest.mark.parametrize('harm', HARM)
def test_what_does_not_match_is_refused_with_a_sentence(harm, tmp_path):
    "And what stands beside it is shown all the same."
    write(tmp_path/'good', title='Good')
    HARM[harm](write(tmp_path/'bad', title='Bad'))
    html, _ = page_of(tmp_path)
    assert '<h2>Good</h2>' in html and '<h2>Bad</h2>' not in html and 'Not shown: bad' in html
    assert 'run the experiment again' in html and './bad/' not in html

def shown(file, **more): return dict(kind='table', file=file, caption='c', cell='', columns=None, digits=3) | more

WRONG = {
    'a path from the root': lambda run: dict(shown=[shown('/etc/hosts')],
                                             sha256={'/etc/hosts': digests(Path('/'), ['etc/hosts'])['etc/hosts']}),
    'a path outside': lambda run: dict(shown=[shown('../secret.csv')],
                                       files=['../secret.csv'], sha256=digests(run, ['../secret.csv'])),
    'an SVG for a picture': lambda run: dict(shown=[shown('tables/a.csv', kind='figure')]),
    'NUL in a name': lambda run: dict(shown=[shown('a\0b')], sha256={'a\0b': ''}),
    'half a character in a name': lambda run: dict(shown=[shown('\udc80')], sha256={'\udc80': ''}),
    'decimals without end': lambda run: dict(shown=[shown('tables/a.csv', digits=10**9)]),
    'a column that is not there': lambda run: dict(shown=[shown('tables/a.csv', columns=dict(z='Z'))]),
    'a lead without end': lambda run: dict(findings=[dict(text='', cell='', lead=float('inf'))]),
    'findings that are none': lambda run: dict(findings=7),
    'evaluators that are none': lambda run: dict(evaluators=['x']), 'digests that are none': lambda run: dict(sha256=7),
    'a file without a digest': lambda run: dict(files=['tables/a.csv', 'other'])}

@pytest.mark.parametrize('wrong', WRONG)
def test_what_a_result_may_not_say(wrong, tmp_path):
    write_atomic(tmp_path/'secret.csv', 'x\nsecret-7\n')
    write(tmp_path/'r')
    write(tmp_path/'r', **WRONG[wrong](tmp_path/'r'))
    html, _ = page_of(tmp_path)
    assert 'Not shown: r' in html and 'secret-7' not in html and 'localhost' not in html

def test_every_text_is_escaped_and_every_link_quoted(tmp_path):
    name = 'javascript:alert(1)#"><b>' + '%41 é'
    write_atomic(tmp_path/name/'tables/a.csv', f'x,y\n"{SCRIPT}",1\n')
    write_atomic(tmp_path/name/'tables/a.html', SCRIPT)
    said = dict(title=SCRIPT, question=SCRIPT + '\ud800', parameters={SCRIPT: SCRIPT},
                evaluators={SCRIPT: dict(asked=1, scored=1, signature='"><script>')},
                findings=[dict(text=SCRIPT, cell='"><script>', lead=1), dict(text='', cell='\ud800', lead=0)],
                shown=[shown('tables/a.csv', caption=SCRIPT, cell='javascript:x', columns=dict(x=SCRIPT, y='y'))])
    write(tmp_path/name, **said)
    html, page = page_of(tmp_path)
    assert 'Not shown' not in html and '&lt;script&gt;' in html
    assert './javascript%3Aalert%281%29%23%22%3E%3Cb%3E%2541%20%C3%A9/result.json' in page.links

def test_names_that_are_no_text(tmp_path):
    "A folder whose name isn't UTF-8."
    try: os.mkdir(os.fsencode(tmp_path) + b'/r\xff')
    except OSError: pytest.skip('this file system has names in UTF-8 only')
    write(tmp_path/'r\udcff')
    html, page = page_of(tmp_path)
    assert './r%FF/result.json' in page.links and 'r\ufffd' in html

def test_tables_on_the_page_are_those_of_the_run(tmp_path):
    "Made anew from CSV, they are the same to the character as the file that the run wrote for reading."
    run = Experiment('demo', 'D', 'Q?', dict(out=str(tmp_path/'r')))
    frame = pd.DataFrame({'variant': ['41', '007', ' a,"b"\n'], 'n': pd.array([1, None, 3], dtype='Int64'),
                          'x': [1., -0.00001, None], 'p': [.0001, .5, None],
                          'yes': [True, False, None], 'gone': ['a', None, 'b']})
    run.table(frame, 'all', 'All', cell='', digits=dict(x=2, p=format_p))
    run.table(frame, 'some', 'Some', cell='', digits=1, columns=dict(p='*p*', x='<x>'))
    run.table(frame[:0], 'none', 'None', cell='')
    run.finish()
    html, _ = page_of(tmp_path)
    for name in ('all', 'some', 'none'):
        assert (tmp_path/'r'/'tables'/f'{name}.html').read_text(encoding='utf-8').strip() in html

def test_a_folder_that_was_changed_by_hand_says_so_until_it_runs_again(tmp_path):
    def run():
        run = Experiment('demo', 'D', 'Q?', dict(out=str(tmp_path/'r')))
        run.table(pd.DataFrame(dict(x=[1])), 'a', 'c', cell='')
        run.finish()
    run()
    (tmp_path/'r'/'tables'/'a.csv').write_text('x\n2\n')
    assert 'Not shown: r' in page_of(tmp_path)[0]
    run()
    assert 'Not shown' not in page_of(tmp_path)[0]
    shutil.copytree(tmp_path/'r', tmp_path/'.r-00c0ffee.old') # what is on its way is no result
    assert page_of(tmp_path)[0].count('<h2>D') == 1
