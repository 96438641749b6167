"""Files of one's own by their paths: what `build-*` commands write, examples, published sets; what a file is, is seen
from its content, and what can't be told is a sentence."""
import csv
import json
import shlex
from dataclasses import replace

import pandas as pd
import pytest

from factlib.benchmarks.answers import ladder_steps
from factlib.benchmarks.base import BENCHMARKS, Benchmark, benchmarks_here, dataset_names, dataset_path, load
from factlib.benchmarks.dialogue_files import FADE_COLUMNS
from factlib.benchmarks.montagelie import order_texts
from factlib.core.records import BadInput, Example
from factlib.llm.stub import StubServer
from factlib.runs.parameters import live_examples

from answer_server import rule as worsen
from command import factlib_inside
from fact_server import between, prompt
from obliging_server import by_schema
from sweeps import END, JUDGES, TABLES, grid, part_of, statuses

EVENTS = ['Ann rose.', 'Bob ate bread.', 'Cat left home.', 'Dan sang songs.', 'Eve slept well.', 'Fay woke up.',
          'Gus rowed away.']
TEXTS = ['Anna Berg opened the bridge on 4 May 1921 with the mayor of Lyon. It crosses a wide river near the old '
         'castle, and boats with tea pass it slowly at night.',
         'Die Brücke wurde am 4. Mai 1921 von Anna Berg in Lyon eröffnet. Sie führt über einen breiten Fluss bei der '
         'alten Burg, und 20 Boote fahren nachts langsam hindurch.']

def lines(path, rows):
    path.write_text(''.join(json.dumps(row) + '\n' for row in rows), encoding='utf-8')
    return path

def montage(request):
    "Every line is an event, an event is added as it is, and a text that is told again gets a beginning."
    task = prompt(request).split('your task begins')[-1]
    if '"next"' in task: return json.dumps(dict(next=between(prompt(request), 'event').strip('\n')))
    text = between(prompt(request), 'text').strip('\n')
    if '"told_again"' not in task: return json.dumps(dict(events=text.split('\n'), descriptions=[]))
    return json.dumps(dict(technique_of_text='chronological', technique_chosen='flashback', told_again=f'So, {text}'))

def fade_csv(path, dialogues=4):
    "Turns of which every other one has a name exchanged."
    with open(path, 'w', newline='', encoding='utf-8') as f:
        table = csv.writer(f)
        table.writerow(FADE_COLUMNS)
        for d, t in ((d, t) for d in range(dialogues) for t in range(3)):
            said = f'the film {d}{t} was directed by anna berg in 1921.'
            told = said.replace('anna berg', 'bob stone') if (d + t) % 2 else said
            known = dict(render=f'the film {d}{t}, directed by, anna berg; 1921')
            table.writerow([[f'hello {d}', 'hi', 'and then?'][:t + 1], said, 'assistant', known, f'dialogue {d}', told,
                            ['HALLUC' if (d + t) % 2 else 'O']*len(told.split())])
    return path

@pytest.fixture(scope='module')
def home(tmp_path_factory):
    "A folder with a space in its name, and in it what the commands write when they are given what is here."
    home = tmp_path_factory.mktemp('my things') # pytest puts a number behind it
    texts = ['\n'.join(EVENTS[i % 2:5 + i % 3]) for i in range(4)] + [EVENTS[0]]
    lines(home/'pairs.jsonl', [dict(id=f'p{i}', source=f'Story {i}. {x}', true=x) for i, x in enumerate(texts)])
    (home/'pairs.json').write_text(json.dumps([dict(question=q, ground_truth=t)
                                               for q, t in zip(['Who opened it?', 'Wer war es?'], TEXTS)]))
    (home/'texts').mkdir()
    for i, text in enumerate(TEXTS): (home/'texts'/f'{i}.txt').write_text(f'{text} '*9, encoding='utf-8')
    said = []
    with StubServer(montage) as tell, StubServer(worsen) as answer:
        for command in (['build-montagelie', 'pairs.jsonl', '--out', 'my tuples.jsonl', '--base-url', tell.base_url],
                        ['build-answers', 'pairs.json', '--out', 'ladders.json', '--base-url', answer.base_url]):
            made = factlib_inside(*command, '--model', 'stub', cwd=home)
            assert not made.returncode, made.stderr
            said += made.stdout.splitlines()
    made = factlib_inside('build', 'texts', '--out', 'built one', '--kinds', '41', '--lengths', 'full', '--as-is',
                          '--language', '', '--workers', 1, cwd=home)
    assert not made.returncode, made.stderr
    (home/'said').write_text('\n'.join([*said, *made.stdout.splitlines()]))
    fade_csv(home/'human verified.csv')
    return home

