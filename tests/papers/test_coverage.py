"""Who makes what was printed: every published table has one room and an experiment; and the intervals of the screening
by hand."""
import ast
import json
import re
from pathlib import Path

import pandas as pd
import pytest

from factlib.core.files import shipped
from factlib.core.records import BadInput
from factlib.papers.coverage import Shown, claimed, code_links, overview, printed, published_tables, shown, unmade
from factlib.papers.judgememo.intervals import chosen, intensity_intervals, mean_interval, task_intervals
from factlib.papers.judgememo.intervals import with_intensities
from factlib.report.published import published

ROOT = Path(__file__).resolve().parents[2]
EXPERIMENTS = sorted((ROOT/'nbs'/'experiments').glob('*.ipynb'))
PAPERS = sorted(p.stem for p in shipped('data/published').glob('*.json'))

def cells(path): return [''.join(c['source']) for c in json.loads(path.read_text(encoding='utf-8'))['cells']]

@pytest.mark.parametrize('paper', PAPERS)
def test_every_published_table_has_one_room_and_an_experiment(paper):
    table = published_tables(paper)
    assert not any(table.problem), table[table.problem != ''].problem.tolist()
    made = table[~table.state.str.startswith('not made')]
    assert not any(',' in room for room in made.room) and set(made.room) == set(claimed(paper))
    # what has numbers is compared
    assert all(bool(audit) == bool(cells) for audit, cells in zip(table.audit, table.cells))

@pytest.mark.parametrize('paper', PAPERS)
def test_the_list_holds_all_that_was_printed_once(paper):
    data = json.loads(shipped(f'data/published/{paper}.json').read_text(encoding='utf-8'))
    names = [name for part in ('tables', 'word_tables', 'figures', 'not_made') for name in data.get(part, {})]
    entries = printed(paper)
    assert len(names) == len(set(names)) and published_tables(paper).table.tolist() == names == list(entries)
    assert {name: e.numbers for name, e in entries.items()
            if e.numbers} == {name: len(t.cells) for name, t in published(paper).items()}
    assert all(e.says and not e.says.endswith('.') for e in entries.values())
    # either it is a file, or one sentence says why not
    assert all(bool(e.file) != bool(e.why) and e.state for e in entries.values())
    file = re.compile(r'tables/[\w.+-]+\.csv|figures/[\w.+-]+\.png')
    assert all(file.fullmatch(e.file) for e in entries.values() if e.file)

def test_planted_faults_are_seen():
    rooms, experiments = claimed('judgememo'), shown()
    def problems(rooms=rooms, experiments=experiments):
        return [p for p in published_tables('judgememo', rooms, experiments).problem if p]
    assert problems() == []
    fewer = rooms | dict(ablations=tuple(n for n in rooms['ablations'] if n != '5.3'))
    assert problems(fewer) == ['No room makes 5.3.']
    assert problems(rooms | dict(texts=(*rooms['texts'], '5.1'))) == ['2 rooms claim 5.1: main_tables, texts.']
    hidden = {name: shown for name, shown in experiments.items() if name != 'judgememo_intervals'}
    assert len(problems(experiments=hidden)) == 5
    assert problems(experiments=hidden)[0] == "There is no experiment 'judgememo_intervals' to make fig3.11."
    emptied = experiments | dict(judgememo_intervals=experiments['judgememo_intervals']._replace(cells={}))
    assert problems(experiments=emptied)[0] == "No cell of judgememo_intervals names 'figure_3.11'."
    with pytest.raises(BadInput, match='texts claims 99.9, which is not among the published tables of judgememo'):
        problems(rooms | dict(texts=('99.9',)))
    with pytest.raises(BadInput, match="no published numbers of 'nobody'"): published_tables('nobody')
    made = [name for name, entry in printed('montagelie').items() if not entry.why]
    assert {p for p in published_tables('montagelie', claims={}).problem if p} == {f'No room makes {name}.'
                                                                                  for name in made}

def test_a_cell_is_found_by_its_table():
    cells = dict(first="run.table(a, 'table_31')", second="run.table(b, \"table_3\")\nrun.figure(f, 'figure_2')")
    experiment = Shown([], False, 'factlib run x', cells)
    assert [experiment.cell_of(file) for file in ('tables/table_3.csv', 'tables/table_31.csv', 'figures/figure_2.png',
                                               'tables/table_1.csv', '')] == ['second', 'first', 'second', '', '']

def test_a_run_that_lacks_a_file_a_row_or_a_column_is_seen(tmp_path):
    entry = printed('montagelie')['3.2.2']
    def said(): return [x for x in unmade(entry.experiment, tmp_path) if entry.file in x]
    assert len(said()) >= 1 and 'is not there' in said()[0]
    path = tmp_path/entry.file
    path.parent.mkdir()
    keys = [key.split('|') for key in published('montagelie')['3.2.2'].cells]
    rows, columns = ({key[i] for key in keys} for i in (0, 1))
    lines = [','.join(['what', *sorted(columns)]), *(f'{row},1,1' for row in sorted(rows))]
    path.write_text('\n'.join(lines))
    others = [x for x in said() if ' 3.2.2 ' in x]
    assert others == []
    path.write_text('\n'.join(lines[:-1]))
    assert any('lacks' in x for x in said())
    # in long form
    path.write_text('cell\n' + '\n'.join('|'.join(key) for key in keys))
    assert not any(repr('|'.join(key)) in x for x in said() for key in keys)

