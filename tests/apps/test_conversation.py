"The page of a conversation: whatever is in it is shown as text, and everything that was judged is there."
from html.parser import HTMLParser

import pandas as pd
import pytest
from browser import browser, needs_browser

from factlib.apps.conversation import SIGNS, conversation_html
from factlib.apps.server import asks_elsewhere, visible
from factlib.core.records import Absence, BadInput, Example, Judgement
from factlib.evaluators.base import judgements_frame

CLOCK = 'The clock of the tower was built in 1764. Its bell weighs 900 kg.'

class Page(HTMLParser):
    "Tags, attributes and text of a page; unbalanced tags are an error."
    def __init__(self, html):
        super().__init__()
        self.tags, self.attributes, self.words, self.open = [], [], '', []
        self.feed(html)
        self.close()
        assert not self.open
    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        self.attributes += attributes
        if tag not in ('meta', 'img', 'br'): self.open.append(tag)
    def handle_endtag(self, tag): assert self.open.pop() == tag, tag
    def handle_data(self, data): self.words += data
    def all(self, name): return [value for key, value in self.attributes if key == name]

def turn(i, target, history=(), **more):
    return Example(f'tower/{i}', source=CLOCK, target=target, history=tuple(history),
                   group='tower', meta=dict(conversation='tower', turn=i) | more)
def claim(id, text, category, **more):
    return dict(id=id, text=text, category=category, reason=None, presupposed=False, by=None, against=None) | more

FIRST = turn(1, 'It was built in 1764.', [dict(speaker='visitor', text='How old is the clock?')],
             knowledge=['The guide is Ida.'])
SECOND = turn(3, 'It is of 1802, and I am not sure.',
              [dict(speaker='visitor', text='How old is the clock?'),
               dict(speaker='assistant', text=FIRST.target), dict(speaker='visitor', text='Sure?')])
ONE = Judgement(FIRST.id, 'vista', value=1, parts=dict(drift=0),
                evidence=dict(claims=[claim('C1', 'The clock was built in 1764.', 'verified', by='reference')],
joined=[dict(id='B2', text='The clock was built in 1764.', category='verified', turn=1)], memory=['B1']))
TWO = Judgement(SECOND.id, 'vista', value=0, parts=dict(drift=1),
                evidence=dict(claims=[claim('C1', 'The clock is of 1802.',
                                            'contradicted', against='B2', reason='1764.'),
claim('C2', 'Ida is not sure.', 'abstention', by='memory', items=['B1']),
                                      claim('C3', 'Lost.', None, absence='malformed')],
                              joined=[], memory=['B1', 'B2'], dropped=['B1'], unknown_before=['C9']))

def test_everything_is_there_in_order():
    html = conversation_html([SECOND, FIRST], [TWO, ONE])
    page = Page(html)
    assert [page.words.index(text) for text in ('How old is', 'It was built', 'Sure?', 'It is of 1802')] == sorted(
        page.words.index(text) for text in ('How old is', 'It was built', 'Sure?', 'It is of 1802'))
    # a history that comes twice is one
    assert page.tags.count('article') == 4 and page.words.count('How old is the clock?') == 1
    for text in ('0 of 3 claims verified', '1 of 1 claims verified', 'Drift: 1 claim contradicts',
                 'No verdict: malformed', '1 claim of earlier turns had no verdict',
                 'B2: The clock was built in 1764.', 'Left out for want of room', 'B1: The guide is Ida.'):
        assert text in page.words, text
    ids, links = page.all('id'), [h[1:] for h in page.all('href')]
    assert len(set(ids)) == len(ids) and set(links) <= set(ids) and 'c0-m0' in links and 'c0-k0' in links

def test_categories_are_words_and_marks_too():
    page = Page(conversation_html([FIRST],
                                  [Judgement(FIRST.id, 'vista', value=.2,
                                             evidence=dict(claims=[claim(f'C{i}', 'x', kind)
                                                                   for i, kind in enumerate([*SIGNS][:5])]))]))
    # the legend, and the claim
    for mark, word, _ in list(SIGNS.values())[:5]: assert page.words.count(f'{mark} {word}') == 2
    assert len({mark for mark, *_ in SIGNS.values()}) == len(SIGNS)
    assert 'new kind' in conversation_html([FIRST],
                                           [Judgement(FIRST.id, 'v', value=0,
                                                      evidence=dict(claims=[claim('C1', 'x', 'new kind')]))])