@pytest.mark.parametrize('file, as_named', [('my tuples.jsonl', 'montagelie'), ('ladders.json', 'trutheval'),
                                            ('human verified.csv', 'fade')])
def test_what_a_file_is_is_seen(home, monkeypatch, file, as_named):
    "Absolute, relative, by name or not: the examples are those of the named loader."
    monkeypatch.chdir(home)
    named, own = load(as_named, path=file), load(file)
    assert own.examples == named.examples == load(home/file).examples == load(f'{as_named}={file}').examples
    assert own.refused == named.refused and (own.good, own.question) == (named.good, named.question)
    assert (own.name, load(f'{as_named}={file}').name) == (file.rpartition('.')[0], as_named)
    assert own.path == load(f'{as_named}={file}').path == file and named.card in own.card
    assert len({e.group for e in load(file, n=1)}) == 1 and load(file, n=1, seed=5).name == own.name

def test_ladders_a_line_each(home, tmp_path):
    "Questions as JSON lines, or as a list, are the same ladders."
    questions = json.loads((home/'ladders.json').read_text())['questions']
    listed = tmp_path/'listed.json'
    listed.write_text(json.dumps(questions))
    assert load(lines(tmp_path/'ladders.jsonl', questions)).examples == load(home/'ladders.json').examples
    assert load(listed).examples == load(home/'ladders.json').examples

def test_what_was_built_is_judged_by_the_command_that_is_printed(home):
    "Its costs are counted, which reads the file and asks nobody."
    commands = [shlex.split(line) for line in (home/'said').read_text().splitlines() if line.startswith('factlib run')]
    assert [command[2] for command in commands] == ['montagelie', 'trutheval', 'live_judge']
    for _, _, *command in commands:
        model = [] if 'model' in command else ['-p', 'model', 'M', '-p', 'base_url', 'http://127.0.0.1:1/v1']
        told = factlib_inside('cost', *command, *model, cwd=home)
        assert told.returncode == 0 and 'requests' in told.stdout, told.stderr

def judged_by_schema(request):
    "Something that fits: what it says means nothing."
    return json.dumps(by_schema(request['response_format']['json_schema']['schema'], prompt(request)))

LADDERS = dict.fromkeys([f'trutheval-{name}' for name in ('parameters', 'check', 'texts', 'judge', 'models', 'recorded',
                                                          'rows', 'two', 'print', 'finish')], '')

@pytest.mark.slow
@pytest.mark.parametrize('experiment, cells, judge, built', [
    ('montagelie', JUDGES | TABLES | END, 'consistency', 'my tuples.jsonl'),
    ('trutheval', LADDERS, 'rubric', 'ladders.json')], ids=['montagelie', 'trutheval'])
