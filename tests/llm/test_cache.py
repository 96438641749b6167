"The cache: keys, rows, damage, crowds of processes, kills, exports."
import contextlib
import hashlib
import json
import math
import multiprocessing
import os
import pickle
import random
import shutil
import signal
import sqlite3
import stat
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import factlib.llm.cache as room
from factlib.core.records import BadInput
from factlib.llm.cache import Cache, Merged, default_cache, request_key

ROOT = Path(__file__).resolve().parents[2]

def asked(i=0, **fields):
    return {'endpoint': 'ours', 'model': 'm', 'messages': [{'role': 'user', 'content': f'Question {i}'}],
            'repeat': 0} | fields

def fill(cache, n, text='Answer {}'):
    "n rows; returns key -> answer."
    kept = {}
    for i in range(n):
        kept[request_key(asked(i))] = cache.put(request_key(asked(i)),
                                                asked(i), {'text': text.format(i), 'finish_reason': 'stop'})
    return kept

def sql(cache, statement, *values):
    "Something done to the file behind the cache's back."
    with contextlib.closing(sqlite3.connect(cache.path, timeout=60)) as db, db:
        return db.execute(statement, values).fetchall()

def sentence(error):
    "The one sentence of a `BadInput`."
    text = str(error.value)
    assert text.endswith('.') and '\n' not in text, text
    return text

# ---- keys

def test_the_key_is_the_hash_of_canonical_json():
    text = ('{"messages":[{"content":"Größe '
            '\\"x\\"\\n","role":"user"}],"model":"m","stop":null,"temperature":0,"top_p":0.5}')
    request = {'top_p': .5, 'temperature': 0.0, 'stop': None, 'model': 'm',
               'messages': ({'role': 'user', 'content': 'Größe "x"\n'},)}
    assert request_key(request) == hashlib.sha256(text.encode()).hexdigest()

SAME = [
    ({'t': 1}, {'t': 1.0}, True), ({'t': 0}, {'t': -0.0}, True), ({'t': 10**20}, {'t': 1e20}, True),
    ({'t': True}, {'t': 1}, False), ({'t': False}, {'t': 0}, False),
    ({'t': None}, {}, False), ({'t': '1'}, {'t': 1}, False), ({'t': [1, 2]}, {'t': (1, 2)}, True),
    ({'t': [1, 2]}, {'t': [2, 1]}, False), ({'t': []}, {'t': {}}, False), ({'t': ''}, {'t': None}, False),
    ({'a': {'x': 1, 'y': 2}}, {'a': {'y': 2, 'x': 1}}, True), ({'t': 'a\u0301'}, {'t': 'á'}, False),
    ({'t': '\ud83d\ude00'}, {'t': '😀'}, True), ({'t': '\ud83d'}, {'t': '\ude00'}, False),
    ({'t': '\ud83d'}, {'t': '\\ud83d'}, False), ({'t': 'a b'}, {'t': 'a  b'}, False),
    ({'t': 0.1}, {'t': 1e-1}, True), ({'t': 0.1}, {'t': 0.10000000000000002}, False)]

@pytest.mark.parametrize('a, b, same', SAME, ids=range(len(SAME)))
def test_which_requests_are_the_same(a, b, same): assert (request_key(a) == request_key(b)) == same

NOT_JSON = [math.nan, math.inf, -math.inf, b'bytes', {1, 2}, object(),
            1j, {1: 'a'}, {None: 'a'}, {'\ud83d': 1}, 10**5000, np.int64(3)]

@pytest.mark.parametrize('value', NOT_JSON, ids=range(len(NOT_JSON)))
def test_what_json_cannot_hold_is_refused(value, tmp_path):
    for request in ({'x': value}, {'x': [{'y': value}]}):
        with pytest.raises(BadInput) as e: request_key(request)
        sentence(e)
    with pytest.raises(BadInput): Cache(tmp_path).put(request_key(asked()), asked(), {'text': value})
    for request in (None, [], 'text', value):
        if not isinstance(request, dict):
            with pytest.raises(BadInput): request_key(request)

def test_a_request_that_contains_itself_is_refused():
    loop = {}
    loop['self'] = loop
    deep = {}
    for _ in range(100_000): deep = {'a': deep}
    for request in (loop, deep):
        with pytest.raises(BadInput, match='nested too deeply'): request_key(request)
    while deep: deep = deep.pop('a') # or freeing it would recurse

def typed(x):
    "What a JSON value means: equal for values that are the same request."
    if isinstance(x, bool) or x is None: return repr(x)
    if isinstance(x, (int, float)): return 'number', Fraction(x)
    if isinstance(x, str): return 'text', x
    if isinstance(x, dict): return 'dict', tuple(sorted((k, typed(v)) for k, v in x.items()))
    return 'list', tuple(map(typed, x))

ANY_TEXT = st.text(st.characters(), max_size=20) | st.text(st.sampled_from('\ud83d\ude00\x00"\\\n\t{}%é漢'),
                                                           max_size=150)
NUMBERS = st.integers() | st.floats(allow_nan=False, allow_infinity=False)
def values(text):
    return st.recursive(st.none() | st.booleans() | NUMBERS | text,
                        lambda inner: st.lists(inner, max_size=4)
                        | st.dictionaries(st.text(max_size=8), inner, max_size=4), max_leaves=12)
# Two characters at most behind the f, since hypothesis tries words of the code such as APIKEY, and a field of that name is
# refused for a secret.
NAMES = st.text(max_size=2).map(lambda name: 'f' + name)
REQUESTS = st.dictionaries(NAMES, values(ANY_TEXT), max_size=5)
SMALL = st.recursive(st.sampled_from([None, True, False, 0, 1, 0.0, 1.0, -0.0, '', '0', 'a']),
                     lambda inner: st.lists(inner, max_size=2)
                     | st.dictionaries(st.sampled_from('ab'), inner, max_size=2), max_leaves=4)

@settings(max_examples=200, deadline=None)
@given(a=SMALL, b=SMALL)
def test_keys_are_equal_exactly_when_the_meaning_is(a, b):
    assert (request_key({'x': a}) == request_key({'x': b})) == (typed(a) == typed(b))

@settings(max_examples=50, deadline=None)
@given(request=st.dictionaries(NAMES, values(st.text(max_size=300)), max_size=5))
def test_canonical_text_is_that_of_the_json_module(request):
    def whole(x):
        if isinstance(x, float) and x.is_integer(): return int(x)
        if isinstance(x, dict): return {k: whole(v) for k, v in x.items()}
        return [whole(v) for v in x] if isinstance(x, list) else x
    text = json.dumps(whole(request), sort_keys=True, separators=(',', ':'), ensure_ascii=False).encode()
    assert request_key(request) == hashlib.sha256(text).hexdigest()

