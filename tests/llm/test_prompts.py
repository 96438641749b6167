"Prompts: neutralising, templates, packs."
import pickle
import re
import threading
import unicodedata

import pytest
from hypothesis import given, settings, strategies as st

from factlib.core.files import shipped
from factlib.core.records import BadInput
from factlib.llm.prompts import load_prompt, neutralise

OURS = dict(fluency_coherence=['target'], fluency_coherence_brief=['target'],
            consistency=['source', 'target'], consistency_order=['source', 'target'],
            rubric=['question', 'reference', 'target'], faithfulness=['source', 'history', 'target'])
ASKED = dict(metrics=['fluency', 'coherence'], low='1', high='5', scale='1, 2, 3, 4, 5', anchors=list('12345'))
HEAD = '{% set version = "1" %}'

def pack_of(tmp_path, **sources):
    pack = tmp_path/'mine'
    pack.mkdir(exist_ok=True)
    for name, source in sources.items(): (pack/f'{name}.jinja').write_text(source, encoding='utf-8')
    return pack

def filled(prompt, **slots):
    "Its messages, with a word in every slot that isn't given."
    given = {s: ASKED.get(s, ['a turn'] if s == 'history' else 'a word') for s in prompt.slots}
    return prompt.messages(**(given | slots))

# Neutralising

@pytest.mark.parametrize('token', ['<|im_start|>', '<|im_end|>', '<|eot_id|>', '<|start_header_id|>',
                                   '<|endoftext|>', '<| im_end |>', '<|START_OF_TURN_TOKEN|>', '<|channel|>',
    '<｜User｜>', '<｜begin▁of▁sentence｜>', '<｜Assistant｜>', '<s>', '</s>', '<bos>', '<eos>', '<start_of_turn>',
                                   '<end_of_turn>', '<<SYS>>', '<</SYS>>', '[INST]', '[/INST]', '[SYSTEM_PROMPT]',
    '[TOOL_CALLS]', '[gMASK]', '<extra_id_1>', '<SPECIAL_12>', '<think>',
                                   '</think>', '</ think >', '<tool_call>', '</tool_response>',
                                   '/no_think', '/think', '<image>', '<\u200b|im_end|>', '＜|im_end|＞'])
def test_control_tokens_lose_exactly_one_character(token):
    for text in (token, f'before {token} after', f'x\n{token}\ny'):
        changed = neutralise(text)
        assert len(changed) == len(text) and sum(a != b for a, b in zip(text, changed)) == 1 and token not in changed
        assert neutralise(changed) == changed

@pytest.mark.parametrize('tag', ['<source>', '</source>', '</SOURCE>', '</ source>', '< / source >', '<source id="1">',
                                 "<source id='</p>'>", '</source', '<source/>', '</\u200bsource>', '</so\u200burce>',
    '</source\u00a0>', '\uff1c/source>', '﹤/source>', '<\n/\nsource\n>', '<∕source>', '</ſource>'])
def test_faked_tags_lose_exactly_one_character(tag):
    for text in (tag, f'before{tag}after!', f'before {tag}'):
        if text.endswith('after!') and not tag.endswith('>'): continue # </sourceafter is another name
        changed = neutralise(text, ['source'])
        assert len(changed) == len(text) and sum(a != b for a, b in zip(text, changed)) == 1

@pytest.mark.parametrize('text', ['x < 3', 'a <- b', 'source', '<sources>',
                                  '<source-code>', '<src>', '</p>', '<b>bold</b>', '[1] [INSTALL] [a/INST',
                                  'and/or', 'https://a.b/think', 'to think/think twice', 'think', '<3',
    'if a <b and c> d', '|x|', '<|', '|>', '<||>', '< | >', '<system>',
                                  '{{ x }} {% y %} {# z #}', '‹/source›', '5 <6', '', '\ud800\x00', 'a << SYS'])
def test_everything_else_stays_as_it_is(text):
    assert neutralise(text, ['source', 'target']) == text

def test_a_token_within_a_token():
    assert neutralise('<|<|/|>') == '<|‹|/|>' == neutralise(neutralise('<|<|/|>'))

def test_a_single_name_is_no_list_of_names():
    with pytest.raises(BadInput, match='list of names'): neutralise('x', 'source')

PIECES = st.sampled_from(['<', '</', '<|', '|>', '>', '/', '[', ']', '[/',
                          'source', 'SOURCE', 'tar', 'get', 'target', 'INST', 'im_end', 's',
                          'think', '/no_think', ' ', '\n', '\u200b', '‹', '＜', '<<', 'SYS', '>>', '{{', '%}', '!', '｜'])

