"""The pages in Chromium: by keys alone, with reloads and a second tab, clicked and typed for each form; hostile texts;
five hundred items; what is said when nothing was saved; and a frame in JupyterLab."""
import os
import time
from pathlib import Path

import pytest
from annotators import ROWS, claim_rows, compare_rows, criteria_rows, fact_rows
from browser import asked_elsewhere, browser, fits, needs_browser
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import WebDriverWait

from factlib.apps.annotate import serve

pytestmark = needs_browser
SHOTS = os.environ.get('FACTLIB_SHOTS') # a folder for screenshots, to be looked at

@pytest.fixture(scope='module')
def driver():
    with browser() as opened:
        opened.implicitly_wait(0)
        yield opened

class Page:
    "What a person does."
    def __init__(self, driver, address):
        self.driver = driver
        driver.get(address)
        self.ready()
        assert 'token' not in driver.current_url
    def ready(self): self.until(lambda: self.script("return document.readyState === 'complete'"))
    def script(self, code, *given): return self.driver.execute_script(code, *given)
    def until(self, condition): return WebDriverWait(self.driver, 30, .02).until(lambda driver: condition())
    def find(self, css): return self.driver.find_element(By.CSS_SELECTOR, css)
    def all(self, css): return self.driver.find_elements(By.CSS_SELECTOR, css)
    def sees(self, text): return text in self.find('body').text
    @property
    def item(self): return self.script('return document.body.dataset.item')
    def answered(self): return int(self.find('[role=progressbar]').get_attribute('aria-valuenow'))
    def key(self, *keys): ActionChains(self.driver).send_keys(*keys).perform()
    def leave(self, act):
        "Do what saves, and be on the page that follows."
        self.script('window.isOld = true')
        act()
        self.until(lambda: self.script("return !window.isOld && document.readyState === 'complete'"))
    def press(self, *keys): self.leave(lambda: self.key(*keys))
    def click(self, css):
        self.script('arguments[0].scrollIntoView({block: "center"})', self.find(css))
        self.find(css).click()
    def look(self, name):
        "Every state fits, asks nobody else and logs nothing, in both widths; a screenshot if they are wanted."
        for width in (1280, 800):
            self.driver.set_window_size(width, 1000)
            assert fits(self.driver), (name, width)
            if SHOTS:
                time.sleep(.2)
                self.driver.save_screenshot(str(Path(SHOTS)/f'{name}-{width}.png'))
        self.driver.set_window_size(1280, 1000)
        assert not asked_elsewhere(self.driver)
        assert not [e for e in self.driver.get_log('browser') if e['level'] == 'SEVERE'], name

def values(served, field): return {r['item']: r['value'] for r in served.store.rows() if r['field'] == field}

def test_by_keys_alone(driver, tmp_path):
    "Compare: digits, differences, the codebook, undo across a reload, a second tab in the middle."
    with serve('compare', compare_rows(5), tmp_path/'a.db') as served:
        page = Page(driver, served.urls['A'])
        page.key('?')
        page.until(lambda: page.script('return document.querySelector("dialog").open'))
        page.look('codebook')
        page.key('1') # behind the codebook nothing is chosen
        page.key(Keys.ESCAPE)
        assert not page.script('return document.querySelector("dialog").open') and page.item == 'q0'
        assert not page.all('del')
        page.key('d')
        page.until(lambda: len(page.all('#texts del')) == 2)
        page.look('compare')
        page.key('d')
        page.until(lambda: not page.all('#texts del'))
        page.press('1')
        page.press('3')
        assert page.item == 'q2' and page.answered() == 2
        driver.refresh()
        page.ready()
        assert page.item == 'q2' and page.answered() == 2
        page.press('u')
        assert page.item == 'q1' and page.answered() == 1
        first = driver.current_window_handle
        driver.switch_to.new_window('tab')
        try:
            other = Page(driver, served.urls['A'])
            other.press('4')
            assert other.item == 'q2'
            other.press('4')
        finally:
            driver.close()
            driver.switch_to.window(first)
        page.press('2') # the first tab still shows q1: the later press counts
        assert page.item == 'q3' and page.answered() == 3
        for n in '34': page.press(n)
        assert page.item == '' and page.sees('All 5 items are answered')
        page.look('done')
        chosen = values(served, 'choice')
        history = served.store.history()
    assert chosen['q2'] == 'neither' and chosen['q3'] == 'both' and chosen['q4'] == 'neither' and len(chosen) == 5
    assert len(history) == 8 and sum(history.undo) == 1
    clock = history[~history.undo].seconds
    assert clock.notna().all() and (clock >= 0).all() and (clock < 600).all()

