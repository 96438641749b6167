"Grids of sweeps: what stands in a file, what is refused, what cells are called."
import itertools
import json
import subprocess
import sys

import pytest
import yaml

from factlib.core.records import BadInput
from factlib.runs.provenance import data_digests
from factlib.runs.execute import find_experiment
from factlib.runs.grid import _loader, cell_name, combinations, data_paths, load_grid

def grid(folder, said, name='grid.yaml'):
    (folder/name).write_text(said if isinstance(said, str) else json.dumps(said), encoding='utf-8')
    return load_grid(folder/name)

def test_yaml_and_json_say_the_same(tmp_path):
    said = dict(experiment='quick_sweep', parameters=dict(n=2), grid=dict(seed=[0, 1], mode=['paper']),
                limits=dict(requests=5))
    cells = grid(tmp_path, said, 'a.json').cells
    yaml = 'experiment: quick_sweep\nparameters: {n: 2}\ngrid:\n  seed: [0, 1]\n  mode: [paper]\nlimits: {requests: 5}'
    assert grid(tmp_path, yaml).cells == cells and [c.name for c in cells] == ['seed=0,mode=paper', 'seed=1,mode=paper']

WRONG = {
    'experiment: quick_sweep\nworkers: 3': "The file has no key 'workers'; it can have experiment, parameters, grid, "
                                           "include, exclude, limits.",
    'experiment: quick_sweep\nlimits: {request: 3}': "limits has no key 'request'; it can have requests, tokens, "
                                                     "money, prices, concurrency, per_minute. Did you mean 'requests'?",
    'experiment: quick_sweep\nlimits: {requests: many}': "limits.requests has to be a whole number, not 'many'.",
    'experiment: quick_sweep\nlimits: {requests: true}': 'limits.requests has to be a whole number, not True.',
    'experiment: quick_sweep\nlimits: {concurrency: 0}': 'limits.concurrency has to be 1 or more, not 0.',
    'experiment: quick_sweep\ngrid: {seed: []}': 'grid.seed is empty: give it a value, or leave it out.',
    'experiment: quick_sweep\nlimits: {per_minute: 60.0}': 'limits.per_minute has to be a whole number, not 60.0.',
    'experiment: quick_sweep\nlimits: {per_minute: 100000000000000000000}': 'limits.per_minute has to be 1,000,000 or '
                                                                            'less, not 100000000000000000000.',
    'experiment: quick_sweep\ngrid: {mode: ["\\ud800"]}': 'JSON can',
    'experiment: quick_sweep\nparameters: {n: 2.5}': 'The parameter n has to be of type int, not 2.5.',
    'experiment: quick_sweep\nparameters: {n: "2"}': "The parameter n has to be of type int, not '2'.",
    'experiment: quick_sweep\nparameters: {mode: null}': 'The parameter mode has to be of type str, not None.',
    'experiment: live_judge\nparameters: {kinds: [24, 41]}': 'put them under `grid`: grid: {"kinds": [24, 41]}',
    'experiment: quick_sweep\ngrid: {N: [1]}': "The experiment quick_sweep has no parameter 'N'; it has model, "
                                               "base_url, dataset, n, seed, language, mode.",
    'experiment: quick_sweep\ngrid: {seed: [1, 1]}': 'The cell seed=1 is there twice',
    'experiment: quick_sweep\ngrid: {mode: [a, A]}': 'The cell mode=A differs from mode=a by capital letters alone',
    'experiment: quick_sweep\ngrid: {seed: [1]}\nexclude: [{seed: 1}]': 'exclude leaves nothing',
    'experiment: quick_sweep\ninclude: [{dataset: mine.jsonl}]': 'there is no such file',
    'experiment: gone.ipynb': "There is no experiment 'gone.ipynb'",
    'experiment: quick_sweep\nparameters: {seed: 2020-01-01}': 'JSON can',
    'experiment: [': 'not readable as YAML',
    '- 1': 'has to be a mapping',
    '': 'has to be a mapping',
    'experiment: quick_sweep\nlimits: {money: 5, prices: gone.csv}': "There is no price table 'gone.csv'"}

