"""A paper's name needs a model: no evaluator of a paper can be had without one, and no file, page or help text shows
one that counts words."""
import json
import re
from pathlib import Path

import pytest

from factlib.core.records import BadInput
from factlib.evaluators.base import EVALUATORS, asks, get, offline_evaluators
from factlib.runs.catalogue import evaluator_rows, needs_model

ROOT = Path(__file__).parents[1]
NAMES = r'(?:factscore|dovescore|vista|narrativefactscore|alignscore|summac\w*|factual.?correctness\w*|NFS)'
RULED = re.compile(rf'\b{NAMES}(?:_\w+)?\W{{0,3}}(?:(?:,| \(words\),)\W?)? ?(?:works? )?by rules\b|\b{NAMES} \(words\)', re.I)

def shown():
    "Texts that a reader meets, by path: notebooks with their outputs, pages, data, README. The changelog tells history."
    for pattern in ('nbs/**/*.ipynb', 'data/**/*.jinja', 'data/**/*.md', 'data/**/*.json', 'README.md'):
        for path in ROOT.glob(pattern): yield path.relative_to(ROOT).as_posix(), path.read_text(encoding='utf-8')

def test_the_pattern_finds_what_it_should():
    for text in ('factscore, by rules', '*vista*, by rules', 'VISTA by rules', 'alignscore (words), by rules', 'NFS, by rules',
                 'summac_zs, by rules', 'factscore_single, by rules', '`narrativefactscore` works by rules'):
        assert RULED.search(text), text
    for text in ('a graph by rules', 'factscore, some-model', 'vista asks by rules of courtesy', 'word_support, by rules'):
        assert not RULED.search(text), text

def test_nothing_shows_a_papers_evaluator_without_a_model():
    found = {path: said[0] for path, text in shown() if (said := RULED.search(text))}
    assert not found

@pytest.mark.parametrize('name', [name for name in EVALUATORS if needs_model(name)])
def test_without_a_model_nothing_is_made(name, monkeypatch):
    "One sentence says what is missing, how it is given, and which baselines need none; these can be had."
    monkeypatch.delenv('FACTLIB_NLI', raising=False)
    given = {}
    if name == 'summac_conv':
        from factlib.evaluators.entailment.summac import ConvWeights
        given = dict(weights=ConvWeights((0, 1), (1,)))
    with pytest.raises(BadInput) as error: get(name, **given)
    told = str(error.value)
    assert 'asks a model, and none is given' in told and ('--model NAME' if asks(name) else 'FACTLIB_NLI') in told
    baselines = told.split('Baselines that need none: ')[1].rstrip('.').split(', ')
    assert baselines and set(baselines) <= set(offline_evaluators()) and '\n' not in told

def test_baselines_bear_no_papers_name():
    assert not [name for name in offline_evaluators(True) if needs_model(name) or re.match(NAMES, name, re.I)]
    rows = {row['name']: row for row in evaluator_rows()}
    assert {'word_support', 'rouge1', 'length', 'random', 'order_path', 'order_share'} <= {n for n in rows if rows[n]['here']}
    assert not [name for name, row in rows.items() if row['here'] and (row['asks'] or row['entails'])]
    assert 'by rules' not in json.dumps(list(rows.values()))
