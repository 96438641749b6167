"What `evaluate` judged ends in decisions, too: the best evaluator first, questions as groups, baselines beside."
import json
import re

import pytest

from factlib.benchmarks.base import Benchmark
from factlib.core.records import Example
from factlib.evaluators.base import EVALUATORS, evaluate
from factlib.metaeval.matrix import small_matrix
from factlib.trust.judged import judged_scores, trust_judged
from factlib.report.page import build_page
from factlib.report.tables import read_table
from factlib.runs.own_file import evaluate_file, own_benchmark, too_few

SOURCE = 'The fox ran over the hill. The hen hid in the barn.'
GOOD, BAD = 'The fox ran over the hill.', 'Nine grey owls sang at noon.'

def two_answers(n=20, **more):
    return [Example(f'{i}{label}', source=SOURCE, target=text, question=f'Question {i}?', truth=label, **more)
            for i in range(n) for label, text in (('true', GOOD), ('false', BAD))]

def judged(examples, *names):
    import pandas as pd
    return pd.concat([evaluate(EVALUATORS[name](), examples, progress=False) for name in names], ignore_index=True)

def test_answers_to_one_question_are_a_group():
    benchmark = Benchmark('answers', two_answers(), 'label', '', good='true')
    file = judged_scores(judged(benchmark.examples, 'rouge1', 'length'), benchmark)
    assert file.judges == ('rouge1', 'length') and file.group_given and file.frame.group.nunique() == 20
    found = trust_judged(judged(benchmark.examples, 'length', 'rouge1'), benchmark)
    assert found.judges == ['rouge1', 'length'] # the best first
    assert found.leads[0].startswith('rouge1 as a filter: ') and 'in 20 of 20 pairs' in found.leads[0]
    assert found.decisions.set_index('judge').estimate['rouge1'] == 1
    assert any('row by row' in sentence for sentence in found.said)

def test_a_group_that_is_given_is_kept():
    examples = [Example(e.id, source=e.source, target=e.target, question=e.question, truth=e.truth, group=f'doc {i//8}')
                for i, e in enumerate(two_answers())]
    benchmark = Benchmark('answers', examples, 'label', '', good='true')
    file = judged_scores(judged(examples, 'rouge1'), benchmark)
    assert file.frame.group.nunique() == 5 and file.said == ()

def test_a_numeric_human_column():
    examples = [Example(f'{i}', source=SOURCE, target=' '.join(SOURCE.split()[:2 + i % 9]), truth=float(i % 9))
                for i in range(90)]
    found = trust_judged(judged(examples, 'length'), Benchmark('numbers', examples, 'score', ''))
    row = found.tables['agreement'].iloc[0]
    assert (row.judge, row.human, row.spearman) == ('length', 'people', pytest.approx(1))

def write_file(path):
    rows = ['question,answer,context,label']
    for i in range(20): rows += [f'Question {i}?,{text},{SOURCE},{label}' for label, text in ((1, GOOD), (0, BAD))]
    path.write_text('\n'.join(rows))
    return dict(labels={'1': 'true', '0': 'false'}, good='true')

def test_a_folder_of_evaluate_leads_with_decisions(tmp_path):
    meanings = write_file(tmp_path/'mine.csv')
    result, failed = evaluate_file(tmp_path/'mine.csv', 'length rouge1', tmp_path/'out', decide=trust_judged,
                                   **meanings)
    assert not failed and {'index.html', 'tables/decisions.csv', 'tables/agreement.csv'} <= set(result['files'])
    lead = max(result['findings'], key=lambda f: f['lead'])
    assert lead['text'].startswith('rouge1 as a filter: ')
    decisions = read_table(tmp_path/'out'/'tables'/'decisions.csv')
    assert set(decisions.judge) == {'rouge1', 'length'}
    assert json.loads((tmp_path/'out'/'result.json').read_text('utf-8'))['findings'] == result['findings']

def test_the_folder_has_one_page_and_one_answer(tmp_path):
    "The page begins with the decisions, links what lies beside it, and every AUC and interval is the same everywhere."
    meanings = write_file(tmp_path/'mine.csv')
    evaluate_file(tmp_path/'mine.csv', 'length rouge1', out := tmp_path/'all'/'out', decide=trust_judged,
                  statistics=small_matrix, **meanings)
    assert [path.name for path in out.glob('*.html')] == ['index.html']
    page = (out/'index.html').read_text('utf-8')
    first = page.split('<table class="matrix">')[1].split('</table>')[0]
    order = [first.index(f'>{name}') for name in ('rouge1', 'length')]
    assert page.index('class="matrix"') < page.index('<h2') and order == sorted(order)
    assert first.count('class="baseline"') == 3 and '1.00' in first # constant, length of the text, shared words
    for path in re.findall(r'(?:href|src)="((?:tables|figures)/[^"]+)"', page): assert (out/path).is_file(), path
    for anchor in re.findall(r'href="#([^"]+)"', page): assert f'id="{anchor}"' in page, anchor
    assert 'figures/scores.svg' in page and 'No model was asked' not in page
    decided, truth = (read_table(out/'tables'/f'{name}.csv') for name in ('decisions', 'truth'))
    both = decided.merge(truth, left_on='judge', right_on='evaluator')
    assert len(both) == 2 and both.groups_x.tolist() == both.groups_y.tolist() == [20, 20]
    for mine, theirs in (('estimate_x', 'estimate_y'), ('low', 'ci_low'), ('high', 'ci_high')):
        assert both[mine].tolist() == pytest.approx(both[theirs].tolist(), abs=1e-9)
    assert 'rouge1 as a filter' in build_page(tmp_path/'all').read_text('utf-8') # the page of all results knows it

