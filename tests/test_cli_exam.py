"`factlib exam`: a walk from a folder of texts to a verdict, with its exit codes and refusals."
import json

import pandas as pd
import pytest
from click.testing import CliRunner

from factlib.cli import app
from factlib.cli_exam import named_files
from factlib.core.records import BadInput

WORDS = 'harbour lantern captain letter village winter garden doctor bridge market river window'.split()

def story(number):
    "A text of twelve sentences, no two texts alike."
    at = lambda i: WORDS[(number*5 + i) % len(WORDS)]
    return ' '.join(f'In {1900 + number + i} the {at(i)} near the {at(i + 1)} was seen by {13 + i} people, and they told '
                    f'the {at(i + 2)} about it.' for i in range(12))

@pytest.fixture(scope='module')
def folder(tmp_path_factory):
    "A folder with an exam, and what a judge by rules scored."
    place = tmp_path_factory.mktemp('exam')
    (place/'texts').mkdir()
    for number in range(4): (place/'texts'/f'story{number}.txt').write_text(story(number), encoding='utf-8')
    done = CliRunner().invoke(app, ['exam', 'write', str(place/'texts'), '--out', str(place/'exam'), '--rows', '48'])
    assert done.exit_code == 0 and 'questions.jsonl' in done.output, done
    key = pd.read_parquet(place/'exam'/'key.parquet')
    good = 5 - key.dose_step*key.role.isin(['damage', 'injection'])
    pd.DataFrame(dict(id=key['id'], score=good)).to_csv(place/'good.csv', index=False)
    pd.DataFrame(dict(id=key['id'], score=4)).to_csv(place/'same.csv', index=False)
    return place

def grade(folder, *arguments):
    return CliRunner().invoke(app, ['exam', 'grade', str(folder/'exam'), *map(str, arguments)])

def test_from_texts_to_a_verdict(folder):
    done = grade(folder, folder/'good.csv', '--out', folder/'report', '--need',
                 'notices=.6,harmless=.4,steady=.6,lost=.1,injection=.7', '--gate')
    assert done.exit_code == 0, done.output
    assert 'Notices 100%' in done.output and 'Gate: Yes' in done.output
    page = (folder/'report'/'index.html').read_text(encoding='utf-8')
    assert 'Planted damage is not natural error.' in page and 'No pair went wrong.' in page

def test_exit_codes_and_json(folder):
    assert grade(folder, folder/'good.csv', '--out', folder/'r3', '--gate').exit_code == 3
    done = grade(folder, f'v1={folder/"good.csv"}', f'v2={folder/"same.csv"}', '--out', folder/'r1', '--gate', '--json')
    said = json.loads(done.output)
    assert done.exit_code == 1 and said['findings'] == dict(v1=[], v2=['constant']) and said['gate'] == 1

def test_bad_input_is_one_sentence(folder):
    def refused(*arguments):
        done = grade(folder, *arguments, '--out', folder/'never')
        assert isinstance(done.exception, BadInput), done.output # which `main` says, with exit code 2
        return str(done.exception)
    other = folder/'other.csv'
    other.write_text('id,score\nx1,3\nx2,4\n', encoding='utf-8')
    assert 'scores of another exam' in refused(other)
    assert 'no file' in refused(folder/'nothing.csv')
    assert '--need' in refused(folder/'good.csv', '--need', 'speed=1')
    key = folder/'exam'/'key.parquet'
    whole = key.read_bytes()
    pd.read_parquet(key).assign(kind='typos').to_parquet(key)
    try: assert 'key' in refused(folder/'good.csv')
    finally: key.write_bytes(whole)
    assert not (folder/'never').exists()

def test_names_of_files():
    assert {name: str(path) for name, path in named_files(['v1=a/old.csv', 'b/new.csv']).items()} == dict(
        v1='a/old.csv', new='b/new.csv')
    with pytest.raises(BadInput, match='Two scored files'): named_files(['a/x.csv', 'b/x.csv'])