def test_tab_order_and_labels(driver, tmp_path):
    "The skip link, the bar, the texts, the options, as they are read; the focus is to be seen; all has a name."
    with serve('compare', compare_rows(2), tmp_path/'a.db') as served:
        page = Page(driver, served.urls['A'])
        names = []
        for _ in range(14):
            page.key(Keys.TAB)
            names.append(page.script("const e = document.activeElement; return (e.getAttribute('aria-label') || "
                                     "e.textContent || e.name).trim().replace(/\\s+/g, ' ')"))
            assert page.script("return getComputedStyle(document.activeElement).outlineStyle") != 'none'
        wanted = ['To the item', 'Undo u', 'Codebook ?', 'Reference', 'Show the differences d', 'The first text, whole',
                  'The second text, whole', '1 The first', '2 The second', '3 Both are good', '4 Both are bad']
        places = [names.index(name) for name in wanted]
        assert places == sorted(places)
        assert len(page.all('main')) == 1 and page.all('[role=progressbar][aria-label]') and page.all('html[lang]')
        assert page.script("return [...document.querySelectorAll('textarea')].every(t => t.labels.length)")

def test_claims_typed_and_clicked(driver, tmp_path):
    with serve('claims', claim_rows(2), tmp_path/'a.db') as served:
        page = Page(driver, served.urls['A'])
        page.look('claims')
        page.press('1')
        page.key('e') # of the claim that is open
        assert page.script("return document.activeElement.name") == 'text:c2'
        ActionChains(driver).key_down(Keys.CONTROL).send_keys('a').key_up(Keys.CONTROL).perform()
        page.key('I like 1 city.', Keys.ENTER, 'I was there.')
        page.leave(lambda: page.click('button[value="edit:c2="]'))
        assert page.sees('I was there.') and page.item == 't0'
        page.key('a')
        page.key('I go again.')
        page.leave(lambda: page.click('button[value="add="]'))
        page.leave(lambda: page.click('li:nth-child(3) summary') or page.click('button[value="delete:n4="]'))
        assert not page.sees('I was there.')
        page.leave(lambda: page.click('li:nth-child(3) button[data-key="5"]')) # not the first open one
        page.press('4')
        assert page.item == 't0'
        page.press(Keys.ENTER)
        assert page.item == 't1' and page.answered() == 1
        rows = served.store.rows()
    assert {r['field']: r['value'] for r in rows if r['field'] != 'claims'} == {
        'label:c1': 'verified', 'label:n3': 'out_of_scope', 'label:n5': 'abstention', 'done': 'yes'}

def test_criteria_by_keys(driver, tmp_path):
    with serve('criteria', criteria_rows(2), tmp_path/'a.db') as served:
        page = Page(driver, served.urls['A'])
        page.look('criteria')
        for n in '12': page.press(n)
        assert page.item == 'c1'
        page.leave(lambda: page.click('button[value="smooth=yes"]')) # in another order
        page.press('2')
        assert page.item == ''
        assert values(served, 'order') == dict(c0='yes', c1='no')
        assert values(served, 'smooth') == dict(c0='no', c1='yes')