@settings(max_examples=100, deadline=None)
@given(request=REQUESTS)
def test_the_key_survives_json_and_any_order(request):
    travelled = json.loads(json.dumps(request)) # as a server or a file would have it
    assert request_key(travelled) == request_key(request) == request_key(dict(reversed(request.items())))

# ---- secrets

SECRET = 'sk-do-not-keep-me'

@pytest.mark.parametrize('fields',
                         [{name: SECRET} for name in ('api_key', 'apiKey',
                                                      'API-KEY', 'openai_api_key',
                                                      'Authorization', 'authorisation', 'auth', 'proxy_auth',
                                                      'password', 'passwd', 'secret', 'bearer', 'access_token',
                                                       'headers', 'extra_headers',
                                                      'default_headers', 'Cookie', 'credentials')]
                         + [{'extra_body': {'api_key': SECRET}}, {'extra_body': {'extra-headers': {'x': SECRET}}}]
                         + [{'endpoint': f'https://{rest}'}
                            for rest in (f'me:{SECRET}@example.org/v1',
                                         f'{SECRET}@example.org', f'example.org/v1?key={SECRET}',
                                         f'example.org/v1?version=1&access_token={SECRET}', f'[{SECRET}?@')])
def test_secrets_are_refused_and_not_repeated(fields, tmp_path):
    cache = Cache(tmp_path)
    for act in (lambda: request_key(asked(**fields)), lambda: cache.put('0'*64, asked(**fields), {'text': 'a'})):
        with pytest.raises(BadInput) as e: act()
        assert SECRET not in sentence(e)
    cache.close()
    assert not any(SECRET.encode() in file.read_bytes() for file in tmp_path.iterdir())

def test_what_only_looks_like_a_secret_is_kept(tmp_path):
    request = asked(max_tokens=5, author='x', endpoint='https://example.org/v1?api-version=2025-01-01',
                    seed=1, logprobs=True, top_logprobs=3,
                    messages=[{'role': 'user', 'content': 'What is your api_key? password: secret https://a:b@c'}],
                    schema={'type': 'object', 'properties': {'password': {'type': 'string'}}})
    assert Cache(tmp_path).put(request_key(request), request, {'text': 'No.'}) == {'text': 'No.'}

def test_the_file_has_no_place_for_more_than_requests_and_answers(tmp_path):
    cache = Cache(tmp_path)
    fill(cache, 3)
    assert sql(cache, 'SELECT name FROM sqlite_master WHERE name NOT LIKE "sqlite_%"') == [('replies',)]
    assert [row[1] for row in sql(cache, 'PRAGMA table_info(replies)')] == ['key', 'answer', 'checksum', 'request']

# ---- rows

def test_rows(tmp_path):
    cache = Cache(tmp_path/'a'/'b'/'c.sqlite')
    assert cache and len(cache) == 0 and list(cache) == [] and cache.path == tmp_path/'a'/'b'/'c.sqlite'
    assert not cache.read_only
    kept = fill(cache, 20)
    assert len(cache) == 20 and all(cache.get(k) == a and k in cache for k, a in kept.items())
    assert cache.get('0'*64) is None and '0'*64 not in cache and cache.corrupt == 0
    rows = list(cache)
    assert [k for k, _, _ in rows] == sorted(kept) and all(request_key(r) == k and a == kept[k] for k, r, a in rows)
    cache.close()
    assert sorted(p.name for p in cache.path.parent.iterdir()) == ['c.sqlite'] # SQLite's helpers are gone
    assert len(cache) == 20 # open again

def test_the_first_answer_stands_unless_replaced(tmp_path):
    with Cache(tmp_path) as cache:
        key = request_key(asked())
        assert cache.put(key, asked(), {'text': 'one'}) == {'text': 'one'}
        assert cache.put(key, asked(), {'text': 'two'}) == {'text': 'one'} == cache.get(key)
        assert cache.put(key, asked(), {'text': 'two'}, replace=True) == {'text': 'two'} == cache.get(key)
        assert cache.put(key, asked(), {'text': 'three'}) == {'text': 'two'} and len(cache) == 1

def test_put_gives_what_get_will_give(tmp_path):
    cache, key = Cache(tmp_path), request_key(asked())
    answer = cache.put(key, asked(), {'logprobs': ({'token': 'a', 'logprob': -0.0, 'n': 1.0},), 'text': '\ud83d\ude00'})
    assert answer == cache.get(key) == {'logprobs': [{'token': 'a', 'logprob': 0.0, 'n': 1.0}], 'text': '😀'}
    assert isinstance(cache.get(key)['logprobs'][0]['n'], float) # answers keep their numbers as they are

def test_a_wrong_key_is_refused(tmp_path):
    cache = Cache(tmp_path)
    for key in (request_key(asked(1)), 'x', None):
        with pytest.raises(BadInput) as e: cache.put(key, asked(), {'text': 'a'})
        assert 'request_key' in sentence(e)
    for key in (None, 3, 'é', b'x'):
        with pytest.raises(BadInput) as e: cache.get(key)
        sentence(e)
    for answer in (None, 'text', ['a']):
        with pytest.raises(BadInput) as e: cache.put(request_key(asked()), asked(), answer)
        sentence(e)
    assert len(cache) == 0

def test_paths(tmp_path, monkeypatch):
    monkeypatch.setenv('HOME', str(tmp_path))
    monkeypatch.chdir(tmp_path)
    assert Cache('~/x.sqlite').path == tmp_path/'x.sqlite' and Cache('y').path == tmp_path/'y'
    assert (tmp_path/'y').is_file()
    assert Cache('new/').path == tmp_path/'new'/'replies.sqlite'
    assert Cache('new').path == tmp_path/'new'/'replies.sqlite'
    odd = Cache(tmp_path/'100 % ?mode=memory#ü 漢')
    fill(odd, 2)
    assert odd.path.is_file() and len(Cache(odd.path)) == 2
    for bad in (None, '', 3, tmp_path/'x.jsonl', tmp_path/'x.parquet', tmp_path/'y'/'below-a-file'):
        with pytest.raises(BadInput) as e: Cache(bad)
        sentence(e)

def test_default_cache(tmp_path, monkeypatch):
    monkeypatch.delenv('FACTLIB_CACHE', raising=False)
    assert default_cache() is None and default_cache(tmp_path/'b').path == tmp_path/'b'
    monkeypatch.setenv('FACTLIB_CACHE', ' ')
    assert default_cache() is None
    monkeypatch.setenv('FACTLIB_CACHE', str(tmp_path))
    assert default_cache(tmp_path/'b').path == tmp_path/'replies.sqlite'

