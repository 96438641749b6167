"""The method by three stub models, one of which refuses a third: each step is kept, shown again without anybody asked,
and the printed tables are those of the judgements, worked out anew from the files."""
import json

import pandas as pd
import pytest

from factlib.core.records import Example
from factlib.evaluators.overlap import rouge
from factlib.llm.chat import Chat
from factlib.llm.stub import StubServer
from factlib.papers.narrativefactscore.method import (PARTS, against_references, extracts, graph_stories, method_steps,
                                                      perturbed_examples, scorer, version_examples)
from factlib.papers.narrativefactscore.printed import perturbed_scores, quality_scores, table_3, table_8, table_9
from factlib.papers.narrativefactscore.tables import drafts_table, gains_table
from factlib.report.results import Experiment
from factlib.runs.judging import given_judgements, judges_for
from factlib.runs.parts import evaluate_part

import narrative_server

MODELS = ('one', 'two', 'shy')

def story(i):
    source = (f'Ann met Bob at harbour number {i}. Bob sailed towards Hull with crates.\n\n'
              f'In Hull it rained for {i + 2} weeks. Ann waited for letters.')
    return Example(f'f{i}', source, f'Ann met Bob at harbour number {i}. Ann waited for letters.', group=f'f{i}')

def films(): return [Example(e.id, e.source, e.target, e.target, group=e.group) for e in map(story, range(6))]

@pytest.fixture(scope='module')
def made(tmp_path_factory):
    "The folder of each model's run, the steps of a run that shows all, its surface measures, and how often was asked."
    home, asked = tmp_path_factory.mktemp('method'), {}
    told = dict(mensa=films())
    own = dict(told=told, graphs={'mensa': graph_stories(told)['mensa']}, spoilt=told, extracts=extracts(told))
    for model in MODELS:
        run = Experiment('demo', 'T', 'Q?', dict(out=str(home/model), seed=0, n=0))
        def answer(request, model=model):
            text = narrative_server.prompt(request)
            no = model == 'shy' and ('number 0.' in text or 'number 3.' in text or 'for 2 weeks' in text)
            return dict(content='', refusal='No.') if no else narrative_server.storyteller(request)
        steps = {part: [] for part in PARTS}
        with StubServer(answer, json_schema=True) as server:
            chat = Chat(model, server.base_url, api_key='none', endpoint='test', mode='off')
            for part, judges, sets in method_steps(scorer(chat), own, steps, chat, rounds=2):
                steps[part].append(evaluate_part(part, judges, sets, run, model))
            asked[model] = len(server.requests)
        whole = {part: pd.concat(found) for part, found in steps.items()}
        texts = against_references(own['extracts'], version_examples(whole['summary'], told, 2),
                                   perturbed_examples(whole['perturbed'], told))
        surface = {f'{k} (stems)': judges_for([k], stem=True)[0] for k in ('rouge1', 'rougeL')}
        evaluate_part('against_reference', surface, texts, run)
        run.finish()
    given = given_judgements(dict(judgements=','.join(str(home/m) for m in MODELS)))
    later = Experiment('demo', 'T', 'Q?', dict(out=str(home/'all'), seed=0, n=0), given)
    parts = {part: evaluate_part(part, {}, {}, later) for part in (*PARTS, 'against_reference')}
    return home, parts, asked

def kept(home, model, part):
    rows = pd.read_parquet(home/model/'judgements.parquet')
    return rows[(rows.part == part) & (rows.model == model)]

