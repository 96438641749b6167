"The experiments on recordings, made up and real, from the command line."
import json
import os

import pytest

import recordings
from command import factlib_inside
from factlib.report.tables import read_table

def test_replication_on_made_up_recordings(tmp_path):
    """Every cell of the notebook runs with one model, two tasks, three documents, and no JudgeMemo replies for one of
    them."""
    rows = [('LI', length, v, d, 4 - .5*(v == '43')*i, 4 - .5*(v == '17')*(2 - i))
            for length in ('2000', 'full') for v in ('gold', '43', '17') for i, d in enumerate('abc')]
    home = recordings.write(tmp_path/'data', vanilla=rows, judgememo=[r for r in rows if r[3] != 'c'])
    done = factlib_inside('run', 'judgememo', '--out', tmp_path/'out'/'judgememo', cwd=tmp_path, data=home)
    assert done.returncode == 0, done.stderr[-3000:]
    audit = read_table(tmp_path/'out'/'judgememo'/'tables'/'audit.csv')
    assert list(audit.columns)[:7] == ['table', 'cell', 'published', 'by_definition', 'by_recipe', 'status', 'note']
    assert len(audit) == 416
    assert audit.set_index(['table', 'cell']).by_definition[('5.1', 'LI|2000|fluency')] == 4
    # fluency deltas of [43] are 0, -0.5, -1
    effect = read_table(tmp_path/'out'/'judgememo'/'tables'/'effectiveness.csv').set_index(
        ['setup', 'level', 'variant', 'metric'])
    assert effect.loc[('vanilla', '2000', '43', 'fluency'), 'mean'] == -.5
    assert effect.loc[('vanilla_30', '2000', '43', 'fluency'), 'mean'] == -.25

# cells of the audit
RECORDED = {'judgememo': 416, 'judgememo_matrix_analysis': 270, 'judgememo_ablations': 176,
            'judgememo_prompts': 640, 'judgememo_dataset_statistics': 16,
            'judgememo_intervals': None, 'judgememo_failure_gallery': None, 'what_the_recordings_say': None}

@pytest.mark.parametrize('name', RECORDED)
@pytest.mark.skipif(not os.environ.get('FACTLIB_DATA'),
                    reason='FACTLIB_DATA is not set: the recorded replies are not here')
def test_replication_on_the_real_recordings(name, reproduced):
    result = json.loads((reproduced/name/'result.json').read_text())
    assert len(result['findings']) >= 2 and not any('nan' in f['text'] for f in result['findings'])
    if RECORDED[name]: assert len(read_table(reproduced/name/'tables'/'audit.csv')) == RECORDED[name]

@pytest.mark.skipif(not os.environ.get('FACTLIB_DATA'),
                    reason='FACTLIB_DATA is not set: the recorded replies are not here')
def test_rule_or_final_call_with_all_setups(tmp_path):
    "Every recorded configuration of one judge, on three documents at one length."
    out = tmp_path/'out'/'rule'
    given = dict(setups='all', model='LI', n=3, lengths='2000')
    done = factlib_inside('run', 'judgememo_rule_or_final_call', '--no-page',
                          '--out', out, *[x for k, v in given.items() for x in ('-p', k, v)],
                          cwd=tmp_path, data=os.environ['FACTLIB_DATA'])
    assert done.returncode == 0, done.stderr[-3000:]
    gains, findings = read_table(out/'tables'/'gains.csv'), json.loads((out/'result.json').read_text())['findings']
    assert gains.evaluator.nunique() > 20 and set(gains.rule) == {'mean', 'worst', 'mean - .1 an issue'}
    assert gains.documents.max() == 3
    assert any(name.endswith('report_summary +summaries') for name in gains.evaluator)
    assert not any('nan' in f['text'] for f in findings)