HOSTILE = ('<script>alert(1)</script></textarea></style>"\' onload=x {{ 7*7 }} {% raw %} &lt; <img src=x '
           'onerror=alert(1)> <!-- \x00\x1b[2J\u202e\ud800')

def test_hostile_texts_are_text_everywhere():
    name = HOSTILE.rstrip('\ud800') # an example with half a character in its id is refused
    example = Example(name, source=HOSTILE, target=HOSTILE, truth=HOSTILE,
                      group=name, history=(HOSTILE, dict(speaker=HOSTILE, text=HOSTILE, reference=HOSTILE)),
                      meta=dict(knowledge=[HOSTILE], conversation=HOSTILE, turn=2))
    claims = [claim(HOSTILE, HOSTILE, HOSTILE, reason=HOSTILE, by=HOSTILE, against=HOSTILE,
                    items=[HOSTILE], absence=HOSTILE), claim('C2', HOSTILE, 'contradicted', against=HOSTILE)]
    evidence = dict(claims=claims, joined=[dict(id=HOSTILE, text=HOSTILE, category=HOSTILE)],
                    memory=[HOSTILE], dropped=[dict(id=HOSTILE)], unknown_before=[HOSTILE])
    html = conversation_html([example], [Judgement(name, HOSTILE, value=1, evidence=evidence)], title=HOSTILE)
    page = Page(html)
    assert asks_elsewhere(html) == [] and not {'script', 'img', 'textarea'} & set(page.tags)
    assert not [k for k, _ in page.attributes if k.startswith('on')]
    assert page.words.count('{{ 7*7 }}') > 15 and '49' not in page.words and visible(HOSTILE) in page.words
    assert '\x00' not in html and html.encode('utf-8') and page.tags.count('style') == 1

def test_it_opens_alone():
    html = conversation_html([FIRST], [ONE])
    assert asks_elsewhere(html) == [] and "default-src 'none'" in html and html.startswith('<!doctype html>')
    assert 'prefers-color-scheme: dark' in html

def test_every_text_has_its_own_direction():
    html = conversation_html([turn(0, 'שלום')],
                             [Judgement('tower/0', 'v', value=1,
                                        evidence=dict(claims=[claim('C1', 'שלום', 'verified')]))])
    assert html.count('<div class="text" dir="auto">שלום</div>') == 2

def test_long_texts_are_folded_and_whole():
    long = 'w ' * 500_000
    html = conversation_html([turn(0, long)],
                             [Judgement('tower/0', 'v', value=1,
                                        evidence=dict(claims=[claim('C1', long, 'verified')],
                                                      joined=[dict(id='B1', text=long, category='verified')]))])
    assert html.count('<details class="fold">') == 3 and html.count(long) == 3 and 3 <= len(html)/len(long) < 3.1
    Page(html)

def test_two_hundred_turns_grow_linearly():
    def page(n):
        history, examples, judgements = [], [], []
        for i in range(n):
            examples.append(turn(i, f'Fact {i}.', history))
            joined = [dict(id=f'B{i + 1}', text=f'Fact {i}.', category='verified')]
            judgements.append(Judgement(f'tower/{i}', 'v', value=1,
                                        evidence=dict(claims=[claim('C1', f'Fact {i}.', 'verified')], joined=joined)))
            history.append(f'Fact {i}.')
        return conversation_html(examples, judgements)
    assert len(page(200)) < 2.1*len(page(100)) and Page(page(200)).tags.count('article') == 200

def test_alternative_answers_and_unjudged_turns():
    twin = Example('tower/1b', source=CLOCK, target='It is old.', history=FIRST.history,
                   group='tower', meta=dict(conversation='tower', turn=1))
    page = Page(conversation_html([FIRST, twin], [ONE]))
    assert page.words.count('another answer at this place') == 1 and page.words.count('not judged') == 1
    assert page.tags.count('article') == 3

def test_absent_verdicts_several_evaluators_and_frames():
    judgements = [Judgement(FIRST.id, 'vista', absence=Absence.refused), Judgement(FIRST.id, 'faithfulness', value=1),
                  Judgement(SECOND.id, 'vista', value=.5, parts=dict(drift=Absence.malformed))]
    html = conversation_html([FIRST, SECOND], judgements)
    assert 'no verdict on the turn (<bdi>refused</bdi>)' in html and 'faithfulness' in html and 'Drift:' not in html
    frame = pd.concat([judgements_frame([ONE, TWO], [FIRST, SECOND])])
    assert conversation_html([FIRST, SECOND], frame) == conversation_html([FIRST, SECOND], [ONE, TWO])

