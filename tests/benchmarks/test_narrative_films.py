"Files of films and of relations, written in the published form, and everything that can be wrong with them."
import json

import pandas as pd
import pytest
from hypothesis import given, settings, strategies as st

from factlib.benchmarks.base import load
from factlib.benchmarks.narrative import is_after, relations_of, scenes_in
from factlib.core.records import BadInput

SCRIPT = ('<script><scene id="1"><stage_direction>INT. INN - '
          'NIGHT</stage_direction>\n<character>ANN</character><dialogue>Hello '
          '&lt;there&gt;</dialogue></scene>\n<SCENE>A road.</SCENE></script>')
SCENES = '<scene>\nINT. INN - NIGHT\nANN\nHello <there>\n\n<scene>\nA road.'
ROWS = [dict(movie_name='Inn_2024', imdb_id='tt1', script=SCRIPT, summary='Ann, "at"\nan inn.'),
        dict(movie_name='Road_2023', imdb_id='tt2', script='<scene>A road.</scene>', summary='A road.'),
    dict(movie_name='Old (1950)', imdb_id='tt3', script='<scene>x</scene>', summary='Old.')]

def lines(path, rows):
    path.write_text('\n'.join(x if isinstance(x, str) else json.dumps(x) for x in rows), encoding='utf-8')
    return path

@pytest.mark.parametrize('ending', ['csv', 'parquet', 'jsonl'])
def test_moviesum(tmp_path, ending):
    path, frame = tmp_path/f'films.{ending}', pd.DataFrame(ROWS)
    if ending == 'csv': frame.to_csv(path, index=False)
    elif ending == 'parquet': frame.to_parquet(path)
    else: lines(path, ROWS)
    films = load('moviesum', path=path)
    first = films.examples[0]
    assert (first.id, first.source, first.target, first.reference,
            first.group) == ('tt1', SCENES, ROWS[0]['summary'], ROWS[0]['summary'], 'Inn_2024')
    assert first.meta['scenes'] == 2
    assert len(films) == 3 and films.truth_kind == 'none'
    assert [e.id for e in load('moviesum', path=path, after=2023)] == ['tt1']

def test_after(tmp_path):
    "By the date that is told, else by the year in the name; who can't be placed is refused."
    rows = [*ROWS, dict(movie_name='Told_2023', imdb_id='tt4', release_date='2023-12-01', script='<scene>x',
                        summary='S.'), dict(movie_name='No year', imdb_id='tt5', script='<scene>x', summary='S.')]
    late = load('moviesum', path=lines(tmp_path/'a.jsonl', rows), after='2023-10')
    assert [e.id for e in late] == ['tt1', 'tt4']
    assert [r.id for r in late.refused] == ['row-2', 'row-3', 'row-5'] and "can't be told" in late.refused[0].reason
    assert 'no year' in late.refused[2].reason
    for wrong in ['soon', '10/2023', True, '2023-1']:
        with pytest.raises(BadInput, match='year or a date'): load('moviesum', path=tmp_path/'a.jsonl', after=wrong)
    assert is_after((2023, 10, 31), (2023, 10)) is False and is_after((2023, 11), (2023, 10, 31)) is True
    assert is_after((2023, 10), (2023, 10, 5)) is None

def test_mensa_and_what_is_wrong_with_rows(tmp_path):
    good = dict(name='Inn', scenes=['INT. INN', ' A road. '], summary='S.')
    bad = ['{', '[1]', '"x"', dict(good, scenes=[]), dict(good, scenes=[1]),
           dict(good, scenes='x y'), dict(good, summary=''), dict(good, summary=None),
           dict(scenes=['x'], summary='S.'), dict(good, name=' '), good]
    films = load('mensa', path=lines(tmp_path/'m.jsonl', [good, *bad]))
    assert [e.source for e in films] == ['<scene>\nINT. INN\n\n<scene>\nA road.']
    assert [r.id for r in films.refused] == [f'row-{i}' for i in range(2, 13)]
    assert all(r.reason.startswith('Row ') and r.reason.endswith('.') for r in films.refused)

def test_bad_files(tmp_path):
    (tmp_path/'latin.jsonl').write_bytes('{"name": "é"}'.encode('latin-1'))
    lines(tmp_path/'empty.jsonl', []), lines(tmp_path/'none.jsonl',
                                             ['{}']), (tmp_path/'films.csv').write_text(
                                                 'movie_name,script\na,b\n'), (tmp_path/'films.txt').write_text('x')
    (tmp_path/'broken.parquet').write_text('x')
    for path in [None, tmp_path/'missing.jsonl', *tmp_path.iterdir()]:
        with pytest.raises(BadInput) as e: load('moviesum', path=path)
        assert str(e.value).endswith('.') or 'parquet' in str(e.value)
    with pytest.raises(BadInput, match='no splits'): load('mensa', split='test', path=tmp_path/'none.jsonl')

@given(st.text(max_size=300), st.lists(st.text(max_size=20), max_size=4))
@settings(max_examples=100, deadline=None)
def test_any_script(text, inside):
    "Either scenes that say something or a refusal; what is no tag stays."
    try: assert all(s.strip() for s in scenes_in(text + ''.join(f'<scene>{x}</scene>' for x in inside)))
    except BadInput: pass

def conan(folder, **stories):
    for name, data in stories.items():
        (folder/'label'/name).mkdir(parents=True)
        (folder/'label'/name/'all.json').write_text(data if isinstance(data, str) else json.dumps(data))
    return folder

def test_conan(tmp_path):
    data = {'Ann': [['Tom', 'Brother of Ann, heir of Ann'], ['Miss A., the maid', 'Same person as Ann']],
            'Tom': [['Ann', 'Sister of Tom'], ['T.', 'Same person as Tom'], ['Tommy', 'same person as Tom']], 'Eve': []}
    found = load('conan', path=conan(tmp_path, Inn=data, Bad='{', List='[]', Pair={'a': [['b']]}))
    [inn] = found.examples
    assert inn.meta['people'] == [['Ann', 'Miss A., the maid'], ['Tom', 'T.', 'Tommy'], ['Eve']]
    assert inn.meta['relations'] == [['Tom', 'Brother', 'Ann'], ['Tom', 'heir', 'Ann'], ['Ann', 'Sister', 'Tom']]
    assert inn.target.split('\n')[0] == 'Tom is Brother of Ann.' and inn.source is None
    assert sorted(r.id for r in found.refused) == ['Bad', 'List', 'Pair']
    (tmp_path/'Inn.txt').write_text('The inn.')
    assert load('conan', path=tmp_path/'label', texts=tmp_path).examples[0].source == 'The inn.'
    for wrong in [dict(path=None), dict(path=tmp_path/'nothing'), dict(path=tmp_path, texts=tmp_path/'label'/'Inn')]:
        with pytest.raises(BadInput): load('conan', **wrong)

def test_relations_of():
    assert relations_of('the King (I.)', 'Wife of the King (I.)') == ['Wife']
    assert relations_of('A', 'friend') == ['friend'] and relations_of('A', '') == []
    assert relations_of('Li', 'Wife of Li, mother of Liu') == ['Wife', 'mother of Liu']