def test_iterating_sees_one_moment_and_blocks_nobody(tmp_path):
    cache = Cache(tmp_path)
    fill(cache, 10)
    rows = iter(cache)
    next(rows)
    fill(cache, 30)
    assert len(list(rows)) == 9 and len(cache) == 30

# ---- hostile content

HOSTILE = ['', '\x00', 'a\x00b'*40, '\ud800', '\udfff lone \ud83d', '\ud83d\ude00',
           "'; DROP TABLE replies; --", '{}{{x}}{% raw %}', '\\ud83d \\u0000 \\',
           '"'*200, '\u2028\u2029\x85\x0b\x0c', '\r\n\r\n', '\ufeffBOM', '\U0010ffff',
           '<|im_end|>', 'كان حارس المنارة', 'बूढ़ा प्रकाशस्तंभ', '年老的灯塔看守人',
           '👩‍👩‍👧', 'é e\u0301', '\u202eoverride', ''.join(map(chr, range(0, 0x3000)))]

def merged_pairs(text): return text.encode('utf-16', 'surrogatepass').decode('utf-16', 'surrogatepass')

@pytest.mark.parametrize('suffix', ['.jsonl', '.parquet'])
def test_hostile_content_survives_everything(tmp_path, suffix):
    cache, texts = Cache(tmp_path/'a'), HOSTILE + ['long ' + 'prompt "line"\n'*350_000] # 5 MB
    for text in texts:
        request = asked(messages=[{'role': 'user', 'content': text}],
                        **{text if text.isprintable() and text else 'x': text})
        assert cache.put(request_key(request), request,
                         {'text': text}) == {'text': merged_pairs(text)} == cache.get(request_key(request))
    assert len(cache) == len(texts)
    assert cache.export(tmp_path/f'1{suffix}') == len(texts)
    other = Cache(tmp_path/'b')
    assert other.merge(tmp_path/f'1{suffix}') == (len(texts), 0, 0, 0) and list(other) == list(cache)
    other.export(tmp_path/f'2{suffix}')
    assert (tmp_path/f'1{suffix}').read_bytes() == (tmp_path/f'2{suffix}').read_bytes()
    assert cache.merge(tmp_path/f'2{suffix}') == (0, len(texts), 0, 0)
    # valid UTF-8, one line each
    if suffix == '.jsonl': assert len((tmp_path/'1.jsonl').read_bytes().decode('utf-8').split('\n')) == len(texts) + 1

@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(rows=st.lists(st.tuples(REQUESTS, st.dictionaries(st.text(max_size=8), values(ANY_TEXT), max_size=4)),
                     min_size=1, max_size=5))
def test_anything_survives_everything(rows, tmp_path):
    with tempfile.TemporaryDirectory(dir=tmp_path) as folder:
        with Cache(Path(folder)/'a') as a, Cache(Path(folder)/'b') as b, Cache(Path(folder)/'c') as c:
            for request, answer in rows: a.put(request_key(request), request, answer, replace=True)
            for request, answer in dict((request_key(r), (r, x)) for r, x in rows).values():
                assert a.get(request_key(request)) == json.loads(json.dumps(answer))
            n = a.export(Path(folder)/'a.jsonl')
            assert n == len(a) and b.merge(Path(folder)/'a.jsonl') == (n, 0, 0, 0)
            b.export(Path(folder)/'b.parquet')
            assert c.merge(Path(folder)/'b.parquet') == (n, 0, 0, 0)
            c.export(Path(folder)/'c.jsonl')
            assert (Path(folder)/'a.jsonl').read_bytes() == (Path(folder)/'c.jsonl').read_bytes() and list(a) == list(c)

# ---- export and merge

@pytest.mark.parametrize('suffix', ['.jsonl', '.parquet'])
def test_exports_of_equal_contents_are_equal(tmp_path, suffix):
    a, b, order = Cache(tmp_path/'a'), Cache(tmp_path/'b'), list(range(room._BATCH + 100)) # more than one row group
    for cache in (a, b):
        random.Random(str(cache.path)).shuffle(order)
        for i in order:
            request = asked(i) if cache is a else dict(reversed(asked(i, repeat=0.0).items()))
            cache.put(request_key(request), request,
                      {'text': str(i), 'usage': {'a': 1, 'b': 2} if cache is a else {'b': 2, 'a': 1}})
    assert a.export(tmp_path/f'a{suffix}') == b.export(tmp_path/'deep'/'er'/f'b{suffix}') == len(order)
    assert (tmp_path/f'a{suffix}').read_bytes() == (tmp_path/'deep'/'er'/f'b{suffix}').read_bytes()
    assert sorted(p.name for p in (tmp_path/'deep'/'er').iterdir()) == [f'b{suffix}']

def test_what_an_export_looks_like(tmp_path):
    import pandas as pd
    cache = Cache(tmp_path)
    fill(cache, 3)
    for name in ('x.jsonl', 'x.parquet'): assert cache.export(tmp_path/name) == 3
    lines = [json.loads(line) for line in (tmp_path/'x.jsonl').read_text(encoding='utf-8').splitlines()]
    assert [(d['key'], d['request'], d['answer']) for d in lines] == list(cache)
    assert all(list(d) == ['key', 'request', 'answer'] for d in lines)
    frame = pd.read_parquet(tmp_path/'x.parquet')
    assert list(frame.columns) == ['key', 'request', 'answer']
    assert [(k, json.loads(r), json.loads(a)) for k, r, a in frame.itertuples(index=False)] == list(cache)

@pytest.mark.parametrize('suffix', ['.jsonl', '.parquet'])
def test_an_empty_cache_exports_and_merges(tmp_path, suffix):
    cache = Cache(tmp_path)
    assert cache.export(tmp_path/f'x{suffix}') == 0 and cache.merge(tmp_path/f'x{suffix}') == (0, 0, 0, 0)

@pytest.mark.parametrize('how', ['.jsonl', '.parquet', 'file', 'folder'])
def test_merging_never_changes_a_row(tmp_path, how):
    ours, theirs = Cache(tmp_path/'ours'), Cache(f'{tmp_path}/theirs/')
    kept = fill(ours, 6)
    fill(theirs, 4)                                                   # the same
    for i in (4, 5): theirs.put(request_key(asked(i)), asked(i), {'text': 'another'})
    for i in (6, 7, 8): theirs.put(request_key(asked(i)), asked(i), {'text': 'new'})
    source = {'file': theirs.path, 'folder': theirs.path.parent}.get(how, tmp_path/f'x{how}')
    if how.startswith('.'): theirs.export(source)
    assert ours.merge(source) == Merged(new=3, same=4, different=2, corrupt=0)
    assert len(ours) == 9 and all(ours.get(k) == a for k, a in kept.items())
    assert ours.get(request_key(asked(8))) == {'text': 'new'}
    assert ours.merge(source) == (0, 7, 2, 0) # merging twice changes nothing
    assert len(theirs) == 9

