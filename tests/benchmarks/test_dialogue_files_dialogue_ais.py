"AIS from files of our own in the published formats: labels, and the texts of Wizard of Wikipedia and QReCC."
import csv
import json

import pytest

from factlib.benchmarks.base import load
from factlib.core.records import BadInput

# with the space of ann_wow.csv
HEADER = ['ex-idx ', 'doc-url', 'doc-url-hash', 'model-name', 'output',
          'INT', 'INT & AIS', 'Flagged', 'Q1', 'Q2', '# agree (INT)', '# agree (AIS)']

def row(index, model, output, interpretable=1, good=1, flagged=0, url='NA'):
    return [index, url, 'NA', model, output, interpretable, good, flagged, '', '', 5, 5]

def write(folder, rows, texts, header=HEADER):
    with open(folder/'ann.csv', 'w', newline='', encoding='utf-8') as file: csv.writer(file).writerows([header, *rows])
    (folder/'texts.json').write_text(json.dumps(texts), encoding='utf-8')
    return dict(path=folder/'ann.csv', texts=folder/'texts.json')

def wizard(text, **sentence):
    return dict(speaker='0_Wizard', text=text, checked_sentence=sentence, checked_passage={}, retrieved_passages=[])
def apprentice(text): return dict(speaker='1_Apprentice', text=text, retrieved_passages=[])

WOW = [dict(chosen_topic='Fox', persona='',
            dialog=[apprentice('Hi!'), wizard('Foxes are mammals.', self_Fox_0='A fox is a mammal.'),
                    apprentice('And hens?'), wizard('I like hens.', no_passages_used='no_passages_used')]),
       dict(chosen_topic='Hen', dialog=[wizard('Hens are birds.', self_Hen_0='A hen is a bird.'),
                                        apprentice('Oh!'), wizard('They lay eggs.', self_Hen_1='Hens lay eggs.')])]

def test_wow(tmp_path):
    files = write(tmp_path, [row('0:1', 'wow-t5', 'a fox is a bird.', good=0),
                             row('0:1', 'wow-reference', 'Foxes are mammals.'),
                             row('1:2', 'wow-t5', 'egg egg', interpretable=0, good=0),
                             row('1:0', 'wow-dodeca', 'a hen is a bird.'),
                             row('0:3', 'wow-t5', 'me too.', good=0), row('1:2', 'wow-dodeca', 'x', 0, 0, flagged=1)],
                  WOW)
    b = load('ais_wow', **files)
    assert [(e.id, e.truth, e.meta['label'], e.meta['turn'], e.group) for e in b] == [
        ('0:1/1', 'unsupported', 'not attributable', 1, 'wow-0'), ('0:1/2', 'supported', 'attributable', 1, 'wow-0'),
        ('1:2/3', 'unsupported', 'not interpretable', 2, 'wow-1'), ('1:0/4', 'supported', 'attributable', 0, 'wow-1'),
        ('0:3/5', 'unsupported', 'not attributable', 3, 'wow-0')]
    assert b.examples[0].source == 'A fox is a mammal.' and b.examples[0].history == (dict(speaker='user', text='Hi!'),)
    assert b.examples[4].source is None
    assert b.examples[2].history == (dict(speaker='assistant', text='Hens are birds.', reference='A hen is a bird.'),
                                     dict(speaker='user', text='Oh!'))
    assert b.examples[2].meta['model'] == 'wow-t5'
    assert [r.reason for r in b.refused] == ['Row 6: people flagged it as malformed, so it has no label.']
    assert '1 of them have no reference' in b.card and '`refused`: 1.' in b.card

@pytest.mark.parametrize('wrong, reason', [
    (row('0', 'm', 'x'), "its `ex-idx` is '0'"), (row('a:b', 'm', 'x'), 'must be conversation:turn'),
    (row('0:-1', 'm', 'x'), 'must be conversation:turn'), (row('9'*6000 + ':1', 'm', 'x'), 'must be conversation:turn'),
    (row('7:1', 'm', 'x'), 'has no conversation 7'),
    (row('0:4', 'm', 'x'), 'has no turn 4 in conversation 0'),
    (row('0:2', 'm', 'x'), "turn 2 of conversation 0 is not the wizard's"),
    (row('0:1', 'm', 'x', good='yes'), "its `INT & AIS` is 'yes'; it can be 0 or 1"),
    (row('0:1', 'm', 'x', interpretable=0, good=1), "can't be attributable"),
    (row('0:1', 'm', 'x', flagged=''), "its `Flagged` is ''"), (['0:1', 'x'], 'it has 2 cells, and the header 12')])
