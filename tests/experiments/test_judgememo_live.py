"""JudgeMemo live, as a user runs it: the experiment against a server that answers by rule, with requests as the dry run
says; a memory edited by hand."""
import json
import re
import shutil

import pandas as pd
import pytest

import recordings
from command import factlib_inside
from factlib.core.loop import run_sync
from factlib.core.records import BadInput, Example
from factlib.evaluators.base import evaluate
from factlib.evaluators.memo.judgememo import JudgeMemo
from factlib.evaluators.memo.memory import Memory
from factlib.evaluators.memo.scan import scan
from factlib.llm.cache import Cache
from factlib.llm.chat import Chat
from factlib.llm.stub import StubServer
from factlib.runs.judging import COMPARED, label_of, memo_judges
from factlib.runs.costs import plan_table, usage_table

STORY = ('The old fox walked slowly through the wood and looked for the hen. He found nothing to eat there, so he went '
         'home again.')

WORDS = set(re.findall(r'\w+', f'{STORY} It was day of one two three')) | {str(i) for i in range(20)}

def score(text): return max(1, 5 - sum(w not in WORDS for w in re.findall(r'\w+', text)))

def rule(request):
    """Fluency falls with words that the stories do not have. The final call sees only the report and repeats the first
    score in it."""
    said = request['messages'][-1]['content']
    if '<report>' in said:
        report = said.split('<report>\n', 1)[1].split('\n</report>', 1)[0]
        return json.dumps(dict(reason='by rule', fluency=float(re.search(r'Fluency: ([\d.]+)', report)[1]),
                               coherence=4))
    for tag in ('section', 'text'):
        if found := re.search(rf'<{tag}>\n(.*?)\n</{tag}>', said, re.DOTALL):
            # another one for another text
            if 'FINAL' not in said: return f'A fox goes home: {" ".join(found[1].split()[:60])}'
            names = [m for m in ('Fluency', 'Coherence') if f'FINAL {m} Score' in said]
            return '\n'.join(f'FINAL {m} Score: {score(found[1]) if m == "Fluency" else 4}' for m in names)
    raise AssertionError(said)

@pytest.fixture
def texts(tmp_path):
    folder = tmp_path/'texts'
    folder.mkdir()
    for name, n in (('one', 10), ('two', 12), ('three', 14)):
        (folder/f'{name}.txt').write_text('\n\n'.join(f'{STORY} It was day {i} of {name}.' for i in range(n)),
                                          encoding='utf-8')
    return folder

def arguments(server, texts, out, **more):
    given = dict(model='rule', base_url=server.base_url, dataset=texts, n=0, lengths='full', size=200, out=out) | more
    return [x for k, v in given.items() for x in ('-p', k, str(v))]

def table(out, name): return pd.read_csv(out/'tables'/f'{name}.csv', dtype=dict(variant=str, short=str))

