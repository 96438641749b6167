"""The thesis's own texts and its own prompts, judged by a server that answers by rule; stopped in the middle, and gone
on with."""
import math
import os
import re
import signal
import statistics
import subprocess
import sys
import tarfile
import time
import zlib
from collections import Counter
from pathlib import Path

import pandas as pd
import pytest
from command import environment, factlib_inside
from factlib.benchmarks.base import load
from factlib.core.files import data_home
from factlib.llm.stub import StubServer

DATA = data_home()
CLONE = (DATA or Path('nowhere'))/'judgememo_clone/clone_cut.tar.gz'
pytestmark = pytest.mark.skipif(DATA is None or not (DATA/'judgememo/documents.parquet').is_file(),
                                reason='needs FACTLIB_DATA')

def fluency(text): return 1 + .5*(zlib.crc32(text.strip().encode()) % 9) # 1 to 5

def told(prompt):
    "The text in a prompt of ours or of the authors' v6-3, or the section in one of JudgeMemo."
    for tag in ('text', 'section'):
        if found := re.search(rf'<{tag}>\n(.*?)\n</{tag}>', prompt, re.DOTALL): return found[1]
    return prompt

def by_length(request):
    time.sleep(.01)
    said = request['messages'][-1]['content']
    return f'FINAL Fluency Score: {fluency(told(said)):g}\nFINAL Coherence Score: 3'

def words(server, out, **more):
    given = dict(model='rule', base_url=server.base_url, dataset='coflueval_recorded', n=5, kinds='24 41',
                 lengths='2000 full', judges='vanilla judgememo_report_only', reason='false', concurrency=4) | more
    return ['run', 'judgememo_live', '--no-page', '--out', str(out),
            *(x for k, v in given.items() for x in ('-p', k, str(v)))]

def table(out, name): return pd.read_csv(out/'tables'/f'{name}.csv', dtype=dict(variant=str, short=str, level=str))

def t_of(deltas): return statistics.mean(deltas)/(statistics.stdev(deltas)/math.sqrt(len(deltas))) # Eq 5.2

def quiet(server):
    "Wait until no request comes any more: the notebook's kernel lives a moment longer than the command."
    seen = -1
    while seen != len(server.requests):
        seen = len(server.requests)
        time.sleep(2)

def test_stopped_and_gone_on_with(tmp_path):
    out = tmp_path/'out'
    with StubServer(by_length) as server:
        command = [sys.executable, '-c', 'from factlib.cli import main; main()', *words(server, out)]
        first = subprocess.Popen(command, cwd=tmp_path, env=environment(DATA),
                                 stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
        while len(server.requests) < 25 and first.poll() is None: time.sleep(.05)
        assert first.poll() is None, 'it was to be stopped in the middle'
        os.killpg(first.pid, signal.SIGKILL)
        first.wait()
        quiet(server)
        before = len(server.requests)
        done = factlib_inside(*words(server, out), cwd=tmp_path, data=DATA)
        assert done.returncode == 0, done.stderr[-3000:]
        usage, sent = table(out, 'usage'), Counter(str(r['messages']) for r in server.requests)
        # once a run, as this stub never gives JSON
        in_words = [m for m in sent if 'one JSON value that fits this JSON schema' in m]
        assert len(in_words) <= 2
        # the stub says so little that some reports are the same
        assert 25 <= before < len(sent) - len(in_words) <= usage.new_planned.sum()
        assert sum(sent.values()) - len(sent) <= 4, 'only what was under way when it was stopped is paid for twice'
        # none is lacking
        assert (usage.requests == usage.requests_planned).all() and table(out, 'scores').value.notna().all()
    check_by_hand(out)

def check_by_hand(out):
    "The single prompt, from the texts and the rule: Eq 3.22, 5.2 and 5.3."
    examples = [e for e in load('coflueval_recorded').examples if e.variant in ('gold', '24', '41')]
    groups = list(dict.fromkeys(e.group for e in load('coflueval_recorded').examples))[:5]
    score = {(e.group, e.level, e.variant): fluency(e.target.strip()) for e in examples}
    tests = table(out, 'tests').query('evaluator == "vanilla" and metric == "fluency"').set_index(['variant', 'level'])
    lengths = table(out, 'lengths').query('evaluator == "vanilla" and metric == "fluency"').set_index('variant')
    for variant in ('24', '41'):
        delta = {level: [score[g, level, variant] - score[g, level, 'gold'] for g in groups]
                 for level in ('2000', 'full')}
        for level, deltas in delta.items():
            row = tests.loc[variant, level]
            assert (row.asked, row.scored) == (5, 5) and row['mean'] == pytest.approx(statistics.mean(deltas))
            assert row.t == pytest.approx(t_of(deltas))
        apart = [a - b for a, b in zip(delta['2000'], delta['full'])]
        assert lengths.loc[variant, 'mean'] == pytest.approx(statistics.mean(apart))
        assert lengths.loc[variant, 't'] == pytest.approx(t_of(apart))
    beside = table(out, 'beside')
    assert {'rule', 'single prompt', 'JudgeMemo'} <= set(beside.setup) and (beside.asked == 5).any()

@pytest.mark.skipif(not CLONE.is_file(), reason='needs the cut clone')
@pytest.mark.parametrize('what', ['modes', 'sections'])
def test_the_authors_prompts_word_for_word(tmp_path, what):
    "A pack made from a clone: every way to ask gets its scores."
    with tarfile.open(CLONE) as archive: archive.extractall(tmp_path, filter='data')
    assert factlib_inside('import', tmp_path/'JudgeMemo', '--prompts', tmp_path/'pack', cwd=tmp_path).returncode == 0
    with StubServer(by_length) as server:
        done = factlib_inside(*words(server, tmp_path/'out', n=1, kinds='24',
                                     judges='', what=what, pack=tmp_path/'pack'), cwd=tmp_path, data=DATA)
        assert done.returncode == 0, done.stderr[-3000:]
        prompts = [r['messages'][-1]['content'] for r in server.requests]
    scores, usage = table(tmp_path/'out', 'scores'), table(tmp_path/'out', 'usage')
    assert scores.value.notna().all() and len(scores) == len(usage)*4*2 # two lengths, untouched and spoilt, two metrics
    assert not any('{{' in p or '{Story}' in p or '{AddOn}' in p or '{Content}' in p for p in prompts)
    read = (tmp_path/'JudgeMemo/baseline_model_inference/prompts/prompt_v6-3.txt').read_text(
        encoding='utf-8').split('{Story}')
    # the single prompt, of four texts
    if what == 'modes': assert sum(all(part.strip() in p for part in read) for p in prompts) == 4