@pytest.mark.parametrize('text', WRONG)
def test_what_is_wrong_is_said_in_a_sentence(text, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(BadInput) as e: grid(tmp_path, text)
    assert WRONG[text] in str(e.value) and '\n' not in str(e.value)

WRITTEN = ['no', '24', '0.70', '1e5', '2024-01-01', '1:30', '0x1F', 'Off', '~x', '.5']

@pytest.mark.parametrize('form', ['yaml', 'json'])
def test_a_text_parameter_is_the_text_that_stands_in_the_file(tmp_path, form):
    "Whatever YAML or JSON would make of it, also in lists, under `include` and for the parameters that cells share."
    numbers = ['24', '0.70', '1e5'] if form == 'json' else WRITTEN
    said = ('{"experiment": "live_judge", "parameters": {"n": 1, "language": %s}, "grid": {"kinds": [%s]}, "include": '
            '[{"kinds": 41, "temperature": 0.0, "seed": 2}], "exclude": [{"kinds": 24}]}'
            % ('true' if form == 'json' else 'no', ', '.join(numbers)))
    cells = grid(tmp_path, said if form == 'json' else ' ' + said.replace('"', ''), f'grid.{form}').cells
    assert [c.parameters['kinds'] for c in cells] == [x for x in numbers if x != '24'] + ['41']
    assert cells[-1].parameters == dict(n=1, language='true' if form == 'json' else 'no', kinds='41',
                                        temperature='0.0', seed=2)
    assert len({c.name for c in cells}) == len(cells)

def test_numbers_stay_numbers_beside_texts(tmp_path):
    (cell,) = grid(tmp_path, 'experiment: live_judge\nparameters: &a {n: 3, weighted: no, model: 3.10}\n'
                             'include: [{<<: *a, model: 3.20, request: {top_p: 0.5}}]').cells
    assert cell.parameters == dict(n=3, weighted=False, model='3.20', request='{"top_p": 0.5}')

def test_a_model_without_a_price(tmp_path):
    (tmp_path/'prices.csv').write_text('model,input,output,currency\nm,1,2,EUR\n')
    said = dict(experiment='live_judge', grid=dict(model=['m']),
                limits=dict(money=5, prices=str(tmp_path/'prices.csv')))
    assert grid(tmp_path, said).limits.money == 5
    with pytest.raises(BadInput, match="no model 'mm'; they have m"):
        grid(tmp_path, said | dict(grid=dict(model=['m', 'mm'])))

def test_too_many_cells_are_refused_before_they_are_made(tmp_path):
    with pytest.raises(BadInput, match='100,000 are the most'):
        grid(tmp_path, dict(experiment='quick_sweep',
                            grid=dict(n=list(range(1000)), seed=list(range(1000)), mode=['a', 'b'])))

def test_text_that_looks_like_a_path_is_text_where_nothing_is_read(tmp_path, monkeypatch):
    "Models as vLLM names them, a folder that the run makes; and what is read from the user's folder, with a tilde."
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv('HOME', str(tmp_path))
    (tmp_path/'h.jsonl').write_text('{}')
    cells = grid(tmp_path,
                 'experiment: live_judge\nparameters: {dataset: ~/h.jsonl}\ngrid: {model: [/models/Llama-3-8B, v1.md]}').cells
    assert [c.parameters for c in cells] == [dict(dataset=str(tmp_path/'h.jsonl'), model=m)
                                             for m in ('/models/Llama-3-8B', 'v1.md')]
    grid(tmp_path, 'experiment: trust_matrix\nparameters: {kept: ./mykept}')
    (tmp_path/'mykept').mkdir()
    # what a run writes makes nothing out of date
    assert data_paths(dict(kept='./mykept')) == [] and data_paths(dict(prompt='./h.jsonl')) == ['./h.jsonl']
    with pytest.raises(BadInput, match='there is no such file'):
        grid(tmp_path, 'experiment: live_judge\nparameters: {prices: gone.csv}')

def test_datasets_by_their_paths(tmp_path, monkeypatch):
    "Each file behind a name is looked at: one that changes makes a result stale."
    monkeypatch.chdir(tmp_path)
    for name in ('a.csv', 'my log.jsonl'): (tmp_path/name).write_text('1', encoding='utf-8')
    asked = 'fade=a.csv my log.jsonl begin_wow'
    assert [c.parameters for c in grid(tmp_path, dict(experiment='vista', grid=dict(dataset=[asked]))).cells] == [
        dict(dataset=asked)]
    assert data_paths(dict(dataset=asked, n=1)) == ['a.csv', 'my log.jsonl']
    before = data_digests(find_experiment('vista'), dict(dataset=asked))
    (tmp_path/'a.csv').write_text('12', encoding='utf-8')
    after = data_digests(find_experiment('vista'), dict(dataset=asked))
    assert {path for path in before if before[path] != after[path]} == {'a.csv'}
    with pytest.raises(BadInput, match="There is no dataset 'fade=b.csv'"):
        grid(tmp_path, dict(experiment='vista', grid=dict(dataset=['fade=b.csv begin_wow'])))

def test_several_datasets(tmp_path, monkeypatch):
    said = dict(experiment='trust_matrix', grid=dict(dataset=['holmes_order fables', 'all']))
    assert len(grid(tmp_path, said).cells) == 2
    with pytest.raises(BadInput, match="There is no dataset 'fabels'.* Did you mean 'fables'"):
        grid(tmp_path, dict(said, grid=dict(dataset=['holmes_order fabels'])))
    monkeypatch.setenv('FACTLIB_DATA', str(tmp_path)) # the files of each of them count
    read = data_digests(find_experiment('trust_matrix'), dict(dataset='montagelie fables'))
    assert {'FACTLIB_DATA/fables/summaries.parquet', 'FACTLIB_DATA/montagelie/montagelie.jsonl'} <= set(read)

def test_merge_keys(tmp_path):
    said = 'experiment: quick_sweep\ninclude:\n- &a {seed: 1, mode: paper}\n- {<<: *a, seed: 2}'
    assert [c.parameters for c in grid(tmp_path, said).cells] == [dict(seed=1, mode='paper'),
                                                                  dict(seed=2, mode='paper')]
    with pytest.raises(BadInput, match="'seed' is there twice"):
        grid(tmp_path, said.replace('seed: 2', 'seed: 2, seed: 3'))

def test_no_file(tmp_path):
    with pytest.raises(BadInput, match='There is no file'): load_grid(tmp_path/'gone.yaml')
    (tmp_path/'utf16.yaml').write_bytes('experiment: x'.encode('utf-16'))
    with pytest.raises(BadInput, match='not UTF-8'): load_grid(tmp_path/'utf16.yaml')

def by_hand(grid, include, exclude):
    "The rules once more, said as the documentation of GitHub Actions says them, over tagged values."
    rows = [dict(zip(grid, values)) for values in itertools.product(*grid.values())]
    rows = [r for r in rows if not any(set(e.items()) <= set(r.items()) for e in exclude)]
    added, own = [{} for _ in rows], []
    for entry in include:
        fits = [i for i, r in enumerate(rows) if not any(k in r and r[k] != v for k, v in entry.items())]
        for i in fits: added[i] |= entry
        if not fits: own.append(entry)
    return [r | a for r, a in zip(rows, added)] + own

def test_combinations_follow_the_rules():
    "All small grids over two lists of two values with one or two entries each of include and exclude."
    axes = dict(a='xy', b='xy')
    entries = [dict(zip(names, values)) for names in (('a',), ('b',), ('a', 'b'), ('c',), ('a', 'c'))
               for values in itertools.product('xz' if names != ('b',) else 'xy', repeat=len(names))]
    for first, second in itertools.product(entries, repeat=2):
        for out in ([], [dict(a='x')], [dict(a='x', b='y'), dict(b='x')]):
            assert combinations(axes, [first, second], out) == by_hand(axes, [first, second], out)

def test_names_stay_when_the_grid_grows_and_differ():
    few, more = combinations(dict(seed=[0])), combinations(dict(seed=[0, 1]), [dict(seed=2)])
    assert [cell_name(c) for c in few] == [cell_name(c) for c in more][:1] == ['seed=0']
    odd = ['', ' ', '.', '..', '/', '\\', 'a/b', 'a\\b', 'a:b', 'é', 'ü'*300,
           'x'*300, 'x'*301, '1', 1, 1.5, '1.5', True, 'true', None, 'null', [1], '[1]', dict(a=1), 'CON', 'a\nb', '-']
    names = [cell_name(dict(p=x)) for x in odd]
    assert len(set(names)) == len(odd)
    for name in names:
        assert name.isascii() and name.isprintable() and len(name) <= 120 and not set(name) & set('/\\:*?"<>|')
        assert name.startswith('p=')
    assert len(cell_name({f'parameter_{i}': 'x'*40 for i in range(20)})) <= 120

LAUGHS = 'x0: &x0 [lol, lol, lol, lol, lol, lol, lol, lol, lol, lol]\n' + ''.join(
    f'x{i}: &x{i} [{", ".join([f"*x{i-1}"]*10)}]\n' for i in range(1, 9))
MERGES = 'x0: &x0 {a: 1}\n' + ''.join(f'x{i}: &x{i} {{<<: [{", ".join([f"*x{i-1}"]*10)}]}}\n' for i in range(1, 9))

@pytest.mark.parametrize('bomb', [LAUGHS, MERGES], ids=['lists', 'merges'])
def test_aliases_do_not_fill_the_memory(bomb, tmp_path):
    """Before, a file of some hundred bytes whose aliases stand for aliases took 2.5 GB. Here it may have 1 GB more than
    the import."""
    (tmp_path/'grid.yaml').write_text('experiment: quick_sweep\n' + bomb)
    code = '''import resource, sys
from factlib.runs.grid import read_grid
resource.setrlimit(resource.RLIMIT_AS, (int(open('/proc/self/statm').read().split()[0])*4096 + 10**9,)*2)
try: read_grid(sys.argv[1])
except Exception as e: print(type(e).__name__, e)'''
    run = subprocess.run([sys.executable, '-c', code, tmp_path/'grid.yaml'],
                         capture_output=True, text=True, timeout=120)
    assert run.stdout.startswith(
        'BadInput') and 'With its aliases written out the file is too large' in run.stdout, run.stderr

def test_few_aliases_are_allowed_and_none_of_itself(tmp_path):
    cells = grid(tmp_path,
                 'experiment: quick_sweep\ngrid: {seed: &s [0, 1]}\ninclude: [{seed: 2, n: 3}]\nparameters: &p {n: 2}').cells
    assert [c.name for c in cells] == ['seed=0', 'seed=1', 'seed=2,n=3']
    with pytest.raises(BadInput, match='stands inside what it stands for'): grid(tmp_path, 'experiment: &e [*e]')

def test_many_keys_are_checked_in_a_time_that_grows_with_them(tmp_path):
    """Before, each key was compared with all before it, so that a file of some megabytes never ended. Here no key is
    compared but with its equal."""
    compared = []
    class Key(str):
        def __eq__(self, other): return compared.append(self) or str.__eq__(self, other)
        __hash__ = str.__hash__
    loader = _loader()
    loader.add_constructor('tag:yaml.org,2002:str', lambda loader, node: Key(node.value))
    many = '\n'.join(f'k{i}: 0' for i in range(5000))
    assert len(yaml.load(many, loader)) == 5000 and len(compared) < 50_000
    with pytest.raises(BadInput, match="'k4999' is there twice"): yaml.load(f'{many}\nk4999: 1', loader)

def test_json_is_read_as_json(tmp_path):
    "Before, it was read as YAML, which refuses a character that JSON escapes in two halves."
    said = json.dumps(dict(experiment='quick_sweep', grid=dict(mode=['\U0001f98a'])))
    assert '\\ud83e\\udd8a' in said
    for name in ('a.json', 'a.yaml'): assert grid(tmp_path, said, name).cells[0].parameters == dict(mode='\U0001f98a')
    # YAML that begins like JSON
    assert grid(tmp_path, '{experiment: quick_sweep, grid: {seed: [3]}}').cells[0].name == 'seed=3'
    with pytest.raises(BadInput, match="the key 'seed' is there twice"):
        grid(tmp_path, '{"experiment": "quick_sweep", "grid": {"seed": [1], "seed": [2]}}', 'a.json')
    with pytest.raises(BadInput, match='not readable as JSON'):
        grid(tmp_path, '{"experiment": "quick_sweep",}', 'a.json')

def test_a_list_among_the_parameters_is_sent_to_grid(tmp_path):
    "What the sentence says is what the file has to say."
    said = dict(experiment='live_judge', parameters=dict(model=['a', 'b'], n=2))
    with pytest.raises(BadInput, match='type str, not .* under `grid`: grid: ') as raised: grid(tmp_path, said)
    told = yaml.safe_load(str(raised.value).partition('under `grid`: ')[2])
    assert [c.name for c in grid(tmp_path, said | dict(parameters=dict(n=2)) | told).cells] == ['model=a', 'model=b']

def test_no_cell_is_called_like_the_folder_of_all():
    assert cell_name({}, 'all') == 'all_' and cell_name({}, 'ALL') == 'ALL_' and cell_name({}, 'alls') == 'alls'