def test_modes_on_ones_own_texts(tmp_path, texts):
    out = tmp_path/'out'
    with StubServer(rule) as server:
        before = factlib_inside('cost', 'judgememo_live', *arguments(server, texts, out), cwd=tmp_path)
        assert before.returncode == 0 and not server.requests and not out.exists(), before.stderr
        done = factlib_inside('run', 'judgememo_live', *arguments(server, texts, out), cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        asked = [r['messages'][-1]['content'] for r in server.requests]
        usage = table(out, 'usage').set_index('evaluator')
        # 6 texts (3, each as it is and with typos) of so many sections
        # a section that was not spoilt is the same in both versions of a text
        sections, different = usage.requests['judgememo_aggregate'], len({a for a in asked if '<section>' in a})
        assert 12 < different <= sections and list(usage.index) == list(COMPARED['modes'])
        assert list(usage.requests) == list(usage.requests_planned) == [6, sections + 6,
                                                                        sections + 6, sections + 12, sections]
        assert list(usage.sent) == list(usage.new_planned) == [6, different + 6, 6, 12, 0]
        assert usage.sent.sum() == len(asked)
        again = factlib_inside('run', 'judgememo_live', *arguments(server, texts, out, mode='replay'), cwd=tmp_path)
        assert again.returncode == 0 and len(server.requests) == len(asked), again.stderr
        shown = next(line for line in before.stdout.splitlines() if line.startswith('requests')).split()
        assert shown[-1] == str(usage.requests.sum())
    check_memories(out)
    tests = table(out, 'tests').query('metric == "fluency"').set_index('evaluator')['mean']
    scores = table(out, 'scores').query('metric == "fluency"').pivot(index=['evaluator', 'group'],
                                                                     columns='variant', values='value')
    assert (tests < 0).all()
    assert tests['vanilla'] == pytest.approx((scores.loc['vanilla', '41'] - scores.loc['vanilla', 'gold']).mean())
    assert set(table(out, 'scores').query('metric == "coherence"').value) == {4}
    result = json.loads((out/'result.json').read_text())
    assert all(e['asked'] == e['scored'] == 6 for e in result['evaluators'].values())
    assert 'smoke' not in json.dumps(result['findings'])

# words that no story has, in the versions with typos
FAULTS = {'2000': dict(a=1, b=3, c=2), 'full': dict(a=0, b=1, c=2)}

@pytest.fixture(scope='module')
def home(tmp_path_factory):
    """Recordings of three documents at two lengths, two of them JudgeMemo's, and one judge whose fluency falls by 1, 2
    and 1 in the short texts, by 0.5, 0 and 1 in the long ones."""
    falls = {'2000': dict(a=1, b=2, c=1), 'full': dict(a=.5, b=0, c=1)}
    rows = [('LI', length, v, d, 4 - falls[length][d]*(v == '41'), 4)
            for length in FAULTS for v in ('gold', '41') for d in 'abc']
    home = recordings.write(tmp_path_factory.mktemp('recorded'), vanilla=rows,
                            judgememo=[r for r in rows if r[3] != 'c'])
    texts = [dict(doc_id=d, meta_order=i, in_jm30=d != 'c', length=length,
                  variant=v, text=' '.join([f'{STORY} It was day {i}.'] + ['It was day 9.']*(length == 'full')
                                           + ['qzxv']*(FAULTS[length][d]*(v == '41'))))
             for length in FAULTS for v in ('gold', '41') for i, d in enumerate('cab')]
    pd.DataFrame(texts).to_parquet(home/'judgememo'/'documents.parquet')
    return home

def recorded_run(server, out, home, **more):
    given = dict(dataset='coflueval_recorded', lengths='2000 full', judges='vanilla,judgememo_aggregate',
                 size=2000, reason=False) | more
    return factlib_inside('run', 'judgememo_live', '--no-page', *arguments(server, given.pop('dataset'), out, **given),
                          cwd=out.parent, data=home)

def test_beside_the_recorded_judges_by_hand(tmp_path, home):
    out = tmp_path/'out'
    with StubServer(rule) as server:
        done = recorded_run(server, out, home, n=2)
        assert done.returncode == 0, done.stderr[-3000:]
    fluent = lambda name, *keys: table(out, name).query('metric == "fluency"').set_index(list(keys))
    tests, lengths = fluent('tests', 'evaluator', 'level'), fluent('lengths', 'evaluator')
    for judge in ('vanilla', 'judgememo_aggregate'): # one section, so the rule gives its score
        # -1 and -3: sd is the root of 2
        assert list(tests.loc[(judge, '2000'), ['asked', 'scored', 'mean', 't']]) == pytest.approx([2, 2, -2, -2])
        # 0 and -1: sd is the root of 0.5
        assert list(tests.loc[(judge, 'full'), ['asked', 'scored', 'mean', 't']]) == pytest.approx([2, 2, -.5, -1])
        # -1 - 0 and -3 - -1
        assert list(lengths.loc[judge, ['short', 'long', 'scored', 'mean', 't']]) == [
            '2000', 'full', 2, pytest.approx(-1.5), pytest.approx(-3)]
    beside = fluent('beside', 'setup', 'evaluator', 'level')
    for setup in ('single prompt', 'JudgeMemo'):
        # -1 and -2
        assert list(beside.loc[(setup, 'LI', '2000'), ['scored', 'mean', 't']]) == pytest.approx([2, -1.5, -3])
        assert beside.loc[(setup, 'LI', 'full'), 'mean'] == -.25
    assert beside.loc[('rule', 'vanilla', '2000'), 'mean'] == -2 and len(beside) == 2*(2 + 1 + 1)
    long = fluent('beside_lengths', 'setup', 'evaluator')['mean']
    assert long['JudgeMemo', 'LI'] == -1.25 and long['rule', 'vanilla'] == -1.5 # -1 - -0.5 and -2 - 0
    assert {'figures/deltas.png', 'figures/noticed.png',
            'figures/length_effect.png'} <= set(json.loads((out/'result.json').read_text())['files'])

def test_recorded_judges_stand_as_in_judgememo(tmp_path, home):
    "With all documents, row for row."
    out = tmp_path/'out'
    with StubServer(rule) as server:
        done = recorded_run(server, out, home, judges='vanilla')
        assert done.returncode == 0, done.stderr[-3000:]
    assert factlib_inside('run', 'judgememo', '--no-page', '--out', tmp_path/'there',
                          cwd=tmp_path, data=home).returncode == 0
    names = {'single prompt': 'vanilla', "single prompt, JudgeMemo's documents": 'vanilla_30', 'JudgeMemo': 'judgememo'}
    for mine, theirs, keys in (('beside', 'effectiveness_target', ['setup', 'evaluator', 'level', 'variant', 'metric']),
                               ('beside_lengths', 'length_effect_target', ['setup', 'evaluator', 'variant', 'metric'])):
        there = table(tmp_path/'there', theirs).set_index(keys)
        here = table(out, mine).query('setup != "rule"').replace(dict(setup=names)).set_index(keys)
        assert len(here) == len(there) >= 3
        numbers = ['asked', 'scored', 'mean', 't', 'p', 'p_holm', 'critical', 'effect']
        pd.testing.assert_frame_equal(here.loc[there.index, numbers], there[numbers])

def test_two_lengths_of_ones_own_texts(tmp_path, texts):
    (texts/'three.txt').unlink()
    out = tmp_path/'out'
    with StubServer(rule) as server:
        done = factlib_inside('run', 'judgememo_live', '--no-page',
                              *arguments(server, texts, out, lengths='60 full', judges='vanilla'), cwd=tmp_path)
        assert done.returncode == 0, done.stderr[-3000:]
    scores = table(out, 'scores').query('metric == "fluency"').pivot(index=['group', 'level'],
                                                                     columns='variant', values='value')
    delta = (scores['41'] - scores.gold).unstack()
    assert table(out, 'lengths').query('metric == "fluency"')['mean'].item() == pytest.approx(
        (delta['60'] - delta.full).mean())
    assert len(delta) == 2 and not (out/'tables'/'beside.csv').exists()
    check_shown_with_another_model(tmp_path, out)

def check_shown_with_another_model(tmp_path, first):
    "A second model, made of the first's judgements: it refuses one text. Both are rows of the thesis's tables."
    second = tmp_path/'second'
    shutil.copytree(first, second)
    rows = pd.read_parquet(second/'judgements.parquet')
    rows['model'], rows['evaluator'] = 'shy', 'vanilla, shy'
    rows['signature'] = rows.signature.str.replace('rule', 'shy')
    refused = rows.group == 'two'
    for column in ('value', 'fluency', 'coherence'): rows[column] = rows[column].mask(refused)
    for column in ('absence', 'fluency_absence', 'coherence_absence'):
        if column in rows: rows[column] = rows[column].astype(object).where(~refused, 'refused')
    rows.to_parquet(second/'judgements.parquet')
    done = factlib_inside('run', 'judgememo_live', '--no-page', '-p', 'judgements', f'{first},{second}',
                          '--out', tmp_path/'both', cwd=tmp_path)
    assert done.returncode == 0, done.stderr[-3000:]
    both, scores = tmp_path/'both', table(first, 'scores').query('metric == "fluency"')
    counts = json.loads((both/'result.json').read_text())['evaluators']
    asked = {name: (e['asked'], e['scored']) for name, e in counts.items()}
    assert asked == {'vanilla, rule': (8, 8), 'vanilla, shy': (8, 4)}
    gold = scores[scores.variant == 'gold'].set_index(['group', 'level']).value
    rows = table(both, 'table_5.1').set_index(['model', 'length or delta', 'metric'])
    for model, groups in dict(rule=['one', 'two'], shy=['one']).items():
        own = rows.loc[model].xs('fluency', level='metric')
        assert own.here.to_dict() == pytest.approx({
            '60': gold.loc[groups, '60'].mean(), 'full': gold.loc[groups, 'full'].mean(),
            'delta': (gold.loc[groups, '60'].values - gold.loc[groups, 'full'].values).mean()})
        assert set(own.asked) == {2} and set(own.scored) == {len(groups)}
    assert rows.published['LN-noT', '2000', 'fluency'] == 3.915 and rows.why['LN-noT', '2000', 'fluency']
    damaged = table(both, 'table_A.12').query('number == "score" and variant == "41"').set_index('model').here
    assert damaged['rule'] == scores[(scores.variant == '41') & (scores.level == '60')].value.mean()
    assert len(table(both, 'table_A.15')) == 57 # as printed: nobody was asked as JudgeMemo

@pytest.mark.slow
def test_judged_again_from_edited_memories(tmp_path, texts):
    "No section is asked about again, and the verdict is that of the edited notes."
    out, again = tmp_path/'out', tmp_path/'again'
    given = dict(judges='vanilla,judgememo_aggregate', drawn=1)
    with StubServer(rule) as server:
        done = factlib_inside('run', 'judgememo_live', '--no-page', *arguments(server, texts, out, **given),
                              cwd=tmp_path)
        assert done.returncode == 0, done.stderr[-3000:]
        mine = tmp_path/'mine'
        shutil.copytree(out/'memories', mine)
        files = sorted(mine.glob('*.json'))
        drawn = table(out, 'drawn')
        assert len(files) == 2 and drawn.drawn.sum() == 1 and len(drawn) == 3 # a text, untouched and with typos
        for file in files:
            memory = json.loads(file.read_text(encoding='utf-8'))
            for section in memory['sections']: section['scores']['fluency'] = 2.5
            file.write_text(json.dumps(memory), encoding='utf-8')
        before = len(server.requests)
        done = factlib_inside('run', 'judgememo_live', '--no-page',
                              *arguments(server, texts, again, memories=mine, **given), cwd=tmp_path)
        assert done.returncode == 0, done.stderr[-3000:]
        asked = [r['messages'][-1]['content'] for r in server.requests[before:]]
    assert len(asked) == 6 and not any('<section>' in a for a in asked) # the single prompt alone
    fluency = table(again, 'scores').query('metric == "fluency" and evaluator == "judgememo_aggregate"').value
    assert len(fluency) == 2 and set(fluency) == {2.5}

@pytest.mark.slow
def test_an_ablation_of_ones_own_model(tmp_path, texts):
    "24 configurations and another scan range in one command, and shown again."
    for name in ('two', 'three'): (texts/f'{name}.txt').unlink()
    (texts/'more.txt').write_text(' '.join([f'{STORY} It was day 1 of two.']*6), encoding='utf-8')
    out, again = tmp_path/'out', tmp_path/'again'
    with StubServer(rule) as server:
        given = arguments(server, texts, out, lengths='60 full', kinds='41', sizes='100')
        done = factlib_inside('run', 'judgememo_ablations', '--no-page', *given, cwd=tmp_path)
        assert done.returncode == 0, done.stderr[-3000:]
    done = factlib_inside('run', 'judgememo_ablations', '--no-page', '-p', 'judgements', out, '--out', again,
                          cwd=tmp_path)
    assert done.returncode == 0, done.stderr[-3000:]
    names = sorted(p.name for p in (out/'tables').glob('*.csv'))
    assert [n for n in names if (out/'tables'/n).read_bytes() != (again/'tables'/n).read_bytes()] == []
    assert len(json.loads((out/'result.json').read_text())['evaluators']) == 24 + 1
    bars = table(out, 'bars_5.4_A.31').query('model == "rule" and task == 41')
    assert len(bars) == 24 and set(bars.asked) == {2} and set(bars.scored) == {2}
    ranges = table(out, 'scan_range')
    assert sorted(set(ranges.section_size)) == [100, 200] and set(ranges.n) == {2}

def test_faults_are_placed_from_a_live_run(tmp_path, texts):
    """A judge that quotes each word that no story has, as a spelling issue, labels and quotes every typo, and nothing
    in the untouched texts."""
    def quoting(request):
        section = re.search(r'<section>\n(.*?)\n</section>', request['messages'][-1]['content'], re.DOTALL)[1]
        wrong = [w for w in dict.fromkeys(re.findall(r'\w+', section)) if w not in WORDS]
        listed = '\n'.join(f'- [SPELLING] "{w}" is no word' for w in wrong) or '- none'
        return (f'1) Fluency Issues:\n{listed}\n2) Coherence Issues:\n- none\n3) FINAL Coherence Score: 4\n4) FINAL '
                f'Fluency Score: {5 - bool(wrong)}')
    out = tmp_path/'out'
    with StubServer(quoting) as server:
        done = factlib_inside('run', 'judgememo_live', '--no-page',
                              *arguments(server, texts, out, judges='judgememo_aggregate', size=60), cwd=tmp_path)
        assert done.returncode == 0, done.stderr[-3000:]
    row = table(out, 'localisation').iloc[0]
    assert (row.evaluator, row.variant, row.documents, row.left_out) == ('judgememo_aggregate', '41', 3, 0)
    assert row.errors > 3
    assert row.in_gold == 0 and row.labelled == row.lift == 1
    # quotations of one or two letters are not looked for, so a spoilt "so" is missed
    assert 1 >= row.quoted > .8 > row.quoted_by_chance
    assert 0 < row.by_place < 1

def test_a_text_that_is_whole_at_the_short_length_is_left_out_and_named(tmp_path, texts):
    "The third has ten words: the same text at 60 words and whole."
    (texts/'short.txt').write_text(f'{STORY} {STORY}', encoding='utf-8')
    out = tmp_path/'out'
    with StubServer(rule) as server:
        done = factlib_inside('run', 'judgememo_live', '--no-page',
                              *arguments(server, texts, out, lengths='60 full', judges='vanilla'), cwd=tmp_path)
        assert done.returncode == 0, done.stderr[-3000:]
    assert set(table(out, 'lengths').asked) == {3} and set(table(out, 'tests').asked) == {4}
    said = [f['text'] for f in json.loads((out/'result.json').read_text())['findings']]
    assert any(s.startswith('1 of 4 documents are the same text at 60 and full')
               and s.endswith('(short).') for s in said), said

def test_tables_come_before_pictures(tmp_path, texts):
    "A picture that can't be drawn costs nothing that was paid for."
    from unittest.mock import patch
    out = tmp_path/'out'
    with StubServer(rule) as server, patch('factlib.report.figures.intervals.ci_plot',
                                           side_effect=RuntimeError('no ink')):
        done = factlib_inside('run', 'judgememo_live', '--no-page',
                              *arguments(server, texts, out, lengths='60 full', judges='vanilla'), cwd=tmp_path)
    assert done.returncode and 'no ink' in done.stderr
    failed = tmp_path/'out.failed' # the old result, if there was one, stays as it was
    assert {'judgements', 'usage', 'scores', 'tests', 'lengths'} <= {p.stem for p in (failed/'tables').iterdir()}
    assert (failed/'judgements.parquet').exists()

@pytest.mark.parametrize('given, words', [(dict(lengths='150'), '2000 full'), (dict(kinds='42'), 'kinds "41"'),
                                          (dict(lengths='2k'), "not '2k'"), (dict(pack='nowhere'), 'nowhere')])
def test_refused_before_anything_is_asked(tmp_path, home, given, words):
    with StubServer(rule) as server:
        done = recorded_run(server, tmp_path/'out', home, **given)
        assert done.returncode and words in done.stderr and not server.requests, done.stderr[-2000:]

BAD = [(dict(overlap=-1), 'overlap is a share from 0'), (dict(context=-5), 'context'),
       (dict(least=0), '`least` is a share'), (dict(least=1.5), '`least` is a share'),
       (dict(counter='spoons'), "No token counter 'spoons'"), (dict(pack='nowhere'), 'nowhere'),
       (dict(reason='perhaps'), 'of type bool')]

@pytest.mark.parametrize('given, words', BAD, ids=[' '.join(given) + str(i) for i, (given, _) in enumerate(BAD)])
def test_bad_settings_are_one_sentence_before_anything_is_asked(tmp_path, texts, given, words):
    with StubServer(rule) as server:
        done = factlib_inside('run', 'judgememo_live',
                              *arguments(server, texts, tmp_path/'out', judges='judgememo_aggregate', n=1, **given),
                              cwd=tmp_path)
    last = done.stderr.strip().splitlines()[-1]
    assert done.returncode == 2 and words in last and last.startswith('Error: ') and 'Traceback' not in done.stderr
    assert not server.requests

def test_settings_reach_the_evaluator(tmp_path, texts):
    """Sections of 40 words, half of one shown again; a text with one request beyond the context isn't asked about at
    all."""
    texts_of = lambda server: [re.search(r'<section>\n(.*?)\n</section>', r['messages'][-1]['content'], re.DOTALL)[1]
                               for r in server.requests]
    with StubServer(rule) as server:
        given = dict(judges='judgememo_aggregate', n=1, size=40, overlap=.5, counter='whitespace', lengths='full')
        done = factlib_inside('run', 'judgememo_live', *arguments(server, texts, tmp_path/'out', **given), cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        assert all(len(part.split()) <= 40 for part in texts_of(server))
        assert sum('<before>' in r['messages'][-1]['content'] for r in server.requests) > 0
        sent = len(server.requests)
        done = factlib_inside('run', 'judgememo_live',
                              *arguments(server, texts, tmp_path/'short', context=100, max_tokens=90, **given),
                              cwd=tmp_path)
        assert done.returncode == 1 and 'Nothing could be scored' in done.stderr and len(server.requests) == sent

def check_memories(out):
    """One file a text, named in result.json; judged again by rule, each gives the score in the table, and an edit
    changes it."""
    kept, files = table(out, 'memories'), json.loads((out/'result.json').read_text())['files']
    scores = table(out, 'scores').query('evaluator == "judgememo_aggregate" and metric == "fluency"')
    assert len(kept) == 6
    assert set(kept.evaluators) == {
        'judgememo_report_only, judgememo_report_original, judgememo_report_summary, judgememo_aggregate'}
    assert sorted(kept.file) == [f for f in files if f.startswith('memories/')] == sorted(
        f'memories/{p.name}' for p in (out/'memories').iterdir())
    assert not any(str(out.parent) in (out/f).read_text(encoding='utf-8') for f in kept.file)
    judge = JudgeMemo(Chat('rule', 'http://127.0.0.1:9/v1', api_key='none', mode='off'), 'aggregate')
    again = []
    for file in kept.file:
        memory = Memory.load(out/file)
        again.append(run_sync(judge.conclude(Example(memory.document, target=''), memory)).parts['fluency'])
        edited = json.loads((out/file).read_text(encoding='utf-8'))
        for section in edited['sections']: section['scores']['fluency'] = 3.25
        after = run_sync(judge.conclude(Example(memory.document, target=''),
                                        Memory.from_json(json.dumps(edited)))).parts['fluency']
        assert after == pytest.approx(3.25) and after != pytest.approx(again[-1])
    assert sorted(again) == pytest.approx(sorted(scores.value))

@pytest.mark.parametrize('what, judges, sent', [('sections', 'judgememo_hard,judgememo_stride_summaries_unaware', None),
                                                ('prompts', 'prompt_v1,prompt_v4-2,prompt_v6-4', 2 + 2 + 4)])
def test_sections_and_prompts(tmp_path, texts, what, judges, sent):
    out = tmp_path/'out'
    with StubServer(rule) as server:
        done = factlib_inside('run', 'judgememo_live', *arguments(server, texts, out, what=what, judges=judges, n=1),
                              cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        usage = table(out, 'usage')
    assert list(usage.evaluator) == judges.split(',') and usage.sent.sum() == len(server.requests)
    assert list(usage.sent) == list(usage.new_planned) and list(usage.requests) == list(usage.requests_planned)
    if sent: assert len(server.requests) == sent # v6-4 asks for each metric by itself
    assert table(out, 'scores').value.notna().all()
    if what == 'prompts':
        lost = table(out, 'table_A.9')
        own = lost[lost.model == 'rule']
        assert len(lost) > len(own) == 3*2*2 and set(own.here) == {0} and set(own.asked) == set(own.scored) == {1}
        assert set(own.prompt) == {'v1', 'v4-2', 'v6-4'} and own.published.isna().all()

@pytest.mark.parametrize('mode', ['live', 'record', 'off'])
@pytest.mark.parametrize('what, judges', [('sections', 'judgememo_hard_summaries'),
                                          ('modes',
                                           'judgememo_report_only,judgememo_aggregate,judgememo_report_summary'),
                                          ('prompts', 'prompt_v1,prompt_v4-2,prompt_v6-4')])
def test_planned_is_sent(tmp_path, mode, what, judges):
    """Two texts that differ in their last section. Without a cache all requests are sent; with one, sections that are
    the same, after the same summary, are sent once."""
    sentences = [f'{STORY} It was day {i % 20}.' for i in range(30)]
    texts = [Example(v, target=' '.join(sentences[:-1] + [last]), group='d', variant=v)
             for v, last in (('gold', sentences[-1]), ('41', 'Xq xq.'))]
    with StubServer(rule) as server, Cache(tmp_path/'c.sqlite') as cache:
        chat = Chat('m', server.base_url, api_key='none', cache=None if mode == 'off' else cache, mode=mode)
        made = memo_judges(dict(model='m', what=what, judges=judges, size=300, max_tokens=0, generation=''), chat)
        plan = plan_table(made, texts)
        usage = usage_table(plan, [evaluate(j, texts, progress=False) for j in made])
        assert list(usage.requests_planned) == list(usage.requests) and list(usage.new_planned) == list(usage.sent)
        assert usage.sent.sum() == len(server.requests)
    if mode != 'live': assert list(usage.sent) == list(usage.requests)
    elif what != 'prompts':
        n = len(scan(texts[0].target, 300))
        shared = n - 1 # the last section is another one
        first = 2*(2*n + 1) - 2*shared if what == 'sections' else 2*(n + 1) - shared
        assert n > 2 and usage.sent[0] == first < usage.requests[0]

@pytest.mark.parametrize('given, words', [(dict(what='all'), 'can be modes, sections, prompts'),
                                          (dict(judges='vanila'), 'vanila'),
                                          (dict(judges='vanilla,vanilla'), 'at most once'),
                                          (dict(generation='fast'), "'plain' or 'thinking'"),
                                          (dict(generation='plain'), 'Table A.6'),
                                          (dict(model='', judges='judgememo_report_only'), 'embedded model'),
                                          (dict(model='', what='sections'), 'embedded model')])
def test_what_cannot_be_compared(given, words):
    chat = Chat('m', 'http://127.0.0.1:9/v1', api_key='none', mode='off')
    with pytest.raises(BadInput, match=words):
        memo_judges(dict(model='m', what='modes', judges='', size=200, max_tokens=0, generation='') | given, chat)

def test_a_memory_edited_by_hand_changes_report_and_score(tmp_path):
    text = Example('story', target='\n\n'.join(f'{STORY} It was day {i}.' for i in range(6)))
    with StubServer(rule) as server:
        chat = Chat('m', server.base_url, api_key='none', mode='off')
        asked, by_rule = JudgeMemo(chat, 'report_only', size=100), JudgeMemo(chat, 'aggregate', size=100)
        memory, _ = run_sync(asked.read(text))
        path = memory.save(tmp_path/'memory.json')
        before = [run_sync(j.conclude(text, Memory.load(path))) for j in (asked, by_rule)]
        edited = json.loads(path.read_text(encoding='utf-8'))
        edited['sections'][0]['scores']['fluency'] = 2
        edited['sections'][0]['issues'].append(dict(metric='fluency', label='grammar', text='the fox were'))
        path.write_text(json.dumps(edited), encoding='utf-8')
        sent = len(server.requests)
        after = [run_sync(j.conclude(text, Memory.load(path))) for j in (asked, by_rule)]
        assert len(server.requests) == sent + 1
        assert '[GRAMMAR] the fox were' in server.requests[-1]['messages'][-1]['content']
    assert [j.parts['fluency'] for j in before] == [5, 5] and after[0].parts['fluency'] == 2
    sizes = [n.end - n.start for n in memory.notes]
    assert len(sizes) > 1 and after[1].parts['fluency'] == pytest.approx(5 - 3*sizes[0]/sum(sizes))
    assert 'the fox were' in after[0].evidence['report'] and 'the fox were' not in before[0].evidence['report']

@pytest.mark.parametrize('judges', ['length vanilla', 'vanilla rouge1', 'judgememo_hard length judgememo_aggregate'])
def test_baselines_beside_judges_plan_nothing_and_bear_no_model(judges):
    chat = Chat('alpha', 'http://127.0.0.1:1/v1', mode='off')
    given = dict(model='alpha', what='modes', judges=judges, size=200, max_tokens=0, generation='', overlap=.1)
    made = memo_judges(given, chat)
    plan = plan_table(made, [Example('a', target=STORY)]).set_index('evaluator')
    assert list(plan.index) == judges.split()
    for judge in made: assert bool(plan.requests_planned[judge.name]) == (judge.name not in ('length', 'rouge1'))
    assert [label_of(judge, 'alpha') for judge in made] == [
        name if name in ('length', 'rouge1') else f'{name}, alpha' for name in judges.split()]

def test_baselines_alone_are_no_comparison_of_ways_to_ask():
    with pytest.raises(BadInput, match='length and rouge1 asks none: name a judge that does'):
        memo_judges(dict(model='alpha', what='modes', judges='length rouge1', size=9, max_tokens=0, generation=''), None)