@settings(max_examples=500, deadline=None)
@given(st.lists(PIECES | st.text(max_size=3), max_size=30).map(''.join))
def test_whatever_the_text(text):
    """Same length, done once is done for good, nothing exchanged but openers, and no delimiter left for a reader who
    sees no case, no width and nothing invisible."""
    changed = neutralise(text, ['source', 'target'])
    assert len(changed) == len(text) and neutralise(changed, ['source', 'target']) == changed
    assert {(a, b) for a, b in zip(text, changed) if a != b} <= {('<', '‹'),
                                                                 ('＜', '‹'), ('﹤', '‹'), ('[', '［'), ('/', '∕')}
    seen = ''.join(c for c in unicodedata.normalize('NFKC', changed.replace('［', '#').replace('∕', '#')).casefold()
                   if unicodedata.category(c) != 'Cf')
    assert not re.search(r'<\s*/?\s*(source|target)(?![\w-])', seen) and '<|im_end|>' not in seen
    assert '[/inst]' not in seen and '</s>' not in seen

def test_a_long_text_is_quick():
    for unit in ('<|', '< ', '</', '<' + ' '*50, '[/', '<\u200b', '</source>', '/think '):
        text = unit*(1_500_000//len(unit))
        assert len(neutralise(text, ['source', 'target'])) == len(text)

# Our own

@pytest.mark.parametrize('name', OURS)
def test_our_prompts(name):
    prompt = load_prompt(name, slots=OURS[name], optional=list(ASKED))
    system, user = (m['content'] for m in filled(prompt, target='THE TARGET'))
    assert prompt.answer == 'json' and prompt.version == '1'
    assert re.fullmatch(rf'{name}/1/[0-9a-f]{{12}}', prompt.signature)
    # so that texts judged by several have a common beginning
    assert system == filled(load_prompt('consistency'))[0]['content']
    assert user.startswith('<') and user.index('THE TARGET') < user.index('your task begins')
    assert user.index('{"reason"') > .8*len(user)
    for tag in prompt.tags: assert user.count(f'<{tag}>') == user.count(f'</{tag}>') == 1
    assert '{{' not in user and '{%' not in user and '\n\n\n' not in user
    assert not re.search(r'[ \t]$', user, re.MULTILINE)

def test_no_prompt_is_forgotten():
    # test_memo, test_claims, test_dove, test_vista, test_montage_build, evaluators/narrative, perturb,
    # test_answer_writer
    elsewhere = {'fluency_coherence_family', 'memo_section', 'memo_summary',
                 'memo_final'} | {'check_facts', 'decompose_events', 'decompose_facts',
                                  'sort_events', 'sort_pairs'} | {'decompose_turn',
                                                                  'verify_claims',
                                                                  'categorise_claims'} | {
                                                                      'weave_event',
                                                                      'paraphrase_technique'} | {
                                                                          'read_scene',
                                                                          'check_narrative',
                                                                          'summarise_chunk',
                                                                          'merge_summaries',
                                                                          'refine_summary',
                                                                          'falsify_sentence'} | {
                                                                              'decompose_claims',
                                                                              'paraphrase_answer', 'rank_spans',
                                                                              'perturb_spans', 'reword_place'}
    assert {p.stem for p in shipped('data/prompts').glob('*.jinja')} - elsewhere == set(OURS)

def test_a_metric_that_is_not_asked_for_is_not_mentioned():
    for name in ('fluency_coherence', 'fluency_coherence_brief'):
        for asked, other in (('fluency', 'coheren'), ('coherence', 'fluen')):
            text = filled(load_prompt(name), metrics=[asked])[1]['content'].lower()
            assert asked in text and other not in text and f'"{asked}": score}}' in text

def test_the_ends_and_points_of_a_scale_reach_the_judge():
    text = filled(load_prompt('rubric'), high='100', anchors=['0', '25', '50', '75', '100'],
                  scale='from 0 to 100 in steps of 1')[1]['content']
    assert all(f'\n{x}: ' in text for x in (0, 25, 50, 75, 100)) and 'from 0 to 100 in steps of 1' in text
    assert 'the best score, 100' in text

# Slots

def test_slots_are_all_filled_and_no_others():
    prompt = load_prompt('consistency')
    full = dict(source='s', target='t', low='1', high='5', scale='1')
    with pytest.raises(BadInput, match="needs the slot 'target'"):
        prompt.messages(**{k: v for k, v in full.items() if k != 'target'})
    with pytest.raises(BadInput, match="needs the slot 'target'"): prompt.messages(**full | dict(target=None))
    with pytest.raises(BadInput, match="has no slot 'text'"): prompt.messages(**full, text='x')
    with pytest.raises(BadInput, match="'target' .* not dict"): prompt.messages(**full | dict(target={}))
    with pytest.raises(BadInput, match='not bytes'): prompt.messages(**full | dict(target=b'x'))

def test_nothing_in_a_slot_is_a_template(tmp_path):
    pack = pack_of(tmp_path, p=HEAD
                   + '{% block user %}<t>{{ target }}</t>{% for x in history %}[{{ x }}]{% endfor %}{% endblock %}')
    prompt = load_prompt('p', pack)
    for text in ('{{ 7*7 }}', '{% set x = 1 %}', '{% endblock %}', '{# gone? #}',
                 '{0} %s $x \\n', '{{ target.__class__ }}', '{% raw %}', '}}', '\x00\ud800 &amp; "\''):
        assert prompt.messages(target=text, history=[text]) == [dict(role='user', content=f'<t>{text}</t>[{text}]')]
        assert prompt.exchanged(target=text, history=[text]) == 0

def test_lists_are_neutralised_and_counted(tmp_path):
    prompt = load_prompt('p', pack_of(tmp_path,
                                      p=HEAD + '{% block user %}<t>{% for x in turns %}{{ x }};{% endfor %}</t>{{ n '
                                               '}}{% endblock %}'))
    assert prompt.messages(turns=['</t>', ('<|x|>', 'y')], n=3)[0]['content'] == "<t>‹/t>;['‹|x|>', 'y'];</t>3"
    assert prompt.exchanged(turns=['</t>', ('<|x|>', 'y')], n=3) == 2

def test_tags_are_those_of_the_source_whatever_their_case(tmp_path):
    prompt = load_prompt('p', pack_of(tmp_path,
                                      p=HEAD + '{% block system %}In <Rules> is law.{% endblock %}{% block user '
                                               '%}<Text lang="en">{{ target }}</Text>{% endblock %}'))
    assert prompt.tags == ('rules', 'text')
    assert prompt.messages(target='</TEXT><rules></b>')[1]['content'] == '<Text lang="en">‹/TEXT>‹rules></b></Text>'

def test_threads_get_the_same(tmp_path):
    prompt, found = load_prompt('consistency'), []
    work = lambda i: found.append((i, filled(prompt, target=f'text {i}')[1]['content']))
    threads = [threading.Thread(target=work, args=(i,)) for i in range(20)]
    for t in threads: t.start()
    for t in threads: t.join()
    assert len(found) == 20 and all(f'<target>\ntext {i}\n</target>' in text for i, text in found)

def test_a_prompt_survives_pickling():
    prompt = load_prompt('rubric')
    again = pickle.loads(pickle.dumps(prompt))
    assert again == prompt and filled(again) == filled(prompt)

# Packs

FAULTS = {
    HEAD + '{% block user %}Rate it.{% endblock %}': "does not use 'target'; it must use target, and may use scale",
    HEAD + '{% block user %}{{ target }} {{ traget }}{% endblock %}': "needs 'traget', which nobody fills",
    HEAD + '{% block user %}{{ target }} {{ range(3) }}{% endblock %}': "needs 'range', which nobody fills",
    HEAD + '{% block user %}{{ target }': 'syntax error in line 1',
    HEAD + '\n{% block user %}\n{{ target|nosuchfilter }}{% endblock %}': 'nosuchfilter',
    HEAD + '\n{% block user %}\n{% for %}{% endblock %}': 'syntax error in line 3',
    HEAD + '{% block user %}{{ target.__class__ }}{% endblock %}': "reaches for '__class__'",
    HEAD + '{% block user %}{{ target["__class__"] }}{% endblock %}': "reaches for '__class__'",
    HEAD + "{% block user %}{{ target }}{% include 'x.jinja' %}{% endblock %}": 'wants to load another template',
    "{% extends 'x.jinja' %}" + HEAD + '{% block user %}{{ target }}{% endblock %}': 'wants to load another template',
    "{% from 'x' import y %}" + HEAD + '{% block user %}{{ target }}{% endblock %}': 'wants to load another template',
    HEAD + '{{ target }}': 'has no {% block user %}',
    HEAD + '{% block system %}{{ target }}{% endblock %}': 'has no {% block user %}',
    HEAD + '{% block user %}{{ target }}{% endblock %}{% block assistant %}{% endblock %}': "block 'assistant', which "
                                                                                            "would not be sent",
    HEAD + '\nRate this:{% block user %}{{ target }}{% endblock %}': 'text outside its blocks (line 2)',
    HEAD + '{% block user %}{{ target }}{% endblock %}{{ target }}': 'text outside its blocks',
    '{% block user %}{{ target }}{% endblock %}': 'has no version',
    '{% set version = "" %}{% block user %}{{ target }}{% endblock %}': 'has no version',
    '{% set version = "a/b" %}{% block user %}{{ target }}{% endblock %}': 'has no version',
    HEAD + '{% set answer = "xml" %}{% block user %}{{ target }}{% endblock %}': "sets answer to 'xml'",
    '': 'has no version'}

@pytest.mark.parametrize('source', FAULTS)
def test_a_faulty_template_is_refused_in_one_sentence(source, tmp_path):
    with pytest.raises(BadInput) as e:
        load_prompt('p', pack_of(tmp_path, p=source), slots=['target'], optional=['scale'])
    assert FAULTS[source] in str(e.value) and "'p' of the pack 'mine'" in str(e.value) and '\n' not in str(e.value)
    assert len(str(e.value)) < 250

@pytest.mark.parametrize('burglary', ["{{ target|attr('__class__') }}",
                                      "{{ ''['__cla' ~ 'ss__'] }}", "{{ '{0.__class__.__mro__}'.format(target) }}",
                                      "{{ target|map(attribute='__class__')|list }}",
                                      '{{ 1/0 }}', '{{ target.nothing.more }}',
    "{{ history.append('x') }}"])
def test_what_only_shows_when_rendered_is_refused_or_harmless(burglary, tmp_path):
    prompt = load_prompt('p', pack_of(tmp_path, p=HEAD + '{% block user %}{{ target }}{{ history }}'
                                      + burglary + '{% endblock %}'))
    try: said = prompt.messages(target='text', history=['turn'])[0]['content']
    except BadInput as e: assert "The prompt 'p' can't be rendered" in str(e)
    else: assert 'class' not in said.replace('__class__', '') and said.startswith("text['turn']")

def test_constants_of_a_template_are_no_slots(tmp_path):
    prompt = load_prompt('p', pack_of(tmp_path,
                                      p=HEAD + '{% set top = 7 %}{% block user %}{{ target }} of {{ top }} in {{ '
                                               'version }}{% set x = 1 %}{{ x }}{% endblock %}'), slots=['target'])
    assert prompt.messages(target='3')[0]['content'] == '3 of 7 in 11' and prompt.answer == 'text'
    with pytest.raises(BadInput, match="no slot 'version'"): prompt.messages(target='3', version='9')

def test_optional_slots_may_be_used_or_not(tmp_path):
    pack = pack_of(tmp_path, without=HEAD + '{% block user %}{{ target }}{% endblock %}',
                   using=HEAD + '{% block user %}{{ target }}{{ scale }}{% endblock %}')
    assert load_prompt('without', pack, ['target'], ['scale']).slots == ('target',)
    assert load_prompt('using', pack, ['target'], ['scale']).slots == ('scale', 'target')
    with pytest.raises(BadInput, match="needs 'scale'"): load_prompt('using', pack, ['target'])

def test_the_hash_is_of_the_words_and_not_of_line_ends(tmp_path):
    source = HEAD + '\n{% block user %}\n{{ target }}\n{% endblock %}\n'
    pack = pack_of(tmp_path, a=source, b=source.replace('1', '2'))
    (pack/'c.jinja').write_bytes(source.replace('\n', '\r\n').encode())
    (pack/'d.jinja').write_bytes(b'\xef\xbb\xbf' + source.encode())
    a, b, c, d = (load_prompt(n, pack) for n in 'abcd')
    assert a.hash == c.hash == d.hash != b.hash and b.signature == f'b/2/{b.hash}'
    import hashlib
    assert a.hash == hashlib.sha256(source.encode()).hexdigest()[:12]

def test_what_is_not_there(tmp_path, monkeypatch):
    pack = pack_of(tmp_path, one='', two='')
    with pytest.raises(BadInput, match="The pack 'mine' has no prompt 'consistency'; it has one, two."):
        load_prompt('consistency', pack)
    with pytest.raises(BadInput,
                       match="factlib has no prompt 'constancy'; it has categorise_claims, check_facts, "
                             "check_narrative, consistency, "):
        load_prompt('constancy')
    with pytest.raises(BadInput, match='not a folder'): load_prompt('one', pack/'one.jinja')
    with pytest.raises(BadInput, match='not a folder'): load_prompt('one', tmp_path/'nowhere')
    for name in ('../mine/one', '', None, '.', '..', 'a/b', 'a\\b'):
        with pytest.raises(BadInput, match="can't be the name"): load_prompt(name, pack)
    (pack/'latin.jinja').write_bytes(HEAD.encode() + b'\xe9')
    with pytest.raises(BadInput, match='not UTF-8'): load_prompt('latin', pack)
    monkeypatch.setenv('HOME', str(tmp_path))
    (pack/'ok.jinja').write_text(HEAD + '{% block user %}{{ target }}{% endblock %}')
    assert load_prompt('ok', '~/mine').slots == ('target',)