def test_merging_into_itself(tmp_path):
    cache = Cache(tmp_path)
    fill(cache, 5)
    assert cache.merge(cache.path) == (0, 5, 0, 0)

def test_merging_counts_damaged_rows_of_another_cache_and_mends_ours(tmp_path):
    ours, theirs = Cache(tmp_path/'ours'), Cache(tmp_path/'theirs')
    keys = sorted(fill(ours, 4)) and sorted(fill(theirs, 4))
    sql(ours, 'UPDATE replies SET checksum = checksum + 1 WHERE key = ?', keys[0])
    sql(theirs, 'UPDATE replies SET checksum = checksum + 1 WHERE key = ?', keys[1])
    sql(theirs, "UPDATE replies SET request = x'00' WHERE key = ?", keys[2])
    assert ours.merge(theirs.path) == Merged(new=1, same=1, different=0, corrupt=2)
    assert all(ours.get(k) for k in keys) and theirs.export(tmp_path/'x.jsonl') == 2 and theirs.corrupt == 2

LINE = json.dumps({'key': request_key(asked(1)), 'request': asked(1), 'answer': {'text': 'a'}})

@pytest.mark.parametrize('line, said', [
    ('', 'not valid JSON'), ('{', 'not valid JSON'), (LINE[:-9], 'not valid JSON'), (LINE + LINE, 'not valid JSON'),
    (b'\xff\xfe{}', 'not valid JSON'), ('[' * 100_000, 'not valid JSON'), ('1' * 5000, 'not valid JSON'),
    ('[]', 'exactly key, request and answer'), ('null', 'exactly key, request and answer'),
    ('{"key": "k"}', 'exactly key, request and answer'),
    (LINE.replace('"answer"', '"reply"'), 'exactly key, request and answer'),
    (LINE[:-1] + ', "api_key": "k"}', 'exactly key, request and answer'),
    (LINE.replace('Question 1', 'Question 2'), 'does not follow'),
    (LINE.replace(request_key(asked(1)), 'f'*64), 'does not follow'),
    (LINE.replace(f'"{request_key(asked(1))}"', '5'), 'does not follow'),
    (LINE.replace('"m"', 'NaN'), 'nan'), (LINE.replace('"a"', 'Infinity'), 'inf'),
    (LINE.replace('{"text": "a"}', '"a"'), 'answer has to be a dict'),
    (LINE.replace('"repeat"', '"api_key"'), 'api_key')])
def test_a_wrong_line_is_named_and_nothing_is_merged(tmp_path, line, said):
    good, cache = Cache(tmp_path/'good'), Cache(tmp_path/'a')
    fill(good, 5)
    good.export(tmp_path/'x.jsonl')
    lines = (tmp_path/'x.jsonl').read_bytes().splitlines()
    lines.insert(3, line if isinstance(line, bytes) else line.encode())
    (tmp_path/'x.jsonl').write_bytes(b'\n'.join(lines) + b'\n')
    with pytest.raises(BadInput, match=said) as e: cache.merge(tmp_path/'x.jsonl')
    assert sentence(e).startswith('Line 4 of') and len(cache) == 0
    fill(cache, 1) # and it works on
    assert len(cache) == 1

@pytest.mark.parametrize('column, value, said',
                         [('request', '{', 'not valid JSON'), ('request', '{}', 'does not follow'),
                          ('answer', None, 'not valid JSON'), ('answer', '[]', 'has to be a dict'),
                          ('key', None, 'does not follow')])
def test_a_wrong_row_is_named_and_nothing_is_merged(tmp_path, column, value, said):
    import pandas as pd
    good, cache = Cache(tmp_path/'good'), Cache(tmp_path/'a')
    fill(good, room._BATCH + 5)
    good.export(tmp_path/'x.parquet')
    frame = pd.read_parquet(tmp_path/'x.parquet')
    frame.loc[room._BATCH + 1, column] = value
    frame.to_parquet(tmp_path/'y.parquet')
    with pytest.raises(BadInput, match=said) as e: cache.merge(tmp_path/'y.parquet')
    assert sentence(e).startswith(f'Row {room._BATCH + 2} of') and len(cache) == 0

def test_what_cannot_be_merged_or_exported(tmp_path):
    cache = Cache(tmp_path/'a')
    (tmp_path/'no.parquet').write_bytes(b'PAR1 no')
    (tmp_path/'text').write_text('no cache '*100)
    __import__('pandas').DataFrame({'key': ['a']}).to_parquet(tmp_path/'short.parquet')
    (tmp_path/'empty').mkdir()
    for name in ('no.parquet', 'short.parquet', 'text', 'missing.jsonl', 'missing', 'empty'):
        with pytest.raises(BadInput) as e: cache.merge(tmp_path/name)
        assert repr(name)[1:-1] in sentence(e)
    assert not (tmp_path/'missing').exists() and not list((tmp_path/'empty').iterdir())
    assert (tmp_path/'text').read_text() == 'no cache '*100
    for name in ('x', 'x.csv', 'x.json'):
        with pytest.raises(BadInput) as e: cache.export(tmp_path/name)
        sentence(e)

def test_a_failed_export_leaves_the_old_one(tmp_path, monkeypatch):
    cache = Cache(tmp_path/'a')
    fill(cache, 3)
    cache.export(tmp_path/'x.jsonl')
    before = (tmp_path/'x.jsonl').read_bytes()
    fill(cache, 9)
    rows = cache._rows
    def broken():
        for n, row in enumerate(rows()):
            if n == 5: raise OSError('no space left')
            yield row
    monkeypatch.setattr(cache, '_rows', broken)
    for name in ('x.jsonl', 'y.parquet'):
        with pytest.raises(OSError): cache.export(tmp_path/name)
    assert (tmp_path/'x.jsonl').read_bytes() == before
    assert sorted(p.name for p in tmp_path.iterdir() if not p.name.startswith('a')) == ['x.jsonl']

# ---- damage