def test_evidence_by_keyboard_and_by_mouse(driver, tmp_path):
    source = fact_rows(1)[0]['source']
    with serve('facts', fact_rows(2), tmp_path/'a.db', labels='fables') as served:
        page = Page(driver, served.urls['A'])
        page.script("document.querySelector('.sentence input').focus()")
        page.key(Keys.ARROW_DOWN)
        page.key(Keys.SPACE)
        page.until(lambda: values(served, 'evidence'))
        a = source.index('Bob')
        end = source.index(' Cy')
        assert values(served, 'evidence')['f0'] == [dict(start=a, end=end, quote=source[a:end])]
        # words behind an emoji, which are two units for the browser and one character here
        page.script("const t = document.querySelectorAll('.sentence')[1].lastChild, r = document.createRange(), i = "
                    "t.data.indexOf('clock'); r.setStart(t, i); r.setEnd(t, i + 5); getSelection().removeAllRanges(); "
                    "getSelection().addRange(r); document.activeElement.blur()")
        page.until(lambda: page.find('#mark-selection').is_displayed())
        page.key('m')
        page.until(lambda: len(values(served, 'evidence')['f0']) == 2)
        assert values(served, 'evidence')['f0'][1]['quote'] == 'clock'
        page.look('facts')
        driver.refresh()
        page.ready()
        assert len(page.all('[name=mark]:checked')) == 2 and page.item == 'f0'
        page.script("document.querySelector('[name=reason]').focus()")
        page.key('2 is no label here.')
        page.key(Keys.ESCAPE)
        page.press('2')
        assert page.item == 'f1' and values(served, 'label') == dict(f0='partly')
        assert values(served, 'reason')['f0'] == '2 is no label here.' and len(values(served, 'evidence')['f0']) == 2

def test_two_people_in_one_browser(driver, tmp_path):
    with serve('compare', compare_rows(3), tmp_path/'a.db', ('Ann', 'Bob')) as served:
        ann = Page(driver, served.urls['Ann'])
        first = driver.current_window_handle
        driver.switch_to.new_window('tab')
        bob = Page(driver, served.urls['Bob'])
        second = driver.current_window_handle
        for n, (window, page) in enumerate([(first, ann), (second, bob)]*2):
            driver.switch_to.window(window)
            page.press('34'[n % 2])
        assert bob.item == 'q2'
        driver.get(served.overview_url)
        bob.ready()
        assert bob.sees('Progress')
        bob.look('overview')
        driver.close()
        driver.switch_to.window(first)
        answers = served.store.answers()
    assert {(r['annotator'], r['value']) for r in answers.to_dict('records')} == {('Ann', 'both'), ('Bob', 'neither')}
    assert len(answers) == 4

def test_the_clock_stands_while_the_page_is_hidden(driver, tmp_path):
    with serve('compare', compare_rows(2), tmp_path/'a.db') as served:
        page = Page(driver, served.urls['A'])
        page.until(lambda: page.script('return tick()') > .2)
        first, shown = driver.current_window_handle, page.script('return tick()')
        driver.switch_to.new_window('tab') # the page is hidden now
        time.sleep(3)
        driver.close()
        driver.switch_to.window(first)
        assert page.script('return document.visibilityState') == 'visible'
        hidden, passed = page.script('return tick()') - shown, page.script('return performance.now()')/1000
        page.press('3')
        seconds = float(served.store.answers().seconds[0])
    assert .2 < seconds < passed - 2 and hidden < passed - shown - 2

def test_what_is_not_saved_is_said_and_sent_again(driver, tmp_path):
    with serve('compare', compare_rows(3), tmp_path/'a.db') as served:
        page = Page(driver, served.urls['A'])
        db = served.store.file.connect()
        db.execute('PRAGMA query_only = 1')
        page.key('3')
        page.until(lambda: page.all('#not-saved'))
        assert page.sees('Not saved.') and page.sees('may only be read') and page.item == 'q0'
        db.execute('PRAGMA query_only = 0')
        page.leave(lambda: page.click('#not-saved button'))
        assert page.item == 'q1' and values(served, 'choice') == dict(q0='both') and len(served.store.history()) == 1
        driver.get_log('browser')
    page.key('4') # the server is gone
    page.until(lambda: page.all('#not-saved'))
    assert page.sees('The server does not answer') and page.item == 'q1'
    driver.get_log('browser')