def test_a_sweep_over_files(home, tmp_path, experiment, cells, judge, built):
    """What a `build-*` command wrote, and the same texts as examples with variant and level, are two data sets of a grid:
    each cell asks about its own file, and the tables of all cells have both under their names. Of the experiments, what
    judges and makes these tables; the tests below run them whole."""
    texts = load(home/built).examples
    lines(tmp_path/'examples.jsonl', [e.to_dict() for e in texts])
    with StubServer(judged_by_schema, json_schema=True) as server:
        said = dict(experiment=str(part_of(experiment, cells, tmp_path)),
                    parameters=dict(base_url=server.base_url, judges=judge),
                    grid=dict(model=['one', 'two'], dataset=[str(home/built), 'examples.jsonl']))
        done = factlib_inside('sweep', grid(tmp_path, said), '--out', 'swept', cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert set(statuses(tmp_path/'swept').values()) == {'done'} and len(statuses(tmp_path/'swept')) == 4
    judged = pd.read_parquet(tmp_path/'swept'/'all'/'judgements.parquet')
    asked = judged[judged.part.eq('main') & judged.evaluator.str.startswith(judge) & judged.model.ne('')]
    assert asked.groupby(['benchmark', 'model']).size().to_dict() == {
        (name, model): len(texts) for name in (built.rpartition('.')[0], 'examples') for model in ('one', 'two')}
    table = pd.read_csv(tmp_path/'swept'/'all'/'tables'/f'table_{3 if experiment == "montagelie" else 2}.csv')
    own = table[table.evaluator.isin([f'{judge}, one', f'{judge}, two']) & table.asked.gt(0)]
    assert len(own) == 4 and own.asked.nunique() == 1 and (own.asked == own.scored).all()

def test_examples_to_be_judged_by_a_name_and_a_path(home, monkeypatch):
    monkeypatch.chdir(home)
    given = dict(n=0, seed=0, kinds='24', length=0)
    examples, refused = live_examples(given | dict(dataset='montagelie=my tuples.jsonl'))
    assert examples == load('my tuples.jsonl').examples and refused == []
    with pytest.raises(BadInput, match='no file or folder'): live_examples(given | dict(dataset='fade=gone.csv'))

def test_a_built_folder_and_its_file(home):
    folder, file = load(home/'built one'), load(home/'built one'/'examples.jsonl')
    assert folder.examples == file.examples and (folder.name, folder.good) == ('built one', 'gold')
    assert {e.variant for e in folder} == {'gold', '41'} and len({e.group for e in load(home/'built one', n=1)}) == 1
    with pytest.raises(BadInput, match='factlib build .*coflueval='): load(home/'texts')
    assert {e.variant for e in load(f'coflueval={home/"texts"}')} > {'gold'}

@pytest.mark.parametrize('name', ['holmes_order', 'holmes_false', 'written_dialogues'])
def test_examples_come_back_as_they_were(tmp_path, name):
    examples = load(name, n=2).examples
    plain = [json.loads(json.dumps(e.to_dict())) for e in examples]
    again = load(lines(tmp_path/'my own.jsonl', plain))
    assert [json.loads(json.dumps(e.to_dict())) for e in again] == plain and again.name == 'my own'

def test_a_tuple_that_lacks_a_part(tmp_path):
    "No paraphrases, one level absent, or no lie at all in the first row."
    row = dict(source='Ein Märchen.', true='Ann rose. Bob ate.', easy='Bob ate. Ann rose.')
    assert [e.level for e in load(lines(tmp_path/'a.jsonl', [row]))] == ['true', 'easy']
    none = dict(source='A tale.', true='Ann rose.', orders={}, absent=dict(easy=dict(why='One event.')))
    made = load(lines(tmp_path/'a.jsonl', [none, row]))
    assert [e.level for e in made] == ['true', 'true', 'easy'] and any('One event' in r.reason for r in made.refused)

@pytest.mark.parametrize('name, text, says', [
    ('a.jsonl', '', 'holds no examples'), ('a.json', '', 'is no JSON'), ('a.json', '[]', 'is no JSON, or holds no obj'),
    ('a.json', '[{"question": "Why?"}]', 'first object has question.*trutheval .questions with'),
    ('a.jsonl', '{"source": "S.", "true": "T."}', "'true' is known as the text.*montagelie .tuples of"),
    ('a.jsonl', '{"source": "S", "target": "T", "easy": "E", "truth": "lie"}', 'could be montagelie or examples'),
    ('a.csv', 'ex-idx,doc-url,model-name,output,INT,INT & AIS,Flagged\n', 'could be ais_qrecc or ais_wow'),
    ('a.csv', 'a,a\n1,2\n', 'two columns'), ('a.txt', 'Once.', 'must end in')])
def test_what_can_not_be_told_is_a_sentence(tmp_path, name, text, says):
    path = tmp_path/name
    path.write_text(text, encoding='utf-8')
    with pytest.raises(BadInput, match=says): load(path)
    with pytest.raises(BadInput, match=says): benchmarks_here([str(path)])

def test_names_win_and_files_are_told_apart(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path/'holmes_order').write_text('x')
    assert load('holmes_order', n=1).path == '' and dataset_path('holmes_order') is None
    with pytest.raises(BadInput, match='must end in'): load('./holmes_order')
    row = dict(id='a', target='The fox ran.')
    lines(tmp_path/'montagelie.jsonl', [row])
    (tmp_path/'b').mkdir()
    lines(tmp_path/'b'/'montagelie.jsonl', [row])
    here, absent = benchmarks_here(['montagelie.jsonl', 'b/montagelie.jsonl', 'holmes_order'], n=1)
    assert [b.name for b in here] == ['montagelie_file', 'montagelie_file_2', 'holmes_order'] and not absent
    assert [e.id for b in here[:2] for e in b] == ['montagelie_file/a', 'montagelie_file_2/a']
    assert here[2].examples == load('holmes_order', n=1).examples

def test_words_that_are_one_path(home, monkeypatch):
    monkeypatch.chdir(home)
    asked = 'holmes_order my tuples.jsonl fade=human verified.csv built one'
    names = ['holmes_order', 'my tuples.jsonl', 'fade=human verified.csv', 'built one']
    assert dataset_names(asked) == dataset_names(asked.split()) == names
    here = benchmarks_here(asked.split(), n=1)[0]
    assert [b.name for b in here] == ['holmes_order', 'my tuples', 'fade', 'built one']
    with pytest.raises(BadInput, match="no benchmark 'nothing'"): benchmarks_here('nothing here'.split())

def test_further_files_follow_a_comma(tmp_path):
    story = tmp_path/'conan, all'/'label'/'tale'
    story.mkdir(parents=True)
    (story/'all.json').write_text(json.dumps(dict(Ann=[['Bob', 'Brother of Ann']])))
    (tmp_path/'texts').mkdir()
    (tmp_path/'texts'/'tale.txt').write_text('Bob is the brother of Ann.')
    folder = tmp_path/'conan, all'
    assert load(folder).name == 'conan, all' and load(f'conan={folder}').examples == load(folder).examples
    assert load(f'conan={folder},texts={tmp_path/"texts"}').examples[0].source == 'Bob is the brother of Ann.'

@pytest.mark.parametrize('asked, says', [('fade=none.csv', 'no file or folder .none.csv. to read as .fade.'),
                                         ('begin_wow=x.csv', 'is read from no path'),
                                         ('no_such=x.csv', "no benchmark and no file 'no_such=x.csv'")])
def test_a_name_with_a_path_that_is_not_there(asked, says):
    with pytest.raises(BadInput, match=says): load(asked)

def test_every_loader_that_needs_a_path_is_known_by_a_form():
    "Or by its folder; so a file of any of them is either read or named in a sentence."
    with_path = {name for name, make in BENCHMARKS.items() if 'path=' in make.about}
    assert with_path - {name for name, make in BENCHMARKS.items() if make.form} == {'conan'}

def test_examples_are_steps_of_ladders():
    steps = [Example(f'x{k}', target='T.', question='Why?', reference='R.', truth=k) for k in range(2)]
    made = ladder_steps(Benchmark('mine', steps, 'score', ''))
    assert [(e.variant, e.level) for e in made] == [('recorded', '0'), ('recorded', '1')]
    assert len({e.group for e in made}) == 1 and [e.id for e in made] == ['x0', 'x1']
    ours = load('answers', n=1, texts='own')
    assert ladder_steps(ours).examples == ours.examples
    with pytest.raises(BadInput, match='lacks a question'): ladder_steps(load('holmes_order', n=1))

def test_examples_are_true_texts_and_lies():
    ours = load('holmes_order', n=1)
    assert order_texts(ours).examples == ours.examples
    bare = [Example(f'x{truth}', 'Ann rose. Bob ate.', 'T.', truth=truth) for truth in ('true', 'lie')]
    made = order_texts(Benchmark('mine', bare, 'label', ''))
    assert [(e.variant, e.level) for e in made] == [('original', 'true'), ('original', 'lie')]
    assert len({e.group for e in made}) == 1
    with pytest.raises(BadInput, match='lacks "true" or "lie"'): order_texts(load('answers', n=1, texts='own'))
    bare[1] = replace(bare[1], source='')
    with pytest.raises(BadInput, match='lacks a source'): order_texts(Benchmark('mine', bare, 'label', ''))

# The experiments on them

def run(home, experiment, dataset, *more):
    done = factlib_inside('run', experiment, '-p', 'dataset', dataset, '-p', 'out', f'out/{experiment}', *more,
                          cwd=home)
    assert not done.returncode, done.stderr[-2000:]
    def table(name):
        with open(home/'out'/experiment/'tables'/f'{name}.csv', encoding='utf-8', newline='') as f:
            return list(csv.DictReader(f))
    return table

@pytest.mark.slow
def test_montagelie_on_tuples_of_ones_own(home):
    table = run(home, 'montagelie', 'my tuples.jsonl')
    easy = [row for row in table('aucs') if row['difficulty'] == 'easy']
    aucs = {(row['evaluator'], row['variant']): float(row['auc']) for row in easy}
    assert aucs['order_path', 'original'] == 1 and aucs['rouge1', 'original'] == .5 # same words, other order
    assert {row['benchmark'] for row in table('texts')} == {'my tuples'} and table('table_3_my tuples')

@pytest.mark.slow
def test_trutheval_on_ladders_of_ones_own(home):
    table = run(home, 'trutheval', 'ladders.json')
    (texts,) = table('texts')
    assert (texts['dataset'], texts['variant'], texts['questions']) == ('ladders', 'recorded', '2')
    rouge, = [row for row in table('correlations') if row['evaluator'] == 'rouge1']
    assert float(rouge['auc']) == 1 and float(rouge['tau']) < -.9 # every term that is spelt backwards is a word lost

@pytest.mark.slow
def test_vista_on_a_set_by_its_path(home):
    table = run(home, 'vista', 'fade=human verified.csv', '-p', 'n', 0)
    assert {(row['label'], row['turns']) for row in table('turns')} == {('supported', '6'), ('unsupported', '6')}
    aucs = {row['evaluator']: float(row['auc']) for row in table('aucs')}
    assert aucs['word_support'] == 1 and aucs['length'] == .5