def test_only_the_code_makes_tables():
    line = ('The code: [a](../papers/x/a.ipynb), [b](../llm/b.ipynb); the statistics: [c](../metaeval/c.ipynb); held '
            'against: [d](../papers/x/d.ipynb).')
    assert code_links(f'# T\n\n{line}\n\nThe code: not this one.') == ['papers/x/a', 'llm/b']
    assert code_links('See [a](../papers/x/a.ipynb).') == []

def test_an_overview_has_a_row_for_each_table_under_its_command():
    text = overview('judgememo')
    rows = [line for line in text.splitlines() if line.startswith('| ')]
    tables = text.count('| printed |')
    made = [entry for entry in printed('judgememo').values() if entry.file]
    assert len(rows) == len(made) + tables and {line.count('|') for line in rows} == {7}
    own = next(part for part in text.split('\n\n`') if '| 5.1 |' in part)
    assert own.startswith('factlib run judgememo` (with a model of your own')
    assert '`factlib run judgememo_live -p model NAME ' in own and 'makes, in `outputs/judgememo`:' in own
    row = next(line for line in rows if '| 5.1 |' in line)
    assert '[tables/table_5.1.csv](../../experiments/judgememo.ipynb#cell-id=' in row and '| recorded |' in row
    assert row.endswith('| [main_tables](main_tables.ipynb) | 30, held against `outputs/judgememo/tables/audit.csv` |')
    prompts = next(part for part in text.split('\n\n`') if '| Figure 4.1 |' in part)
    assert '-p what prompts`' in prompts.split(' makes, in ')[0] and 'A.12' not in prompts

def test_options_stand_behind_the_command():
    text = overview('vista')
    part = next(part for part in text.split('\n\n`') if '| 9 |' in part)
    assert part.startswith('factlib run vista -p model NAME -p base_url https://HOST/v1 -p dataset fade=PATH`')
    assert text.endswith('- Figure 1: not made: the steps of the method, a drawing')

@pytest.mark.parametrize('paper', PAPERS)
def test_the_readme_has_each_papers_command_beside_the_link(paper):
    line, = [x for x in (ROOT/'README.md').read_text(encoding='utf-8').splitlines()
             if x.startswith('|') and f'nbs/papers/{paper}/index.ipynb' in x]
    experiments = {e.experiment for e in printed(paper).values()} | {
        told.split(' ')[0] for e in printed(paper).values() for told in e.also}
    assert any(f'`{shown()[name].command}`' in line for name in experiments if name and '-p model' in shown()[name].command)

@pytest.mark.parametrize('notebook', EXPERIMENTS, ids=[p.stem for p in EXPERIMENTS])
def test_experiments_begin_with_links(notebook):
    "To rooms that exist, and at least to those of `factlib.papers` that they import."
    title, opening, head, *code = cells(notebook) # the answer comes between
    assert 'opening()' in opening and '?' in title.split('\n\nThe code')[0]
    line = head.split('\n')[-1]
    assert line.startswith('The code: [') and code_links(head)
    links = re.findall(r'\[(\w+)\]\(\.\./([\w/]+)\.ipynb\)', line)
    assert all((ROOT/'nbs'/f'{room}.ipynb').is_file() and room.endswith(name) for name, room in links)
    source = '\n'.join(re.sub(r'^%.*', '', cell, flags=re.MULTILINE) for cell in code if 'import ' in cell)
    imported = set(re.findall(r'from factlib\.(papers\.\w+\.\w+) import', source))
    assert {name.replace('.', '/') for name in imported} <= {room for _, room in links}

@pytest.mark.parametrize('index', sorted((ROOT/'nbs'/'papers').glob('*/index.ipynb')), ids=lambda p: p.parent.name)
def test_an_index_stores_what_it_would_print_now_and_links_to_what_is_there(index):
    "Readers on a website see what is stored: so it may not be of yesterday."
    notebook = json.loads(index.read_text(encoding='utf-8'))
    name = index.parent.name
    stored = [''.join(out['data']['text/markdown']) for c in notebook['cells'] for out in c.get('outputs', [])]
    assert stored == [overview(name)] and f"overview('{name}')" in ''.join(cells(index))
    links = re.findall(r'\]\(([^):#]+\.ipynb)(?:#[^)]*)?\)', '\n'.join(cells(index)) + overview(name))
    assert links and all((index.parent/link).resolve().is_file() for link in links)

def test_tables_are_written_out():
    for path in (ROOT/'nbs'/'papers').rglob('*.ipynb'):
        for source in cells(path):
            if not source.startswith('#| export'): continue
            for node in ast.parse(source).body:
                for target in getattr(node, 'targets', []):
                    # written out, so that a reader finds it
                    if isinstance(target, ast.Name) and target.id == 'TABLES': ast.literal_eval(node.value)

