"Files as people have them, and what `evaluate` and the commands that write do when nothing comes of it."
import json

import pytest
from click.testing import CliRunner

from factlib.benchmarks.own_files import read_examples, read_rows
from factlib.cli import app
from factlib.core.records import BadInput
from factlib.llm.stub import StubServer

def started(*arguments): return CliRunner().invoke(app, [str(a) for a in arguments])

def file(path, text, encoding='utf-8'):
    path.write_text(text, encoding=encoding)
    return path

@pytest.mark.parametrize('separator', [',', ';', '\t'])
def test_what_separates_cells_is_seen_in_the_header(tmp_path, separator):
    path = file(tmp_path/'a.csv', separator.join(['Nr', 'Antwort', 'Seite'])
                + '\r\n' + separator.join(['1', '"Ja; nein, doch"', '3']) + '\r\n', 'utf-8-sig')
    assert read_rows(path) == [dict(Nr='1', Antwort='Ja; nein, doch', Seite='3')]

@pytest.mark.parametrize('text, says', [('target,source\na b,c d,e f\n', 'more cells than its header'),
                                        ('target,source\na,b\na b,c d,e f\n',
                                         'comma in a cell without quotation marks'),
    ('target,target,source\na,b,c\n', "two columns 'target'"), ('target,source\n"a,b\n', 'quotation mark never closed'),
                                        ('', 'holds no examples'), ('target,source\n', 'holds no examples')])
def test_a_table_that_does_not_fit_its_header_is_refused(tmp_path, text, says):
    with pytest.raises(BadInput, match=says): read_rows(file(tmp_path/'a.csv', text))

@pytest.mark.parametrize('row', [dict(id='', target='a'), dict(id=7, target=['a', 1])])
def test_what_is_wrong_with_a_row_is_said_with_its_number(tmp_path, row):
    path = file(tmp_path/'a.jsonl', json.dumps(dict(target='fine')) + '\n' + json.dumps(row))
    with pytest.raises(BadInput, match="Row 2 of .*a.jsonl"): read_examples(path)

def test_a_chat_log_can_be_judged(tmp_path):
    turns = [dict(role='user', content='Where is the fox?'),
             dict(role='assistant', content='It is in the wood.', reference='The fox is in the wood.')]
    path = file(tmp_path/'chats.jsonl', json.dumps(dict(messages=turns)))
    done = started('evaluate', path, '--with', 'word_support', '--out', tmp_path/'o', '--no-page')
    assert done.exit_code == 0, done.output
    assert '1 of 1 texts have a score' in done.stdout

def test_a_field_is_named_once(tmp_path):
    path = file(tmp_path/'a.csv', 'response,source\na,b\n')
    done = started('evaluate', path, '--with', 'rouge1', '--out', tmp_path/'o',
                   '--columns', 'target=response,target=source')
    assert isinstance(done.exception, BadInput) and 'twice' in str(done.exception) and not (tmp_path/'o').exists()

@pytest.mark.parametrize('least', ['2', '90', '-1'])
def test_a_share_that_is_none_is_refused_before_anything_is_asked(tmp_path, least):
    path = file(tmp_path/'a.csv', 'target,source\na,b\n')
    with StubServer(lambda request: '5') as server:
        done = started('evaluate', path, '--with', 'consistency', '--out',
                       tmp_path/'o', '--at-least', least, '--model', 'stub', '--base-url', server.base_url)
        assert isinstance(done.exception, BadInput) and server.requests == [] and not (tmp_path/'o').exists()

def test_why_there_is_no_score_is_said(tmp_path):
    path = file(tmp_path/'a.csv', 'target,source\nThe fox ran.,A fox ran.\n')
    with StubServer(lambda request: 'I would rather not say.') as server:
        done = started('evaluate', path, '--with', 'consistency', '--out',
                       tmp_path/'o', '--no-page', '--model', 'stub', '--base-url', server.base_url)
    assert done.exit_code == 4
    assert ('\nconsistency gave no score to the only example: malformed in 1 of 1, each time: The reply holds no JSON' in done.stdout)
    assert 'Asked for' not in done.stderr and 'figures/scores.png' not in done.stdout

WRITERS = [('build-answers', 'json',
            json.dumps([dict(question='Who sang?',
                             ground_truth='Anna Berg sang with old friends in Lyon in May 1921.')]), ()),
           ('build-montagelie', 'jsonl',
            json.dumps(dict(source='...', true='Ann rose. Ann ate. Ann left. Ann sang. Ann slept.')), ('--sentences',))]

@pytest.mark.parametrize('command, ending, text, more', WRITERS, ids=['answers', 'montagelie'])
def test_a_file_is_only_replaced_by_something(tmp_path, command, ending, text, more):
    pairs, out = file(tmp_path/f'pairs.{ending}', text), file(tmp_path/f'mine.{ending}', 'what was paid for')
    with StubServer(lambda request: 'I would rather not.') as server:
        options = ['--model', 'stub', '--base-url', server.base_url, *more]
        refused = started(command, pairs, '--out', out, *options).exception
        assert isinstance(refused, BadInput) and 'not as factlib made it' in str(refused) and not server.requests
        done = started(command, pairs, '--out', out, '--force', *options)
        assert isinstance(done.exception, RuntimeError) and 'Nothing was made' in str(done.exception)
        assert ('not made' in done.stdout or 'times' in done.stdout)
        assert out.read_text() == 'what was paid for' and server.requests
        before = len(server.requests)
        assert isinstance(started(command, pairs, '--out', pairs, *options).exception, BadInput)
        assert pairs.read_text() == text
        assert started(command, pairs, '--out', tmp_path/f'new.{ending}', '--cost', *options).exit_code == 0
        assert isinstance(started(command, tmp_path/'gone.jsonl', '--out',
                                  tmp_path/f'other.{ending}', *options).exception, BadInput)
        assert len(server.requests) == before and not (tmp_path/'new.answers.sqlite').exists()
        assert not (tmp_path/'other.answers.sqlite').exists()