def test_a_wrong_row_is_refused_with_its_number(tmp_path, wrong, reason):
    b = load('ais_wow', **write(tmp_path, [row('0:1', 'm', 'y'), wrong, row('1:2', 'm', 'z')], WOW))
    assert [e.target for e in b] == ['y', 'z'] and len(b.refused) == 1 and b.refused[0].reason.startswith('Row 2: ')
    assert reason in b.refused[0].reason

@pytest.mark.parametrize('texts, reason',
                         [([3], 'has no turn 1'), ([{}], 'has no turn 1'),
                          ([dict(dialog='x')], 'has no turn 1'),
                          ([dict(dialog=[3, 4])], 'a message of its dialogue is no object'),
                          ([dict(dialog=[{}, {}])], 'its `text` is missing'),
                          ([dict(dialog=[apprentice('Hi.'), wizard('x') | dict(checked_sentence=['x'])])],
                           '`checked_sentence` must be an object of texts'),
                          ({}, 'must hold a list'), ([], 'must hold a list')])
def test_wrong_texts(tmp_path, texts, reason):
    with pytest.raises(BadInput, match=reason): load('ais_wow', **write(tmp_path, [row('0:1', 'm', 'y')], texts))

QRECC = [dict(Conversation_no=3, Turn_no=1, Context=[], Question='Is a fox a dog?', Conversation_source='quac'),
         dict(Conversation_no=3, Turn_no=2, Context=['Is a fox a dog?', 'No.'], Question='A cat?'),
         dict(Conversation_no=4, Turn_no=1, Context='', Question='Who?'),
         dict(Conversation_no=5, Turn_no=1, Context=[], Question='What?'),
         dict(Conversation_no=5, Turn_no=1, Context=[], Question='Which?'), 'x']
PASSAGES = [dict(id='http://fox.org_p0', contents='A fox is no cat.'),
            dict(id='http://fox.org_p1', contents=3), dict(id='http://hen.org_p0', contents='A hen.'), [], '{']

def passages(path):
    path.parent.mkdir(exist_ok=True)
    path.write_text('\n'.join(x if isinstance(x, str) else json.dumps(x) for x in PASSAGES), encoding='utf-8')
    return path

def test_qrecc(tmp_path):
    rows = [row('3:2', 't5-base', 'no cat', url='http://fox.org_p0'),
            row('3:1', 't5-base', 'fox?', 0, 0, url='http://fox.org_p0'),
            row('3:2', 't5-small', 'x', 0, 0, 1, 'http://fox.org_p0'), row('3:2', 't5', 'x', url='http://fox.org_p1'),
            row('4:1', 't5', 'x', url='http://fox.org_p0'), row('5:1', 't5', 'x', url='http://fox.org_p0'),
            row('3:9', 't5', 'x', url='http://fox.org_p0')]
    files = write(tmp_path, rows, QRECC, [name.strip() for name in HEADER])
    b = load('ais_qrecc', **files, passages=passages(tmp_path/'all'/'a.jsonl'))
    first, second = b
    assert (first.id, first.source, first.truth, first.group,
            first.meta['turn']) == ('3:2/1', 'A fox is no cat.', 'supported', 'qrecc-3', 3)
    assert first.history == tuple(dict(speaker=s, text=t)
                                  for s, t in (('user', 'Is a fox a dog?'), ('assistant', 'No.'), ('user', 'A cat?')))
    assert second.meta['turn'] == 1 and second.truth == 'unsupported'
    assert [r.reason for r in b.refused] == [
        'Row 3: people flagged it as malformed, so it has no label.',
        "Row 4: among the passages there is no 'http://fox.org_p1'.", 'Row 5: its `Context` must be a list of texts.',
        'Row 6: the file of texts has its turn twice.', 'Row 7: the file of texts has no turn 9 of conversation 3.']
    # a folder of such files
    assert [e.id for e in load('ais_qrecc', **files, passages=tmp_path/'all')] == [e.id for e in b]

def test_each_file_is_asked_for(tmp_path, monkeypatch):
    monkeypatch.setenv('FACTLIB_DATA', '')
    files = write(tmp_path, [row('0:1', 'm', 'y')], WOW)
    with pytest.raises(BadInput, match='ann_wow.csv'): load('ais_wow')
    with pytest.raises(BadInput, match='needs `texts`'): load('ais_wow', path=files['path'])
    with pytest.raises(BadInput, match='needs `passages`'): load('ais_qrecc', **files)
    with pytest.raises(BadInput, match='has no splits'): load('ais_qrecc', split='test')
    with pytest.raises(BadInput, match="lacks the column 'ex-idx'"):
        load('ais_wow', **write(tmp_path, [[1]], WOW, ['id']))