@pytest.mark.parametrize('paper', PAPERS)
def test_decimals_are_in_the_published_data(paper):
    data = json.loads(shipped(f'data/published/{paper}.json').read_text(encoding='utf-8'))['tables']
    for name, table in published(paper).items():
        assert data[name].get('decimals', 3) == table.decimals
        assert ('decimals' in data[name]) == ('tolerance' not in data[name])
        if 'tolerance' in data[name]: continue
        # no number has more
        assert all(x is None or abs(x*10**table.decimals - round(x*10**table.decimals)) < 1e-6
                   for x in table.cells.values())

# The intervals of the screening

def scores(variant, values, level='2000', metric='fluency'):
    return [dict(evaluator='LI', group=g, variant=variant, level=level, metric=metric, value=x)
            for g, x in zip('abcd', values)]

def run(variant, exp, intensity, dense=False, level='2000', scope='document'):
    return dict(variant=variant, level=level, scope=scope, exp=exp, intensity=intensity, dense=dense, refilled=True)

T3 = 4.302652729911275 # 97.5 % point of t with 2 degrees of freedom

def test_a_mean_and_its_interval():
    r = mean_interval([1, 2, 3, None]) # mean 2, sd 1, se 1/sqrt(3)
    assert (r['mean'], r['n'], r['asked']) == (2, 3, 4) and r['ci_high'] == pytest.approx(2 + T3/3**.5)
    assert r['ci_low'] == 1 # 2 - T3/sqrt(3) is below 0, and no score is below 1
    assert mean_interval([1, 2, 3], (-4, 4))['ci_low'] == pytest.approx(2 - T3/3**.5)
    assert list(mean_interval([]).values()) == [None, None, None, 0, 0]
    same = mean_interval([0]*18, (-4, 4)) # so rare are documents that are not 0, at 95 %, that the mean is near it
    assert same['ci_high'] == -same['ci_low'] == pytest.approx(4*(1 - .025**(1/18)))
    assert mean_interval([5]*18)['ci_low'] == pytest.approx(1 + 4*.05**(1/18)) and mean_interval([5]*18)['ci_high'] == 5

def test_missing_scores_leave_their_documents_only():
    table = pd.DataFrame(scores('gold', [5, 4, 4, None]) + scores('43/document/1', [4, 2, None, 3]))
    rows = task_intervals(with_intensities(table, pd.DataFrame([run('43', 1, 5)])))
    # 2 lengths, gold and six kinds, 2 metrics: typed where nothing is
    assert len(rows) == 28 and set(rows.absence.dropna()) == {'not recorded'}
    tasks = rows[rows.absence.isna()].set_index('task')
    assert tasks.loc['gold', ['mean', 'n', 'asked']].tolist() == [13/3, 3, 4] and pd.isna(tasks.delta['gold'])
    assert tasks.loc['43', ['mean', 'n', 'delta', 'n_delta']].tolist() == [3, 3, -1.5, 2] # a: -1, b: -2

def test_the_run_is_chosen_by_intensity_density_scope_and_number():
    plan = pd.DataFrame([run('41', 1, 2), run('41', 2, 2), run('41', 3, 2, dense=True),
                         run('41', 4, 5), run('41', 5, 2, scope='chapter'),
                         run('17', 1, None, level='full'), run('17', 2, 9, level='full', scope='paragraph')])
    rows = [r for p in plan.itertuples() for r in scores(f'{p.variant}/{p.scope}/{p.exp}', [4, 4], level=p.level)]
    named = with_intensities(pd.DataFrame(rows), plan)
    assert set(chosen(named, '41', '2000').variant) == {'41/document/2'}
    assert set(chosen(named, '17', 'full').variant) == {'17/paragraph/2'} # no intensity is asked for: the last
    assert chosen(named, '41', 'full').empty and chosen(named, '17', '2000').empty

def test_intensities_by_hand():
    table = pd.DataFrame(scores('gold', [5, 4, 3]) + scores('41/document/1', [4, 2, 3])
                         + scores('41/document/2', [5, 4, 0]) + scores('41/document/3', [1, 1, 1])
                         + scores('43/document/1', [5, 5, 5]))
    plan = pd.DataFrame([run('41', 1, 2), run('41', 2, 2, dense=True), run('41', 3, 50), run('43', 1, 1)])
    found = intensity_intervals(with_intensities(table, plan))
    # 50 is a count
    assert list(zip(found.manipulation, found.density, found.percent)) == [('41', 'widespread', 2),
                                                                           ('41', 'dense', 2), ('43', 'widespread', 1)]
    assert found['mean'].tolist() == [-1, -1, 1] # -1, -2, 0; 0, 0, -3; 0, 1, 2
    # sd 1, and sqrt(3)
    assert found.ci_low[0] == pytest.approx(-1 - T3/3**.5) and found.ci_high[0] == pytest.approx(-1 + T3/3**.5)
    assert (found.ci_low[1], found.ci_high[1]) == (-4, pytest.approx(-1 + T3)) # -1 - T3 is below -4