def test_table_3_is_that_of_the_files(made):
    home, parts, _ = made
    scores = {m: quality_scores(parts['against_reference'][~parts['against_reference'].variant.isin(
        ['Reference', 'Perturbed'])], parts['extract'], parts['summary'], m) for m in MODELS}
    table = table_3(scores).set_index(['model', 'method', 'dataset', 'measure'])
    for model in MODELS:
        rows = kept(home, model, 'summary')
        drafts = {r.example_id: json.loads(r.evidence)['drafts'] for r in rows[rows.absence.isna()].itertuples()}
        n = dict(shy=4).get(model, 6)
        assert len(drafts) == n
        for i, method in enumerate(('GPT-4o-mini', '1st iteration', '2nd iteration')):
            version = [d[min(i, len(d) - 1)] for d in drafts.values()] # a right summary is kept
            nfs = table.loc[(model, method, 'MENSA', 'NFS')]
            assert nfs.here == pytest.approx(100*sum(v['value'] for v in version)/n)
            assert (nfs.asked, nfs.scored) == (6, n) and nfs.published == {
                'GPT-4o-mini': 81.05, '1st iteration': 85.94, '2nd iteration': 88.94}[method]
            target = {e.id: e.reference for e in films()}
            f1 = [rouge(v['text'], target[i], stem=True)['rouge1'][2] for i, v in zip(drafts, version)]
            assert table.here[model, method, 'MENSA', 'R-1'] == pytest.approx(100*sum(f1)/n)
        assert drafts['f1'][0]['text'].endswith('Terrible dragons appeared.') and len(drafts['f1']) > 1
    nfs = [table.here['one', method, 'MENSA', 'NFS'] for method in ('GPT-4o-mini', '2nd iteration')]
    assert nfs == [50, 100] # two facts, of which the dragons are taken out
    assert table.why['one', 'LED', 'MENSA', 'R-1'].startswith('needs that model')
    assert table.why['one', 'LED', 'MovieSum', 'R-1'].startswith('needs data')
    gains = gains_table(scores)
    own = gains[(gains.measure == 'NFS') & (gains.after == '2nd iteration')].set_index('model')
    assert own.delta.to_dict() == dict(one=50, two=50, shy=50) and own.compared.to_dict() == dict(one=6, two=6, shy=4)

def test_table_8_is_that_of_the_files(made):
    home, parts, _ = made
    scores = {m: perturbed_scores(parts['sensitivity'], parts['against_reference'], m) for m in MODELS}
    table = table_8(scores).set_index(['model', 'summary', 'measure'])
    assert set(table.data) == {'MENSA'}
    for model in MODELS:
        rows = kept(home, model, 'sensitivity')
        for variant in ('Reference', 'Perturbed'):
            values = rows[rows.variant == variant].value.dropna().astype(float)
            assert table.here[model, variant, 'NFS'] == pytest.approx(100*values.mean())
        assert table.here[model, 'Reference', 'ROUGE-L'] == 100 > table.here[model, 'Perturbed', 'ROUGE-L']
        assert all('on Mars.' in json.loads(e)['text'] for e in kept(home, model, 'perturbed').evidence
                   if 'text' in json.loads(e))
    assert table.published['one', 'Perturbed', 'NFS'] == 40.81
    assert table.why['one', 'Perturbed', 'BERTScore'].startswith('needs a model of vectors')

def test_table_9_and_drafts(made):
    _, parts, _ = made
    table = table_9(parts['summary'])
    own = table[table.model == 'two']
    assert own.row.tolist() == ['initial summary', 'fact 1', 'fact 2', 'refined summary']
    assert own.verdict.tolist()[1:3] == ['supported', 'unsupported'] and 'dragons' not in own.text.iloc[-1]
    assert (table.model == 'published').sum() == 12
    drafts = drafts_table(parts['refined'])
    assert set(drafts.corrected_by) == set(MODELS)
    assert (drafts[drafts.corrected_by == 'one'].version == 'initial').sum() == 6

def test_a_graph_is_asked_for_once(made):
    "Of its story: by the step that is about it, not again when a summary is scored."
    home, _, asked = made
    rows = pd.read_parquet(home/'one/judgements.parquet')
    assert rows[rows.part == 'graph'].requests.tolist() == [3]*6 # one scene, three readings
    assert rows[rows.model == 'one'].requests.sum() == asked['one']
    assert rows[rows.part == 'graph'].seconds.gt(0).all()