def test_without_a_truth_nothing_is_decided(tmp_path):
    (tmp_path/'mine.csv').write_text(f'answer,context\n{GOOD},{SOURCE}\n{BAD},{SOURCE}\n')
    result, _ = evaluate_file(tmp_path/'mine.csv', 'rouge1', tmp_path/'out', decide=trust_judged)
    assert 'May ' not in (tmp_path/'out'/'index.html').read_text('utf-8')[:9000].split('<h1>')[1][:40]
    assert 'tables/decisions.csv' not in result['files'] and own_benchmark(tmp_path/'mine.csv').truth_kind == 'none'

def test_an_evaluator_that_does_not_apply_is_spared_where_all_were_asked():
    counts = dict(asked=3, scored=0, why='inapplicable in 3 of 3: no reference')
    result = dict(evaluators=dict(rouge1=counts, length=dict(asked=3, scored=3)))
    assert too_few(result, .5) == ['rouge1 scored 0 of 3 texts'] and too_few(result, .5, True) == []
    counts['why'] = 'transport in 3 of 3'
    assert too_few(result, .5, True) == ['rouge1 scored 0 of 3 texts']

@pytest.mark.parametrize('prices', ['', 'model,input,output,currency\nm,2,10,EUR\n', 'model,input,output\nother,1,1\n'])
def test_a_model_costs_what_its_tokens_cost(prices, tmp_path):
    "The judge that asks is right more often than shared words; the page says what it takes, by tokens or by price."
    from command import factlib_inside
    from factlib.llm.stub import StubServer
    rows = ['question,answer,context,label']
    for i in range(20):
        for label, text in ((1, 'It was by him that a hill was crossed.' if i % 2 else GOOD), (0, BAD)):
            rows.append(f'Question {i}?,{text},{SOURCE},{label}')
    (tmp_path/'mine.csv').write_text('\n'.join(rows))
    (tmp_path/'prices.csv').write_text(prices)
    def rule(request):
        text = json.dumps(dict(verdict='hallucinated' if BAD in request['messages'][-1]['content'] else 'faithful',
                               reason='x'))
        return dict(content=text, usage=dict(prompt_tokens=1500, completion_tokens=100, total_tokens=1600))
    with StubServer(rule) as server:
        done = factlib_inside('evaluate', 'mine.csv', '--with', 'faithfulness,length,rouge1', '--model', 'm', '--base-url',
                              server.base_url, '--labels', '1=true,0=false', '--good', 'true', '--out', 'out',
                              *(['--prices', 'prices.csv'] if prices else []), cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    costs = read_table(tmp_path/'out'/'tables'/'costs.csv').set_index('judge')
    paid = 'm,' in prices
    each, unit = (1500*2e-6 + 100*10e-6, 'EUR') if paid else (1600, 'tokens')
    assert costs.cost.to_dict() == pytest.approx(dict(faithfulness=each, length=0, rouge1=0))
    assert set(costs.unit) == {unit} and costs.loc['faithfulness', 'agreement'] == 1
    said = 'at the price of these tokens' if paid else 'in tokens of prompts and replies'
    page = re.sub('<[^>]+>', '', (tmp_path/'out'/'index.html').read_text('utf-8'))
    assert said in page and ('0.004 EUR' if paid else '1,600 tokens') in page and 'Best for its price' in page

def told_costs(benchmark, rows): return judged_scores(rows, benchmark).costs

def test_what_an_endpoint_does_not_count_costs_nobody_knows_what():
    examples = two_answers(5)
    benchmark = Benchmark('answers', examples, 'label', '', good='true')
    rows = judged(examples, 'rouge1', 'length').replace(dict(evaluator=dict(length='faithfulness')))
    asked = rows.evaluator == 'faithfulness'
    told = rows.assign(requests=asked*1, prompt_tokens=asked*10, completion_tokens=asked*2, uncounted=0)
    told.loc[told.example_id == '0true', ['uncounted', 'prompt_tokens']] = 1, 0
    frame = told_costs(benchmark, told).frame
    assert frame.faithfulness.isna().tolist() == [True] + [False]*9 and set(frame.faithfulness[1:]) == {12}
    assert set(frame.rouge1) == {0}
    assert told_costs(benchmark, rows) is None # nobody asked a model
    twin = told.replace(dict(evaluator=dict(rouge1='faithfulness (expected)'))).assign(requests=asked*1)
    both = told_costs(benchmark, twin).frame
    assert both['faithfulness (expected)'].equals(both.faithfulness.rename('faithfulness (expected)'))

def test_what_runs_here_costs_nothing_and_what_was_not_asked_no_tokens():
    "A small model of our own counts its tokens, and nobody pays them; a text without a source was no cheap one."
    examples = two_answers(4)
    benchmark = Benchmark('answers', examples, 'label', '', good='true')
    rows = judged(examples, 'rouge1', 'length').replace(dict(evaluator=dict(length='surprisal')))
    told = rows.assign(requests=(rows.evaluator == 'surprisal')*1, prompt_tokens=9, completion_tokens=0, uncounted=0)
    assert told_costs(benchmark, told) is None
    names = dict(rouge1='faithfulness')
    asked = told.assign(evaluator=told.evaluator.replace(names), requests=1, prompt_tokens=1600)
    unasked = (asked.evaluator == 'faithfulness') & asked.example_id.isin(['0true', '0false', '1true'])
    malformed = (asked.evaluator == 'faithfulness') & (asked.example_id == '2true') # paid for all the same
    asked.loc[unasked, ['value', 'requests', 'prompt_tokens']] = float('nan'), 0, 0
    asked.loc[malformed, 'value'] = float('nan')
    frame = told_costs(benchmark, asked).frame
    assert frame.faithfulness.isna().sum() == 3 and set(frame.faithfulness.dropna()) == {1600}
    assert set(frame.surprisal) == {0}