HOSTILE = ['<script>document.title = "broken"; alert(1)</script><img src=x onerror=alert(1)>',
           '</textarea></form><a href="javascript:alert(1)">x</a><style>* { display: none }</style>',
           'שלום \u202e abc <b>x</b>', '👩\u200d👩\u200d👧 e\u0301 \x00 \x1b[31m', '\'"><body data-item=x>']

@pytest.mark.parametrize('form', list(ROWS))
def test_hostile_texts(driver, tmp_path, form):
    def spoilt(x, text):
        if isinstance(x, dict): return {name: spoilt(own, text) for name, own in x.items()}
        return [spoilt(own, text) for own in x] if isinstance(x, list) else text if isinstance(x, str) else x
    rows = [{name: spoilt(x, text) for name, x in ROWS[form](1)[0].items()} | dict(id=f'i{n}', group='g')
            for n, text in enumerate([*HOSTILE, 'x'*1_000_000])]
    with serve(form, rows, tmp_path/'a.db') as served:
        page = Page(driver, served.urls['A'])
        for n, _ in enumerate(rows): # an alert would raise here
            driver.get(driver.current_url.split('?')[0] + f'?item=i{n}&differences=yes')
            page.ready()
            assert driver.title == f'Item {n + 1} of {len(rows)}' and page.item == f'i{n}'
            assert not page.all('main img, main script, main style, a[href^=javascript]')
            assert fits(driver) and not asked_elsewhere(driver)
        driver.get(driver.current_url.split('?')[0] + '?item=i0')
        page.ready()
        page.look(f'hostile-{form}')

def test_five_hundred_items(driver, tmp_path):
    with serve('facts', fact_rows(500), tmp_path/'a.db') as served:
        page, took = Page(driver, served.urls['A']), []
        for n in range(25):
            assert page.item == f'f{n}'
            began = time.perf_counter()
            page.press('12'[n % 2])
            took.append(time.perf_counter() - began)
        assert page.answered() == 25 and len(values(served, 'label')) == 25
    if SHOTS: print(f'answer to next item: median {sorted(took)[12]:.3f} s, longest {max(took):.3f} s')

@pytest.mark.slow
def test_in_jupyterlab_under_both_names(tmp_path):
    "A page of Lab at localhost that frames 127.0.0.1 is another site: no cookie would arrive."
    import nbformat
    from lab import Lab, needs_lab, server
    if needs_lab.args[0]: pytest.skip(needs_lab.kwargs['reason'])
    root = tmp_path/'root'
    root.mkdir()
    code = ("from factlib.apps.annotate import show\n"
            "rows = [dict(id=i, claim='Bob left.', source='Bob stayed.') for i in range(3)]\n"
            f"show('facts', rows, {str(tmp_path/'a.db')!r})")
    book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(code, id='shown')])
    book.metadata['kernelspec'] = dict(name='python3', display_name='Python 3', language='python')
    nbformat.write(book, root/'book.ipynb')
    checkout = Path(__file__).resolve().parent.parent.parent
    os.symlink(checkout/'factlib', root/'factlib')
    os.symlink(checkout/'data', root/'data')
    with server(root, tmp_path/'home') as said, browser() as driver:
        port = said['port']
        for n, name in enumerate(('127.0.0.1', 'localhost')):
            lab = Lab(driver, said | dict(url=f'http://{name}:{port}/'))
            lab.open('book.ipynb')
            lab.run_all()
            assert lab.ended() == 'yes' and not lab.errors()
            frame = WebDriverWait(driver, 60).until(lambda d: d.find_elements(By.CSS_SELECTOR, '.jp-OutputArea iframe')
                                                    )[0]
            driver.switch_to.frame(frame)
            page = Page.__new__(Page)
            page.driver = driver
            page.until(lambda: page.all('button[data-key="1"]'))
            assert page.item == str(n) # the store goes on
            page.leave(lambda: page.click('button[data-key="1"]'))
            assert page.item == str(n + 1) and page.script('return location.hostname') == name
            driver.switch_to.default_content()
            assert page.script('return location.hostname') == name