def test_ids_of_what_was_known_leave_room():
    "What was known from the start is B1 if memory goes on with B2; if that begins with B1, it has no id."
    joined = lambda id: Judgement(FIRST.id, 'vista', value=1, evidence=dict(
        claims=[claim('C1', 'x', 'verified', items=[id], support=.25)],
        joined=[dict(id=id, text='It is of 1764.', category='verified')]))
    beside, instead = (Page(conversation_html([FIRST], [joined(id)])) for id in ('B2', 'B1'))
    assert 'B1 The guide is Ida.' in ' '.join(beside.words.split()) and 'B2: It is of 1764.' in beside.words
    assert 'The guide is Ida.' in instead.words and 'B1 The guide' not in ' '.join(instead.words.split())
    assert 'B1: It is of 1764.' in instead.words and 'support 0.25' in instead.words

def test_counts_come_as_numbers_or_lists():
    nothing = 'of earlier turns had no verdict', 'not taken apart'
    for unknown, shown in ((2, ['2 claims of earlier']), (['C1'], ['1 claim of earlier']), (None, []), ('refused', []),
                           ({}, []), (dict(turns=1, claims=0), ['1 earlier turn was not taken apart']), ({'turns': {}}, []),
                           (dict(turns=2, claims=3), ['3 claims of earlier', '2 earlier turns were not taken apart'])):
        judged = Judgement(FIRST.id, 'vista', value=1, evidence=dict(unknown_before=unknown))
        words = Page(conversation_html([FIRST], [judged])).words
        assert all(part in words for part in shown) and sum(part in words for part in nothing) == len(shown)

def test_conversations_apart():
    html = conversation_html([FIRST, Example('b', target='x'), Example('c', target='y', group='b')])
    assert html.count('<section') == 2 and html.count('<nav') == 1 and Page(html).tags.count('article') == 4

def test_what_is_refused():
    with pytest.raises(BadInput, match='not among the examples'): conversation_html([FIRST], [TWO])
    with pytest.raises(BadInput, match='two judgements'): conversation_html([FIRST], [ONE, ONE])
    with pytest.raises(BadInput, match='no examples'): conversation_html([])
    with pytest.raises(BadInput, match='message of a history'): conversation_html([turn(1, 'x', [7])])
    with pytest.raises(BadInput, match='whole number'): conversation_html([turn('first', 'x')])

@pytest.mark.slow
@needs_browser
def test_in_a_browser(tmp_path):
    """Nothing runs, nothing is asked of the network, nothing is wider than the window; right-to-left stands right; keys
    reach and open what is folded."""
    from selenium.webdriver.common.keys import Keys
    long = turn(5, 'word '*1000, [HOSTILE.replace('\ud800', ''), 'שלום'])
    (tmp_path/'page.html').write_text(conversation_html([FIRST, SECOND, long, turn(7, 'Unbroken'*200)], [ONE, TWO]),
                                      encoding='utf-8')
    with browser() as driver:
        for width in (1280, 800):
            driver.set_window_size(width, 1000)
            driver.get((tmp_path/'page.html').as_uri()) # an alert would raise here
            assert driver.execute_script('return document.documentElement.scrollWidth <= window.innerWidth')
        assert driver.execute_script("return performance.getEntriesByType('resource').length") == 0
        assert not driver.get_log('browser')
        right = ("const t = [...document.querySelectorAll('.text')].find(e => e.textContent === 'שלום'); const r = "
                 "document.createRange(); r.selectNodeContents(t); return r.getBoundingClientRect().right - "
                 "t.getBoundingClientRect().right")
        assert abs(driver.execute_script(right)) < 2
        body, reached = driver.find_element('tag name', 'body'), set()
        for _ in range(60):
            driver.switch_to.active_element.send_keys(Keys.TAB)
            active = driver.switch_to.active_element
            reached.add(active.get_attribute('class') or active.tag_name)
            if active.tag_name == 'summary' and '5000 characters' in active.text: break
        assert {'skip', 'summary', 'a'} <= reached and '5000 characters' in active.text
        active.send_keys(Keys.ENTER)
        assert driver.execute_script("return document.querySelector('details.fold').open")
        assert body.value_of_css_property('color') != body.value_of_css_property('background-color')