def flipped(data, bit): return data[:bit//8] + bytes([data[bit//8] ^ 1 << bit % 8]) + data[bit//8 + 1:]

def test_every_flipped_bit_of_an_answer_is_a_miss(tmp_path):
    cache = Cache(tmp_path)
    (key, answer), = fill(cache, 1).items()
    (text, checksum), = sql(cache, 'SELECT CAST(answer AS BLOB), checksum FROM replies')
    with contextlib.closing(sqlite3.connect(cache.path, isolation_level=None)) as db:
        for bit in range(8*len(text)):
            db.execute('UPDATE replies SET answer = CAST(? AS TEXT)', (flipped(text, bit),))
            assert cache.get(key) is None, bit
        db.execute('UPDATE replies SET answer = CAST(? AS TEXT)', (text,))
        for bit in range(32):
            db.execute('UPDATE replies SET checksum = ?', (checksum ^ 1 << bit,))
            assert key not in cache, bit
    assert cache.corrupt == 1 # one row, however often it was met
    assert cache.put(key, asked(), answer) == answer == cache.get(key)

def test_every_flipped_bit_of_a_request_is_noticed(tmp_path):
    cache = Cache(tmp_path)
    (key, answer), = fill(cache, 1).items()
    (packed,), = sql(cache, 'SELECT request FROM replies')
    harmless = 0
    with contextlib.closing(sqlite3.connect(cache.path, isolation_level=None)) as db:
        for bit in range(8*len(packed)):
            db.execute('UPDATE replies SET request = ?', (flipped(packed, bit),))
            rows = list(cache)
            assert rows in ([], [(key, asked(), answer)]), bit
            harmless += len(rows)
            assert cache.get(key) == answer # which needs no request
    assert harmless <= 8 # bits of the compression's header that mean nothing

@pytest.mark.parametrize('answer', ['{"text":', '', '[]', 'null', '"text"', '{"text": "\x00"}', None, 5, b'\xff\xfe'])
def test_an_answer_that_is_no_json_object_is_a_miss_whatever_its_checksum(tmp_path, answer):
    cache = Cache(tmp_path)
    key, = fill(cache, 1)
    data = answer.encode() if isinstance(answer, str) else answer if isinstance(answer, bytes) else b''
    sql(cache, 'PRAGMA ignore_check_constraints=1')
    sql(cache, 'UPDATE replies SET answer = ?, checksum = ?', answer if answer is not None else b'',
        room._checksum(key, data))
    assert cache.get(key) is None and cache.corrupt == 1 and list(cache) == []
    assert cache.put(key, asked(), {'text': 'mended'}) == {'text': 'mended'} == cache.get(key)

@pytest.mark.parametrize('column, value', [('checksum', 'text'), ('checksum', b'x'),
                                           ('request', 'text'), ('request', 5), ('request', b'')])
def test_values_of_another_type_are_damage(tmp_path, column, value):
    cache = Cache(tmp_path)
    key, = fill(cache, 1)
    sql(cache, f'UPDATE replies SET {column} = ?', value)
    assert list(cache) == [] and cache.corrupt == 1 and (cache.get(key) is None) == (column == 'checksum')

def test_an_answer_under_another_key_is_damage(tmp_path):
    cache = Cache(tmp_path)
    first, second = fill(cache, 2)
    sql(cache, 'UPDATE replies SET answer = (SELECT answer FROM replies WHERE key = ?), checksum = (SELECT checksum '
               'FROM replies WHERE key = ?) WHERE key = ?', first, first, second)
    assert cache.get(first) and cache.get(second) is None
    sql(cache, 'UPDATE replies SET key = ? WHERE key = ?', 'f'*64, first)
    assert cache.get(first) is None and cache.get('f'*64) is None and list(cache) == []

def survivors(path, kept):
    """Whatever happened to the file: only right answers, misses or one clear sentence. Returns how many answers are
    left."""
    try:
        cache = Cache(path)
        found = {k: cache.get(k) for k in kept}
    except BadInput as e:
        assert str(e).endswith('.')
        return 0
    assert all(a is None or a == kept[k] for k, a in found.items())
    try: assert all(a == kept[k] and request_key(r) == k for k, r, a in cache)
    except BadInput as e: assert 'damaged' in str(e)
    for i in range(3):
        try:
            assert cache.put(request_key(asked(i)), asked(i),
                             kept[request_key(asked(i))]) == kept[request_key(asked(i))]
        except BadInput as e: assert str(e).endswith('.')
    cache.close()
    return sum(a is not None for a in found.values())

def test_truncated_files(tmp_path):
    with Cache(tmp_path/'whole') as cache: kept = fill(cache, 200)
    data = (tmp_path/'whole').read_bytes()
    left = []
    for size in (0, 1, 50, 100, 101, 4095, 4096, 4097, 8192, len(data)//2, len(data) - 4096, len(data) - 1, len(data)):
        path = tmp_path/f'cut-{size}'
        path.write_bytes(data[:size])
        left.append(survivors(path, kept))
    assert left[0] == 0 and left[-1] == 200

@pytest.mark.parametrize('times', [60, pytest.param(250, marks=pytest.mark.slow)])
def test_a_file_with_random_damage_never_gives_a_wrong_answer(times, tmp_path):
    with Cache(tmp_path/'whole') as cache: kept = fill(cache, 150, text='Answer {} ' + 'x'*300)
    data, rng, left = (tmp_path/'whole').read_bytes(), random.Random(4 + times), []
    for n in range(times):
        harmed = bytearray(data)
        if n % 2: harmed[(page := rng.randrange(len(data)//4096)*4096):page + 4096] = rng.randbytes(4096) # a whole page
        else:
            for _ in range(rng.choice([1, 30, 1000])): harmed[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
        path = tmp_path/'harmed'
        path.write_bytes(harmed)
        left.append(survivors(path, kept))
        for p in tmp_path.glob('harmed*'): p.unlink()
    assert max(left) > 100 and min(left) == 0 # the drill did harm, and not only total harm

@pytest.mark.parametrize('content, said',
                         [(b'Some text, long enough to be looked at. '*20, 'another kind'),
                          (b'PK\x03\x04' + b'x'*2000, 'another kind'),
                          (b'SQLite format 3\x00' + b'x'*2000, 'another kind|damaged|can\'t be used')])
def test_files_of_another_kind_are_left_alone(tmp_path, content, said):
    (tmp_path/'f').write_bytes(content)
    with pytest.raises(BadInput if b'SQLite' not in content else (BadInput, OSError), match=said) as e:
        Cache(tmp_path/'f')
    assert repr(str(tmp_path/'f')) in sentence(e) and (tmp_path/'f').read_bytes() == content
    assert [p.name for p in tmp_path.iterdir()] == ['f']

def test_databases_of_something_else_are_left_alone(tmp_path):
    with contextlib.closing(sqlite3.connect(tmp_path/'f')) as db, db:
        db.execute('CREATE TABLE replies (key, answer, checksum, request)')
    before = (tmp_path/'f').read_bytes()
    with pytest.raises(BadInput, match='something else') as e: Cache(tmp_path/'f')
    sentence(e)
    assert (tmp_path/'f').read_bytes() == before
    cache = Cache(tmp_path/'new')
    sql(cache, 'PRAGMA user_version=99')
    with pytest.raises(BadInput, match='another version') as e: Cache(cache.path)
    sentence(e)

def test_a_zero_byte_file_becomes_a_cache(tmp_path):
    (tmp_path/'f').touch()
    cache = Cache(tmp_path/'f')
    fill(cache, 2)
    assert len(Cache(tmp_path/'f')) == 2

def test_a_removed_or_replaced_file_is_made_anew(tmp_path):
    cache = Cache(tmp_path/'a')
    kept = fill(cache, 2)
    for p in tmp_path.iterdir(): p.unlink()
    fill(cache, 3) # would otherwise go into a file without a name
    assert len(Cache(tmp_path/'a')) == 3
    with Cache(tmp_path/'b') as other: fill(other, 7)
    for p in tmp_path.glob('a-*'): p.unlink()
    os.replace(tmp_path/'b', tmp_path/'a')
    fill(cache, 8)
    assert len(cache) == len(Cache(tmp_path/'a')) == 8 and all(cache.get(k) == a for k, a in kept.items())

def test_a_full_disk_is_an_oserror_and_loses_nothing(tmp_path):
    cache = Cache(tmp_path)
    kept = fill(cache, 5)
    cache._file.db.execute(f'PRAGMA max_page_count={cache._file.db.execute("PRAGMA page_count").fetchone()[0]}')
    big = asked(content=random.Random(0).randbytes(50_000).hex())
    with pytest.raises(OSError, match='disk is full') as e: cache.put(request_key(big), big, {'text': 'a'})
    sentence(e)
    with Cache(tmp_path/'other') as other: other.put(request_key(big), big, {'text': 'a'})
    with pytest.raises(OSError, match='disk is full'): cache.merge(tmp_path/'other')
    assert all(cache.get(k) == a for k, a in kept.items()) and len(cache) == 5
    cache.close() # forgets the limit
    assert cache.put(request_key(big), big, {'text': 'a'})

def test_a_lock_that_lasts_is_a_sentence(tmp_path, monkeypatch):
    monkeypatch.setattr('factlib.llm.cache_file._PATIENCE', 0.1)
    cache = Cache(tmp_path)
    kept = fill(cache, 2)
    with contextlib.closing(sqlite3.connect(cache.path, isolation_level=None)) as db:
        db.execute('BEGIN IMMEDIATE')
        with pytest.raises(TimeoutError, match='locked by another process') as e: fill(cache, 3)
        sentence(e)
        assert all(cache.get(k) == a for k, a in kept.items()) # readers never wait
        db.execute('ROLLBACK')
    fill(cache, 3)

# ---- read-only

@contextlib.contextmanager
def open_folder():
    "A folder that other users can enter."
    folder = Path(tempfile.mkdtemp(prefix='factlib-test-'))
    folder.chmod(0o755)
    try: yield folder
    finally:
        folder.chmod(0o755)
        shutil.rmtree(folder)

def without_rights(act):
    "Run in a child that may write nothing of ours: what it returned, or its error."
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            if os.getuid() == 0:
                os.setgroups([])
                os.setgid(65534)
                os.setuid(65534)
            result = act()
        except BaseException as e: result = e
        os.write(write, pickle.dumps(result))
        os._exit(0)
    os.close(write)
    with open(read, 'rb') as f: data = f.read()
    os.waitpid(child, 0)
    return pickle.loads(data)

def locked_up(folder):
    "Nobody but root can write here any more."
    for p in folder.iterdir(): p.chmod(0o444)
    folder.chmod(0o555)

unix = pytest.mark.skipif(not hasattr(os, 'fork'), reason='needs fork and Unix permissions')

def read_all(path):
    cache = Cache(path)
    rows = [a['text'] for _, _, a in cache]
    assert all(cache.get(k) for k, _, _ in cache)
    return cache.read_only, len(cache), len(rows)

@unix
def test_a_cache_that_cannot_be_written_is_read(tmp_path):
    with open_folder() as folder, tempfile.TemporaryDirectory() as elsewhere:
        os.chmod(elsewhere, 0o777)
        with Cache(folder/'c') as cache: fill(cache, 25)
        locked_up(folder)
        before = sorted(p.name for p in folder.iterdir())
        assert without_rights(lambda: read_all(folder/'c')) == (True, 25, 25)
        assert without_rights(lambda: Cache(folder/'c').export(Path(elsewhere)/'x.jsonl')) == 25
        error = without_rights(lambda: fill(Cache(folder/'c'), 1))
        assert isinstance(error, BadInput) and 'can only be read' in str(error)
        error = without_rights(lambda: Cache(folder/'new'))
        assert isinstance(error, BadInput) and 'can\'t be written' in str(error)
        error = without_rights(lambda: Cache(folder/'deeper'/'new'))
        assert isinstance(error, BadInput) and 'can\'t be made' in str(error)
        assert without_rights(lambda: Cache(Path(elsewhere)/'mine').merge(folder/'c')) == (25, 0, 0, 0)
        assert sorted(p.name for p in folder.iterdir()) == before

@unix
def test_an_empty_file_that_cannot_be_written_is_a_sentence():
    with open_folder() as folder:
        (folder/'c').touch()
        locked_up(folder)
        error = without_rights(lambda: Cache(folder/'c'))
        assert isinstance(error, BadInput) and str(folder/'c') in str(error)

@unix
def test_a_file_that_cannot_be_written_in_a_folder_that_can():
    with open_folder() as folder:
        with Cache(folder/'c') as cache: fill(cache, 25)
        (folder/'c').chmod(0o444)
        folder.chmod(0o777)
        assert without_rights(lambda: read_all(folder/'c')) == (True, 25, 25)

@unix
@pytest.mark.parametrize('leave', [('-wal', '-shm'), ('-wal',)])
def test_what_a_killed_writer_left_beside_the_file_is_read_too(leave):
    with open_folder() as folder:
        writer = os.fork()
        if writer == 0:
            fill(Cache(folder/'c'), 25)
            os._exit(0) # without closing: the answers are in the -wal file
        os.waitpid(writer, 0)
        assert (folder/'c-wal').stat().st_size > 25*100
        for p in folder.glob('c-*'):
            if p.name[1:] not in leave: p.unlink()
        locked_up(folder)
        assert without_rights(lambda: read_all(folder/'c')) == (True, 25, 25)

@unix
def test_reading_while_the_owner_writes():
    "Who lets others read says so by the mode of the file, before there are others beside it."
    with open_folder() as folder:
        with Cache(folder/'c'): (folder/'c').chmod(0o644)
        cache = Cache(folder/'c')
        fill(cache, 25)
        assert without_rights(lambda: read_all(folder/'c')) == (True, 25, 25)
        fill(cache, 30)
        assert without_rights(lambda: read_all(folder/'c')) == (True, 30, 30)

# ---- many users

def test_pickled_by_path(tmp_path):
    cache = Cache(tmp_path)
    kept = fill(cache, 3)
    copy = pickle.loads(pickle.dumps(cache))
    assert copy.path == cache.path and {k: copy.get(k) for k in kept} == kept and len(pickle.dumps(cache)) < 500
    assert str(cache.path) in repr(cache)

def test_threads(tmp_path):
    cache, errors = Cache(tmp_path), []
    def work(seed):
        order = list(range(40))
        random.Random(seed).shuffle(order)
        try:
            for i in order:
                kept = cache.put(request_key(asked(i)), asked(i), {'text': f'{i} by {seed}'})
                assert cache.get(request_key(asked(i))) == kept and len(list(cache)) <= 40
        except BaseException as e: errors.append(e)
    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(8)]
    for t in threads: t.start()
    for t in threads: t.join()
    assert not errors and len(cache) == 40

@unix
def test_forked_children(tmp_path):
    cache = Cache(tmp_path)
    kept = fill(cache, 5)
    held, done = threading.Event(), threading.Event()
    def hold():
        with cache._file.lock:
            held.set()
            done.wait(60)
    thread = threading.Thread(target=hold) # at the moment of the fork another thread uses the cache
    thread.start()
    held.wait()
    children = []
    for n in range(3):
        if (child := os.fork()) == 0:
            signal.alarm(30) # a child that waits for a thread it doesn't have
            ok = all(cache.get(k) == a for k, a in kept.items()) and len(list(cache)) >= 5
            cache.put(request_key(asked(100 + n)), asked(100 + n), {'text': 'child'})
            os._exit(0 if ok else 1)
        children.append(child)
    assert [os.waitpid(child, 0)[1] for child in children] == [0, 0, 0]
    done.set()
    thread.join()
    fill(cache, 8)
    assert len(cache) == 11 and sql(cache, 'PRAGMA integrity_check') == [('ok',)]

@unix
def test_a_forked_child_that_ends_like_any_program(tmp_path):
    script = '''
import os, sys
from factlib.llm.cache import Cache, request_key
cache = Cache(sys.argv[1])
def put(i): cache.put(request_key({'i': i}), {'i': i}, {'text': str(i)})
for i in range(50): put(i)
pid = os.fork()
if pid == 0:
    for i in range(50, 100): put(i)
    del cache
    sys.exit(0) # with all of Python's clean-up
assert os.waitpid(pid, 0)[1] == 0
for i in range(100, 150): put(i)
assert len(cache) == 150
'''
    subprocess.run([sys.executable, '-c', script, str(tmp_path)], check=True, cwd=ROOT, timeout=60)
    assert len(list(Cache(tmp_path))) == 150 and sql(Cache(tmp_path), 'PRAGMA integrity_check') == [('ok',)]

CONTEXT = multiprocessing.get_context('fork' if hasattr(os, 'fork') else 'spawn')

def crowd(path, worker, n, start, results):
    "One process of eight: the same keys in another order, with its own answers."
    try:
        start.wait(60)
        cache, rng, kept = Cache(path), random.Random(worker), {}
        order = list(range(n))
        rng.shuffle(order)
        for step, i in enumerate(order):
            key = request_key(asked(i))
            kept[key] = cache.put(key, asked(i), {'text': f'{i} by {worker}', 'filler': 'x'*rng.randrange(3000)})
            assert cache.get(key) == kept[key]
            own = asked(i, worker=worker)
            cache.put(request_key(own), own, {'text': 'own'})
            if step % 20 == worker:
                file = Path(path).parent/f'{worker}.{"parquet" if worker == 0 else "jsonl"}'
                assert cache.export(file) >= len(kept)
                assert Cache(Path(path).parent/f'copy-{worker}').merge(file).corrupt == 0
            if step % 25 == worker: assert len(cache) >= len(kept) and sum(k in kept for k, _, _ in cache) == len(kept)
        assert cache.corrupt == 0
        results.put((worker, kept))
    except BaseException as e: results.put((worker, repr(e)))

def test_eight_processes_on_one_new_file(tmp_path):
    context, n = CONTEXT, 50
    results, start = context.Queue(), context.Barrier(8)
    crew = [context.Process(target=crowd, args=(str(tmp_path/'deep'/'c'), worker, n, start, results))
            for worker in range(8)]
    for process in crew: process.start()
    said = dict(results.get(timeout=100) for _ in crew)
    for process in crew: process.join()
    assert all(isinstance(kept, dict) for kept in said.values()), said
    cache = Cache(tmp_path/'deep'/'c')
    final = {key: cache.get(key) for key in said[0]}
    assert all(kept == final for kept in said.values()) # every process was told the same answers,
    assert len({a['text'].split(' by ')[1] for a in final.values()}) > 1 # and they are not all of one
    assert len(cache) == len(list(cache)) == n + 8*n and sql(cache, 'PRAGMA integrity_check') == [('ok',)]

def test_eight_processes_make_the_file_at_once(tmp_path):
    context = CONTEXT
    for n in range(6):
        results, start = context.Queue(), context.Barrier(8)
        crew = [context.Process(target=crowd, args=(str(tmp_path/str(n)/'c'), worker, 1, start, results))
                for worker in range(8)]
        for process in crew: process.start()
        said = [results.get(timeout=60)[1] for _ in crew]
        for process in crew: process.join()
        assert all(kept == said[0] and isinstance(kept, dict) for kept in said), said
        assert len(Cache(tmp_path/str(n)/'c')) == 9

# ---- kill -9

WRITER = '''
import sys
from factlib.llm.cache import Cache, request_key
cache, first = Cache(sys.argv[1]), int(sys.argv[2])
for i in range(first, first + 100_000):
    request = {'model': 'm', 'messages': [{'role': 'user', 'content': f'Question {i} ' + 'x'*(i % 7*500)}]}
    answer = cache.put(request_key(request), request, {'text': f'Answer {i}'})
    print(i, request_key(request), flush=True)
'''

@unix
def test_nothing_that_was_reported_is_missing_after_kill_9(tmp_path):
    rng, reported = random.Random(9), {}
    for run in range(8):
        child = subprocess.Popen([sys.executable, '-c', WRITER, str(tmp_path), str(run*100_000)],
                                 stdout=subprocess.PIPE, text=True, cwd=ROOT)
        lines = [child.stdout.readline()] # it is at it
        killer = threading.Timer(rng.uniform(0, 0.3), child.kill)
        killer.start()
        lines += child.stdout.readlines()
        assert child.wait() == -signal.SIGKILL
        reported |= {key: f'Answer {i}' for i, key in (line.split() for line in lines if line.endswith('\n'))}
        cache = Cache(tmp_path)
        assert all((cache.get(key) or {}).get('text') == text for key, text in reported.items())
        # at most the one row of each run that was written and not yet reported
        assert 0 <= len(cache) - len(reported) <= run + 1
        if run % 2: cache.close() # else the next writer finds it open
    assert len(reported) > 100 and cache.corrupt == 0 and len(list(cache)) == len(cache)
    assert sql(cache, 'PRAGMA integrity_check') == [('ok',)]

@unix
@pytest.mark.parametrize('text', [b'garbage', b'[1]', b'{"api_key":"sk-1"}', b'{ "i": 1 }'])
def test_only_a_text_of_ours_stands_for_a_request(tmp_path, text):
    "Anything else would be found under its key by nobody, or spoil an export."
    with Cache(tmp_path) as cache:
        with pytest.raises(BadInput): cache.put(hashlib.sha256(text).hexdigest(), text, {'text': 'x'})
        assert len(cache) == 0
        assert cache.put(request_key(asked(0)), room.request_text(asked(0)), {'text': 'x'}) == {'text': 'x'}

def test_a_cache_of_the_first_format_is_read_and_goes_on(tmp_path):
    """It packed requests with zlib. Its rows are read and merged as they are, new ones join them, and an older factlib
    is told."""
    import zlib
    from contextlib import closing
    place = tmp_path/'old.sqlite'
    with Cache(place) as cache: cache.put(request_key(asked(0)), asked(0), {'text': '0'})
    with closing(sqlite3.connect(place)) as db:
        db.execute('UPDATE replies SET request = ?', (zlib.compress(room.request_text(asked(0)), 1),))
        db.execute('PRAGMA user_version=1')
        db.commit()
    with Cache(tmp_path/'other.sqlite') as other: assert other.merge(place) == Merged(1, 0, 0, 0)
    with Cache(place) as cache: assert cache.get(request_key(asked(0))) == {'text': '0'}
    # who only reads changes nothing
    with closing(sqlite3.connect(place)) as db: assert db.execute('PRAGMA user_version').fetchone() == (1,)
    with Cache(place) as cache:
        cache.put(request_key(asked(1)), asked(1), {'text': '1'})
        assert {key: (request, answer['text'])
                for key, request, answer in cache} == {request_key(asked(i)): (asked(i), str(i)) for i in (0, 1)}
        assert not cache.corrupt
        assert cache.export(tmp_path/'all.jsonl') == 2
    with closing(sqlite3.connect(place)) as db: assert db.execute('PRAGMA user_version').fetchone() == (2,)

def test_a_killed_merge_leaves_all_or_nothing(tmp_path):
    n, rng, found = 3000, random.Random(1), set()
    with Cache(tmp_path/'source') as source:
        with source._file.writing() as db:
            for i in range(n): room._insert(db, request_key(asked(i)), room.request_text(asked(i)), b'{"text":"a"}')
        source.export(tmp_path/'x.jsonl')
    script = ('import sys\nfrom factlib.llm.cache import Cache\ncache = Cache(sys.argv[1])\nprint("now", '
              'flush=True)\ncache.merge(sys.argv[2])\nprint("done", flush=True)\ncache.close()')
    for run in range(6):
        child = subprocess.Popen([sys.executable, '-c', script, str(tmp_path/f'c{run}'), str(tmp_path/'x.jsonl')],
                                 stdout=subprocess.PIPE, text=True, cwd=ROOT)
        assert child.stdout.readline() == 'now\n'
        if run == 5: done = child.stdout.readline()
        else:
            time.sleep(rng.uniform(0, 0.15))
            child.kill()
            done = child.stdout.readline()
        child.wait()
        size = len(Cache(tmp_path/f'c{run}'))
        assert size == n if done else size in (0, n)
        found.add(size)
    assert found == {0, n}

@unix
@pytest.mark.parametrize('n', [0, 120])
def test_a_copy_without_the_wal_file_is_said(tmp_path, n):
    "After a kill the answers stand in the -wal file. A copy of the first file alone would pass for a new cache."
    script = ('import os, sys\nfrom factlib.llm.cache import Cache, request_key\ncache = Cache(sys.argv[1])\nfor i in '
              'range(int(sys.argv[2])): cache.put(request_key({"i": i}), {"i": i}, {"text": '
              '"x"})\nos.kill(os.getpid(), 9)')
    subprocess.run([sys.executable, '-c', script, str(tmp_path/'a'), str(n)], cwd=ROOT)
    for name in ('alone', 'whole'): shutil.copyfile(tmp_path/'a', tmp_path/name)
    shutil.copyfile(tmp_path/'a-wal', tmp_path/'whole-wal')
    with pytest.warns(UserWarning, match='alone-wal') as said: assert len(Cache(tmp_path/'alone')) == 0
    assert len(said) == 1 and 'export' in str(said[0].message)
    with warnings.catch_warnings():
        warnings.simplefilter('error')
        assert len(Cache(tmp_path/'whole')) == len(Cache(tmp_path/'a')) == n
        assert len(Cache(tmp_path/'alone')) == len(Cache(tmp_path/'new')) == 0 # by now it is a cache
        Cache(tmp_path/'a').export(tmp_path/'x.jsonl')
        assert Cache(tmp_path/'other').merge(tmp_path/'x.jsonl') == (n, 0, 0, 0)

def test_a_new_cache_is_its_owners_alone(tmp_path):
    """Before, all users of a machine could read the answers. SQLite's other files follow; a file that is there keeps
    its mode."""
    for mode in (0o600, 0o660):
        with Cache(tmp_path/'c.sqlite') as cache:
            cache.put(request_key(dict(i=mode)), dict(i=mode), dict(text='x'))
            assert {p.stat().st_mode & 0o777 for p in tmp_path.iterdir()} == {mode}
            assert len(list(tmp_path.iterdir())) > 1
        (tmp_path/'c.sqlite').chmod(0o660)
